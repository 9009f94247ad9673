"""Text files of cells with a separator between them, also compressed."""

import bz2
import csv
import gzip
import io
import lzma
from collections.abc import Iterator

import polars as pl

from ._columns import DataFileError


def _zstandard(data: bytes) -> bytes:
    """Polars unpacks what Python's library cannot yet."""
    return "\n".join(pl.read_lines(data).to_series()).encode()


UNPACK = {".gz": gzip.decompress, ".bz2": bz2.decompress, ".xz": lzma.decompress, ".zst": _zstandard}
PACK = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def unpack(data: bytes, compression: str) -> bytes:
    """The bytes inside; `compression` is a suffix or empty."""
    if not compression:
        return data
    try:
        return UNPACK[compression](data)
    except Exception as error:  # each of them has its own
        raise DataFileError(f"it is not a {compression} file, or is cut short ({error}).") from error


def cells(data: bytes, separator: str | None) -> tuple[list[str], pl.DataFrame]:
    """The names of the columns, as they stand, and all cells as text; None: whichever separator the header has.

    Names may be missing or double: who asks for a column finds out.
    """
    if not data.strip():
        raise DataFileError("it is empty.")
    if b"\0" in data:
        raise DataFileError("it is not UTF-8 text: it has bytes of value zero.")
    separator = separator or max(",;\t", key=data.split(b"\n", 1)[0].decode("latin-1").count)
    names = [name.strip() for name in next(_rows(data, separator))[1]]
    if all(_is_number(name) for name in names):
        raise DataFileError("its first line has numbers where the names of the columns should be.")
    try:
        frame = pl.read_csv(data.rstrip(b"\r\n"), separator=separator, infer_schema=False)
    except pl.exceptions.PolarsError as error:
        _explain(data, separator, len(names))
        raise DataFileError(f"it is not a table: {str(error).splitlines()[0]}") from error
    if not frame.height:
        raise DataFileError("it has a header and no rows.")
    if frame.to_series(-1).null_count():  # so it is in rows that are too short
        _explain(data, separator, len(names))
    return names, frame


def _rows(data: bytes, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Lines where rows begin, and their cells: slow, for the header and for finding faults."""
    text = io.TextIOWrapper(io.BytesIO(data), "utf-8-sig", newline="")
    reader = csv.reader(text, delimiter=separator, strict=True)
    line = 1
    try:
        for row in reader:
            yield line, row
            line = reader.line_num + 1
    except UnicodeDecodeError as error:
        raise DataFileError(f"it is not UTF-8 text, in line {_undecodable(data)}: save it as UTF-8.") from error
    except csv.Error as error:
        raise DataFileError(f"line {line} has a quote that is not closed, or text after one ({error}).") from error


def _undecodable(data: bytes) -> int:
    """The line of the first bytes that are not UTF-8."""
    try:
        return data.decode().count("\n") + 1
    except UnicodeDecodeError as error:
        return data.count(b"\n", 0, error.start) + 1


def _explain(data: bytes, separator: str, width: int) -> None:
    """Complain about the first row that has too many or too few cells; blank lines are rows without any."""
    for line, row in _rows(data, separator):
        if row and len(row) != width:
            raise DataFileError(f"line {line} has {len(row)} cell{'s' * (len(row) != 1)}, the header has {width}.")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True

"""Data files of all kinds as tables, and tables as data files."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl

from ._arrays import read_npy, read_npz, read_wav, write_npz
from ._atomic import atomic
from ._columns import DataFileError, checked, choose, typed, words
from ._delimited import PACK, UNPACK, cells, unpack

SEPARATORS = {".csv": None, ".tsv": "\t"}  # None: comma, semicolon or tab, as the header has it
READERS: dict[str, Callable[[Path], pl.DataFrame]] = {
    ".parquet": pl.read_parquet,
    ".npy": read_npy,
    ".npz": read_npz,
    ".wav": read_wav,
}
WRITERS: dict[str, Callable[[pl.DataFrame, BinaryIO], None]] = {
    ".parquet": pl.DataFrame.write_parquet,
    ".npz": write_npz,
}
READABLE, WRITABLE = (*SEPARATORS, *READERS), (*SEPARATORS, *WRITERS)


def read_table(
    path: str | os.PathLike, columns: Sequence[str] | None = None, *, text: Sequence[str] = ()
) -> pl.DataFrame:
    """A data file as a table of numbers, times and text, in which missing cells are null.

    **Arguments:**

    - `path`: CSV or TSV (also `.gz`, `.bz2`, `.xz`, `.zst`), Parquet, `.npy`, `.npz` or WAV, by its suffix.
    - `columns`: those to read, in this order (None: all); what is wrong with others does not matter.
    - `text`: columns that are text even where they look like numbers.

    Whatever is wrong is a `DataFileError` that names it. Rows are counted from one, below the header.

    !!! example

        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "tides.csv"
        ...     _ = path.write_text("time,level\\n2024-01-01 00:00,1.5\\n2024-01-01 01:00,\\n")
        ...     table = read_table(path)
        >>> table["level"].to_list(), str(table["time"].dtype)
        ([1.5, None], "Datetime(time_unit='us', time_zone=None)")
    """
    path = Path(path)
    if not path.is_file():
        raise DataFileError(f"{path} {'is not a file' if path.exists() else 'does not exist'}.")
    suffix, compression = kind(path, READABLE, UNPACK)
    try:
        frame = pl.DataFrame([checked(column) for column in _columns(path, suffix, compression, columns, text)])
    except DataFileError as error:
        raise DataFileError(f"{path}: {error}") from error
    except (Exception, pl.exceptions.PanicException) as error:  # whatever a damaged file makes a reader do
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise DataFileError(f"{path} cannot be read as {suffix}: {reason[0]}") from error
    if not frame.height:
        raise DataFileError(f"{path} has no rows.")
    return frame


def _columns(
    path: Path, suffix: str, compression: str, wanted: Sequence[str] | None, text: Sequence[str]
) -> Iterator[pl.Series]:
    """The wanted columns; only text files leave open what their cells are."""
    if suffix not in SEPARATORS:
        frame = READERS[suffix](path)
        yield from (frame[name] for name in choose(frame.columns, wanted))
        return
    names, frame = cells(unpack(path.read_bytes(), compression), SEPARATORS[suffix])
    for name in choose(names, wanted):
        column = frame.to_series(names.index(name)).alias(name)
        yield words(column) if name in text else typed(column)


def write_table(frame: pl.DataFrame, path: str | os.PathLike, *, force: bool = False) -> None:
    """Write a table as CSV or TSV (also compressed), Parquet or `.npz`, by its suffix: at once or not at all.

    A file that is there already is replaced only by `force`.

    !!! example

        >>> import polars as pl, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_table(pl.DataFrame({"a": [1, 2]}), f"{folder}/numbers.csv.gz")
        ...     read_table(f"{folder}/numbers.csv.gz")["a"].to_list()
        [1, 2]
    """
    path = Path(path)
    suffix, compression = kind(path, WRITABLE, PACK)
    if path.exists() and not force:
        raise FileExistsError(f"{path} is there already: give --force, or force=True, to replace it.")
    with atomic(path) as file:
        if suffix in WRITERS:
            WRITERS[suffix](frame, file)
        else:
            text = frame.write_csv(separator=SEPARATORS[suffix] or ",").encode()
            file.write(PACK[compression](text) if compression else text)


def kind(path: Path, known: Sequence[str], compressions: Mapping[str, Any]) -> tuple[str, str]:
    """The suffix of a file, which must be one of the known, and that of its compression, which may be empty."""
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    compression = suffixes.pop() if suffixes and suffixes[-1] in compressions else ""
    suffix = suffixes[-1] if suffixes else ""
    if suffix not in known or (compression and suffix not in SEPARATORS):
        packed = ", ".join(f".csv{one}" for one in compressions)
        raise DataFileError(f"{path} must end in one of {', '.join(known)}, {packed}.")
    return suffix, compression


def stem(path: Path) -> str:
    """The name of a data file without what says how it is read."""
    return path.name[: -len("".join(kind(path, READABLE, UNPACK)))]

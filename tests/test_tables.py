"""Data files: every kind comes back as it is, and whatever is wrong is said by name."""

import bz2
import gzip
import lzma
import os
from datetime import date, datetime

import numpy as np
import polars as pl
import pytest
from scipy.io import wavfile

from latentforce.files._atomic import atomic
from latentforce.files._tables import DataFileError, read_table, write_table

FRAME = pl.DataFrame(
    {
        "when": [datetime(2024, 1, 1, hour) for hour in range(4)],
        "count": [1, 2, 3, 10**9],
        "level": [0.5, None, 1e-300, -1e9],
        "site": ["north", "süd", 'a "b"', "x,y"],
    }
)


def written(tmp_path, data, name="data.csv"):
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".csv.gz", ".tsv.bz2", ".CSV.XZ", ".parquet"])
def test_there_and_back(tmp_path, suffix):
    path = tmp_path / f"data{suffix}"
    write_table(FRAME, path)
    back = read_table(path)
    assert back.equals(FRAME) and back.dtypes == FRAME.dtypes
    assert read_table(path, ["site", "level"]).columns == ["site", "level"]
    with pytest.raises(FileExistsError, match="is there already"):
        write_table(FRAME, path)
    write_table(FRAME[:1], path, force=True)
    assert read_table(path).height == 1
    assert len(os.listdir(tmp_path)) == 1


def test_npz_and_npy(tmp_path):
    frame = FRAME.rename({"count": "file"})  # a name that np.savez cannot take
    write_table(frame, tmp_path / "data.npz")
    assert read_table(tmp_path / "data.npz").equals(frame)
    np.savez(tmp_path / "more.npz", t=np.arange(3.0), x=np.arange(6).reshape(3, 2))
    assert read_table(tmp_path / "more.npz").to_dict(as_series=False) == {
        "t": [0.0, 1.0, 2.0],
        "x_0": [0, 2, 4],
        "x_1": [1, 3, 5],
    }
    np.save(tmp_path / "one.npy", np.arange(3.0))
    np.save(tmp_path / "two.npy", np.asfortranarray([[1.0, np.nan], [3.0, 4.0]]))
    assert read_table(tmp_path / "one.npy").to_dict(as_series=False) == {"x0": [0.0, 1.0, 2.0]}
    assert read_table(tmp_path / "two.npy").to_dict(as_series=False) == {"x0": [1.0, 3.0], "x1": [None, 4.0]}


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.float32])
def test_sound(tmp_path, dtype):
    middle, top = {"u": (128, 64), "i": (0, np.iinfo(dtype).max // 2 + 1 if dtype != np.float32 else 0), "f": (0, 0.5)}[
        np.dtype(dtype).kind
    ]
    mono = np.array([middle, middle + top, middle - top, middle]).astype(dtype)
    wavfile.write(tmp_path / "mono.wav", 8, mono)
    assert read_table(tmp_path / "mono.wav").to_dict(as_series=False) == {
        "time": [0.0, 0.125, 0.25, 0.375],
        "amplitude": [0.0, 0.5, -0.5, 0.0],
    }
    wavfile.write(tmp_path / "stereo.wav", 8, np.stack([mono, mono], axis=1))
    assert read_table(tmp_path / "stereo.wav").columns == ["time", "channel_0", "channel_1"]


def cells(tmp_path, text):
    return read_table(written(tmp_path, text)).to_dict(as_series=False)


def test_what_cells_mean(tmp_path):
    assert cells(tmp_path, "\ufeffa;b\r\n1;x\r\n 2 ;y\r\n\r\n") == {"a": [1, 2], "b": ["x", "y"]}
    assert cells(tmp_path, "a,b\n1,NA\nnan,2.5\n,\n3,1e9\n") == {"a": [1, None, None, 3], "b": [None, 2.5, None, 1e9]}
    assert cells(tmp_path, 'a,b\n"1","x\ny"\n2,""\n') == {"a": [1, 2], "b": ["x\ny", None]}
    days = cells(tmp_path, "day,time\n2024-01-31,2024-01-31T10:30\n2024-02-01,2024-02-01 10:30\n")
    assert days == {
        "day": [date(2024, 1, 31), date(2024, 2, 1)],
        "time": [datetime(2024, 1, 31, 10, 30), datetime(2024, 2, 1, 10, 30)],
    }
    assert cells(tmp_path, "a,b\n123456789012345678901,1\n2,none\n")["a"] == [123456789012345678901.0, 2.0]
    assert cells(tmp_path, "a,b\nTrue,x\n,true\nfalse,false\n") == {
        "a": [True, None, False],
        "b": ["x", "true", "false"],
    }
    path = written(tmp_path, "code,n\n007,1\nB,2\n008,3\n")
    assert read_table(path, text=["code"])["code"].to_list() == ["007", "B", "008"]


WRONG = {
    "empty": ("", "it is empty"),
    "blank": (" \n\n", "it is empty"),
    "header only": ("a,b\n", "it has a header and no rows"),
    "no header": ("1.5,2\n3,4\n", "first line has numbers where the names"),
    "too many cells": ("a,b\n1,2\n3,4,5\n", "line 3 has 3 cells, the header has 2"),
    "too few cells": ('a,b\n1,"2\n2"\n3\n', "line 4 has 1 cell, the header has 2"),
    "open quote": ('a,b\n1,"2\n3,4\n', "line 2 has a quote that is not closed"),
    "text among numbers": ("a,b\n1,2\n2,low\n3,4\n", "column 'b' has 'low' in row 2, which is not a number"),
    "text among times": (
        "a,b\n2024-01-01,1\n2024-01-02,1\n2024-02-31,2\n",
        "column 'a' has '2024-02-31' in row 3, which is not a time",
    ),
    "decimal comma": ("a;b\n1,5;2\n2,5;3\n", "column 'a' has '1,5' in row 1. Write decimals with a point"),
    "day or month": ("a,b\n1/2/2024,2\n1/3/2024,2\n", "column 'a' has '1/2/2024' in row 1. Write dates with the year"),
    "infinity": ("a,b\n1,2\n2,-Inf\n", "column 'b' has an infinity in row 2"),
    "too large": ("a,b\n1,2\n2,1e999\n", "column 'b' has an infinity in row 2"),
    "twice": ("a,b,a\n1,2,3\n", "more than one column is called 'a'"),
    "unnamed": (",b\n1,2\n", "column 1 has no name"),
    "latin-1": ("a,b\n1,2\n1,é\n".encode("latin-1"), "it is not UTF-8 text, in line 3"),
    "latin-1 name": ("é,b\n1,2\n".encode("latin-1"), "it is not UTF-8 text, in line 1"),
    "utf-16": ("a,b\n1,2\n".encode("utf-16"), "it is not UTF-8 text"),
    "picture": (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "it is not UTF-8 text"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_text(tmp_path, name):
    data, message = WRONG[name]
    path = written(tmp_path, data)
    with pytest.raises(DataFileError) as error:
        read_table(path)
    assert str(error.value).startswith(f"{path}: ") and message in str(error.value)
    assert "\n" not in str(error.value)


def test_what_is_wrong_elsewhere_does_not_matter(tmp_path):
    path = written(tmp_path, ",a,b,b,c\n0,1,inf,2,x\n1,2,3,4,5\n2,3,3,y,6\n")
    assert read_table(path, ["a"]).to_dict(as_series=False) == {"a": [1, 2, 3]}
    with pytest.raises(DataFileError, match="has no column 'd', 'e'; it has '', 'a', 'b', 'b', 'c'"):
        read_table(path, ["a", "d", "e"])
    with pytest.raises(DataFileError, match="more than one column is called 'b'"):
        read_table(path, ["b"])


def test_not_there_and_not_known(tmp_path):
    with pytest.raises(DataFileError, match=r"none\.csv does not exist"):
        read_table(tmp_path / "none.csv")
    with pytest.raises(DataFileError, match="is not a file"):
        read_table(tmp_path)
    with pytest.raises(
        DataFileError, match=r"must end in one of \.csv, \.tsv, \.parquet, \.npy, \.npz, \.wav, \.csv\.gz"
    ):
        read_table(written(tmp_path, "a\n1\n", "data.xlsx"))
    for name in ("data.wav", "data.parquet.gz", "data"):
        with pytest.raises(DataFileError, match="must end in one of"):
            write_table(FRAME, tmp_path / name)


def test_only_claims_to_be(tmp_path):
    """Files that are something else, or a part of what they say."""
    for suffix in (".csv.gz", ".csv.bz2", ".csv.xz", ".csv.zst", ".parquet", ".npy", ".npz", ".wav"):
        for noise in (b"", b"\x89PNG\r\n\x1a\n" + bytes(200), np.random.default_rng(0).bytes(500)):
            with pytest.raises(DataFileError):
                read_table(written(tmp_path, noise, f"noise{suffix}"))
    text = b"a,b\n" + b"1,2\n" * 1000
    for pack, suffix in ((gzip, ".gz"), (bz2, ".bz2"), (lzma, ".xz")):
        with pytest.raises(DataFileError, match="or is cut short"):
            read_table(written(tmp_path, pack.compress(text)[:-9], f"cut.csv{suffix}"))
    np.save(tmp_path / "pickled.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(DataFileError, match="Python objects"):
        read_table(tmp_path / "pickled.npy")
    np.save(tmp_path / "deep.npy", np.zeros((2, 2, 2)))
    with pytest.raises(DataFileError, match="1-D or 2-D"):
        read_table(tmp_path / "deep.npy")
    np.save(tmp_path / "infinite.npy", np.array([[1.0, 2.0], [1.0, np.inf]]))
    with pytest.raises(DataFileError, match="column 'x1' has an infinity in row 2"):
        read_table(tmp_path / "infinite.npy")
    np.savez(tmp_path / "uneven.npz", a=np.zeros(2), b=np.zeros(3))
    with pytest.raises(DataFileError, match="as many rows"):
        read_table(tmp_path / "uneven.npz")
    pl.DataFrame({"a": [[1, 2], [3]]}).write_parquet(tmp_path / "nested.parquet")
    with pytest.raises(DataFileError, match="column 'a' holds List"):
        read_table(tmp_path / "nested.parquet")
    FRAME[:0].write_parquet(tmp_path / "empty.parquet")
    with pytest.raises(DataFileError, match="has no rows"):
        read_table(tmp_path / "empty.parquet")


def test_a_header_that_lies_allocates_nothing(tmp_path):
    np.save(tmp_path / "lie.npy", np.zeros(4))
    data = (tmp_path / "lie.npy").read_bytes()
    lie = data.replace(b"(4,), }" + b" " * 15, b"(4" + b"0" * 15 + b",), }")
    assert lie != data and len(lie) == len(data)
    with pytest.raises(DataFileError, match=r"cannot be read as \.npy"):
        read_table(written(tmp_path, lie, "lie.npy"))


def test_zstandard(tmp_path):
    packed = bytes.fromhex("28b52ffd0488410000612c620a312c320a") + bytes(4)  # a frame with one raw block
    path = written(tmp_path, packed, "data.csv.zst")
    with pytest.raises(DataFileError, match="cut short"):  # its checksum is wrong
        read_table(path)
    path.write_bytes(bytes.fromhex("28b52ffd0058410000612c620a312c320a"))
    assert read_table(path).to_dict(as_series=False) == {"a": [1], "b": [2]}


def test_nothing_is_lost_when_writing_fails(tmp_path, monkeypatch):
    path = written(tmp_path, "a\n1\n")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: .*data\.csv'$"):
        write_table(FRAME, path, force=True)
    monkeypatch.undo()
    assert path.read_text() == "a\n1\n" and os.listdir(tmp_path) == ["data.csv"]
    with pytest.raises(RuntimeError), atomic(path) as file:
        file.write(b"half")
        raise RuntimeError
    assert path.read_text() == "a\n1\n" and os.listdir(tmp_path) == ["data.csv"]
    with pytest.raises(NotADirectoryError, match=r"data\.csv/below'$"), atomic(path / "below"):
        pass
    with atomic(path) as file:
        file.write(b"new")
    assert path.read_text() == "new"

"""Arrays of NumPy and sound as tables."""

import warnings
from pathlib import Path
from typing import BinaryIO
from zipfile import ZipFile

import numpy as np
import polars as pl
from scipy.io import wavfile

from ._columns import DataFileError


def read_npy(path: Path) -> pl.DataFrame:
    """An array (N,) or (N, D) with columns x0, x1, ..."""
    array = np.load(path, mmap_mode="r", allow_pickle=False)  # mapped: a header that lies cannot make us allocate
    if not isinstance(array, np.ndarray):
        raise DataFileError("it holds several arrays: call it .npz.")
    return pl.DataFrame(_columns("x{}", array[:, None] if array.ndim == 1 else array))


def read_npz(path: Path) -> pl.DataFrame:
    """Each array (N,) is a column by its name, each (N, D) columns name_0, name_1, ..."""
    columns: dict[str, np.ndarray] = {}
    with np.load(path, allow_pickle=False) as arrays:
        for name in arrays.files:
            array = arrays[name]
            columns |= {name: array} if array.ndim == 1 else _columns(f"{name}_{{}}", array)
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise DataFileError(f"its arrays must have as many rows as each other, got {lengths}.")
    return pl.DataFrame(columns)


def write_npz(frame: pl.DataFrame, file: BinaryIO) -> None:
    """Each column as an array by its name; by hand, since `np.savez` cannot take any name."""
    with ZipFile(file, "w") as archive:
        for column in frame:
            array = np.asarray(column)
            array = array.astype(str) if array.dtype == object else array
            with archive.open(f"{column.name}.npy", "w", force_zip64=True) as part:
                np.lib.format.write_array(part, array, allow_pickle=False)


def read_wav(path: Path) -> pl.DataFrame:
    """Columns `time` in seconds and `amplitude`, or channel_0, channel_1, ..., from -1 to 1."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", wavfile.WavFileWarning)  # parts that are not sound
        warnings.filterwarnings("error", "Reached EOF prematurely")
        rate, sound = wavfile.read(path)
    if not rate > 0:
        raise DataFileError(f"its sampling rate must be positive, got {rate}.")
    if sound.dtype.kind != "f":
        middle = 128 if sound.dtype == np.uint8 else 0
        sound = (sound.astype(np.float64) - middle) / 2.0 ** (8 * sound.dtype.itemsize - 1)
    time = {"time": np.arange(len(sound)) / rate}
    return pl.DataFrame(time | ({"amplitude": sound} if sound.ndim == 1 else _columns("channel_{}", sound)))


def _columns(form: str, array: np.ndarray) -> dict[str, np.ndarray]:
    if array.ndim != 2 or array.dtype.kind not in "biufMmU":
        raise DataFileError(f"arrays must be of numbers, times or text and 1-D or 2-D, got {array.dtype}{array.shape}.")
    return {form.format(k): np.ascontiguousarray(array[:, k]) for k in range(array.shape[1])}

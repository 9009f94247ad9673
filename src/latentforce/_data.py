"""Data as they come from users."""

from typing import Any

import numpy as np


def rows(x: Any, y: Any, columns: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Inputs (N, D) and targets (N, P) that belong together; NaN in `y` means not observed."""
    inputs, targets = matrix("x", x, columns), matrix("y", y, missing=True)
    if inputs.shape[0] != targets.shape[0]:
        raise ValueError(f"`y` must have as many rows as `x` ({inputs.shape[0]}), got {targets.shape[0]}.")
    return inputs, targets


def matrix(name: str, value: Any, columns: int | None = None, missing: bool = False) -> np.ndarray:
    """Rows of data as a float64 matrix, of so many columns if told; NaN passes where `missing` is allowed."""
    array = np.asarray(value)
    if array.dtype.kind not in "iufb" or array.ndim not in (1, 2) or not array.size:
        raise ValueError(
            f"`{name}` must be a 1-D or 2-D array of numbers with at least one row, "
            f"got an array of shape {array.shape} and type {array.dtype}."
        )
    array = array.astype(np.float64)
    bad = np.isinf(array) if missing else ~np.isfinite(array)
    if bad.any():
        where = tuple(np.argwhere(bad)[0].tolist())
        raise ValueError(f"`{name}` must be finite, got {array[where]} at index {where}.")
    array = array[:, None] if array.ndim == 1 else array
    if columns is not None and array.shape[1] != columns:
        raise ValueError(
            f"`{name}` must have {columns} columns, as the data that the model was built for, got {array.shape[1]}."
        )
    return array


def observed(y: Any, what: str) -> None:
    """An error where a target is missing and `what` needs all of them."""
    if np.isnan(y).any():
        raise ValueError(f"`y` must be observed everywhere for {what}, got NaN.")


def row_weights(weight: Any, num_rows: int) -> np.ndarray:
    """Weights (N,) of rows, ones by default."""
    if weight is None:
        return np.ones(num_rows)
    weights = matrix("weight", weight)
    if weights.shape != (num_rows, 1) or (weights < 0).any() or not weights.any():
        shape = np.shape(weight)
        raise ValueError(f"`weight` must be {num_rows} numbers, none negative and not all zero, got shape {shape}.")
    return weights[:, 0]


def bucket(num: int) -> int:
    """The next of a few sizes, at most a quarter larger: arrays padded to it share compiled functions."""
    step = max(8, 2 ** (max(num - 1, 1).bit_length() - 3))
    return -(-num // step) * step

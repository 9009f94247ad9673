"""Data as they come from users."""

from typing import Any

import numpy as np


def rows(x: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Inputs (N, D) and targets (N, P) that belong together; NaN in `y` means not observed."""
    inputs, targets = matrix("x", x), matrix("y", y, missing=True)
    if inputs.shape[0] != targets.shape[0]:
        raise ValueError(f"`y` must have as many rows as `x` ({inputs.shape[0]}), got {targets.shape[0]}.")
    return inputs, targets


def matrix(name: str, value: Any, missing: bool = False) -> np.ndarray:
    """Rows of data as a float64 matrix (N, columns); NaN passes where `missing` is allowed."""
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
    return array[:, None] if array.ndim == 1 else array

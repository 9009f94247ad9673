"""Targets in the user's units and in those that models are trained in."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from sklearn.utils.validation import check_array

from ..inference._prediction import AbstractPrediction


@dataclass(frozen=True)
class Targets:
    """`y = shift + scale * model's y`, for each of P columns; `flat` where the user's y was 1-D."""

    shift: np.ndarray
    scale: np.ndarray
    flat: bool
    names: tuple[str, ...]

    @classmethod
    def of(cls, y: np.ndarray, weight: np.ndarray, *, names: tuple[str, ...], flat: bool, scaled: bool) -> "Targets":
        """Learn weighted mean and deviation of each column (N, P), NaN left out; counts stay as they are."""
        if not scaled:
            return cls(np.zeros(y.shape[1]), np.ones(y.shape[1]), flat, names)
        seen = ~np.isnan(y)
        shares = seen * weight[:, None]
        shares = shares / shares.sum(axis=0)
        filled = np.where(seen, y, 0.0)
        shift = np.sum(shares * filled, axis=0)
        deviation = np.sqrt(np.sum(shares * np.where(seen, y - shift, 0.0) ** 2, axis=0))
        return cls(shift, unit(shift, deviation), flat, names)

    def encode(self, y: np.ndarray) -> np.ndarray:
        """The user's targets (N, P), as the model sees them."""
        return (y - self.shift) / self.scale

    def values(self, y: Any) -> np.ndarray:
        """The model's values (..., N, P) in the user's units and shape."""
        return self._shape(self.shift + self.scale * np.asarray(y, np.float64))

    def sizes(self, deviation: Any) -> np.ndarray:
        """Deviations (..., N, P) likewise."""
        return self._shape(self.scale * np.asarray(deviation, np.float64))

    def log_density(self, prediction: AbstractPrediction, y: np.ndarray) -> np.ndarray:
        """`log p(y)` (N, P) of the user's targets (N, P), zero where NaN."""
        targets = jnp.asarray(self.encode(y), prediction.parts[0].means.dtype)
        density = np.asarray(prediction.log_density(targets), np.float64)
        return density - np.where(np.isnan(y), 0.0, np.log(self.scale))

    def _shape(self, values: np.ndarray) -> np.ndarray:
        return values[..., 0] if self.flat else values

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        numbers = {"shift": self.shift.tolist(), "scale": self.scale.tolist()}
        return numbers | {"flat": self.flat, "names": list(self.names)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Targets":
        """From `to_json`."""
        shift, scale = (np.asarray(data[name], float) for name in ("shift", "scale"))
        return cls(shift, scale, bool(data["flat"]), tuple(str(name) for name in data["names"]))


def unit(mean: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """What targets (P,) are divided by: their deviation, or one where it is but rounding."""
    return np.where(deviation <= 1e-12 * np.maximum(np.abs(mean), 1e-300), 1.0, deviation)


class Given(NamedTuple):
    """Targets (N, P), and whether they were 1-D."""

    values: np.ndarray
    flat: bool


def as_targets(y: Any, num_rows: int) -> Given:
    """The user's targets, checked; NaN passes in a table of several."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    array = np.asarray(y)
    flat = array.ndim == 1
    if array.dtype.kind in "US" or (array.dtype.kind == "O" and any(isinstance(value, str) for value in array.flat)):
        raise ValueError("`y` must be numbers, got text (for classes there is LatentForceClassifier).")
    if flat and array.dtype.kind == "f" and np.isnan(array).any():
        raise ValueError("Input y contains NaN. Where targets were not observed, give `y` as a table (N, 1).")
    rules: dict[str, Any] = {"dtype": np.float64, "ensure_all_finite": True if flat else "allow-nan"}
    array = check_array(array, ensure_2d=False, input_name="y", **rules)
    array = array[:, None] if flat else array
    if array.ndim != 2 or np.isinf(array).any():
        raise ValueError(f"`y` must be 1-D or 2-D without infinities, got an array of shape {array.shape}.")
    if array.shape[0] != num_rows:
        raise ValueError(f"`y` must have as many rows as `X` ({num_rows}), got {array.shape[0]}: inconsistent.")
    if np.isnan(array).all(axis=0).any():
        raise ValueError("`y` must have a number somewhere in each column, got one of NaN alone.")
    return Given(array, flat)


def target_names(y: Any, count: int) -> tuple[str, ...]:
    """What a Series or data frame calls its columns; else y, or y0, y1, ..."""
    if hasattr(y, "columns"):
        return tuple(str(name) for name in y.columns)
    name = getattr(y, "name", None)
    if count == 1:
        return (str(name) if name not in (None, "") else "y",)
    return tuple(f"y{k}" for k in range(count))

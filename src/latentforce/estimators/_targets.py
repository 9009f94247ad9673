"""Targets in the user's units and in those that models are trained in."""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..inference._prediction import Prediction


@dataclass(frozen=True)
class Targets:
    """`y = shift + scale * model's y`, for each of P columns; `flat` where the user's y was 1-D."""

    shift: np.ndarray
    scale: np.ndarray
    flat: bool

    @classmethod
    def of(cls, y: np.ndarray, weight: np.ndarray, flat: bool, scaled: bool) -> "Targets":
        """Learn weighted mean and deviation of each column (N, P), NaN left out; counts stay as they are."""
        if not scaled:
            return cls(np.zeros(y.shape[1]), np.ones(y.shape[1]), flat)
        seen = ~np.isnan(y)
        shares = seen * weight[:, None]
        shares = shares / shares.sum(axis=0)
        filled = np.where(seen, y, 0.0)
        shift = np.sum(shares * filled, axis=0)
        deviation = np.sqrt(np.sum(shares * np.where(seen, y - shift, 0.0) ** 2, axis=0))
        constant = deviation <= 1e-12 * np.maximum(np.abs(shift), 1e-300)
        return cls(shift, np.where(constant, 1.0, deviation), flat)

    def encode(self, y: np.ndarray) -> np.ndarray:
        """The user's targets (N, P), as the model sees them."""
        return (y - self.shift) / self.scale

    def values(self, y: Any) -> np.ndarray:
        """The model's values (..., N, P) in the user's units and shape."""
        return self._shape(self.shift + self.scale * np.asarray(y, np.float64))

    def sizes(self, deviation: Any) -> np.ndarray:
        """Deviations (..., N, P) likewise."""
        return self._shape(self.scale * np.asarray(deviation, np.float64))

    def log_density(self, prediction: Prediction, y: np.ndarray) -> np.ndarray:
        """`log p(y)` (N, P) of the user's targets (N, P), zero where NaN."""
        density = np.asarray(prediction.log_density(jnp.asarray(self.encode(y), prediction.means.dtype)), np.float64)
        return density - np.where(np.isnan(y), 0.0, np.log(self.scale))

    def _shape(self, values: np.ndarray) -> np.ndarray:
        return values[..., 0] if self.flat else values

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {"shift": self.shift.tolist(), "scale": self.scale.tolist(), "flat": self.flat}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Targets":
        """From `to_json`."""
        return cls(np.asarray(data["shift"], float), np.asarray(data["scale"], float), bool(data["flat"]))

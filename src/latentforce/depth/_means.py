"""Mean functions: what a layer does before it has learned anything."""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from .._parameters import CONSTANT, parameter


class AbstractMean(eqx.Module):
    """A fixed function of the layer's inputs, (N, D) to (N, R)."""

    @abc.abstractmethod
    def __call__(self, x: Float[Array, "N D"]) -> Float[Array, "N R"] | Float[Array, ""]:
        """The mean at the inputs."""


class ZeroMean(AbstractMean):
    """Nothing: the last layer's mean."""

    def __call__(self, x: Float[Array, "N D"]) -> Float[Array, ""]:
        """Zero, of any shape."""
        return jnp.zeros((), x.dtype)


class IdentityMean(AbstractMean):
    """The inputs themselves: a hidden layer as wide as its inputs."""

    def __call__(self, x: Float[Array, "N D"]) -> Float[Array, "N D"]:
        """x."""
        return x


class LinearMean(AbstractMean):
    """`centre + (x - centre) W`, W fixed (paper, appendix `app:experiment-details`: by SVD where widths differ)."""

    weights: Float[Array, "D R"] = parameter(CONSTANT)
    offset: Float[Array, " R"] = parameter(CONSTANT)

    def __call__(self, x: Float[Array, "N D"]) -> Float[Array, "N R"]:
        """The linear map (N, R)."""
        return x @ self.weights + self.offset[None]


def hidden_mean(x: np.ndarray, width: int, weight: np.ndarray, dtype: Any) -> AbstractMean:
    """Identity where the width allows it; else the leading principal directions of the inputs, or the inputs padded.

    The linear map keeps the middle of the inputs where it is; rows count by their weights (N,). A wider layer repeats
    no input: the additional units begin at the middle.
    """
    dim = x.shape[1]
    if width == dim:
        return IdentityMean()
    centre = np.average(x, axis=0, weights=weight)
    if width < dim:
        rows = np.sqrt(weight)[:, None] * (x - centre)
        _, directions = np.linalg.eigh(rows.T @ rows)
        weights = directions[:, ::-1][:, :width]
        weights = weights * np.sign(weights[np.argmax(np.abs(weights), axis=0), np.arange(width)])
    else:
        weights = np.eye(dim, width)
    return LinearMean(jnp.asarray(weights, dtype), jnp.asarray(centre.mean() - centre @ weights, dtype))

"""How a layer reads its inputs: the one-dimensional times, one for each direction, that its processes run in."""

import abc

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from .._parameters import CONSTANT, FREE, parameter


class AbstractInputs(eqx.Module):
    """Inputs (N, D) to K times, (K, N); a layer is additive over them. `Jointly` alone gives (1, N, D)."""

    @property
    @abc.abstractmethod
    def num_inputs(self) -> int:
        """D."""

    @abc.abstractmethod
    def __call__(self, x: Float[Array, "N D"]) -> Float[Array, "K N"] | Float[Array, "K N D"]:
        """The times of each direction."""


class Coordinates(AbstractInputs):
    """Every input dimension is a time of its own (paper, section `sec:DLFM`)."""

    dimension: int = eqx.field(static=True)

    @property
    def num_inputs(self) -> int:
        """D."""
        return self.dimension

    def __call__(self, x: Float[Array, "N D"]) -> Float[Array, "K N"]:
        """The columns (D, N)."""
        return x.T


class Jointly(AbstractInputs):
    """All dimensions at once, for kernels of a vector (inducing points without an ODE)."""

    dimension: int = eqx.field(static=True)

    @property
    def num_inputs(self) -> int:
        """D."""
        return self.dimension

    def __call__(self, x: Float[Array, "N D"]) -> Float[Array, "K N D"]:
        """The inputs as they are (1, N, D)."""
        return x[None]


class Directions(AbstractInputs):
    """K learned directions `t_k = w_k . (x - centre)/halfwidth / |w_k|`: bounded, inside [-1, 1] for inputs in range.

    An additive layer sees no interactions of its inputs; along oblique directions it does, and everything stays
    one-dimensional.
    """

    weights: Float[Array, "K D"] = parameter(FREE)
    centre: Float[Array, " D"] = parameter(CONSTANT)
    halfwidth: Float[Array, " D"] = parameter(CONSTANT)

    @property
    def num_inputs(self) -> int:
        """D."""
        return self.weights.shape[1]

    def __call__(self, x: Float[Array, "N D"]) -> Float[Array, "K N"]:
        """Projections (K, N)."""
        scaled = (x - self.centre[None]) / self.halfwidth[None]
        return normalized(self.weights) @ scaled.T


def normalized(weights: Float[Array, "K D"]) -> Float[Array, "K D"]:
    """Weights over (a little more than) the sum of their sizes.

    Rounded at zero, where many of them begin: there the sign of the plain size would turn on the last digit.
    """
    return weights / jnp.sum(jnp.sqrt(weights**2 + 1e-4), axis=1, keepdims=True)


class Bounded(AbstractInputs):
    """Times bent smoothly into the interval of the features, `c + h tanh((t - c)/h)`: hidden layers cannot leave it."""

    inner: AbstractInputs
    centre: Float[Array, " K"] = parameter(CONSTANT)
    halfwidth: Float[Array, " K"] = parameter(CONSTANT)

    @property
    def num_inputs(self) -> int:
        """D."""
        return self.inner.num_inputs

    def __call__(self, x: Float[Array, "N D"]) -> Float[Array, "K N"]:
        """Bounded times (K, N)."""
        c, h = self.centre[:, None], self.halfwidth[:, None]
        return c + h * jnp.tanh((self.inner(x) - c) / h)

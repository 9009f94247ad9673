"""Forces: the Gaussian processes `u` that drive a system."""

import math

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from .. import _checks
from .._checks import Numbers
from .._parameters import POSITIVE, parameter


class AbstractForce(eqx.Module):
    """A stationary Gaussian process `u` with zero mean.

    A force says how its kernel depends on the distance in length-scales; everything else that can be said of it
    (state space, spectrum) belongs to the concrete class.
    """

    lengthscale: eqx.AbstractVar[Float[Array, ""] | Float[Array, " D"]]
    variance: eqx.AbstractVar[Float[Array, ""]]


class Matern(AbstractForce):
    r"""Matérn force of half-integer order `nu = p + 1/2`, `p = 0, 1, 2, ...`.

    With `lambda = sqrt(2 nu) / lengthscale` it is the stationary solution of
    `(d/dt + lambda)^(p+1) u = w`, `w` white, and its kernel is `e^{-lambda r}` times a polynomial of degree `p`
    (paper, appendix `app:vff`).

    **Arguments:**

    - `nu`: the order, a half-integer: 0.5, 1.5, 2.5, 3.5, ...
    - `lengthscale`: a positive scalar; or a vector `(D,)`, one for each input dimension (with `Identity` only).
    - `variance`: the positive prior variance of `u(t)`.

    !!! example

        >>> import latentforce as lf
        >>> lf.Matern(nu=2.5, lengthscale=0.3).degree
        2
    """

    nu: float = eqx.field(static=True)
    lengthscale: Float[Array, ""] | Float[Array, " D"] = parameter(POSITIVE)
    variance: Float[Array, ""] = parameter(POSITIVE)

    def __init__(self, nu: float = 1.5, lengthscale: Numbers = 1.0, variance: Numbers = 1.0):
        if not _is_half_integer(nu):
            raise ValueError(f"`nu` must be a positive half-integer (0.5, 1.5, 2.5, ...), got {nu!r}.")
        self.nu = float(nu)
        self.lengthscale = _checks.positive("lengthscale", lengthscale, ranks=(0, 1))
        self.variance = _checks.positive("variance", variance)

    @property
    def degree(self) -> int:
        """`p`, the degree of the kernel's polynomial: `nu = p + 1/2`."""
        return round(self.nu - 0.5)

    @property
    def decay(self) -> Float[Array, ""] | Float[Array, " D"]:
        """`lambda = sqrt(2 nu) / lengthscale`."""
        return math.sqrt(2 * self.nu) / self.lengthscale


class SquaredExponential(AbstractForce):
    """Squared-exponential (RBF) force, `variance * exp(-r^2 / (2 lengthscale^2))`.

    It has no finite state space, so it serves random features and inducing points, not the Fourier families.

    **Arguments:** `lengthscale` and `variance`, as for [`latentforce.Matern`][].

    !!! example

        >>> import latentforce as lf
        >>> process = lf.Process(lf.SquaredExponential(lengthscale=0.3, variance=2.0), lf.Identity())
        >>> float(process.variance())
        2.0
    """

    lengthscale: Float[Array, ""] | Float[Array, " D"] = parameter(POSITIVE)
    variance: Float[Array, ""] = parameter(POSITIVE)

    def __init__(self, lengthscale: Numbers = 1.0, variance: Numbers = 1.0):
        self.lengthscale = _checks.positive("lengthscale", lengthscale, ranks=(0, 1))
        self.variance = _checks.positive("variance", variance)


def matern_coefficients(degree: int) -> list[float]:
    """`c_0 .. c_p` of the kernel `e^{-x} sum_k c_k x^k`, `x = lambda r`, of unit variance."""
    p, f = degree, math.factorial
    return [f(p) * f(2 * p - k) * 2**k / (f(2 * p) * f(p - k) * f(k)) for k in range(p + 1)]


def stationary_kernel(force: AbstractForce, distance: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """The force's kernel at a distance measured in length-scales."""
    if isinstance(force, Matern):
        x = math.sqrt(2 * force.nu) * distance
        x = jnp.minimum(x, 4 * -math.log(jnp.finfo(x.dtype).tiny))  # beyond: e^{-x} is zero, powers must not overflow
        polynomial = jnp.zeros_like(x)
        for c in reversed(matern_coefficients(force.degree)):
            polynomial = polynomial * x + c
        return force.variance.astype(x.dtype) * jnp.exp(-x) * polynomial
    return force.variance.astype(distance.dtype) * jnp.exp(-(distance**2) / 2)


def _is_half_integer(nu: object) -> bool:
    return isinstance(nu, int | float) and math.isfinite(nu) and nu > 0 and (nu - 0.5) == int(nu - 0.5)

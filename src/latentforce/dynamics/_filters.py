"""Filters: the linear differential equations that turn a force `u` into an output `f`.

A filter is data: the coefficients of `a0 f + a1 f' + ... + an f^(n) = u`. All the mathematics is in `_system.py`,
written once for every order, so a filter of your own is a module with `coefficients` and `order`.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Complex, Float

from .. import _checks
from .._checks import Numbers
from .._parameters import POSITIVE, STABLE, parameter


class AbstractFilter(eqx.Module):
    """A stable linear ODE with constant coefficients and transfer function `H(s) = 1 / (a0 + a1 s + ... + an s^n)`.

    Stability (all poles left of the imaginary axis) is the contract: the output is the stationary solution
    `f(t) = ∫ G(t - s) u(s) ds` over the whole past (paper, `eq:f(t)`).
    """

    @property
    @abc.abstractmethod
    def order(self) -> int:
        """`n`, known without looking at any number: 0 means that the output is the force itself, scaled."""

    @property
    @abc.abstractmethod
    def coefficients(self) -> Float[Array, " order_plus_1"]:
        """`(a0, ..., an)`, `an` not zero."""

    def response(self, frequency: Numbers) -> Complex[Array, "*shape"]:
        """Frequency response `H(j w)` at angular frequencies of any shape.

        !!! example

            >>> import latentforce as lf
            >>> abs(complex(lf.FirstOrder(alpha=1.0, beta=1.0).response(1.0)))  # doctest: +ELLIPSIS
            0.7071...
        """
        w = jnp.asarray(frequency)
        s = jax.lax.complex(jnp.zeros_like(w), w)
        total = jnp.zeros_like(s)
        for a in self.coefficients[::-1].astype(s.dtype):
            total = total * s + a
        return 1 / total


class Identity(AbstractFilter):
    """No dynamics: the output is the force, `f = u`.

    !!! example

        >>> import latentforce as lf
        >>> lf.Identity().order
        0
    """

    @property
    def order(self) -> int:
        return 0

    @property
    def coefficients(self) -> Float[Array, "1"]:
        return jnp.asarray(1.0)[None]


class FirstOrder(AbstractFilter):
    """`beta f' + alpha f = u` (paper, `eq:ode-ab`), a low-pass filter with cutoff `gamma = alpha / beta`.

    `alpha = 1, beta -> 0+` is `Identity`, and is reached smoothly.

    **Arguments:** `alpha`, `beta`: positive scalars.

    !!! example

        >>> import latentforce as lf
        >>> round(float(lf.FirstOrder(alpha=1.0, beta=0.1).rate), 6)
        10.0
    """

    alpha: Float[Array, ""] = parameter(POSITIVE)
    beta: Float[Array, ""] = parameter(POSITIVE)

    def __init__(self, alpha: Numbers = 1.0, beta: Numbers = 1.0):
        self.alpha = _checks.positive("alpha", alpha)
        self.beta = _checks.positive("beta", beta)

    @property
    def order(self) -> int:
        return 1

    @property
    def coefficients(self) -> Float[Array, "2"]:
        return _stack(self.alpha, self.beta)

    @property
    def rate(self) -> Float[Array, ""]:
        """The decay rate `gamma = alpha / beta`."""
        return self.alpha / self.beta


class SecondOrder(AbstractFilter):
    """A mass on a spring with a damper: `mass f'' + damping f' + stiffness f = u`.

    Under-, over- and critically damped alike; the gradient exists at critical damping too.

    **Arguments:** `mass`, `damping`, `stiffness`: positive scalars.

    !!! example

        >>> import latentforce as lf
        >>> filter = lf.SecondOrder(mass=1.0, damping=0.6, stiffness=9.0)
        >>> round(float(filter.natural_frequency), 6), round(float(filter.damping_ratio), 6)
        (3.0, 0.1)
    """

    mass: Float[Array, ""] = parameter(POSITIVE)
    damping: Float[Array, ""] = parameter(POSITIVE)
    stiffness: Float[Array, ""] = parameter(POSITIVE)

    def __init__(self, mass: Numbers = 1.0, damping: Numbers = 1.0, stiffness: Numbers = 1.0):
        self.mass = _checks.positive("mass", mass)
        self.damping = _checks.positive("damping", damping)
        self.stiffness = _checks.positive("stiffness", stiffness)

    @property
    def order(self) -> int:
        return 2

    @property
    def coefficients(self) -> Float[Array, "3"]:
        return _stack(self.stiffness, self.damping, self.mass)

    @property
    def natural_frequency(self) -> Float[Array, ""]:
        """`sqrt(stiffness / mass)`, radians per unit of time."""
        return jnp.sqrt(self.stiffness / self.mass)

    @property
    def damping_ratio(self) -> Float[Array, ""]:
        """`damping / (2 sqrt(stiffness mass))`: below 1 the system rings, at 1 it is critically damped."""
        return self.damping / (2 * jnp.sqrt(self.stiffness * self.mass))


class LinearODE(AbstractFilter):
    """Any stable linear ODE, `a0 f + a1 f' + ... + an f^(n) = u`.

    **Arguments:** `coefficients`: `(a0, a1, ..., an)`; stability is checked (Routh-Hurwitz) where the numbers are
    known.

    !!! example

        >>> import latentforce as lf
        >>> lf.LinearODE([1.0, 3.0, 3.0, 1.0]).order        # (1 + d/dt)^3 f = u: a pole repeated three times
        3
        >>> lf.LinearODE([1.0, -1.0])
        Traceback (most recent call last):
            ...
        ValueError: `coefficients` must describe a stable ODE (every pole left of the imaginary axis), got [1.0, -1.0].
    """

    _coefficients: Float[Array, " order_plus_1"] = parameter(STABLE)

    def __init__(self, coefficients: Numbers):
        self._coefficients = _checks.points("coefficients", coefficients)
        if self.order < 0:
            raise ValueError("`coefficients` must have at least one entry, got none.")
        numbers = _checks.concrete(coefficients)
        if numbers is not None and not _is_stable(numbers):
            raise ValueError(
                "`coefficients` must describe a stable ODE (every pole left of the imaginary axis), "
                f"got {[float(f'{a:.7g}') for a in numbers]}."
            )

    @property
    def order(self) -> int:
        return self._coefficients.shape[0] - 1

    @property
    def coefficients(self) -> Float[Array, " order_plus_1"]:
        return self._coefficients


def _stack(*scalars: Float[Array, ""]) -> Float[Array, " n"]:
    """Scalars in one vector; Python numbers follow the arrays' dtype, as everywhere in JAX."""
    dtype = jnp.result_type(*scalars)
    return jnp.stack([scalar.astype(dtype) for scalar in scalars])


def _is_stable(coefficients: np.ndarray) -> bool:
    """Routh's criterion, strict: a pole on the imaginary axis fails."""
    if coefficients[-1] == 0:
        return False
    c = coefficients[::-1].astype(np.float64) / coefficients[-1]  # from the highest derivative down
    while c.size > 1:
        if not c[1] > 0:
            return False
        ratio, c = c[0] / c[1], c[1:].copy()
        c[1::2] -= ratio * np.append(c[2::2], 0.0)[: c[1::2].size]  # Routh's step lowers the degree by one
    return True

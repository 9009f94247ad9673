r"""A Matérn force through a filter, as one linear system in coordinates where nothing is singular.

Coordinates of the state, in the order used throughout:

- `xi_i = (1 + D/lambda)^i u`, i = 0 .. p: the force. They move by themselves as `xi_i(r) = e^{-x} sum_k x^k/k!
xi_{i+k}(0)`,
  `x = lambda r`. (The force's equation is `(1 + D/lambda)^{p+1} u = white noise`.)
- `x_j = f^(j) / rate^j`, j = 0 .. n-1: the filter, `rate = (a0/an)^(1/n)`. It obeys `x' = F x + g u`.

All quantities are free of dimensions (powers of lambda are divided out), so that float32 neither overflows nor cancels.
"""

import functools
import math
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Complex, Float

from .._linalg import precise
from .._triangular import small_inverse
from ._filters import AbstractFilter
from ._forces import Matern
from ._responses import Motion, motion


class LinearSystem(eqx.Module):
    """Force `(1 + D/lambda)^(p+1) u = white noise`, filter `x' = F x + g u`, and an output to look at.

    The output is `f` or, after `observing_force`, `u`; with a filter of order zero `f` is `u` times a gain.
    The small matrices are computed once, by [`linear_system`][], and kept.
    """

    degree: int = eqx.field(static=True)  # p
    order: int = eqx.field(static=True)  # n
    decay: Float[Array, ""]  # lambda
    scale: Float[Array, ""]  # sigma, the force's standard deviation
    noise_scale: Float[Array, ""]  # sigma sqrt(C_p / lambda): root of the force's spectral density at zero
    polynomial: Float[Array, " n_plus_1"]  # of the filter, in units of its rate and of a0: starts and ends with one
    rate: Float[Array, ""]  # (a0/an)^(1/n)
    static_gain: Float[Array, ""]  # 1/a0
    direct: Float[Array, ""] | None  # the output is direct * u; None: it is the filter's first state
    matrix: Float[Array, "n n"]  # F, a companion matrix in units of the rate
    push: Float[Array, " n"]  # g: the force accelerates the highest derivative
    memory: Float[Array, "p1 n"]  # M_k = ∫ e^{F s} g e^{-x} x^k/k! ds, x = lambda s: what is left of a push in the past
    gramian_root: Float[Array, "n n"]  # G with G G^T = V, F V + V F^T + g g^T = 0: the filter pushed by white noise
    residual_root: Float[Array, "n n"]  # R^{p+1} G, R = lambda (lambda - F)^{-1}
    root: Float[Array, "d d"]  # T with state = T e, e ~ N(0, I), in the stationary state; d = p+1+n

    def observing_force(self) -> "LinearSystem":
        """The same system with the force as its output."""
        return eqx.tree_at(lambda s: s.direct, self, jnp.ones_like(self.decay), is_leaf=lambda x: x is None)

    @property
    def speed(self) -> Float[Array, ""]:
        """No part of the state moves faster than this rate."""
        return self.decay + self.rate * (1 + jnp.sum(jnp.abs(self.polynomial[: self.order])))

    def resolvent(
        self, s: Float[Array, "*shape"] | Complex[Array, "*shape"], v: Float[Array, " n"]
    ) -> Float[Array, "n *shape"] | Complex[Array, "n *shape"]:
        """`(s - F)^{-1} v` for any number of `s`, through the adjugate: a polynomial over a polynomial."""
        s = s / self.rate.astype(s.dtype)
        tilde = self.matrix / self.rate
        columns = [v]  # v, then Horner in F/rate: the coefficients of s^{n-1}, ..., s^0 in adj(s - F/rate) v
        for coefficient in jnp.unstack(self.polynomial)[self.order - 1 : 0 : -1]:
            columns.append(tilde @ columns[-1] + coefficient * v)
        numerator = jnp.zeros((self.order, *s.shape), s.dtype)
        shape = (self.order,) + (1,) * s.ndim
        for column in columns:
            numerator = numerator * s[None] + column.reshape(shape).astype(s.dtype)
        return numerator / (self.rate.astype(s.dtype) * _characteristic(self.polynomial, s))[None]

    def frequency_response(self, z: Float[Array, " K"]) -> tuple[Float[Array, " K"], Float[Array, " K"]]:
        """Amplitude (positive or not) and phase of the output under the force `e^{j z t}`."""
        if self.direct is not None:
            return jnp.broadcast_to(self.direct, z.shape), jnp.zeros_like(z)
        characteristic = _characteristic(self.polynomial, imaginary(z / self.rate))
        return self.static_gain / jnp.abs(characteristic), -jnp.angle(characteristic)

    @property
    def output_memory(self) -> Float[Array, " p1"]:
        """The output's part of `memory`."""
        if self.direct is None:
            return self.memory[:, 0]
        return jnp.zeros(self.degree + 1, self.decay.dtype).at[0].set(self.direct)

    @property
    def residual_push(self) -> Float[Array, " n"]:
        """`R^{p+1} g`: how the filter takes up the noise that the force's present state does not explain."""
        return self.decay * self.memory[self.degree]

    def spectral_amplitude(self, z: Float[Array, " K"]) -> Float[Array, " K"]:
        """Square root of the force's spectral density, `sqrt(S(z))`."""
        return self.noise_scale * jax.lax.rsqrt(1 + (z / self.decay) ** 2) ** (self.degree + 1)

    @property
    def output_root(self) -> Float[Array, " d"]:
        """The output's row of `root`: `output = output_root . e`, so its squared length is the output's variance."""
        return self.root[self.degree + 1] if self.direct is None else self.direct * self.root[0]

    def phasors(self, z: Float[Array, " K"]) -> Complex[Array, "d K"]:
        """The state's steady motion `e^{j z t}` under the noise `e^{j z t}` of unit strength (times `noise_scale`)."""
        fading = 1 / (1 + imaginary(z / self.decay))
        force = jnp.stack([fading ** (self.degree + 1 - i) for i in range(self.degree + 1)])
        return jnp.concatenate([force, force[:1] * self.resolvent(imaginary(z), self.push)])

    # --- motion ------------------------------------------------------------------------------------------------------

    def motion(self, r: Float[Array, " N"]) -> Motion:
        """Everything that moves, a time `r >= 0` later: what the methods below are made from."""
        return motion(self.matrix, self.push, self.decay, self.degree, r)

    def output_after(self, moved: Motion) -> Float[Array, "d N"]:
        """The output that each unit state leads to, `C e^{A r}`."""
        if self.direct is None:
            return jnp.concatenate([moved.forced[:, 0], moved.free[0]])
        force = self.direct * moved.powers
        return jnp.concatenate([force, jnp.zeros((self.order, force.shape[1]), force.dtype)])

    def output_before(self, moved: Motion) -> Float[Array, "d N"]:
        """`Cov[e, output(t - r)]` for the whitened state `e` (see `root`) at time t.

        Given the force's state at t, the past is a force running backwards in time; what that leaves open of the
        filter's state is driven by the backward force's own noise. The factor `R^{p+1}` of `residual_root`, which may
        be nearly singular, cancels: with `e` as it is chosen there, only the well-conditioned `G` is inverted.
        """
        p1, shifts = self.degree + 1, jnp.asarray(force_constants(self.degree).whitened_shifts, self.decay.dtype)
        explained = (shifts @ self.output_root[:p1]).T @ moved.powers
        if self.order == 0:
            return explained
        residual = self.decay * jnp.tensordot(self.output_memory[::-1], moved.forced, axes=1)
        if self.direct is None:
            correlated = self.gramian_root @ self.residual_root[0]
            residual = residual + jnp.sum(moved.free * correlated[None, :, None], axis=1)
        return jnp.concatenate([explained, self.noise_scale * small_inverse(self.gramian_root) @ residual])

    def state_after(self, moved: Motion) -> Float[Array, "d d N"]:
        """The whole transition matrix, `e^{A r}`."""
        p1, size = self.degree + 1, moved.powers.shape[1]
        rows = [jnp.pad(moved.powers[: p1 - i], ((i, self.order), (0, 0))) for i in range(p1)]
        lower = jnp.concatenate([jnp.swapaxes(moved.forced, 0, 1), moved.free], axis=1)
        return jnp.concatenate([jnp.stack(rows), lower.reshape(self.order, p1 + self.order, size)])

    def covariance_with(self, row: Float[Array, " d"], lag: Float[Array, " N"]) -> Float[Array, " N"]:
        """`Cov[output(t + lag), y(t)]`, `lag >= 0`, for `y = row . e` (`e` the whitened state at t)."""
        return (self.root @ row) @ self.output_after(self.motion(lag))


@partial(precise, static_argnames="dtype")
def linear_system(force: Matern, filter: AbstractFilter, dtype: jnp.dtype) -> LinearSystem:
    r"""The system of a scalar-input force and a filter, all numbers in `dtype`.

    About the stationary state: given the force's present state the past is a force running backwards in time, so the
    filter's state is `sum_k M_k (1 - D/lambda)^k u` plus what the backward force's noise adds, `noise_scale R^{p+1}
    G` times a normal vector. Written so, there is no cancellation when the two states are nearly the same (a very
    fast filter).
    """
    p, n = force.degree, filter.order
    a, decay = jnp.unstack(filter.coefficients.astype(dtype)), force.decay.astype(dtype)
    scale = jnp.sqrt(force.variance.astype(dtype))
    noise_scale = scale * jnp.sqrt(2 ** (2 * p + 1) * math.factorial(p) ** 2 / math.factorial(2 * p) / decay)
    rate = (a[0] / a[n]) ** (1 / n) if n else jnp.ones((), dtype)
    polynomial, last = jnp.stack([a[k] / a[0] * rate**k for k in range(n + 1)]), jnp.arange(n) == n - 1
    companion = jnp.where(last[:, None], -polynomial[None, :n], jnp.eye(n, k=1, dtype=dtype))
    push = jnp.where(last, rate / a[0], 0.0)
    discounted = decay / rate * _companion_resolvent(companion, polynomial, decay / rate)
    residual_root = gramian_root = _gramian_root(companion) * jnp.abs(jnp.sqrt(rate) / a[0])
    memory, row = [], push / decay
    for _ in range(p + 1):
        row, residual_root = discounted @ row, discounted @ residual_root
        memory.append(row)
    constants = force_constants(p)
    explained = jnp.stack(memory).T @ jnp.asarray(constants.backward_root, dtype)
    root = jnp.block(
        [
            [scale * jnp.asarray(constants.forward_root, dtype), jnp.zeros((p + 1, n), dtype)],
            [scale * explained, noise_scale * residual_root],
        ]
    )
    return LinearSystem(
        degree=p,
        order=n,
        decay=decay,
        scale=scale,
        noise_scale=noise_scale,
        polynomial=polynomial,
        rate=rate,
        static_gain=1 / a[0],
        direct=1 / a[0] if n == 0 else None,
        matrix=rate * companion,
        push=push,
        memory=jnp.stack(memory),
        gramian_root=gramian_root,
        residual_root=residual_root,
        root=root,
    )


def _companion_resolvent(
    companion: Float[Array, "n n"], polynomial: Float[Array, " n_plus_1"], s: Float[Array, ""]
) -> Float[Array, "n n"]:
    """`(s - F)^{-1}` through the adjugate, which keeps its small entries where rates differ by orders of magnitude."""
    n, dtype = companion.shape[0], companion.dtype
    term = adjugate = eye = jnp.eye(n, dtype=dtype)
    for coefficient in jnp.unstack(polynomial)[n - 1 : 0 : -1]:
        term = companion @ term + coefficient * eye
        adjugate = adjugate * s + term
    return adjugate / _characteristic(polynomial, s)


def _characteristic(polynomial: Float[Array, " n_plus_1"], s: Array) -> Array:
    """The filter's polynomial at s, real or complex, of any shape."""
    total = jnp.zeros_like(s)
    for coefficient in reversed(jnp.unstack(polynomial.astype(s.dtype))):
        total = total * s + coefficient
    return total


def _gramian_root(companion: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """The Cholesky factor of V, where `F V + V F^T + g g^T = 0` and g is the last unit vector."""
    n, dtype = companion.shape[0], companion.dtype
    if n < 2:
        return jnp.full((n, n), math.sqrt(0.5), dtype)
    if n == 2:  # V is diagonal: speed and position do not correlate
        stiffness, damping = jnp.unstack(-companion[1])
        return jnp.diag(jnp.sqrt(0.5 / damping * jnp.stack([1 / stiffness, jnp.ones_like(stiffness)])))
    eye, impulse = jnp.eye(n, dtype=dtype), jnp.zeros(n * n, dtype).at[-1].set(-1.0)
    V = jnp.linalg.solve(jnp.kron(companion, eye) + jnp.kron(eye, companion), impulse).reshape(n, n)
    return jnp.linalg.cholesky((V + V.T) / 2)


def imaginary(z: Float[Array, "*shape"]) -> Complex[Array, "*shape"]:
    """`j z`."""
    return jax.lax.complex(jnp.zeros_like(z), z)


class _ForceConstants(NamedTuple):
    """Pure numbers of a Matérn force of unit variance: they depend on p alone and are exact up to rounding."""

    derivative_root: np.ndarray  # state (D/lambda)^i u = derivative_root @ e
    forward_root: np.ndarray  # state (1 + D/lambda)^i u = forward_root @ e
    backward_root: np.ndarray  # state (1 - D/lambda)^i u = backward_root @ e
    whitened_shifts: np.ndarray  # forward_root^{-1} Shift^k forward_root, k = 0 .. p


@functools.cache
def force_constants(degree: int) -> _ForceConstants:
    """See `_ForceConstants`. The moments of the spectrum are rational, so the factorisation is done in fractions."""
    p = degree
    moments = [Fraction(1)]
    for n in range(1, p + 1):
        moments.append(moments[-1] * Fraction(2 * n - 1, 2 * p - 2 * n + 1))
    covariance = [
        [(-1) ** ((i - j) // 2) * moments[(i + j) // 2] if (i + j) % 2 == 0 else Fraction(0) for j in range(p + 1)]
        for i in range(p + 1)
    ]
    unit, pivots = _ldl(covariance)
    root = np.sqrt([float(pivot) for pivot in pivots])
    derivative = np.array(unit, dtype=object)
    binomial = np.array([[Fraction(math.comb(i, j)) for j in range(p + 1)] for i in range(p + 1)], dtype=object)
    signs = np.array([(-1) ** j for j in range(p + 1)], dtype=object)
    forward = binomial @ derivative
    backward = (binomial * signs) @ derivative
    inverse = _inverse_unit_triangular(forward)
    shifts = [inverse @ np.eye(p + 1, k=k, dtype=int).astype(object) @ forward for k in range(p + 1)]
    return _ForceConstants(
        derivative_root=derivative.astype(float) * root,
        forward_root=forward.astype(float) * root,
        backward_root=backward.astype(float) * root,
        whitened_shifts=np.stack([shift.astype(float) * root / root[:, None] for shift in shifts]),
    )


def _ldl(matrix: list[list[Fraction]]) -> tuple[list[list[Fraction]], list[Fraction]]:
    """Exact `matrix = L diag(d) L^T`, L unit lower triangular."""
    size = len(matrix)
    L = [[Fraction(int(i == j)) for j in range(size)] for i in range(size)]
    d: list[Fraction] = []
    for j in range(size):
        d.append(matrix[j][j] - sum((L[j][k] ** 2 * d[k] for k in range(j)), Fraction(0)))
        for i in range(j + 1, size):
            L[i][j] = (matrix[i][j] - sum((L[i][k] * L[j][k] * d[k] for k in range(j)), Fraction(0))) / d[j]
    return L, d


def _inverse_unit_triangular(L: np.ndarray) -> np.ndarray:
    """Exact inverse of a unit lower-triangular matrix of fractions (of a matrix `I + N`, N nilpotent)."""
    size = L.shape[0]
    identity = np.eye(size, dtype=int).astype(object)
    nilpotent, inverse = identity - L, identity
    for _ in range(size - 1):
        inverse = identity + nilpotent @ inverse
    return inverse

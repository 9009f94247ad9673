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
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Complex, Float

from ._filters import AbstractFilter
from ._forces import Matern
from ._responses import decaying_powers, filter_responses


class LinearSystem(eqx.Module):
    """Force `(1 + D/lambda)^(p+1) u = white noise`, filter `x' = F x + g u`, and an output to look at.

    The output is `f` or, after [`observing_force`][], `u`; with a filter of order zero `f` is `u` times a gain.
    """

    degree: int = eqx.field(static=True)  # p
    order: int = eqx.field(static=True)  # n
    decay: Float[Array, ""]  # lambda
    scale: Float[Array, ""]  # sigma, the force's standard deviation
    polynomial: Float[Array, " n_plus_1"]  # of the filter, in units of its rate and of a0: starts and ends with one
    rate: Float[Array, ""]
    static_gain: Float[Array, ""]  # 1/a0
    direct: Float[Array, ""] | None  # the output is direct * u; None: it is the filter's first state

    @classmethod
    def build(cls, force: Matern, filter: AbstractFilter, dtype: jnp.dtype) -> "LinearSystem":
        """The system of a scalar-input force and a filter, all numbers in `dtype`."""
        n, a = filter.order, filter.coefficients.astype(dtype)
        rate = (a[0] / a[n]) ** (1 / n) if n else jnp.ones((), dtype)
        return cls(
            degree=force.degree,
            order=n,
            decay=force.decay.astype(dtype),
            scale=jnp.sqrt(force.variance.astype(dtype)),
            polynomial=jnp.stack([a[k] / a[0] * rate**k for k in range(n + 1)]),
            rate=rate,
            static_gain=1 / a[0],
            direct=1 / a[0] if n == 0 else None,
        )

    def observing_force(self) -> "LinearSystem":
        """The same system with the force as its output."""
        return eqx.tree_at(lambda s: s.direct, self, jnp.ones_like(self.decay), is_leaf=lambda x: x is None)

    # --- constants of the filter -------------------------------------------------------------------------------------

    @property
    def matrix(self) -> Float[Array, "n n"]:
        """`F`, a companion matrix in units of the filter's rate."""
        n = self.order
        companion = jnp.eye(n, k=1, dtype=self.decay.dtype)
        return self.rate * (companion.at[n - 1].set(-self.polynomial[:n]) if n else companion)

    @property
    def speed(self) -> Float[Array, ""]:
        """No part of the state moves faster than this rate."""
        return self.decay + self.rate * (1 + jnp.sum(jnp.abs(self.polynomial[: self.order])))

    @property
    def push(self) -> Float[Array, " n"]:
        """`g`: the force accelerates the highest derivative."""
        return jnp.zeros(self.order, self.decay.dtype).at[self.order - 1 :].set(self.rate * self.static_gain)

    def resolvent(
        self, s: Float[Array, "*shape"] | Complex[Array, "*shape"], v: Float[Array, " n"]
    ) -> Float[Array, "n *shape"] | Complex[Array, "n *shape"]:
        """`(s - F)^{-1} v` for any number of `s`, through the adjugate: a polynomial over a polynomial."""
        s = s / self.rate.astype(s.dtype)
        tilde = self.matrix / self.rate
        columns = [v]  # v, then Horner in F/rate: the coefficients of s^{n-1}, ..., s^0 in adj(s - F/rate) v
        for k in range(self.order - 1, 0, -1):
            columns.append(tilde @ columns[-1] + self.polynomial[k] * v)
        numerator = jnp.zeros((self.order, *s.shape), s.dtype)
        shape = (self.order,) + (1,) * s.ndim
        for column in columns:
            numerator = numerator * s[None] + column.reshape(shape).astype(s.dtype)
        return numerator / (self.rate.astype(s.dtype) * self._characteristic(s))[None]

    def _characteristic(self, s: Array) -> Array:
        total = jnp.zeros_like(s)
        for k in reversed(range(self.order + 1)):
            total = total * s + self.polynomial[k].astype(s.dtype)
        return total

    def frequency_response(self, z: Float[Array, " K"]) -> tuple[Float[Array, " K"], Float[Array, " K"]]:
        """Amplitude (positive or not) and phase of the output under the force `e^{j z t}`."""
        if self.direct is not None:
            return jnp.broadcast_to(self.direct, z.shape), jnp.zeros_like(z)
        characteristic = self._characteristic(imaginary(z / self.rate))
        return self.static_gain / jnp.abs(characteristic), -jnp.angle(characteristic)

    @property
    def discounted(self) -> Float[Array, "n n"]:
        """`R = lambda (lambda - F)^{-1}`: what the filter keeps of a past that fades as `e^{-lambda s}`."""
        columns = [self.resolvent(self.decay, e) for e in jnp.eye(self.order, dtype=self.decay.dtype)]
        return self.decay * jnp.stack(columns, axis=1) if columns else jnp.zeros((0, 0), self.decay.dtype)

    @property
    def memory(self) -> Float[Array, "p1 n"]:
        """`M_k = ∫ e^{F s} g e^{-x} x^k/k! ds`, `x = lambda s`: the filter's state after a past push of that shape."""
        rows, discounted = [], self.discounted
        row = self.push / self.decay
        for _ in range(self.degree + 1):
            row = discounted @ row
            rows.append(row)
        return jnp.stack(rows)

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

    @property
    def noise_scale(self) -> Float[Array, ""]:
        """Square root of the spectral density of the force at zero, `sigma sqrt(C_p / lambda)`."""
        p = self.degree
        return self.scale * jnp.sqrt(2 ** (2 * p + 1) * math.factorial(p) ** 2 / math.factorial(2 * p) / self.decay)

    def spectral_amplitude(self, z: Float[Array, " K"]) -> Float[Array, " K"]:
        """Square root of the force's spectral density, `sqrt(S(z))`."""
        return self.noise_scale * (1 + (z / self.decay) ** 2) ** (-(self.degree + 1) / 2)

    # --- the stationary state ----------------------------------------------------------------------------------------

    @property
    def residual_root(self) -> Float[Array, "n n"]:
        """`R^{p+1} G`: the filter's state given the force's is `N(., noise_scale^2 R^{p+1} G G^T R^{p+1}^T)`.

        What the force's present state leaves open is the filter's answer to white noise pushing it through `R^{p+1}
        g`. Written so, there is no cancellation when the two states are nearly the same, as for a very fast filter.
        """
        return _power(self.discounted, self.degree + 1) @ self.gramian_root

    @property
    def gramian_root(self) -> Float[Array, "n n"]:
        """`G` with `G G^T = V`, where `F V + V F^T + g g^T = 0`: the filter alone, pushed by white noise."""
        n, strength = self.order, jnp.abs(self.push[-1]) / jnp.sqrt(self.rate)
        if n == 1:
            return (strength / math.sqrt(2))[None, None]
        tilde, eye = self.matrix / self.rate, jnp.eye(n, dtype=self.decay.dtype)
        impulse = jnp.zeros(n * n, self.decay.dtype).at[-1].set(-1.0)
        V = jnp.linalg.solve(jnp.kron(tilde, eye) + jnp.kron(eye, tilde), impulse).reshape(n, n)
        return strength * jnp.linalg.cholesky((V + V.T) / 2)

    @property
    def root(self) -> Float[Array, "d d"]:
        """A root `T` of the stationary covariance: `state = T e`, `e ~ N(0, I)`; d = p+1+n."""
        p1, n, constants = self.degree + 1, self.order, force_constants(self.degree)
        force = self.scale * jnp.asarray(constants.forward_root, self.decay.dtype)
        if n == 0:
            return force
        explained = self.scale * self.memory.T @ jnp.asarray(constants.backward_root, self.decay.dtype)
        residual = self.noise_scale * self.residual_root
        return jnp.block([[force, jnp.zeros((p1, n), self.decay.dtype)], [explained, residual]])

    @property
    def output_root(self) -> Float[Array, " d"]:
        """The output's row of `root`: `output = output_root . e`, so its squared length is the output's variance."""
        root = self.root
        return root[self.degree + 1] if self.direct is None else self.direct * root[0]

    def phasors(self, z: Float[Array, " K"]) -> Complex[Array, "d K"]:
        """The state's steady motion `e^{j z t}` under the noise `e^{j z t}` of unit strength (times `noise_scale`)."""
        fading = 1 / (1 + imaginary(z / self.decay))
        force = jnp.stack([fading ** (self.degree + 1 - i) for i in range(self.degree + 1)])
        return jnp.concatenate([force, force[:1] * self.resolvent(imaginary(z), self.push)])

    # --- motion ------------------------------------------------------------------------------------------------------

    def output_motion(self, r: Float[Array, " N"]) -> Float[Array, "d N"]:
        """The output a time `r >= 0` after each unit state, `C e^{A r}`."""
        if self.direct is not None:
            force = self.direct * decaying_powers(self.decay, self.degree, r)
            return jnp.concatenate([force, jnp.zeros((self.order, r.size), r.dtype)])
        free, forced = filter_responses(self.matrix, self.push, self.decay, self.degree, r)
        return jnp.concatenate([forced[:, 0], free[0]])

    def state_motion(self, r: Float[Array, " N"]) -> Float[Array, "d d N"]:
        """The whole transition matrix `e^{A r}`, `r >= 0`."""
        p1 = self.degree + 1
        powers = decaying_powers(self.decay, self.degree, r)
        free, forced = filter_responses(self.matrix, self.push, self.decay, self.degree, r)
        rows = [
            jnp.concatenate(
                [jnp.zeros((i, r.size), r.dtype), powers[: p1 - i], jnp.zeros((self.order, r.size), r.dtype)]
            )
            for i in range(p1)
        ]
        lower = jnp.concatenate([jnp.swapaxes(forced, 0, 1), free], axis=1)
        return jnp.concatenate([jnp.stack(rows), lower])

    def earlier_output(self, r: Float[Array, " N"]) -> Float[Array, "d N"]:
        """`Cov[e, output(t - r)]` for the whitened state `e` (see `root`) at time t, `r >= 0`.

        Given the force's state at t, the past is a force running backwards in time; what that leaves open of the
        filter's state is driven by the backward force's own noise. The factor `R^{p+1}` of `residual_root`, which may
        be nearly singular, cancels: with `e` as it is chosen there, only the well-conditioned `G` is inverted.
        """
        p, constants = self.degree, force_constants(self.degree)
        powers = decaying_powers(self.decay, p, r)
        forward = jnp.asarray(constants.whitened_shifts, r.dtype)  # (p+1, p+1, p+1)
        explained = jnp.einsum("kij,j,kn->in", forward, self.output_root[: p + 1], powers)
        if self.order == 0:
            return explained
        free, forced = filter_responses(self.matrix, self.push, self.decay, p, r)
        residual = self.decay * jnp.einsum("k,kin->in", self.output_memory[::-1], forced)
        G = self.gramian_root
        if self.direct is None:
            residual = residual + jnp.einsum("ijn,j->in", free, G @ self.residual_root[0])
        whitened = residual / G[0, 0] if self.order == 1 else jnp.linalg.inv(G) @ residual
        return jnp.concatenate([explained, self.noise_scale * whitened])

    def covariance_with(self, row: Float[Array, " d"], lag: Float[Array, " N"]) -> Float[Array, " N"]:
        """`Cov[output(t + lag), y(t)]`, `lag >= 0`, for `y = row . e` (`e` the whitened state at t)."""
        return (self.root @ row) @ self.output_motion(lag)


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


def _power(matrix: Float[Array, "n n"], exponent: int) -> Float[Array, "n n"]:
    return functools.reduce(jnp.matmul, [matrix] * exponent)


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

r"""Means and variances along waves, without the matrix of them.

Where the features of a time are waves, `A_f(t) = Re[sum_k G_fk w^k] + sum_r W_fr b_r(t)` with `w = e^{j theta(t)}` and
few b_r, a mean `A . m` and a square `A^T E A` are trigonometric polynomials in theta, of degree K and 2K, but for the
few b_r: `2 Re[x] Re[y] = Re[x y + x conj(y)]`. Their coefficients are sums along the diagonals of a matrix that knows
nothing of N; so a variance costs O(K) for each time instead of O(K^2).

Where the variance is small it is a difference of large numbers, right to the rounding of the prior's variance: as is
what features leave unexplained, however it is computed.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import Complex, Float, Inexact

from ._phases import Pair, waves

Rows = Inexact[Array, "F c"]


class Expansion(NamedTuple):
    """Features as waves and what is added to them; see the module. `modes` is `G^T`, K numbers for every F."""

    modes: Callable[[Rows], Complex[Array, "K c"]]
    num_modes: int
    high: Float[Array, " N"]  # theta in turns, as a sum
    low: Float[Array, " N"]
    within: Float[Array, " N"]  # 1, or 0 where there are no waves
    weights: Float[Array, "F r"]
    basis: Float[Array, "r N"]
    meeting: slice  # of the basis: what is not zero where the waves are not

    def forms(self, m: Float[Array, " F"], E: Float[Array, "F F"]) -> tuple[Float[Array, " N"], Float[Array, " N"]]:
        """`A . m` and `A^T E A` for symmetric E."""
        weights, basis = self.weights, self.basis
        reduced = E @ weights
        straight = jnp.concatenate([m[:, None], 2 * reduced[:, self.meeting]], axis=1)
        evaluate = self._evaluator(1 + straight.shape[1])
        mean, *linear = evaluate(self.modes(straight).T)
        (square,) = evaluate(self._square(E)[None])
        for row, value in zip(basis[self.meeting], linear, strict=True):
            square = square + row * value
        return mean + (m @ weights) @ basis, square + jnp.sum(basis * ((weights.T @ reduced) @ basis), axis=0)

    def _square(self, E: Float[Array, "F F"]) -> Complex[Array, " L"]:
        """The coefficients of the waves' own part: sums along both kinds of diagonals."""
        rows = self.modes(E).T
        sums = diagonals(self.modes(rows))
        differences = diagonals(jnp.conj(self.modes(jnp.conj(rows)))[::-1])[self.num_modes - 1 :]
        return (sums / 2).at[: self.num_modes].add(differences.at[0].divide(2))

    def _evaluator(self, count: int) -> Callable[[Complex[Array, "p L"]], list[Float[Array, " N"]]]:
        """Real parts of polynomials in w. `w^k = w^(i B) w^j`: both are few, and a matrix product sums over j for every
        i.
        """
        short = few(self.num_modes, count)
        fine = waves(jnp.arange(short), self.high, self.low)
        coarse = waves(short * jnp.arange(-(-(2 * self.num_modes - 1) // short)), self.high, self.low)
        there = self.within[None] * coarse[0], self.within[None] * coarse[1]
        return lambda coefficients: _evaluate(coefficients, fine, there)


def few(num_modes: int, count: int) -> int:
    """B, which balances the factors of the product for about so many polynomials of that degree."""
    return min(math.isqrt(count * num_modes) + 1, num_modes)


def _evaluate(coefficients: Complex[Array, "p L"], fine: Pair, coarse: Pair) -> list[Float[Array, " N"]]:
    """One by one: XLA is slow to sum a gradient over the few of them."""
    (count, length), short = coefficients.shape, fine[0].shape[0]
    steps = -(-length // short)
    padded = jnp.pad(coefficients, [(0, 0), (0, steps * short - length)]).reshape(count, 1, steps, short)
    parts = jnp.concatenate([padded, -1j * padded], axis=1)  # real parts of the sums over j, and imaginary ones
    sums = jnp.concatenate([parts.real, -parts.imag], axis=3) @ jnp.concatenate(fine)
    turning = jnp.stack([coarse[0][:steps], -coarse[1][:steps]])[None]
    return [jnp.sum(each * turning, axis=(0, 1, 2)) for each in jnp.split(sums, count)]


def diagonals(matrix: Complex[Array, "K K"]) -> Complex[Array, " L"]:
    """Sums over `k + l = 0, 1, ..., 2K - 2`: rows padded to twice their length, and read as if they were one shorter
    than that, shift by one each.
    """
    size = matrix.shape[0]
    padded = jnp.pad(matrix, [(0, 0), (0, size)]).reshape(-1)
    return jnp.sum(padded[: size * (2 * size - 1)].reshape(size, 2 * size - 1), axis=0)


def beyond_prior(covariance: Float[Array, "F F"]) -> Float[Array, "F F"]:
    """What a belief about white features adds to their prior covariance, or takes away."""
    return covariance - jnp.eye(covariance.shape[0], dtype=covariance.dtype)


def variance_with(prior: Float[Array, ""], excess: Float[Array, " N"]) -> Float[Array, " N"]:
    """The variance of the process under such a belief; never below the rounding of the difference."""
    return jnp.maximum(prior + excess, jnp.finfo(excess.dtype).eps * prior)

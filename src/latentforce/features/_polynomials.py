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
from typing import NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Complex, Float, Inexact

from .._checks import Numbers
from .._linalg import computed, narrow_product, precise
from ..dynamics._process import Process
from ..dynamics._system import LinearSystem
from ._base import system_and_times
from ._phases import waves

Rows = Inexact[Array, "F c"]


class Expansion(NamedTuple):
    """Features as waves and what is added to them; see the module. `G^T` makes K numbers of every F, in two steps: it
    takes a few directions off, `I - left right^T`, then come `modes`.
    """

    left: Float[Array, "F p1"]
    right: Float[Array, "F p1"]
    modes: Callable[[Rows], Complex[Array, "K c"]]
    num_modes: int
    high: Float[Array, " N"]  # theta in turns, as a sum
    low: Float[Array, " N"]
    within: Float[Array, " N"]  # 1, or 0 where there are no waves
    weights: Float[Array, "F r"]
    basis: Float[Array, "r N"]
    meeting: slice  # of the basis: what is not zero where the waves are not

    def forms(self, m: Float[Array, " F"], E: Float[Array, "F F"]) -> tuple[Float[Array, " N"], Float[Array, " N"]]:
        """`A . m` and `A^T E A` for symmetric E, which is multiplied once, by all that is narrow."""
        few, taken = jnp.concatenate([self.right, self.weights], axis=1), self.right.shape[1]
        many = jnp.concatenate([m[:, None], E @ few], axis=1)
        columns = [1, 1 + taken]  # by m, by `E right`, by `E weights`
        m, turned, reduced = jnp.split(many, columns, axis=1)
        of_right, of_weights = (jnp.split(rows, columns, axis=1) for rows in jnp.split(few.T @ many, [taken]))
        straight = jnp.concatenate([m, 2 * reduced[:, self.meeting]], axis=1)
        if taken:
            along = jnp.concatenate([of_right[0], 2 * of_right[2][:, self.meeting]], axis=1)
            straight = straight - narrow_product(self.left, along)
            half = narrow_product(self.left, (turned - narrow_product(self.left, of_right[1] / 2)).T)
            E = E - half - half.T
        mean, *crossed, square = self._evaluate(self.modes(straight).T, self._square(E))
        for row, value in zip(self.basis[self.meeting], crossed, strict=True):
            square = square + row * value
        moved = jnp.concatenate([of_weights[0], of_weights[2]], axis=1).T @ self.basis
        return mean + moved[0], square + jnp.sum(self.basis * moved[1:], axis=0)

    def _square(self, E: Float[Array, "F F"]) -> Complex[Array, " L"]:
        """The coefficients of the waves' own part, for E less its directions: sums along both kinds of diagonals."""
        rows = self.modes(E).T
        sums = diagonals(self.modes(rows))
        differences = diagonals(jnp.conj(self.modes(jnp.conj(rows)))[::-1])
        kept = computed(*(part(one) for one in (sums, differences) for part in (jnp.real, jnp.imag)))
        sums, differences = jax.lax.complex(*kept[:2]), jax.lax.complex(*kept[2:])[self.num_modes - 1 :]
        return (sums / 2).at[: self.num_modes].add(differences.at[0].divide(2))

    def _evaluate(self, straight: Complex[Array, "p K"], square: Complex[Array, " L"]) -> list[Float[Array, " N"]]:
        """Real parts of polynomials in w, of degree K - 1 and 2 K - 2.

        `w^k = w^(i B) w^j`: both are few, and one matrix product sums over j for every polynomial and i. What is left
        is summed for one after the other: XLA is slow to sum a gradient over a few.
        """
        short = few(self.num_modes, len(straight))
        rows = [_rows(one, short) for one in (*straight, square)]
        steps = len(rows[-1])
        cosine, sine = waves(jnp.concatenate([jnp.arange(short), short * jnp.arange(steps)]), self.high, self.low)
        (fine, coarse), (fine_sine, coarse_sine) = (jnp.split(part, [short]) for part in (cosine, sine))
        coarse, coarse_sine = self.within[None] * coarse, self.within[None] * coarse_sine
        real, imag = (jnp.concatenate([part(one) for one in rows]) for part in (jnp.real, jnp.imag))
        matrix = jnp.concatenate([jnp.concatenate([real, -imag], axis=1), jnp.concatenate([imag, real], axis=1)])
        sums = jnp.split(matrix @ jnp.concatenate([fine, fine_sine]), 2)
        ends = [len(rows[0]) * i for i in range(1, len(rows))]
        return [
            jnp.sum(real * coarse[: len(real)] - imag * coarse_sine[: len(imag)], axis=0)
            for real, imag in zip(*(jnp.split(part, ends) for part in sums), strict=True)
        ]


def few(num_modes: int, count: int) -> int:
    """B, which balances the factors of the product for so many polynomials of that degree and one of twice it."""
    return min(math.isqrt((count + 1) * num_modes) + 1, num_modes)


def _rows(coefficients: Complex[Array, " L"], short: int) -> Complex[Array, "steps short"]:
    """As a matrix, filled up with zeros."""
    return jnp.pad(coefficients, (0, -coefficients.size % short)).reshape(-1, short)


def diagonals(matrix: Complex[Array, "K K"]) -> Complex[Array, " L"]:
    """Sums over `k + l = 0, 1, ..., 2K - 2`: rows padded to twice their length, and read as if they were one shorter
    than that, shift by one each.
    """
    size = matrix.shape[0]
    padded = jnp.pad(matrix, [(0, 0), (0, size)]).reshape(-1)
    return jnp.sum(padded[: size * (2 * size - 1)].reshape(size, 2 * size - 1), axis=0)


@runtime_checkable
class Expandable(Protocol):
    """Features that are waves."""

    interval: tuple[Float[Array, ""], Float[Array, ""]]

    def expansion(self, system: LinearSystem, t: Float[Array, " N"]) -> Expansion:
        """As waves and what is added to them."""
        ...


@precise
def marginals(
    features: Expandable, process: Process, t: Numbers, mean: Float[Array, " F"], covariance: Float[Array, "F F"]
) -> tuple[Float[Array, " N"], Float[Array, " N"]]:
    """Mean and variance of `f(t)` where `e ~ N(mean, covariance)`: the prior, and what the belief adds to it or takes
    away. A variance is never below the rounding of that difference.
    """
    system, t = system_and_times(process, t, features.interval)
    beyond_prior = covariance - jnp.eye(covariance.shape[0], dtype=covariance.dtype)
    means, excess = features.expansion(system, t).forms(mean, beyond_prior)
    prior = process.variance().astype(t.dtype)
    return means, jnp.maximum(prior + excess, jnp.finfo(t.dtype).eps * prior)

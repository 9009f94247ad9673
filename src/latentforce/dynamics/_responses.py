r"""How a filter's state moves: freely, and when a decaying polynomial pushes it.

For a filter `x' = F x + g u` of order n and a decay rate `lambda` this module gives

    transition   E(r) = e^{F r}                                                   (n, n, N)
    forced     X_k(r) = ∫_0^r e^{F (r-s)} g  e^{-lambda s} (lambda s)^k / k!  ds      (p+1, n, N),  k = 0 .. p

Everything else about a process is algebra on these two. Both are entire functions of every parameter, also where a pole
of the filter meets `-lambda` or another pole, and that is how they are computed: no small difference of poles is ever
divided by. Points run along the last axis, so that all the small loops vectorise.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Inexact


class Motion(NamedTuple):
    """Force and filter after a time r, for each of N times."""

    powers: Float[Array, "p1 N"]  # e^{-x} x^k/k!, x = lambda r: the force by itself
    free: Float[Array, "n n N"]  # E(r): the filter by itself
    forced: Float[Array, "p1 n N"]  # X_k(r): what the force does to the filter

    def split(self, size: int) -> "tuple[Motion, Motion]":
        """The first `size` times, and the others."""
        first, others = zip(*(jnp.split(x, [size], axis=-1) for x in self), strict=True)
        return Motion(*first), Motion(*others)


def decaying_powers(decay: Inexact[Array, ""], degree: int, r: Inexact[Array, " N"]) -> Inexact[Array, "p1 N"]:
    """`e^{-x} x^k / k!` with `x = decay * r`, k = 0 .. degree, for `r >= 0` however far."""
    x = decay * r
    far = -2 * math.log(jnp.finfo(x.dtype).tiny)  # e^{-far} is zero; stop there, before x^k overflows
    x = jnp.where(x.real < far, x, far)
    rows = [jnp.exp(-x)]
    for k in range(1, degree + 1):
        rows.append(rows[-1] * x / k)
    return jnp.stack(rows)


def motion(
    matrix: Float[Array, "n n"],
    push: Float[Array, " n"],
    decay: Float[Array, ""],
    degree: int,
    r: Float[Array, " N"],
) -> Motion:
    """How force and filter move over times `r >= 0`, for k = 0 .. degree."""
    order, powers = matrix.shape[0], decaying_powers(decay, degree, r)
    if order == 0:
        return Motion(powers, jnp.zeros((0, 0, r.size), r.dtype), jnp.zeros((degree + 1, 0, r.size), r.dtype))
    if order == 1:
        free, forced = _first_order(-matrix[0, 0], decay, degree, r)
        return Motion(powers, free[None, None], (push[0] / decay) * forced[:, None])
    if order == 2:
        return Motion(powers, *_second_order(matrix, push, decay, degree, r))
    return Motion(powers, *_in_blocks(partial(_doubling, matrix, push, decay, degree), r))


def _first_order(
    rate: Inexact[Array, ""] | Inexact[Array, " N"], decay: Inexact[Array, ""], degree: int, r: Inexact[Array, " N"]
) -> tuple[Inexact[Array, " N"], Inexact[Array, "p1 N"]]:
    r"""`e^{-rate r}` and `(lambda r)^{k+1} e^{-lambda r} phi_{k+1}(w)`, `w = (lambda - rate) r`, k = 0 .. degree.

    `phi_k(w) = sum_n w^n / (n+k)!` are the phi functions of exponential integrators. Small |w|: series for the highest,
    then down, `phi_{k-1} = w phi_k + 1/(k-1)!`. Large |w|: up, `phi_{k+1} = (phi_k - 1/k!) / w`, with `e^{-lambda r}`
    multiplied in from the start so that nothing overflows when `lambda >> rate`. All may be complex: a ringing pole.
    """
    free = jnp.exp(-rate * r)
    powers = jnp.unstack(decaying_powers(decay, degree + 1, r))
    w = (decay - rate) * r
    switch = 2.0 + degree / 2  # where the upward recurrence has lost less than a digit or two
    small = jnp.abs(w) < switch

    w_small = jnp.where(small, w, 0.0)
    phi = _phi_series(degree + 1, w_small, switch)
    below = [_factorial(degree + 1) * powers[degree + 1] * phi]
    for k in range(degree, 0, -1):
        phi = w_small * phi + 1 / _factorial(k)
        below.append(_factorial(k) * powers[k] * phi)

    x_over_w = jnp.where(small, 1.0, decay * r) / jnp.where(small, 1.0, w)
    above, chi = [], free
    for k in range(degree + 1):
        chi = (chi - powers[k]) * x_over_w
        above.append(chi)
    return free, jnp.stack([jnp.where(small, b, a) for b, a in zip(reversed(below), above, strict=True)])


def _phi_series(k: int, w: Inexact[Array, " N"], radius: float) -> Inexact[Array, " N"]:
    """`phi_k(w)` by its Taylor series, to rounding for `|w| < radius`."""
    total = jnp.zeros_like(w)
    for n in reversed(range(_num_terms(k, radius, w.dtype))):
        total = total * w + 1 / _factorial(n + k)
    return total


def _num_terms(k: int, radius: float, dtype: jnp.dtype) -> int:
    """How many terms `radius^n / (n + k)!` of the series above count."""
    terms, size = 1, 1.0
    while size > jnp.finfo(dtype).eps / 8:
        size *= radius / (terms + k)
        terms += 1
    return terms


def _second_order(
    matrix: Float[Array, "2 2"], push: Float[Array, " 2"], decay: Float[Array, ""], degree: int, r: Float[Array, " N"]
) -> tuple[Float[Array, "2 2 N"], Float[Array, "p1 2 N"]]:
    r"""Two poles `eta +- sqrt(gap)`, real or complex. With `Y(mu)` the first-order answer of a pole mu, all comes from

        D = (Y(mu+) - Y(mu-)) / (mu+ - mu-)      and      T = (mu+ Y(mu+) - mu- Y(mu-)) / (mu+ - mu-)

    which are entire functions of `eta` and `gap`: far from critical damping computed as they stand, near it, where
    `|gap| r^2` is small, by their Taylor series in `gap`, whose coefficients are derivatives of `Y` at `eta`.
    """
    eta, natural = matrix[1, 1] / 2, matrix[0, 1]
    gap = (eta - natural) * (eta + natural)
    near = jnp.abs(gap) * r * r < 0.01
    pairs = zip(
        _poles_apart(eta, natural, gap, decay, degree, r), _poles_together(eta, gap, decay, degree, r), strict=True
    )
    D, T = (jnp.where(near[None], together, apart) for apart, together in pairs)
    free = [[T[0] - 2 * eta * D[0], natural * D[0]], [-natural * D[0], T[0]]]
    forced = jnp.stack([natural * D[1:], T[1:]], axis=1) * (push[1] / decay)
    return jnp.stack([jnp.stack(row) for row in free]), forced


def _poles_apart(
    eta: Float[Array, ""],
    natural: Float[Array, ""],
    gap: Float[Array, ""],
    decay: Float[Array, ""],
    degree: int,
    r: Float[Array, " N"],
) -> tuple[Float[Array, "p2 N"], Float[Array, "p2 N"]]:
    """D and T of `_second_order` (free motion, then the forced ones) from two distinct poles."""
    spread = jnp.sqrt(jnp.where(gap == 0, 1.0, jnp.abs(gap)))
    ringing, zero = gap < 0, jnp.zeros_like(gap)
    fast = jnp.where(ringing, eta, eta - spread)
    slow = jnp.where(ringing, eta, natural * natural / fast)  # not eta + spread, which cancels
    turning = jnp.where(ringing, spread, zero)
    poles = [jax.lax.complex(slow, turning), jax.lax.complex(fast, -turning)]
    pole = jnp.concatenate([jnp.broadcast_to(pole, r.shape) for pole in poles])
    free, forced = _first_order(-pole, decay.astype(pole.dtype), degree, jnp.tile(r, 2).astype(pole.dtype))
    answers = jnp.concatenate([free[None], forced])
    turned = pole[None] * answers
    width = poles[0] - poles[1]
    D = (answers[:, : r.size] - answers[:, r.size :]) / width
    T = (turned[:, : r.size] - turned[:, r.size :]) / width
    return D.real, T.real


def _poles_together(
    eta: Float[Array, ""], gap: Float[Array, ""], decay: Float[Array, ""], degree: int, r: Float[Array, " N"]
) -> tuple[Float[Array, "p2 N"], Float[Array, "p2 N"]]:
    """The same by Taylor series in `gap`, for `|gap| r^2 < 0.01`."""
    x = gap * r * r
    x_powers = _powers(jnp.where(jnp.abs(x) < 0.01, x, 0.0), 5)[None]
    table = _repeated_phi(eta, decay, degree, 10, r)  # the pole taken 1, 2, ..., 10 times
    D = r[None] * jnp.sum(table[:, 1::2] * x_powers, axis=1)
    return D, jnp.sum(table[:, 0::2] * x_powers, axis=1) + eta * D


def _repeated_phi(
    eta: Float[Array, ""], decay: Float[Array, ""], degree: int, repeats: int, r: Float[Array, " N"]
) -> Float[Array, "p2 repeats N"]:
    r"""`(lambda r)^k e^{-lambda r} D(k, m)`, k = 0 .. degree + 1, m = 1 .. repeats, at `w = (lambda + eta) r`.

    `D(k, m)` is the divided difference of exp over k zeros and m times w: `D(k, 1) = phi_k(w)`, and D(k, m) its
    derivative of order m - 1, over (m - 1)!. They obey `w D(k, m) = D(k-1, m) - D(k, m-1)`, used as in
    `_first_order`: small |w| from the series of the highest k downwards, large |w| upwards with the decay multiplied
    in.
    """
    top, powers = degree + 1, decaying_powers(decay, degree + 1, r)
    w = (decay + eta) * r
    switch = 2.0 + degree / 2
    small = jnp.abs(w) < switch
    w_small, w_large = jnp.where(small, w, 0.0), jnp.where(small, 1.0, w)
    x_over_w = jnp.where(small, 1.0, decay * r) / w_large

    terms = _num_terms(top, switch, r.dtype)
    weights = [
        [math.comb(n + m - 1, m - 1) / _factorial(n + m - 1 + top) for n in range(terms)] for m in range(1, repeats + 1)
    ]
    below = [jnp.asarray(weights, r.dtype) @ _powers(w_small, terms)]
    for k in range(top - 1, 0, -1):
        before = jnp.concatenate([jnp.full((1, r.size), 1 / _factorial(k), r.dtype), below[-1][:-1]])
        below.append(w_small[None] * below[-1] + before)

    def next_repeat(
        previous: Float[Array, "p1 N"], free: Float[Array, " N"]
    ) -> tuple[Float[Array, "p1 N"], Float[Array, "p2 N"]]:
        column = [free]
        for k in range(top):
            column.append(column[-1] * x_over_w - previous[k] / w_large)
        return jnp.stack(column[1:]), jnp.stack(column)

    zeros_only = jnp.arange(1, top + 1, dtype=r.dtype)[:, None] * powers[1:]
    free = jnp.asarray([1 / _factorial(m) for m in range(repeats)], r.dtype)[:, None] * jnp.exp(eta * r)[None]
    above = jnp.swapaxes(jax.lax.scan(next_repeat, zeros_only, free)[1], 0, 1)
    scale = jnp.asarray([_factorial(k) for k in range(1, top + 1)], r.dtype)[:, None] * powers[1:]
    lower = jnp.concatenate([above[:1], scale[:, None] * jnp.stack(below[::-1])])
    return jnp.where(small[None, None], lower, above)


def _powers(x: Float[Array, " N"], count: int) -> Float[Array, "count N"]:
    """`1, x, x^2, ...`, each from the ones half as high."""
    powers = jnp.stack([jnp.ones_like(x), x])
    while powers.shape[0] < count:
        powers = jnp.concatenate([powers, (powers[-1] * x)[None] * powers])
    return powers[:count]


BLOCK = 2**16


def _in_blocks(
    function: Callable[[Float[Array, " B"]], tuple[Array, Array]], r: Float[Array, " N"]
) -> tuple[Float[Array, "n n N"], Float[Array, "p1 n N"]]:
    """`function(r)`, block by block, so that a gradient keeps the doublings of one block, not of all points."""
    if r.size <= BLOCK:
        return function(r)
    blocks = jnp.pad(r, (0, -r.size % BLOCK)).reshape(-1, BLOCK)
    results = jax.lax.map(jax.checkpoint(function), blocks)
    free, forced = (jnp.moveaxis(x, 0, -2).reshape(*x.shape[1:-1], -1)[..., : r.size] for x in results)
    return free, forced


def _doubling(
    matrix: Float[Array, "n n"],
    push: Float[Array, " n"],
    decay: Float[Array, ""],
    degree: int,
    r: Float[Array, " N"],
) -> tuple[Float[Array, "n n N"], Float[Array, "p1 n N"]]:
    """Any order: Taylor series at `h = r / 2^S`, then S doublings of the step.

    `X_i(2h) = e^{Fh} X_i(h) + sum_{k<=i} e^{-lambda h} (lambda h)^{i-k}/(i-k)! X_k(h)` adds up what the first and the
    second half of the push do. The transition is kept as `e^{Fh} - I`, which does not lose its digits when h is small.
    """
    order, dtype = matrix.shape[0], r.dtype
    doublings = 40 if dtype == jnp.float64 else 30
    speed = jnp.max(jnp.sum(jnp.abs(matrix), axis=1)) + decay
    h = r * 2.0**-doublings
    change, forced = _taylor_step(matrix, push, decay, degree, h, speed)

    def double(
        carry: tuple[Float[Array, "n n N"], Float[Array, "p1 n N"], Float[Array, " N"]], _: None
    ) -> tuple[tuple[Float[Array, "n n N"], Float[Array, "p1 n N"], Float[Array, " N"]], None]:
        change, forced, h = carry
        powers = decaying_powers(decay, degree, h)
        first_half = forced + jnp.sum(change[None] * forced[:, None], axis=2)
        second_half = [
            sum((powers[i - k, None] * forced[k] for k in range(i)), powers[0, None] * forced[i])
            for i in range(degree + 1)
        ]
        squared = jnp.sum(change[:, :, None] * change[None], axis=1)
        return (2 * change + squared, first_half + jnp.stack(second_half), 2 * h), None

    (change, forced, _), _ = jax.lax.scan(double, (change, forced, h), None, length=doublings)
    return change + jnp.eye(order, dtype=dtype)[:, :, None], forced


def _taylor_step(
    matrix: Float[Array, "n n"],
    push: Float[Array, " n"],
    decay: Float[Array, ""],
    degree: int,
    h: Float[Array, " N"],
    speed: Float[Array, ""],
) -> tuple[Float[Array, "n n N"], Float[Array, "p1 n N"]]:
    """`e^{Fh} - I` and `X_k(h)` by their Taylor series, for `speed * h` at most about one."""
    order, dtype = matrix.shape[0], h.dtype
    terms = 20 if dtype == jnp.float64 else 12
    y = jnp.minimum(speed * h, 1.0)  # past the reach of the doublings every stable motion has died out
    identity = jnp.eye(order, dtype=dtype)
    _, y_powers = jax.lax.scan(lambda power, _: (power * y, power), jnp.ones_like(y), None, length=terms)

    steps = _matrix_powers(matrix / speed, terms + 1)[1:]  # F, F^2, ... in units of speed
    weights = jnp.asarray([1 / _factorial(j + 1) for j in range(terms)], dtype)
    change = y[None, None] * jnp.tensordot(steps * weights[:, None, None], y_powers, axes=(0, 0))

    pushes = _matrix_powers((matrix + decay * identity) / speed, terms) @ push
    weights = jnp.asarray(
        [[_factorial(k + 1) / _factorial(j + k + 1) for k in range(degree + 1)] for j in range(terms)], dtype
    )
    series = jnp.tensordot(weights[:, :, None] * pushes[:, None, :], y_powers, axes=(0, 0))
    powers = decaying_powers(decay, degree + 1, h)[1:]
    return change, powers[:, None] * series / decay


def _matrix_powers(matrix: Float[Array, "n n"], count: int) -> Float[Array, "count n n"]:
    """`I, M, M^2, ...`."""
    identity = jnp.eye(matrix.shape[0], dtype=matrix.dtype)
    return jax.lax.scan(lambda power, _: (matrix @ power, power), identity, None, length=count)[1]


def _factorial(n: int) -> float:
    return float(math.factorial(n))  # a float: past 20! integers no longer fit

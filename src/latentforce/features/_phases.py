"""Cosines of large arguments that stay right to the last digit of the inputs.

`cos(2 pi k x)` with k in the hundreds loses three digits when the product is rounded first, which float32 cannot
afford. Products and quotients are therefore carried as unevaluated sums `high + low`, and whole turns are taken off
exactly.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, Int

from .._linalg import computed, outer_products

Pair = tuple[Array, Array]


def two_sum(x: Array, y: Array) -> Pair:
    """`x + y` exactly, as rounded sum and remainder (Knuth)."""
    total = x + y
    from_y = total - x
    return total, (x - (total - from_y)) + (y - from_y)


def two_product(x: Array, y: Array) -> Pair:
    """`x * y` exactly, as rounded product and remainder (Dekker)."""
    product = x * y
    (xh, xl), (yh, yl) = _halves(x), _halves(y)
    return product, xl * yl - (((product - xh * yh) - xl * yh) - xh * yl)


def divide(numerator: Pair, denominator: Pair) -> Pair:
    """A quotient of pairs, to about twice the working precision."""
    high = numerator[0] / denominator[0]
    back, back_low = two_product(high, denominator[0])
    rest = ((numerator[0] - back) - back_low) + numerator[1] - high * denominator[1]
    return high, rest / denominator[0]


def position(t: Float[Array, " N"], a: Float[Array, ""], b: Float[Array, ""]) -> Pair:
    """`(t - a) / (b - a)` as a pair; the gradient is that of the plain quotient."""
    pair = divide(two_sum(t, -a), two_sum(b, -a))
    return _with_gradient(pair, (t - a) / (b - a))


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def oscillations(
    first: int,
    size: Float[Array, " K"],
    phase: Float[Array, " K"],
    high: Float[Array, " N"],
    low: Float[Array, " N"],
    within: Float[Array, " N"],
) -> Pair:
    """`size_k cos(2 pi k x + phase_k)` and the same with sines, (K, N) each, k from `first`, `x = high + low` turns.

    They are each other's derivatives, so their gradients need no other matrices. `within` is one, or zero where there
    shall be none; k stays below 4096. Multiplying is faster than taking cosines: each wave is a product of two out of
    few, `w^k = w^(first + i B) w^j`, with B about the root of K.
    """
    num = size.size
    short = math.isqrt(num - 1) + 1
    few = waves(jnp.concatenate([jnp.arange(short), first + short * jnp.arange(-(-num // short))]), high, low)
    fine, coarse = ((few[0][part], few[1][part]) for part in (slice(short), slice(short, None)))
    coarse = within[None] * coarse[0], within[None] * coarse[1]
    real, imag = phasors(size, phase)
    products = _times((coarse[0][:, None], coarse[1][:, None]), (fine[0][None], fine[1][None]))
    cosine, sine = (part.reshape(-1, high.size)[:num] for part in products)
    return _times((real[:, None], imag[:, None]), (cosine, sine))


def phasors(size: Float[Array, " K"], phase: Float[Array, " K"]) -> Pair:
    """Real and imaginary part of `size e^{j phase}`."""
    real, imag = computed(size * jnp.cos(phase), size * jnp.sin(phase))
    return real, imag


@oscillations.defjvp
def _oscillations_jvp(first: int, primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Pair, Pair]:
    """A wave grows with its size and turns into the other with its phase and its position."""
    cosine, sine = oscillations(first, *primals)
    size, (by_size, by_phase, by_high, by_low, _) = primals[0], tangents
    ones = jnp.ones_like(by_high)[None]
    growth = outer_products((by_size / jnp.where(size == 0, 1.0, size))[:, None], ones)
    turn = _turn(jnp.arange(first, first + size.size), by_high + by_low) + outer_products(by_phase[:, None], ones)
    return (cosine, sine), (growth * cosine - turn * sine, growth * sine + turn * cosine)


def _turn(k: Int[Array, " K"], turns: Float[Array, " N"]) -> Float[Array, "K N"]:
    """How far waves turn where their position moves by so many turns."""
    return outer_products((2 * math.pi * k.astype(turns.dtype))[:, None], turns[None])


@jax.custom_jvp
def waves(k: Int[Array, " K"], high: Float[Array, " N"], low: Float[Array, " N"]) -> Pair:
    """Cosine and sine of `k x` turns, (K, N) each, `x = high + low`; k stays below 4096."""
    harmonic = k.astype(high.dtype)[:, None]
    coarse, fine = _halves(high)
    whole = harmonic * coarse[None]  # exact: both factors are short
    cosine, sine = computed(*_on_circle((whole - jnp.round(whole)) + harmonic * (fine + low)[None]))
    return cosine, sine


@waves.defjvp
def _waves_jvp(primals: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Pair, Pair]:
    _, by_high, by_low = tangents
    cosine, sine = waves(*primals)
    (turns,) = computed(by_high + by_low)  # gradients too: where they end up in a narrow matrix, XLA is slow to sum
    turn = _turn(primals[0], turns)
    return (cosine, sine), (-turn * sine, turn * cosine)


def _on_circle(turns: Float[Array, "*shape"]) -> Pair:
    """Cosine and sine of so many turns, few of them: within an eighth of a turn their series converge in a few terms,
    which a processor takes for many numbers at once, while it calls its library's functions one by one.
    """
    quarters = jnp.round(4 * turns)
    angle = 2 * math.pi * (turns - quarters / 4)
    square, cosine, sine = angle * angle, jnp.zeros_like(angle), jnp.zeros_like(angle)
    for k in reversed(range(9 if turns.dtype == jnp.float64 else 5)):
        cosine = cosine * square + (-1) ** k / math.factorial(2 * k)
        sine = sine * square + (-1) ** k / math.factorial(2 * k + 1)
    sine = sine * angle
    quadrant = quarters.astype(int) % 4
    swapped, turned = quadrant % 2 == 1, quadrant >= 2
    cosine, sine = jnp.where(swapped, -sine, cosine), jnp.where(swapped, cosine, sine)
    return jnp.where(turned, -cosine, cosine), jnp.where(turned, -sine, sine)


def _times(one: Pair, other: Pair) -> Pair:
    """The product of complex numbers."""
    return one[0] * other[0] - one[1] * other[1], one[0] * other[1] + one[1] * other[0]


def turns_of_product(frequency: Pair, t: Float[Array, " N"]) -> Float[Array, "F N"]:
    """`frequency * t` less its whole turns, for any frequencies (F,) given as a pair."""
    product, low = two_product(frequency[0][:, None], t[None, :])
    pair = (product - jnp.round(product), low + frequency[1][:, None] * t[None])
    plain = frequency[0][:, None] * t[None]
    high, low = _with_gradient(pair, plain)
    return high + low


def _with_gradient(pair: Pair, plain: Array) -> Pair:
    """The value of `pair`, the gradient of `plain`."""
    high, low = jax.lax.stop_gradient(pair)
    return high, low + (plain - jax.lax.stop_gradient(plain))


def _halves(x: Array) -> Pair:
    """x as a sum of two numbers with half as many digits each."""
    info = jnp.finfo(x.dtype)
    high = jax.lax.reduce_precision(x, exponent_bits=info.nexp, mantissa_bits=info.nmant // 2)
    return high, x - high

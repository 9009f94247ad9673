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
from jaxtyping import Float

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
def waves(num: int, high: Float[Array, " N"], low: Float[Array, " N"]) -> Pair:
    """`cos(2 pi k x)` and `sin(2 pi k x)`, (num, N) each, for k = 0 .. num-1 below 4096 and `x = high + low` turns.

    One pair of matrices from which features are linear combinations, so that neither they nor their gradients need
    another cosine. A processor multiplies faster than it takes cosines of 64 bits: there the k-th wave is a power of
    the first. The powers lose k units in the last place, which 32 bits cannot afford.
    """
    if high.dtype == jnp.float64:
        return jax.lax.platform_dependent(high, low, cpu=partial(_powers, num), default=partial(_directly, num))
    return _directly(num, high, low)


@waves.defjvp
def _waves_jvp(num: int, primals: Pair, tangents: Pair) -> tuple[Pair, Pair]:
    """Waves turn into each other; the position moves by the sum of its two parts."""
    cosine, sine = waves(num, *primals)
    speed = 2 * math.pi * jnp.arange(num, dtype=cosine.dtype)[:, None] * (tangents[0] + tangents[1])[None]
    return (cosine, sine), (-speed * sine, speed * cosine)


def _directly(num: int, high: Float[Array, " N"], low: Float[Array, " N"]) -> Pair:
    coarse, fine = _halves(high)
    harmonic = jnp.arange(num, dtype=high.dtype)[:, None]
    whole = harmonic * coarse[None]  # exact: both factors are short
    angle = 2 * math.pi * ((whole - jnp.round(whole)) + harmonic * (fine + low)[None])
    return jnp.cos(angle), jnp.sin(angle)


def _powers(num: int, high: Float[Array, " N"], low: Float[Array, " N"]) -> Pair:
    """`w^k` for k = 0 .. num-1, one after the other: a row of the matrices each."""
    angle = 2 * math.pi * ((high - jnp.round(high)) + low)
    step = jnp.cos(angle), jnp.sin(angle)

    def turn(wave: Pair, _: None) -> tuple[Pair, Pair]:
        return (wave[0] * step[0] - wave[1] * step[1], wave[0] * step[1] + wave[1] * step[0]), wave

    return jax.lax.scan(turn, (jnp.ones_like(angle), jnp.zeros_like(angle)), None, length=num)[1]


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

"""Cosines of large arguments that stay right to the last digit of the inputs.

`cos(2 pi k x)` with k in the hundreds loses three digits when the product is rounded first, which float32 cannot
afford. Products and quotients are therefore carried as unevaluated sums `high + low`, and whole turns are taken off
exactly.
"""

import math

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


def cosines(
    amplitude: Float[Array, " F"], harmonic: Float[Array, " F"], phase: Float[Array, " F"], turns: Pair
) -> Float[Array, "N F"]:
    """`amplitude * cos(2 pi harmonic turns + phase)` for whole-number harmonics below 4096."""
    coarse, fine = _halves(turns[0])
    fine = (turns[0] - jax.lax.stop_gradient(coarse)) + turns[1]  # the gradient runs through this small part
    whole = jax.lax.stop_gradient(coarse)[:, None] * harmonic[None]  # exact: both factors are short
    turned = (whole - jnp.round(whole)) + fine[:, None] * harmonic[None]
    return amplitude[None] * jnp.cos(2 * math.pi * turned + phase[None])


def turns_of_product(frequency: Pair, t: Float[Array, " N"]) -> Float[Array, "N F"]:
    """`frequency * t` less its whole turns, for any frequencies (F,) given as a pair."""
    product, low = two_product(t[:, None], frequency[0][None, :])
    pair = (product - jnp.round(product), low + t[:, None] * frequency[1][None])
    plain = t[:, None] * frequency[0][None]
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

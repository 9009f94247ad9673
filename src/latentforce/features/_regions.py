"""The three regions of time around an interval `[a, b]`: before, within, beyond."""

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float


class Regions(eqx.Module):
    """Masks (0 or 1) for times `t`, and distances held at zero outside their region.

    The masks multiply narrow matrices only; holding the distances at zero keeps every gradient finite.
    """

    before: Float[Array, " N"]  # t < a
    within: Float[Array, " N"]  # a <= t <= b
    beyond: Float[Array, " N"]  # t > b
    since_start: Float[Array, " N"]  # t >= a
    distances: Float[Array, " 2N"]  # |t - a|, then t - b (zero unless beyond)
    inside: Float[Array, " N"]  # t, held at the ends

    def __init__(self, t: Float[Array, " N"], a: Float[Array, ""], b: Float[Array, ""]):
        before, beyond = t < a, t > b
        self.before = before.astype(t.dtype)
        self.beyond = beyond.astype(t.dtype)
        self.since_start = 1 - self.before
        self.within = self.since_start - self.beyond
        self.distances = jnp.concatenate([jnp.where(before, a - t, t - a), jnp.where(beyond, t - b, 0.0)])
        self.inside = jnp.where(before, a, jnp.where(beyond, b, t))

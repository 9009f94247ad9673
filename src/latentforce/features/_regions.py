"""The three regions of time around an interval `[a, b]`: before, within, beyond."""

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float


class Regions(eqx.Module):
    """Masks (0 or 1) and distances for times `t`, each distance held at zero outside its region.

    The masks multiply narrow matrices only; holding the distances at zero keeps every gradient finite.
    """

    before: Float[Array, " N"]  # t < a
    within: Float[Array, " N"]  # a <= t <= b
    beyond: Float[Array, " N"]  # t > b
    since_start: Float[Array, " N"]  # t >= a
    distance_before: Float[Array, " N"]  # a - t
    time_since_start: Float[Array, " N"]  # t - a
    time_beyond: Float[Array, " N"]  # t - b
    inside: Float[Array, " N"]  # t, held at the ends

    def __init__(self, t: Float[Array, " N"], a: Float[Array, ""], b: Float[Array, ""]):
        before, beyond = t < a, t > b
        self.before = before.astype(t.dtype)
        self.beyond = beyond.astype(t.dtype)
        self.since_start = 1 - self.before
        self.within = self.since_start - self.beyond
        self.distance_before = jnp.where(before, a - t, 0.0)
        self.time_since_start = jnp.where(before, 0.0, t - a)
        self.time_beyond = jnp.where(beyond, t - b, 0.0)
        self.inside = jnp.where(before, a, jnp.where(beyond, b, t))

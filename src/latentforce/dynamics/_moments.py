"""Second moments of a linear system at pairs of times."""

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from .._linalg import precise
from ._system import LinearSystem


@precise
def output_covariance(system: LinearSystem, t1: Float[Array, " N1"], t2: Float[Array, " N2"]) -> Float[Array, "N1 N2"]:
    """`Cov[f(t1), f(t2)]`."""
    lag = jnp.abs(t1[:, None] - t2[None, :])
    return system.covariance_with(system.output_root, lag.ravel()).reshape(lag.shape)


@precise
def cross_covariance(system: LinearSystem, t1: Float[Array, " N1"], t2: Float[Array, " N2"]) -> Float[Array, "N1 N2"]:
    """`Cov[f(t1), u(t2)]`; many times against few go by way of the few."""
    return _pair_by_pair(system, t1, t2) if t1.size < 4 * t2.size else _by_way_of_knots(system, t1, t2)


def _pair_by_pair(system: LinearSystem, t1: Float[Array, " N1"], t2: Float[Array, " N2"]) -> Float[Array, "N1 N2"]:
    """Forwards from the force where f is later, from the output where it is earlier."""
    lag, force = (t1[:, None] - t2[None, :]).ravel(), system.observing_force()
    later = lag > 0
    after = system.covariance_with(force.output_root, jnp.where(later, lag, 0.0))
    before = force.covariance_with(system.output_root, jnp.where(later, 0.0, -lag))
    return jnp.where(later, after, before).reshape(t1.size, t2.size)


def _by_way_of_knots(system: LinearSystem, t1: Float[Array, " N1"], t2: Float[Array, " N2"]) -> Float[Array, "N1 N2"]:
    """Motions compose: from a knot t2 to the last knot before t1 and on from there, or back from the next one.

    So exponentials are needed for N1 + N2^2 time differences, not for N1 N2; the rest are products of length d.
    """
    order = jnp.argsort(t2)
    knots, size = t2[order], t2.size
    passed = jnp.searchsorted(knots, t1, side="right")
    last, following = jnp.maximum(passed - 1, 0), jnp.minimum(passed, size - 1)
    since = jnp.where(passed > 0, t1 - knots[last], 0.0)
    until = jnp.where(passed < size, knots[following] - t1, 0.0)
    moved = system.motion(jnp.concatenate([since, until, jnp.abs(knots[:, None] - knots[None, :]).ravel()]))
    since_last, rest = moved.split(t1.size)
    until_next, between = rest.split(t1.size)

    force = system.observing_force()
    at_last = jnp.tensordot(system.root @ force.output_root, system.state_after(between), axes=(0, 1))
    at_next = jnp.tensordot(system.root @ system.output_root, system.state_after(until_next), axes=(0, 1))
    shape = (-1, size, size)
    after = _products(system.output_after(since_last), at_last.reshape(shape), last)
    before = _products(at_next[: system.degree + 1], between.powers.reshape(shape), following)
    values = jnp.where(jnp.arange(size, dtype=passed.dtype)[None, :] < passed[:, None], after, before)
    return values[:, jnp.argsort(order)]


def _products(rows: Float[Array, "d N1"], tables: Float[Array, "d N2 N2"], index: Array) -> Float[Array, "N1 N2"]:
    """`sum_d rows[d, n] tables[d, index[n], j]`."""
    total = rows[0][:, None] * tables[0][index]
    for row, table in zip(rows[1:], tables[1:], strict=True):
        total = total + row[:, None] * table[index]
    return total

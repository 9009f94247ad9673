"""Cross-covariances of many times with few go by way of the few: the same numbers and gradients as pair by pair."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cases
from latentforce._linalg import precise
from latentforce.dynamics import _moments

pair_by_pair = precise(_moments._pair_by_pair)


@pytest.mark.parametrize("name", ["first-order 1+0", "first-order 1e+06", "under-damped", "stiff", "repeated pole"])
def test_by_way_of_knots(name, dtype):
    process = cases.process(2.5, name)
    few = jnp.asarray([1.5, -1.0, 4.0, 0.25, 0.25, 2.0])  # out of order, one twice
    many = jnp.concatenate([jnp.linspace(-80.0, 80.0, 21), jnp.linspace(-1.5, 4.5, 25), few])
    system = process.system(jnp.dtype(dtype))
    got = np.asarray(_moments.cross_covariance(system, many, few))
    want = np.asarray(pair_by_pair(system, many, few))
    scale = float(jnp.sqrt(process.variance() * process.force.variance))
    assert got.shape == (many.size, few.size)
    np.testing.assert_allclose(got / scale, want / scale, rtol=0, atol=cases.tolerance(dtype) / 10)


def test_gradients_by_way_of_knots(x64):
    process = cases.process(1.5, "under-damped")
    few, many = jnp.asarray([1.5, -1.0, 4.0, 0.25]), jnp.linspace(-3.0, 7.0, 33)

    def total(function, process, t1, t2):
        return jnp.sum(jnp.sin(function(process.system(jnp.dtype("float64")), t1, t2)))

    arguments = (process, many, few)
    got, want = (
        jax.jit(jax.grad(lambda *x, f=function: total(f, *x), argnums=(0, 1, 2)))(*arguments)
        for function in (_moments.cross_covariance, _moments._pair_by_pair)
    )
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)

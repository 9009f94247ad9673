"""The three ways to move a filter agree: phi functions, two poles, and doubling the step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from latentforce.dynamics import _responses

TIMES = np.concatenate([[0.0], np.logspace(-6, 2, 40)])
RATE = 3.0
motion = jax.jit(_responses.motion, static_argnums=3)  # one compilation for each order and dtype
doubling = jax.jit(_responses._doubling, static_argnums=3)


@pytest.mark.parametrize("decay", [0.5, 3.0, 40.0])
@pytest.mark.parametrize("rate", [0.01, 2.9999, 3.0, 500.0])
def test_first_order(rate, decay, dtype):
    matrix, push = jnp.asarray([[-rate]]), jnp.asarray([0.75])
    compare(matrix, push, jnp.asarray(decay, dtype), dtype)


@pytest.mark.parametrize("decay", [0.5, 3.0, 40.0])
@pytest.mark.parametrize("ratio", [0.05, 0.9, 1 - 1e-9, 1.0, 1 + 1e-9, 1.1, 3.0, 300.0])
def test_second_order(ratio, decay, dtype):
    matrix = jnp.asarray([[0.0, RATE], [-RATE, -2 * ratio * RATE]])
    compare(matrix, jnp.asarray([0.0, 0.75]), jnp.asarray(decay, dtype), dtype)


def compare(matrix, push, decay, dtype):
    r, degree = jnp.asarray(TIMES), 3
    got = motion(matrix, push, decay, degree, r)
    free, forced = doubling(matrix, push, decay, degree, r)
    tolerance = {"float64": 1e-11, "float32": 1e-4}[dtype]
    np.testing.assert_allclose(got.free, free, rtol=0, atol=tolerance)
    scale = np.max(np.abs(forced), axis=2, keepdims=True)
    np.testing.assert_allclose(got.forced / scale, forced / scale, rtol=0, atol=tolerance)


def test_blocks(monkeypatch, x64):
    """Points beyond one block give what they give together."""
    matrix = jnp.asarray([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [-4.0, -8.0, -5.0]])
    arguments = (matrix, jnp.asarray([0.0, 0.0, 1.0]), jnp.asarray(2.0), 2, jnp.asarray(TIMES))
    together = _responses.motion(*arguments)
    monkeypatch.setattr(_responses, "BLOCK", 16)
    for one, other in zip(together, _responses.motion(*arguments), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14, atol=1e-300)

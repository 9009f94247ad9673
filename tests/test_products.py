"""Products and waves in the forms that accelerators and large sizes take, against plain algebra."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from latentforce import _linalg
from latentforce.depth import _posteriors
from latentforce.features import _phases

pytestmark = pytest.mark.usefixtures("x64")


def normal(seed: int, *shape: int) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).standard_normal(shape))


@pytest.mark.parametrize("product", [_linalg._summed_products, _linalg.outer_products, _linalg.narrow_product])
def test_narrow_products_are_products(product):
    left, right = normal(0, 7, 3), normal(1, 3, 11)
    np.testing.assert_allclose(product(left, right), left @ right, rtol=1e-14)
    check_grads(jax.jit(product), (left, right), order=2)


@pytest.mark.parametrize(("dtype", "error"), [("float64", 1e-15), ("float32", 5e-7)])
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("num", [1, 50, 801])
def test_waves_are_right_to_the_last_digit(first, num, dtype, error):
    rng = np.random.default_rng(0)
    size, phase = (rng.random(num).astype(dtype) for _ in range(2))
    high, low = (rng.random(9) - 0.3).astype(dtype), (error / 10 * rng.random(9)).astype(dtype)
    within = (rng.random(9) > 0.2).astype(dtype)
    k = np.arange(first, first + num, dtype=np.longdouble)[:, None]
    angle = 2 * np.longdouble("3.14159265358979323846") * k * (high.astype(np.longdouble) + low) + phase[:, None]
    cosine, sine = _phases.oscillations(first, *map(jnp.asarray, (size, phase, high, low, within)))
    assert cosine.dtype == sine.dtype == dtype
    np.testing.assert_allclose(cosine, size[:, None] * within * np.cos(angle), atol=error)
    np.testing.assert_allclose(sine, size[:, None] * within * np.sin(angle), atol=error)


def test_gradients_of_waves():
    rng = np.random.default_rng(1)
    numbers = [jnp.asarray(rng.random(count)) for count in (7, 7, 5, 5)]
    waves = jax.jit(lambda *numbers: _phases.oscillations(1, *numbers, jnp.ones(5)))
    check_grads(waves, numbers, order=2, rtol=1e-4)


@pytest.mark.parametrize(("g", "a"), [(1, 1), (3, 1), (1, 3), (2, 2)])
def test_halves_of_a_triangular_root_are_the_whole(monkeypatch, g, a):
    mean, root, A = normal(0, g, 2, 5), jnp.tril(normal(1, g, 10, 10)), normal(2, a, 2, 5, 6)
    q = _posteriors.FullPosterior(mean, root)

    def total(q: _posteriors.FullPosterior, A: jax.Array) -> jax.Array:
        mean, spread = q.project_and_spread(A)
        return jnp.sum(mean**3) + jnp.sum(spread**2)

    whole = q.project_and_spread(A), jax.grad(total, argnums=(0, 1))(q, A)
    monkeypatch.setattr(_posteriors, "MANY", 1)
    halves = q.project_and_spread(A), jax.grad(total, argnums=(0, 1))(q, A)
    for one, other in zip(jax.tree.leaves(halves), jax.tree.leaves(whole), strict=True):
        trained = jnp.tril(jnp.ones_like(one)) if one.shape == root.shape else 1.0  # nothing above the diagonal
        np.testing.assert_allclose(one * trained, other * trained, rtol=1e-12, atol=1e-12)

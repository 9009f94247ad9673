"""Means and variances along waves as polynomials, against the matrix of features."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import latentforce as lf
from latentforce.depth import _outputs
from latentforce.features import _polynomials
from latentforce.features._polynomials import marginals

FAMILIES = {"driven": lf.DrivenFourier(9, (-0.5, 1.5)), "harmonic": lf.HarmonicFourier(9, (-0.5, 1.5))}
PROCESSES = {
    "identity": lf.Process(lf.Matern(nu=0.5, lengthscale=0.3, variance=2.0), lf.Identity()),
    "first": lf.Process(lf.Matern(nu=1.5, lengthscale=0.3), lf.FirstOrder(3.0, 0.1)),
    "second": lf.Process(lf.Matern(nu=2.5, lengthscale=0.2), lf.SecondOrder(1.0, 0.5, 2.0)),
}


def dense(features, process, t, mean, covariance):
    """Mean and variance from the matrix of features."""
    A = features.whitened(process, t)
    return A @ mean, jnp.sum(A * (A @ covariance), axis=1) + features.unexplained(process, A)


def beliefs(num_features: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Times on both sides of the interval, and a belief."""
    rng = np.random.default_rng(0)
    root = np.tril(rng.standard_normal((num_features, num_features))) / num_features**0.5
    times, mean = rng.uniform(-1.0, 2.0, 30), rng.standard_normal(num_features)
    return jnp.asarray(times), jnp.asarray(mean), jnp.asarray(root)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("process", PROCESSES.values(), ids=PROCESSES)
@pytest.mark.parametrize("features", FAMILIES.values(), ids=FAMILIES)
def test_marginals_without_a_matrix(features, process):
    times, mean, root = beliefs(features.num_features(process))

    def both(marginals, process, times, mean, root):
        return marginals(features, process, times, mean, root @ root.T)

    def total(marginals, *arguments):
        return sum(jnp.sum(jnp.sin(3 * part)) for part in both(marginals, *arguments))

    for one, other in zip(*(both(f, process, times, mean, root) for f in (marginals, dense)), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-13)
    gradients = (jax.grad(total, argnums=(1, 2, 3, 4))(f, process, times, mean, root) for f in (marginals, dense))
    for one, other in zip(*map(jax.tree.leaves, gradients), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("features", [lf.DrivenFourier(100, (-0.1, 1.1)), lf.HarmonicFourier(100, (-0.5, 1.5))])
def test_half_the_digits_are_enough(x64, features):
    """In float32 a belief after 500 observations: right to the rounding of the prior, as are sums of squares."""
    process = PROCESSES["first"]
    t = jnp.linspace(0.0, 1.0, 500)
    prior = float(process.variance())
    A = features.whitened(process, t)
    covariance = jnp.linalg.inv(jnp.eye(A.shape[1]) + A.T @ A / (1e-5 * prior))
    mean = covariance @ A.T @ jnp.sin(9 * t) / (1e-5 * prior)
    exact = dense(features, process, t, mean, covariance)
    with jax.enable_x64(False):
        short = jax.tree.map(lambda leaf: jnp.asarray(leaf, "float32"), (features, process, t, mean, covariance))
        features, process, t, mean, covariance = short
        found = marginals(features, process, t, mean, covariance)
    assert all(part.dtype == jnp.float32 for part in found)
    np.testing.assert_allclose(found[0], exact[0], atol=2e-5)
    np.testing.assert_allclose(found[1], exact[1], atol=3e-6 * prior)
    assert np.all(np.asarray(found[1]) > 0)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", ["dlfm-driven", "dlfm-vfrf"])
@pytest.mark.parametrize("options", [{}, {"width": 3}, {"width": 3, "shared_kernels": False}], ids=str)
def test_layers_read_their_posterior_either_way(monkeypatch, name, options):
    x, calls = np.linspace(0.0, 1.0, 25), []
    layer = lf.build(name, x, np.sin(9 * x), num_frequencies=8, **options).layers[0]
    normal = np.random.default_rng(0).standard_normal(layer.posterior.root.shape)
    layer = eqx.tree_at(lambda layer: layer.posterior.root, layer, jnp.tril(normal) / 5)
    forms = _polynomials.Expansion.forms
    monkeypatch.setattr(_polynomials.Expansion, "forms", lambda *all: calls.append(1) or forms(*all))
    monkeypatch.setattr(_outputs, "MANY_WAVES", 1)
    jax.clear_caches()
    found = layer.moments(jnp.asarray(x)[:, None])
    assert calls
    monkeypatch.setattr(_outputs, "MANY_WAVES", 10**9)
    calls.clear()
    for one, other in zip(found, layer.moments(jnp.asarray(x)[:, None]), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-13)
    assert not calls


@pytest.mark.usefixtures("x64")
def test_sums_along_diagonals():
    matrix = np.random.default_rng(0).standard_normal((5, 5)) + 0j
    expected = [np.trace(matrix[:, ::-1], 4 - m) for m in range(9)]
    np.testing.assert_allclose(_polynomials.diagonals(jnp.asarray(matrix)), expected, rtol=1e-13)

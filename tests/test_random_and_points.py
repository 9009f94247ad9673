"""Random features and inducing points: definitions, exactness where it is promised, and every corner of the cube."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
import scipy.stats

import latentforce as lf

FILTERS = [lf.Identity(), lf.FirstOrder(1.25, 0.25), lf.SecondOrder(1.0, 0.75, 9.0), lf.LinearODE([4.0, 8.0, 5.0, 1.0])]
FORCES = [lf.Matern(0.5, 0.75, 0.625), lf.Matern(2.5, 0.75, 0.625), lf.SquaredExponential(0.75, 0.625)]


def cast(tree, dtype):
    return jax.tree.map(lambda x: x.astype(dtype), tree)


@pytest.mark.parametrize("filter", FILTERS, ids=lambda f: type(f).__name__)
@pytest.mark.parametrize("force", FORCES, ids=["rough", "smooth", "squared exponential"])
def test_random_features_follow_the_definition(force, filter, dtype):
    """`sqrt(variance/M) H(jw) e^{jwt}`; in float32 also where heavy tails give frequencies in the thousands."""
    process, features = cast(lf.Process(force, filter), dtype), lf.RandomFourier(200, seed=4)
    t = np.array([-3.0, -0.5, 0.0, 0.25, 7.5])
    w = features.standard_frequencies(process.force) / 0.75
    assert force is not FORCES[0] or np.max(np.abs(w)) > 100
    H = 1 / sum(float(a) * (1j * w) ** k for k, a in enumerate(filter.coefficients))
    for response, got in ((H, features.whitened), (np.ones_like(H), features.force_whitened)):
        waves = np.sqrt(0.625 / 200) * response * np.exp(1j * np.outer(t, w))
        want = np.concatenate([waves.real, waves.imag], axis=1)
        values = got(process, jnp.asarray(t, dtype))
        assert values.dtype == dtype
        scale = np.max(np.abs(want), axis=0)
        assert (
            np.max(np.abs(np.asarray(values, np.float64) - want) / scale) < {"float64": 1e-10, "float32": 2e-4}[dtype]
        )


@pytest.mark.parametrize("filter", FILTERS[:2], ids=lambda f: type(f).__name__)
@pytest.mark.parametrize("force", FORCES, ids=str)
def test_random_features_are_unbiased(force, filter, x64):
    process, t = cast(lf.Process(force, filter), jnp.float64), jnp.linspace(0.0, 2.0, 5)
    A = lf.RandomFourier(200_000, seed=0).whitened(process, t)
    error = A @ A.T - process.covariance(t, t)
    assert float(jnp.max(jnp.abs(error))) < 0.02 * float(process.variance())


def test_frequencies_have_the_right_distribution():
    draws = lf.RandomFourier(20_000, seed=1)
    for force, law in ((FORCES[0], scipy.stats.t(1)), (FORCES[1], scipy.stats.t(5)), (FORCES[2], scipy.stats.norm())):
        assert scipy.stats.kstest(draws.standard_frequencies(force), law.cdf).pvalue > 1e-3


def test_seeds():
    process, t = lf.Process(FORCES[0]), jnp.linspace(0.0, 1.0, 3)
    one, same, other = (lf.RandomFourier(5, seed=s).whitened(process, t) for s in (0, 0, 1))
    assert jnp.array_equal(one, same) and not jnp.allclose(one, other)


@pytest.mark.parametrize("force", FORCES, ids=str)
def test_inducing_points_know_the_force_where_they_stand(force, x64):
    process = cast(lf.Process(force, lf.FirstOrder(1.25, 0.25)), jnp.float64)
    Z = jnp.linspace(0.0, 3.0, 6)
    features = lf.InducingPoints(Z)
    A = features.force_whitened(process, Z)
    np.testing.assert_allclose(A @ A.T, process.force_covariance(Z, Z), atol=1e-10)
    np.testing.assert_allclose(features.covariance(process), process.force_covariance(Z, Z))
    np.testing.assert_allclose(features.cross_covariance(process, Z), process.cross_covariance(Z, Z))


@jax.jit
def of_several_dimensions(process, features, X, Y):
    """Covariances three times over, what features leave, and a gradient."""
    covariances = process.covariance(X, Y), process.cross_covariance(X, Y), process.force_covariance(X, Y)
    A = features.whitened(process, X)
    gradient = jax.grad(lambda x: jnp.sum(process.covariance(x, x)))(X)
    return covariances, process.covariance(X, X) - A @ A.T, gradient


@pytest.mark.parametrize("force", [lf.Matern, lf.SquaredExponential])
def test_several_input_dimensions(force, dtype):
    """Against the kernel written out with scikit-learn's, one length-scale for each dimension."""
    from sklearn.gaussian_process.kernels import RBF
    from sklearn.gaussian_process.kernels import Matern as Reference

    scales = np.array([0.5, 2.0, 1.0])
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(6, 3)).astype(dtype), rng.normal(size=(4, 3)).astype(dtype)
    for nu in (0.5, 1.5, 2.5) if force is lf.Matern else (None,):
        made = force(nu, jnp.asarray(scales, dtype), 0.7) if nu else force(jnp.asarray(scales, dtype), 0.7)
        process = lf.Process(made, lf.Identity())
        reference = Reference(scales, nu=nu) if nu else RBF(scales)
        want = 0.7 * reference(X.astype(float), Y.astype(float))
        features, pair = lf.InducingPoints(Y), (jnp.asarray(X), jnp.asarray(Y))
        covariances, left, gradient = of_several_dimensions(process, features, *pair)
        for got in covariances:
            np.testing.assert_allclose(got, want, atol={"float64": 1e-12, "float32": 1e-5}[dtype])
        assert np.linalg.eigvalsh(left)[0] > {"float64": -1e-10, "float32": -1e-4}[dtype]
        assert np.all(np.isfinite(gradient))


@jax.jit
def of_lags(process, lags):
    """Variance, cross-covariances, and a gradient of all."""
    cross = process.cross_covariance(lags, jnp.zeros_like(lags[:1]))[:, 0]
    gradient = jax.grad(lambda t: jnp.sum(process.covariance(t, t) + process.cross_covariance(t, t)))(lags)
    return process.variance(), cross, gradient


@pytest.mark.parametrize("rate", [1e-3, 0.5, 5.0, 1e4])
def test_squared_exponential_through_a_first_order_filter(rate, dtype):
    """Against quadrature of the definition; scale: the prior deviations."""
    length, variance, alpha = 0.75, 0.625, 1.25
    process = lf.Process(lf.SquaredExponential(length, variance), lf.FirstOrder(alpha, alpha / rate))

    def cross(lag):
        def integrand(x):
            return rate / alpha * np.exp(-rate * x) * variance * np.exp(-((lag - x) ** 2) / (2 * length**2))

        edges = sorted({0.0, *[e for e in (1 / rate, 5 / rate, 40 / rate, lag - 6, lag, lag + 6) if e > 0]})
        return sum(scipy.integrate.quad(integrand, *ends, limit=200)[0] for ends in itertools.pairwise(edges))

    lags = np.array([-3.0, -0.5, 0.0, 0.5, 2.0, 30.0])
    want = np.array([cross(lag) for lag in lags])
    tolerance = {"float64": 1e-9, "float32": 2e-4}[dtype]
    squared, got, gradient = of_lags(process, jnp.asarray(lags, dtype))
    deviation = np.sqrt(float(squared))
    assert np.max(np.abs(got - want)) < tolerance * deviation * np.sqrt(variance)
    # beta k_ff' + alpha k_ff = Cov[u(t + r), f(t)], checked at r = 0, where k_ff' = 0.
    assert abs(float(squared) - cross(0.0) / alpha) < tolerance * deviation**2
    assert np.all(np.isfinite(gradient))

"""Agreement with every table of the paper's appendix."""

import jax.numpy as jnp
import numpy as np
import pytest

import latentforce as lf
import paper_tables

ALPHA, LENGTHSCALE, VARIANCE, (A, B) = 1.3, 0.8, 0.7, (-0.5, 1.5)
TIMES = np.array([-4.0, -0.9, -0.5, -0.1, 0.4, 1.1, 1.5, 1.7, 5.0])
M = 5


def decay(p):
    return np.sqrt(2 * p + 1) / LENGTHSCALE


def make(p, gamma):
    return lf.Process(lf.Matern(p + 0.5, LENGTHSCALE, VARIANCE), lf.FirstOrder(ALPHA, ALPHA / gamma))


def tabulated(p, function):
    z = 2 * np.pi * np.arange(M + 1) / (B - A)
    columns = [[function(p, "cos", t, w) for w in z] + [function(p, "sin", t, w) for w in z[1:]] for t in TIMES]
    return np.array(columns)


@pytest.mark.parametrize("ratio", [0.2, 0.6, 1.7, 5.0, 30.0])
@pytest.mark.parametrize("p", [0, 1, 2])
def test_kernel(p, ratio, x64):
    gamma = ratio * decay(p)
    r = np.linspace(0.0, 6.0, 25)
    want = paper_tables.kernel(p, r, decay(p), VARIANCE, ALPHA / gamma, gamma)
    got = make(p, gamma).covariance(jnp.asarray(r), jnp.zeros(1))[:, 0]
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-10 * want[0])


def test_kernel_at_resonance(x64):
    gamma = decay(0)
    r = np.linspace(0.0, 6.0, 25)
    want = paper_tables.resonant_kernel_12(r, gamma, VARIANCE, ALPHA / gamma)
    got = make(0, gamma).covariance(jnp.asarray(r), jnp.zeros(1))[:, 0]
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-10 * want[0])


@pytest.mark.parametrize("p", [0, 1, 2])
def test_force_features(p, x64):
    process = lf.Process(lf.Matern(p + 0.5, LENGTHSCALE, VARIANCE), lf.Identity())
    want = tabulated(p, lambda p, kind, t, z: paper_tables.force_feature(p, kind, t, z, A, B, decay(p)))
    got = lf.HarmonicFourier(M, (A, B)).cross_covariance(process, jnp.asarray(TIMES))
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-10 * np.max(np.abs(want)))


@pytest.mark.parametrize("ratio", [0.2, 0.6, 1.0, 1.7, 5.0, 30.0])
@pytest.mark.parametrize("p", [0, 1, 2])
def test_response_features(p, ratio, x64):
    """ratio = 1 is the row gamma = lambda of the tables; left of b and inside it is no special case."""
    gamma = ratio * decay(p)
    beta = ALPHA / gamma
    want = tabulated(p, lambda p, kind, t, z: paper_tables.response(p, kind, t, z, A, B, decay(p), beta, gamma))
    got = lf.HarmonicFourier(M, (A, B)).cross_covariance(make(p, gamma), jnp.asarray(TIMES))
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-10 * np.max(np.abs(want)))

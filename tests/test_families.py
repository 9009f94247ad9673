"""What every feature family must satisfy, for every filter and order. A new family joins by one line in FAMILIES."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import cases
import latentforce as lf

INTERVAL = (-1.0, 4.0)
FAMILIES = {
    "points": lf.InducingPoints(np.linspace(-1.0, 4.0, 12)),
    "random": lf.RandomFourier(12, seed=3),
    "harmonic": lf.HarmonicFourier(12, INTERVAL),
    "driven": lf.DrivenFourier(12, INTERVAL),
}
PROJECTIONS = [
    name for name in FAMILIES if name != "random"
]  # random features replace the process, they do not project it
NAMES = [
    "identity",
    "first-order 0.1",
    "first-order 1+0",
    "first-order 1e+06",
    "under-damped",
    "stiff",
    "repeated pole",
]
TIMES = np.concatenate([np.linspace(-4.0, 7.0, 23), INTERVAL])


@pytest.fixture(params=[(nu, name) for nu in cases.ORDERS for name in NAMES], ids=lambda c: f"{c[0]}-{c[1]}")
def process(request, dtype):
    return cases.process(*request.param)


def family(name, dtype):
    """The family with its own arrays (if any) in the dtype at hand."""
    return jax.tree.map(lambda x: x.astype(dtype), FAMILIES[name])


@pytest.mark.parametrize("name", FAMILIES)
def test_shapes(name, process, dtype):
    features, t = family(name, dtype), jnp.asarray(TIMES)
    F = features.num_features(process)
    assert features.covariance(process).shape == (F, F)
    for method in (features.whitened, features.force_whitened, features.cross_covariance):
        values = method(process, t)
        assert values.shape == (t.size, F) and values.dtype == dtype and bool(jnp.all(jnp.isfinite(values)))
    residual = features.residual_variance(process, t)
    assert residual.shape == t.shape and bool(jnp.all(residual >= 0))


@pytest.mark.parametrize("name", PROJECTIONS)
def test_what_is_left_is_positive_semi_definite(name, process, dtype):
    """`[K_ff K_fu; K_uf K_uu] - [A; A_u] [A; A_u]^T`, jointly for output and force."""
    features, t = family(name, dtype), jnp.asarray(TIMES)
    cross = process.cross_covariance(t, t)
    prior = np.block([[process.covariance(t, t), cross], [cross.T, process.force_covariance(t, t)]])
    A = np.concatenate([features.whitened(process, t), features.force_whitened(process, t)])
    scale = np.sqrt(np.diag(prior))
    left = (prior - A @ A.T) / np.outer(scale, scale)
    bound = {"float64": 1e-11, "float32": 2e-4}[dtype]
    assert np.linalg.eigvalsh((left + left.T) / 2)[0] > -bound * len(scale)


@pytest.mark.parametrize("name", FAMILIES)
def test_whitened_is_a_root_of_the_projection(name, process, x64):
    """`A A^T = K_fv K_vv^{-1} K_vf`."""
    process = jax.tree.map(lambda x: x.astype(jnp.float64), process)
    features, t = family(name, jnp.float64), jnp.asarray(TIMES)
    A, cross, K = features.whitened(process, t), features.cross_covariance(process, t), features.covariance(process)
    scale = np.sqrt(np.diag(K))
    cross, K = cross / scale, K / np.outer(scale, scale)
    want = cross @ np.linalg.solve(K, cross.T)
    np.testing.assert_allclose(A @ A.T, want, rtol=0, atol=1e-8 * float(process.variance()))


@pytest.mark.parametrize("name", PROJECTIONS)
def test_more_features_explain_more(name, x64):
    process, t = cases.process(1.5, "first-order 10"), jnp.linspace(-1.0, 4.0, 21)
    sizes = {
        "points": [lf.InducingPoints(jnp.linspace(-1.0, 4.0, n)) for n in (5, 17, 65)],
        "harmonic": [lf.HarmonicFourier(n, (-6.0, 9.0)) for n in (4, 16, 64)],
        "driven": [lf.DrivenFourier(n, (-1.0, 4.0)) for n in (4, 16, 64)],
    }
    left = [float(jnp.mean(f.residual_variance(process, t))) for f in sizes[name]]
    assert left[0] > 2 * left[1] > 4 * left[2]


def test_families_are_pytrees_that_jit_and_vmap(x64):
    t = jnp.linspace(0.0, 3.0, 5)
    for features in FAMILIES.values():
        features = jax.tree.map(lambda x: x.astype(jnp.float64), features)

        def gain(length, features=features):
            return features.whitened(lf.Process(lf.Matern(1.5, length), lf.FirstOrder(1.0, 0.1)), t)

        lengths = jnp.array([0.3, 0.7])
        together = jax.jit(jax.vmap(gain))(lengths)
        for one, length in zip(together, lengths, strict=True):
            np.testing.assert_allclose(one, gain(length), rtol=1e-9, atol=1e-12)

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
TIMES = np.concatenate([np.linspace(-4.0, 7.0, 23), INTERVAL])
PROCESSES = [
    *[(nu, name) for nu in (0.5, 2.5) for name in ("identity", "first-order 1+0", "first-order 1e+06")],
    *[(1.5, name) for name in ("under-damped", "stiff")],
    (3.5, "repeated pole"),
]


SINGLE = [(0.5, "first-order 1+0"), (2.5, "identity"), (1.5, "stiff")]
CONTRACTS = [("float64", *case) for case in PROCESSES] + [("float32", *case) for case in SINGLE]


def family(name, dtype):
    """The family with its own arrays (if any) in the dtype at hand."""
    return jax.tree.map(lambda x: x.astype(dtype), FAMILIES[name])


@jax.jit
def everything(features, process, t):
    """All that is judged below, in one compiled program for each family and each order of force and filter."""
    return {
        "A": features.whitened(process, t),
        "A_u": features.force_whitened(process, t),
        "cross": features.cross_covariance(process, t),
        "K": features.covariance(process),
        "residual": features.residual_variance(process, t),
        "crossed": process.cross_covariance(t, t),
        "covariance": process.covariance(t, t),
        "force_covariance": process.force_covariance(t, t),
    }


@pytest.mark.parametrize("dtype, nu, filter", CONTRACTS, indirect=["dtype"])
@pytest.mark.parametrize("name", FAMILIES)
def test_contract(name, nu, filter, dtype):
    """Shapes and dtypes; `A A^T = K_fv K_vv^{-1} K_vf`; what is left is positive semi-definite, jointly for f and u."""
    process, features, t = cases.process(nu, filter), family(name, dtype), jnp.asarray(TIMES)
    F, got = features.num_features(process), everything(features, process, t)
    assert got["K"].shape == (F, F)
    for values in (got["A"], got["A_u"], got["cross"]):
        assert values.shape == (t.size, F) and values.dtype == dtype and np.all(np.isfinite(values))
    residual = got["residual"]
    assert residual.shape == t.shape and residual.dtype == dtype and np.all(residual >= 0)

    A, A_u, cross, K = (np.asarray(got[key], np.float64) for key in ("A", "A_u", "cross", "K"))
    f, u = np.sqrt(float(process.variance())), np.sqrt(float(process.force.variance))
    scale = np.sqrt(np.diag(K))
    scaled = cross / scale / f
    rounding = {"float64": 1e-9, "float32": 1e-2 if name == "points" else 1e-3}[dtype]  # K_ZZ is ill-conditioned
    np.testing.assert_allclose(
        A @ A.T / f**2, scaled @ np.linalg.solve(K / np.outer(scale, scale), scaled.T), atol=rounding
    )

    if name in PROJECTIONS:
        crossed = got["crossed"]
        prior = np.block([[got["covariance"], crossed], [crossed.T, got["force_covariance"]]])
        whole = np.concatenate([A, A_u])
        left = (prior - whole @ whole.T) / np.outer([f] * t.size + [u] * t.size, [f] * t.size + [u] * t.size)
        assert np.linalg.eigvalsh((left + left.T) / 2)[0] > -rounding


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

"""Limits and rates: fast filters, and how quickly driven features come to explain everything."""

import jax.numpy as jnp
import numpy as np
import pytest

import cases
import latentforce as lf
from latentforce.experiments.features import unexplained_variance

TIMES = np.array([-2.0, -1.0, -0.5, 1.3, 3.9, 4.0, 4.5])
INTERVAL = (-1.0, 4.0)


def everything(process, t):
    """Covariances and features; the state's own columns, whose number depends on the filter, through their products."""
    driven = lf.DrivenFourier(20, INTERVAL).whitened(process, t)
    state = driven[:, 41:]
    harmonic = lf.HarmonicFourier(20, INTERVAL)
    return {
        "covariance": process.covariance(t, t),
        "cross-covariance": process.cross_covariance(t, t),
        "harmonic": harmonic.cross_covariance(process, t) / jnp.max(jnp.abs(harmonic.cross_covariance(process, t))),
        "harmonic, whitened": harmonic.whitened(process, t),
        "driven modes": driven[:, :41],
        "driven state": state @ state.T,
        "variance": process.variance(),
    }


@pytest.mark.parametrize("dtype, nu", [("float64", 0.5), ("float64", 3.5), ("float32", 2.5)], indirect=["dtype"])
def test_fast_filters_approach_the_identity(nu, dtype):
    force = lf.Matern(nu, 0.75)
    t = jnp.asarray(TIMES)
    limit = everything(lf.Process(force, lf.Identity()), t)
    betas = (1e-4, 1e-6, 1e-8) if dtype == "float64" else (1e-4, 1e-6)
    for beta in betas:
        near = everything(lf.Process(force, lf.FirstOrder(alpha=1.0, beta=beta)), t)
        for key, want in limit.items():
            error = float(jnp.max(jnp.abs(near[key] - want)))
            rounding = {"float64": 1e-13, "float32": 2e-5}[dtype]
            assert error <= 100 * beta + rounding, f"{key} at beta = {beta}: {error:.1e}"


@pytest.mark.parametrize("nu", cases.ORDERS)
def test_the_error_is_proportional_to_beta(nu, x64):
    force, t = lf.Matern(nu, 0.75), jnp.asarray(TIMES)
    limit = lf.Process(force, lf.Identity()).cross_covariance(t, t + 0.3)
    errors = []
    for beta in (1e-4, 1e-5, 1e-6, 1e-7, 1e-8):
        near = lf.Process(force, lf.FirstOrder(1.0, beta)).cross_covariance(t, t + 0.3)
        errors.append(float(jnp.max(jnp.abs(near - limit))) / beta)
    np.testing.assert_allclose(errors, errors[0], rtol=2e-2)


def test_second_order_without_mass_is_first_order(x64):
    force, t = lf.Matern(1.5, 0.75), jnp.asarray(TIMES)
    limit = lf.Process(force, lf.FirstOrder(alpha=2.0, beta=0.5)).covariance(t, t)
    light = lf.Process(force, lf.SecondOrder(mass=1e-7, damping=0.5, stiffness=2.0)).covariance(t, t)
    np.testing.assert_allclose(light, limit, atol=1e-6)


@pytest.mark.parametrize("dtype, nu", [("float64", 1.5), ("float32", 2.5)], indirect=["dtype"])
def test_linear_ode_agrees_with_the_named_filters(nu, dtype):
    force, t = lf.Matern(nu, 0.75), jnp.asarray(TIMES)
    pairs = [
        (lf.Identity(), lf.LinearODE([1.0])),
        (lf.FirstOrder(2.0, 0.5), lf.LinearODE([2.0, 0.5])),
        (lf.SecondOrder(mass=1.0, damping=0.8, stiffness=9.0), lf.LinearODE([9.0, 0.8, 1.0])),
    ]
    for named, general in pairs:
        one, two = everything(lf.Process(force, named), t), everything(lf.Process(force, general), t)
        for key in one:
            np.testing.assert_allclose(one[key], two[key], rtol=1e-6, atol=1e-7)


def test_unexplained_variance_table():
    """The table of the design: interval [-1, 4], length-scale 1, t = 0, in per cent."""
    table = {(row.nu, row.family, row.num_frequencies): row for row in unexplained_variance()}
    want = {(1.5, 20): 16.4, (1.5, 80): 16.3, (2.5, 20): 27.1, (2.5, 80): 26.9}
    for (nu, size), share in want.items():
        assert round(100 * table[nu, "harmonic", size].share, 1) == share
        assert table[nu, "harmonic", size].num_features == 2 * size + 1
    assert 100 * table[1.5, "driven", 20].share < 0.02
    assert round(100 * table[1.5, "driven", 80].share, 4) == 0.0002
    assert round(100 * table[2.5, "driven", 20].share, 4) == 0.0003
    assert round(100 * table[2.5, "driven", 80].share, 6) == 0.000001
    assert table[1.5, "driven", 20].num_features == 43 and table[1.5, "driven", 80].num_features == 163


@pytest.mark.parametrize("filter", [lf.Identity, lambda: lf.FirstOrder(1.0, 0.5)], ids=["identity", "first order"])
@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_rate_of_driven_features(nu, filter, x64):
    """What is left falls as 1/M for a Matérn-1/2 process without filter, and as 1/M^3 for all smoother ones.

    The weight of mode k at t is the k-th cosine coefficient of the impulse response, cut off at a, where it has a
    slope: coefficients fall as 1/k^2 (1/k where it jumps at t), their squares beyond M sum to 1/M^3 (1/M).
    """
    process, sizes = lf.Process(lf.Matern(nu, 1.0), filter()), np.array([20, 40, 80, 160])
    t = jnp.linspace(-0.95, -0.5, 46)
    left = [float(jnp.mean(lf.DrivenFourier(int(M), INTERVAL).residual_variance(process, t))) for M in sizes]
    exponent = np.polyfit(np.log(sizes), np.log(left), 1)[0]
    rough = process.filter.order == 0 and nu == 0.5
    assert abs(exponent - (-1 if rough else -3)) < 0.2, exponent

"""Draws: the right covariance, and an output that solves its equation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import latentforce as lf

FORCE = lf.Matern(2.5, 0.5, 0.75)
FILTERS = {
    "identity": lf.Identity(),
    "gain": lf.LinearODE([0.5]),
    "first order": lf.FirstOrder(1.0, 0.25),
    "second order": lf.SecondOrder(1.0, 0.75, 9.0),
    "third order": lf.LinearODE([4.0, 8.0, 5.0, 1.0]),
}


@pytest.mark.parametrize(
    "force", [FORCE, lf.Matern(0.5, 0.5), lf.SquaredExponential(0.5, 0.75)], ids=lambda f: str(type(f))
)
@pytest.mark.parametrize("name", FILTERS)
def test_covariance_of_draws(force, name, dtype):
    """Each entry of the sample covariance of (f, u) within five standard errors of the truth."""
    if isinstance(force, lf.SquaredExponential) and FILTERS[name].order > 1:
        with pytest.raises(ValueError, match="must be Matern to have covariances behind a filter of order two or more"):
            cast(lf.Process(force, FILTERS[name]), dtype).sample(jax.random.key(1), jnp.zeros(2), 1)
        return
    process, draws = cast(lf.Process(force, FILTERS[name]), dtype), 20_000
    t = jnp.asarray([0.9, 0.0, 0.01, 2.0, 0.9])  # out of order, close together, far apart, repeated
    f, u = process.sample(jax.random.key(1), t, draws)
    assert f.shape == u.shape == (draws, t.size) and f.dtype == u.dtype == dtype
    cross = process.cross_covariance(t, t)
    truth = np.block([[process.covariance(t, t), cross], [cross.T, process.force_covariance(t, t)]])
    joint = np.concatenate([f, u], axis=1).astype(np.float64)
    estimate = joint.T @ joint / draws
    spread = np.sqrt((np.outer(np.diag(truth), np.diag(truth)) + truth**2) / draws)
    assert np.max(np.abs(estimate - truth) / spread) < 5
    assert np.max(np.abs(np.mean(joint, axis=0)) / np.sqrt(np.diag(truth) / draws)) < 5
    rounding = {"float64": 1e-5, "float32": 3e-2}[dtype] * np.sqrt(truth[0, 0])
    np.testing.assert_allclose(f[:, 0], f[:, 4], atol=rounding, rtol=0)


def cast(process, dtype):
    return jax.tree.map(lambda x: x.astype(dtype), process)


@pytest.mark.parametrize("name", [name for name in FILTERS if name != "gain"])
def test_output_solves_its_equation(name, dtype):
    """Central differences of a drawn f on a fine grid give back the drawn u."""
    process = cast(lf.Process(FORCE, FILTERS[name]), dtype)
    order = process.filter.order
    h = {"float64": 1e-3, "float32": 4e-2}[dtype]
    t = h * jnp.arange(400, dtype=dtype)
    f, u = (np.asarray(x, np.float64) for x in process.sample(jax.random.key(2), t, 3))
    derivatives = [f]
    for _ in range(order):
        derivatives.append(np.gradient(derivatives[-1], h, axis=1))
    rebuilt = sum(float(a) * d for a, d in zip(process.filter.coefficients, derivatives, strict=True))
    inner = slice(2 * order + 1, -2 * order - 1)
    error = np.sqrt(np.mean((rebuilt - u)[:, inner] ** 2) / np.mean(u**2))
    assert error < {"float64": 1e-3, "float32": 0.1}[dtype], error


def test_draws_depend_on_the_key_alone():
    process, t = lf.Process(FORCE, FILTERS["first order"]), jnp.linspace(0.0, 1.0, 7)
    first, again = (process.sample(jax.random.key(5), t, 2)[0] for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, process.sample(jax.random.key(6), t, 2)[0])


def test_a_hundred_thousand_points():
    """Linear in the number of points: a dense factorisation of this size would need 300 GB."""
    f, u = lf.Process(FORCE, FILTERS["first order"]).sample(jax.random.key(0), jnp.linspace(0.0, 1e3, 100_000), 1)
    assert bool(jnp.all(jnp.isfinite(f))) and bool(jnp.all(jnp.isfinite(u)))
    assert 0.5 < float(jnp.var(u)) / 0.75 < 1.5

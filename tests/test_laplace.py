"""How well data determine hyperparameters, against finite differences; scores of predictions, against NumPy."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import latentforce as lf
from latentforce.inference._gaussian import Normal

GENERATOR = np.random.default_rng(0)
X = np.linspace(0.0, 10.0, 60)
Y = np.sin(2 * X) + 0.3 * np.sin(5 * X) + 0.1 * GENERATOR.standard_normal(X.size)


def trained(name, **options):
    model = lf.build(name, X, Y, filter=lf.FirstOrder(1.0, 0.3), **options)
    objective = lf.log_marginal_likelihood if name.startswith("exact") else lf.collapsed_bound
    return lf.fit(model, X, Y, steps=60, chunk=30, objective=objective, optimizer=optax.lbfgs()).model


@pytest.fixture(scope="module", params=["exact-lfm", "lfm-driven"])
def known(request):
    with jax.enable_x64(True):
        options = {} if request.param == "exact-lfm" else {"num_frequencies": 20}
        model = trained(request.param, **options)
        return model, lf.laplace(model, X, Y)


def process(model):
    return model.process if hasattr(model, "process") else model.layers[0].outputs.process


def physical(model):
    """Length-scale, rate and noise, in logarithms: what data can tell."""
    force, filter = process(model).force, process(model).filter
    numbers = [force.lengthscale.ravel(), (filter.alpha / filter.beta).ravel(), model.likelihood.variance.ravel()]
    return jnp.log(jnp.concatenate(numbers))


def test_the_hessian_is_that_of_finite_differences(known, x64):
    model, approximation = known
    data = lf.whole(jnp.asarray(X)[:, None], jnp.asarray(Y)[:, None])
    exact = hasattr(model, "process")

    @jax.jit
    def total(numbers):
        hypothesis = approximation.model(numbers)
        bound = lf.log_marginal_likelihood(hypothesis, data) if exact else lf.collapsed_bound(hypothesis, data)
        return X.size * bound

    size, eye = 1e-3, np.eye(approximation.mode.size)

    def at(*steps):
        return float(total(approximation.mode + size * sum(steps)))

    hessian = np.array([[at(a, b) - at(a, -b) - at(-a, b) + at(-a, -b) for b in eye] for a in eye]) / (4 * size**2)
    np.testing.assert_allclose(np.linalg.eigvalsh(-hessian), approximation.curvatures, rtol=1e-3, atol=2e-2)


def test_the_scale_of_the_force_is_all_that_is_left_open(known, x64):
    _, approximation = known
    assert approximation.mode.size - approximation.root.shape[1] == 1
    assert abs(float(approximation.curvatures[0])) < 1e-3
    moved = approximation.deviation(lambda m: jnp.log(process(m).force.variance.ravel()))
    scaled = approximation.deviation(
        lambda m: jnp.log(process(m).force.variance.ravel() / process(m).filter.alpha.ravel() ** 2)
    )
    assert np.all(np.isfinite(moved)) and np.all(np.asarray(scaled) < 2.0)
    assert np.all(np.asarray(approximation.deviation(physical)) < 1.0)


def test_draws_have_the_deviations_of_first_order(known, x64):
    _, approximation = known
    covariance = approximation.root @ approximation.root.T
    spread = approximation.integrate(lambda m: Normal(physical(m), jnp.zeros((3, 3))), num_samples=4000)
    np.testing.assert_allclose(spread.deviation, approximation.deviation(physical), rtol=0.06)
    assert np.all(np.linalg.eigvalsh(covariance) > -1e-12)


def test_the_band_of_the_force_is_wider_than_that_of_known_hyperparameters(known, x64):
    model, approximation = known
    t = jnp.linspace(0.5, 9.5, 20)
    data = lf.whole(jnp.asarray(X)[:, None], jnp.asarray(Y)[:, None])
    if hasattr(model, "process"):
        plugged = lf.condition(model, data.x, data.y).force(t)
    else:
        plugged = lf.force(lf.collapse(model, data), t)
    wide = approximation.force(t, num_samples=100)
    assert np.median(wide.deviation / plugged.deviation) > 1.01
    assert np.max(np.abs(wide.mean - plugged.mean) / wide.deviation) < 1.0
    if not hasattr(model, "process"):
        return
    force, filter = model.process.force, model.process.filter  # the same model, its force measured in thirds
    louder = lf.Process(
        type(force)(1.5, force.lengthscale[0], 9 * force.variance[0]),
        lf.FirstOrder(3 * filter.alpha[0], 3 * filter.beta[0]),
    )
    same = eqx.tree_at(lambda m: m.process, model, jax.tree.map(lambda leaf: leaf[None], louder))
    thrice = lf.laplace(same, X, Y).force(t, num_samples=100)
    np.testing.assert_allclose(thrice.mean, 3 * wide.mean, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(thrice.deviation, 3 * wide.deviation, rtol=1e-5)


def test_shared_forces(x64):
    fine = np.linspace(-5.0, 10.0, 15001)
    push = np.sin(2 * fine) + 0.5 * np.sin(5 * fine + 1)
    clean = []
    for sensitivity, delay in ((1.0, 0.1), (-0.5, 0.4), (2.0, 1.0)):
        f = np.zeros(fine.size)
        for n in range(1, fine.size):
            f[n] = f[n - 1] + 1e-3 * (sensitivity * push[n - 1] - f[n - 1]) / delay
        clean.append(np.interp(X, fine, f))
    y = np.stack(clean, axis=1) + 0.05 * np.random.default_rng(1).standard_normal((X.size, 3))
    model = lf.build("lfm-rff", X, y, num_forces=1, num_frequencies=15, filter=lf.FirstOrder(1.0, 0.3))
    model = lf.fit(model, X, y, steps=60, chunk=60, objective=lf.collapsed_bound, optimizer=optax.lbfgs()).model
    approximation = lf.laplace(model, X, y)
    assert np.sum(np.abs(approximation.curvatures) < 1e-3) >= 4  # scales of one force and of three ODEs
    assert approximation.root.shape[1] <= approximation.mode.size - 4
    band = approximation.force(jnp.linspace(1.0, 9.0, 5), num_samples=10)
    assert np.all(np.isfinite(band.mean)) and np.all(band.deviation > 0)


def test_an_ode_that_is_not_trained_is_known(x64):
    model = trained("exact-lfm", train_filters=None)
    approximation = lf.laplace(model, X, Y)
    assert approximation.mode.size == approximation.root.shape[1] == 3
    assert float(approximation.deviation(lambda m: m.process.filter.beta)[0]) == 0.0


def test_bad_input(x64):
    with pytest.raises(ValueError, match="`model` must be trained until its likelihood is at a maximum"):
        lf.laplace(lf.build("exact-lfm", X, Y, likelihood=lf.Gaussian(1e-4)), X, Y)
    with pytest.raises(ValueError, match="`model` must have one layer and a Gaussian likelihood"):
        lf.laplace(lf.build("dlfm-driven", X, Y, num_frequencies=3), X, Y)


def test_scores(x64):
    y = np.stack([Y, np.where(np.arange(X.size) % 3 == 0, np.nan, 2 * Y)], axis=1)
    model = lf.build("lfm-driven", X, y, num_frequencies=4)
    prediction = lf.predict(model, X)
    seen = ~np.isnan(y)
    reached = lf.scores(prediction, y, coverage=0.5)
    low, high = prediction.interval(0.5)
    np.testing.assert_allclose(reached.rmse, np.sqrt(np.mean((prediction.mean - y)[seen] ** 2)), rtol=1e-12)
    np.testing.assert_allclose(reached.nmll, -np.mean(prediction.log_density(jnp.asarray(y))[seen]), rtol=1e-12)
    np.testing.assert_allclose(reached.coverage, np.mean(np.asarray((low <= y) & (y <= high))[seen]))
    with pytest.raises(ValueError, match=r"`y` must have the shape of the prediction, \(60, 2\), got \(60, 1\)"):
        lf.scores(prediction, y[:, :1])

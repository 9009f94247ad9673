"""Several starting points: what their models say together."""

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import latentforce as lf
from latentforce.estimators import _engine
from latentforce.estimators._engine import Rows, divided, scattered
from latentforce.inference._prediction import Mixture, Prediction

X = np.random.default_rng(0).uniform(size=(40, 2))
Y = np.sin(5 * X[:, 0]) * X[:, 1] + 0.05 * np.random.default_rng(1).standard_normal(40)
OPTIONS = {"num_frequencies": 3, "width": 2, "directions": 2, "steps": 20, "random_state": 0, "precision": "float64"}


@pytest.fixture(scope="module")
def fitted():
    return lf.LatentForceRegressor(**OPTIONS, restarts=3).fit(X, Y)


@pytest.fixture
def mixture(x64):
    """Two models of two rows, with different noise."""
    rng = np.random.default_rng(2)
    return Mixture(
        tuple(
            Prediction(jnp.asarray(rng.normal(size=(3, 2, 1))), jnp.asarray(rng.uniform(size=(3, 2, 1))), noise)
            for noise in (lf.Gaussian(0.1), lf.Gaussian(2.0))
        )
    )


def test_a_mixture_is_what_all_its_gaussians_are_together(mixture):
    noise = np.repeat([0.1, 2.0], 3)[:, None, None]
    means, variances = (
        np.concatenate([getattr(part, name) for part in mixture.parts]) for name in ("means", "variances")
    )
    spread = np.sqrt(variances + noise)
    y = np.array([[0.3], [-1.0]])
    density = np.exp(-(((y - means) / spread) ** 2) / 2) / spread / np.sqrt(2 * np.pi)
    np.testing.assert_allclose(mixture.mean, means.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(mixture.variance, (spread**2).mean(axis=0) + means.var(axis=0), rtol=1e-12)
    np.testing.assert_allclose(mixture.f_mean, means.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(mixture.f_variance, variances.mean(axis=0) + means.var(axis=0), rtol=1e-12)
    np.testing.assert_allclose(mixture.log_density(jnp.asarray(y)), np.log(density.mean(axis=0)), rtol=1e-12)
    for level in (0.05, 0.6):
        np.testing.assert_allclose(mixture.cdf(mixture.quantile(level)), level, atol=1e-9)
    drawn = np.asarray(mixture.sample(jax.random.key(0), 20_000))
    np.testing.assert_allclose(drawn.mean(axis=0), mixture.mean, atol=0.05)
    np.testing.assert_allclose(drawn.var(axis=0), mixture.variance, rtol=0.05)


def test_predictions_are_of_all_and_the_best_is_first(fitted):
    members = fitted.fitted_.members
    assert len(members) == 3
    rows = fitted.table_.encode(X)
    with jax.enable_x64(True):
        said = [lf.predict(jax.tree.map(jnp.asarray, one.model), rows, seed=fitted.seed_) for one in members]
        means, variances = (np.stack([getattr(one, name) for one in said])[..., 0] for name in ("mean", "variance"))
    assert np.ptp(means, axis=0).max() > 0.01  # they differ
    scale, shift = fitted.targets_.scale[0], fitted.targets_.shift[0]
    mean, std = fitted.predict(X, return_std=True)
    np.testing.assert_allclose(mean, shift + scale * means.mean(axis=0), rtol=1e-10)
    np.testing.assert_allclose(fitted.predict(X), mean, rtol=1e-10)
    np.testing.assert_allclose(std, scale * np.sqrt(variances.mean(axis=0) + means.var(axis=0)), rtol=1e-10)
    assert fitted.model_ is members[0].model


def test_all_models_are_kept_in_files(fitted, tmp_path):
    fitted.save(tmp_path / "model.lforce")
    for again in (lf.load(tmp_path / "model.lforce"), pickle.loads(pickle.dumps(fitted))):
        assert len(again.fitted_.members) == 3
        np.testing.assert_array_equal(again.predict_interval(X), fitted.predict_interval(X))


def test_functions_are_drawn_from_all_models(fitted):
    functions = fitted.sample_functions(3)
    values = functions(X[:5])
    assert values.shape == (5, 3) and np.ptp(values, axis=1).min() > 0
    np.testing.assert_allclose(functions(X[:2]), values[:2], rtol=1e-8)


def test_one_that_was_stopped_does_not_count_beside_one_that_was_not():
    steps = []

    def stop_in_the_second(progress):
        steps.append(progress.step)
        return len(steps) > 1 and steps[-1] < 20 and 20 in steps

    fitted = lf.LatentForceRegressor(**OPTIONS, restarts=3, callback=stop_in_the_second).fit(X, Y)
    assert len(fitted.fitted_.members) == 1 and len(fitted.history_.objective) == 20


def test_further_rows_are_told_to_all_models():
    t, y = np.linspace(0.0, 6.0, 40)[:, None], np.sin(np.linspace(0.0, 6.0, 40))
    some = lf.LatentForceRegressor("gp-driven", num_frequencies=4, restarts=2, random_state=0).fit(t[::2], y[::2])
    before = [one.model.layers[0].posterior.root for one in some.fitted_.members]
    some.partial_fit(t[1::2], y[1::2])
    after = [one.model.layers[0].posterior.root for one in some.fitted_.members]
    assert len(after) == 2
    for old, new in zip(before, after, strict=True):
        assert (
            np.linalg.slogdet(new[0, 0] if new.ndim == 4 else new[0])[1]
            < np.linalg.slogdet(old[0, 0] if old.ndim == 4 else old[0])[1]
        )


def test_restarts_hold_out_rows_of_their_own():
    rows = Rows(np.arange(43.0)[:, None], -np.arange(43.0)[:, None], np.ones(43))
    seen = []
    for restart in range(11):  # 4 of 43 rows: the eleventh begins again
        train, held = divided(rows, 0.1, 5, restart)
        assert held is not None
        assert len(held[0]) == 4
        assert sorted([*train.x[:, 0], *held[0][:, 0]]) == list(range(43))
        np.testing.assert_array_equal(train.y, -train.x)
        np.testing.assert_array_equal(held[1], -held[0])
        seen += held[0][:, 0].tolist()
    assert len(set(seen[:40])) == 40
    assert set(seen) == set(range(43))
    assert divided(rows, 0.0, 5, 2) == (rows, None)


@pytest.mark.parametrize("name", ["svgp", "lfm-rff", "gp-driven", "exact-lfm"])
def test_searches_without_chance_start_elsewhere(name):
    """Hyperparameters and directions move; what the data or the interval settle, and a filter that is known, do not."""
    model = lf.build(name, X, Y, num_frequencies=2, directions=None if name == "svgp" else 3, train_filters=None)
    other, again = scattered(model, 1), scattered(model, 1)
    moved = jax.tree.map(lambda old, new: bool(np.any(old != new)), model, other)
    assert jax.tree.leaves(moved) != [False] and all(jax.tree.leaves(jax.tree.map(np.array_equal, other, again)))
    process, was = (m.process if name == "exact-lfm" else m.layers[0].outputs.process for m in (other, model))
    assert np.all(process.force.lengthscale > 0) and not np.any(process.force.lengthscale == was.force.lengthscale)
    assert all(jax.tree.leaves(jax.tree.map(lambda a, b: np.allclose(a, b, rtol=1e-5), process.filter, was.filter)))
    if name != "exact-lfm":
        layer, before = other.layers[0], model.layers[0]
        kept = (layer.features, layer.posterior), (before.features, before.posterior)
        assert all(jax.tree.leaves(jax.tree.map(np.array_equal, *kept)))
    if name != "svgp":
        assert jax.tree.leaves(moved.inputs if name == "exact-lfm" else moved.layers[0].inputs)[0]


def test_restarts_of_shallow_models_differ():
    fitted = lf.LatentForceRegressor("lfm-driven", num_frequencies=3, directions=2, restarts=3, steps=15).fit(X, Y)
    weights = [one.model.layers[0].inputs.weights for one in fitted.fitted_.members]
    assert len(weights) > 1 and not np.allclose(weights[0], weights[1])


def test_starts_that_end_far_behind_are_left_out(monkeypatch):
    found = iter([0.19, -0.31, 0.7, 0.21])  # nats a row
    monkeypatch.setattr(_engine, "_quality", lambda history, optimizer: next(found))
    fitted = lf.LatentForceRegressor("gp-driven", num_frequencies=3, restarts=4, steps=2, random_state=0).fit(X, Y)
    assert len(fitted.fitted_.members) == 2


def test_fewer_directions_than_inputs_see_all_of_them():
    wide = np.random.default_rng(0).uniform(size=(30, 5))
    first, second = (lf.build("lfm-driven", wide, Y[:30], directions=3, seed=seed).layers[0].inputs for seed in (0, 1))
    np.testing.assert_allclose(first.weights @ first.weights.T, np.eye(3), atol=1e-6)
    assert np.all(np.abs(first.weights).max(axis=0) > 0.01) and not np.allclose(first.weights, second.weights)
    enough = lf.build("lfm-driven", wide, Y[:30], directions=6).layers[0].inputs
    np.testing.assert_array_equal(enough.weights[:5], np.eye(5))

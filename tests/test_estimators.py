"""The regressor: scikit-learn's contract, the user's units, and data as users have them."""

import pickle

import jax
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

import latentforce as lf
from latentforce.estimators._table import Table

GENERATOR = np.random.default_rng(0)
X = np.sort(GENERATOR.uniform(0.0, 10.0, (40, 1)), axis=0)
Y = 5 + 3 * np.sin(X[:, 0]) + 0.1 * GENERATOR.standard_normal(40)


@pytest.fixture(autouse=True)
def as_users_have_it():
    """JAX's own rules for mixed dtypes and shapes, as outside of the tests."""
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        yield


def shallow(**options):
    return lf.LatentForceRegressor("lfm-driven", **{"num_frequencies": 6, "steps": 30, **options})


def quick():
    """Little to compile."""
    return lf.LatentForceRegressor("ssgp", num_frequencies=3, steps=3, likelihood="student-t")


def deep(**options):
    small = {"num_frequencies": 2, "width": 2, "directions": 3, "steps": 30, "precision": "float64"}
    return lf.LatentForceRegressor("dgp-driven", **{**small, **options})


CHECKED = {"num_frequencies": 5, "steps": 150, "learning_rate": 0.1, "likelihood": "student-t", "precision": "float64"}


@parametrize_with_checks([lf.LatentForceRegressor("ssgp", **CHECKED)])  # the same code for all, and little to compile
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def fitted():
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        return shallow(steps=60, precision="float64").fit(X, Y)


def test_shapes_and_units(fitted):
    mean, std = fitted.predict(X, return_std=True)
    assert mean.shape == std.shape == (40,)
    np.testing.assert_allclose(mean, fitted.predict(X), rtol=1e-10)
    assert np.sqrt(np.mean((mean - Y) ** 2)) < 0.2 and 0.05 < np.median(std) < 0.3
    interval = fitted.predict_interval(X, coverage=0.9)
    assert interval.shape == (40, 2) and 0.75 < np.mean((interval[:, 0] < Y) & (interval[:, 1] > Y)) <= 1.0
    quantiles = fitted.predict_quantiles(X, [0.05, 0.5, 0.95])
    np.testing.assert_allclose(quantiles[:, [0, 2]], interval, rtol=1e-10)
    np.testing.assert_allclose(quantiles[:, 1], mean, rtol=1e-6)  # one layer: symmetric
    assert fitted.sample_y(X, 7).shape == (40, 7)
    functions = fitted.sample_functions(5, random_state=1)
    np.testing.assert_allclose(functions(X)[:3], functions(X[:3]), rtol=1e-8)
    assert fitted.score(X, Y) > 0.99
    normal = -0.5 * ((Y - mean) / std) ** 2 - np.log(std) - 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(fitted.log_score(X, Y), normal.mean(), rtol=1e-8)


def test_other_units_give_the_same_answer(fitted):
    other = clone(fitted).fit(1e6 * X - 3e6, 1e-4 * Y + 7)
    np.testing.assert_allclose((other.predict(1e6 * X - 3e6) - 7) / 1e-4, fitted.predict(X), rtol=1e-5)
    std = other.predict(1e6 * X - 3e6, return_std=True)[1]
    np.testing.assert_allclose(std / 1e-4, fitted.predict(X, return_std=True)[1], rtol=1e-4)


def test_a_filter_is_in_the_units_of_the_input():
    options = {"train_filters": None, "precision": "float64"}
    minutes = shallow(filter=lf.FirstOrder(1.0, 0.5), **options).fit(X, Y)
    seconds = shallow(filter=lf.FirstOrder(1.0, 30.0), **options).fit(60 * X, Y)
    np.testing.assert_allclose(minutes.predict(X), seconds.predict(60 * X), rtol=1e-8)
    with pytest.raises(ValueError, match="`filter` must be a name where there is not one input column"):
        shallow(filter=lf.FirstOrder(1.0, 0.5)).fit(np.hstack([X, X**2]), Y)


def test_exact_models(fitted):
    exact = lf.LatentForceRegressor("exact-lfm", steps=40, precision="float64").fit(X, Y)
    assert exact.log_score(X, Y) > fitted.log_score(X, Y) - 0.3
    with pytest.raises(ValueError, match="must not be exact to draw functions"):
        exact.sample_functions()


def test_pickle_and_grid_search(fitted):
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    search = GridSearchCV(quick(), {"learning_rate": [0.1, 0.01]}, n_jobs=2, cv=2).fit(X, Y)
    assert search.best_params_["learning_rate"] in (0.1, 0.01)


def test_targets_that_were_not_observed():
    y = np.stack([Y, 100 * Y], axis=1)
    y[::2, 1] = np.nan
    model = shallow(steps=300).fit(X, y)
    mean, std = model.predict(X, return_std=True)
    assert mean.shape == std.shape == (40, 2) and model.predict_interval(X).shape == (40, 2, 2)
    seen = ~np.isnan(y)
    assert np.sqrt(np.mean((mean - y)[seen[:, 1], 1] ** 2)) < 100
    assert np.isfinite(model.log_score(X, y))
    y[:, 1] = np.nan
    with pytest.raises(ValueError, match="`y` must have a number somewhere in each column"):
        model.fit(X, y)


def frame(n=40):
    days = pd.date_range("2024-01-01", periods=n, freq="D")
    return pd.DataFrame(
        {"day": days, "site": np.where(np.arange(n) % 3 == 0, "north", "south"), "load": X[:n, 0], "unit": 1.0}
    )


def test_data_frames():
    data = frame()
    model = deep(steps=5, directions=None).fit(data, Y)
    assert list(model.feature_names_in_) == ["day", "site", "load", "unit"]
    assert model.table_.names == ["day", "site=north", "site=south", "load"]
    matrix = model.table_.encode(data)
    assert matrix.shape == (40, 4) and matrix.min() == 0 and matrix.max() == 1
    np.testing.assert_allclose(matrix[:, 0], np.arange(40) / 39, rtol=1e-12)
    assert Table.from_json(model.table_.to_json()) == model.table_
    assert model.predict(data[:3]).shape == (3,)
    zoned = Table.of(data.assign(day=data["day"].dt.tz_localize("UTC")))
    np.testing.assert_allclose(zoned.encode(data.assign(day=data["day"].dt.tz_localize("UTC"))), matrix)
    with pytest.raises(ValueError, match=r"column 'site' that were not there .*: 'east'"):
        model.predict(data.assign(site="east"))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(data.rename(columns={"load": "weight"}))
    with pytest.raises(ValueError, match="must have numbers in column 'load'"):
        model.predict(data.assign(load="much"))
    with pytest.raises(ValueError, match="NaN or infinity in column 'load', row 2"):
        model.predict(data.assign(load=np.where(np.arange(40) == 2, np.nan, 1.0)))


def test_columns_that_say_nothing_or_too_much():
    constant = quick().fit(np.hstack([X, np.full((40, 1), 3.0)]), Y)
    assert constant.table_.names == ["x0"]
    assert quick().fit(np.ones((10, 2)), np.arange(10.0)).predict(np.ones((2, 2))).shape == (2,)
    text = pd.DataFrame({"name": [f"row {k}" for k in range(60)]})
    with pytest.raises(ValueError, match="column 'name' of text with 60 different values"):
        Table.of(text)


def test_weights_are_repetitions_also_in_deep_models():
    weight = np.arange(40) % 3
    one = deep(steps=10).fit(X, Y, sample_weight=weight)
    other = deep(steps=10).fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight))
    np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "deep"}, "`model` must be one of svgp, .*, got 'deep'"),
        ({"likelihood": "normal"}, "`likelihood` must be one of gaussian"),
        ({"precision": "half"}, "`precision` must be one of float32, float64, got 'half'"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        lf.LatentForceRegressor().set_params(**options).fit(X, Y)
    with pytest.raises(ValueError, match="`coverage` must lie between 0 and 1"):
        lf.LatentForceRegressor().predict_interval(X, coverage=95.0)

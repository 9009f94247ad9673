"""The regressor: scikit-learn's contract, the user's units, and data as users have them."""

import copy
import pickle
from datetime import date

import equinox as eqx
import jax
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

import latentforce as lf
from latentforce.estimators._choices import choose
from latentforce.estimators._engine import Fitted
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
    """Fitted to the same rows it is the same program, whatever else is asked."""
    return lf.LatentForceRegressor(
        "lfm-driven", **{"num_frequencies": 6, "steps": 60, "precision": "float64", **options}
    )


def quick():
    """Little to compile."""
    return lf.LatentForceRegressor("ssgp", num_frequencies=3, steps=3, likelihood="student-t")


def deep(**options):
    small = {"num_frequencies": 2, "width": 2, "directions": 3, "steps": 30, "precision": "float64"}
    return lf.LatentForceRegressor("dgp-driven", **{**small, **options})


CHECKED = {"num_frequencies": 5, "steps": 50, "learning_rate": 0.3, "likelihood": "student-t", "precision": "float64"}


@pytest.mark.filterwarnings("ignore::latentforce.ExtrapolationWarning")
@parametrize_with_checks([lf.LatentForceRegressor("ssgp", **CHECKED)])  # the same code for all, and little to compile
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def fitted():
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        return shallow().fit(X, Y)


@pytest.fixture(scope="module")
def exact():
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        return lf.LatentForceRegressor("exact-lfm", steps=40, precision="float64").fit(X, Y)


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


def test_frames_as_skpro_has_them(fitted):
    intervals = fitted.predict_interval(X[:5], coverage=[0.5, 0.9], as_frame=True)
    assert intervals.columns.tolist() == [("y", c, end) for c in (0.5, 0.9) for end in ("lower", "upper")]
    np.testing.assert_array_equal(intervals["y", 0.9].to_numpy(), fitted.predict_interval(X[:5], coverage=0.9))
    quantiles = fitted.predict_quantiles(X[:5], [0.1, 0.5], as_frame=True)
    assert quantiles.columns.tolist() == [("y", 0.1), ("y", 0.5)]
    two = quick().fit(pd.DataFrame({"t": X[:, 0]}, index=np.arange(100, 140)), np.stack([Y, -Y], axis=1))
    frame = two.predict_interval(pd.DataFrame({"t": X[:3, 0]}, index=[7, 8, 9]), as_frame=True)
    assert frame.index.tolist() == [7, 8, 9] and frame.columns.get_level_values(0).unique().tolist() == ["y0", "y1"]
    np.testing.assert_array_equal(
        frame["y1"].to_numpy(), two.predict_interval(pd.DataFrame({"t": X[:3, 0]}), 0.9)[:, 1]
    )
    with pytest.raises(ValueError, match="`coverage` must be one number unless `as_frame`"):
        fitted.predict_interval(X, coverage=[0.5, 0.9])


def test_other_units_give_the_same_answer(fitted):
    other = clone(fitted).fit(1e6 * X - 3e6, 1e-4 * Y + 7)
    np.testing.assert_allclose((other.predict(1e6 * X - 3e6) - 7) / 1e-4, fitted.predict(X), rtol=1e-5)
    std = other.predict(1e6 * X - 3e6, return_std=True)[1]
    np.testing.assert_allclose(std / 1e-4, fitted.predict(X, return_std=True)[1], rtol=1e-4)


def test_a_filter_is_in_the_units_of_the_input():
    options = {"train_filters": None, "likelihood": "student-t"}
    minutes = shallow(filter=lf.FirstOrder(1.0, 0.5), **options).fit(X, Y)
    seconds = shallow(filter=lf.FirstOrder(1.0, 30.0), **options).fit(60 * X, Y)
    np.testing.assert_allclose(minutes.predict(X), seconds.predict(60 * X), rtol=1e-8)
    with pytest.raises(ValueError, match="`filter` must be a name where there is not one input column"):
        shallow(filter=lf.FirstOrder(1.0, 0.5)).fit(np.hstack([X, X**2]), Y)


def test_exact_models(fitted, exact):
    assert exact.log_score(X, Y) > fitted.log_score(X, Y) - 0.3
    with pytest.raises(ValueError, match="must not be exact to draw functions"):
        exact.sample_functions()


def test_pickle_and_grid_search(fitted):
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    search = GridSearchCV(
        quick(), {"learning_rate": [0.1, 0.01]}, n_jobs=2, cv=KFold(2, shuffle=True, random_state=0)
    ).fit(X, Y)
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
    each = [r2_score(y[rows, k], mean[rows, k]) for k, rows in enumerate(seen.T)]
    assert model.score(X, y) == pytest.approx(np.mean(each)) and each[0] > 0.9
    with pytest.raises(ValueError, match=r"contains NaN. Where targets .* give `y` as a table \(N, 1\)"):
        model.fit(X, y[:, 1])
    with pytest.raises(ValueError, match=r"`y` must be numbers, got text .* LatentForceClassifier"):
        model.fit(X, np.where(Y > 0, "up", "down"))
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
    days = Table.of(pd.DataFrame({"day": [date(2024, 1, 1 + k) for k in range(5)]}))
    assert days.columns[0].kind == "time" and days.columns[0].span == 4 * 86400
    with pytest.raises(ValueError, match=r"must have times in column 'day', .*: got '2024-01-01'"):
        model.predict(data.assign(day=data["day"].astype(str).astype(object)))
    with pytest.raises(ValueError, match="must have numbers in column 'load'"):
        model.predict(data.assign(load="much"))
    with pytest.raises(ValueError, match="NaN or infinity in column 'load', row 2"):
        model.predict(data.assign(load=np.where(np.arange(40) == 2, np.nan, 1.0)))


def test_columns_that_say_nothing_or_too_much():
    constant = quick().fit(np.hstack([X, np.full((40, 1), 3.0)]), Y)
    assert constant.table_.names == ["x0"]
    assert quick().fit(np.ones((10, 2)), np.arange(10.0)).predict(np.ones((2, 2))).shape == (2,)
    with pytest.raises(ValueError, match=r"without gaps, got (NoneType|float) and str in column 'name'"):
        Table.of(pd.DataFrame({"name": np.array(["north", None, "south"], object)}))
    text = pd.DataFrame({"name": [f"row {k}" for k in range(60)]})
    with pytest.raises(ValueError, match="column 'name' of text with 60 different values"):
        Table.of(text)


def test_polars_frames_are_the_same(fitted):
    names = {"X": {"t": X[:, 0]}, "y": Y}
    one = quick().fit(pl.DataFrame(names["X"]), pl.Series("load", Y))
    other = quick().fit(pd.DataFrame(names["X"]), pd.Series(Y, name="load"))
    assert one.targets_.names == other.targets_.names == ("load",)
    np.testing.assert_array_equal(
        one.predict(pl.DataFrame(names["X"])[::2]), other.predict(pd.DataFrame(names["X"])[::2])
    )
    times = pl.DataFrame(
        {"when": pl.datetime_range(pl.datetime(2024, 1, 1), pl.datetime(2024, 1, 2), "1h", eager=True)}
    )
    assert Table.of(times).columns[0].kind == "time" and Table.of(times).columns[0].span == 86400
    weight = np.arange(40) % 2
    rows = pl.DataFrame(names["X"])
    np.testing.assert_array_equal(
        quick().fit(rows, Y, sample_weight=weight).predict(rows), quick().fit(rows[1::2], Y[1::2]).predict(rows)
    )


def test_far_outside_it_is_the_prior_with_a_warning(fitted):
    far = np.array([[-500.0], [5.0], [800.0]])
    with pytest.warns(lf.ExtrapolationWarning, match="`X` has 2 rows outside"):
        mean, std = fitted.predict(far, return_std=True)
    process = jax.tree.map(lambda leaf: leaf[0, 0], fitted.model_.layers[0].outputs.process)
    with jax.enable_x64(True):
        variance = float(process.variance()) + float(fitted.model_.likelihood.variance)
    np.testing.assert_allclose(mean[[0, 2]], fitted.targets_.shift[0], rtol=1e-5)
    np.testing.assert_allclose(std[[0, 2]], fitted.targets_.scale[0] * np.sqrt(variance), rtol=1e-5)
    assert std[1] < std[0] / 3


def test_the_interval_is_settled_by_fit():
    wide = shallow(interval=(-5.0, 20.0)).fit(X, Y)
    low, high = X.min(), X.max()
    a, b = (float(end[0]) for end in wide.model_.layers[0].features.interval)
    np.testing.assert_allclose([low + a * (high - low), low + b * (high - low)], [-5.0, 20.0], rtol=1e-6)
    wide.predict([[-4.0], [19.0]])  # inside of it: no warning, or pytest would make it an error
    with pytest.warns(lf.ExtrapolationWarning):
        wide.predict([[21.0]])
    with pytest.raises(ValueError, match="`interval` must be None where there is not one input column"):
        shallow(interval=(-5.0, 20.0)).fit(np.hstack([X, X]), Y)


def test_the_force_is_in_the_users_units(fitted):
    t = np.linspace(1.0, 9.0, 7)
    mean, std = fitted.predict_force(t, return_std=True)
    _, covariance = fitted.predict_force(t, return_cov=True)
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), std, rtol=1e-8)
    with jax.enable_x64(True):
        low, high = X.min(), X.max()
        scaled = lf.force(jax.tree.map(lambda leaf: leaf.astype(float), fitted.model_), (t - low) / (high - low))
    alpha = float(fitted.model_.layers[0].outputs.process.filter.alpha[0, 0])
    np.testing.assert_allclose(mean, Y.std() * np.asarray(scaled.mean) / alpha, rtol=1e-8)
    other = clone(fitted).fit(1e6 * X - 3e6, 1e-4 * Y + 7)
    moved = other.predict_force(1e6 * t - 3e6, return_std=True)
    np.testing.assert_allclose(moved[0], 1e-4 * mean, atol=1e-8)
    np.testing.assert_allclose(moved[1], 1e-4 * std, rtol=1e-3)
    for bad in ({"layer": 1}, {"index": 1}, {"direction": 1}):
        with pytest.raises(ValueError, match=f"`{next(iter(bad))}` must lie between 0 and 0"):
            fitted.predict_force(t, **bad)
    with pytest.raises(ValueError, match="`t` must be 1-D"):
        fitted.predict_force(X)


def test_a_learned_ode_leaves_the_size_of_the_force_as_it_is(fitted):
    def tripled(process):
        filter = jax.tree.map(lambda leaf: 3 * leaf, process.filter)
        return eqx.tree_at(lambda p: (p.filter, p.force.variance), process, (filter, 9 * process.force.variance))

    other, t = copy.copy(fitted), np.linspace(1.0, 9.0, 5)
    outputs = fitted.model_.layers[0].outputs
    more = eqx.tree_at(lambda o: o.process, outputs, tripled(outputs.process))
    other.fitted_ = Fitted(eqx.tree_at(lambda m: m.layers[0].outputs, fitted.model_, more))
    np.testing.assert_allclose(other.predict(X[:5]), fitted.predict(X[:5]), rtol=1e-5)
    np.testing.assert_allclose(other.predict_force(t), fitted.predict_force(t), rtol=1e-4)
    ours, theirs = (one.summary().to_dict()["parameters"]["standard deviation of the force"] for one in (other, fitted))
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_the_force_of_an_exact_model_is_the_one_it_is_conditioned_on(fitted, exact):
    t = np.linspace(1.0, 9.0, 5)
    mean, std = exact.predict_force(t, return_std=True)
    assert np.all(np.abs(mean - fitted.predict_force(t)) < 6 * std + 0.5 * np.abs(mean).max())
    with pytest.raises(ValueError, match="`index` must lie between 0 and 0"):
        exact.predict_force(t, index=1)


def test_summary_speaks_in_the_users_units(fitted):
    table = fitted.summary().to_dict()
    parameters = table["parameters"]
    process = fitted.model_.layers[0].outputs.process
    span, scale = X.max() - X.min(), Y.std()
    rate = float(process.filter.alpha[0, 0] / process.filter.beta[0, 0]) / span
    np.testing.assert_allclose(parameters["decay rate"], rate, rtol=1e-6)
    np.testing.assert_allclose(parameters["length-scale"], float(process.force.lengthscale[0, 0]) * span, rtol=1e-6)
    noise = float(fitted.model_.likelihood.variance) ** 0.5 * scale
    np.testing.assert_allclose(parameters["noise (standard deviation)"], noise, rtol=1e-6)
    assert table["training"]["rows"] == 40 and table["choices"]["steps"] == 60
    assert "decay rate" in str(fitted.summary()) and "per unit of x0" in str(fitted.summary())
    other = clone(fitted).fit(1e6 * X - 3e6, 1e-4 * Y + 7).summary().to_dict()["parameters"]
    np.testing.assert_allclose(other["decay rate"], parameters["decay rate"] / 1e6, rtol=1e-3)


def test_summary_of_a_second_order_system_with_shared_forces():
    y = np.stack([Y, Y**2, -Y], axis=1)
    filter = lf.SecondOrder(mass=0.25, damping=0.1, stiffness=1.0)
    options = {"filter": filter, "train_filters": None, "num_forces": 2, "num_frequencies": 2, "steps": 2}
    model = lf.LatentForceRegressor("lfm-driven", likelihood="student-t", **options).fit(X, y)
    parameters = model.summary().to_dict()["parameters"]
    np.testing.assert_allclose(parameters["natural frequency, y0"], 2.0, rtol=1e-5)
    np.testing.assert_allclose(parameters["damping ratio, y2"], 0.1, rtol=1e-5)
    assert "sensitivity, y1, number 2" in parameters and "degrees of freedom of the noise" in parameters


def test_rows_are_predicted_alike_in_any_block_and_order(fitted, monkeypatch):
    order = np.random.default_rng(1).permutation(40)
    whole, interval = fitted.predict(X, return_std=True), fitted.predict_interval(X)
    monkeypatch.setattr("latentforce.estimators._base.BLOCK", 7)
    for one, other in zip(fitted.predict(X, return_std=True), whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10)
    np.testing.assert_allclose(fitted.predict_interval(X[order]), interval[order], rtol=1e-10)
    assert fitted.sample_y(X, 3).shape == (40, 3)
    np.testing.assert_allclose(fitted.log_score(X[order], Y[order]), fitted.log_score(X, Y), rtol=1e-10)


def test_interrupted_estimators_go_on(tmp_path):
    options = {"restarts": 2, "steps": 20, "random_state": 1}
    whole = clone(quick()).set_params(**options).fit(X, Y)
    options |= {"checkpoint": tmp_path / "run.ckpt", "every": 2}
    stopped = clone(quick()).set_params(**options, callback=lambda progress: progress.step >= 10).fit(X, Y)
    assert stopped.history_.stopped == "stopped by the callback" and len(stopped.history_.objective) == 10
    resumed = clone(quick()).set_params(**options, resume=True).fit(X, Y)
    np.testing.assert_array_equal(resumed.predict(X), whole.predict(X))
    assert resumed.history_.objective == whole.history_.objective
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.ckpt", "run.ckpt.1"]
    with pytest.raises(ValueError, match="is a checkpoint of a training"):
        lf.load(tmp_path / "run.ckpt")


def test_weights_are_repetitions_also_in_deep_models():
    weight = np.arange(40) % 3
    one = deep(steps=10).fit(X, Y, sample_weight=weight)
    other = deep(steps=10).fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight))
    np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "deep"}, "`model` must be one of svgp, .*, got 'deep'"),
        ({"likelihood": "normal"}, "`likelihood` must be one of None, gaussian"),
        ({"interval": (2.0, 3.0)}, "`interval` must hold all training inputs, got"),
        ({"precision": "half"}, "`precision` must be one of float32, float64, got 'half'"),
        ({"interval": 5}, "`interval` must be a pair .*, got 5"),
        ({"restarts": 0}, "`restarts` must be a whole number of at least 1, got 0"),
        ({"steps": "many"}, "`steps` must be a whole number of at least 1, got 'many'"),
        ({"learning_rate": -1.0}, "`learning_rate` must be finite and not negative, got -1.0"),
        ({"likelihood": "poisson", "model": "gp-driven", "num_frequencies": 2}, "`y` must be counts"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        lf.LatentForceRegressor().set_params(**options).fit(X, Y)
    with pytest.raises(ValueError, match="`coverage` must lie between 0 and 1"):
        lf.LatentForceRegressor().predict_interval(X, coverage=95.0)


def test_rows_held_out_end_the_training():
    generator = np.random.default_rng(0)
    data = generator.uniform(size=(120, 4))
    noisy = np.sin(6 * data[:, 0]) + generator.standard_normal(120)
    small = {"num_frequencies": 2, "width": 1, "directions": 2, "random_state": 0, "restarts": 1}
    model = lf.LatentForceRegressor(steps=200, learning_rate=0.3, validation_fraction=0.1, **small).fit(data, noisy)
    scores = model.history_.held_out
    assert len(scores) - 1 - int(np.argmax(scores)) == 5  # half of the ten chunks: no more to gain
    assert model.history_.stopped.startswith("no better on held-out data") and not model.history_.ended_early
    held = np.random.default_rng(model.seed_).permutation(120)[:12]
    score = model.log_score(data[held], noisy[held]) + np.log(model.targets_.scale[0])
    assert score == pytest.approx(max(model.history_.held_out), abs=0.02)  # the best of all that there were
    weight = generator.uniform(size=120)
    with pytest.raises(ValueError, match="`validation_fraction` must be 0 where rows"):
        lf.LatentForceRegressor(validation_fraction=0.2).fit(data, noisy, weight)
    with pytest.raises(ValueError, match="`validation_fraction` must be 0 for an exact model"):
        lf.LatentForceRegressor("exact-lfm", validation_fraction=0.2).fit(data, noisy)


def test_choices_for_few_rows():
    narrow, wide = (3, 10, 13), (8, 20, 26)
    for num_rows, expected in {20: narrow, 455: narrow, 1351: narrow, 1352: wide, 2000: wide, 2001: wide}.items():
        chosen = choose("dlfm-driven", num_rows, 13, collapses=True)
        assert (chosen.width, chosen.num_frequencies, chosen.directions) == expected
        assert (chosen.restarts, chosen.steps) == ((4, 2000) if num_rows <= 2000 else (1, 4000))
        assert (chosen.batch_size is None) == (num_rows <= 2000)
    assert choose("dlfm-driven", 3000, 20, collapses=True).restarts == 4  # below 8 D^2
    assert [choose("dlfm-driven", n, 4, collapses=True).directions for n in (499, 500)] == [4, 8]
    for name in ("svgp", "dgp", "exact-gp"):  # kernels of all inputs at once, without directions
        assert choose(name, 455, 13, collapses=True).restarts == 1
    for num_rows, expected in {455: (10, 8, 4), 1351: (10, 25, 4), 1352: (20, 26, 1)}.items():  # one layer
        chosen = choose("lfm-driven", num_rows, 13, collapses=True)
        assert (chosen.num_frequencies, chosen.directions, chosen.restarts) == expected
    assert [choose("exact-lfm", n, 13, collapses=True).directions for n in (455, 3000)] == [4, 26]
    assert choose("lfm-driven", 20, 13, collapses=True).directions == 2
    assert choose("dlfm-driven", 455, 13, collapses=True, restarts=2).restarts == 2
    assert choose("lfm-driven", 455, 13, collapses=True, validation_fraction=0.2).optimizer == "adam"

"""Displays: they show what the estimator says, on the axes that they are given, and keep what they drew."""

import copy
import sys

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import kstest
from sklearn.exceptions import NotFittedError

import latentforce as lf
from latentforce.estimators._engine import Fitted
from latentforce.inference._prediction import Prediction
from latentforce.plots import (
    CalibrationDisplay,
    ComponentsDisplay,
    FeaturesDisplay,
    ForceDisplay,
    LayersDisplay,
    LearningCurveDisplay,
    PosteriorDisplay,
    ResidualsDisplay,
)
from latentforce.plots._beliefs import _ranks

matplotlib.use("agg")
GENERATOR = np.random.default_rng(0)
DAYS = pd.DataFrame({"day": pd.date_range("2024-01-01", periods=40, freq="D")})
LOAD = pd.Series(3 + np.sin(np.arange(40) / 5) + 0.1 * GENERATOR.standard_normal(40), name="load ($)")
SITES = pd.DataFrame(
    {
        "site": np.where(np.arange(50) % 3 == 0, "north", "south"),
        "wind": 10 * GENERATOR.random(50),
        "day": pd.date_range("2024-01-01", periods=50, freq="h"),
    }
)
YIELDS = np.stack([SITES["wind"] ** 2, np.where(SITES["site"] == "north", 1.0, -1.0)], axis=1)
YIELDS[::5, 1] = np.nan
QUICK = {"num_frequencies": 3, "steps": 5, "batch_size": 25, "precision": "float64"}  # batches: little to compile


@pytest.fixture(autouse=True)
def as_users_have_it():
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        yield


def fitted_once(function):
    """A fixture for the module, in JAX's own rules."""

    def make():
        with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
            return function()

    make.__name__ = function.__name__
    return pytest.fixture(scope="module")(make)


@fitted_once
def series():
    return lf.LatentForceRegressor("lfm-rff", **QUICK).fit(DAYS, LOAD)


@fitted_once
def deep():
    return lf.LatentForceRegressor("dlfm-rff", width=2, **QUICK).fit(DAYS, LOAD)


@fitted_once
def sites():
    return lf.LatentForceRegressor("ssgp", directions=3, **QUICK).fit(SITES, YIELDS)


@fitted_once
def classifier():
    labels = np.array(["low", "middle", "high"])[np.digitize(LOAD, [2.6, 3.4])]
    return lf.LatentForceClassifier("ssgp", **QUICK).fit(DAYS, labels)


@pytest.fixture
def exact(series):
    """As `series`, with an exact model that was not trained."""
    other = copy.copy(series).set_params(model="exact-gp")
    x, y = series.table_.encode(DAYS), series.targets_.encode(LOAD.to_numpy()[:, None])
    with jax.enable_x64(True):
        other.fitted_ = Fitted(jax.tree.map(np.asarray, lf.build("exact-gp", x, y)), x, y)
    return other


@pytest.fixture
def ax():
    return Figure().subplots()


def test_posterior(series, ax):
    display = PosteriorDisplay.from_estimator(series, DAYS, LOAD, ax=ax, color="black", num_samples=2)
    assert display.ax_ is ax and display.figure_ is ax.figure
    np.testing.assert_array_equal(display.x[[0, -1]], DAYS["day"].to_numpy()[[0, -1]].astype("datetime64[us]"))
    grid = pd.DataFrame({"day": display.x})
    np.testing.assert_allclose(display.line_.get_ydata(), series.predict(grid), rtol=1e-10)
    assert display.line_.get_color() == "black"
    for coverage in (0.5, 0.95):
        ends = series.predict_interval(grid, coverage=coverage).T
        np.testing.assert_allclose(display.bands[coverage], ends, rtol=1e-8)
    assert len(display.bands_) == 2 and len(display.samples_) == 2
    np.testing.assert_allclose(display.data_.get_ydata(), LOAD)
    assert ax.get_xlabel() == "day" and ax.get_ylabel() == r"load (\$)"  # a dollar, not a formula
    ax.figure.draw_without_rendering()
    assert "Feb" in [label.get_text() for label in ax.get_xticklabels()]


def test_posterior_along_one_of_several_columns(sites, ax):
    display = PosteriorDisplay.from_estimator(
        sites, SITES, YIELDS, column="wind", grid=7, held={"site": "north"}, ax=ax
    )
    rows = pd.DataFrame({"site": "north", "wind": display.x, "day": SITES["day"].median()})
    np.testing.assert_allclose(display.mean, sites.predict(rows)[:, 0], rtol=1e-8)
    assert display.data is None and len(display.x) == 7
    other = PosteriorDisplay.from_estimator(sites, column=0, grid=7, output=1, num_samples=0, ax=Figure().subplots())
    middle = pd.Timestamp("2024-01-02 00:30")
    rows = pd.DataFrame(
        {"site": ["north", "south"], "wind": (SITES["wind"].min() + SITES["wind"].max()) / 2, "day": middle}
    )
    np.testing.assert_allclose(other.mean, sites.predict(rows)[:, 1], rtol=1e-8)
    assert [label.get_text() for label in other.ax_.get_xticklabels()] == ["north", "south"]
    given = PosteriorDisplay.from_estimator(sites, column="wind", grid=[1.0, 2.0], num_samples=0, ax=ax)
    np.testing.assert_allclose(given.x, [1.0, 2.0])


def test_posterior_of_exact_models_and_of_classes(exact, classifier, ax):
    display = PosteriorDisplay.from_estimator(exact, grid=5, ax=ax, num_samples=300)
    assert np.all(np.abs(display.samples.mean(axis=0) - display.mean) < 0.2)
    display = PosteriorDisplay.from_estimator(classifier, output=2, grid=9, ax=ax)
    probability = classifier.predict_proba(pd.DataFrame({"day": display.x}))[:, 2]
    np.testing.assert_allclose(display.mean, probability, rtol=1e-8)
    low, high = display.bands[0.95]
    assert np.all((low >= 0) & (low < high) & (high <= 1)) and ax.get_ylabel() == "probability of middle"


def test_pyplot_is_for_new_axes_alone(series, ax, monkeypatch):
    import matplotlib.pyplot as plt

    monkeypatch.setattr(plt, "show", lambda *_: pytest.fail("nothing is shown"))
    before = plt.get_fignums()
    display = LearningCurveDisplay.from_estimator(series)
    assert len(plt.get_fignums()) == len(before) + 1 and display.figure_.number == plt.get_fignums()[-1]
    plt.close(display.figure_)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # it cannot be imported
    LearningCurveDisplay.from_estimator(series, ax=ax)
    CalibrationDisplay.from_ranks(np.linspace(0, 1, 20), ax=Figure().subplots())


def test_panels_divide_one_axes_or_take_their_own():
    ranks = np.linspace(0, 1, 50)
    figure = Figure()
    one, other = figure.subplots(1, 2)
    display = CalibrationDisplay.from_ranks(ranks, ax=one)
    assert len(display.axes_) == 2 and len(figure.axes) == 4 and not one.axison and other.axison
    assert display.axes_[1].get_position().x1 <= other.get_position().x0 + 0.05
    with pytest.raises(ValueError, match="`ax` must be None, one axes or 2 of them, one for each panel, got 3"):
        CalibrationDisplay.from_ranks(ranks, ax=list(Figure().subplots(1, 3)))
    with pytest.raises(ValueError, match="`ax` must come from `subplots` to be divided"):
        CalibrationDisplay.from_ranks(ranks, ax=Figure().add_axes((0, 0, 1, 1)))


def test_layers(deep, series):
    display = LayersDisplay.from_estimator(deep, grid=11, ax=Figure().subplots(1, 2))
    assert [len(lines) for lines in display.lines_] == [2, 1] and all(isinstance(ax, Axes) for ax in display.axes_)
    last = display.means[-1][:, 0] * deep.targets_.scale[0] + deep.targets_.shift[0]
    np.testing.assert_allclose(last, deep.predict(pd.DataFrame({"day": display.x})), rtol=1e-8)
    assert np.all(display.deviations[0] > 0) and display.axes_[0].get_xlabel() == "day"
    with pytest.raises(ValueError, match="`estimator` must be a deep model to have hidden layers, got 'lfm-rff'"):
        LayersDisplay.from_estimator(series)


def test_force(series, deep, sites, ax):
    display = ForceDisplay.from_estimator(series, ax=ax, grid=9)
    mean, std = series.predict_force(display.t, return_std=True)
    assert display.t.dtype.kind == "M" and display.t[0] == np.datetime64("2024-01-01")
    np.testing.assert_allclose(display.line_.get_ydata(), mean)
    np.testing.assert_allclose(display.std, std)
    hidden = ForceDisplay.from_estimator(deep, layer=1, ax=ax, grid=9)
    assert hidden.xlabel == "direction 1 of layer 2, scaled" and hidden.ylabel == "hidden force of layer 2"
    oblique = ForceDisplay.from_estimator(sites, np.array([0.0, 0.5]), direction=2, index=1, ax=ax)
    assert oblique.xlabel == "direction 3, scaled" and len(oblique.mean) == 2
    with pytest.raises(ValueError, match="`layer` must lie between 0 and 0, got 1"):
        ForceDisplay.from_estimator(series, layer=1)


def test_features(series, sites, exact, ax):
    display = FeaturesDisplay.from_estimator(series, ax=ax, grid=9, which=[0, 4])
    layer = series.model_.layers[0]
    process = jax.tree.map(lambda leaf: jnp.asarray(leaf)[0, 0], layer.outputs.process)
    with jax.enable_x64(True):
        whitened = layer.features.whitened(process, jnp.linspace(0.0, 1.0, 9))
    np.testing.assert_allclose(display.features, whitened, atol=1e-5)
    np.testing.assert_allclose(display.lines_[1].get_ydata(), display.features[:, 4])
    assert FeaturesDisplay.from_estimator(sites, direction=1, index=1, ax=ax).t[0] == -1.0
    for options, message in (({"which": [7]}, "`which` must hold numbers"), ({"index": 2}, "`index` must lie between")):
        with pytest.raises(ValueError, match=message):
            FeaturesDisplay.from_estimator(series, **options)
    with pytest.raises(ValueError, match="must have features to show them; 'exact-gp' is exact"):
        FeaturesDisplay.from_estimator(exact)


def test_learning_curve(series, classifier, ax):
    display = LearningCurveDisplay.from_estimator(series, ax=ax)
    np.testing.assert_allclose(display.line_.get_ydata(), series.history_.objective)
    assert display.step.tolist() == [1, 2, 3, 4, 5] and display.raw_ is None
    assert len(LearningCurveDisplay.from_estimator(classifier, ax=ax).objective) == 5
    noisy = np.sin(np.arange(500)) - 100 * (np.arange(500) < 5)
    display = LearningCurveDisplay(np.arange(500), noisy, held_out=([100, 400], [0.1, 0.2])).plot(Figure().subplots())
    assert np.std(display.smooth[50:]) < 0.2 < np.std(noisy[50:]) and display.ax_.get_ylim()[0] > -10
    assert display.raw_ is not None and display.held_out_.get_ydata().tolist() == [0.1, 0.2]


def test_calibration_of_numbers(series, sites):
    display = CalibrationDisplay.from_estimator(series, DAYS, LOAD, ax=Figure().subplots(1, 2))
    for nominal, empirical in zip(display.nominal[[5, 17]], display.empirical[[5, 17]], strict=True):
        low, high = series.predict_interval(DAYS, coverage=nominal).T
        assert empirical == pytest.approx(np.mean((low < LOAD) & (high > LOAD)))
    assert sum(bar.get_height() for bar in display.bars_) == pytest.approx(1.0)
    missing = CalibrationDisplay.from_estimator(sites, SITES, YIELDS, output=1, ax=Figure().subplots(1, 2))
    assert missing.counts[0] == 40
    y = GENERATOR.standard_normal(2000)
    right, narrow = (
        CalibrationDisplay.from_predictions(y, np.zeros(2000), np.full(2000, s), ax=Figure().subplots(1, 2))
        for s in (1.0, 0.5)
    )
    assert np.abs(right.empirical - right.nominal).max() < 0.04 and np.all(narrow.empirical < narrow.nominal - 0.01)


def test_ranks_of_counts_are_uniform_too():
    rate = GENERATOR.uniform(0.5, 3.0, (1, 3000, 1))
    counts = GENERATOR.poisson(rate[0]).astype(float)
    with jax.enable_x64(True):
        said = Prediction(jnp.log(rate), jnp.full(rate.shape, 1e-12), lf.Poisson())
        ranks = _ranks(said, jnp.asarray(counts))
        plain = np.asarray(said.cdf(jnp.asarray(counts)))
    assert kstest(ranks[:, 0], "uniform").pvalue > 0.01 > kstest(plain[:, 0], "uniform").pvalue


def test_calibration_of_classes(classifier):
    labels = classifier.predict(DAYS)
    display = CalibrationDisplay.from_estimator(classifier, DAYS, labels, output=1, ax=Figure().subplots(1, 2))
    probability = classifier.predict_proba(DAYS)[:, 1]
    assert np.average(display.nominal, weights=display.counts) == pytest.approx(probability.mean())
    assert np.average(display.empirical, weights=display.counts) == pytest.approx(np.mean(labels == "low"))
    assert display.axes_[0].get_xlabel() == "probability of low"


def test_residuals(series, sites, classifier, ax):
    display = ResidualsDisplay.from_estimator(series, DAYS, LOAD, ax=ax)
    mean, std = series.predict(DAYS, return_std=True)
    np.testing.assert_allclose(display.points_.get_ydata(), (LOAD - mean) / std, rtol=1e-8)
    np.testing.assert_allclose(display.points_.get_xdata(), mean, rtol=1e-8)
    actual = ResidualsDisplay.from_estimator(sites, SITES, YIELDS, output=1, kind="actual_vs_predicted", ax=ax)
    assert len(actual.y) == 40 and len(actual.bars_.get_segments()) == 40
    with pytest.raises(ValueError, match="`kind` must be one of residual_vs_predicted, actual_vs_predicted, got 'qq'"):
        ResidualsDisplay.from_predictions(mean, mean, std, kind="qq")
    with pytest.raises(
        ValueError, match="`estimator` must be a regressor to show residuals, got LatentForceClassifier"
    ):
        ResidualsDisplay.from_estimator(classifier, DAYS, LOAD)


def test_components(sites, classifier):
    options = {"grid": 4, "num_rows": 6, "num_samples": 50}
    display = ComponentsDisplay.from_estimator(sites, SITES, ax=Figure().subplots(1, 3), **options)
    assert display.names == ["site", "wind", "day"] and [len(grid) for grid in display.grids] == [2, 4, 4]
    rows = SITES.iloc[np.random.default_rng(0).permutation(50)[:6]]
    dependence = np.array([sites.predict(rows.assign(wind=value))[:, 0].mean() for value in display.grids[1]])
    np.testing.assert_allclose(display.means[1], dependence - dependence.mean(), rtol=1e-6, atol=1e-8)
    low, high = display.bands[1][0.95]
    assert np.all(low < display.means[1]) and np.all(high > display.means[1])
    assert len({ax.get_ylim() for ax in display.axes_}) == 1 and display.axes_[2].get_xlabel() == "day"
    largest = ComponentsDisplay.from_estimator(sites, SITES, most=1, ax=Figure().subplots(), **options)
    assert largest.names == [display.names[np.argmax(display.sizes)]]
    with pytest.raises(ValueError, match="must be a regressor to show the effects of inputs"):
        ComponentsDisplay.from_estimator(classifier, DAYS)


def test_bad_arguments(series, sites):
    with pytest.raises(ValueError, match=r"`column` must be one that changes \('site', 'wind', 'day'\), got 'rain'"):
        PosteriorDisplay.from_estimator(sites, column="rain")
    with pytest.raises(ValueError, match=r"`column` must be one that changes .* got None"):
        PosteriorDisplay.from_estimator(sites)
    with pytest.raises(ValueError, match="`output` must lie between 0 and 1, got 2"):
        PosteriorDisplay.from_estimator(sites, column="wind", output=2)
    with pytest.raises(ValueError, match="column 'site' that were not there"):
        PosteriorDisplay.from_estimator(sites, column="wind", held={"site": "east"})
    with pytest.raises(ValueError, match=r"`y` must be finite and of shape \(40, 1\), .* got \(39,\)"):
        ResidualsDisplay.from_estimator(series, DAYS, LOAD[1:])
    with pytest.raises(ValueError, match="`y` must have a number somewhere in column 1"):
        ResidualsDisplay.from_estimator(sites, SITES, np.where([True, False], YIELDS, np.nan), output=1)
    for display in (PosteriorDisplay, LayersDisplay, ForceDisplay, FeaturesDisplay, LearningCurveDisplay):
        with pytest.raises(NotFittedError):
            display.from_estimator(lf.LatentForceRegressor())
    with pytest.raises(NotFittedError):
        CalibrationDisplay.from_estimator(lf.LatentForceRegressor(), DAYS, LOAD)

"""Estimators of data that outgrow memory, or that keep coming."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import latentforce as lf
from latentforce.estimators import _engine
from latentforce.estimators._streams import Survey
from latentforce.estimators._table import Table

OPTIONS = {"num_frequencies": 8, "steps": 8}


@pytest.fixture(scope="module")
def data():
    generator = np.random.default_rng(0)
    t = generator.uniform(3.0, 13.0, 9000)
    return t[:, None], 1e4 + 50 * (np.sin(2 * t) + 0.1 * generator.standard_normal(9000))


def chunks(X, y, size=2000):
    return [(X[start : start + size], y[start : start + size]) for start in range(0, len(X), size)]


@pytest.fixture(scope="module")
def dense(data):
    """Fitted to the rows themselves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_engine, "in_sums", lambda model, rows: None)
        return lf.LatentForceRegressor("lfm-driven", **OPTIONS).fit(*data)


def close(one, other, X, rtol):
    (mean, std), (mean_there, std_there) = (estimator.predict(X, return_std=True) for estimator in (one, other))
    np.testing.assert_allclose(mean - 1e4, mean_there - 1e4, rtol=rtol, atol=50 * rtol)
    np.testing.assert_allclose(std, std_there, rtol=rtol)


def test_many_rows_are_fitted_through_sums(data, dense):
    short = lf.LatentForceRegressor("lfm-driven", **OPTIONS).fit(*data)
    np.testing.assert_allclose(short.history_.objective, dense.history_.objective, rtol=1e-6)
    close(short, dense, data[0][:100], 1e-5)


def test_chunks_are_fitted_like_the_whole(data, dense):
    X, y = data
    for source in (chunks(X, y), lambda: iter(chunks(X, y, 777))):
        streamed = lf.LatentForceRegressor("lfm-driven", **OPTIONS).fit_chunks(source)
        assert streamed.record_["rows"] == len(X) and streamed.n_features_in_ == 1
        np.testing.assert_allclose(streamed.targets_.scale, dense.targets_.scale, rtol=1e-9)
        close(streamed, dense, X[:100], 1e-5)


def test_an_iterator_is_enough_where_the_interval_is_given(data):
    X, y = data
    once = lf.LatentForceRegressor("gp-vff", interval=(0.0, 16.0), **OPTIONS).fit_chunks(iter(chunks(X, y)))
    assert once.bounds_ == (0.0, 1.0) and once.score(X, y) > 0.95
    with pytest.raises(ValueError, match="`chunks` must be something to go through twice"):
        lf.LatentForceRegressor("lfm-driven").fit_chunks(iter(chunks(X, y)))
    with pytest.raises(ValueError, match="must lie inside `interval`"):
        lf.LatentForceRegressor("lfm-driven", interval=(5.0, 9.0)).fit_chunks(chunks(X, y))


def test_chunks_of_frames_weights_and_several_targets(data):
    X, y = data
    times = pd.Timestamp("2024-01-01") + pd.to_timedelta(X[:, 0], unit="h")
    frame, targets = pd.DataFrame({"time": times}), pd.DataFrame({"a": y, "b": -y})
    parts = [(frame[i::3], targets[i::3], np.full(len(frame[i::3]), 2.0)) for i in range(3)]
    fitted = lf.LatentForceRegressor("gp-driven", **OPTIONS).fit_chunks(parts)
    assert fitted.targets_.names == ("a", "b") and list(fitted.feature_names_in_) == ["time"]
    prediction = fitted.predict(frame[:50])
    np.testing.assert_allclose(prediction[:, 0], -prediction[:, 1], rtol=1e-6)
    assert fitted.record_["rows"] == 2 * len(X)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([], "`chunks` must hold some data"),
        ([(np.zeros((3, 2)), np.zeros(3))], "`chunks` must have one input column, of numbers or times, got x0, x1"),
        ([(np.zeros((3, 1)), np.zeros(3))], "`chunks` must have one input column that changes"),
        ([(np.arange(3.0), np.array([[0.0], [np.nan], [1.0]]))], "`chunks` must have all targets observed"),
        ([(np.arange(3.0), np.zeros(2))], "`y` must have as many rows as `X`"),
    ],
)
def test_bad_chunks(source, message):
    with pytest.raises(ValueError, match=message):
        lf.LatentForceRegressor("lfm-driven").fit_chunks(source)


def test_models_that_are_trained_by_batches():
    """Deep ones, of columns of all kinds, whose ranges, levels and units no single chunk knows."""
    generator = np.random.default_rng(2)
    x, level = np.sort(generator.uniform(3.0, 13.0, 600)), np.repeat(["low", "high", "none"], 200)
    y = 1e4 + 50 * (np.sin(x) + (level == "high"))
    frame = pd.DataFrame({"x": x, "level": level})
    fitted = lf.LatentForceRegressor("dgp-driven", num_frequencies=3, steps=60, width=1, batch_size=50)
    fitted.fit_chunks(lambda: ((frame[k : k + 70], y[k : k + 70]) for k in range(0, 600, 70)))
    assert fitted.record_["rows"] == 600 and fitted.choices_.batch_size == 50 and fitted.n_iter_ == 60
    assert fitted.table_ == Table.of(frame)
    np.testing.assert_allclose((fitted.targets_.shift, fitted.targets_.scale), ([y.mean()], [y.std()]), rtol=1e-12)
    assert fitted.score(frame, y) > 0.5


def test_a_sample_of_all_chunks():
    """Some thousand rows, as likely from any chunk, and the ends of each column."""
    pieces = [(np.stack([np.full(1000, k), np.arange(1000.0)], axis=1), np.full(1000, k)) for k in range(20)]
    x, y, weight = Survey(pieces, scaled=False).sample()
    assert 1000 < weight.sum() < 2**12 and weight[-4:].tolist() == [0.0] * 4
    np.testing.assert_allclose(x[:-4, 0] * 19, y[:-4, 0])
    assert np.bincount(y[:-4, 0].astype(int)).min() > 50
    assert x.min(axis=0).tolist() == [0.0, 0.0] and x.max(axis=0).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ([], "`chunks` must hold some data"),
        (iter([(np.zeros((3, 2)), np.zeros(3))]), "`chunks` must be something to go through again and again"),
        ([(np.zeros((3, 2)), np.zeros(3), np.ones(3))], "`chunks` must have no weights"),
        ([(pd.DataFrame({"a": [1.0]}), [1.0]), (pd.DataFrame({"b": [1.0]}), [1.0])], "`chunks` must all have the same"),
    ],
)
def test_bad_chunks_for_batches(source, message):
    with pytest.raises(ValueError, match=message):
        lf.LatentForceRegressor("dlfm-driven").fit_chunks(source)


def test_models_that_cannot_be_summed_up(data):
    with pytest.raises(ValueError, match="`model` must not be exact for data in chunks"):
        lf.LatentForceRegressor("exact-gp").fit_chunks(chunks(*data))
    assert not hasattr(lf.LatentForceRegressor("dlfm-driven"), "partial_fit")
    assert not hasattr(lf.LatentForceRegressor("lfm-driven", likelihood="student-t"), "partial_fit")


@pytest.mark.parametrize(("name", "columns"), [("gp-driven", 1), ("svgp", 2)])
def test_further_rows_are_absorbed_exactly(name, columns):
    generator = np.random.default_rng(1)
    X = generator.uniform(size=(90, columns))
    y = np.sin(5 * X[:, 0]) + 0.1 * generator.standard_normal(90)
    X[:2], weight = [[0.0] * columns, [1.0] * columns], generator.uniform(0.5, 2.0, 90)
    online = lf.LatentForceRegressor(name, num_frequencies=5, steps=10).partial_fit(X[:30], y[:30], weight[:30])
    begun = online.model_
    online.partial_fit(X[30:50], y[30:50], weight[30:50]).partial_fit(X[50:], y[50:], weight[50:])
    assert online.record_["rows"] == 90
    with jax.enable_x64(True):
        scaled = jnp.asarray(online.table_.encode(X)), jnp.asarray(online.targets_.encode(y[:, None]))
        whole = lf.collapse(jax.tree.map(jnp.asarray, begun), lf.whole(*scaled, jnp.asarray(weight)))
        expected = lf.predict(whole, scaled[0])
        moments = online.targets_.values(expected.mean), online.targets_.sizes(jnp.sqrt(expected.variance))
    np.testing.assert_allclose(online.predict(X, return_std=True), moments, rtol=1e-6, atol=1e-8)
    with pytest.raises(ValueError, match="`y` must be observed everywhere"):
        online.partial_fit(X[:2], np.array([[0.0], [np.nan]]))


def test_updates_survive_a_file(tmp_path):
    x = np.linspace(0.0, 1.0, 40)[:, None]
    first = lf.LatentForceRegressor("ssgp", **OPTIONS).fit(x, np.sin(5 * x[:, 0]))
    first.save(tmp_path / "model.lforce")
    second = lf.load(tmp_path / "model.lforce")
    for one in (first, second):
        one.partial_fit(x[:9], np.cos(5 * x[:9, 0]))
    np.testing.assert_allclose(first.predict(x), second.predict(x), rtol=1e-9)

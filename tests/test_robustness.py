"""Training on awkward data gives finite numbers or a named error. The whole matrix: benchmarks/robustness.py."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import latentforce as lf
from latentforce.inference._exact import ExactModel
from latentforce.inference._prediction import mean_log_density

RNG = np.random.default_rng(0)
X = np.sort(RNG.uniform(size=(20, 1)), axis=0)
Y = np.sin(6 * X[:, 0]) + 0.1 * RNG.standard_normal(20)
NAN, INF = float("nan"), float("inf")


def awkward():
    """Data sets of one shape, so that they share compiled programs."""
    outliers = Y.copy()
    outliers[[3, 15]] += np.array([1e3, -1e3]) * Y.std()
    return {
        "duplicated inputs with outliers": (np.repeat(X[::5], 5, axis=0), outliers),
        "constant": (X, np.full(20, 2.0)),
        "small inputs": (1e-6 * X, Y),
        "large inputs": (1e6 * X, Y),
    }


def small(name="ssgp", x=X, y=Y):
    return lf.build(name, x, y, num_frequencies=3)


def train(model, x=X, y=Y, **options):
    """Steps and chunks are the same wherever they can be: so are the compiled programs."""
    return lf.fit(model, x, y, **{"steps": 200, "chunk": 100, "num_samples": 2, **options})


def moments(model, x, y):
    if isinstance(model, ExactModel):
        return lf.condition(model, jnp.asarray(x, float), jnp.asarray(y[:, None], float)).moments(jnp.asarray(x, float))
    prediction = lf.predict(model, x, num_samples=10)
    return prediction.mean, prediction.variance


def assert_finite(tree):
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        assert np.all(np.isfinite(np.asarray(leaf))), jax.tree_util.keystr(path)


def assert_same(one, other, **tolerance):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, **tolerance), one, other)


@pytest.mark.parametrize("name", ["svgp", "exact-lfm"])
def test_awkward_data_train(name, dtype):
    for label, (x, y) in awkward().items():
        fit = train(small(name, x, y), x, y)
        assert len(fit.history.objective) == 200, label
        assert_finite((fit.history.objective, fit.history.gradient_norm, fit.model, moments(fit.model, x, y)))


@pytest.mark.parametrize(("name", "precision"), [("lfm-rff", "float32"), ("dlfm-driven", "float32")])
def test_awkward_data_train_in_one_precision(name, precision):
    """These take long to compile; benchmarks/robustness.py has them in both."""
    with jax.enable_x64(precision == "float64"):
        test_awkward_data_train(name, precision)


def test_no_way_to_start_is_a_named_error(dtype):
    model = small()
    y = Y * (1e200 if dtype == "float64" else 1e30)
    with pytest.raises(lf.TrainingError, match="not finite at the start") as caught:
        train(model, y=y)
    for cause in ("scaled", "learning rate", "float64"):
        assert cause in str(caught.value)
    assert caught.value.history.retries == 1
    assert caught.value.history.objective == []
    assert_same(caught.value.model, model, rtol=1e-5)


@pytest.mark.parametrize(("rate", "steps"), [(1e3, 1), (1e3, 20), (1e6, 20)])
def test_absurd_steps_are_retried_or_a_named_error(rate, steps, dtype):
    """Also the last step, after which there is none that would notice."""
    try:
        fit = train(small(), steps=steps, chunk=10, learning_rate=rate)
    except lf.TrainingError as error:
        assert "steps 16384 times smaller" in str(error)
        assert error.history.retries >= 8
        assert_finite((error.model, error.history.objective))
    else:
        assert len(fit.history.objective) == steps
        assert_finite((fit.model, fit.history.objective, moments(fit.model, X, Y)))


def test_a_failure_now_and_then_does_not_add_up():
    """Only failures in a row stop the training."""

    def fragile(model, batch, key):
        return jnp.where(jax.random.uniform(key) < 0.1, jnp.nan, 1.0) * lf.elbo(model, batch, key)

    fit = train(small(), objective=fragile, steps=100, chunk=2, seed=1)
    assert fit.history.retries > 8
    assert len(fit.history.objective) == 100
    assert_finite((fit.model, fit.history.objective))


def test_same_seed_same_training():
    model = small("dgp-rff")
    first, second, other = (train(model, batch_size=8, seed=seed) for seed in (1, 1, 2))
    assert_same(first.model, second.model, rtol=0)
    assert first.history.objective == second.history.objective
    assert first.history.objective != other.history.objective


def test_a_row_without_targets_is_no_row(x64):
    known = np.arange(20) % 3 > 0
    missing = np.where(known, Y, NAN)
    model = small()
    assert_same(train(model, y=missing).model, train(model, X[known], Y[known]).model, rtol=1e-4, atol=1e-6)


def test_one_target_of_two_may_be_missing(dtype):
    y = np.stack([Y, np.where(X[:, 0] > 0.5, Y, NAN)], axis=1)
    fit = train(small(y=y), y=y)
    prediction = lf.predict(fit.model, X, num_samples=10)
    assert_finite((fit.model, fit.history.objective, prediction.mean, prediction.variance))
    assert prediction.mean.shape == (20, 2)


def test_weights_are_repetitions(x64):
    model, weight = small(), np.tile([0, 1, 3, 0], 5)
    repeated = np.repeat(np.arange(20), weight)
    assert_same(train(model, weight=weight).model, train(model, X[repeated], Y[repeated]).model, rtol=1e-4, atol=1e-6)


def test_the_callback_stops():
    seen = []

    def callback(progress):
        seen.append(progress.step)
        assert progress.total == 200
        assert progress.objective == progress.history.objective[-1]
        assert_finite(progress.model)
        return progress.step >= 20

    fit = train(small(), chunk=10, callback=callback)
    assert seen == [10, 20]
    assert len(fit.history.objective) == 20
    assert fit.history.stopped == "stopped by the callback"


def test_held_out_data_stop_and_the_best_is_kept():
    """Held-out targets that contradict the others: the more is learned, the worse."""
    model, held_out = small(), (X, -Y)
    fit = train(model, held_out=held_out, patience=2, chunk=10)
    scores, best = fit.history.held_out, int(np.argmax(fit.history.held_out))
    assert len(scores) == best + 3 < 20
    assert fit.history.stopped == f"no better on held-out data since step {10 * (best + 1)}"
    score = mean_log_density(fit.model, jnp.asarray(X, float), jnp.asarray(-Y[:, None], float))
    assert float(score) == pytest.approx(scores[best], rel=1e-5)
    assert len(fit.history.objective) == 10 * len(scores)


FIT = [
    ({"x": np.where(X > 0.5, NAN, X)}, r"`x` must be finite, got nan at index \("),
    ({"y": np.where(Y > 0.5, INF, Y)}, r"`y` must be finite, got inf at index \("),
    ({"y": Y[:-1]}, r"`y` must have as many rows as `x` \(20\), got 19"),
    ({"x": X[:, :, None]}, "`x` must be a 1-D or 2-D array"),
    ({"y": Y[:, None, None]}, "`y` must be a 1-D or 2-D array"),
    ({"x": X[:0], "y": Y[:0]}, "`x` must be a 1-D or 2-D array of numbers with at least one row"),
    ({"y": np.stack([Y, Y], axis=1)}, "`y` must have as many columns"),
    (
        {"x": np.concatenate([X, X], axis=1)},
        r"`x` must have \d columns, as the data that the model was built for, got \d",
    ),
    ({"steps": 0}, "`steps` must be a whole number of at least 1, got 0"),
    ({"chunk": 0}, "`chunk` must be a whole number of at least 1, got 0"),
    ({"batch_size": 0}, "`batch_size` must be a whole number of at least 1, got 0"),
    ({"num_samples": 0}, "`num_samples` must be a whole number of at least 1, got 0"),
    ({"patience": 0}, "`patience` must be a whole number of at least 1, got 0"),
    ({"learning_rate": NAN}, "`learning_rate` must be"),
    ({"learning_rate": -0.1}, "`learning_rate` must be"),
    ({"natural": -1.0}, "`natural` must be"),
    ({"weight": -np.ones(20)}, "`weight` must be 20 numbers, none negative"),
    ({"weight": np.zeros(20)}, "`weight` must be 20 numbers, none negative and not all zero"),
    ({"weight": np.ones(19)}, "`weight` must be 20 numbers"),
    ({"weight": np.full(20, NAN)}, "`weight` must be finite"),
    ({"held_out": (X, Y[:-1])}, "`y` must have as many rows as `x`"),
]


@pytest.mark.parametrize(("options", "message"), FIT)
def test_bad_arguments_of_fit(options, message):
    with pytest.raises(ValueError, match=message):
        train(small("ssgp"), **options)


EXACT = [
    ({"y": np.where(Y > 0.5, NAN, Y)}, "`y` must be observed everywhere"),
    ({"natural": 1.0}, "`natural` must be None for an exact model"),
    ({"batch_size": 5}, "`batch_size` must be None for an exact model"),
    ({"weight": np.arange(20)}, "`weight` must be None for an exact model"),
    ({"held_out": (X, Y)}, "`held_out` must be None for an exact model"),
]


@pytest.mark.parametrize(("options", "message"), EXACT)
def test_what_exact_models_cannot_do(options, message):
    with pytest.raises(ValueError, match=message):
        train(small("exact-lfm"), **options)


BUILD = [
    (("nope", X, Y), "`name` must be one of svgp, .*, got 'nope'"),
    (("svgp", NAN * X, Y), "`x` must be finite, got nan"),
    (("svgp", X, INF * Y), "`y` must be finite, got -?inf"),
    (("svgp", X, Y[:-1]), r"`y` must have as many rows as `x` \(20\), got 19"),
    (("svgp", X[None], Y), "`x` must be a 1-D or 2-D array"),
]


@pytest.mark.parametrize(("arguments", "message"), BUILD)
def test_bad_arguments_of_build(arguments, message):
    with pytest.raises(ValueError, match=message):
        lf.build(*arguments)

"""The classifier: scikit-learn's contract, probabilities that mean something, and files."""

import jax
import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import latentforce as lf

GENERATOR = np.random.default_rng(0)
X = np.sort(GENERATOR.uniform(0.0, 10.0, (80, 1)), axis=0)
CHANCE = 1 / (1 + np.exp(-4 * np.sin(X[:, 0])))
TWO = np.where(GENERATOR.uniform(size=80) < CHANCE, "up", "down")
THREE = np.array([7, 3, 5])[np.digitize(X[:, 0], [3.0, 6.0])]


@pytest.fixture(autouse=True)
def as_users_have_it():
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        yield


CHECKED = {"num_frequencies": 5, "steps": 50, "learning_rate": 0.3, "precision": "float64"}


@pytest.mark.filterwarnings("ignore::latentforce.ExtrapolationWarning")
@parametrize_with_checks([lf.LatentForceClassifier("ssgp", **CHECKED)])  # the same code for all, and little to compile
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def fitted():
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        options = {"num_frequencies": 8, "steps": 400, "learning_rate": 0.1}
        return [lf.LatentForceClassifier("lfm-driven", **options).fit(X, y) for y in (TWO, THREE)]


def test_probabilities_are_near_those_that_made_the_data(fitted):
    two, _ = fitted
    probability = two.predict_proba(X)
    assert two.classes_.tolist() == ["down", "up"] and probability.shape == (80, 2)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0, rtol=1e-12)
    assert np.mean(np.abs(probability[:, 1] - CHANCE)) < 0.15
    assert two.score(X, TWO) > 0.75
    exact = np.mean(np.log(np.where(two.predict_proba(X)[:, 1] > 0, probability[np.arange(80), (TWO == "up") * 1], 1)))
    np.testing.assert_allclose(two.log_score(X, TWO), exact, rtol=1e-12)


def test_several_classes(fitted):
    _, three = fitted
    probability = three.predict_proba(X)
    assert three.classes_.tolist() == [3, 5, 7] and probability.shape == (80, 3)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0, rtol=1e-12)
    assert three.score(X, THREE) > 0.95 and three.predict(X).dtype == THREE.dtype
    assert three.summary().to_dict()["model"]["classes"] == "3, 5, 7" and three.record_["targets"] == ["y"]


def test_there_and_back(fitted, tmp_path):
    for number, (classifier, y) in enumerate(zip(fitted, (TWO, THREE), strict=True)):
        classifier.save(tmp_path / str(number))
        again = lf.load(tmp_path / str(number))
        np.testing.assert_array_equal(again.predict_proba(X), classifier.predict_proba(X))
        np.testing.assert_array_equal(again.predict(X), classifier.predict(X))
        assert again.score(X, y) == classifier.score(X, y)


def test_bad_input(fitted):
    with pytest.raises(ValueError, match="at least two classes, got one class"):
        lf.LatentForceClassifier("ssgp").fit(X, np.ones(80, int))
    with pytest.raises(ValueError, match="`model` must not be exact for a classifier, got 'exact-gp'"):
        lf.LatentForceClassifier("exact-gp").fit(X, TWO)
    with pytest.raises(ValueError, match="`likelihood` must be one of None, bernoulli, got 'gaussian'"):
        lf.LatentForceClassifier("ssgp", likelihood="gaussian").fit(X, TWO)
    with pytest.raises(ValueError, match="`y` must hold classes that were there for `fit`, got 'sideways'"):
        fitted[0].log_score(X[:2], ["up", "sideways"])

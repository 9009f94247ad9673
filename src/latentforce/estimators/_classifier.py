"""The classifier: the same engine, with probabilities of classes instead of numbers."""

from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, column_or_1d

from ..depth._likelihoods import AbstractLikelihood, Bernoulli
from ._base import LatentForceEstimator
from ._engine import in_float64
from ._targets import Targets, target_names


class LatentForceClassifier(ClassifierMixin, LatentForceEstimator):
    """Classification by a (deep) latent force model, with scikit-learn's conventions.

    Two classes are one function through a sigmoid; more are one function each against the rest, trained together, and
    their probabilities are divided by their sum. Arguments as for [`latentforce.LatentForceRegressor`][]; exact
    models and likelihoods of numbers are not for classes.

    **Attributes:** `classes_`, and those of the regressor.

    !!! example

        >>> import numpy as np, latentforce as lf
        >>> x = np.linspace(0.0, 10.0, 60)[:, None]
        >>> y = np.where(np.sin(x[:, 0]) > 0, "up", "down")
        >>> classifier = lf.LatentForceClassifier("lfm-driven", num_frequencies=10, steps=300).fit(x, y)
        >>> classifier.predict_proba(x).shape, bool(classifier.score(x, y) > 0.9)
        ((60, 2), True)
    """

    LIKELIHOODS: ClassVar[dict[str, tuple[type[AbstractLikelihood], bool]]] = {"bernoulli": (Bernoulli, False)}

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "LatentForceClassifier":
        """Train on inputs X (N, D) and classes y (N,); a weight of two is the row twice."""
        self._check()
        X = self._validated(X, reset=True)
        codes = self._encode(y, X.shape[0])
        weight = np.asarray(_check_sample_weight(sample_weight, codes, dtype=np.float64, ensure_non_negative=True))
        if len(np.unique(codes[weight > 0])) < 2:
            raise ValueError("`sample_weight` must leave at least two classes in `y`, it leaves less: a single class.")
        P = 1 if len(self.classes_) == 2 else len(self.classes_)
        names = tuple(str(name) for name in (self.classes_[1:] if P == 1 else self.classes_))
        units = Targets(np.zeros(P), np.ones(P), P == 1, names)
        targets = codes[:, None] if P == 1 else np.eye(P)[codes]
        self._train(X, targets.astype(np.float64), lambda *_: units, weight, target_names(y, 1))
        return self

    @in_float64
    def predict_proba(self, X: Any) -> np.ndarray:
        """The probability of each class (N, C), in the order of `classes_`."""
        check_is_fitted(self)
        means = self._by_block(X, lambda x, _: np.asarray(self.fitted_.mean(x, self.seed_)))
        return shares(means)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class (N,)."""
        check_is_fitted(self)
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]

    def log_score(self, X: Any, y: Any) -> float:
        """The mean log probability of the classes that were seen: larger is better."""
        probability = self.predict_proba(X)
        known = column_or_1d(y)
        strange = sorted(set(known.tolist()) - set(self.classes_.tolist()))
        if strange:
            raise ValueError(f"`y` must hold classes that were there for `fit`, got {strange[0]!r}.")
        return float(np.mean(np.log(probability[np.arange(len(known)), np.searchsorted(self.classes_, known)])))

    def _encode(self, y: Any, num_rows: int) -> np.ndarray:
        """The number of each row's class; `classes_` is learned."""
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        y = column_or_1d(y, warn=True)
        if y.dtype.kind == "f":
            assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        if len(y) != num_rows:
            raise ValueError(f"`y` must have as many rows as `X` ({num_rows}), got {len(y)}: inconsistent.")
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"`y` must have at least two classes, got one class: {self.classes_.tolist()}.")
        if self.model.startswith("exact"):
            raise ValueError(f"`model` must not be exact for a classifier, got {self.model!r}.")
        return codes


def shares(p: np.ndarray) -> np.ndarray:
    """Probabilities of all classes (..., C), from p of the second of two (..., 1) or of each against the rest."""
    return np.concatenate([1 - p, p], axis=-1) if p.shape[-1] == 1 else p / p.sum(axis=-1, keepdims=True)

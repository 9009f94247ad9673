"""The regressor: calibrated predictions in three lines, every knob for those who want it."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from .._checks import share
from ..depth._likelihoods import AbstractLikelihood, Gaussian, HeteroscedasticGaussian, Poisson, StudentT
from ..depth._model import Model
from ..inference._devices import Devices
from ..inference._prediction import AbstractPrediction
from ..presets import PRESETS
from ._base import LatentForceEstimator, key
from ._choices import GIVABLE, choose
from ._engine import Rows, in_float64, resolution
from ._frames import interval_frame, quantile_frame
from ._streams import Stream, Survey
from ._targets import Targets, as_targets, target_names


def updatable(estimator: Any) -> bool:
    """Whether q can be known in closed form: one layer, not exact, Gaussian noise, no mixing."""
    preset = PRESETS.get(estimator.model)
    shallow = preset is not None and not preset.deep and preset.features is not None
    return shallow and estimator.likelihood in (None, "gaussian") and estimator.num_latents is None


class LatentForceRegressor(RegressorMixin, LatentForceEstimator):
    """Regression by a (deep) latent force model, with scikit-learn's conventions.

    Inputs and targets are scaled inside, and everything comes back in the user's units. Inputs may be a matrix or a
    data frame with columns of numbers, times or text; targets 1-D, or 2-D where NaN means "not observed". What is None
    is chosen from the data (`choices_`, `summary()`).

    **Arguments:**

    - `model`: a name of [`latentforce.presets`][].
    - `depth`, `width`, `num_frequencies`, `nu`, `directions`, `covariance`, `num_forces`, `num_latents`,
      `train_filters`: as for [`latentforce.build`][].
    - `interval`: where the features live, in the units of the one input column; None: the range of the training data
      and a tenth more. It is settled by `fit`; far outside a warning is given, and predictions are the prior's.
    - `filter`: "first", "second", or a filter in the units of the one input column.
    - `likelihood`: "gaussian" (None), "student-t", "heteroscedastic" or "poisson".
    - `steps`, `batch_size`, `learning_rate`, `num_samples`, `checkpoint`, `every`, `resume`: as for
      [`latentforce.fit`][]; `restarts`: from how many starting points (four for deep models of several inputs and up
      to 2000 rows, and for shallow ones with learned directions and few rows); predictions are of all the models they
      lead to together, but for those that end half a nat a row below the best; parameters, forces and layers are those
      of the best.
    - `validation_fraction`: the share of rows (of equal weight) held out from the training of an approximate model,
      to take its state where they are predicted best; 0 for none.
    - `devices`: None for one, a number, or "all", also those of other processes (see [`latentforce.distribute`][]),
      each of which is given all data and trains on its share.
    - `precision`: "float32" or "float64", for training by batches or draws; all else is done in float64.
    - `random_state`: a seed. `verbose`: 1 for a progress bar. `callback`: sees a `Progress` now and then.

    **Attributes:** `model_` (in scaled units), `history_`, `choices_`, `record_`, `n_features_in_`,
    `feature_names_in_`, `n_iter_`.

    !!! example

        >>> import numpy as np, latentforce as lf
        >>> x = np.linspace(0.0, 10.0, 50)[:, None]
        >>> regressor = lf.LatentForceRegressor("lfm-driven", steps=200).fit(x, np.sin(x[:, 0]))
        >>> mean, std = regressor.predict(x, return_std=True)
        >>> low, high = regressor.predict_interval(x, coverage=0.9).T
        >>> mean.shape, std.shape, bool(np.all(low < high))
        ((50,), (50,), True)
        >>> regressor.predict_force(np.linspace(0.0, 10.0, 7)).shape
        (7,)
    """

    LIKELIHOODS: ClassVar[dict[str, tuple[type[AbstractLikelihood], bool]]] = {
        "gaussian": (Gaussian, True),
        "student-t": (StudentT, True),
        "heteroscedastic": (HeteroscedasticGaussian, True),
        "poisson": (Poisson, False),
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "LatentForceRegressor":
        """Train on inputs X (N, D) and targets y (N,) or (N, P); a weight of two is the row twice."""
        self._check()
        X = self._validated(X, reset=True)
        targets, flat = as_targets(y, X.shape[0])
        names = target_names(y, targets.shape[1])
        learn = partial(Targets.of, names=names, flat=flat, scaled=self._likelihood[1])
        self._train(X, targets, learn, sample_weight, names)
        return self

    def fit_chunks(self, chunks: Any) -> "LatentForceRegressor":
        """Train on any number of rows that come in chunks `(X, y)`, in memory that does not grow.

        `chunks`: a list, a function that returns an iterator, or anything that can be gone through again and again:
        first for ranges and units, then for shuffled batches (see [`latentforce.Batches`][]), read ahead on a thread.

        Shallow models of Fourier features with Gaussian noise, of one input column, need a second pass alone, for sums
        that serve all hyperparameters; chunks may then be `(X, y, weight)`. Where `interval` is given, once is enough
        for them, and an iterator will do.
        """
        self._check()
        started, preset = time.perf_counter(), PRESETS[self.model]
        if preset.features is None:
            raise ValueError(f"`model` must not be exact for data in chunks, got {self.model!r}.")
        choices = choose(self.model, 2, 1, True, **{name: getattr(self, name) for name in GIVABLE})
        if not updatable(self) or preset.features not in ("harmonic", "driven") or choices.optimizer != "lbfgs":
            return self._fit_batches(chunks, started)
        stream = Stream(chunks, self.interval)
        validate_data(self, stream.first, reset=True, skip_check_array=True)
        self.table_ = stream.table
        with jax.enable_x64(True):
            sums, self.targets_ = stream.sums(resolution(choices.num_frequencies))
            ends = Rows(np.array([[0.0], [1.0]]), np.zeros((2, len(stream.names))), np.ones(2), sums)
            self._train_rows(ends, round(float(sums.num_data)), stream.names, started)
        return self

    def _fit_batches(self, chunks: Any, started: float) -> "LatentForceRegressor":
        survey = Survey(chunks, self._likelihood[1])
        validate_data(self, survey.first, reset=True, skip_check_array=True)
        self.table_, self.targets_ = survey.table, survey.targets
        num_rows = sum(survey.rows)
        batches = survey.batches(self.batch_size or 1000, self._seed(), Devices.of(self.devices))
        self._train_rows(Rows(*survey.sample(), batches=batches), num_rows, survey.names, started)
        return self

    @available_if(updatable)
    @in_float64
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> "LatentForceRegressor":
        """Bring a fitted model up to date with further rows, exactly: as if all had been there, at its hyperparameters
        and units, which stay as they are. The first call is `fit`. For shallow models and Gaussian noise.
        """
        if not hasattr(self, "fitted_"):
            return self.fit(X, y, sample_weight)
        if not isinstance(self.model_, Model) or self.choices_.optimizer != "lbfgs":
            raise ValueError(
                "`partial_fit` needs a q that is known in closed form: all targets observed, not too many features."
            )
        blocks = list(self._blocks(X))
        targets, _ = as_targets(y, len(X))
        if np.isnan(targets).any():
            raise ValueError("`y` must be observed everywhere to update a model, got NaN.")
        weight = np.asarray(_check_sample_weight(sample_weight, targets, dtype=np.float64, ensure_non_negative=True))
        for x, rows in blocks:
            self.fitted_ = self.fitted_.updated(Rows(x, self.targets_.encode(targets[rows]), weight[rows]))
        self.record_ = self.record_ | {"rows": self.record_["rows"] + len(targets)}
        return self

    @in_float64
    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The mean of y (N,) or (N, P); with `return_std` also its standard deviation, noise included."""
        check_is_fitted(self)
        if not return_std:
            return self._by_block(X, lambda x, _: self.targets_.values(self.fitted_.mean(x, self.seed_)))

        def both(prediction: AbstractPrediction, _: slice) -> np.ndarray:
            std = self.targets_.sizes(jnp.sqrt(prediction.variance))
            return np.stack([self.targets_.values(prediction.mean), std], axis=1)

        mean, std = np.moveaxis(self._predictions(X, both), 1, 0)
        return mean, std

    def predict_quantiles(self, X: Any, q: Any, as_frame: bool = False) -> Any:
        """The quantiles of y at levels q (K,): (N, K), or (N, P, K) for 2-D targets.

        `as_frame`: a pandas frame instead, with columns (target, level), as skpro and sktime have it.
        """
        levels = [float(level) for level in np.atleast_1d(q)]
        values = self._quantiles(X, levels)
        return quantile_frame(values, self.targets_.names, levels, X) if as_frame else values

    def predict_interval(self, X: Any, coverage: float | Sequence[float] = 0.9, as_frame: bool = False) -> Any:
        """The central interval that holds y with probability `coverage`: (N, 2), or (N, P, 2) for 2-D targets.

        `as_frame`: a pandas frame instead, with columns (target, coverage, "lower" or "upper"), as skpro and sktime
        have it; there may then be several coverages.
        """
        coverages = [float(one) for one in np.atleast_1d(coverage)]
        for one in coverages:
            share("coverage", one)
        if len(coverages) > 1 and not as_frame:
            raise ValueError(f"`coverage` must be one number unless `as_frame` is True, got {len(coverages)}.")
        values = self._quantiles(X, [level for one in coverages for level in ((1 - one) / 2, (1 + one) / 2)])
        return interval_frame(values, self.targets_.names, coverages, X) if as_frame else values

    @in_float64
    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> np.ndarray:
        """Draws of y (N, n_samples), or (N, P, n_samples): each row by itself."""
        root = key(random_state)

        def draws(prediction: AbstractPrediction, rows: slice) -> np.ndarray:
            drawn = prediction.sample(jax.random.fold_in(root, rows.start), n_samples)
            return np.moveaxis(self.targets_.values(drawn), 0, -1)

        return self._predictions(X, draws)

    @in_float64
    def sample_functions(self, n_samples: int = 1, random_state: Any = 0) -> Callable[[Any], np.ndarray]:
        """Draws of the function itself: call the result with inputs for values (N, n_samples) or (N, P, n_samples)."""
        check_is_fitted(self)
        functions = self.fitted_.functions(key(random_state), n_samples)

        @in_float64
        def evaluate(X: Any) -> np.ndarray:
            return self._by_block(X, lambda x, _: np.moveaxis(self.targets_.values(functions(x)), 0, -1))

        return evaluate

    @in_float64
    def log_score(self, X: Any, y: Any) -> float:
        """The mean log density of observed targets, in the units of y: larger is better."""
        check_is_fitted(self)
        targets, _ = as_targets(y, len(X))

        def densities(prediction: AbstractPrediction, rows: slice) -> np.ndarray:
            return self.targets_.log_density(prediction, targets[rows])

        return float(self._predictions(X, densities).sum() / np.sum(~np.isnan(targets)))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R squared as scikit-learn has it: the mean over targets, of each over the rows where it was observed."""
        targets, _ = as_targets(y, len(X))
        weight = _check_sample_weight(sample_weight, targets, dtype=np.float64)
        columns = zip(targets.T, np.reshape(self.predict(X), targets.shape).T, strict=True)
        each = []
        for true, predicted in columns:
            seen = ~np.isnan(true)
            each.append(r2_score(true[seen], predicted[seen], sample_weight=weight[seen]))
        return float(np.mean(each))

    @in_float64
    def _quantiles(self, X: Any, levels: list[float]) -> np.ndarray:
        def quantiles(prediction: AbstractPrediction, _: slice) -> np.ndarray:
            return np.stack([self.targets_.values(prediction.quantile(level)) for level in levels], axis=-1)

        return self._predictions(X, quantiles)

    def _predictions(self, X: Any, function: Callable[[AbstractPrediction, slice], np.ndarray]) -> np.ndarray:
        """`function` of what is predicted for each block of rows, joined along its first axis."""
        check_is_fitted(self)
        return self._by_block(X, lambda x, rows: function(self.fitted_.predict(x, self.seed_), rows))

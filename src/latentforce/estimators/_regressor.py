"""The regressor: calibrated predictions in three lines, every knob for those who want it."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_array, check_is_fitted

from ..depth._likelihoods import AbstractLikelihood, Gaussian, HeteroscedasticGaussian, Poisson, StudentT
from ..inference._prediction import Prediction
from ._base import LatentForceEstimator, key
from ._engine import in_float64
from ._frames import interval_frame, quantile_frame
from ._targets import Targets, target_names


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
      [`latentforce.fit`][]; `restarts`: from how many starting points, the best of which is kept.
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
        targets, flat = _targets(y, X.shape[0])
        names = target_names(y, targets.shape[1])
        learn = partial(Targets.of, names=names, flat=flat, scaled=self._likelihood[1])
        self._train(X, targets, learn, sample_weight, names)
        return self

    @in_float64
    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The mean of y (N,) or (N, P); with `return_std` also its standard deviation, noise included."""
        check_is_fitted(self)
        if not return_std:
            return self._by_block(X, lambda x, _: self.targets_.values(self.fitted_.mean(x, self.seed_)))

        def both(prediction: Prediction, _: slice) -> np.ndarray:
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
            if not 0 < one < 1:
                raise ValueError(f"`coverage` must lie between 0 and 1, got {one!r}.")
        if len(coverages) > 1 and not as_frame:
            raise ValueError(f"`coverage` must be one number unless `as_frame` is True, got {len(coverages)}.")
        values = self._quantiles(X, [level for one in coverages for level in ((1 - one) / 2, (1 + one) / 2)])
        return interval_frame(values, self.targets_.names, coverages, X) if as_frame else values

    @in_float64
    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> np.ndarray:
        """Draws of y (N, n_samples), or (N, P, n_samples): each row by itself."""
        root = key(random_state)

        def draws(prediction: Prediction, rows: slice) -> np.ndarray:
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
        targets, _ = _targets(y, len(X))

        def densities(prediction: Prediction, rows: slice) -> np.ndarray:
            return self.targets_.log_density(prediction, targets[rows])

        return float(self._predictions(X, densities).sum() / np.sum(~np.isnan(targets)))

    @in_float64
    def _quantiles(self, X: Any, levels: list[float]) -> np.ndarray:
        def quantiles(prediction: Prediction, _: slice) -> np.ndarray:
            return np.stack([self.targets_.values(prediction.quantile(level)) for level in levels], axis=-1)

        return self._predictions(X, quantiles)

    def _predictions(self, X: Any, function: Callable[[Prediction, slice], np.ndarray]) -> np.ndarray:
        """`function` of what is predicted for each block of rows, joined along its first axis."""
        check_is_fitted(self)
        return self._by_block(X, lambda x, rows: function(self.fitted_.predict(x, self.seed_), rows))


def _targets(y: Any, num_rows: int) -> tuple[np.ndarray, bool]:
    """Targets (N, P) and whether they were 1-D; NaN passes in a table of several."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    array = np.asarray(y)
    flat = array.ndim == 1
    rules: dict[str, Any] = {"dtype": np.float64, "ensure_all_finite": True if flat else "allow-nan"}
    array = check_array(array, ensure_2d=False, input_name="y", **rules)
    array = array[:, None] if flat else array
    if array.ndim != 2 or np.isinf(array).any():
        raise ValueError(f"`y` must be 1-D or 2-D without infinities, got an array of shape {array.shape}.")
    if array.shape[0] != num_rows:
        raise ValueError(f"`y` must have as many rows as `X` ({num_rows}), got {array.shape[0]}: inconsistent.")
    if np.isnan(array).all(axis=0).any():
        raise ValueError("`y` must have a number somewhere in each column, got one of NaN alone.")
    return array, flat

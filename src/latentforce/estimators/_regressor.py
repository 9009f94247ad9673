"""The regressor: calibrated predictions in three lines, every knob for those who want it."""

import os
from collections.abc import Callable
from typing import Any, no_type_check

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_array, check_is_fitted, validate_data

from ..depth._likelihoods import AbstractLikelihood, Gaussian, HeteroscedasticGaussian, Poisson, StudentT
from ..depth._model import Model
from ..dynamics._filters import AbstractFilter, LinearODE
from ..inference._exact import ExactModel
from ..inference._training import Progress
from ..presets import PRESETS, build
from ._choices import GIVABLE, choose
from ._engine import Rows, Settings, in_float64, train
from ._saving import save
from ._table import Table, is_frame
from ._targets import Targets

LIKELIHOODS: dict[str, tuple[type[AbstractLikelihood], bool]] = {  # and whether targets are scaled for it
    "gaussian": (Gaussian, True),
    "student-t": (StudentT, True),
    "heteroscedastic": (HeteroscedasticGaussian, True),
    "poisson": (Poisson, False),
}


class LatentForceRegressor(RegressorMixin, BaseEstimator):
    """Regression by a (deep) latent force model, with scikit-learn's conventions.

    Inputs and targets are scaled inside, and everything comes back in the user's units. Inputs may be a matrix or a
    data frame with columns of numbers, times or text; targets 1-D, or 2-D where NaN means "not observed". What is None
    is chosen from the data (`choices_`).

    **Arguments:**

    - `model`: a name of [`latentforce.presets`][].
    - `depth`, `width`, `num_frequencies`, `nu`, `directions`, `covariance`, `num_forces`, `num_latents`,
      `train_filters`: as for [`latentforce.build`][].
    - `filter`: "first", "second", or a filter in the units of the one input column.
    - `likelihood`: "gaussian", "student-t", "heteroscedastic" or "poisson".
    - `steps`, `batch_size`, `learning_rate`, `num_samples`: as for [`latentforce.fit`][]; `restarts`: from how many
      starting points, the best of which is kept.
    - `precision`: "float32" or "float64", for training by batches or draws; all else is done in float64.
    - `random_state`: a seed. `verbose`: 1 for a progress bar. `callback`: sees a `Progress` now and then.

    **Attributes:** `model_` (in scaled units), `history_`, `choices_`, `n_features_in_`, `feature_names_in_`,
    `n_iter_`.

    !!! example

        >>> import numpy as np, latentforce as lf
        >>> x = np.linspace(0.0, 10.0, 50)[:, None]
        >>> regressor = lf.LatentForceRegressor("lfm-driven", steps=200).fit(x, np.sin(x[:, 0]))
        >>> mean, std = regressor.predict(x, return_std=True)
        >>> low, high = regressor.predict_interval(x, coverage=0.9).T
        >>> mean.shape, std.shape, bool(np.all(low < high))
        ((50,), (50,), True)
    """

    @no_type_check  # scikit-learn wants bad values to be complained about in `fit`
    def __init__(
        self,
        model: str = "dlfm-driven",
        *,
        depth: int | None = None,
        width: int | None = None,
        num_frequencies: int | None = None,
        nu: float | None = 1.5,
        filter: AbstractFilter | str = "first",
        directions: int | None = None,
        covariance: str | None = None,
        num_forces: int | None = None,
        num_latents: int | None = None,
        train_filters: int | None = 0,
        likelihood: str = "gaussian",
        steps: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        num_samples: int | None = None,
        restarts: int | None = None,
        precision: str = "float32",
        random_state: Any = None,
        verbose: int = 0,
        callback: Callable[[Progress], bool | None] | None = None,
    ):
        self.model = model
        self.depth = depth
        self.width = width
        self.num_frequencies = num_frequencies
        self.nu = nu
        self.filter = filter
        self.directions = directions
        self.covariance = covariance
        self.num_forces = num_forces
        self.num_latents = num_latents
        self.train_filters = train_filters
        self.likelihood = likelihood
        self.steps = steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.num_samples = num_samples
        self.restarts = restarts
        self.precision = precision
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "LatentForceRegressor":
        """Train on inputs X (N, D) and targets y (N,) or (N, P); a weight of two is the row twice."""
        self._check()
        X = self._validated(X, reset=True)
        targets, flat = _targets(y, X.shape[0])
        weight = np.asarray(_check_sample_weight(sample_weight, targets, dtype=np.float64, ensure_non_negative=True))
        kept = (weight > 0) & ~np.all(np.isnan(targets), axis=1)
        if not kept.any():
            raise ValueError("`sample_weight` must not be zero for all rows.")
        targets, weight = targets[kept], weight[kept]
        X = X[kept] if not is_frame(X) else X.iloc[np.flatnonzero(kept)]
        self.table_ = Table.of(X)
        self.targets_ = Targets.of(targets, weight, flat, LIKELIHOODS[self.likelihood][1])
        x, scaled = self.table_.encode(X), self.targets_.encode(targets)
        self.seed_ = int(check_random_state(self.random_state).randint(2**31)) if self.random_state is not None else 0
        collapses = self.likelihood == "gaussian" and self.num_latents is None and not np.isnan(scaled).any()
        given = {name: getattr(self, name) for name in GIVABLE}
        self.choices_ = choose(self.model, len(x), x.shape[1], collapses, **given)
        # the likelihood and the collapsed bound factorise matrices that float32 cannot hold where there is little noise
        with jax.enable_x64(self.precision == "float64" or self.choices_.optimizer == "lbfgs"):
            rows, settings = Rows(x, scaled, weight), Settings(self.seed_, self.verbose, self.callback)
            self.fitted_, self.history_ = train(lambda seed: self._build(rows, seed), rows, self.choices_, settings)
        self.n_iter_ = len(self.history_.objective)
        return self

    @property
    def model_(self) -> Model | ExactModel:
        """The trained model, in scaled units."""
        check_is_fitted(self)
        return self.fitted_.model

    @in_float64
    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The mean of y (N,) or (N, P); with `return_std` also its standard deviation, noise included."""
        x = self._inputs(X)
        if not return_std:
            return self.targets_.values(self.fitted_.mean(x, self.seed_))
        prediction = self.fitted_.predict(x, self.seed_)
        return self.targets_.values(prediction.mean), self.targets_.sizes(jnp.sqrt(prediction.variance))

    @in_float64
    def predict_quantiles(self, X: Any, q: Any) -> np.ndarray:
        """The quantiles of y at levels q (K,): (N, K), or (N, P, K) for 2-D targets."""
        prediction = self.fitted_.predict(self._inputs(X), self.seed_)
        values = [self.targets_.values(prediction.quantile(float(level))) for level in np.atleast_1d(q)]
        return np.stack(values, axis=-1)

    def predict_interval(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """The central interval that holds y with probability `coverage`: (N, 2), or (N, P, 2) for 2-D targets."""
        if not 0 < coverage < 1:
            raise ValueError(f"`coverage` must lie between 0 and 1, got {coverage!r}.")
        return self.predict_quantiles(X, [(1 - coverage) / 2, (1 + coverage) / 2])

    @in_float64
    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> np.ndarray:
        """Draws of y (N, n_samples), or (N, P, n_samples): each row by itself."""
        prediction = self.fitted_.predict(self._inputs(X), self.seed_)
        drawn = prediction.sample(_key(random_state), n_samples)
        return np.moveaxis(self.targets_.values(drawn), 0, -1)

    @in_float64
    def sample_functions(self, n_samples: int = 1, random_state: Any = 0) -> Callable[[Any], np.ndarray]:
        """Draws of the function itself: call the result with inputs for values (N, n_samples) or (N, P, n_samples)."""
        check_is_fitted(self)
        functions = self.fitted_.functions(_key(random_state), n_samples)

        @in_float64
        def evaluate(X: Any) -> np.ndarray:
            return np.moveaxis(self.targets_.values(functions(self._inputs(X))), 0, -1)

        return evaluate

    @in_float64
    def log_score(self, X: Any, y: Any) -> float:
        """The mean log density of observed targets, in the units of y: larger is better."""
        x = self._inputs(X)
        targets, _ = _targets(y, len(x))
        density = self.targets_.log_density(self.fitted_.predict(x, self.seed_), targets)
        return float(density.sum() / np.sum(~np.isnan(targets)))

    def save(self, path: str | os.PathLike) -> None:
        """Write the fitted estimator to one file, at once or not at all; `latentforce.load` reads it."""
        check_is_fitted(self)
        save(self, path)

    def _inputs(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return self.table_.encode(self._validated(X, reset=False))

    def _validated(self, X: Any, reset: bool) -> Any:
        """Checked by scikit-learn; a data frame keeps its columns as they are."""
        fewest = 2 if reset else 1
        if not is_frame(X):
            return validate_data(self, X, reset=reset, dtype=np.float64, ensure_min_samples=fewest)
        validate_data(self, X, reset=reset, skip_check_array=True)
        if X.shape[0] < fewest:
            raise ValueError(f"`X` must have at least {fewest} rows, got {X.shape[0]} sample(s).")
        return X

    def _check(self) -> None:
        for name, allowed in (("model", PRESETS), ("likelihood", LIKELIHOODS), ("precision", ("float32", "float64"))):
            if getattr(self, name) not in allowed:
                raise ValueError(f"`{name}` must be one of {', '.join(allowed)}, got {getattr(self, name)!r}.")

    def _build(self, rows: Rows, seed: int) -> Any:
        filter = self.filter
        if isinstance(filter, AbstractFilter):
            filter = self._rescaled(filter)
        options = {name: getattr(self, name) for name in ("depth", "nu", "num_forces", "num_latents", "train_filters")}
        kind, _ = LIKELIHOODS[self.likelihood]
        options |= {
            "filter": filter,
            "likelihood": None if kind is Gaussian else kind(),
            "weight": rows.weight,
            "seed": seed,
        }
        return build(self.model, rows.x, rows.y, **options, **self.choices_.model)

    def _rescaled(self, filter: AbstractFilter) -> AbstractFilter:
        """The filter in the model's unit of time, which is the range of the one input column."""
        if len(self.table_.columns) != 1 or self.table_.columns[0].span <= 0:
            raise ValueError("`filter` must be a name where there is not one input column that changes.")
        span = self.table_.columns[0].span
        return LinearODE(np.asarray(filter.coefficients, float) / span ** np.arange(filter.order + 1))


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


def _key(random_state: Any) -> Any:
    return jax.random.key(int(check_random_state(random_state).randint(2**31)))

"""What regressor and classifier share: their knobs, the way from a table to a trained model, the force, the files."""

import os
import platform
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, no_type_check

import jax
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ..depth._likelihoods import AbstractLikelihood, Gaussian
from ..depth._model import Model
from ..dynamics._filters import AbstractFilter, LinearODE
from ..inference._exact import ExactModel
from ..inference._training import Progress
from ..presets import PRESETS, build
from ._choices import GIVABLE, choose
from ._engine import Rows, Settings, in_float64, train
from ._saving import save
from ._summary import Summary, first_coefficient, summarize
from ._table import Table, is_frame, take
from ._targets import Targets

BLOCK = 2**14  # rows that are predicted at once: memory does not grow with the number of rows


class ExtrapolationWarning(UserWarning):
    """Rows are so far from the training data that predictions there are the prior's.

    !!! example

        >>> import warnings, latentforce as lf
        >>> warnings.simplefilter("error", lf.ExtrapolationWarning)  # whoever must not extrapolate by mistake
        >>> warnings.resetwarnings()
    """


class LatentForceEstimator(BaseEstimator):
    """Arguments and attributes as [`latentforce.LatentForceRegressor`][] lists them."""

    LIKELIHOODS: ClassVar[
        dict[str, tuple[type[AbstractLikelihood], bool]]
    ] = {}  # and whether targets are scaled for it

    @no_type_check  # scikit-learn wants bad values to be complained about in `fit`
    def __init__(
        self,
        model: str = "dlfm-driven",
        *,
        depth: int | None = None,
        width: int | None = None,
        num_frequencies: int | None = None,
        nu: float | None = 1.5,
        interval: tuple[float, float] | None = None,
        filter: AbstractFilter | str = "first",
        directions: int | None = None,
        covariance: str | None = None,
        num_forces: int | None = None,
        num_latents: int | None = None,
        train_filters: int | None = 0,
        likelihood: str | None = None,
        steps: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        num_samples: int | None = None,
        restarts: int | None = None,
        validation_fraction: float | None = None,
        precision: str = "float32",
        checkpoint: str | None = None,
        every: int = 1000,
        resume: bool = False,
        devices: int | str | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callback: Callable[[Progress], bool | None] | None = None,
    ):
        self.model = model
        self.depth = depth
        self.width = width
        self.num_frequencies = num_frequencies
        self.nu = nu
        self.interval = interval
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
        self.validation_fraction = validation_fraction
        self.precision = precision
        self.checkpoint = checkpoint
        self.every = every
        self.resume = resume
        self.devices = devices
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    @property
    def model_(self) -> Model | ExactModel:
        """The trained model, in scaled units."""
        check_is_fitted(self)
        return self.fitted_.model

    def summary(self) -> Summary:
        """What was fitted, as a table: physical parameters in the user's units, the training, and what was chosen."""
        check_is_fitted(self)
        return summarize(self)

    @in_float64
    def predict_force(
        self,
        t: Any,
        *,
        layer: int = 0,
        index: int = 0,
        direction: int = 0,
        return_std: bool = False,
        return_cov: bool = False,
    ) -> Any:
        """The posterior of the hidden force at times t (T,): mean (T,), or (mean, std), or (mean, covariance (T, T)).

        For one input column and the first layer, t is in the units of that column; for several, in the scaled units of
        that direction; for later layers, in those of the hidden function. `index` is the output whose force is asked
        for, or the number of a shared force. The last layer's force is in the units of the target (a force of one moves
        it, in the end, by one over the ODE's first coefficient) and counted from what holds the target at its mean in
        training; others have no units. Twice the force through twice the coefficients is the same output, so a learned
        ODE is read with the first coefficient that it began with: of `filter` or, by name, one. (Forces that are
        shared keep what was learned.) The band takes parameters as known.
        """
        check_is_fitted(self)
        if return_std and return_cov:
            raise ValueError("`return_std` must be False where `return_cov` is True.")
        times = np.asarray(t)
        if times.ndim != 1 or not len(times):
            raise ValueError(f"`t` must be 1-D and not empty, got an array of shape {times.shape}.")
        column = self.table_.single
        if layer == 0 and column is not None:
            times = column.encode(times)[:, 0]
        force = self.fitted_.force(np.asarray(times, np.float64), layer, index, direction)
        scale = self._force_scale(layer, index, direction)
        mean = scale * np.asarray(force.mean)
        if return_cov:
            return mean, scale**2 * np.asarray(force.covariance)
        return (mean, scale * np.asarray(force.deviation)) if return_std else mean

    def save(self, path: str | os.PathLike) -> None:
        """Write the fitted estimator to one file, at once or not at all; `latentforce.load` reads it."""
        check_is_fitted(self)
        save(self, path)

    def _force_scale(self, layer: int, index: int, direction: int) -> float:
        if self.num_forces is not None:
            return 1.0
        model = self.fitted_.ready
        exact = isinstance(model, ExactModel)
        if exact:
            filter = jax.tree.map(lambda leaf: leaf[direction], model.process.filter)
        else:
            filter = model.layers[layer].outputs.one(index, direction).filter
        scale = first_coefficient(self.filter) / float(filter.coefficients[0])
        own = self.num_latents is None and (exact or layer == model.depth - 1)
        return scale * float(self.targets_.scale[index]) if own else scale

    def _train(
        self, X: Any, targets: np.ndarray, learn: Callable[..., Targets], weight: Any, names: tuple[str, ...]
    ) -> None:
        """From validated inputs and targets (N, P), whose units are learned with weights, to all fitted attributes.

        `names`: of the user's target columns.
        """
        started = time.perf_counter()
        weight = np.asarray(_check_sample_weight(weight, targets, dtype=np.float64, ensure_non_negative=True))
        kept = np.flatnonzero((weight > 0) & ~np.all(np.isnan(targets), axis=1))
        if not len(kept):
            raise ValueError("`sample_weight` must not be zero for all rows.")
        X, targets, weight = take(X, kept), targets[kept], weight[kept]
        self.table_, self.targets_ = Table.of(X), learn(targets, weight)
        x, scaled = self.table_.encode(X), self.targets_.encode(targets)
        self._train_rows(Rows(x, scaled, weight), len(x), names, started)

    def _train_rows(self, rows: Rows, num_rows: int, names: tuple[str, ...], started: float) -> None:
        """From scaled rows to what is fitted, and the record of it."""
        self.seed_ = self._seed()
        gaussian = self._likelihood[0] is Gaussian
        collapses = gaussian and self.num_latents is None and not np.isnan(rows.y).any()
        given = {name: getattr(self, name) for name in GIVABLE}
        if rows.batches is not None:
            given["batch_size"] = rows.batches.size
        if not rows.alike:
            if self.validation_fraction:
                wanted = "0 where rows come in chunks or differ in weight"
                raise ValueError(f"`validation_fraction` must be {wanted}, got {self.validation_fraction!r}.")
            given["validation_fraction"] = 0.0
        self.choices_ = choose(self.model, num_rows, rows.x.shape[1], collapses, **given)
        self.bounds_ = self._bounds()
        watched = (self.verbose, self.callback, self.checkpoint, self.every, self.resume)
        settings = Settings(self.seed_, *watched, self.devices)
        # the likelihood and the collapsed bound factorise matrices that float32 cannot hold where there is little noise
        with jax.enable_x64(self.precision == "float64" or self.choices_.optimizer == "lbfgs"):
            trained = train(lambda seed: self._build(rows, seed), rows, self.choices_, settings)
        self.fitted_, self.history_, said = trained
        self.n_iter_ = len(self.history_.objective)
        self.record_ = {
            "rows": num_rows,
            "targets": list(names),
            "seconds": time.perf_counter() - started,
            "device": jax.devices()[0].device_kind,
            "versions": {"jax": jax.__version__, "numpy": np.__version__, "python": platform.python_version()},
            "warnings": said,
        }

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31)) if self.random_state is not None else 0

    @property
    def _likelihood(self) -> tuple[type[AbstractLikelihood], bool]:
        return self.LIKELIHOODS[self.likelihood or next(iter(self.LIKELIHOODS))]

    def _check(self) -> None:
        allowed = {"model": PRESETS, "likelihood": (None, *self.LIKELIHOODS), "precision": ("float32", "float64")}
        for name, values in allowed.items():
            if getattr(self, name) not in values:
                raise ValueError(f"`{name}` must be one of {', '.join(map(str, values))}, got {getattr(self, name)!r}.")

        if self.interval is not None and np.shape(self.interval) != (2,):
            raise ValueError(f"`interval` must be a pair (a, b) with a < b, got {self.interval!r}.")

    def _build(self, rows: Rows, seed: int) -> Any:
        filter = self.filter
        if isinstance(filter, AbstractFilter):
            filter = self._rescaled(filter)
        options = {name: getattr(self, name) for name in ("depth", "nu", "num_forces", "num_latents", "train_filters")}
        kind, _ = self._likelihood
        options |= {
            "filter": filter,
            "likelihood": None if kind is Gaussian else kind(),
            "interval": None if self.interval is None else self.bounds_,
            "weight": rows.weight,
            "seed": seed,
        }
        return build(self.model, rows.x, rows.y, **options, **self.choices_.model)

    def _rescaled(self, filter: AbstractFilter) -> AbstractFilter:
        """The filter in the model's unit of time, which is the range of the one input column."""
        column = self.table_.single
        if column is None:
            raise ValueError("`filter` must be a name where there is not one input column that changes.")
        return LinearODE(np.asarray(filter.coefficients, float) / column.span ** np.arange(filter.order + 1))

    def _bounds(self) -> tuple[float, float]:
        """Beyond what, in scaled units, the model is asked for too much: around the data, or the interval asked for.

        Of many columns there is always one where a new row is a little outside.
        """
        column = self.table_.single
        if self.interval is None:
            return (-0.1, 1.1) if column is not None else (-0.5, 1.5)
        if column is None:
            raise ValueError("`interval` must be None where there is not one input column that changes.")
        low, high = (float(end) for end in column.encode(np.asarray(self.interval))[:, 0])
        if not (low <= 0.0 and high >= 1.0):
            raise ValueError(f"`interval` must hold all training inputs, got {self.interval!r}.")
        return low, high

    def _blocks(self, X: Any) -> Iterator[tuple[np.ndarray, slice]]:
        """Scaled inputs and which rows they are, block by block; a warning where they leave what the model knows."""
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        (low, high), outside = self.bounds_, 0
        for start in range(0, X.shape[0], BLOCK):
            rows = slice(start, start + BLOCK)
            block = self.table_.encode(take(X, rows))
            outside += int(np.sum(np.any((block < low) | (block > high), axis=1)))
            yield block, rows
        if outside:
            warnings.warn(
                f"`X` has {outside} rows outside the range of the training data; there the model falls back to its "
                "prior: wide intervals around the mean of the targets.",
                ExtrapolationWarning,
                stacklevel=3,
            )

    def _by_block(self, X: Any, function: Callable[[np.ndarray, slice], np.ndarray]) -> np.ndarray:
        """`function` of scaled rows and which they are, joined along its first axis."""
        return np.concatenate([function(*block) for block in self._blocks(X)])

    def _validated(self, X: Any, reset: bool) -> Any:
        """Checked by scikit-learn; a data frame keeps its columns as they are."""
        fewest = 2 if reset else 1
        if not is_frame(X):
            return validate_data(self, X, reset=reset, dtype=np.float64, ensure_min_samples=fewest)
        validate_data(self, X, reset=reset, skip_check_array=True)
        if X.shape[0] < fewest:
            raise ValueError(f"`X` must have at least {fewest} rows, got {X.shape[0]} sample(s).")
        return X


def key(random_state: Any) -> Any:
    """A key of JAX from a state in scikit-learn's sense."""
    return jax.random.key(int(check_random_state(random_state).randint(2**31)))

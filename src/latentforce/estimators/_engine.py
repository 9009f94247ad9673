"""From scaled numbers to a trained model and back to predictions: what all estimators share."""

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jaxtyping import Float, PRNGKeyArray
from sklearn.exceptions import ConvergenceWarning

from .._checks import within
from .._data import bucket
from .._parameters import constrain, mask, unconstrain
from .._progress import progress_bar
from ..depth._inputs import Coordinates
from ..depth._model import Model
from ..features._base import AbstractFeatures
from ..features._driven import DrivenFourier
from ..features._harmonic import HarmonicFourier
from ..inference._batches import Batches
from ..inference._collapsed import absorb, collapse, collapsed_bound
from ..inference._compression import Statistics, compress
from ..inference._devices import Devices
from ..inference._exact import ExactModel, ExactPosterior, condition
from ..inference._force import force
from ..inference._functions import sample_functions
from ..inference._gaussian import Normal
from ..inference._objectives import Batch, whole
from ..inference._prediction import AbstractPrediction, Prediction, mixed, predict, predict_mean
from ..inference._steps import AnyModel, is_hyperparameter, is_trained
from ..inference._training import LOST, STOPPED, Fit, History, Progress, TrainingError, fit, sampled_elbo
from ._choices import Choices

DEGREE = 16  # of the polynomials that compressed data are kept by
LBFGS = optax.lbfgs()  # one object, so that compiled steps are found again
SCATTER = 0.5  # deviation of starting points, in parameters as free numbers: logarithms, and weights of directions
BEHIND = 0.5  # nats a row: what ended this much below the best found no explanation of its own, but a bad one


class Rows(NamedTuple):
    """Scaled inputs (N, D), scaled targets (N, P), weights (N,); or some rows that show the range, and sums or batches
    of all.
    """

    x: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    statistics: Statistics | None = None
    batches: Batches | None = None

    @property
    def alike(self) -> bool:
        """Whether some of them can stand for all: of two equal rows one could be held out, of one of weight two not."""
        return self.statistics is None and self.batches is None and not np.ptp(self.weight)

    def batch(self) -> Batch:
        """On the device."""
        return whole(*(jnp.asarray(part, jnp.result_type(float)) for part in (self.x, self.y, self.weight)))

    def padded(self) -> "Rows":
        """With rows of weight zero up to one of a few sizes: data of similar size share compiled steps."""
        missing = bucket(len(self.x)) - len(self.x)
        x, y = (np.concatenate([part, np.repeat(part[-1:], missing, axis=0)]) for part in (self.x, self.y))
        return Rows(x, y, np.concatenate([self.weight, np.zeros(missing)]))


@dataclass
class Fitted:
    """A trained model and, where inference is exact, the data that it is conditioned on; and the models that other
    starting points led to: predictions are of all together, everything else is of the first, the best.
    """

    model: Model | ExactModel
    x: np.ndarray | None = None  # (N, D)
    y: np.ndarray | None = None  # (N, P)
    others: "tuple[Fitted, ...]" = ()

    @property
    def members(self) -> "tuple[Fitted, ...]":
        """All models."""
        return (self, *self.others)

    def predict(self, x: np.ndarray, seed: int) -> AbstractPrediction:
        """What they say of rows (N, D)."""
        return mixed([one._predict(x, seed) for one in self.members])

    def _predict(self, x: np.ndarray, seed: int) -> Prediction:
        if isinstance(self.ready, Model):
            return predict(self.ready, x, seed=seed)
        return self.posterior.predict(x)

    def mean(self, x: np.ndarray, seed: int) -> Float[Array, "N P"]:
        """The mean of y alone, cheaper where it can be."""
        return jnp.mean(jnp.stack([one._mean(x, seed) for one in self.members]), axis=0)

    def _mean(self, x: np.ndarray, seed: int) -> Float[Array, "N P"]:
        if isinstance(self.ready, Model):
            return predict_mean(self.ready, x, seed=seed)
        return self._predict(x, seed).mean

    def functions(
        self, key: PRNGKeyArray, num_samples: int, num_knots: int = 200
    ) -> Callable[[np.ndarray], Float[Array, "n N R"]]:
        """Draws of whole functions, as many from each of the models but for one more or less."""
        if not isinstance(self.ready, Model):
            raise ValueError("`model` must not be exact to draw functions from it.")
        which, *keys = jax.random.split(key, len(self.members) + 1)
        share, rest = divmod(num_samples, len(self.members))
        counts = share + (np.asarray(jax.random.permutation(which, len(self.members))) < rest)
        drawn = [
            sample_functions(one.ready, k, int(count), num_knots=num_knots)
            for one, k, count in zip(self.members, keys, counts, strict=True)
            if count
        ]
        return lambda x: jnp.concatenate([functions(x) for functions in drawn])

    def updated(self, rows: Rows) -> "Fitted":
        """With what further rows say added, exactly."""
        model = absorb(self.ready, rows.padded().batch())
        return Fitted(jax.tree.map(np.asarray, model), others=tuple(one.updated(rows) for one in self.others))

    def force(self, t: np.ndarray, layer: int, index: int, direction: int) -> Normal:
        """The posterior of a force at times (T,)."""
        if isinstance(self.ready, Model):
            return force(self.ready, t, layer=layer, index=index, direction=direction)
        within("layer", layer, 1)
        within("index", index, len(self.posterior.root))  # the posterior calls it a target
        return self.posterior.force(jnp.asarray(t, jnp.float64), direction, index)

    @cached_property
    def ready(self) -> Any:
        """The model on the device, in float64 whatever it was trained in."""
        return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), self.model)

    @cached_property
    def posterior(self) -> ExactPosterior:
        """What an exact model says, given its data; factorised once."""
        return condition(self.ready, *(jnp.asarray(part, jnp.float64) for part in (self.x, self.y)))

    def __getstate__(self) -> dict[str, Any]:
        """Without what is on the device."""
        return {"model": self.model, "x": self.x, "y": self.y, "others": self.others}


def in_float64(function: Callable) -> Callable:
    """What is trained in float32 predicts in float64, so that rows do not depend on their company."""

    @wraps(function)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        with jax.enable_x64(True):
            return function(*arguments, **options)

    return wrapped


class Settings(NamedTuple):
    """How training is done and watched, beside what is chosen from the data."""

    seed: int
    verbose: int
    callback: Callable[[Progress], bool | None] | None
    checkpoint: str | os.PathLike | None
    every: int
    resume: bool
    devices: int | str | None


def train(
    make: Callable[[int], Model | ExactModel], rows: Rows, choices: Choices, settings: Settings
) -> tuple[Fitted, History, list[str]]:
    """What some starting points led to, the best first, by rows held out or else by its bound, without those that are
    far behind; its history; and what there was to warn of. `make` builds a model from a seed.

    Each restart holds out rows of its own, so that together they have seen all; and has a checkpoint of its own, so
    that those that are done are not done again. One that was stopped counts only if it was the first.
    """
    fits, said = [], []
    for restart in range(choices.restarts):
        kept, held_out = divided(rows, choices.validation_fraction, settings.seed, restart)
        seed, path = settings.seed + restart, settings.checkpoint
        if path is not None and restart:
            path = f"{os.fspath(path)}.{restart}"
        own = settings._replace(seed=seed, checkpoint=path)
        start = make(seed)
        if restart and choices.optimizer == "lbfgs":
            start = scattered(start, seed)
        fits.append(_train(start, kept, held_out, choices, own, said))
        if fits[-1].history.stopped == STOPPED:
            break
    done = [one for one in fits if one.history.stopped != STOPPED] or fits
    scored = [(_quality(one.history, choices.optimizer), one) for one in done]
    scored.sort(key=lambda pair: pair[0], reverse=True)
    ranked = [one for quality, one in scored if not quality < scored[0][0] - BEHIND]
    best, *others = (_kept(one.model, rows) for one in ranked)
    return replace(best, others=tuple(others)), ranked[0].history, said


def scattered(model: AnyModel, seed: int) -> AnyModel:
    """The model from another starting point: without chance in its steps, a search from the same one ends the same."""
    free, fixed = eqx.partition(unconstrain(model), _may_start_elsewhere(model))
    generator = np.random.default_rng(seed)
    free = jax.tree.map(lambda leaf: leaf + SCATTER * generator.standard_normal(leaf.shape), free)
    return constrain(eqx.combine(free, fixed))


def _may_start_elsewhere(model: AnyModel) -> AnyModel:
    """A mask of what is trained, but for posteriors, whose best is known, and features, which follow the data."""
    outside = mask(model, lambda _, owners: not any(isinstance(owner, AbstractFeatures) for owner in owners))
    masks = is_trained(model, model.train_filters), is_hyperparameter(model), outside
    return jax.tree.map(lambda *wanted: all(wanted), *masks)


def _kept(model: Model | ExactModel, rows: Rows) -> Fitted:
    """NumPy's arrays keep their digits wherever they are unpickled; JAX's would lose half of them without x64."""
    data = (rows.x, rows.y) if isinstance(model, ExactModel) else (None, None)
    return Fitted(jax.tree.map(np.asarray, model), *data)


def divided(rows: Rows, share: float, seed: int, restart: int) -> tuple[Rows, tuple[np.ndarray, np.ndarray] | None]:
    """Rows to train on, and inputs and targets held out: the next share of a random order for each restart."""
    if not share:
        return rows, None
    order = np.random.default_rng(seed).permutation(len(rows.x))
    count = min(max(round(share * len(order)), 1), len(order) - 1)
    order = np.roll(order, -restart * count)
    train, test = np.sort(order[count:]), order[:count]
    return Rows(rows.x[train], rows.y[train], rows.weight[train]), (rows.x[test], rows.y[test])


def _quality(history: History, optimizer: str) -> float:
    """By which one training is better than another."""
    if optimizer == "lbfgs":  # no chance in the objective: the best is what `fit` returns
        return max(history.objective)
    last = history.objective[-max(len(history.objective) // 10, 1) :]
    return max(history.held_out) if history.held_out else float(np.mean(last))


def _train(
    model: Any,
    rows: Rows,
    held_out: tuple[np.ndarray, np.ndarray] | None,
    choices: Choices,
    settings: Settings,
    said: list[str],
) -> Fit:
    exact, closed = isinstance(model, ExactModel), choices.optimizer == "lbfgs"
    devices = Devices.of(settings.devices)
    sums = None if exact or not closed else in_sums(model, rows)
    if not exact and sums is None and choices.batch_size is None and rows.batches is None:
        rows = rows.padded()
    options: dict[str, Any] = {"learning_rate": choices.learning_rate}
    if closed:  # a thousandth of a nat in all is nothing
        rows_in_all = rows.weight.sum() if rows.statistics is None else float(rows.statistics.num_data)
        options = {"optimizer": LBFGS, "tolerance": max(1e-3 / rows_in_all, 1e-10)}
    if not exact and sums is None:
        sampled = sampled_elbo(choices.num_samples if model.depth > 1 else 1, alike=True)
        options |= {"objective": collapsed_bound if closed else sampled}
    if not exact and sums is None and rows.batches is None:
        options |= {"weight": rows.weight[devices.share(len(rows.x))], "batch_size": choices.batch_size}
    with progress_bar(choices.steps, shown=bool(settings.verbose) and devices.first) as show:

        def watch(progress: Progress) -> bool | None:
            show(progress)
            return None if settings.callback is None else settings.callback(progress)

        chunk = looked_at(choices.steps)
        options |= {"steps": choices.steps, "chunk": chunk, "seed": settings.seed}
        options |= {"checkpoint": settings.checkpoint, "every": settings.every, "resume": settings.resume}
        options |= {"held_out": held_out, "patience": patience(choices.steps, chunk)}
        try:
            fitted = fit(model, *_own(devices, rows, sums), callback=watch, devices=settings.devices, **options)
        except TrainingError as error:
            if not error.history.objective or error.history.stopped == LOST:
                raise
            said.append(f"{error} It is used.")
            warnings.warn(said[-1], ConvergenceWarning, stacklevel=2)
            fitted = Fit(error.model, error.history)
    if exact or not closed:
        return fitted
    return Fit(collapse(fitted.model, rows.batch() if sums is None else sums), fitted.history)


def looked_at(steps: int) -> int:
    """After how many steps each a training is looked at: scored on rows held out, shown, and asked whether to go on."""
    return max(1, min(100, steps // 10))


def patience(steps: int, chunk: int) -> int:
    """After how many chunks without a better score on rows held out a training ends: those of half of its steps, as
    the last ones are small, and may gain again what large ones do not.
    """
    return -(-steps // (2 * chunk))


def _own(devices: Devices, rows: Rows, sums: Statistics | None) -> tuple[Any, Any]:
    """What this process gives to the training, where every process has all data: its share of the rows, or the sums of
    all in the first and of nothing in the others.
    """
    if rows.batches is not None:
        return rows.batches, None
    if sums is not None:
        return (sums if devices.first else sums.of_nothing()), None
    own = devices.share(len(rows.x))
    return rows.x[own], rows.y[own]


def in_sums(model: Model, rows: Rows) -> Statistics | None:
    """The data as sums, where they are many and the features smooth functions of one input."""
    features = model.layers[0].features
    if rows.statistics is not None or rows.x.shape[1] > 1 or not isinstance(features, DrivenFourier | HarmonicFourier):
        return rows.statistics
    nodes = resolution(features.num_frequencies)
    few = len(rows.x) < 2 * DEGREE * nodes["bins"]
    if few or not isinstance(model.layers[0].inputs, Coordinates):
        return None
    a, b = (float(end[0]) for end in features.interval)
    return compress(rows.x[:, 0], rows.y, (a, b), weight=rows.weight, **nodes)


def resolution(num_frequencies: int) -> dict[str, int]:
    """Enough nodes for products of two waves to be resolved to rounding, and for fast filters' transients."""
    return {"bins": max(128, 3 * num_frequencies), "degree": DEGREE, "dense": 12}

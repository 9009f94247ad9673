"""From scaled numbers to a trained model and back to predictions: what all estimators share."""

import warnings
from collections.abc import Callable
from functools import cache, partial, wraps
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jaxtyping import Float, PRNGKeyArray
from sklearn.exceptions import ConvergenceWarning

from .._data import bucket
from .._progress import progress_bar
from ..depth._model import Model
from ..inference._collapsed import collapse, collapsed_bound
from ..inference._exact import ExactModel, condition
from ..inference._functions import Functions, sample_functions
from ..inference._objectives import elbo, whole
from ..inference._prediction import Prediction, predict, predict_mean
from ..inference._training import Fit, History, Progress, TrainingError, fit
from ._choices import Choices

LBFGS = optax.lbfgs()  # one object, so that compiled steps are found again


class Fitted(eqx.Module):
    """A trained model and, where inference is exact, the data that it is conditioned on."""

    model: Model | ExactModel
    x: np.ndarray | None = None  # (N, D)
    y: np.ndarray | None = None  # (N, P)

    def predict(self, x: np.ndarray, seed: int) -> Prediction:
        """What it says of rows (N, D)."""
        model = _float64(self.model)
        if isinstance(model, Model):
            return predict(model, x, seed=seed)
        posterior = condition(model, *(jnp.asarray(part, jnp.float64) for part in (self.x, self.y)))
        mean, variance = posterior.moments(jnp.asarray(x, jnp.float64))
        return Prediction(mean[None], variance[None], model.likelihood)

    def mean(self, x: np.ndarray, seed: int) -> Float[Array, "N P"]:
        """The mean of y alone, cheaper where it can be."""
        if isinstance(self.model, Model):
            return predict_mean(_float64(self.model), x, seed=seed)
        return self.predict(x, seed).mean

    def functions(self, key: PRNGKeyArray, num_samples: int) -> Functions:
        """Draws of whole functions."""
        if not isinstance(self.model, Model):
            raise ValueError("`model` must not be exact to draw functions from it.")
        return sample_functions(_float64(self.model), key, num_samples)


def in_float64(function: Callable) -> Callable:
    """What is trained in float32 predicts in float64, so that rows do not depend on their company."""

    @wraps(function)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        with jax.enable_x64(True):
            return function(*arguments, **options)

    return wrapped


class Rows(NamedTuple):
    """Scaled inputs (N, D), scaled targets (N, P) and weights (N,)."""

    x: np.ndarray
    y: np.ndarray
    weight: np.ndarray

    def padded(self) -> "Rows":
        """With rows of weight zero up to one of a few sizes: data of similar size share compiled steps."""
        missing = bucket(len(self.x)) - len(self.x)
        x, y = (np.concatenate([part, np.repeat(part[-1:], missing, axis=0)]) for part in (self.x, self.y))
        return Rows(x, y, np.concatenate([self.weight, np.zeros(missing)]))


class Settings(NamedTuple):
    """How training is done and watched, beside what is chosen from the data."""

    seed: int
    verbose: int
    callback: Callable[[Progress], bool | None] | None


def train(
    make: Callable[[int], Model | ExactModel], rows: Rows, choices: Choices, settings: Settings
) -> tuple[Fitted, History]:
    """The best of some restarts by its bound; `make` builds a model from a seed."""
    seeds = range(settings.seed, settings.seed + choices.restarts)
    fits = [_train(make(seed), rows, choices, settings._replace(seed=seed)) for seed in seeds]
    best = max(fits, key=lambda one: np.mean(one.history.objective[-max(len(one.history.objective) // 10, 1) :]))
    # NumPy's arrays keep their digits wherever they are unpickled; JAX's would lose half of them without x64
    model = jax.tree.map(np.asarray, best.model)
    return (Fitted(model, rows.x, rows.y) if isinstance(model, ExactModel) else Fitted(model)), best.history


def _train(model: Any, rows: Rows, choices: Choices, settings: Settings) -> Fit:
    exact, closed = isinstance(model, ExactModel), choices.optimizer == "lbfgs"
    if not exact and choices.batch_size is None:
        rows = rows.padded()
    options: dict[str, Any] = {"optimizer": LBFGS} if closed else {"learning_rate": choices.learning_rate}
    if not exact:
        sampled = _objective(choices.num_samples if model.depth > 1 else 1)
        options |= {"objective": collapsed_bound if closed else sampled}
        options |= {"weight": rows.weight, "batch_size": choices.batch_size}
    with progress_bar(choices.steps, shown=bool(settings.verbose)) as show:

        def watch(progress: Progress) -> bool | None:
            show(progress)
            return None if settings.callback is None else settings.callback(progress)

        options |= {"steps": choices.steps, "chunk": max(1, min(100, choices.steps // 10)), "seed": settings.seed}
        try:
            fitted = fit(model, rows.x, rows.y, callback=watch, **options)
        except TrainingError as error:
            if not error.history.objective:
                raise
            warnings.warn(f"{error} It is used.", ConvergenceWarning, stacklevel=2)
            fitted = Fit(error.model, error.history)
    if exact or not closed:
        return fitted
    data = whole(*(jnp.asarray(part, jnp.result_type(float)) for part in rows))
    return Fit(collapse(fitted.model, data), fitted.history)


@cache
def _objective(num_samples: int) -> Callable:
    """The same object for the same number, so that compiled steps are found again."""
    return partial(elbo, num_samples=num_samples, alike=True)


def _float64(model: Any) -> Any:
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), model)

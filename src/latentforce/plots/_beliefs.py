"""What a fitted estimator believes, in the user's units: moments, intervals, drawn functions, ranks of targets."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ..depth._model import Model
from ..estimators._classifier import shares
from ..estimators._engine import in_float64
from ..inference._gaussian import Normal
from ..inference._prediction import AbstractPrediction, Prediction
from ._source import scaled, target

ROWS = 5000  # that are predicted at once
NUM_DRAWS = 400  # of a function at a row, for the quantiles of what it becomes
DRAWN_ROWS = 256  # at which drawn functions are evaluated at once: each has kernels of its own


class Judged(NamedTuple):
    """Targets that were observed (N,), what was predicted of them, and their ranks `P(Y <= y)`."""

    y: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    rank: np.ndarray


@in_float64
def prediction(estimator: Any, rows: np.ndarray) -> AbstractPrediction:
    """What the model says of scaled rows (N, D), in scaled units."""
    return estimator.fitted_.predict(rows, estimator.seed_)


@in_float64
def expectation(estimator: Any, rows: np.ndarray, output: int) -> np.ndarray:
    """The mean (N,) of a target at scaled rows (N, D)."""
    blocks = [rows[k : k + ROWS] for k in range(0, len(rows), ROWS)]
    means = [np.asarray(estimator.fitted_.mean(block, estimator.seed_)) for block in blocks]
    return _units(estimator, np.concatenate(means), output)


@in_float64
def quantiles(estimator: Any, rows: np.ndarray, output: int, coverages: tuple[float, ...]) -> dict[float, tuple]:
    """The ends of central intervals of a target at scaled rows, by coverage."""
    said = prediction(estimator, rows)
    ends = {c: said.interval(c) for c in coverages}
    return {c: tuple(_units(estimator, np.asarray(end), output) for end in pair) for c, pair in ends.items()}


@in_float64
def probabilities(
    estimator: Any, rows: np.ndarray, output: int, coverages: tuple[float, ...]
) -> tuple[np.ndarray, dict[float, tuple]]:
    """The probability of a class at scaled rows (N,), and by coverage between which ends it may lie.

    The same random numbers serve all rows, so that bands are smooth.
    """
    said = prediction(estimator, rows)
    drawn = np.concatenate([_shares_drawn(part) for part in said.parts])[..., output]
    ends = {c: tuple(np.quantile(drawn, [(1 - c) / 2, (1 + c) / 2], axis=0)) for c in coverages}
    return shares(np.asarray(said.mean))[:, output], ends


def _shares_drawn(said: Prediction) -> np.ndarray:
    draw = np.arange(NUM_DRAWS) % said.means.shape[0]
    normal = np.random.default_rng(0).standard_normal((NUM_DRAWS, 1, said.means.shape[2]))
    f = said.means[draw] + jnp.sqrt(said.variances[draw]) * normal
    return shares(np.asarray(said.likelihood.moments(f)[0]))


def draws(estimator: Any, num: int, output: int, num_knots: int = 200) -> Callable[[np.ndarray], np.ndarray]:
    """Drawn functions: call them with scaled rows (N, D) for the mean of the target that each gives, (num, N)."""
    evaluate = _functions(estimator, num, output, num_knots)

    @in_float64
    def values(rows: np.ndarray) -> np.ndarray:
        mean, _ = estimator.fitted_.ready.likelihood.moments(evaluate(rows))
        return _units(estimator, np.asarray(mean), output)

    return values


@in_float64
def _functions(estimator: Any, num: int, output: int, num_knots: int) -> Callable[[np.ndarray], Any]:
    """Drawn functions (num, N, R); an exact posterior is drawn anew, jointly, wherever it is asked for."""
    fitted = estimator.fitted_
    if isinstance(fitted.ready, Model):
        functions = fitted.functions(jax.random.key(0), num, num_knots)
        return lambda rows: _by_blocks(functions, rows)

    def evaluate(rows: np.ndarray) -> Any:
        drawn = _sample(fitted.posterior.output(jnp.asarray(rows, jnp.float64), output), num)
        return jnp.asarray(np.repeat(drawn[:, :, None], fitted.y.shape[1], axis=2))

    return evaluate


def _sample(normal: Normal, num: int) -> np.ndarray:
    """Joint draws (num, M) by eigenvalues: rows that are nearly alike leave the covariance without a Cholesky root."""
    values, vectors = np.linalg.eigh(np.asarray(normal.covariance))
    noise = np.random.default_rng(0).standard_normal((num, len(values)))
    return np.asarray(normal.mean) + noise * np.sqrt(np.maximum(values, 0.0)) @ vectors.T


def _by_blocks(functions: Callable[[np.ndarray], Any], rows: np.ndarray) -> Any:
    """Values (n, N, R), so many rows at a time; the last are filled up, so that one size is compiled."""
    missing = -len(rows) % DRAWN_ROWS
    filled = np.concatenate([rows, np.repeat(rows[-1:], missing, axis=0)])
    blocks = [functions(filled[k : k + DRAWN_ROWS]) for k in range(0, len(filled), DRAWN_ROWS)]
    return jnp.concatenate(blocks, axis=1)[:, : len(rows)]


def judged(estimator: Any, X: Any, y: Any, output: int = 0) -> Judged:
    """Observed targets beside what is predicted of them, some rows at a time; rows without a target are left out."""
    target(estimator, output)
    x = scaled(estimator, X)
    targets = observed(estimator, y, len(x))
    seen = ~np.isnan(targets[:, output])
    if not seen.any():
        raise ValueError(f"`y` must have a number somewhere in column {output}, got NaN alone.")
    x, targets = x[seen], targets[seen]
    pieces = [_judge(estimator, x[k : k + ROWS], targets[k : k + ROWS], output) for k in range(0, len(x), ROWS)]
    return Judged(*(np.concatenate(column) for column in zip(*pieces, strict=True)))


def observed(estimator: Any, y: Any, num_rows: int) -> np.ndarray:
    """The user's targets as numbers (N, P)."""
    array = np.asarray(y, np.float64)
    array = array[:, None] if array.ndim == 1 else array
    wanted = (num_rows, len(estimator.targets_.scale))
    if array.shape != wanted or np.isinf(array).any():
        raise ValueError(f"`y` must be finite and of shape {wanted}, as `X` and the model are, got {np.shape(y)}.")
    return array


def labelled(estimator: Any, X: Any, y: Any, output: int) -> tuple[np.ndarray, np.ndarray]:
    """Whether each row (N,) is of a class, and the probability of it that a classifier predicts."""
    probability = estimator.predict_proba(X)[:, output]
    labels = np.asarray(y)
    if labels.shape != probability.shape:
        raise ValueError(f"`y` must have as many rows as `X` ({len(probability)}), got shape {labels.shape}.")
    return labels == estimator.classes_[output], probability


@in_float64
def _judge(estimator: Any, x: np.ndarray, y: np.ndarray, output: int) -> Judged:
    said = prediction(estimator, x)
    rank = _ranks(said, jnp.asarray(estimator.targets_.encode(y), said.mean.dtype))
    mean, variance = np.asarray(said.mean), np.asarray(said.variance)
    std = estimator.targets_.scale[output] * np.sqrt(variance[:, output])
    return Judged(y[:, output], _units(estimator, mean, output), std, rank[:, output])


def _ranks(said: AbstractPrediction, y: Any) -> np.ndarray:
    """`P(Y <= y)`; of counts at random between `P(Y < y)` and that, so that they too are uniform if all is right."""
    rank = np.asarray(said.cdf(y))
    if not said.counts:
        return rank
    below = np.asarray(said.cdf(y - 1))
    return below + np.random.default_rng(0).random(rank.shape) * (rank - below)


def _units(estimator: Any, values: np.ndarray, output: int) -> np.ndarray:
    """The model's values (..., P) of one target, in the user's units (...)."""
    return estimator.targets_.shift[output] + estimator.targets_.scale[output] * values[..., output]

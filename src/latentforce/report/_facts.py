"""What a report is about: the estimator, the rows that it is judged on, and the numbers that come of it."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binom
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from ..estimators._table import is_frame, take
from ..plots._beliefs import Judged, judged
from ..plots._source import scaled

MOST_ROWS = 10_000  # that are judged and drawn: more change no picture
ENOUGH = 0.02  # nats for each row that half of the steps may still gain where training has settled


class Score(NamedTuple):
    """How well one target is predicted."""

    name: str
    rows: int
    rmse: float
    explained: float  # share of the variance
    inside: dict[float, float]  # share of rows inside central intervals, by coverage


class Learned(NamedTuple):
    """How training ended: what the objective gained over the last half and tenth of the steps, and if it is little."""

    steps: int
    last: float  # the objective, over the last tenth
    half: float
    tenth: float
    settled: bool | None  # None: too few steps, or too much noise, to tell


@dataclass(frozen=True)
class Subject:
    """A fitted estimator and, where they were given, rows to judge it on."""

    estimator: Any
    X: Any
    y: Any
    given: int  # rows; of these at most `MOST_ROWS` are kept
    x: np.ndarray | None  # the same, scaled
    judged: tuple[Judged, ...]  # one for each target of a regressor

    @property
    def classifier(self) -> bool:
        """Whether it predicts classes."""
        return is_classifier(self.estimator)

    @property
    def targets(self) -> list[str]:
        """Names of the targets."""
        return [str(name) for name in self.estimator.record_["targets"]]

    @property
    def classes(self) -> list[str]:
        """Names of the classes; none of a regressor."""
        return [str(name) for name in self.estimator.classes_] if self.classifier else []

    @property
    def rows(self) -> int:
        """How many rows it is judged on."""
        return 0 if self.x is None else len(self.x)

    @property
    def scores(self) -> list[Score]:
        """Of each target of a regressor, where targets were given."""
        return [_score(name, found) for name, found in zip(self.targets, self.judged, strict=False)]


def gather(estimator: Any, X: Any, y: Any) -> Subject:
    """Check what was given, and judge the estimator on it."""
    check_is_fitted(estimator)
    if X is None and y is not None:
        raise ValueError("`X` must be given where `y` is, got None.")
    if X is None:
        return Subject(estimator, None, None, 0, None, ())
    X = X if is_frame(X) else np.asarray(X)
    given = len(X)
    if y is not None and len(y) != given:
        raise ValueError(f"`y` must have as many rows as `X` ({given}), got {len(y)}.")
    if given > MOST_ROWS:
        kept = np.sort(np.random.default_rng(0).permutation(given)[:MOST_ROWS])
        X, y = take(X, kept), None if y is None else np.asarray(y)[kept]
    found: tuple[Judged, ...] = ()
    if y is not None and not is_classifier(estimator):
        found = tuple(judged(estimator, X, y, output) for output in range(len(estimator.targets_.scale)))
    return Subject(estimator, X, y, given, scaled(estimator, X), found)


def learned(history: Any) -> Learned:
    """Compare the mean of the objective over the last tenth of the steps with that over earlier tenths.

    Where learning rates fall to zero every curve ends flat, so it is the second half that tells.
    """
    objective = np.asarray(history.objective)
    size = len(objective) // 10
    if size < 2:
        return Learned(history.steps[-1], float(objective[-1]), 0.0, 0.0, None)
    middle, before, last = (objective[-k * size :][:size] for k in (6, 2, 1))
    half, noise = last.mean() - middle.mean(), np.hypot(last.std(), middle.std()) / np.sqrt(size)
    settled = None if abs(half) < 2 * noise and noise > ENOUGH else bool(half < max(ENOUGH, 2 * noise))
    return Learned(history.steps[-1], float(last.mean()), float(half), float(last.mean() - before.mean()), settled)


def caution(subject: Subject) -> str:
    """What to keep in mind where the rows may be those of the training."""
    if subject.given != subject.estimator.record_["rows"]:
        return ""
    return "If these are the rows that it was trained on, expect larger errors and narrower bands on new ones."


def by_chance(share: float, rows: int, coverage: float) -> str:
    """Whether so many rows inside intervals are as many as there should be: "as", "fewer" or "more"."""
    low, high = binom.ppf([0.025, 0.975], rows, coverage)
    return "fewer" if share * rows < low else "more" if share * rows > high else "as"


def _score(name: str, found: Judged) -> Score:
    error = found.y - found.mean
    spread = np.var(found.y)
    explained = 1 - np.mean(error**2) / spread if spread > 0 else float("nan")
    inside = {c: float(np.mean(np.abs(2 * found.rank - 1) <= c)) for c in (0.5, 0.95)}
    return Score(name, len(found.y), float(np.sqrt(np.mean(error**2))), float(explained), inside)

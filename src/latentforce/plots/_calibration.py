"""Calibration: whether what is said with some probability happens that often."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from scipy.stats import binom, norm
from sklearn.base import is_classifier

from ._axes import BLUE, GREY, dress, several
from ._beliefs import judged, labelled
from ._source import target

NOMINAL = np.linspace(0.05, 0.95, 19)


class CalibrationDisplay:
    """How often things happen against how often they should, and a histogram of what was predicted.

    Of a regressor: the share of targets inside central intervals against the coverage that these claim, and the
    histogram of the ranks `P(Y <= y)` of the targets (the probability integral transform), which is flat where
    predictions are right. A hump in its middle says that intervals are too wide, horns at its ends that they are too
    narrow. Of a classifier: the frequency of a class against its predicted probability in ten groups of rows of equal
    size, and the histogram of those probabilities.

    **Arguments:**

    - `nominal`, `empirical` (K,): what was claimed and what came about, between 0 and 1.
    - `counts` (K,): on how many rows; the grey band holds what a perfect model would show in 95 of 100 such samples.
    - `values` (N,): for the histogram, between 0 and 1. `flat`: whether they should be uniform.
    - `labels`: of the axes `(nominal, empirical, values)`.

    **Attributes**, after `plot`: `axes_`, `figure_`, `line_`, `chance_`, `bars_` (artists).

    !!! example

        >>> import numpy as np
        >>> from matplotlib.figure import Figure
        >>> from latentforce.plots import CalibrationDisplay
        >>> y = np.random.default_rng(0).standard_normal(500)
        >>> axes = Figure().subplots(1, 2)
        >>> display = CalibrationDisplay.from_predictions(y, np.zeros(500), np.ones(500), ax=axes)
        >>> bool(np.max(np.abs(display.empirical - display.nominal)) < 0.1)
        True
    """

    def __init__(
        self,
        nominal: Any,
        empirical: Any,
        counts: Any,
        values: Any,
        *,
        flat: bool = True,
        labels: tuple[str, str, str] = ("nominal coverage", "empirical coverage", "rank of the target"),
    ):
        self.nominal, self.empirical, self.values = (np.asarray(part, float) for part in (nominal, empirical, values))
        self.counts = np.broadcast_to(np.asarray(counts, int), self.nominal.shape)
        self.flat, self.labels = flat, labels

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        output: int = 0,
        ax: Any = None,
        **style: Any,
    ) -> "CalibrationDisplay":
        """Draw the calibration of a fitted estimator on data; `output`: which target, or which class."""
        name = target(estimator, output)
        if not is_classifier(estimator):
            return cls.from_ranks(judged(estimator, X, y, output).rank, ax=ax, **style)
        return cls.from_probabilities(*labelled(estimator, X, y, output), name=name, ax=ax, **style)

    @classmethod
    def from_predictions(cls, y: Any, mean: Any, std: Any, *, ax: Any = None, **style: Any) -> "CalibrationDisplay":
        """Draw the calibration of normal predictions of targets y (N,) that are at hand."""
        return cls.from_ranks(norm.cdf(np.asarray(y), np.asarray(mean), np.asarray(std)), ax=ax, **style)

    @classmethod
    def from_ranks(cls, rank: Any, *, ax: Any = None, **style: Any) -> "CalibrationDisplay":
        """Draw from the ranks `P(Y <= y)` (N,) of targets under any predictions of them."""
        rank = np.asarray(rank, float)
        inside = np.abs(2 * rank - 1)[None] <= NOMINAL[:, None]
        return cls(NOMINAL, inside.mean(axis=1), len(rank), rank).plot(ax, **style)

    @classmethod
    def from_probabilities(
        cls, hit: Any, probability: Any, *, name: str = "it", ax: Any = None, **style: Any
    ) -> "CalibrationDisplay":
        """Draw from predicted probabilities (N,) and from whether the thing `name` came about (N,)."""
        hit, probability = np.asarray(hit, float), np.asarray(probability, float)
        groups = [rows for rows in np.array_split(np.argsort(probability, kind="stable"), 10) if len(rows)]
        nominal, empirical = ([part[rows].mean() for rows in groups] for part in (probability, hit))
        labels = (f"probability of {name}", f"frequency of {name}", f"probability of {name}")
        counts = [len(rows) for rows in groups]
        return cls(nominal, empirical, counts, probability, flat=False, labels=labels).plot(ax, **style)

    def plot(self, ax: Any = None, **style: Any) -> "CalibrationDisplay":
        """Draw on two axes, on halves of one, or on new ones; `style` goes to the curve."""
        self.axes_ = several(ax, 2)
        self.figure_ = self.axes_[0].figure
        self._curve(self.axes_[0], style)
        self._histogram(self.axes_[1], style.get("color", BLUE))
        return self

    def _curve(self, ax: Axes, style: dict[str, Any]) -> None:
        low, high = (binom.ppf(q, self.counts, self.nominal) / self.counts for q in (0.025, 0.975))
        self.chance_ = ax.fill_between(self.nominal, low, high, color=GREY, alpha=0.2, lw=0)
        ax.plot([0, 1], [0, 1], color=GREY, lw=0.9, ls="--")
        options = {"color": BLUE, "marker": "o", "ms": 3, "lw": 1.4}
        (self.line_,) = ax.plot(self.nominal, self.empirical, **(options | style))
        dress(ax, *self.labels[:2])
        ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=(0, 0.25, 0.5, 0.75, 1), yticks=(0, 0.25, 0.5, 0.75, 1))

    def _histogram(self, ax: Axes, color: Any) -> None:
        num = len(self.values)
        bins = int(np.clip(num // 15, 5, 20))
        share = np.full(num, 1 / num)
        options = {"color": color, "alpha": 0.45, "ec": "white", "lw": 0.6, "weights": share, "zorder": 2}
        _, _, self.bars_ = ax.hist(self.values, bins=bins, range=(0, 1), **options)
        if self.flat:
            ax.axhspan(*(binom.ppf([0.025, 0.975], num, 1 / bins) / num), color=GREY, alpha=0.2, lw=0)
            ax.axhline(1 / bins, color=GREY, lw=0.9, ls="--")
        dress(ax, self.labels[2], "share of rows")
        ax.set(xlim=(0, 1), xticks=(0, 0.25, 0.5, 0.75, 1))

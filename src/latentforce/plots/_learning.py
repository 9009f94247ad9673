"""Learning curves: the objective over the steps of training."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from sklearn.utils.validation import check_is_fitted

from ._axes import BLUE, GREY, RED, dress, legend, one


class LearningCurveDisplay:
    """The objective over the steps of training, as it was and smoothed; held-out scores where there are any.

    **Arguments:**

    - `step` (K,), `objective` (K,): nats for each row, which training makes as large as it can.
    - `held_out`: `(step, score)`, the log density of rows kept aside.
    - `window`: how many points are averaged for the smooth line; by default a fiftieth of all.

    **Attributes**, after `plot`: `ax_`, `figure_`, `line_` (smoothed), `raw_` and `held_out_` (artists, or None).

    !!! example

        >>> import numpy as np
        >>> from matplotlib.figure import Figure
        >>> from latentforce.plots import LearningCurveDisplay
        >>> step = np.arange(1, 101)
        >>> LearningCurveDisplay(step, -1.0 / step).plot(Figure().subplots()).ax_.get_xlabel()
        'step'
    """

    def __init__(
        self, step: Any, objective: Any, *, held_out: tuple[Any, Any] | None = None, window: int | None = None
    ):
        self.step, self.objective = np.asarray(step), np.asarray(objective)
        self.held_out = None if held_out is None else (np.asarray(held_out[0]), np.asarray(held_out[1]))
        self.window = max(len(self.objective) // 50, 1) if window is None else window

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, window: int | None = None, ax: Axes | None = None, **style: Any
    ) -> "LearningCurveDisplay":
        """Draw how a fitted estimator, regressor or classifier, was trained."""
        check_is_fitted(estimator)
        history = estimator.history_
        step = np.linspace(1, history.steps[-1], len(history.objective))  # a saved curve is thinned out
        held_out = (history.steps, history.held_out) if history.held_out else None
        return cls(step, history.objective, held_out=held_out, window=window).plot(ax, **style)

    @property
    def smooth(self) -> np.ndarray:
        """The objective (K,), averaged over a window of the steps around; narrower at the ends."""
        total = np.concatenate([[0.0], np.cumsum(self.objective)])
        places = np.arange(len(self.objective))
        reach = np.minimum(np.minimum(places, places[::-1]), self.window // 2)
        return (total[places + reach + 1] - total[places - reach]) / (2 * reach + 1)

    def plot(self, ax: Axes | None = None, **style: Any) -> "LearningCurveDisplay":
        """Draw on `ax`, or on new axes; `style` goes to the smooth line. The first steps may be cut off below."""
        self.ax_ = one(ax)
        self.figure_ = self.ax_.figure
        self.raw_ = None
        if self.window > 1:
            (self.raw_,) = self.ax_.plot(self.step, self.objective, color=GREY, lw=0.6, alpha=0.5, label="each step")
        name = "objective" if self.raw_ is None else "smoothed"
        (self.line_,) = self.ax_.plot(self.step, self.smooth, **({"color": BLUE, "lw": 1.6, "label": name} | style))
        self.held_out_ = None
        if self.held_out is not None:
            (self.held_out_,) = self.ax_.plot(*self.held_out, color=RED, lw=1.4, label="held-out rows")
        self._limit()
        dress(self.ax_, "step", "objective (nats per row)")
        legend(self.ax_, loc="lower right")
        return self

    def _limit(self) -> None:
        """Keep a bad start, worse than the rest by orders of magnitude, from hiding everything that follows."""
        smooth = self.smooth
        settled = smooth[len(smooth) // 10 :]
        low, high = settled.min(), max(self.objective[len(smooth) // 10 :].max(), settled.max())
        if smooth[0] < low - 2 * (high - low):
            margin = max(high - low, 1e-9)
            self.ax_.set_ylim(low - 0.6 * margin, high + 0.1 * margin)

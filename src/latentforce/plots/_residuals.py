"""Residuals in units of what the model thought them to be."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from ._axes import BLUE, GREY, dress, one, scatter
from ._beliefs import judged
from ._source import regression_only, target

KINDS = ("residual_vs_predicted", "actual_vs_predicted")


class ResidualsDisplay:
    """Standardised residuals `(y - mean)/std` against predictions: about 95 % of them lie between the dashed lines.

    `kind="actual_vs_predicted"` shows the targets themselves against the predictions instead, with the bars that hold
    95 % of a normal distribution (those of at most 300 rows).

    **Arguments:** `y`, `mean`, `std` (N,): observed, and predicted with its standard deviation, noise included.
    `name`: of the target.

    **Attributes**, after `plot`: `ax_`, `figure_`, `points_`, `lines_` (zero and the 95 % limits, or the diagonal) and
    `bars_` (None for residuals).

    !!! example

        >>> import numpy as np
        >>> from matplotlib.figure import Figure
        >>> from latentforce.plots import ResidualsDisplay
        >>> y = np.array([1.0, 2.0, 3.0])
        >>> display = ResidualsDisplay.from_predictions(y, y + 0.1, np.full(3, 0.2), ax=Figure().subplots())
        >>> display.residuals.round(3).tolist()
        [-0.5, -0.5, -0.5]
    """

    def __init__(self, y: Any, mean: Any, std: Any, *, name: str = "y"):
        self.y, self.mean, self.std = (np.asarray(part, np.float64) for part in (y, mean, std))
        self.name = name

    @property
    def residuals(self) -> np.ndarray:
        """Standardised, (N,)."""
        return (self.y - self.mean) / self.std

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        output: int = 0,
        kind: str = "residual_vs_predicted",
        ax: Axes | None = None,
        **style: Any,
    ) -> "ResidualsDisplay":
        """Draw the residuals of a fitted regressor on data (N, D) and (N,) or (N, P)."""
        regression_only(estimator, "residuals")
        found = judged(estimator, X, y, output)
        display = cls(found.y, found.mean, found.std, name=target(estimator, output))
        return display.plot(ax, kind=kind, **style)

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        mean: Any,
        std: Any,
        *,
        name: str = "y",
        kind: str = "residual_vs_predicted",
        ax: Axes | None = None,
        **style: Any,
    ) -> "ResidualsDisplay":
        """Draw the residuals of predictions that are at hand."""
        return cls(y, mean, std, name=name).plot(ax, kind=kind, **style)

    def plot(self, ax: Axes | None = None, *, kind: str = "residual_vs_predicted", **style: Any) -> "ResidualsDisplay":
        """Draw on `ax`, or on new axes; `style` goes to the points."""
        if kind not in KINDS:
            raise ValueError(f"`kind` must be one of {', '.join(KINDS)}, got {kind!r}.")
        self.ax_ = one(ax)
        self.figure_ = self.ax_.figure
        self.bars_ = None
        self._residuals(style) if kind == "residual_vs_predicted" else self._targets(style)
        return self

    def _residuals(self, style: dict[str, Any]) -> None:
        self.points_ = scatter(self.ax_, self.mean, self.residuals, **({"color": BLUE} | style))
        self.lines_ = [self.ax_.axhline(at, color=GREY, lw=0.9, ls="-" if at == 0 else "--") for at in (0, -1.96, 1.96)]
        dress(self.ax_, f"predicted {self.name}", "residual / its deviation")

    def _targets(self, style: dict[str, Any]) -> None:
        chosen = np.random.default_rng(0).permutation(len(self.y))[:300]
        bars = self.mean[chosen] + 1.96 * self.std[chosen] * np.array([[-1.0], [1.0]])
        self.bars_ = self.ax_.hlines(self.y[chosen], *bars, color=BLUE, lw=0.7, alpha=0.3, zorder=2)
        self.points_ = scatter(self.ax_, self.mean, self.y, **({"color": BLUE} | style))
        ends = [min(self.y.min(), self.mean.min()), max(self.y.max(), self.mean.max())]
        self.lines_ = self.ax_.plot(ends, ends, color=GREY, lw=0.9, ls="--")
        dress(self.ax_, f"predicted {self.name}", f"observed {self.name}")

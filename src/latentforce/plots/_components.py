"""What each input does: the average effect of setting it to a value."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..estimators._table import Column
from ._axes import COVERAGES, GREY, Bands, curve, dress, several
from ._beliefs import draws, expectation
from ._source import find, label, parts, regression_only, scaled, shown, steps, target


class ComponentsDisplay:
    """The effect of each input on the target, a panel for each, all with the same heights.

    What is shown at a value of an input is the mean prediction over rows of the data in all of which the input is set
    to that value (partial dependence), less the average of the curve. Bands are of the same for functions drawn from
    the posterior: what is not known of the effect, without noise. Of an additive model of the inputs it is the additive
    component itself, up to a constant; of others an average over interactions, and where inputs depend on each other
    some of the rows that are averaged are unlike any that were seen.

    **Arguments:**

    - `grids`: values of each input (G,), numbers, times or levels of text; `means` (G,) of each.
    - `bands`: for each input, lower and upper ends (G,) by coverage.
    - `names`: of the inputs; `rugs`: for each input values in the data, marked on the axis; `ylabel`.

    **Attributes**, after `plot`: `axes_`, `figure_`, `lines_`, `bands_` (artists).

    !!! example

        >>> import numpy as np
        >>> from matplotlib.figure import Figure
        >>> from latentforce.plots import ComponentsDisplay
        >>> x = np.linspace(0.0, 1.0, 20)
        >>> display = ComponentsDisplay([x, x], [x - 0.5, np.sin(6 * x)], names=["slope", "wave"])
        >>> [ax.get_xlabel() for ax in display.plot(Figure().subplots(1, 2)).axes_]
        ['slope', 'wave']
    """

    def __init__(
        self,
        grids: Sequence[Any],
        means: Sequence[Any],
        bands: Sequence[Bands] | None = None,
        *,
        names: Sequence[str],
        rugs: Sequence[Any] | None = None,
        ylabel: str = "effect",
    ):
        self.grids, self.means = [np.asarray(grid) for grid in grids], [np.asarray(mean) for mean in means]
        self.bands: list[Bands] = [{} for _ in self.grids] if bands is None else list(bands)
        self.names, self.ylabel = list(names), ylabel
        self.rugs = [None for _ in self.grids] if rugs is None else [np.asarray(rug) for rug in rugs]

    @property
    def sizes(self) -> np.ndarray:
        """How far each effect reaches, from its lowest to its highest mean (D,)."""
        return np.array([np.ptp(mean) for mean in self.means])

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        columns: Sequence[str | int] | None = None,
        most: int = 9,
        output: int = 0,
        grid: int = 20,
        num_rows: int = 25,
        num_samples: int = 20,
        ax: Any = None,
        **style: Any,
    ) -> "ComponentsDisplay":
        """Draw the effects of inputs in a fitted regressor, averaged over `num_rows` rows of X.

        By default of all `columns` or, if there are more than `most`, of those with the largest effects.
        """
        regression_only(estimator, "the effects of inputs")
        name = target(estimator, output)
        x = scaled(estimator, X)
        kept = x[np.random.default_rng(0).permutation(len(x))[:num_rows]]
        chosen = parts(estimator) if columns is None else [find(estimator, column) for column in columns]
        means = [_average(expectation(estimator, _set(kept, *one, grid), output), len(kept)) for one in chosen]
        if columns is None:
            largest = sorted(range(len(means)), key=lambda k: -np.ptp(means[k]))[:most]
            chosen, means = [chosen[k] for k in sorted(largest)], [means[k] for k in sorted(largest)]
        functions = draws(estimator, num_samples, output, num_knots=50)  # fine detail is averaged away
        drawn = [_average(functions(_set(kept, *one, grid)), len(kept)) for one in chosen]
        return cls(
            [shown(column, steps(column, grid)) for column, _ in chosen],
            means,
            [_bands(mean, values) for mean, values in zip(means, drawn, strict=True)],
            names=[label(column) for column, _ in chosen],
            rugs=[shown(column, kept[:, where]) for column, where in chosen],
            ylabel=f"effect on {name}",
        ).plot(ax, **style)

    def plot(self, ax: Any = None, **style: Any) -> "ComponentsDisplay":
        """Draw on as many axes as there are inputs, on parts of one, or on new ones; `style` goes to the lines."""
        self.axes_ = several(ax, len(self.grids))
        self.figure_ = self.axes_[0].figure
        ends = [end for bands in self.bands for pair in bands.values() for end in pair] + self.means
        low, high = min(end.min() for end in ends), max(end.max() for end in ends)
        margin = 0.06 * (high - low) or 1.0
        self.lines_, self.bands_ = [], []
        for panel, grid, mean, bands, name, rug in zip(
            self.axes_, self.grids, self.means, self.bands, self.names, self.rugs, strict=True
        ):
            panel.axhline(0.0, color=GREY, lw=0.7)
            line, drawn = curve(panel, grid, mean, bands, **style)
            self.lines_.append(line)
            self.bands_.append(drawn)
            panel.set_ylim(low - margin, high + margin)
            if rug is not None and grid.dtype.kind not in "UO":
                panel.plot(rug, np.full(len(rug), low - margin), "|", color=GREY, ms=7, mew=0.6, zorder=1)
            dress(panel, name, self.ylabel, grid)
        return self


def _set(rows: np.ndarray, column: Column, where: slice, grid: int) -> np.ndarray:
    """All rows (B, D) at each of G values of one column: (G B, D)."""
    values = steps(column, grid)
    many = np.tile(rows, (len(values), 1))
    many[:, where] = np.repeat(values, len(rows), axis=0)
    return many


def _average(values: np.ndarray, num_rows: int) -> np.ndarray:
    """Over the rows at each value, (..., G B) to (..., G), and with the curve's own average taken off."""
    curves = values.reshape(*values.shape[:-1], -1, num_rows).mean(axis=-1)
    return curves - curves.mean(axis=-1, keepdims=True)


def _bands(mean: np.ndarray, drawn: np.ndarray) -> Bands:
    """Bands about the mean (G,), as wide as the deviation of drawn curves (S, G) says: they are few."""
    deviation = drawn.std(axis=0, ddof=1)
    return {c: (mean - z * deviation, mean + z * deviation) for c, z in zip(COVERAGES, (1.96, 0.6745), strict=True)}

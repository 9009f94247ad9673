"""Hidden layers: what each makes of the inputs before the next one reads it."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..depth._model import Model
from ..estimators._engine import in_float64
from ..inference._prediction import hidden_marginals
from ._axes import COLOURS, band, dress, legend, several
from ._source import along, label, parts


class LayersDisplay:
    """Mean and 95 % band of every output of every layer along one input, a panel for each layer.

    **Arguments:**

    - `x` (G,): numbers or times. `means`, `deviations`: (G, R) for each layer, in the model's scaled units.
    - `xlabel`: name of the input.

    **Attributes**, after `plot`: `axes_`, `figure_`, `lines_` (a list for each layer) and `bands_` likewise.

    !!! example

        >>> import numpy as np
        >>> from latentforce.plots import LayersDisplay
        >>> from matplotlib.figure import Figure
        >>> x = np.linspace(0.0, 1.0, 20)
        >>> layers = [np.stack([x, x**2], axis=1), np.sin(9 * x)[:, None]]
        >>> display = LayersDisplay(x, layers, [np.full_like(mean, 0.1) for mean in layers])
        >>> [len(lines) for lines in display.plot(Figure().subplots(1, 2)).lines_]
        [2, 1]
    """

    def __init__(self, x: Any, means: Sequence[Any], deviations: Sequence[Any], *, xlabel: str = "x"):
        self.x, self.xlabel = np.asarray(x), xlabel
        self.means, self.deviations = [np.asarray(m) for m in means], [np.asarray(d) for d in deviations]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        column: str | int | None = None,
        held: Mapping[str, Any] | None = None,
        grid: Any = 300,
        ax: Any = None,
        **style: Any,
    ) -> "LayersDisplay":
        """Draw the layers of a deep model along `column`, the other inputs held as for `PosteriorDisplay`."""
        parts(estimator)
        if not isinstance(estimator.model_, Model) or estimator.model_.depth < 2:
            raise ValueError(f"`estimator` must be a deep model to have hidden layers, got {estimator.model!r}.")
        path = along(estimator, column, grid, X, held)
        means, deviations = _marginals(estimator, path.rows)
        return cls(path.values, means, deviations, xlabel=label(path.column)).plot(ax, **style)

    def plot(self, ax: Any = None, **style: Any) -> "LayersDisplay":
        """Draw on as many axes as there are layers, on parts of one, or on new ones; `style` goes to the lines."""
        self.axes_ = several(ax, len(self.means))
        self.figure_ = self.axes_[0].figure
        self.lines_, self.bands_ = [], []
        for k, (panel, mean, deviation) in enumerate(zip(self.axes_, self.means, self.deviations, strict=True)):
            colours = [COLOURS[unit % len(COLOURS)] for unit in range(mean.shape[1])]
            ends = (mean - 1.96 * deviation).T, (mean + 1.96 * deviation).T
            self.bands_.append([band(panel, self.x, a, b, 0.95, c) for a, b, c in zip(*ends, colours, strict=True)])
            lines = [
                panel.plot(self.x, m, **({"color": c, "lw": 1.4, "zorder": 4, "label": f"unit {unit + 1}"} | style))[0]
                for unit, (m, c) in enumerate(zip(mean.T, colours, strict=True))
            ]
            self.lines_.append(lines)
            last = k == len(self.means) - 1
            dress(panel, self.xlabel, f"layer {k + 1}{' (last)' if last else ''}, scaled", self.x)
            if 1 < len(lines) <= len(COLOURS):
                legend(panel, handles=lines)
        return self


@in_float64
def _marginals(estimator: Any, rows: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    marginals = hidden_marginals(estimator.fitted_.ready, rows, seed=estimator.seed_)
    return [np.asarray(mean) for mean, _ in marginals], [np.sqrt(np.asarray(variance)) for _, variance in marginals]

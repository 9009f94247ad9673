"""The hidden force: what was pushing the system."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from scipy.special import ndtri

from ..depth._layer import Layer
from ..depth._model import Model
from ._axes import BLUE, COVERAGES, GREY, curve, dress, legend, one
from ._source import axis


class ForceDisplay:
    """The posterior of a hidden force with its 50 and 95 % bands.

    **Arguments:** `t` (G,): numbers or times; `mean`, `std` (G,); `xlabel`, `ylabel`.

    **Attributes**, after `plot`: `ax_`, `figure_`, `line_`, `bands_` (artists).

    !!! example

        >>> import numpy as np
        >>> from matplotlib.figure import Figure
        >>> from latentforce.plots import ForceDisplay
        >>> t = np.linspace(0.0, 1.0, 20)
        >>> len(ForceDisplay(t, np.sin(t), np.ones(20)).plot(Figure().subplots()).bands_)
        2
    """

    def __init__(self, t: Any, mean: Any, std: Any, *, xlabel: str = "t", ylabel: str = "hidden force"):
        self.t, self.mean, self.std = np.asarray(t), np.asarray(mean), np.asarray(std)
        self.xlabel, self.ylabel = xlabel, ylabel

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        t: Any = None,
        *,
        layer: int = 0,
        index: int = 0,
        direction: int = 0,
        grid: int = 300,
        ax: Axes | None = None,
        **style: Any,
    ) -> "ForceDisplay":
        """Draw a force of a fitted estimator at times t (G,), or at `grid` of them over the range of training.

        Which one is said as for `predict_force`. With one input column times are in its units; with several, and in
        layers after the first, in the model's scaled ones.
        """
        times, xlabel = axis(estimator, layer, direction, grid)
        times = times if t is None else np.asarray(t)
        mean, std = estimator.predict_force(times, layer=layer, index=index, direction=direction, return_std=True)
        return cls(times, mean, std, xlabel=xlabel, ylabel=_name(estimator, layer, index)).plot(ax, **style)

    def plot(self, ax: Axes | None = None, **style: Any) -> "ForceDisplay":
        """Draw on `ax`, or on new axes; `style` goes to the line of the mean."""
        self.ax_ = one(ax)
        self.figure_ = self.ax_.figure
        reach = {coverage: ndtri((1 + coverage) / 2) * self.std for coverage in COVERAGES}
        bands = {coverage: (self.mean - r, self.mean + r) for coverage, r in reach.items()}
        self.ax_.axhline(0.0, color=GREY, lw=0.7)
        self.line_, self.bands_ = curve(self.ax_, self.t, self.mean, bands, **({"color": BLUE} | style))
        dress(self.ax_, self.xlabel, self.ylabel, self.t)
        legend(self.ax_)
        return self


def _name(estimator: Any, layer: int, index: int) -> str:
    """Which force it is, as far as there are several."""
    model = estimator.model_
    depth = model.depth if isinstance(model, Model) else 1
    where = f" of layer {layer + 1}" if depth > 1 else ""
    if layer == depth - 1 and estimator.num_forces is None and len(estimator.targets_.names) > 1:
        return f"force{where} on {estimator.targets_.names[index]}"
    several = isinstance(model, Model) and _count(model.layers[layer]) > 1
    return f"hidden force {index + 1}{where}" if several else f"hidden force{where}"


def _count(layer: Layer) -> int:
    return layer.outputs.num_forces(layer.posterior.shape[0])

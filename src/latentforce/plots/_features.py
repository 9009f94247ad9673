"""Feature functions: the shapes that a layer builds its functions of."""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes

from ..depth._model import Model
from ..estimators._engine import in_float64
from ._axes import COLOURS, dress, legend, one
from ._source import axis, direction_range


class FeaturesDisplay:
    """Columns of the whitened feature matrix `A(t) = Cov[f(t), e]`, `e ~ N(0, I)`, of one direction of a layer.

    The functions of the layer are `A(t) e` and what the features leave unexplained, so these are the shapes that they
    are sums of, as large as they are a priori.

    **Arguments:** `t` (G,): numbers or times; `features` (G, F); `which`: numbers of those to draw, by default the
    first six; `xlabel`.

    **Attributes**, after `plot`: `ax_`, `figure_`, `lines_`.

    !!! example

        >>> import numpy as np
        >>> from matplotlib.figure import Figure
        >>> from latentforce.plots import FeaturesDisplay
        >>> t = np.linspace(0.0, 1.0, 50)
        >>> waves = np.cos(np.pi * np.arange(9) * t[:, None])
        >>> len(FeaturesDisplay(t, waves).plot(Figure().subplots()).lines_)
        6
    """

    def __init__(self, t: Any, features: Any, *, which: Sequence[int] | None = None, xlabel: str = "t"):
        self.t, self.features, self.xlabel = np.asarray(t), np.asarray(features), xlabel
        count = self.features.shape[1]
        self.which = list(range(min(6, count))) if which is None else list(which)
        if not all(0 <= k < count for k in self.which):
            raise ValueError(f"`which` must hold numbers between 0 and {count - 1}, got {self.which}.")

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        layer: int = 0,
        direction: int = 0,
        index: int = 0,
        which: Sequence[int] | None = None,
        grid: int = 400,
        ax: Axes | None = None,
        **style: Any,
    ) -> "FeaturesDisplay":
        """Draw the features of output `index` of a layer along a direction, over the interval that they are made for.

        Heights are in the model's scaled units.
        """
        times, xlabel = axis(estimator, layer, direction, grid, whole=True)
        if not isinstance(estimator.model_, Model):
            raise ValueError(f"`estimator` must have features to show them; {estimator.model!r} is exact.")
        return cls(times, _features(estimator, layer, direction, index, grid), which=which, xlabel=xlabel).plot(
            ax, **style
        )

    def plot(self, ax: Axes | None = None, **style: Any) -> "FeaturesDisplay":
        """Draw on `ax`, or on new axes; `style` goes to all lines."""
        self.ax_ = one(ax)
        self.figure_ = self.ax_.figure
        self.lines_ = [
            self.ax_.plot(
                self.t,
                self.features[:, k],
                **({"color": COLOURS[n % len(COLOURS)], "lw": 1.3, "label": f"{k}"} | style),
            )[0]
            for n, k in enumerate(self.which)
        ]
        dress(self.ax_, self.xlabel, "feature, scaled", self.t)
        legend(self.ax_, ncols=3)
        return self


@in_float64
def _features(estimator: Any, layer: int, direction: int, index: int, grid: int) -> np.ndarray:
    """`A(t)` (grid, F) of one output along one direction."""
    chosen = estimator.fitted_.ready.layers[layer]
    count = chosen.inputs(jnp.zeros((1, chosen.inputs.num_inputs))).shape[0]
    t = jnp.linspace(*direction_range(chosen, direction), grid)
    A, _ = chosen.outputs.summary(chosen.features, jnp.broadcast_to(t, (count, grid)))
    if not 0 <= index < chosen.num_latents:
        raise ValueError(f"`index` must lie between 0 and {chosen.num_latents - 1}, got {index!r}.")
    return np.asarray(A[min(index, A.shape[0] - 1), chosen.outputs.block(0, direction)[1]].T)

"""The posterior of a target along one input: mean, bands, drawn functions and data."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from sklearn.base import is_classifier

from ._axes import BLUE, COVERAGES, Bands, curve, dress, legend, one, scatter
from ._beliefs import draws, expectation, observed, probabilities, quantiles
from ._source import along, label, parts, scaled, shown, target


class PosteriorDisplay:
    """What a model believes of a target along one input: the mean, bands, drawn functions, and the data.

    **Arguments:**

    - `x` (G,): numbers, times (`datetime64`) or levels (text); `mean` (G,).
    - `bands`: lower and upper ends (G,) by coverage, such as `{0.95: (low, high)}`.
    - `samples` (S, G): drawn functions. `data`: `(x, y)` of observations.
    - `xlabel`, `ylabel`: names of the axes.

    **Attributes**, after `plot`: `ax_`, `figure_`, `line_` (the mean), `bands_`, `samples_` and `data_` (artists).

    !!! example

        >>> import numpy as np
        >>> from matplotlib.figure import Figure
        >>> from latentforce.plots import PosteriorDisplay
        >>> x = np.linspace(0.0, 1.0, 20)
        >>> display = PosteriorDisplay(x, np.sin(x), {0.95: (np.sin(x) - 1, np.sin(x) + 1)}, xlabel="time")
        >>> display.plot(Figure().subplots()).ax_.get_xlabel()
        'time'
    """

    def __init__(
        self,
        x: Any,
        mean: Any,
        bands: Bands | None = None,
        *,
        samples: Any = None,
        data: tuple[Any, Any] | None = None,
        xlabel: str = "x",
        ylabel: str = "y",
    ):
        self.x, self.mean = np.asarray(x), np.asarray(mean)
        self.bands = {c: (np.asarray(low), np.asarray(high)) for c, (low, high) in (bands or {}).items()}
        self.samples = np.zeros((0, len(self.x))) if samples is None else np.asarray(samples)
        self.data = None if data is None else (np.asarray(data[0]), np.asarray(data[1]))
        self.xlabel, self.ylabel = xlabel, ylabel

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        column: str | int | None = None,
        held: Mapping[str, Any] | None = None,
        grid: Any = 300,
        output: int = 0,
        num_samples: int = 5,
        ax: Axes | None = None,
        **style: Any,
    ) -> "PosteriorDisplay":
        """Draw what a fitted estimator believes; bands are of y, noise included, and drawn functions are without.

        With several inputs it is a cut along `column`, the others `held` at given values (by name) or at the medians
        (and most frequent levels) of X, or in the middle of their training ranges. The data do not lie on such a cut
        and are drawn for one input only. For a classifier the picture is of the probability of class number `output`,
        with bands of what is not known of it. `grid`: values of the column, or how many over its training range.
        """
        ylabel = target(estimator, output)
        path = along(estimator, column, grid, X, held)
        data, samples = None, None
        if is_classifier(estimator):
            mean, bands = probabilities(estimator, path.rows, output, COVERAGES)
            ylabel = f"probability of {ylabel}"
        else:
            mean = expectation(estimator, path.rows, output)
            bands = quantiles(estimator, path.rows, output, COVERAGES)
            samples = draws(estimator, num_samples, output)(path.rows) if num_samples else None
            if X is not None and y is not None and len(parts(estimator)) == 1:
                x = scaled(estimator, X)
                data = shown(path.column, x), observed(estimator, y, len(x))[:, output]
        options = {"xlabel": label(path.column), "ylabel": ylabel}
        return cls(path.values, mean, bands, samples=samples, data=data, **options).plot(ax, **style)

    def plot(self, ax: Axes | None = None, **style: Any) -> "PosteriorDisplay":
        """Draw on `ax`, or on new axes; `style` goes to the line of the mean."""
        self.ax_ = one(ax)
        self.figure_ = self.ax_.figure
        self.line_, self.bands_ = curve(self.ax_, self.x, self.mean, self.bands, **style)
        thin = {"color": style.get("color", BLUE), "lw": 0.6, "alpha": 0.55, "zorder": 2.5}
        ordered = self.x.dtype.kind not in "UO"
        self.samples_ = [self.ax_.plot(self.x, f, **thin)[0] for f in self.samples] if ordered else []
        self.data_ = None if self.data is None else scatter(self.ax_, *self.data, label="data")
        dress(self.ax_, self.xlabel, self.ylabel, self.x)
        legend(self.ax_)
        return self

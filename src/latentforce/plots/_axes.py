"""What all pictures share: colours, axes, curves with bands, and labels that column names cannot break."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.ticker import MaxNLocator

# Okabe and Ito's colours, which people with any colour vision tell apart
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
BLUE, RED, GREEN, *_ = COLOURS
GREY = "#6b6b6b"
INK = "#222222"
COVERAGES = (0.95, 0.5)  # of the bands that are drawn, the widest first
LONGEST = 30  # letters of a name on an axis
MANY = 2000  # points: more are drawn as one image where the picture is made of vectors

Bands = Mapping[float, tuple[np.ndarray, np.ndarray]]  # lower and upper ends by coverage


def one(ax: Axes | None) -> Axes:
    """The axes given, or new ones; pyplot is imported for those alone."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained")[1]


def several(ax: Any, num: int) -> list[Axes]:
    """As many axes as there are panels: those given (a list, an array), new ones, or parts of the one given."""
    columns = min(num, 3)
    rows = -(-num // columns)
    if ax is None:
        import matplotlib.pyplot as plt

        size = (3.4 * columns, 2.8 * rows) if num > 1 else None
        figure, axes = plt.subplots(rows, columns, squeeze=False, figsize=size, layout="constrained")
        for unused in axes.flat[num:]:
            figure.delaxes(unused)
        return list(axes.flat[:num])
    if not isinstance(ax, Axes):
        given = list(np.ravel(ax))
        if len(given) != num:
            raise ValueError(f"`ax` must be None, one axes or {num} of them, one for each panel, got {len(given)}.")
        return given
    if num == 1:
        return [ax]
    spec = ax.get_subplotspec()
    if spec is None:
        raise ValueError(f"`ax` must come from `subplots` to be divided into {num} panels, or be {num} axes.")
    ax.set_axis_off()
    parts = spec.subgridspec(rows, columns)
    return [ax.figure.add_subplot(parts[k // columns, k % columns]) for k in range(num)]


def band(ax: Axes, x: np.ndarray, low: np.ndarray, high: np.ndarray, coverage: float, color: Any) -> Artist:
    """A band that is paler the more it covers."""
    options = {"color": color, "alpha": 0.16 if coverage > 0.75 else 0.28, "label": _percent(coverage), "zorder": 2}
    return ax.fill_between(x, low, high, lw=0, **options)


def curve(ax: Axes, x: np.ndarray, mean: np.ndarray, bands: Bands, **style: Any) -> tuple[Artist, list[Artist]]:
    """A mean with its bands: a line over numbers and times, points with bars over levels of text."""
    style = {"color": BLUE, "label": "mean", "zorder": 4, "lw": 1.6} | style
    if x.dtype.kind in "UO":
        return _levels(ax, x, mean, bands, style)
    drawn = [band(ax, x, *bands[coverage], coverage, style["color"]) for coverage in sorted(bands, reverse=True)]
    (line,) = ax.plot(x, mean, **style)
    return line, drawn


def _levels(
    ax: Axes, x: np.ndarray, mean: np.ndarray, bands: Bands, style: dict[str, Any]
) -> tuple[Artist, list[Artist]]:
    places = np.arange(len(x))
    widths = {coverage: 1.5 if coverage > 0.75 else 4.0 for coverage in bands}
    options = {"color": style["color"], "alpha": 0.6}
    drawn: list[Artist] = [
        ax.vlines(places, *ends, lw=widths[coverage], label=_percent(coverage), **options)
        for coverage, ends in bands.items()
    ]
    style = {"marker": "o", "ls": ""} | style
    (points,) = ax.plot(places, mean, **style)
    crowded = len(x) > 4 or max(map(len, x)) > 6
    ax.set_xticks(
        places, [plain(level, 12) for level in x], rotation=45 if crowded else 0, ha="right" if crowded else "center"
    )
    ax.set_xlim(-0.6, len(x) - 0.4)
    return points, drawn


def _percent(coverage: float) -> str:
    return f"{100 * coverage:g} %"


def scatter(ax: Axes, x: np.ndarray, y: np.ndarray, **style: Any) -> Artist:
    """Points, smaller and paler where there are many."""
    many = len(x) > MANY
    size = 1.5 if many else 2.5 if len(x) > 200 else 3.5
    options = {"ms": size, "color": INK, "alpha": 0.25 if many else 0.55, "mew": 0, "zorder": 3, "rasterized": many}
    return ax.plot(x, y, "o", **(options | style))[0]


def dress(ax: Axes, xlabel: str, ylabel: str, x: np.ndarray | None = None) -> None:
    """Quiet axes with labels; dates where x holds times."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="#e6e6e6", lw=0.6, zorder=0)
    ax.set_axisbelow(True)
    ax.set(xlabel=plain(xlabel), ylabel=plain(ylabel))
    if x is not None and x.dtype.kind in "iuf":
        ax.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    if x is not None and x.dtype.kind == "M":
        locator = AutoDateLocator(maxticks=6)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))


def legend(ax: Axes, **options: Any) -> None:
    """A small legend, where it hides least."""
    ax.legend(**({"fontsize": "small", "frameon": False, "handlelength": 1.4} | options))


def plain(text: str, longest: int = LONGEST) -> str:
    """Text as it is, not as a formula, and cut where it is long."""
    text = " ".join(str(text).split())
    return (text if len(text) <= longest else f"{text[: longest - 1]}…").replace("$", r"\$")

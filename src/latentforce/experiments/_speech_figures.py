"""Pictures of the speech experiment: learning curves and scores."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ..plots._axes import COLOURS, GREY, INK, dress
from ._speech_claims import LATE, SCORES, Found

BLUE, RED, GREEN, PINK, YELLOW, _ = COLOURS
CURVES = {"iddgp": ("never (IDDGP)", BLUE), LATE: ("later", YELLOW), "dlfm-vfrf": ("from the start", RED)}
PANELS = {"bound": "negative ELBO (nats a point)", "rmse": "test RMSE", "nmll": "test NMLL"}
ROWS = {
    "dgp": ("DGP", GREY),
    "iddgp": ("IDDGP", BLUE),
    "dlfm-rff": ("DLFM-RFF", GREEN),
    "dlfm-vfrf": ("DLFM-VFRF", RED),
    "dlfm-driven": ("driven, ours", PINK),
}


def draw_curves(found: Found) -> Figure:
    """Bound and scores over the steps, means and standard deviations over seeds (`fig:timit` a)."""
    sizes = sorted({size for name, size in found if name in CURVES})
    styles = dict(zip(sizes[:1] + sizes[1:][-1:], (":", "-"), strict=False))
    freed = {one["free_after"] for (name, _), one in found.items() if name == LATE}
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    for ax, (part, called) in zip(figure.subplots(1, len(PANELS)), PANELS.items(), strict=True):
        ends: list[float] = []
        for (name, size), one in found.items():
            if name in CURVES and size in styles:
                curve = -one[part] if part == "bound" else one[part]
                ends += _curve(ax, one["steps"], curve, CURVES[name][1], styles[size])
        if ends:
            margin = 0.06 * (max(ends) - min(ends)) or 1.0
            ax.set_ylim(min(ends) - margin, max(ends) + margin)
        for step in freed:
            ax.axvline(step, color=GREY, lw=1, ls="--")
        dress(ax, "step", called)
    keys = [Line2D([], [], color=color, label=label) for label, color in CURVES.values()]
    keys += [Line2D([], [], color=INK, ls=style, label=f"M = {size}") for size, style in styles.items()]
    keys += [Line2D([], [], color=GREY, ls="--", lw=1, label=f"later: after {step} steps") for step in freed]
    title = "ODE parameters trained"
    figure.legend(handles=keys, loc="outside upper center", ncols=len(keys), frameon=False, title=title)
    return figure


def _curve(ax: Axes, steps: np.ndarray, curves: np.ndarray, color: str, style: str) -> list[float]:
    """Mean and standard deviation; lowest and highest value after the first quarter, which is off every scale."""
    mean, deviation = curves.mean(axis=0), curves.std(axis=0)
    ax.fill_between(steps, mean - deviation, mean + deviation, color=color, alpha=0.15, lw=0)
    ax.plot(steps, mean, color=color, ls=style, lw=1.6)
    settled = np.concatenate([mean - deviation, mean + deviation])[np.tile(steps > steps[-1] / 4, 2)]
    settled = settled[np.isfinite(settled)]
    return [float(settled.min()), float(settled.max())] if settled.size else []


def draw_scores(found: Found) -> Figure:
    """Final scores, means and standard deviations over seeds, a line for each model and size (`fig:timit` b)."""
    shown = [key for name in ROWS for key in found if key[0] == name]
    figure = Figure(figsize=(8, 0.26 * max(len(shown), 4) + 1.0), layout="constrained")
    axes = figure.subplots(1, len(SCORES), sharey=True)
    for ax, (score, called) in zip(axes, SCORES.items(), strict=True):
        for place, (name, size) in enumerate(shown):
            final = found[name, size][score][:, -1]
            ax.errorbar(
                final.mean(),
                place,
                xerr=final.std(ddof=min(len(final) - 1, 1)),
                fmt="o",
                ms=5,
                capsize=3,
                color=ROWS[name][1],
            )
        dress(ax, f"test {called} (lower is better)", "")
        ax.grid(axis="both", color="#e6e6e6", lw=0.6)
    axes[0].set_yticks(range(len(shown)), [f"{ROWS[name][0]} - {size}" for name, size in shown])
    axes[0].set_ylim(len(shown) - 0.5, -0.5)
    return figure

"""The figures of `features`: kernels beside harmonic and driven features, and what features leave unexplained."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..plots._axes import BLUE, COLOURS, GREEN, GREY, INK, RED, dress, legend
from ._sweep import Measured

SHADES = "#f0f0f0", "#e0e0e0"  # of the interval, and of the part that is magnified
TINY = 1e-10  # smaller shares are not drawn
LABELS = {
    "harmonic": (r"VFF, $\phi$", r"VFRF, $G\circ\phi$"),
    "driven": ("of the force", "of the response"),
}


def force_name(nu: float) -> str:
    """Of a Matérn force, with its order as a fraction."""
    return f"Matérn-{round(2 * nu)}/2"


def draw_shapes(measured: Measured) -> Figure:
    """Three columns: kernels, harmonic features, driven ones; a row for each frequency."""
    cell = measured.cell
    figure = Figure(figsize=(15, 5.6), layout="constrained")
    grid = figure.add_gridspec(len(cell["harmonics"]), 3, width_ratios=(1, 1.4, 1.4))
    _draw_kernels(figure.add_subplot(grid[:, 0]), measured)
    for row, (m, kind) in enumerate(cell["harmonics"]):
        for column, (family, name) in enumerate(
            (("harmonic", f"harmonic, {kind}"), ("driven", f"driven, mode {2 * m}"))
        ):
            ax = figure.add_subplot(grid[row, column + 1])
            _draw_waves(ax, measured, m, family)
            ax.set_title(rf"{name}: $z = {2 * m}\pi/(b-a)$", fontsize="medium")
    figure.suptitle(f"{force_name(cell['nu'])} force, length-scale {cell['lengthscale']:g}")
    return figure


def _draw_kernels(ax: Axes, measured: Measured) -> None:
    """Responses from slow to fast approach the force's kernel, dashed; the usual LFM's does not."""
    kernels, cell = measured.result["kernels"], measured.cell
    for gamma, color in zip(cell["gammas"], (RED, *COLOURS[3:]), strict=False):
        ax.plot(kernels["lag"], kernels[f"{gamma:g}"], color=color, label=rf"$\gamma$ = {gamma:g}")
    ax.plot(kernels["lag"], kernels["usual"], color=GREEN, label=rf"usual LFM, $\gamma$ = {cell['gamma']:g}")
    ax.plot(kernels["lag"], kernels["force"], "--", color=INK, label="force")
    dress(ax, "lag", "covariance")
    ax.set_title("kernels", fontsize="medium")
    legend(ax, loc="upper left")


def _draw_waves(ax: Axes, measured: Measured, m: int, family: str) -> None:
    """A feature of the force and of its response over the shaded interval, a part of it magnified above."""
    t, wave = np.array(measured.result["waves"]["t"]), measured.result["waves"][str(m)]
    ax.axvspan(*measured.cell["interval"], color=SHADES[0], zorder=0)
    curves = [np.array(curve) for curve in wave[family]]
    _draw_pair(ax, t, curves, LABELS[family])
    dress(ax, "t", "")
    ax.set(xlim=(t[0], t[-1]), ylim=(-1.45, 3.5), yticks=(-1, 0, 1))
    legend(ax, loc="upper right")
    _magnify(ax, t, curves, wave)


def _draw_pair(ax: Axes, t: np.ndarray, curves: list[np.ndarray], labels: tuple[str, str] = ("", "")) -> None:
    ax.plot(t, curves[0], "--", color=BLUE, lw=1.0, label=labels[0])
    ax.plot(t, curves[1], color=RED, lw=1.4, label=labels[1])


def _magnify(ax: Axes, t: np.ndarray, curves: list[np.ndarray], wave: dict[str, Any]) -> None:
    """A period and a half in the middle, with the delay from crest to crest."""
    period, delay = 2 * np.pi / wave["frequency"], wave["phase"] / wave["frequency"]
    middle = np.flatnonzero(abs(t - t.mean()) <= period / 2)
    crest = float(t[middle[np.argmax(curves[0][middle])]])
    low, high = ends = (crest - period / 2, crest + period)
    ax.axvspan(low, high, ymax=0.49, color=SHADES[1], zorder=0)
    inset = ax.inset_axes((0.24, 0.52, 0.38, 0.46))
    _draw_pair(inset, t, curves)
    for place, color in ((crest, BLUE), (crest + delay, RED)):
        inset.axvline(place, color=color, lw=0.8, ls=":")
    arrow = {"arrowstyle": "<->", "lw": 0.8, "color": INK, "shrinkA": 0, "shrinkB": 0, "mutation_scale": 7}
    inset.annotate("", (crest, 1.3), (crest + delay, 1.3), arrowprops=arrow)
    label = rf"$\theta$ = {wave['phase'] / np.pi:.2f}$\,\pi$"
    inset.text(crest + delay + 0.05 * period, 1.3, label, fontsize="small", va="center")
    inset.set(xlim=ends, ylim=(-1.25, 1.65), xticks=(), yticks=(), facecolor=SHADES[1])


def draw_unexplained(measured: Measured) -> Figure:
    """A panel for each order: the share of the prior variance that is left, over the interval; many frequencies are
    thin lines over the broad ones of few.
    """
    cell, t = measured.cell, measured.result["t"]
    figure = Figure(figsize=(12, 3.8), layout="constrained")
    axes = dict(
        zip(cell["orders"], figure.subplots(1, len(cell["orders"]), sharey=True, squeeze=False)[0], strict=True)
    )
    colours = {"harmonic": BLUE, "driven": RED}
    for row in measured.result["rows"]:
        few = row["num_frequencies"] == min(cell["sizes"])
        style = {"color": colours[row["family"]], "lw": 4.0 if few else 1.2, "alpha": 0.35 if few else 1.0}
        label = f"{row['family']}, M = {row['num_frequencies']}"
        axes[row["nu"]].semilogy(t, np.maximum(row["curve"], TINY / 10), label=label, **style)
    for nu, ax in axes.items():
        first = nu == cell["orders"][0]
        dress(ax, "t", "share left unexplained" if first else "")
        ax.axvline(cell["t"], color=GREY, lw=0.8, ls=":")
        ax.set(title=force_name(nu), ylim=(TINY, 2.0))
        if first:
            ax.text(cell["t"] + 0.05, 1e-5, f"t = {cell['t']:g},\nas in the table", color=GREY, fontsize="small")
            legend(ax, loc="lower right", frameon=True)
    return figure

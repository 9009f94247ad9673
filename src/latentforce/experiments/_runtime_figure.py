"""The picture of the running times, and the paper's numbers."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

from ..plots._axes import COLOURS, GREY, INK, dress

PAPER = {
    "iddgp": {100: 0.279, 200: 0.633, 300: 1.138, 400: 1.891},
    "dlfm-vfrf": {100: 0.313, 200: 0.686, 300: 1.207, 400: 1.977},
}  # seconds a step by M, on an A100
PEER = "gpytorch DeepGP"
INKS = {"iddgp": COLOURS[0], "dlfm-vfrf": COLOURS[1], "dlfm-driven": COLOURS[3], PEER: INK}
STYLES = {"float64": "-", "float32": ":"}
PAPER_STYLES = {"iddgp": "--", "dlfm-vfrf": "-."}


def draw(times: dict[tuple[str, str, str], dict[int, float]], machines: dict[str, str]) -> Figure:
    """Seconds over M, a panel for each device; the paper's own in grey where M is the same."""
    figure = Figure(figsize=(4.2 * len(machines) + 2.4, 3.8), layout="constrained")
    axes = figure.subplots(1, len(machines), sharey=True, squeeze=False)[0]
    for ax, (device, machine) in zip(axes, sorted(machines.items(), reverse=True), strict=True):
        here = {key[1:]: seconds for key, seconds in times.items() if key[0] == device}
        sizes = sorted({size for seconds in here.values() for size in seconds})
        for name, style in PAPER_STYLES.items():
            seconds = {size: PAPER[name][size] for size in sizes if size in PAPER[name]}
            _line(ax, seconds, color=GREY, ls=style, marker="s", ms=3, label=f"{name}, the paper's on an A100")
        for (model, dtype), seconds in here.items():
            label = model if dtype == "float64" else f"{model}, {dtype}"
            _line(ax, seconds, color=INKS[model], ls=STYLES[dtype], marker="o", ms=4, label=label)
        ax.set(xscale="log", yscale="log", title=machine)
        ax.set_xticks(sizes, [str(size) for size in sizes])
        ax.xaxis.set_minor_locator(NullLocator())
        ax.yaxis.set_major_formatter(
            FuncFormatter(lambda value, _: f"{value:g} s" if value >= 1 else f"{1e3 * value:g} ms")
        )
        ax.yaxis.set_minor_formatter(NullFormatter())
        dress(ax, "M", "a training step" if ax is axes[0] else "")
    keys = {line.get_label(): line for ax in axes for line in ax.get_lines()}
    figure.legend(keys.values(), keys, loc="outside right center", frameon=False, fontsize="small")
    return figure


def _line(ax: Axes, seconds: dict[int, float], **style: Any) -> None:
    if seconds:
        sizes = sorted(seconds)
        ax.plot(sizes, [seconds[size] for size in sizes], **style)

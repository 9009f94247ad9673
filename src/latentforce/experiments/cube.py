"""The map of models (paper, `fig:model-comparison`), drawn from the presets."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon

from ..inference._exact import ExactModel
from ..plots._axes import BLUE, GREEN, GREY, INK, RED
from ..presets import PRESETS, build
from ._sweep import Cell, Measured, Page, Setup
from ._tables import table

FEATURES = {
    None: "none (exact)",
    "points": "inducing points",
    "random": "random Fourier",
    "harmonic": "harmonic (VFF, VFRF)",
    "driven": "driven Fourier",
}
CORNERS = {  # (deep, ODE)
    (False, False): "shallow, no ODE",
    (False, True): "shallow, ODE",
    (True, False): "deep, no ODE",
    (True, True): "deep, ODE",
}
STYLES = {"earlier work": (BLUE, "o"), "the paper's": (RED, "s"), "added here": (GREEN, "D")}
AXES = np.array([[3.1, 0.0], [1.15, 0.8], [0.0, 2.5]])  # of features, dynamics and depth, as drawn


def cells(setup: Setup) -> list[Cell]:
    """One for each preset, with its place as the table of presets has it."""
    return [{"name": name, **asdict(preset), "num_frequencies": 20} for name, preset in PRESETS.items()]


def measure(cell: Cell, data: Path | None) -> dict[str, Any]:
    """The place of the model that the preset builds, and the number of features in each layer; `data` is not used."""
    t = np.linspace(0.0, 1.0, 50)
    model = build(cell["name"], t, np.sin(9 * t), num_frequencies=cell["num_frequencies"])
    if isinstance(model, ExactModel):
        return {"ode": model.process.filter.order > 0, "deep": False, "num_features": None}
    order = model.layers[0].outputs.process.filter.order
    return {"ode": order > 0, "deep": model.depth > 1, "num_features": model.layers[0].posterior.shape[-1]}


def present(results: list[Measured]) -> Page:
    """The map, and the same as a table."""
    places = {(one.cell["features"], one.cell["deep"], one.cell["ode"]): one for one in results}
    rows = [
        [label, *(_entry(places.get((features, *corner))) for corner in CORNERS)]
        for features, label in FEATURES.items()
    ]
    right = all(one.cell[axis] == one.result[axis] for one in results for axis in ("ode", "deep"))
    deep = sum(one.cell["deep"] for one in results)
    text = f"""## The map of models (`fig:model-comparison`)

Every preset on the three axes of the paper's figure, with the number of features in a layer at
M = {results[0].cell["num_frequencies"]} frequencies and one input. The paper's own models are in bold, those that are
added here in italics.

{table(["features", *CORNERS.values()], rows)}

{len(results)} models, {deep} of them deep. Each model, when built, has the ODE and the depth that the map says:
{"holds" if right else "does not hold"}."""
    return Page(text, {"map": _draw(results)})


def _origin(cell: Cell) -> str:
    """By its place; the paper's map has no name where deep models with an ODE would have inducing points."""
    if cell["features"] == "driven" or (cell["features"] == "points" and cell["ode"] and cell["deep"]):
        return "added here"
    return "the paper's" if cell["features"] == "harmonic" and cell["ode"] else "earlier work"


def _entry(one: Measured | None) -> str:
    if one is None:
        return ""
    mark = {"the paper's": "**", "added here": "*"}.get(_origin(one.cell), "")
    count = one.result["num_features"]
    return f"{mark}{one.cell['name']}{mark}" + ("" if count is None else f" ({count})")


def _draw(results: list[Measured]) -> Figure:
    figure = Figure(figsize=(13.5, 3.9), layout="constrained")
    ax = figure.subplots()
    for column, features in enumerate(FEATURES):
        _draw_slab(ax, column, deepest=0 if features is None else 1)
    _draw_axes(ax)
    for one in results:
        _draw_model(ax, one.cell)
    handles = [
        Line2D([], [], color=color, marker=marker, ls="", label=name) for name, (color, marker) in STYLES.items()
    ]
    ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(0.09, 1.0), frameon=False)
    ax.set_aspect("equal")
    ax.axis("off")
    return figure


def _project(features: int, ode: int, deep: int) -> np.ndarray:
    """Where a corner of the cube is drawn."""
    return np.array([features, ode, deep]) @ AXES


def _draw_slab(ax: Axes, column: int, deepest: int) -> None:
    """All models with the same features, and faint lines to those with the next ones."""
    places = ((0, 0), (1, 0), (1, deepest), (0, deepest))
    corners = [_project(column, *place) for place in places]
    ax.add_patch(Polygon(corners, facecolor=to_rgba(GREY, 0.13), edgecolor=to_rgba(GREY, 0.5), zorder=1))
    if column + 1 < len(FEATURES):
        for corner in corners:
            ax.plot(*zip(corner, corner + AXES[0], strict=True), color=GREY, lw=0.7, ls="-.", alpha=0.5, zorder=0)


def _draw_axes(ax: Axes) -> None:
    """An arrow for each axis, and names for the places along it."""
    width = (len(FEATURES) - 1) * AXES[0, 0]
    floor, left, right = -0.5, -1.6, width + 1.4
    _draw_arrow(ax, (left, floor), (width + 3.0, floor), "features", (0.1, 0.0), va="center")
    _draw_arrow(ax, (left, floor), (left, 3.6), "depth", (0.0, 0.12), ha="center")
    _draw_arrow(ax, (right, floor), (right + 2.2 * AXES[1, 0], floor + 2.2 * AXES[1, 1]), "dynamics", (0.1, 0.05))
    for column, label in enumerate(FEATURES.values()):
        ax.text(column * AXES[0, 0], floor - 0.12, label, ha="center", va="top", color=INK)
    for deep, label in enumerate(("shallow", "deep")):
        ax.text(left - 0.12, deep * AXES[2, 1], label, ha="right", va="center", color=INK)
    for ode, label in enumerate(("no ODE", "ODE")):
        along = ode - floor / AXES[1, 1]
        ax.text(right + along * AXES[1, 0] + 0.2, ode * AXES[1, 1], label, va="center", color=INK)
    ax.set(xlim=(left - 1.3, width + 4.7), ylim=(floor - 0.6, 4.1))


def _draw_arrow(
    ax: Axes, start: tuple[float, float], end: tuple[float, float], label: str, shift: tuple[float, float], **style: Any
) -> None:
    arrow = {"arrowstyle": "->", "color": GREY, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", end, start, arrowprops=arrow)
    ax.text(end[0] + shift[0], end[1] + shift[1], label, style="italic", color=GREY, **style)


def _draw_model(ax: Axes, cell: Cell) -> None:
    """A point, and its name on the side that the slab leaves free."""
    color, marker = STYLES[_origin(cell)]
    x, y = _project(list(FEATURES).index(cell["features"]), cell["ode"], cell["deep"])
    ax.plot(x, y, marker, color=color, ms=8, zorder=3)
    shift, side = (0.14, "left") if cell["ode"] else (-0.14, "right")
    ax.text(x + shift, y + 0.1, cell["name"], color=color, ha=side, weight="bold", zorder=4)

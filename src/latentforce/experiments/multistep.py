"""The multi-step function (paper, `fig:synthetic`, `tab:iddgp-vs-dlfm-vfrf` and `fig:hidden-layers`).

All models see the same draws of the data, so that their differences can be paired; all draws of a model are trained at
once. The paper's table is over five runs; the draw of the data matters more than the model, so there are twenty here.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..datasets import LEVELS, multi_step
from ..depth._likelihoods import Gaussian
from ..depth._model import Model
from ..dynamics._filters import FirstOrder
from ..inference._functions import sample_functions
from ..inference._prediction import hidden_marginals, predict
from ..inference._steps import adam
from ..presets import build
from ._sweep import Cell, Measured, Page, Setup
from ._tables import paragraph, spread, table, uncertain
from ._together import judge, train_together

PUBLISHED = {"iddgp": ("0.107 ± 0.015", "-1.051 ± 0.131"), "dlfm-vfrf": ("0.095 ± 0.010", "-1.304 ± 0.120")}
GRID = np.linspace(-0.25, 1.25, 151)
CURVES = 6  # samples of functions in the pictures

PAPER = {
    "num_frequencies": 20, "interval": (-0.5, 1.5), "lengthscale": 0.1, "variance": 0.1,
    "filter": FirstOrder(3.0, 0.1), "likelihood": Gaussian(0.01),
}  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """A model and how it is trained; where nothing is said, as in the paper (6000 steps of Adam at 0.01)."""

    name: str
    about: str
    options: dict[str, Any] = field(default_factory=dict)
    learning_rate: float = 0.01
    decay: bool = False  # along a cosine
    textbook: bool = True  # Adam as published, or as the library has it

    def optimizer(self, steps: int) -> optax.GradientTransformation:
        """Adam."""
        return adam(self.learning_rate, steps if self.decay else None, self.textbook)

    def models(self, draws: list[tuple[np.ndarray, ...]]) -> list[Any]:
        """One model for each draw."""
        return [build(self.name, x, y, **{**PAPER, **self.options}) for x, y, *_ in draws]


DRIVEN = {"interval": (-0.1, 1.1)}
SETTINGS = {
    "lfm-vfrf": Setting("lfm-vfrf", "shallow, the paper's features"),
    "dgp": Setting("dgp", "deep GP, 41 inducing points, squared exponential", {"nu": None}),
    "dlfm-rff": Setting("dlfm-rff", "deep LFM, random features, squared exponential", {"nu": None}),
    "iddgp": Setting("iddgp", "deep GP, the paper's features"),
    "dlfm-vfrf": Setting("dlfm-vfrf", "the paper's model"),
    "dlfm-vfrf, bounded": Setting("dlfm-vfrf", "hidden inputs bent into the interval", {"bounded": True}),
    "dlfm-driven, M = 20": Setting("dlfm-driven", "driven, as many features as the paper", DRIVEN, decay=True),
    "dlfm-driven": Setting(
        "dlfm-driven", "driven, M = 160", {**DRIVEN, "num_frequencies": 160, "lengthscale": 0.05}, decay=True
    ),
    "dlfm-driven, sharp": Setting(
        "dlfm-driven",
        "driven, M = 160, larger steps",
        {**DRIVEN, "num_frequencies": 160, "lengthscale": 0.03},
        learning_rate=0.03,
        decay=True,
        textbook=False,
    ),
    "dlfm-driven, three layers": Setting(
        "dlfm-driven", "driven, M = 80", {**DRIVEN, "num_frequencies": 80, "depth": 3}, decay=True
    ),
}
SIX = ("lfm-vfrf", "dgp", "dlfm-rff", "iddgp", "dlfm-vfrf", "dlfm-driven, M = 20")


def cells(setup: Setup) -> list[Cell]:
    """One for each model."""
    steps, draws = setup.choose(6000, 300), setup.seeds or setup.choose(20, 2)
    return [{"model": name, "draws": draws, "steps": steps} for name in setup.choose(SETTINGS, SIX)]


def measure(cell: Cell, data: Path | None = None) -> dict[str, Any]:
    """Scores of one model on all draws, its bound over the last 100 steps, and what it looks like on the first draw."""
    draws = [multi_step(seed) for seed in range(cell["draws"])]
    setting, steps = SETTINGS[cell["model"]], cell["steps"]
    with jax.enable_x64(True):
        seen = [(x, y) for x, y, *_ in draws]
        models, objective = train_together(
            setting.models(draws), seen, setting.optimizer(steps), steps, 10, mirrored=False
        )
        reached = judge(models, [(x, y) for *_, x, y in draws], 100)
        picture = portray(jax.tree.map(lambda leaf: leaf[0], models))
    return reached._asdict() | {"bound": objective[:, -100:].mean(axis=1), "picture": picture}


def portray(model: Model) -> dict[str, Any]:
    """Mean, deviation and a few draws of y's function and of the layer before it, on a grid."""
    prediction = predict(model, GRID)
    shown = {"mean": prediction.mean[:, 0], "deviation": np.sqrt(prediction.variance[:, 0])}
    shown["draws"] = sample_functions(model, jax.random.key(1), CURVES)(GRID)[..., 0]
    if model.depth > 1:
        mean, variance = hidden_marginals(model, GRID)[-2]
        inner = Model(model.layers[:-1], model.likelihood)
        shown |= {"hidden_mean": mean[:, 0], "hidden_deviation": np.sqrt(variance[:, 0])}
        shown["hidden_draws"] = sample_functions(inner, jax.random.key(1), CURVES)(GRID)[..., 0]
    return {name: np.round(np.asarray(values), 3) for name, values in shown.items()}


def straight(draws: int) -> np.ndarray:
    """RMSE on each draw of one who knows the levels and draws a straight line from each to the next.

    Wherever between two training points a jump may be with equal probability, that line is the mean.
    """
    errors = []
    for x, _, x_test, y_test in map(multi_step, range(draws)):
        x = np.sort(x)
        mean = np.interp(x_test, x, LEVELS[(5 * x).astype(int)])
        errors.append(np.sqrt(np.mean((mean - y_test) ** 2)))
    return np.array(errors)


def present(results: list[Measured]) -> Page:
    """The table of scores, paired differences from the paper's model, and both pictures."""
    found = {row.cell["model"]: row.result for row in results}
    cell = results[0].cell
    line, rows = straight(cell["draws"]), []
    for name, result in found.items():
        published = PUBLISHED.get(name, ("", ""))
        rows.append([name, SETTINGS[name].about, *published, spread(result["rmse"]), spread(result["nmll"])])
        rows[-1] += [f"{np.mean(result['coverage']):.1%}", *differences(result, found.get("dlfm-vfrf"))]
        rows[-1].append(uncertain(np.subtract(result["rmse"], line)))
    header = ["model", "what it is", "paper: RMSE", "paper: NMLL", "RMSE", "NMLL", "95 % band covers"]
    header += ["RMSE, less dlfm-vfrf's", "NMLL, less dlfm-vfrf's", "RMSE, less the line's"]
    about = f"""Two layers, Matérn-3/2, M = 20, Adam at 0.01, {cell["steps"]} steps, 10 training and 100 test samples,
        float64, unless the table says otherwise; mean ± standard deviation over {cell["draws"]} draws of the data, and
        mean paired differences ± their standard errors. One who knows the five levels and draws a straight line across
        each jump, which is the mean where a jump may be anywhere in its gap, has an RMSE of {np.mean(line):.3f}."""
    title = "## The multi-step function (`fig:synthetic`, `tab:iddgp-vs-dlfm-vfrf`, `fig:hidden-layers`)"
    text = "\n\n".join([title, paragraph(about), table(header, rows), verdict(found)])
    return Page(text, {"posteriors": draw_posteriors(found), "hidden": draw_hidden(found)})


def differences(result: dict[str, Any], reference: dict[str, Any] | None) -> list[str]:
    """Mean paired differences of both scores, with their standard errors."""
    if reference is None or result is reference:
        return ["", ""]
    return [uncertain(np.subtract(result[score], reference[score])) for score in ("rmse", "nmll")]


def verdict(found: dict[str, dict[str, Any]]) -> str:
    """Whether the paper's order holds: its model before IDDGP, deep before shallow."""
    lines, names = [], {"rmse": "RMSE", "nmll": "NMLL"}
    for better, worse in (("dlfm-vfrf", "iddgp"), ("dlfm-vfrf", "lfm-vfrf"), ("dlfm-driven, M = 20", "dlfm-vfrf")):
        if better in found and worse in found:
            words = []
            for score, called in names.items():
                gap = float(np.mean(found[better][score]) - np.mean(found[worse][score]))
                words.append(f"{'better' if gap < 0 else 'worse'} in {called} ({gap:+.3f})")
            lines.append(f"- `{better}` is {' and '.join(words)} than `{worse}`.")
    return "\n".join(lines)


def draw_posteriors(found: dict[str, dict[str, Any]]) -> Figure:
    """What each model makes of the first draw (`fig:synthetic`)."""
    columns = 3
    rows = -(-len(found) // columns)
    figure = Figure(figsize=(4 * columns, 2.6 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
    x, y, *_ = multi_step(0)
    for ax, (name, result) in zip(axes, found.items(), strict=False):
        _belief(ax, result["picture"], "")
        ax.plot(x, y, ".", color="C3", ms=2.5)
        ax.set(title=name, ylim=(-2.2, 2.4))
    for ax in axes[len(found) :]:
        ax.remove()
    return figure


def draw_hidden(found: dict[str, dict[str, Any]]) -> Figure:
    """The layer before the last above the prediction, of the deep models (`fig:hidden-layers`)."""
    wanted = ("dgp", "iddgp", "dlfm-vfrf", "dlfm-driven, M = 20")
    names = [name for name in wanted if name in found]
    figure = Figure(figsize=(3.2 * max(len(names), 1), 4.6), layout="constrained")
    x, y, *_ = multi_step(0)
    for (top, bottom), name in zip(figure.subplots(2, max(len(names), 1), squeeze=False).T, names, strict=False):
        _belief(top, found[name]["picture"], "hidden_")
        _belief(bottom, found[name]["picture"], "")
        bottom.plot(x, y, ".", color="C3", ms=2.5)
        bottom.set(ylim=(-2.2, 2.4), xlabel="x")
        top.set(title=name)
        if name == names[0]:
            top.set_ylabel("hidden layer")
            bottom.set_ylabel("y")
    return figure


def _belief(ax: Axes, picture: dict[str, Any], which: str) -> None:
    """Mean, one and two standard deviations, and draws."""
    mean, deviation = (np.asarray(picture[f"{which}{part}"]) for part in ("mean", "deviation"))
    for width in (2, 1):
        ax.fill_between(GRID, mean - width * deviation, mean + width * deviation, color="C0", alpha=0.2, lw=0)
    ax.plot(GRID, np.transpose(picture[f"{which}draws"]), "--", color="0.4", lw=0.6)
    ax.plot(GRID, mean, color="C0", lw=1.5)

"""What `latentforce demo` does: a deep latent force model learns a step function that a shallow one cannot."""

from pathlib import Path

import jax
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ._progress import progress_bar
from .datasets import multi_step
from .depth._model import Model
from .inference._functions import sample_functions
from .inference._prediction import predict
from .inference._scores import Scores, scores
from .inference._training import fit
from .presets import build

MODELS = {"lfm-driven": ("shallow", 1000), "dlfm-driven": ("two layers", 3000)}


def run(folder: Path, steps: int | None = None, points: int = 140) -> dict[str, Scores]:
    """Train both models on the multi-step function, print their scores, and write `multi-step.png` and the training
    data, `multi-step.csv`, to `folder`.

    `steps`: of training, for each model; `points`: on each of the five steps of the signal.
    """
    folder.mkdir(parents=True, exist_ok=True)
    x, y, x_test, y_test = multi_step(seed=3, points=points)
    fitted, reached = {}, {}
    with jax.enable_x64(True):
        for name, (_, default) in MODELS.items():
            fitted[name] = train(name, x, y, steps or default)
            reached[name] = scores(predict(fitted[name], x_test), y_test)
        print(f"{'model':<28}{'RMSE':>8}{'NMLL':>8}{'inside the 95 % band':>22}")
        for name, (depth, _) in MODELS.items():
            row = reached[name]
            print(f"{name + ' (' + depth + ')':<28}{row.rmse:>8.3f}{row.nmll:>8.2f}{row.coverage:>22.1%}")
        figure = Figure(figsize=(12, 4.5), layout="constrained")
        for ax, (name, (depth, _)) in zip(figure.subplots(1, 2, sharey=True), MODELS.items(), strict=True):
            draw(ax, fitted[name], x, y)
            ax.set(title=f"{name} ({depth}): NMLL {reached[name].nmll:.2f}", xlabel="x")
        figure.savefig(folder / "multi-step.png", dpi=130)
    np.savetxt(folder / "multi-step.csv", np.stack([x, y], axis=1), "%.6f", ",", header="x,y", comments="")
    print(f"wrote {folder / 'multi-step.png'} and {folder / 'multi-step.csv'}")
    return reached


def train(name: str, x: np.ndarray, y: np.ndarray, steps: int) -> Model:
    """A model of 40 frequencies, trained with a bar that shows the evidence lower bound."""
    model = build(name, x, y, num_frequencies=40, lengthscale=0.1, variance=0.01 if name == "dlfm-driven" else 1.0)
    with progress_bar(steps, name) as show:
        return fit(
            model, x, y, steps=steps, learning_rate=0.02, decay=True, num_samples=4, chunk=50, callback=show
        ).model


def draw(ax: Axes, model: Model, x: np.ndarray, y: np.ndarray) -> None:
    """The posterior of y with its 50 and 95 % bands, a few drawn functions, and the data."""
    grid = np.linspace(-0.05, 1.05, 800)
    prediction = predict(model, grid)
    for coverage, alpha in ((0.95, 0.2), (0.5, 0.35)):
        low, high = prediction.interval(coverage)
        ax.fill_between(grid, low[:, 0], high[:, 0], color="C0", alpha=alpha, lw=0, label=f"{coverage:.0%} band")
    for function in sample_functions(model, jax.random.key(0), 5)(grid):
        ax.plot(grid, function[:, 0], color="C0", lw=0.5, alpha=0.7)
    ax.plot(grid, prediction.mean[:, 0], color="C0", label="mean")
    ax.plot(x, y, "r.", ms=3, label="data")
    ax.set_ylim(-2.2, 2.4)
    ax.legend(loc="lower right", fontsize="small")

"""How well a few features stand for the exact posterior (paper, `fig:vff_vs_rff`)."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..depth._model import Model
from ..dynamics._process import Process
from ..inference._collapsed import collapse
from ..inference._exact import ExactModel, condition
from ..inference._objectives import whole
from ..inference._prediction import predict
from ..inference._training import fit
from ..plots._axes import BLUE, RED, dress
from ..presets import build
from ._sweep import Cell, Measured, Page, Setup
from ._tables import table

RANGE = (0.0, 2.0)
SIZES = (20, 80, 500)
MODELS = {"random": "lfm-rff", "harmonic": "lfm-vfrf", "driven": "lfm-driven"}
INTERVALS = {"random": None, "harmonic": (-1.0, 3.0), "driven": RANGE}
SHORT = {"random": "RFF", "harmonic": "VFRF", "driven": "driven"}
OPTIMIZER = optax.lbfgs()  # one for all draws, so that training is compiled once


def cells(setup: Setup) -> list[Cell]:
    """One for each draw of the data; the first keeps the curves for the figure."""
    draws = setup.seeds or setup.choose(5, 2)
    return [{"seed": seed, "sizes": list(SIZES), "steps": 100, "curves": seed == 0} for seed in range(draws)]


def sample(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """20 points of `sin 2t + 0.4 cos 10t - 0.1` with noise of standard deviation 0.2, half of them in [0, 0.4]."""
    generator = np.random.default_rng(seed)
    t = np.concatenate([generator.uniform(0.0, 0.4, 10), generator.uniform(0.4, RANGE[1], 10)])
    return t, np.sin(2 * t) + 0.4 * np.cos(10 * t) - 0.1 + 0.2 * generator.standard_normal(20)


def exact_fit(t: np.ndarray, y: np.ndarray, steps: int) -> ExactModel:
    """The exact model with the hyperparameters that maximise its marginal likelihood."""
    model = build("exact-lfm", t, y, nu=0.5, lengthscale=0.5, variance=1.0)
    return fit(model, t, y, steps=steps, chunk=steps, optimizer=OPTIMIZER).model


def measure(cell: Cell, data: Path | None) -> dict[str, Any]:
    """Every family at every number of frequencies against the exact posterior, in float64; `data` is not used."""
    with jax.enable_x64(True):
        t, y = sample(cell["seed"])
        exact = exact_fit(t, y, cell["steps"])
        batch = whole(jnp.asarray(t)[:, None], jnp.asarray(y)[:, None])
        grid = jnp.linspace(*RANGE, 200)[:, None]
        mean, variance = condition(exact, batch.x, batch.y).moments(grid)
        noise = exact.likelihood.variance
        rows, curves = [], {"exact": _curve(mean, variance)}
        for family, name in MODELS.items():
            for size in cell["sizes"]:
                options = {"nu": 0.5, "num_frequencies": size, "interval": INTERVALS[family], "seed": cell["seed"]}
                model = build(name, t, y, likelihood=exact.likelihood, **options)
                found = predict(collapse(_with_process(model, exact.process), batch), grid)
                kl = jnp.mean(_kl(mean, variance + noise, found.f_mean, found.f_variance + noise))
                ratio = jnp.min(found.f_variance / variance)
                rows.append({"family": family, "num_frequencies": size, "kl": kl, "variance_ratio": ratio})
                curves[f"{family} {size}"] = _curve(found.f_mean, found.f_variance)
        kept = {"grid": grid[:, 0], "t": t, "y": y, "curves": curves} if cell["curves"] else {}
        return {"hyperparameters": _hyperparameters(exact), "rows": rows, **kept}


def _hyperparameters(exact: ExactModel) -> dict[str, jax.Array]:
    process = jax.tree.map(lambda leaf: leaf[0], exact.process)
    alpha, beta = process.filter.coefficients
    force = {"lengthscale": process.force.lengthscale, "variance": process.force.variance}
    return force | {"alpha": alpha, "beta": beta, "noise": exact.likelihood.variance}


def _curve(mean: jax.Array, variance: jax.Array) -> dict[str, jax.Array]:
    return {"mean": mean[:, 0], "sd": jnp.sqrt(variance[:, 0])}


def _with_process(model: Model, process: Process) -> Model:
    """The shallow model with the exact one's process."""
    return eqx.tree_at(lambda m: m.layers[0].outputs.process, model, jax.tree.map(lambda leaf: leaf[None], process))


def _kl(m1: jax.Array, v1: jax.Array, m2: jax.Array, v2: jax.Array) -> jax.Array:
    """`KL(N(m1, v1) || N(m2, v2))` of each point."""
    return (jnp.log(v2 / v1) + (v1 + (m1 - m2) ** 2) / v2 - 1) / 2


def present(results: list[Measured]) -> Page:
    """The table over all draws, and the figure of the first."""
    sizes = results[0].cell["sizes"]
    kl, ratio = _by_model(results, "kl"), _by_model(results, "variance_ratio")
    rows = [
        [family, *(f"{kl[family, size].mean():.2g}" for size in sizes), *(ratio[family, size].mean() for size in sizes)]
        for family in MODELS
    ]
    header = ["features", *(f"KL, M = {size}" for size in sizes), *(f"variance, M = {size}" for size in sizes)]
    text = f"""## How few features stand for the exact posterior (`fig:vff_vs_rff`)

A Matérn-1/2 force behind a first-order ODE; 20 noisy points, half of them in a fifth of the range. Hyperparameters
maximise the exact model's marginal likelihood and are the same for all; q is the optimal one. The paper states neither
data nor interval; here harmonic features are on [-1, 3] and driven ones on the data's range, [0, 2]. Random frequencies
are drawn anew with each draw of the data.

Means over {len(results)} draws (the paper prints no numbers). KL: KL(exact || approximate) of the predictive
distribution of y, averaged over 200 inputs. Variance: the smallest ratio of the approximate variance of f to the exact
one. The figure shows the first draw, with one and two standard deviations of f.

{table(header, rows)}

{_claims(kl, ratio, sizes)}"""
    pictures = [_draw(one) for one in results if one.cell["curves"]]
    return Page(text, {"bands": pictures[0]} if pictures else {})


def _by_model(results: list[Measured], score: str) -> dict[tuple[str, int], np.ndarray]:
    """A score of each family and size, for all draws."""
    rows = [row for one in results for row in one.result["rows"]]
    keys = {(row["family"], row["num_frequencies"]): None for row in rows}
    return {
        key: np.array([row[score] for row in rows if (row["family"], row["num_frequencies"]) == key]) for key in keys
    }


def _claims(kl: dict[tuple[str, int], np.ndarray], ratio: dict[tuple[str, int], np.ndarray], sizes: list[int]) -> str:
    """What the paper says, and what we say, held against the numbers."""
    fewer = list(pairwise(sizes))
    claims = {
        "Harmonic features are closer to the exact posterior than as many random ones": [
            kl["harmonic", size] < kl["random", size] for size in sizes
        ],
        f"They are closer than more random ones ({', '.join(f'{few} than {more}' for few, more in fewer)})": [
            kl["harmonic", few] < kl["random", more] for few, more in fewer
        ],
        "Random features starve the variance: its smallest ratio is below that of as many harmonic ones": [
            ratio["random", size] < ratio["harmonic", size] for size in sizes
        ],
        "Driven features are closer to the exact posterior than as many harmonic ones": [
            kl["driven", size] < kl["harmonic", size] for size in sizes
        ],
    }
    return "\n".join(f"- {claim}: {_verdict(np.concatenate(cases))}" for claim, cases in claims.items())


def _verdict(cases: np.ndarray) -> str:
    kind = "holds" if cases.all() else "does not always hold"
    return f"{kind} ({cases.sum()} of {cases.size} cases)."


def _draw(measured: Measured) -> Figure:
    """Random features above; harmonic ones and the exact posterior; driven ones below."""
    sizes = measured.cell["sizes"]
    layout = [[(family, size) for size in sizes] for family in MODELS]
    layout[1][-1] = ("exact", 0)
    figure = Figure(figsize=(12, 7.6), layout="constrained")
    axes = figure.subplots(len(layout), len(sizes), sharex=True, sharey=True)
    for ax, (family, size) in zip(axes.flat, [place for row in layout for place in row], strict=True):
        exact = family == "exact"
        _draw_bands(ax, measured.result, "exact" if exact else f"{family} {size}")
        name = "exact" if exact else f"{size} {SHORT[family]}"
        ax.text(0.97, 0.06, name, transform=ax.transAxes, ha="right", weight="bold")
        ax.label_outer()
    low, high = axes[0, 0].get_ylim()
    axes[0, 0].set_ylim(low - 0.1 * (high - low), high)  # room for the names
    return figure


def _draw_bands(ax: Axes, result: dict[str, Any], name: str) -> None:
    grid, (mean, sd) = result["grid"], (np.array(result["curves"][name][key]) for key in ("mean", "sd"))
    for width, alpha in ((2, 0.18), (1, 0.3)):
        ax.fill_between(grid, mean - width * sd, mean + width * sd, color=BLUE, alpha=alpha, lw=0)
    ax.plot(grid, mean, color=BLUE, lw=1.5)
    ax.plot(result["t"], result["y"], "o", color=RED, ms=4, zorder=3)
    dress(ax, "t", "f")

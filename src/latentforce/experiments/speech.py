"""A speech signal (paper, `fig:timit`): learning curves with ODE parameters free, freed late and fixed; test scores.

The sound is a WAV file (TIMIT's own, which is licensed, or any other) or, without one, a built-in synthetic voice. All
seeds of a cell are trained at once; where that would take too much memory, they are spread over several cells.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ..depth._likelihoods import Gaussian
from ..depth._model import Model
from ..dynamics._filters import FirstOrder
from ..inference._steps import adam
from ..presets import build
from ._sound import RANGE, describe, hold_out, signal, split
from ._speech_claims import LATE, SCORES, Found, failures, verdict
from ._speech_figures import draw_curves, draw_scores
from ._sweep import Cell, Measured, Page, Setup
from ._tables import paragraph, spread, table
from ._together import judge, train_together

SAMPLES = {"train": 5, "test": 100}  # draws of the hidden layer
WINDOW = 32  # samples of the moving average: 2 ms
GROUP = 5  # seeds that are trained at once, where `MEMORY` allows
MEMORY = 20e9  # bytes that a cell may take on the accelerator
MATRICES = 20  # of rows times features that a step holds at once, at most
PER_SEED = ("bound", "rmse", "nmll", "coverage", "done")
PAPER = {
    "interval": (-1.0, 4.0), "lengthscale": 0.1, "variance": 0.1, "filter": FirstOrder(1.0, 0.01),
    "likelihood": Gaussian(0.01),
}  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """A model and how it is trained; where nothing is said, as in the paper (Adam at 0.01)."""

    preset: str
    about: str
    options: dict[str, Any] = field(default_factory=dict)
    learning_rate: float = 0.01
    decay: bool = False  # along a cosine
    textbook: bool = True  # Adam as published, or as the library has it
    local: bool = False  # the length-scale is the width of the moving average
    held_out: float = 0.0  # share of the training points that tell when to stop

    def build(self, x: np.ndarray, y: np.ndarray, cell: Cell) -> Model:
        """The model for one split."""
        options = PAPER | {"num_frequencies": cell["frequencies"], "train_filters": cell["free_after"]} | self.options
        if self.local:
            options["lengthscale"] = RANGE * cell["window"] / cell["samples"]
        return build(self.preset, x, y, **options)


SETTINGS = {
    "dgp": Setting("dgp", "inducing points"),
    "iddgp": Setting("iddgp", "the paper's features, no ODE"),
    "dlfm-rff": Setting("dlfm-rff", "random features"),
    "dlfm-vfrf": Setting("dlfm-vfrf", "the paper's model"),
    LATE: Setting("dlfm-vfrf", "the paper's model, beta = 1e-6 until it is freed", {"filter": FirstOrder(1.0, 1e-6)}),
    "dlfm-driven": Setting(
        "dlfm-driven",
        "driven features, ours",
        {"interval": (-0.1, 3.1), "variance": None},
        learning_rate=0.05,
        decay=True,
        textbook=False,
        local=True,
        held_out=0.1,
    ),
}


def cells(setup: Setup) -> list[Cell]:
    """One for each model, number of frequencies and group of seeds; late freeing at the ends of the range of M. First
    seeds and the ends of that range come first, so that a sweep that is stopped has something of everything.
    """
    sizes = setup.choose((100, 200, 400), (20, 40))
    common: Cell = {
        "samples": setup.choose(10_000, 600),
        "loudest": setup.quick,  # 600 samples from the start of a recording would be silence
        "window": WINDOW,
        "steps": setup.choose(5000, 300),
        "every": setup.choose(100, 30),
        "dtype": "float32",
    } | describe(setup.data)
    rows, late = [], setup.choose(2000, 120)
    for name in SETTINGS:
        for size in _sizes(name, sizes, setup.quick):
            cell = {"model": name, "frequencies": size, "free_after": late if name == LATE else 0}
            seeds = list(range(setup.seeds or setup.choose(10, 2)))
            rows += [cell | {"seeds": group} | common for group in groups(seeds, size, common["samples"])]
    return sorted(rows, key=lambda cell: (cell["seeds"][0] // GROUP, cell["frequencies"] not in (sizes[0], sizes[-1])))


def _sizes(name: str, sizes: tuple[int, ...], quick: bool) -> tuple[int, ...]:
    """The learning curves need the ends of the range alone; a quick run compares most models at the last only."""
    if name == LATE:
        return sizes[-1:] if quick else (sizes[0], sizes[-1])
    return sizes[-1:] if quick and name not in ("iddgp", "dlfm-vfrf") else sizes


def groups(seeds: list[int], frequencies: int, samples: int) -> list[list[int]]:
    """Seeds that are trained at once, as many as `GROUP` and `MEMORY` allow; groups differ by one seed at most."""
    size = MATRICES * SAMPLES["train"] * samples * (2 * frequencies + 1) * 4
    count = -(-len(seeds) // min(max(int(MEMORY // size), 1), GROUP))
    return [seeds[i * len(seeds) // count : (i + 1) * len(seeds) // count] for i in range(count)]


def measure(cell: Cell, data: Path | None) -> dict[str, Any]:
    """For each seed, bound and test scores over the steps (the bound averaged since the point before), and coverage.
    Where points are held out, test scores are those of the best model so far by their likelihood.
    """
    sound = {key: cell[key] for key in ("sound", "checksum") if key in cell}
    if describe(data) != sound:
        raise ValueError(f"`data` must be the sound that the cell speaks of, {sound}, got {describe(data)}.")
    setting, steps, every = SETTINGS[cell["model"]], cell["steps"], cell["every"]
    values = signal(data, cell["samples"], cell["window"], cell["loudest"])
    splits = [split(values, seed) for seed in cell["seeds"]]
    kept = [hold_out(one.train, setting.held_out, seed) for one, seed in zip(splits, cell["seeds"], strict=True)]
    held, train = ([part[i] for part in kept] for i in range(2))
    seen, checked = [], []

    def look(done: np.ndarray, models: Model) -> None:
        test = judge(models, [one.test for one in splits], SAMPLES["test"])
        seen.append((done, *(np.asarray(score) for score in test)))
        if setting.held_out:
            checked.append(np.asarray(judge(models, held, SAMPLES["test"]).nmll))

    with jax.enable_x64(cell["dtype"] == "float64"):
        _, objective = train_together(
            [setting.build(*one, cell) for one in train],
            train,
            adam(setting.learning_rate, steps if setting.decay else None, setting.textbook),
            steps,
            SAMPLES["train"],
            chunk=every,
            callback=look,
            seed=cell["seeds"][0],
            mirrored=False,
        )
    done, rmse, nmll, coverage = (np.stack(part, axis=1) for part in zip(*seen, strict=True))
    if checked:
        best = best_so_far(np.stack(checked, axis=1))
        rmse, nmll, coverage = (np.take_along_axis(curve, best, axis=1) for curve in (rmse, nmll, coverage))
    bound = np.stack([part.mean(axis=1) for part in np.split(objective, range(every, steps, every), axis=1)], axis=1)
    curves = {"bound": bound, "rmse": rmse, "nmll": nmll}
    return {name: np.round(curve, 4) for name, curve in curves.items()} | {
        "steps": np.minimum(every * np.arange(1, len(seen) + 1), steps),
        "coverage": coverage[:, -1],
        "done": done[:, -1],
    }


def best_so_far(losses: np.ndarray) -> np.ndarray:
    """For each row (S, points), where its smallest number up to each point is."""
    records = losses == np.fmin.accumulate(losses, axis=1)
    return np.maximum.accumulate(np.where(records, np.arange(losses.shape[1]), 0), axis=1)


def gather(results: list[Measured]) -> Found:
    """All seeds of a model and size together, whatever cells they were measured in."""
    parts: dict[tuple[str, int], list[Measured]] = {}
    for name in SETTINGS:
        for row in sorted(results, key=lambda row: (row.cell["frequencies"], row.cell["seeds"])):
            if row.cell["model"] == name:
                parts.setdefault((name, row.cell["frequencies"]), []).append(row)
    found: Found = {}
    for key, rows in parts.items():
        one = {name: np.concatenate([np.array(row.result[name], float) for row in rows]) for name in PER_SEED}
        one["seeds"] = np.concatenate([row.cell["seeds"] for row in rows])
        found[key] = one | {"steps": np.array(rows[0].result["steps"]), "free_after": rows[0].cell["free_after"]}
    return found


def present(results: list[Measured]) -> Page:
    """Settings, the table of scores, what holds of the paper, and both pictures."""
    found = gather(results)
    rows = []
    for (name, size), one in found.items():
        row = [name, SETTINGS[name].about, size, *(spread(one[score][:, -1]) for score in SCORES)]
        rows.append([*row, f"{np.mean(one['coverage']):.1%}", len(one["seeds"])])
    header = ["model", "what it is", "M", *SCORES.values(), "95 % band covers", "seeds"]
    parts = ["## A speech signal (`fig:timit`)", about(results), table(header, rows), verdict(found), failures(found)]
    figures = {"curves": draw_curves(found), "scores": draw_scores(found)}
    return Page("\n\n".join(part for part in parts if part), figures)


def about(results: list[Measured]) -> str:
    """What was done."""
    cell = results[0].cell
    called = "the built-in voice" if cell["sound"] == "voice" else f"`{cell['sound']}`"
    which = "loudest" if cell["loudest"] else "first"
    late = max(row.cell["free_after"] for row in results)
    freed = f" (for the learning curves also 1e-6 until step {late}, and trained from there)" if late else ""
    return paragraph(
        f"""Sound: {called}, moving average, the {which} {cell["samples"]} samples, 30 % of them for testing, times in
        [0, 3], scores on the standardised scale. As in the paper: two layers, Matérn-3/2, interval [-1, 4],
        length-scale 0.1, variance 0.1, noise 0.01, alpha = 1, beta = 0.01{freed}, Adam at 0.01, all training points in
        every step, 5 samples for training and 100 for testing. Chosen here, where the paper says nothing: the average
        is over {cell["window"]} samples, {cell["steps"]} steps, 2M + 1 inducing points for `dgp` so that all have as
        many features, random frequencies that are the same for all seeds, {cell["dtype"]}. `dlfm-driven` has the
        interval [-0.1, 3.1], length-scale 0.01, the library's starting point and optimiser (q at the prior, Adam at
        0.05 falling along a cosine), and a tenth of its training points held out: its scores are those of the best
        model so far by their likelihood. Mean ± standard deviation over the seeds; the paper shows its own scores in a
        picture only."""
    )

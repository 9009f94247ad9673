"""Regression on tables (paper, `fig:uci-results`): nine UCI sets, ten splits each, one to three layers.

The sets are read from a folder of `boston.csv.gz`, ... (a header, the target last); without one, two tables that come
with scikit-learn stand in for them. All splits of a cell are trained at once, in one compiled program.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ..depth._likelihoods import Gaussian
from ..depth._model import Model
from ..dynamics._filters import FirstOrder
from ..estimators._choices import Choices, averaged, choose
from ..files._tables import read_table
from ..inference._steps import adam
from ..presets import build
from ._sweep import Cell, Measured, Page, Setup
from ._tables import paragraph, spread, table
from ._together import judge, train_together
from ._uci_claims import PEER, SCORES, WIDE, Found, ranks, verdict

NINE = ("boston", "concrete", "energy", "kin8nm", "naval", "power", "protein", "wine-red", "yacht")
LARGE = ("kin8nm", "naval", "power", "protein")  # of more than 2000 rows
BUILT_IN = ("diabetes", "friedman")
RANGE, INTERVAL = 3.0, (-1.0, 4.0)  # of the inputs, and of the paper's features
BATCH = 1000  # rows of a step, where there are more than twice as many
WIDEST = 40  # directions
GROUP = 5  # splits that are trained at once
COLUMNS = 3  # of panels in a picture
Data = tuple[np.ndarray, np.ndarray]  # inputs (N, D) and targets (N,)


@dataclass(frozen=True)
class Setting:
    """A model and how it is trained; where nothing is said, as in the paper (Adam at 0.01, five samples)."""

    preset: str
    about: str
    options: dict[str, Any] = field(default_factory=dict)
    chosen: bool = False  # what the library's estimators choose for so many rows and inputs, given
    given: dict[str, Any] = field(default_factory=dict)  # these choices
    wide: bool = False  # with twice as many directions as they choose, `WIDEST` at most
    learning_rate: float = 0.01
    own: bool = False  # the library's training: Adam with momentum, falling along a cosine, and draws in pairs
    num_samples: int = 5
    effort: float = 1.0  # steps, in units of the paper's models'

    def build(self, x: np.ndarray, y: np.ndarray, depth: int, frequencies: int, seed: int = 0) -> Model:
        """The model for one split, from one starting point."""
        options: dict[str, Any] = self.choices(x).model if self.chosen else self.options
        options = options | {"num_frequencies": min(options.get("num_frequencies", frequencies), frequencies)}
        return build(self.preset, x, y, depth=depth, seed=seed, **options)

    def choices(self, x: np.ndarray) -> Choices:
        """Of the estimators."""
        chosen = choose(self.preset, *x.shape, collapses=True, **self.given)
        if not self.wide or chosen.directions is None:
            return chosen
        return replace(chosen, directions=min(2 * chosen.directions, WIDEST))

    def effort_on(self, x: np.ndarray, steps: int) -> tuple[int, int]:
        """How many steps for the paper's models' `steps`, and from how many starting points."""
        if not self.chosen:
            return round(self.effort * steps), 1
        choices = self.choices(x)
        effort = 1.0 if averaged(self.preset, *x.shape) else self.effort  # several trainings are effort enough
        return round(effort * min(steps, choices.steps)), choices.restarts


SHARED = {"width": 3, "lengthscale": 1.0, "variance": 0.1, "likelihood": Gaussian(0.01)}
FILTER = {"filter": FirstOrder(1.0, 0.01)}
FOURIER = {"interval": INTERVAL}
SETTINGS = {
    "dgp": Setting("dgp", "inducing points", SHARED),
    "iddgp": Setting("iddgp", "the paper's features, no ODE", SHARED | FOURIER),
    "dlfm-rff": Setting("dlfm-rff", "random features", SHARED | FILTER),
    "dlfm-vfrf": Setting("dlfm-vfrf", "the paper's model", SHARED | FILTER | FOURIER),
    "dlfm-driven": Setting(
        "dlfm-driven",
        "driven features, else as the paper's model",
        SHARED | FILTER | {"interval": (-0.3, 3.3), "start": "paper"},
    ),
    "ours": Setting(
        "dlfm-driven",
        "driven features along learned directions",
        chosen=True,
        learning_rate=0.05,
        own=True,
        num_samples=2,
        effort=2.0,
    ),
}
SETTINGS[WIDE] = replace(
    SETTINGS["ours"],
    about="twice the directions, and four starting points, where there are many rows",
    given={"restarts": 4, "steps": 2000},
    wide=True,
    effort=1.0,
)


def cells(setup: Setup) -> list[Cell]:
    """One for each set, model, depth and group of splits; first splits and two layers come first. `WIDE` and the peer
    have two layers, `WIDE` is for large sets, and the peer has the first splits only.
    """
    common = {"steps": setup.choose(4000, 200), "frequencies": 20}
    if setup.quick:
        common |= {"frequencies": 10, "rows": 400}
    seeds = list(range(setup.seeds or setup.choose(10, 2)))
    rows = []
    for start in range(0, len(seeds), GROUP):
        for depth in setup.choose((2, 1, 3), (2, 1)):
            cell = {"seeds": seeds[start : start + GROUP], "depth": depth} | common
            models = [model for model in SETTINGS if model != WIDE or (depth == 2 and not setup.quick)]
            rows += [
                {"set": name, "model": model} | cell
                for model in models
                for name in sets(setup)
                if model != WIDE or name in LARGE
            ]
            if not setup.quick and start == 0 and depth == 2:
                rows += [
                    {"set": name, "model": PEER, "points": 100} | cell | {"seeds": few}
                    for few in (seeds[:3], seeds[3:GROUP])  # it takes long: the first ones come first
                    for name in sets(setup)
                    if few
                ]
    return rows


def sets(setup: Setup) -> tuple[str, ...]:
    """Those that there are data for; a quick run takes the first two."""
    if setup.data is None:
        names = BUILT_IN
    else:
        folder = _folder(setup.data)
        names = tuple(name for name in NINE if (folder / f"{name}.csv.gz").exists())
        if not names:
            raise ValueError(f"`data` must be a folder with {NINE[0]}.csv.gz, ..., got {str(setup.data)!r}.")
    return names[:1] if setup.quick else names


def measure(cell: Cell, data: Path | None) -> dict[str, Any]:
    """Test scores for each split, in the target's units, and the bound over the last steps."""
    splits = [split(*load(cell["set"], data, cell.get("rows")), seed) for seed in cell["seeds"]]
    scales = np.array([one.scale for one in splits])
    if cell["model"] == PEER:
        from ._peers import deep_gp_scores  # needs torch

        found = [deep_gp_scores(one.train, one.test, cell["points"], cell["steps"], BATCH) for one in splits]
        rmse, nmll = np.transpose(found)
        return {"rmse": scales * rmse, "nmll": np.log(scales) + nmll}
    setting = SETTINGS[cell["model"]]
    steps, members = setting.effort_on(splits[0].train[0], cell["steps"])
    size = cell["depth"], cell["frequencies"]
    models = [setting.build(*one.train, *size, member) for one in splits for member in range(members)]
    train = [one.train for one in splits for _ in range(members)]
    batch = BATCH if len(train[0][0]) > 2 * BATCH else None
    optimizer = adam(setting.learning_rate, steps if setting.own else None, textbook=not setting.own)
    fitted, objective = train_together(
        models, train, optimizer, steps, setting.num_samples, batch_size=batch, mirrored=setting.own
    )
    reached = judge(fitted, [one.test for one in splits], 100, members)
    table = {"rmse": scales * np.asarray(reached.rmse), "nmll": np.log(scales) + np.asarray(reached.nmll)}
    return table | {"coverage": reached.coverage, "bound": objective[::members, -100:].mean(axis=1)}


@dataclass(frozen=True)
class Split:
    """Inputs in [0, 3] and targets of mean 0 and deviation 1 by the training rows, and what one deviation was."""

    train: Data
    test: Data
    scale: float


def load(name: str, data: Path | None, rows: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Inputs (N, D) without constant columns, and targets (N,); the first `rows` in a random order, if given."""
    if data is None:
        x, y = _built_in(name)
    else:
        frame = read_table(_folder(data) / f"{name}.csv.gz")
        numbers = frame.to_numpy().astype(float)
        x, y = numbers[:, :-1], numbers[:, -1]
    x = x[:, np.ptp(x, axis=0) > 0]
    order = np.random.default_rng(0).permutation(len(x))[:rows]
    return (x, y) if rows is None else (x[order], y[order])


def _built_in(name: str) -> tuple[np.ndarray, np.ndarray]:
    from sklearn import datasets  # slow to import

    if name == "diabetes":
        return datasets.load_diabetes(return_X_y=True)  # pyright: ignore[reportReturnType]
    return datasets.make_friedman1(1000, n_features=8, noise=1.0, random_state=0)


def split(x: np.ndarray, y: np.ndarray, seed: int) -> Split:
    """A tenth of the rows for testing."""
    order = np.random.default_rng(seed).permutation(len(x))
    cut = round(0.9 * len(x))
    train, test = order[:cut], order[cut:]
    low, span = x[train].min(axis=0), np.ptp(x[train], axis=0)
    x = RANGE * (x - low) / np.where(span > 0, span, 1.0)
    mean, scale = y[train].mean(), float(y[train].std())
    y = (y - mean) / scale
    return Split((x[train], y[train]), (x[test], y[test]), scale)


def _folder(data: Path) -> Path:
    """The folder itself, or the one named `uci` in it."""
    return data / "uci" if (data / "uci").is_dir() else data


def label(cell: Cell) -> str:
    """The model with its number of layers, as the paper writes them."""
    return f"{cell['model']}-{cell['depth']}"


def gather(results: list[Measured]) -> Found:
    """All splits of each model on each set together, in order."""
    place = {name: i for i, name in enumerate([*SETTINGS, PEER])}
    found: Found = {}
    for cell, result in sorted(
        results, key=lambda row: (row.cell["set"], place[row.cell["model"]], row.cell["depth"], row.cell["seeds"])
    ):
        row = found.setdefault(cell["set"], {}).setdefault(label(cell), {})
        for part, values in {"seeds": cell["seeds"], **{score: result[score] for score in SCORES}}.items():
            row[part] = row.get(part, []) + values
    return found


def labels(found: Found) -> list[str]:
    """All models of any set, in the order of the settings, the fewest layers first."""
    every = {name for row in found.values() for name in row}
    return [f"{name}-{depth}" for name in [*SETTINGS, PEER] for depth in (1, 2, 3) if f"{name}-{depth}" in every]


def present(results: list[Measured]) -> Page:
    """Tables for each set, mean ranks with the critical difference, what holds of the paper, and the picture."""
    found = gather(results)
    cell, count = results[0].cell, max(len(row["rmse"]) for models in found.values() for row in models.values())
    about = f"""10 % of the rows for testing, inputs scaled to [0, 3], targets standardised and scores in their units,
        Matérn-3/2, M = {cell["frequencies"]} frequencies or {2 * cell["frequencies"] + 1} inducing points, three hidden
        units, Adam at 0.01, five samples, {cell["steps"]} steps of {BATCH} rows where there are more than {2 * BATCH}
        (the paper's batches are of 10,000; it does not say how many steps), float32. `ours` is what the
        library's estimators choose: twice as many learned directions as there are inputs, up to eight hidden units, q
        block-diagonal and at the prior at the start, two samples, each the mirror image of the other, Adam at 0.05
        falling along a cosine, twice the steps; with up to 2000 rows (boston, concrete, energy, wine-red and yacht) one
        prediction of the models from four starting points, each after 2000 steps: the same effort; with fewer than
        8 D² rows, or 500 (boston and yacht), also one direction for each input, M = 10 and up to three hidden units.
        Each direction has as many features as an input of the others, or half as many. Mean ± standard deviation over
        up to {count} splits."""
    if any(f"{PEER}-2" in row for row in found.values()):
        about += f""" `{PEER}-2` is its deep GP with 100 inducing points and a kernel of all inputs, on the first three
        to five splits; below, models are compared on the splits that both have."""
    if any(f"{WIDE}-2" in row for row in found.values()):
        about += f""" `{WIDE}` is for more than 2000 rows: twice as many directions as `ours`, up to {WIDEST}, and one
        prediction from four starting points of 2000 steps each, instead of one of 8000."""
    parts = ["## Regression on tables (`fig:uci-results`)", paragraph(about)]
    parts += [scores_table(found, score) for score in SCORES]
    parts.append(ranks(found))
    parts.append(verdict(found))
    return Page("\n\n".join(part for part in parts if part), {score: draw(found, score) for score in SCORES})


def scores_table(found: Found, score: str) -> str:
    """One row for each model, one column for each set."""
    names = labels(found)
    rows = [[name, *(spread(found[one][name][score]) if name in found[one] else "" for one in found)] for name in names]
    return f"Test {SCORES[score]}:\n\n" + table(["model", *found], rows)


def draw(found: Found, score: str) -> Figure:
    """Means and standard errors, one panel for each set, models below each other."""
    names = labels(found)
    colors = {name: f"C{i}" for i, name in enumerate(dict.fromkeys(name.rsplit("-", 1)[0] for name in names))}
    lines = -(-len(found) // COLUMNS)
    figure = Figure(figsize=(9, lines * (0.17 * len(names) + 0.8)), layout="constrained")
    axes = figure.subplots(lines, COLUMNS, sharey=True, squeeze=False).ravel()
    for ax in axes[len(found) :]:
        ax.remove()
    for ax, (one, row) in zip(axes, found.items(), strict=False):
        for place, name in enumerate(names):
            if name in row:
                values = np.asarray(row[name][score])
                error = values.std(ddof=1) / len(values) ** 0.5 if len(values) > 1 else 0.0
                color = colors[name.rsplit("-", 1)[0]]
                ax.errorbar(values.mean(), place, xerr=error, fmt="o", ms=4, color=color, capsize=2)
        ax.set(title=one)
        ax.grid(axis="y", color="0.92")
        ax.tick_params(labelsize="small")
    axes[0].set_yticks(range(len(names)), names)
    axes[0].invert_yaxis()
    figure.supxlabel(f"test {SCORES[score]}", fontsize="medium")
    return figure

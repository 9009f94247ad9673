"""Does training converge? The deep driven model with projections on UCI data, with its default steps and with ten times
as many, and its shallow counterpart.

    python benchmarks/convergence.py --data FOLDER --out benchmarks/results/convergence.json

FOLDER holds `energy.csv.gz`, ... (header, target last). Inputs are scaled to [0, 1], targets to mean 0 and deviation 1;
90 % of the rows are for training (numpy `default_rng(0)`), 10 % for the test scores. Starting point and schedule are
the library's own; `--draws` draws of the hidden layer for each step, 1000 rows where there are more than 2000.
float32. Each data set is trained on from several seeds (of the directions and of all draws), at once: "short of it" is
the mean gain of ten times the steps, "spread" the difference between the seeds. An `--out` that is there already is
added to, so that sets may run one after the other; the learning curves go to a PNG beside it. `--momentum 0.9` has Adam
average gradients over ten steps instead of what the library chooses, `--independent` has each draw by itself instead of
in mirrored pairs, and `--short` leaves out the long trainings.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from matplotlib.figure import Figure

import latentforce as lf
from latentforce.experiments._together import judge, train_together
from latentforce.inference._steps import adam

NAMES = ("energy", "concrete", "wine-red", "yacht", "kin8nm")
STEPS, CURVE, RATE = 10_000, 100, 0.05


def load(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
    """Scaled training and test data, and the target's deviation."""
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    order = np.random.default_rng(0).permutation(len(table))
    cut = round(0.9 * len(table))
    x, y = table[:, :-1], table[:, -1:]
    train, test = order[:cut], order[cut:]
    low, span = x[train].min(axis=0), np.ptp(x[train], axis=0)
    x = (x - low) / np.where(span > 0, span, 1.0)
    mean, scale = y[train].mean(), y[train].std()
    y = (y - mean) / scale
    return x[train], y[train], x[test], y[test], float(scale)


def deep(x: np.ndarray, y: np.ndarray, seed: int) -> lf.Model:
    """Two layers of driven features along learned directions, q block-diagonal, from the prior."""
    return lf.build("dlfm-driven", x, y, directions=2 * x.shape[1], covariance="block", seed=seed)


def shallow(x: np.ndarray, y: np.ndarray, seed: int) -> lf.Model:
    """The same with one layer."""
    return lf.build("lfm-driven", x, y, directions=2 * x.shape[1], covariance="block", seed=seed)


def train(
    models: list[lf.Model], x: np.ndarray, y: np.ndarray, steps: int, options: argparse.Namespace
) -> tuple[lf.Model, np.ndarray, np.ndarray]:
    """The fitted models, stacked, their evidence lower bounds on all training data, and their learning curves."""
    batch = 1000 if len(x) > 2000 else None
    data = [(x, y[:, 0])] * len(models)
    optimizer = adam(RATE, steps)
    if options.momentum is not None:
        optimizer = optax.adam(optax.cosine_decay_schedule(RATE, steps), b1=options.momentum, b2=0.99)
    fitted, objective = train_together(
        models, data, optimizer, steps, options.draws, batch_size=batch, mirrored=not options.independent
    )
    return fitted, bound(fitted, x, y), objective.reshape(len(models), CURVE, -1).mean(axis=2)


def bound(models: lf.Model, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The bound of each model, averaged over 40 evaluations of 5 draws."""
    data = lf.whole(jnp.asarray(x), jnp.asarray(y))
    evaluate = jax.jit(jax.vmap(lambda model, key: lf.elbo(model, data, key, 5), in_axes=(0, None)))
    return np.mean([evaluate(models, key) for key in jax.random.split(jax.random.key(1), 40)], axis=0)


def measure(path: Path, options: argparse.Namespace) -> dict[str, Any]:
    """One data set: bounds, learning curves and test scores, each for each seed."""
    x, y, xt, yt, scale = load(path)
    steps, seeds = options.steps, options.seeds
    row: dict[str, Any] = {"steps": steps, "draws": options.draws, "mirrored": not options.independent}
    kinds = (("shallow", shallow, steps), ("deep", deep, steps), ("ten_times", deep, 10 * steps))
    for name, make, count in kinds[: 2 if options.short else 3]:
        start = time.perf_counter()
        models, reached, curve = train([make(x, y, seed) for seed in range(seeds)], x, y, count, options)
        tested = judge(models, [(xt, yt[:, 0])] * seeds, 100)
        row[name] = {"bound": reached.tolist(), "seconds": time.perf_counter() - start, "curve": curve.tolist()}
        row[name] |= {"rmse": (scale * tested.rmse).tolist(), "nmll": (np.log(scale) + tested.nmll).tolist()}
    return row


def draw(results: dict[str, Any], path: Path) -> None:
    """The learning curves, over the share of steps done."""
    figure = Figure(figsize=(3.2 * len(results), 3), layout="constrained")
    share = (np.arange(CURVE) + 1) / CURVE
    for ax, (name, row) in zip(figure.subplots(1, len(results), squeeze=False)[0], results.items(), strict=True):
        kinds = {"deep": row["steps"], "ten_times": 10 * row["steps"]}
        for color, (kind, steps) in enumerate((kind, steps) for kind, steps in kinds.items() if kind in row):
            lines = ax.plot(share, np.transpose(row[kind]["curve"]), color=f"C{color}", lw=1)
            lines[0].set_label(f"{steps:,} steps")
        ax.axhline(max(row["shallow"]["bound"]), color="C7", ls=":", label="one layer")
        top = max(max(row[kind]["bound"]) for kind in kinds if kind in row)
        ax.set(title=name, xlabel="share of the steps", ylim=(top - 1.5, top + 0.1))
    figure.axes[0].set_ylabel("bound, nats a point")
    figure.axes[0].legend(loc="lower right", fontsize="small")
    figure.savefig(path, dpi=110)


def main() -> None:
    """Run, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--names", nargs="+", default=list(NAMES))
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--independent", action="store_true")
    parser.add_argument("--momentum", type=float)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    print(f"{'data':<10}{'shallow':>9}{'deep':>9}{'10 x':>9}{'short of it':>12}{'spread':>8}{'seconds':>9}")
    for name in options.names:
        row = measure(options.data / f"{name}.csv.gz", options)
        flat, reached = (np.asarray(row[kind]["bound"]) for kind in ("shallow", "deep"))
        limit = np.asarray(row["ten_times"]["bound"]) if "ten_times" in row else np.full_like(reached, np.nan)
        print(
            f"{name:<10}{flat.mean():>9.3f}{reached.mean():>9.3f}{limit.mean():>9.3f}{(limit - reached).mean():>12.3f}"
            f"{np.ptp(reached):>8.3f}{row['deep']['seconds']:>9.0f}",
            flush=True,
        )
        if options.out:
            record: dict[str, Any] = {"result": {}}
            record |= json.loads(options.out.read_text()) if options.out.exists() else {}
            record |= {"command": "python benchmarks/convergence.py", "device": jax.devices()[0].device_kind}
            record["result"][name] = row
            options.out.write_text(json.dumps(record, indent=1) + "\n")
            draw(record["result"], options.out.with_suffix(".png"))


if __name__ == "__main__":
    main()

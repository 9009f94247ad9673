"""Does training converge? The deep driven model with projections on UCI data, with its default steps and with ten times
as many, and its shallow counterpart.

    python benchmarks/convergence.py --data FOLDER --out benchmarks/results/convergence.json

FOLDER holds `energy.csv.gz`, ... (header, target last). Inputs are scaled to [0, 1], targets to mean 0 and deviation 1;
90 % of the rows are for training (numpy `default_rng(0)`), 10 % for the test scores. Starting point and schedule are
the library's own; one draw of the hidden layer for each step, 1000 rows where there are more than 2000. float32.
An `--out` that is there already is added to, so that sets may run side by side; the learning curves go to a PNG beside
it.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

import latentforce as lf

NAMES = ("energy", "concrete", "wine-red", "yacht", "kin8nm")
STEPS, CURVE = 20_000, 100


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


def deep(x: np.ndarray, y: np.ndarray) -> lf.Model:
    """Two layers of driven features along learned directions, q block-diagonal, from the prior."""
    dim = x.shape[1]
    return lf.build("dlfm-driven", x, y, width=min(dim, 8), directions=2 * dim, covariance="block")


def shallow(x: np.ndarray, y: np.ndarray) -> lf.Model:
    """The same with one layer."""
    return lf.build("lfm-driven", x, y, directions=2 * x.shape[1], covariance="block")


def train(model: lf.Model, x: np.ndarray, y: np.ndarray, steps: int) -> tuple[lf.Model, float, list[float]]:
    """The fitted model, its evidence lower bound on all training data (200 draws), and its learning curve."""
    batch = 1000 if len(x) > 2000 else None
    fitted = lf.fit(model, x, y, steps=steps, num_samples=1, batch_size=batch, chunk=500)
    curve = np.asarray(fitted.history.objective).reshape(CURVE, -1).mean(axis=1)
    return fitted.model, bound(fitted.model, x, y), curve.tolist()


def bound(model: lf.Model, x: np.ndarray, y: np.ndarray) -> float:
    """The bound, averaged over 40 evaluations of 5 draws."""
    data = lf.whole(jnp.asarray(x), jnp.asarray(y))
    evaluate = jax.jit(lambda key: lf.elbo(model, data, key, 5))
    return float(np.mean([evaluate(key) for key in jax.random.split(jax.random.key(1), 40)]))


def scores(model: lf.Model, x: np.ndarray, y: np.ndarray, scale: float) -> dict[str, float]:
    """Test RMSE and negative log likelihood, in the target's units."""
    reached = lf.scores(lf.predict(model, x), y)
    return {"rmse": scale * float(reached.rmse), "nmll": float(np.log(scale) + reached.nmll)}


def measure(path: Path, steps: int) -> dict[str, Any]:
    """One data set: bounds, learning curves and test scores."""
    x, y, xt, yt, scale = load(path)
    _, flat, _ = train(shallow(x, y), x, y, steps)
    start = time.perf_counter()
    model, reached, curve = train(deep(x, y), x, y, steps)
    seconds = time.perf_counter() - start
    longer, limit, long_curve = train(deep(x, y), x, y, 10 * steps)
    row = {"steps": steps, "shallow": flat, "deep": reached, "ten_times": limit, "seconds": seconds}
    row |= scores(model, xt, yt, scale)
    row |= {f"ten_times_{key}": value for key, value in scores(longer, xt, yt, scale).items()}
    return row | {"curve": curve, "ten_times_curve": long_curve}


def draw(results: dict[str, Any], path: Path) -> None:
    """The learning curves, over the share of steps done."""
    figure = Figure(figsize=(3.2 * len(results), 3), layout="constrained")
    share = (np.arange(CURVE) + 1) / CURVE
    for ax, (name, row) in zip(figure.subplots(1, len(results), squeeze=False)[0], results.items(), strict=True):
        ax.plot(share, row["curve"], label=f"{row['steps']:,} steps")
        ax.plot(share, row["ten_times_curve"], label=f"{10 * row['steps']:,} steps")
        ax.axhline(row["shallow"], color="C7", ls=":", label="one layer")
        top = max(row["deep"], row["ten_times"])
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
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    print(f"{'data':<10}{'shallow':>9}{'deep':>9}{'10 x':>9}{'short of it':>12}{'rmse':>9}{'nmll':>9}{'seconds':>9}")
    for name in options.names:
        row = measure(options.data / f"{name}.csv.gz", options.steps)
        print(
            f"{name:<10}{row['shallow']:>9.3f}{row['deep']:>9.3f}{row['ten_times']:>9.3f}"
            f"{row['ten_times'] - row['deep']:>12.3f}{row['rmse']:>9.3f}{row['nmll']:>9.3f}{row['seconds']:>9.0f}",
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

"""Does training converge? The deep driven model with projections on UCI data, with its default steps and with ten times
as many, and its shallow counterpart.

    python benchmarks/convergence.py --data FOLDER --out benchmarks/results/convergence.json

FOLDER holds `energy.csv.gz`, ... (header, target last). Inputs are scaled to [0, 1], targets to mean 0 and deviation 1;
90 % of the rows are for training (numpy `default_rng(0)`), 10 % for the test scores.
"""

import argparse
import json
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import latentforce as lf

NAMES = ("energy", "concrete", "wine-red", "yacht", "kin8nm")
STEPS = 5000


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
    fitted = lf.fit(model, x, y, steps=steps, decay=True, num_samples=5, batch_size=batch, chunk=500)
    curve = np.asarray(fitted.history.objective).reshape(-1, steps // 50).mean(axis=1)
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


def main() -> None:
    """Run, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--names", nargs="+", default=list(NAMES))
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    results = {}
    print(f"{'data':<10}{'shallow':>9}{'deep':>9}{'10 x':>9}{'short of it':>12}{'rmse':>9}{'nmll':>9}{'seconds':>9}")
    for name in options.names:
        x, y, xt, yt, scale = load(options.data / f"{name}.csv.gz")
        _, flat, _ = train(shallow(x, y), x, y, options.steps)
        start = time.perf_counter()
        model, reached, curve = train(deep(x, y), x, y, options.steps)
        seconds = time.perf_counter() - start
        longer, limit, long_curve = train(deep(x, y), x, y, 10 * options.steps)
        row = {"shallow": flat, "deep": reached, "ten_times": limit, "curve": curve, "ten_times_curve": long_curve}
        row |= scores(model, xt, yt, scale) | {"seconds": seconds, "steps": options.steps}
        row |= {f"ten_times_{key}": value for key, value in scores(longer, xt, yt, scale).items()}
        results[name] = row
        print(
            f"{name:<10}{flat:>9.3f}{reached:>9.3f}{limit:>9.3f}{limit - reached:>12.3f}"
            f"{row['rmse']:>9.3f}{row['nmll']:>9.3f}{seconds:>9.0f}",
            flush=True,
        )
        if options.out:
            header = {"command": "python benchmarks/convergence.py", "device": jax.devices()[0].device_kind}
            options.out.write_text(json.dumps({**header, "result": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()

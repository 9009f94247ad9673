"""Does every preset train on awkward data? All presets, in float32 and float64, on nine data sets, 200 steps each.

    python benchmarks/robustness.py [--presets svgp dlfm-vfrf] [--dtypes float32] [--data scaled-1e-6] [--out FILE]

Nothing is scaled here, on purpose: that is the estimator's job, but without it no number may silently become NaN.
A cell is "ok" where all objectives, parameters and predictions are finite, with "+k" after k steps that had to be
tried again; "error" where training stopped with a `TrainingError`, "nan" where something is not finite. Both fail.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import latentforce as lf
from latentforce.inference._exact import ExactModel

POINTS, FREQUENCIES, STEPS, CHUNK, SAMPLES = 40, 5, 200, 100, 2


def curve(x: np.ndarray, noise: float, rng: np.random.Generator) -> np.ndarray:
    """A smooth function of inputs in [0, 1], of the order of one, and noise."""
    return np.sin(6 * x).mean(axis=1) + noise * rng.standard_normal(len(x))


def data_sets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The nine data sets `(x, y)` by name; most have the same shape, so that they share compiled programs."""
    rng = np.random.default_rng(0)
    x, wide = np.sort(rng.uniform(size=(POINTS, 1)), axis=0), rng.uniform(size=(POINTS, 8))
    y = curve(x, 0.1, rng)
    outliers = y.copy()
    outliers[[5, 30]] += np.array([1e3, -1e3]) * y.std()
    repeated = np.repeat(x[:: POINTS // 10], POINTS // 10, axis=0)
    return {
        "1-D": (x, y),
        "8-D": (wide, curve(wide, 0.1, rng)),
        "constant": (x, np.full(POINTS, 2.0)),
        "duplicated": (repeated, curve(repeated, 0.1, rng)),
        "12-points": (x[:12], y[:12]),
        "noise-free": (x, curve(x, 0.0, rng)),
        "outliers": (x, outliers),
        "scaled-1e-6": (1e-6 * x, y),
        "scaled-1e6": (1e6 * x, y),
    }


def finite(tree: Any) -> bool:
    """Whether all numbers of a tree are finite."""
    return all(bool(np.all(np.isfinite(np.asarray(leaf)))) for leaf in jax.tree.leaves(tree))


def predictions(model: Any, x: np.ndarray, y: np.ndarray) -> tuple[jax.Array, jax.Array]:
    """Mean and variance at the training inputs."""
    if isinstance(model, ExactModel):
        inputs = jnp.asarray(x, float)
        return lf.condition(model, inputs, jnp.asarray(y[:, None], float)).moments(inputs)
    prediction = lf.predict(model, x)
    return prediction.mean, prediction.variance


def attempt(preset: str, frequencies: int, x: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Build, train, predict; what is finite, how often steps were tried again, and the error where there was one."""
    model = lf.build(preset, x, y, num_frequencies=frequencies)
    try:
        fit = lf.fit(model, x, y, steps=STEPS, chunk=CHUNK, num_samples=SAMPLES)
    except lf.TrainingError as error:
        history, row = error.history, {"outcome": "error", "error": str(error).split(".")[0]}
        return {**row, "steps": len(history.objective), "retries": history.retries}
    mean, variance = predictions(fit.model, x, y)
    checks = {
        "objective": len(fit.history.objective) == STEPS and finite(fit.history.objective),
        "parameters": finite(fit.model),
        "mean": finite(mean),
        "variance": finite(variance) and bool(jnp.all(variance >= 0)),
    }
    return {
        "outcome": "ok" if all(checks.values()) else "nan",
        "bad": [name for name, fine in checks.items() if not fine],
        "retries": fit.history.retries,
        "first": fit.history.objective[0],
        "last": fit.history.objective[-1],
    }


def cell(row: dict[str, Any]) -> str:
    """A row as a cell of the table."""
    return row["outcome"] + (f"+{row['retries']}" if row["retries"] else "")


def run(presets: list[str], dtypes: list[str], names: list[str], frequencies: int) -> list[dict[str, Any]]:
    """The whole matrix, printed line by line."""
    data, rows = data_sets(), []
    for dtype in dtypes:
        print(f"\n{dtype:<14}" + "".join(f"{name:>13}" for name in names) + f"{'seconds':>9}", flush=True)
        for preset in presets:
            start, cells = time.perf_counter(), []
            with jax.enable_x64(dtype == "float64"):
                for name in names:
                    row = {"preset": preset, "dtype": dtype, "data": name, **attempt(preset, frequencies, *data[name])}
                    cells.append(cell(row))
                    rows.append(row)
            jax.clear_caches()
            seconds = time.perf_counter() - start
            print(f"{preset:<14}" + "".join(f"{text:>13}" for text in cells) + f"{seconds:>9.0f}", flush=True)
    return rows


def main() -> int:
    """Run, report, and say by the exit code whether all is well."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--presets", nargs="+", choices=list(lf.presets()), default=list(lf.presets()))
    parser.add_argument("--dtypes", nargs="+", choices=["float32", "float64"], default=["float32", "float64"])
    parser.add_argument("--data", nargs="+", choices=list(data_sets()), default=list(data_sets()))
    parser.add_argument("--frequencies", type=int, default=FREQUENCIES, help="32 and more take polynomials, in 1-D")
    parser.add_argument("--out", type=Path, help="write the rows to this JSON file")
    options = parser.parse_args()
    rows = run(options.presets, options.dtypes, options.data, options.frequencies)
    failed = [row for row in rows if row["outcome"] != "ok"]
    retries = sum(row["retries"] for row in rows)
    print(f"\n{len(rows)} runs, {len(failed)} failed, {retries} retries")
    for row in failed:
        print(f"{row['preset']}, {row['dtype']}, {row['data']}: {row.get('error') or 'not finite: ' + str(row['bad'])}")
    if options.out:
        command = "python benchmarks/robustness.py " + " ".join(sys.argv[1:])
        header = {"command": command, "jax": jax.__version__, "device": jax.devices()[0].device_kind}
        counts = {"runs": len(rows), "failed": len(failed), "retries": retries}
        options.out.write_text(json.dumps({**header, **counts, "rows": rows}, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Are the defaults good? The untouched `LatentForceRegressor` against scikit-learn's Gaussian process, on UCI data.

    python benchmarks/defaults.py --data FOLDER --out benchmarks/results/defaults.json

FOLDER holds `boston.csv.gz`, ... (header, target last); "step" is the paper's multi-step function. 90 % of the rows are
for training (numpy `default_rng(seed)`). The peer is `GaussianProcessRegressor` with a Matérn-3/2 kernel with a
length-scale for each standardised input, white noise and a normalised target, on 2000 random rows where there are more.
NMLL is the mean negative log density of the test rows, in the target's units. An `--out` that is there already is
added to, so that sets may run side by side. `--model`, `--restarts` and `--validation-fraction` are the regressor's
arguments of these names; with several `--seeds` all numbers are means. "holds" is the share of the test rows inside
95 % intervals.
"""

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np
from scipy.stats import norm
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import latentforce as lf
from latentforce.datasets import multi_step

NAMES = ("boston", "concrete", "energy", "kin8nm", "naval", "power", "protein", "wine-red", "yacht", "step")
MOST = 2000  # rows for the peer


def load(folder: Path, name: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Inputs and targets for training, and for testing."""
    if name == "step":
        x, y, x_test, y_test = multi_step(seed)
        return x[:, None], y, x_test[:, None], y_test
    table = np.loadtxt(folder / f"{name}.csv.gz", delimiter=",", skiprows=1)
    order = np.random.default_rng(seed).permutation(len(table))
    cut = round(0.9 * len(table))
    train, test = table[order[:cut]], table[order[cut:]]
    return train[:, :-1], train[:, -1], test[:, :-1], test[:, -1]


def peer(num_inputs: int) -> Pipeline:
    """scikit-learn's Gaussian process."""
    lengths: Any = np.ones(num_inputs)
    kernel = ConstantKernel(1.0) * Matern(lengths, (1e-3, 1e5), nu=1.5) + WhiteKernel(0.1, (1e-8, 10.0))
    return make_pipeline(StandardScaler(), GaussianProcessRegressor(kernel, normalize_y=True, random_state=0))


def measure(name: str, folder: Path, seed: int, **given: Any) -> dict[str, Any]:
    """Scores and times of both on one data set."""
    x, y, x_test, y_test = load(folder, name, seed)
    start = time.perf_counter()
    ours = lf.LatentForceRegressor(random_state=seed, **given).fit(x, y)
    seconds = time.perf_counter() - start
    mean = ours.predict(x_test)
    row: dict[str, Any] = {"rows": len(x), "inputs": x.shape[1], "steps": ours.n_iter_, "seconds": seconds}
    row |= {"nmll": -ours.log_score(x_test, y_test), "rmse": float(np.sqrt(np.mean((mean - y_test) ** 2)))}
    low, high = ours.predict_interval(x_test, coverage=0.95).T
    row["holds"] = float(np.mean((low <= y_test) & (y_test <= high)))
    some = np.random.default_rng(seed).permutation(len(x))[:MOST]
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", ConvergenceWarning
        )  # a length-scale at its bound: an input that does not matter
        theirs = peer(x.shape[1]).fit(x[some], y[some])
    row["peer_seconds"] = time.perf_counter() - start
    mean, std = theirs.predict(x_test, return_std=True)
    row |= {"peer_nmll": float(-np.mean(norm.logpdf(y_test, mean, std)))}
    return row | {"peer_rmse": float(np.sqrt(np.mean((mean - y_test) ** 2)))}


def main() -> None:
    """Run, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--names", nargs="+", default=list(NAMES))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--model")
    parser.add_argument("--restarts", type=int)
    parser.add_argument("--validation-fraction", type=float)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    given = {"restarts": options.restarts, "validation_fraction": options.validation_fraction}
    given |= {} if options.model is None else {"model": options.model}
    print(f"{'data':<10}{'rows':>7}{'nmll':>9}{'peer':>9}{'rmse':>10}{'peer':>10}{'holds':>8}{'seconds':>9}{'peer':>7}")
    for name in options.names:
        every = [measure(name, options.data, seed, **given) for seed in options.seeds]
        row: dict[str, Any] = {key: float(np.mean([one[key] for one in every])) for key in every[0]}
        print(
            f"{name:<10}{row['rows']:>7.0f}{row['nmll']:>9.3f}{row['peer_nmll']:>9.3f}{row['rmse']:>10.4g}"
            f"{row['peer_rmse']:>10.4g}{row['holds']:>8.1%}{row['seconds']:>9.0f}{row['peer_seconds']:>7.0f}",
            flush=True,
        )
        if options.out:
            record: dict[str, Any] = {"result": {}}
            record |= json.loads(options.out.read_text()) if options.out.exists() else {}
            record |= {
                "command": "python benchmarks/defaults.py",
                "given": given | {"seeds": options.seeds},
                "device": jax.devices()[0].device_kind,
            }
            record["result"][name] = row
            options.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()

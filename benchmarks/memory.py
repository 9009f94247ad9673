"""How much memory does prediction take? Above the inputs themselves, whatever their number.

    python benchmarks/memory.py --out benchmarks/results/memory.json

A shallow model predicts 10^7 rows with their standard deviations, a deep one 10^5. Peak memory is the process's own
record (`ru_maxrss`), from before the prediction, inputs and compiled functions there, to after it.
"""

import argparse
import json
import resource
import time
from pathlib import Path

import jax
import numpy as np

import latentforce as lf

MODELS = {"lfm-driven": 10**7, "dlfm-driven": 10**5}


def peak() -> float:
    """The most memory that the process has had, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def main() -> None:
    """Run, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    x = np.linspace(0.0, 10.0, 200)[:, None]
    result = {}
    for name, rows in MODELS.items():
        regressor = lf.LatentForceRegressor(name, steps=100).fit(x, np.sin(x[:, 0]))
        inputs = np.random.default_rng(0).uniform(0.0, 10.0, (rows, 1))
        regressor.predict(inputs[:20_000], return_std=True)
        before, start = peak(), time.perf_counter()
        regressor.predict(inputs, return_std=True)
        row = {"rows": rows, "gb": peak() - before, "seconds": time.perf_counter() - start}
        result[name] = row
        print(f"{name:<12}{rows:>10} rows: {row['gb']:.2f} GB above the inputs, {row['seconds']:.0f} s", flush=True)
    if options.out:
        record = {"command": "python benchmarks/memory.py", "device": jax.devices()[0].device_kind, "result": result}
        options.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()

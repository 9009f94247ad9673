"""Time of one training step on the multi-step signal (paper, `fig:synthetic`), beside gpytorch's deep GP.

Two layers, 350 points, 10 samples, 41 features or inducing points, Adam, float64, in one run on the same machine:

    pip install ".[benchmarks]" && python benchmarks/step.py
"""

import argparse
import json
import platform
import time
from pathlib import Path

import gpytorch
import jax
import numpy as np
import torch

import latentforce as lf
from latentforce.datasets import multi_step
from latentforce.experiments._peers import DeepGPPeer

SAMPLES, FREQUENCIES, ROUNDS = 10, 20, 7


def our_steps(name: str, x: np.ndarray, y: np.ndarray):
    """A function that runs a number of our training steps (a multiple of 50)."""
    model = lf.build(
        name, x, y, num_frequencies=FREQUENCIES, interval=(-0.5, 1.5), lengthscale=0.1, variance=0.1,
        filter=lf.FirstOrder(3.0, 0.1),
    )  # fmt: skip
    return lambda steps: lf.fit(model, x, y, steps=steps, chunk=50, num_samples=SAMPLES)


def main() -> None:
    """Time all in turn, several rounds, and print medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the numbers to this JSON file")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    x, y, _, _ = multi_step(seed=0)
    peer = DeepGPPeer(x, y, 2 * FREQUENCIES + 1)
    runs = {"gpytorch DeepGP": (lambda steps: peer.train(steps, SAMPLES), 50)}
    for name in ("dlfm-vfrf", "dlfm-driven", "iddgp", "dgp", "dlfm-rff"):
        runs[name] = (our_steps(name, x, y), 200)
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for run, _ in runs.values():
        run(50)  # compiled, warmed up
    for _ in range(ROUNDS):
        for name, (run, steps) in runs.items():
            start = time.perf_counter()
            run(steps)
            seconds[name].append((time.perf_counter() - start) / steps)
    middle = {name: float(np.median(s)) for name, s in seconds.items()}
    result = {name: {"ms": 1e3 * s, "speedup": middle["gpytorch DeepGP"] / s} for name, s in middle.items()}
    print(f"{'model':<18}{'ms/step':>10}{'times faster':>14}")
    for name, row in result.items():
        print(f"{name:<18}{row['ms']:>10.2f}{row['speedup']:>14.1f}")
    if options.out:
        versions = {"jax": jax.__version__, "torch": torch.__version__, "gpytorch": gpytorch.__version__}
        header = {
            "command": "python benchmarks/step.py",
            "machine": platform.machine(),
            "threads": torch.get_num_threads(),
        }
        options.out.write_text(json.dumps({**header, **versions, "result": result}, indent=1) + "\n")


if __name__ == "__main__":
    main()

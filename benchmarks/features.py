"""Time and memory of whitened features, forward and gradient, as ratios to two yardsticks measured in the same run.

    python benchmarks/features.py [--points 100000] [--frequencies 100] [--dtype float64] [--json FILE]

Yardsticks: writing an N x F matrix once, and one plain cosine or sine for each of its entries. Seconds are the best of
several runs; machines are shared and noisy, so compare the ratios. Memory is what the compiled program allocates
(output and temporaries), over the size of the N x F matrix; programs that need more than --memory GiB are not run.
"""

import argparse
import json
import math
import platform
import time
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
from jax import Array

import latentforce as lf
from latentforce.features._base import AbstractFeatures


def best_time(compiled: Callable, arguments: tuple, repeats: int) -> float:
    """Seconds of the fastest of several runs."""
    jax.block_until_ready(compiled(*arguments))
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(compiled(*arguments))
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def measure(function: Callable, arguments: tuple, repeats: int, limit: float = math.inf) -> tuple[float, float]:
    """Seconds (nan where more than `limit` bytes would be needed), and bytes of output and temporaries."""
    compiled = jax.jit(function).lower(*arguments).compile()
    memory = compiled.memory_analysis()
    size = memory.output_size_in_bytes + memory.temp_size_in_bytes if memory else math.nan
    return (math.nan if size > limit else best_time(compiled, arguments, repeats)), size


def families(M: int, process: lf.Process) -> dict[str, AbstractFeatures]:
    """All families, with about the same number of features."""
    interval = (0.0, 1.0)
    return {
        "points": lf.InducingPoints(jnp.linspace(0.0, 1.0, 2 * M + 1)),
        "random": lf.RandomFourier(M),
        "harmonic": lf.HarmonicFourier(M, interval),
        "driven": lf.DrivenFourier(M, interval),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=100_000)
    parser.add_argument("--frequencies", type=int, default=100)
    parser.add_argument("--dtype", choices=["float64", "float32"], default="float64")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--memory", type=float, default=12.0, help="GiB (default: %(default)s)")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with jax.enable_x64(options.dtype == "float64"):
        rows = run(options.points, options.frequencies, options.repeats, options.memory * 2**30)
    if options.json:
        device = jax.devices()[0]
        options.json.write_text(
            json.dumps(
                {"jax": jax.__version__, "device": str(device), "machine": platform.machine(), "rows": rows}, indent=1
            )
        )


def run(N: int, M: int, repeats: int, limit: float) -> list[dict]:
    """One row for each yardstick, family and filter."""
    t = jnp.linspace(0.0, 1.0, N)
    F = 2 * M + 1
    bytes_of_matrix = N * F * t.dtype.itemsize

    def write(t: Array) -> Array:
        return jnp.broadcast_to(t[:, None], (N, F)) + 0.0

    def plain(t: Array) -> Array:
        angle = t[:, None] * (2 * math.pi * jnp.arange(M + 1, dtype=t.dtype))
        return jnp.concatenate([jnp.cos(angle), jnp.sin(angle[:, 1:])], axis=1)

    rows = []
    writing, _ = measure(write, (t,), repeats)
    trigonometry, _ = measure(plain, (t,), repeats)
    print(f"N = {N}, M = {M}, {t.dtype}, {jax.devices()[0].device_kind}, jax {jax.__version__}")
    print(f"writing N x F once {1e3 * writing:.1f} ms, plain cos and sin {1e3 * trigonometry:.1f} ms\n")
    print(f"{'family':<10}{'filter':<14}{'':<10}{'ms':>9}{'/ writing':>11}{'/ cos+sin':>11}{'memory / NF':>13}")
    filters = {
        "Identity": lf.Identity(),
        "FirstOrder": lf.FirstOrder(1.0, 0.1),
        "SecondOrder": lf.SecondOrder(1.0, 2.0, 99.0),
    }
    for filter_name, filter in filters.items():
        process = lf.Process(lf.Matern(1.5, 0.2), filter)
        for name, features in families(M, process).items():

            def forward(process: lf.Process, t: Array, features: AbstractFeatures = features) -> Array:
                return features.whitened(process, t)

            def pulled_back(process: lf.Process, t: Array, forward: Callable = forward) -> tuple:
                weights = jnp.linspace(-1.0, 1.0, N, dtype=t.dtype)
                return jax.grad(lambda p, s: jnp.sum(weights[:, None] * forward(p, s) ** 2), argnums=(0, 1))(process, t)

            for kind, function in (("forward", forward), ("gradient", pulled_back)):
                seconds, size = measure(function, (process, t), repeats, limit)
                row = {
                    "family": name,
                    "filter": filter_name,
                    "kind": kind,
                    "seconds": seconds,
                    "over_writing": seconds / writing,
                    "over_trigonometry": seconds / trigonometry,
                    "memory_over_matrix": size / bytes_of_matrix,
                }
                rows.append(row)
                print(
                    f"{name:<10}{filter_name:<14}{kind:<10}{1e3 * seconds:>9.1f}{row['over_writing']:>11.2f}"
                    f"{row['over_trigonometry']:>11.2f}{row['memory_over_matrix']:>13.2f}",
                    flush=True,
                )
    return rows


if __name__ == "__main__":
    main()

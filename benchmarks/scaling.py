"""How time and memory grow: with the rows that a shallow model is trained on in one pass, with those of an exact one,
with those that a deep model takes its batches from, and with rows, frequencies, inputs, layers and samples of its step.

    python benchmarks/scaling.py --parts batches stream exact step --out benchmarks/results/scaling.json

`stream`: N rows of a noisy wave in two memory-mapped `.npy` files; `LatentForceRegressor("lfm-driven",
num_frequencies=100).fit_chunks`, hyperparameters and all. Peak memory is the process's from its start, libraries,
compilation and pages of the mapped files included. `exact`: the log marginal likelihood of the
exact model through its state space, with its gradient. `batches`: steps of `dlfm-driven` on 1000 rows out of so many in
memory; its peak is the process's, too. `step`: whole training steps of `dlfm-driven`, varied one
factor at a time. Exponents are slopes of log time over the upper half of each range. The plot goes to a PNG beside
the results.
"""

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

import latentforce as lf
from latentforce.bench._machine import best_of

PARTS = ("batches", "stream", "exact", "step")
CHUNK = 2**20
SIZES = (10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
BASE = {"rows": 1000, "frequencies": 20, "inputs": 1, "layers": 2, "samples": 2}
RANGES = {
    "rows": (1000, 4000, 16_000, 64_000),
    "frequencies": (20, 40, 80, 160, 320),
    "inputs": (1, 2, 4, 8, 16),
    "layers": (2, 3, 4, 5),
    "samples": (2, 4, 8, 16),
}


def signal(start: int, stop: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows start to stop of `size` random times in [0, 10] and a wave in noise of deviation 0.3."""
    generator = np.random.default_rng(start)
    t = 10 * generator.random(stop - start)
    return t, np.sin(3 * t) + 0.3 * np.cos(17 * t) + 0.3 * generator.standard_normal(stop - start)


def write(folder: Path, size: int) -> tuple[Path, Path]:
    """Both columns as `.npy` files, a chunk at a time."""
    paths = (folder / "t.npy", folder / "y.npy")
    files = [np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=(size,)) for path in paths]
    for start in range(0, size, CHUNK):
        stop = min(start + CHUNK, size)
        for file, values in zip(files, signal(start, stop, size), strict=True):
            file[start:stop] = values
    for file in files:
        file.flush()
    return paths


def stream(size: int) -> dict[str, Any]:
    """Seconds, steps, peak memory and what was found, for one size."""
    with tempfile.TemporaryDirectory() as folder:
        paths = write(Path(folder), size)

        def chunks() -> Iterator[tuple[np.ndarray, np.ndarray]]:
            t, y = (np.load(path, mmap_mode="r") for path in paths)
            for start in range(0, size, CHUNK):
                yield t[start : start + CHUNK], y[start : start + CHUNK]

        start = time.perf_counter()
        fitted = lf.LatentForceRegressor("lfm-driven", num_frequencies=100).fit_chunks(chunks)
        seconds = time.perf_counter() - start
    history = fitted.history_
    a_step = float(np.median(np.diff(history.seconds) / np.diff(history.steps)))  # the first chunk compiles
    noise = float(np.sqrt(np.asarray(jax.tree.leaves(fitted.model_.likelihood)[0]))) * float(fitted.targets_.scale[0])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    row = {"rows": size, "seconds": seconds, "training_seconds": history.seconds[-1], "steps": fitted.n_iter_}
    return row | {
        "seconds_a_step": a_step,
        "peak_gigabytes": peak,
        "file_gigabytes": 16 * size / 2**30,
        "noise": noise,
    }


def agreement(size: int = 100_000) -> float:
    """The relative difference of the bound of compressed data from that of the data themselves."""
    with jax.enable_x64(True):
        t, y = signal(0, size, size)
        model = lf.build("lfm-driven", t / 10, y, num_frequencies=100, interval=(-0.1, 1.1))
        whole = lf.collapsed_bound(model, lf.whole(jnp.asarray(t)[:, None] / 10, jnp.asarray(y)[:, None]))
        short = lf.collapsed_bound(model, lf.compress(t / 10, y, (-0.1, 1.1), bins=300, dense=12))
        return float(jnp.abs(short / whole - 1))


def exact(size: int) -> dict[str, Any]:
    """Seconds for the exact log marginal likelihood and its gradient, once compiled."""
    with jax.enable_x64(True):
        t, y = signal(0, size, size)
        model = lf.build("exact-lfm", np.sort(t)[:1000], y[:1000])
        data = lf.whole(jnp.sort(jnp.asarray(t))[:, None], jnp.asarray(y)[:, None])
        step = jax.jit(jax.value_and_grad(lambda model, data: lf.log_marginal_likelihood(model, data)))
        return {"rows": size, "seconds": best_of(lambda: step(model, data), 3)}


def step(setting: dict[str, int], steps: int = 5) -> dict[str, Any]:
    """Seconds of one training step of a deep model, in float32."""
    generator = np.random.default_rng(0)
    x = generator.random((setting["rows"], setting["inputs"]))
    y = np.sin(5 * x.sum(axis=1))
    options = {"num_frequencies": setting["frequencies"], "depth": setting["layers"], "covariance": "full"}
    model = lf.build("dlfm-driven", x, y, **options)
    return setting | {"seconds": quickest(model, x, y, steps, num_samples=setting["samples"])}


def batches(size: int, steps: int = 50) -> dict[str, Any]:
    """Seconds of one training step of a deep model on 1000 of so many rows, in float32, and the peak of memory."""
    t, y = signal(0, size, size)
    model = lf.build("dlfm-driven", t[:1000] / 10, y[:1000], num_frequencies=BASE["frequencies"], interval=(-0.1, 1.1))
    seconds = quickest(model, t / 10, y, steps, num_samples=BASE["samples"], batch_size=1000)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"rows": size, "seconds": seconds, "peak_gigabytes": peak}


def quickest(model: lf.Model, x: np.ndarray, y: np.ndarray, steps: int, **options: Any) -> float:
    """Seconds of a step in the fastest of some chunks of so many, the first, which compiles, apart."""
    seconds = lf.fit(model, x, y, steps=4 * steps, chunk=steps, **options).history.seconds
    return float(np.diff(seconds).min()) / steps


def exponent(sizes: list[float], seconds: list[float]) -> float:
    """The slope of log seconds over log size, for the upper half."""
    half = len(sizes) // 2 - (len(sizes) > 3)
    return float(np.polyfit(np.log(sizes[half:]), np.log(seconds[half:]), 1)[0])


def draw(record: dict[str, Any], path: Path) -> None:
    """Time over size, for each part and factor, on logarithmic axes."""
    curves = {}
    if "stream" in record:
        rows = record["stream"]
        curves["one pass: all"] = [(row["rows"], row["seconds"]) for row in rows]
        curves["one pass: a step"] = [(row["rows"], row["seconds_a_step"]) for row in rows]
    if "exact" in record:
        curves["exact likelihood and gradient"] = [(row["rows"], row["seconds"]) for row in record["exact"]]
    if "batches" in record:
        curves["deep, a step on 1000 of the rows"] = [(row["rows"], row["seconds"]) for row in record["batches"]]
    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, points in curves.items():
        left.loglog(*zip(*points, strict=True), "o-", label=name)
    for name, rows in record.get("step", {}).items():
        sizes = np.array([row[name] for row in rows]) / BASE[name]
        right.loglog(sizes, [row["seconds"] for row in rows], "o-", label=name)
    left.set(xlabel="rows", ylabel="seconds", title="models of one input")
    right.set(xlabel="size, in units of the smallest", ylabel="seconds a step", title="deep model, all rows in a step")
    left.set_ylim(bottom=1e-5)  # room for the legend
    for ax in (left, right):
        if ax.lines:
            ax.legend(fontsize="small")
    figure.savefig(path, dpi=130)


def main() -> None:
    """Run, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS)
    parser.add_argument("--most", type=int, default=SIZES[-1], help="rows of the largest stream")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    record: dict[str, Any] = {"command": "python benchmarks/scaling.py"}
    record |= json.loads(options.out.read_text()) if options.out and options.out.exists() else {}
    record["device"] = jax.devices()[0].device_kind
    if "batches" in options.parts:
        record["batches"] = [batches(size) for size in (1000, 10_000, 100_000, 1_000_000, 10_000_000)]
        for row in record["batches"]:
            size, peak = row["rows"], row["peak_gigabytes"]
            print(f"1000 of {size:>10,} rows: {1e3 * row['seconds']:.2f} ms a step, peak {peak:.2f} GB", flush=True)
    if "stream" in options.parts:
        record["agreement"] = agreement()
        print(f"bound of compressed data, relative difference at N = 100,000: {record['agreement']:.1e}", flush=True)
        record["stream"] = []
        print(
            f"{'rows':>12}{'seconds':>9}{'steps':>7}{'ms a step':>11}{'peak GB':>9}{'files GB':>10}{'noise (0.3)':>13}"
        )
        for size in [size for size in SIZES if size <= options.most]:
            record["stream"].append(row := stream(size))
            print(
                f"{size:>12,}{row['seconds']:>9.1f}{row['steps']:>7}{1e3 * row['seconds_a_step']:>11.1f}"
                f"{row['peak_gigabytes']:>9.2f}{row['file_gigabytes']:>10.2f}{row['noise']:>13.4f}",
                flush=True,
            )
    if "exact" in options.parts:
        record["exact"] = [exact(size) for size in (1000, 10_000, 100_000, 1_000_000)]
        for row in record["exact"]:
            print(f"exact, {row['rows']:>9,} rows: {row['seconds']:.3f} s")
        slope = exponent([row["rows"] for row in record["exact"]], [row["seconds"] for row in record["exact"]])
        record["exact_exponent"] = slope
        print(f"exact: N^{slope:.2f}", flush=True)
    if "step" in options.parts:
        record["step"], record["exponents"] = {}, {}
        for name, sizes in RANGES.items():
            record["step"][name] = rows = [step(BASE | {name: size}) for size in sizes]
            record["exponents"][name] = slope = exponent([row[name] for row in rows], [row["seconds"] for row in rows])
            times = ", ".join(f"{row[name]}: {1e3 * row['seconds']:.1f} ms" for row in rows)
            print(f"step over {name}: {times}: exponent {slope:.2f}", flush=True)
    if options.out:
        options.out.write_text(json.dumps(record, indent=1) + "\n")
        draw(record, options.out.with_suffix(".png"))


if __name__ == "__main__":
    main()

"""Does a training wait for its data? Step time with batches read from disk, as a ratio to data in memory, and memory.

    python benchmarks/loading.py --out benchmarks/results/loading.json

A two-layer model of eight inputs is trained by batches: drawn from arrays that lie on the device, and shuffled from
memory maps and from a Parquet file (`latentforce.Batches`), in turn, several rounds. Memory is what the process holds
beside files (`RssAnon`), at its most after any chunk of steps, above what it held before. The rate is how many rows a
second the thread that reads has ready, with nobody else at work: more than the steps use, and they never wait.
"""

import argparse
import itertools
import json
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np

import latentforce as lf

COLUMNS, CHUNK = 8, 50
WRITE = """
import sys, numpy as np, polars as pl
folder, rows, columns = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
x = np.random.default_rng(0).uniform(size=(rows, columns))
y = np.sin(5 * x[:, 0]) * x[:, 1] + x[:, 2]
np.save(folder + "/x.npy", x), np.save(folder + "/y.npy", y)
pl.DataFrame({f"x{k}": x[:, k] for k in range(columns)} | {"y": y}).write_parquet(folder + "/data.parquet")
"""  # in a process of its own: its memory is not ours


def held() -> float:
    """The memory of this process beside files, in GB."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["RssAnon"].split()[0]) * 1024 / 1e9


def measure(model: Any, data: tuple[Any, ...], steps: int, options: dict[str, Any]) -> tuple[float, float]:
    """The median time of a step, the first chunk left out, and the most memory."""
    before, most = held(), [0.0]

    def watch(_: Any) -> None:
        most.append(held() - before)

    history = lf.fit(model, *data, steps=steps, chunk=CHUNK, num_samples=1, callback=watch, **options).history
    return float(np.median(np.diff(history.seconds))) / CHUNK, max(most)


def rate(batches: lf.Batches, num_rows: int) -> float:
    """Rows a second, as float32, shuffled."""
    start, number = time.perf_counter(), num_rows // batches.size
    for _ in itertools.islice(batches.after(0, np.float32), number):
        pass
    return number * batches.size / (time.perf_counter() - start)


def main() -> None:
    """Run, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--frequencies", type=int, default=20)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", WRITE, folder, str(options.rows), str(COLUMNS)], check=True)
        x, y = (np.load(f"{folder}/{name}.npy", mmap_mode="r") for name in "xy")
        print(f"{x.nbytes / 1e9 + y.nbytes / 1e9:.2f} GB written in {time.perf_counter() - start:.0f} s", flush=True)
        sources = {
            "memory maps": lambda: (lf.Batches((x, y), options.batch),),
            "Parquet": lambda: (lf.Batches(f"{folder}/data.parquet", options.batch, targets="y"),),
            "in memory": lambda: (np.asarray(x), np.asarray(y)),
        }
        sample = lf.Batches((x, y), options.batch).sample(2000)
        model = lf.build(
            "dlfm-driven", *sample, num_frequencies=options.frequencies, width=2, directions=COLUMNS, covariance="block"
        )
        measure(model, (lf.Batches(sample, options.batch),), 2 * CHUNK, {})  # compiled
        rates = {name: rate(source()[0], options.rows) for name, source in sources.items() if name != "in memory"}
        rounds: dict[str, list[tuple[float, float]]] = {name: [] for name in sources}
        for _ in range(options.rounds):
            for name, source in sources.items():
                given = {"batch_size": options.batch} if name == "in memory" else {}
                rounds[name].append(measure(model, source(), options.steps, given))
    seconds = {name: float(np.median([one for one, _ in runs])) for name, runs in rounds.items()}
    result = {}
    print(f"{'data':<14}{'ms/step':>10}{'to in memory':>14}{'GB held':>10}{'rows/s used':>14}{'rows/s ready':>14}")
    for name, runs in rounds.items():
        ratio = float(np.median([one / other for (one, _), (other, _) in zip(runs, rounds["in memory"], strict=True)]))
        used, ready = options.batch / seconds[name], rates.get(name)
        result[name] = {"ms": 1e3 * seconds[name], "ratio": ratio, "gb": runs[0][1], "used": used, "ready": ready}
        line = f"{name:<14}{1e3 * seconds[name]:>10.2f}{ratio:>14.2f}{runs[0][1]:>10.2f}{used:>14.2g}"
        print(line if ready is None else f"{line}{ready:>14.2g}")
    if options.out:
        record = {"command": "python benchmarks/loading.py", "device": jax.devices()[0].device_kind}
        record |= {"machine": platform.machine(), "jax": jax.__version__}
        record |= {name: getattr(options, name) for name in ("rows", "batch", "frequencies", "steps", "rounds")}
        options.out.write_text(json.dumps({**record, "result": result}, indent=1) + "\n")


if __name__ == "__main__":
    main()

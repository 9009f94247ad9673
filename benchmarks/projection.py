"""What many devices would gain, worked out from the step times of one.

    python benchmarks/projection.py --out benchmarks/results/projection.json       # measures on this device first
    python benchmarks/projection.py --measured 1000:0.0005 7000:0.0021             # rows:seconds, measured elsewhere

A two-layer `dlfm-driven` of one input takes whole training steps on batches of several sizes. A step on n rows takes
`floor + n / rate`; on G devices, n / G rows each and one sum of all gradients over them, in which each device sends
`2 (G - 1) / G` times their bytes in `2 log2(G)` turns. Bandwidth and time of a turn are assumptions, and are printed.
"""

import argparse
import json
import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import latentforce as lf
from latentforce.inference._steps import Plan, adam, begin

ROWS = 1e9
LINKS = {8: (350e9, 5e-6), 64: (45e9, 15e-6)}  # up to so many devices: bytes a second of each, seconds of a turn
CHUNK = 10


def model_for(rows: int, frequencies: int) -> tuple[lf.Model, np.ndarray, np.ndarray]:
    """The model and data of one input."""
    x = np.sort(np.random.default_rng(0).uniform(size=rows))
    y = np.sign(np.sin(20 * x))
    return lf.build("dlfm-driven", x, y, num_frequencies=frequencies), x, y


def measure(rows: int, frequencies: int, samples: int) -> float:
    """Seconds of a step on a whole batch of so many rows."""
    model, x, y = model_for(rows, frequencies)
    history = lf.fit(model, x, y, steps=6 * CHUNK, chunk=CHUNK, num_samples=samples).history
    return float(np.median(np.diff(history.seconds))) / (CHUNK + 1)  # one more is tried than taken


def num_trained(frequencies: int) -> int:
    """How many numbers the gradients have."""
    model, *_ = model_for(100, frequencies)
    state, _ = begin(model, Plan(lf.elbo, adam(0.1, None), None, None, model.train_filters, 1))
    return sum(leaf.size for leaf in jax.tree.leaves(state.free))


def sum_over(devices: int, size: float) -> float:
    """Seconds to add up so many bytes of every device on all."""
    if devices == 1:
        return 0.0
    bandwidth, turn = next(link for most, link in LINKS.items() if devices <= most)
    return 2 * (devices - 1) / devices * size / bandwidth + 2 * math.log2(devices) * turn


def main() -> None:
    """Measure or be told, and work out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measured", nargs="+", metavar="ROWS:SECONDS")
    parser.add_argument("--rows", nargs="+", type=int, default=[1000, 10_000, 100_000], help="batches to measure")
    parser.add_argument("--frequencies", type=int, default=100)
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--batches", nargs="+", type=float, default=[1e3, 1e4, 1e5, 1e6, 1e7], help="to work out")
    parser.add_argument("--float32", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", not options.float32)
    device = "as told" if options.measured else jax.devices()[0].device_kind
    pairs = [tuple(map(float, one.split(":"))) for one in options.measured or ()]
    pairs = pairs or [(float(n), measure(n, options.frequencies, options.samples)) for n in options.rows]
    rows, seconds = np.array(pairs).T
    slope, floor = np.polyfit(rows, seconds, 1, w=1 / seconds)
    rate, floor = 1 / slope, max(floor, 0.0)
    numbers = num_trained(options.frequencies)
    size = float(numbers * jnp.zeros(()).dtype.itemsize)
    print(f"{device}: " + ", ".join(f"{n:.0f} rows {1e3 * s:.2f} ms" for n, s in pairs))
    print(f"a step: {1e3 * floor:.2f} ms and {rate:.3g} rows a second; {numbers} numbers trained, {size / 1e6:.2f} MB")
    for most, (bandwidth, turn) in LINKS.items():
        total = 1e6 * sum_over(most, size)
        print(f"up to {most} devices: {bandwidth / 1e9:.0f} GB/s, {1e6 * turn:.0f} us a turn: {total:.0f} us a sum")
    print(
        f"\n{'batch':>9}{'devices':>9}{'ms/step':>10}{'10^9 rows':>12}{'speed-up':>10}{'efficiency':>12}{'half at':>9}"
    )
    table = []
    for batch in options.batches:
        alone = floor + batch / rate
        half = (2 * floor + batch / rate) / (floor + sum_over(64, size))  # devices, of which half the time is lost
        for devices in (1, 8, 64):
            step = floor + batch / devices / rate + sum_over(devices, size)
            table.append({"batch": batch, "devices": devices, "seconds": step, "pass": ROWS / batch * step})
            gain = alone / step
            line = f"{batch:>9.0e}{devices:>9}{1e3 * step:>10.2f}{ROWS / batch * step:>10.0f} s"
            print(f"{line}{gain:>10.1f}{gain / devices:>12.0%}" + (f"{half:>9.0f}" if devices == 1 else ""))
    if options.out:
        record = {"command": "python benchmarks/projection.py", "device": device, "jax": jax.__version__}
        record |= {"frequencies": options.frequencies, "samples": options.samples, "float32": options.float32}
        record |= {"measured": pairs, "floor": floor, "rate": rate, "trained": numbers, "bytes": size, "result": table}
        options.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()

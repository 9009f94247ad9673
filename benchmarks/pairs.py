"""How noisy are the gradients of a step, with independent draws of the hidden layers and with mirrored pairs?

    python benchmarks/pairs.py --data FOLDER --out benchmarks/results/pairs.json

FOLDER holds `energy.csv.gz`, ... (header, target last); models and data are those of `benchmarks/convergence.py`. After
`--steps` steps, gradients of the bound on all training rows are taken with 200 keys. "noise" is the root of the
summed variances of what is trained (as free numbers), over that of two independent draws; each way also has its time
for a gradient, over that of two independent draws, in one run.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import convergence
import latentforce as lf
from latentforce.inference._objectives import Batch
from latentforce.inference._steps import Plan, State, adam, assemble, begin

KEYS = 200
WAYS = {"one draw": (1, False), "two draws": (2, False), "a pair": (2, True), "two pairs": (4, True)}


def gradients(state: State, fixed: lf.Model, data: Batch, draws: int, mirrored: bool) -> Callable:
    """Of the bound, in everything that is trained, as one vector (P,), from a key."""

    def bound(free: State, key: jax.Array) -> jax.Array:
        model = assemble(state._replace(free=free), fixed)
        return lf.elbo(model, data, key, draws, mirrored=mirrored)

    @jax.jit
    def gradient(key: jax.Array) -> jax.Array:
        found = jax.grad(bound)(state.free, key)
        return jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(found)])

    return gradient


def measure(path: Path, steps: int) -> dict[str, dict[str, float]]:
    """Noise and seconds of a gradient, each way."""
    x, y, *_ = convergence.load(path)
    model = lf.fit(convergence.deep(x, y, 0), x, y, steps=steps, num_samples=2).model
    state, fixed = begin(model, Plan(lf.elbo, adam(0.1, None), None, None, model.train_filters, 1))
    data = lf.whole(*(jnp.asarray(part, jnp.float32) for part in (x, y)))
    ways = {name: gradients(state, fixed, data, *way) for name, way in WAYS.items()}
    keys, seconds, noise = jax.random.split(jax.random.key(0), KEYS), {name: [] for name in WAYS}, {}
    for name, gradient in ways.items():
        noise[name] = float(np.sqrt(np.sum(np.var([gradient(key) for key in keys], axis=0))))
    for key in keys[:20]:
        for name, gradient in ways.items():
            start = time.perf_counter()
            jax.block_until_ready(gradient(key))
            seconds[name].append(time.perf_counter() - start)
    return {name: {"noise": noise[name], "seconds": float(np.median(seconds[name]))} for name in WAYS}


def main() -> None:
    """Run, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--names", nargs="+", default=list(convergence.NAMES))
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    result = {}
    print(f"{'':<10}" + "".join(f"{name + ' noise':>17}{'time':>6}" for name in WAYS))
    for name in options.names:
        result[name] = measure(options.data / f"{name}.csv.gz", options.steps)
        unit = result[name]["two draws"]
        cells = (
            f"{one['noise'] / unit['noise']:>17.3f}{one['seconds'] / unit['seconds']:>6.2f}"
            for one in result[name].values()
        )
        print(f"{name:<10}" + "".join(cells), flush=True)
    if options.out:
        record = {"command": "python benchmarks/pairs.py", "device": jax.devices()[0].device_kind, "result": result}
        options.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()

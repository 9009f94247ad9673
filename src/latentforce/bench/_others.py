"""What else is waited for: predictions, many small models, and the first step of a first fit."""

import json
import os
import subprocess
import sys
import tempfile
import time
from typing import Any

import jax
import numpy as np

from ..datasets import multi_step
from ..experiments._together import train_together
from ..inference._prediction import predict
from ..inference._steps import adam
from ..presets import build
from ._machine import best_of
from ._steps import MODELS, SETTING, Size, signal

SEEDS, SAMPLES = 20, 100
FIRST_FIT = """
import json, time
start = time.perf_counter()
import latentforce as lf
from latentforce.datasets import multi_step
imported = time.perf_counter()
x, y, _, _ = multi_step(seed=0)
model = lf.build("dlfm-driven", x, y, num_frequencies=20)
built = time.perf_counter()
lf.fit(model, x, y, steps=1, chunk=1)
print(json.dumps({"import": imported - start, "build": built - imported, "fit": time.perf_counter() - built}))
"""


def prediction(size: Size, quick: bool) -> list[dict[str, Any]]:
    """Points a second through all draws of the hidden layer, for each model."""
    rows = size.N if quick else 10 * size.N
    x, y = signal(size.N)
    inputs = np.linspace(0.0, 1.0, rows)

    def one(name: str) -> dict[str, Any]:
        model = build(name, x, y, num_frequencies=size.M, **SETTING)
        seconds = best_of(lambda: predict(model, inputs, num_samples=SAMPLES).f_mean, 2)
        row = {"model": name, "dtype": size.dtype, "M": size.M, "rows": rows, "samples": SAMPLES}
        return row | {"points_a_second": rows / seconds}

    with jax.enable_x64(size.dtype == "float64"):
        return [one(name) for name in MODELS]


def together(quick: bool) -> dict[str, Any]:
    """Seconds a step of one model of the multi-step function, and of one for each of many seeds in one program."""
    optimizer, steps = adam(0.01, None, textbook=True), 20 if quick else 100
    with jax.enable_x64(True):
        data = [multi_step(seed)[:2] for seed in range(SEEDS)]
        models = [build("dlfm-driven", x, y, num_frequencies=20, **SETTING) for x, y in data]

        def seconds(num: int) -> float:
            ends: list[float] = []  # of chunks, of which the first compiles
            train_together(
                models[:num], data[:num], optimizer, 5 * steps, 10, chunk=steps,
                callback=lambda *_: ends.append(time.perf_counter()),
            )  # fmt: skip
            return float(np.median(np.diff(ends[1:]))) / (steps + 1)

        one, many = seconds(1), seconds(SEEDS)
    return {"model": "dlfm-driven", "seeds": SEEDS, "one": one, "all": many, "ratio": many / one}


def first_fit() -> dict[str, dict[str, float]]:
    """Seconds until the first step of a first fit on 350 rows is done, in a process of its own; and of the next such
    process, where JAX keeps compiled programs in a folder.
    """
    with tempfile.TemporaryDirectory() as folder:
        kept = {"JAX_COMPILATION_CACHE_DIR": folder, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
        return {"first": _start({}), "filling the cache": _start(kept), "from the cache": _start(kept)}


def _start(settings: dict[str, str]) -> dict[str, float]:
    keep = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    own = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}  # this process has most of a GPU's memory
    environment = keep | own | {"JAX_TRACEBACK_FILTERING": "off"} | settings  # errors end with what they are
    done = subprocess.run([sys.executable, "-c", FIRST_FIT], env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"The first fit in a process of its own failed: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout)

"""The machine: what it is, how fast it multiplies matrices and how fast it moves numbers."""

import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._linalg import precise

CPUINFO = Path("/proc/cpuinfo")


def describe() -> dict[str, Any]:
    """Device, processor, cores and versions."""
    device = jax.devices()[0]
    return {
        "device": device.platform,
        "name": _processor() if device.platform == "cpu" else device.device_kind,
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "python": platform.python_version(),
        "jax": jax.__version__,
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,  # times of a busy machine mean little
    }


def _processor() -> str:
    lines = CPUINFO.read_text().splitlines() if CPUINFO.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def rates(dtype: str, quick: bool) -> dict[str, float]:
    """Floating-point operations a second of square matrix products in full precision, and bytes a second of reading
    and writing in place a vector far larger than any cache.
    """
    gpu = jax.devices()[0].platform != "cpu"
    size, length = (8192, 2**28) if gpu else (1024, 2**25)
    size, length = (size // 2, length // 4) if quick else (size, length)
    with jax.enable_x64(dtype == "float64"):
        a, v = jnp.asarray(np.random.default_rng(0).standard_normal((size, size)), dtype), jnp.ones(length, dtype)
        product, change = precise(lambda a: a @ a), jax.jit(lambda v: 2 - v, donate_argnums=0)

        def move() -> jax.Array:
            nonlocal v
            v = change(v)
            return v

        return {"flops": 2 * size**3 / best_of(lambda: product(a)), "bytes": 2 * v.nbytes / best_of(move)}


def best_of(function: Callable[[], Any], repeats: int = 7) -> float:
    """Seconds of the fastest of several calls, the first one apart."""
    jax.block_until_ready(function())
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(function())
        seconds.append(time.perf_counter() - start)
    return min(seconds)

"""Whole training steps of deep models of one input, their floors, and gpytorch's beside them."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

import jax
import numpy as np

from ..datasets import LEVELS
from ..depth._layer import Layer
from ..depth._model import Model
from ..depth._outputs import MANY_WAVES
from ..dynamics._filters import FirstOrder
from ..experiments import _peers
from ..experiments._timing import step_timer
from ..features._driven import DrivenFourier
from ..features._harmonic import HarmonicFourier
from ..features._polynomials import few
from ..presets import build

MODELS = ("dlfm-vfrf", "dlfm-driven")
PEERS: dict[str, type[_peers.DeepGPPeer]] = {"gpytorch DeepGP": _peers.DeepGPPeer, "gpytorch SVGP": _peers.SVGPPeer}
SETTING: dict[str, Any] = {
    "interval": (-0.5, 1.5), "lengthscale": 0.1, "variance": 0.1, "filter": FirstOrder(3.0, 0.1), "nu": 1.5,
}  # fmt: skip


class Size(NamedTuple):
    """Rows, samples and frequencies, in which dtype; milliseconds of the paper's code, and those to reach."""

    dtype: str
    N: int
    S: int
    M: int
    published: float
    goal: float


SIZES = {
    "gpu": (
        Size("float64", 7000, 5, 100, 67, 1.3),
        Size("float64", 7000, 5, 400, 87, 3.5),
        Size("float32", 7000, 5, 100, 60, 0.7),
        Size("float32", 7000, 5, 400, 77, 2.0),
    ),
    "cpu": (Size("float64", 350, 10, 20, 28, 2.5), Size("float64", 1000, 5, 100, 262, 26)),
}


def sizes(device: str, quick: bool) -> tuple[Size, ...]:
    """Those of the device; the first alone where it must be quick."""
    return SIZES["cpu" if device == "cpu" else "gpu"][: 1 if quick else None]


def signal(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """The multi-step function at equal distances, in a little noise."""
    x = np.linspace(0.0, 1.0, rows)
    steps = LEVELS[np.minimum((5 * x).astype(int), 4)]
    return x, steps + 0.005 * np.random.default_rng(0).standard_normal(rows)


def measure(size: Size, rates: dict[str, float], quick: bool, models: tuple[str, ...] = MODELS) -> list[dict[str, Any]]:
    """A row for each model and peer: all in turn, several rounds, medians."""
    x, y = signal(size.N)
    steps = (50 if size.M < 50 else 10) if jax.devices()[0].platform == "cpu" else 200  # a call costs milliseconds
    with _in(size.dtype):
        built = {name: build(name, x, y, num_frequencies=size.M, **SETTING) for name in models}

    def compiled(name: str) -> Callable[[], float]:
        with _in(size.dtype):
            return step_timer(built[name], x, y, size.S, steps)

    with ThreadPoolExecutor() as pool:
        timers = dict(zip(models, pool.map(compiled, models), strict=True))
    timers |= {} if quick and size.N > 1000 else _peer_timers(size, x, y)
    seconds = {name: _median(rounds) for name, rounds in _in_turn(timers, 3 if quick else 7, size.dtype).items()}
    return [
        size._asdict()
        | {"model": name, "seconds": value}
        | (_floor(built[name], size, value, rates) if name in built else _beside(value, seconds, models))
        for name, value in seconds.items()
    ]


def _peer_timers(size: Size, x: np.ndarray, y: np.ndarray) -> dict[str, Callable[[], float]]:
    """With as many inducing points as there are features; none where torch runs elsewhere or is not installed."""
    if _peers.platform() != jax.devices()[0].platform:
        return {}
    steps = 10 if size.M < 50 or _peers.platform() == "gpu" else 2

    def timer(peer: _peers.DeepGPPeer) -> Callable[[], float]:
        return lambda: peer.train(steps, size.S) / steps

    return {name: timer(kind(x, y, 2 * size.M + 1, size.dtype)) for name, kind in PEERS.items()}


def _in_turn(timers: dict[str, Callable[[], float]], rounds: int, dtype: str) -> dict[str, list[float]]:
    """Seconds of each, round by round: a machine that others use slows all of them alike. The first round warms up."""
    seconds: dict[str, list[float]] = {name: [] for name in timers}
    with _in(dtype):
        for _ in range(rounds + 1):
            for name, timer in timers.items():
                seconds[name].append(timer())
    return {name: found[1:] for name, found in seconds.items()}


def _floor(model: Model, size: Size, seconds: float, rates: dict[str, float]) -> dict[str, Any]:
    """What no step can go below: operations at the rate of a matrix product, and bytes at the rate of memory."""
    layers = zip(model.layers, (size.N, size.N * size.S), strict=True)
    works = [_work(layer, rows, np.dtype(size.dtype).itemsize) for layer, rows in layers]
    flops, moved = (float(sum(part)) for part in zip(*works, strict=True))
    floors = {"flops_floor": flops / rates["flops"], "bytes_floor": moved / rates["bytes"]}
    return floors | {"flops": flops, "bytes": moved, "over_floor": seconds / max(floors.values())}


def _work(layer: Layer, rows: int, itemsize: int) -> tuple[int, int]:
    """Operations and bytes of a layer, three times each (value, and the gradients of both factors): the features (rows,
    F) times a triangular root, with features, products and gradients of features written and read; or, where variances
    are polynomials, waves times coefficients, with both factors and the product, and the root times itself.
    """
    family, features = layer.features, layer.posterior.shape[-1]
    if not isinstance(family, DrivenFourier | HarmonicFourier) or features * itemsize < MANY_WAVES:
        return 3 * rows * features * (features + 1), 6 * rows * features * itemsize
    modes, met = family.num_frequencies + 1, 1  # SETTING's filter is of first order
    if isinstance(family, DrivenFourier):
        modes = 2 * family.num_frequencies + 1
        met = features - modes
    short = few(modes, 1 + met)
    sums = (1 + met) * -(-modes // short) + -(-(2 * modes - 1) // short)
    return 3 * (8 * rows * short * sums + features**3), 6 * rows * 2 * (short + sums) * itemsize


def _beside(seconds: float, all_seconds: dict[str, float], models: tuple[str, ...]) -> dict[str, Any]:
    """How many times longer a peer's step takes than each of ours."""
    return {"over_ours": {name: seconds / all_seconds[name] for name in models}}


def _median(values: list[float]) -> float:
    return float(np.median(values))


@contextmanager
def _in(dtype: str) -> Iterator[None]:
    with jax.enable_x64(dtype == "float64"):
        yield

"""Seconds a training step (paper, `tab:running-time`), in the setting of the speech experiment.

One cell must run at a time, on a machine that does nothing else: with more than one job they slow each other down, and
the numbers mean nothing. A cell belongs to the kind of device that it was listed on, so that one file can hold the
results of several.
"""

import os
from pathlib import Path
from typing import Any

import jax
import numpy as np

from . import _peers
from ._runtime_figure import PAPER, PEER, draw
from ._sound import signal, split
from ._sweep import Cell, Measured, Page, Setup
from ._tables import paragraph, table
from ._timing import step_timer
from .speech import SAMPLES, SETTINGS, WINDOW

MODELS = ("iddgp", "dlfm-vfrf", "dlfm-driven")
DTYPES = ("float64", "float32")
PLACES = {"gpu": "on the accelerator", "cpu": "on the CPU"}
Times = dict[tuple[str, str, str], dict[int, float]]  # seconds by device, model and dtype; by M


def cells(setup: Setup) -> list[Cell]:
    """One for each model, M and dtype on the device that is here; of the peer, where it is installed, in float64."""
    device = jax.devices()[0].platform
    effort = {"steps": 20, "rounds": 5} if device == "gpu" else {"steps": 1, "rounds": 3}
    common: Cell = {"device": device, "samples": setup.choose(10_000, 1000), "window": WINDOW, "free_after": 0}
    common |= setup.choose(effort, {"steps": 5, "rounds": 3})
    rows = []
    for size in setup.choose((100, 200, 300, 400), (20, 40)):
        for dtype in setup.choose(DTYPES, DTYPES[:1]):
            rows += [{"model": name, "frequencies": size, "dtype": dtype} | common for name in MODELS]
        if _peers.platform() == device:
            rows.append({"model": PEER, "frequencies": size, "dtype": "float64"} | common)
    return rows


def measure(cell: Cell, data: Path | None = None) -> dict[str, Any]:
    """Seconds a step in each round, compilation and a first round apart; what is heard in the sound does not matter."""
    device = jax.devices()[0]
    if cell["device"] != device.platform:
        raise ValueError(f"`device` of the cell must be {device.platform!r}, which is here, got {cell['device']!r}.")
    train = split(signal(None, cell["samples"], cell["window"]), seed=0).train
    timer = (_peer_timer if cell["model"] == PEER else _timer)(cell, *train)
    timer()
    machine = f"{os.cpu_count()} cores" if device.platform == "cpu" else device.device_kind
    return {"seconds": [timer() for _ in range(cell["rounds"])], "rows": len(train[0]), "machine": machine}


def _timer(cell: Cell, x: np.ndarray, y: np.ndarray) -> Any:
    """A function that takes some training steps on all rows, waits for them, and gives the seconds for each."""
    with jax.enable_x64(cell["dtype"] == "float64"):
        model = SETTINGS[cell["model"]].build(x, y, cell)
        timer = step_timer(model, x, y, SAMPLES["train"], cell["steps"])

    def run() -> float:
        with jax.enable_x64(cell["dtype"] == "float64"):
            return timer()

    return run


def _peer_timer(cell: Cell, x: np.ndarray, y: np.ndarray) -> Any:
    """The same for gpytorch, with as many inducing points as there are features."""
    if _peers.platform() != cell["device"]:
        raise ValueError(f"torch must run on {cell['device']!r}, as the cell says, got {_peers.platform()!r}.")
    peer = _peers.DeepGPPeer(x, y, 2 * cell["frequencies"] + 1, cell["dtype"])
    return lambda: peer.train(cell["steps"], SAMPLES["train"]) / cell["steps"]


def present(results: list[Measured]) -> Page:
    """The table with the paper's numbers above ours, what they say, and a picture."""
    times: Times = {}
    for cell, result in results:
        times.setdefault((cell["device"], cell["model"], cell["dtype"]), {})[cell["frequencies"]] = float(
            np.median(result["seconds"])
        )
    machines = {cell["device"]: result["machine"] for cell, result in results}
    sizes = sorted({size for row in (*times.values(), *PAPER.values()) for size in row})
    rows = [["paper, A100", name, "", *_row(seconds, sizes)] for name, seconds in PAPER.items()]
    for device, machine in sorted(machines.items(), reverse=True):
        for model in (*MODELS, PEER):
            for dtype in DTYPES:
                if (device, model, dtype) in times:
                    rows.append([machine, model, dtype, *_row(times[device, model, dtype], sizes)])
        if (device, PEER, "float64") not in times:
            rows.append([machine, f"{PEER}: not installed", "", *[""] * len(sizes)])
    about = f"""Two layers, {SAMPLES["train"]} samples, all {results[0].result["rows"]} rows in every step, Adam: the
        speech experiment's training. Medians over rounds of whole compiled steps, compilation apart. gpytorch's deep
        GP has 2M + 1 inducing points, as many as there are features at M frequencies, and runs in the same process;
        it comes with the `benchmarks` extra."""
    header = ["where", "model", "dtype", *(f"M = {size}" for size in sizes)]
    parts = ["## Seconds a training step (`tab:running-time`)", paragraph(about), table(header, rows), verdict(times)]
    return Page("\n\n".join(part for part in parts if part), {"seconds": draw(times, machines)})


def _row(seconds: dict[int, float], sizes: list[int]) -> list[str]:
    return [_duration(seconds[size]) if size in seconds else "" for size in sizes]


def _duration(seconds: float) -> str:
    """In seconds or milliseconds, three digits."""
    return f"{seconds:.3g} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"


def verdict(times: Times) -> str:
    """What the ODE costs, and how our steps stand to the paper's and to gpytorch's."""
    lines = []
    paper = _ratios(PAPER["dlfm-vfrf"], PAPER["iddgp"])
    for device in sorted({device for device, *_ in times}, reverse=True):
        ours = {model: times.get((device, model, "float64"), {}) for model in (*MODELS, PEER)}
        overhead = _ratios(ours["dlfm-vfrf"], ours["iddgp"])
        if overhead:
            line = f"- A step of `dlfm-vfrf` in units of one of `iddgp` {PLACES.get(device, device)}: {_list(overhead)}"
            lines.append(f"{line} (the paper: {_list(paper)}).")
        for model in MODELS:
            faster = _ratios(ours[PEER], ours[model])
            if faster:
                lines.append(f"- Times faster than {PEER} {PLACES.get(device, device)}, `{model}`: {_list(faster)}.")
        beside = _ratios(PAPER["dlfm-vfrf"], ours["dlfm-vfrf"])
        if device == "gpu" and beside:
            lines.append(f"- Times faster than the paper's `dlfm-vfrf` on its A100: {_list(beside)}.")
    return "\n".join(lines)


def _ratios(first: dict[int, float], second: dict[int, float]) -> dict[int, float]:
    return {size: first[size] / second[size] for size in sorted(first) if size in second}


def _list(ratios: dict[int, float]) -> str:
    return ", ".join(f"{ratio:.3g} (M = {size})" for size, ratio in ratios.items())

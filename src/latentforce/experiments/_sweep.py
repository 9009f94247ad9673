"""Sweeps: an experiment is a list of cells, measured wherever joblib sends them, kept as they come, then presented."""

import importlib
import json
import platform
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast, runtime_checkable

import jax
import joblib
import numpy as np
from matplotlib.figure import Figure
from tqdm import tqdm

from .._version import __version__
from ..files._atomic import atomic
from . import EXPERIMENTS

DIGITS = 6  # of the numbers that are kept
Cell = dict[str, Any]  # what one piece of work needs to know, as JSON has it


class Setup(NamedTuple):
    """What was asked for: `quick` for minutes on two cores, a file or folder of data, another number of seeds."""

    quick: bool = False
    data: Path | None = None
    seeds: int | None = None

    def choose(self, full: Any, quick: Any) -> Any:
        """The one or the other."""
        return quick if self.quick else full


class Measured(NamedTuple):
    """A cell and what came of it."""

    cell: Cell
    result: dict[str, Any]


class Page(NamedTuple):
    """What there is to see: text in Markdown, and figures by name."""

    text: str
    figures: dict[str, Figure]


@runtime_checkable
class Experiment(Protocol):
    """What a module of this folder offers."""

    def cells(self, setup: Setup) -> list[Cell]:
        """All pieces of work, each independent of the others."""
        ...

    def measure(self, cell: Cell, data: Path | None) -> dict[str, Any]:
        """The numbers of one of them; `data` as in `Setup`."""
        ...

    def present(self, results: list[Measured]) -> Page:
        """Tables and figures of all that is there."""
        ...


class SweepError(RuntimeError):
    """Some cells failed; all others are kept."""


def load(name: str) -> Experiment:
    """The module of that experiment."""
    return cast(Experiment, importlib.import_module(f"{__package__}.{name}"))


def reproduce(
    name: str,
    setup: Setup,
    folder: Path,
    jobs: int | None = 1,
    *,
    only: Iterable[tuple[str, str]] = (),
    again: bool = False,
    shown: bool = True,
) -> Page:
    """Measure what is not there yet, write results, tables and figures to `folder`, and return the page.

    `only` says what the cells to measure have, as text (`[("set", "energy"), ("set", "yacht"), ("depth", "3")]`: three
    layers on either set); the page is of all that is there.

    `jobs` cells run at a time; None leaves that, and where they run, to `joblib.parallel_config`, so that a Dask or Ray
    cluster serves as well. Each cell is kept in `NAME.json` as it comes: a sweep that was stopped goes on from there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{name}-quick" if setup.quick else name
    record = _Record(folder / f"{stem}.json", name, setup)
    experiment = load(name)
    cells = experiment.cells(setup)
    wanted = _matching(cells, list(only))
    missing = [cell for cell in wanted if again or _key(cell) not in record.done]
    errors = []
    with tqdm(
        total=len(wanted), initial=len(wanted) - len(missing), desc=name, file=sys.stderr, disable=not shown
    ) as bar:
        for cell, result, seconds in _measured(name, missing, setup.data, jobs):
            if "error" in result:
                errors.append(f"{_describe(cell)}: {result['error']}")
            else:
                record.keep(cell, result, seconds)
            bar.update()
    results = [Measured(cell, record.done[_key(cell)]["result"]) for cell in cells if _key(cell) in record.done]
    page = experiment.present(results) if results else Page("", {})
    write(page, folder, stem)
    if errors:
        raise SweepError(f"{len(errors)} of {len(wanted)} cells of {name!r} failed; the others are kept. {errors[0]}")
    return page


def _matching(cells: list[Cell], only: list[tuple[str, str]]) -> list[Cell]:
    """Those that have, of each key, one of its values; a list has the values of its parts."""

    def values(cell: Cell, key: str) -> list[str]:
        value = cell.get(key, [])
        return [str(part) for part in (value if isinstance(value, list) else [value])]

    for key, value in only:
        there = list(dict.fromkeys(one for cell in cells for one in values(cell, key)))
        if value not in there:
            keys = ", ".join(dict.fromkeys(key for cell in cells for key in cell))
            wanted = f"`{key}` one of {', '.join(there)}" if there else f"one of {keys}"
            raise ValueError(f"`only` must name {wanted}; got {key}={value}.")
    asked = {key: {value for same, value in only if same == key} for key, _ in only}
    chosen = [cell for cell in cells if all(not some.isdisjoint(values(cell, key)) for key, some in asked.items())]
    if not chosen:
        said = " ".join(f"{key}={value}" for key, value in only)
        raise ValueError(f"`only` must name cells that there are; none has {said}.")
    return chosen


def write(page: Page, folder: Path, stem: str) -> list[Path]:
    """The page's text as Markdown, its figures as PNG and PDF beside it."""
    paths = [folder / f"{stem}.md"]
    paths[0].write_text(page.text + "\n")
    for name, figure in page.figures.items():
        for kind in ("png", "pdf"):
            paths.append(folder / f"{stem}-{name}.{kind}")
            figure.savefig(paths[-1], dpi=130)
    return paths


def _measured(
    name: str, cells: list[Cell], data: Path | None, jobs: int | None
) -> Iterator[tuple[Cell, dict[str, Any], float]]:
    """Results in the order in which they come."""
    if not cells:
        return iter(())
    work = (joblib.delayed(_measure)(name, cell, data) for cell in cells)
    return iter(joblib.Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)(work))  # pyright: ignore


def _measure(name: str, cell: Cell, data: Path | None) -> tuple[Cell, dict[str, Any], float]:
    """One cell, its result and the seconds it took; an error is a result too, so that the other cells go on."""
    start = time.perf_counter()
    try:
        result = load(name).measure(cell, data)
    except Exception as error:
        result = {"error": f"{type(error).__name__}: {error}"}
    return cell, plain(result), time.perf_counter() - start


class _Record:
    """The file of results: rewritten whole, at once or not at all, whenever a cell is done."""

    def __init__(self, path: Path, name: str, setup: Setup):
        self.path = path
        quick = " --quick" if setup.quick else ""
        self.head = {"command": f"latentforce reproduce {name}{quick}", "labels": list(EXPERIMENTS[name].labels)}
        self.done: dict[str, dict[str, Any]] = {}
        if path.exists():
            try:
                self.done = {_key(row["cell"]): row for row in json.loads(path.read_text())["cells"]}
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"`{path}` must hold the results of an earlier run, got {error!r}.") from None

    def keep(self, cell: Cell, result: dict[str, Any], seconds: float) -> None:
        """Add one row and write the file."""
        machine = {"device": jax.devices()[0].device_kind, "python": platform.python_version()}
        versions = {"latentforce": __version__, "jax": jax.__version__, "numpy": np.__version__}
        row = {"cell": cell, "result": result, "seconds": round(seconds, 2)}
        self.done[_key(cell)] = row | {"machine": machine, "versions": versions}
        rows = ",\n".join(json.dumps(row, allow_nan=False) for row in self.done.values())
        head = json.dumps(self.head)[:-1]
        with atomic(self.path) as file:
            file.write(f'{head}, "cells": [\n{rows}\n]}}\n'.encode())


def plain(value: Any) -> Any:
    """As JSON has it: arrays as lists, numbers in short; what is not finite is None."""
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if abs(value) < float("inf") else None
    return value


def _key(cell: Cell) -> str:
    return json.dumps(cell, sort_keys=True)


def _describe(cell: Cell) -> str:
    return ", ".join(f"{key} {value}" for key, value in cell.items())

"""Data that outgrow memory, as shuffled batches: memory maps, Parquet files, or anything that gives rows."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from .. import _checks
from .._data import matrix, rows

Pair = tuple[np.ndarray, np.ndarray]  # inputs (N, D) and targets (N, P)
Block = tuple[int, Callable[[], Pair]]  # how many rows, and how to get them
BLOCKS = 16  # that are mixed


class Batches:
    """Shuffled batches of data of any size, of which a window alone is in memory at a time.

    Instead of `x` and `y` for [`latentforce.fit`][], which has them read ahead on a thread while the devices work. Each
    time through the data, blocks of neighbouring rows are read in random order, and the rows of sixteen blocks are
    mixed and dealt out; those that do not fill a batch are left for the next time. It depends on `seed` alone.

    **Arguments:**

    - `source`: a pair `(x, y)` of arrays or memory maps; a Parquet file, or a pattern of several; or
      anything that gives pairs `(x, y)` of rows, as many as it likes, again and again: a list, or a function that
      returns an iterator. Blocks of those come in their order. In several processes: this one's own rows.
    - `size`: rows of a batch (of this process's part of it).
    - `targets`, `inputs`: names of columns of a Parquet file (default for inputs: all others).
    - `num_rows`: where rows come from an iterator, how many there are in all (default: they are counted first).
    - `window`: how many rows are mixed, and kept in memory.

    !!! example

        >>> import numpy as np, latentforce as lf
        >>> x = np.linspace(0.0, 1.0, 10_000)  # as well np.load("x.npy", mmap_mode="r")
        >>> batches = lf.Batches((x, np.sin(6 * x)), 100)
        >>> model = lf.build("dlfm-driven", *batches.sample(500), num_frequencies=3)
        >>> len(lf.fit(model, batches, steps=20, num_samples=1).history.objective)
        20
    """

    def __init__(
        self,
        source: Any,
        size: int,
        *,
        targets: str | Sequence[str] | None = None,
        inputs: Sequence[str] | None = None,
        num_rows: int | None = None,
        window: int = 2**19,
        seed: int = 0,
    ):
        self.size, self.seed = _checks.count("size", size), seed
        self.window = max(_checks.count("window", window), self.size)
        self.source = _source(source, targets, inputs, num_rows, self.window)
        self.num_rows = self.source.num_rows
        if self.num_rows < self.size:
            raise ValueError(f"`size` must not be above the number of rows, {self.num_rows}, got {self.size}.")

    def sample(self, num_rows: int) -> Pair:
        """At most so many rows (N, D) and (N, P), from the first window: to build a model for."""
        x, y, order = self._mixed(0, 0, *next(self._windows(0)))
        return x[order[:num_rows]], y[order[:num_rows]]

    def after(self, step: int, dtype: Any = np.float64) -> Iterator[Pair]:
        """The batches after so many; windows that are skipped are not read, where the source allows."""
        for epoch in count():
            some = False
            for number, (num_rows, blocks) in enumerate(self._windows(epoch)):
                some, dealt = True, num_rows // self.size
                if step >= dealt:
                    step -= dealt
                    continue
                x, y, order = self._mixed(epoch, number, num_rows, blocks, dtype)
                for start in range(step * self.size, dealt * self.size, self.size):
                    chosen = order[start : start + self.size]
                    yield x[chosen], y[chosen]
                step = 0
            if not some:
                raise ValueError(
                    f"`source` must give at least `size` rows ({self.size}), again and again; it does not."
                )

    def _mixed(
        self, epoch: int, number: int, num_rows: int, blocks: list[Block], dtype: Any = np.float64
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The rows of a window, and the order in which they are dealt out."""
        parts = zip(*(read() for _, read in blocks), strict=True)
        x, y = (np.concatenate(part, dtype=dtype) for part in parts)
        return x, y, np.random.default_rng((self.seed, epoch, number + 1)).permutation(num_rows)

    def _windows(self, epoch: int) -> Iterator[tuple[int, list[Block]]]:
        """Blocks that are mixed, and how many rows they have."""
        waiting: list[Block] = []
        for block in self.source.blocks(np.random.default_rng((self.seed, epoch))):
            waiting.append(block)
            if sum(num for num, _ in waiting) >= self.window:
                yield sum(num for num, _ in waiting), waiting
                waiting = []
        if sum(num for num, _ in waiting) >= self.size:
            yield sum(num for num, _ in waiting), waiting


@dataclass(frozen=True)
class _Slices:
    """Rows that can be had in any order."""

    num_rows: int
    block: int
    read: Callable[[int, int], tuple[Any, Any]]

    def blocks(self, generator: np.random.Generator) -> Iterator[Block]:
        for start in generator.permutation(np.arange(0, self.num_rows, self.block)).tolist():
            stop = min(start + self.block, self.num_rows)
            yield stop - start, partial(self._checked, start, stop)

    def _checked(self, start: int, stop: int) -> Pair:
        x, y = self.read(start, stop)
        return matrix(f"x[{start}:{stop}]", x), matrix(f"y[{start}:{stop}]", y, missing=True)


@dataclass(frozen=True)
class _Sequence:
    """Rows that come in their order."""

    num_rows: int
    start: Callable[[], Iterator[Any]]

    def blocks(self, generator: np.random.Generator) -> Iterator[Block]:
        del generator  # the order is the source's
        for item in self.start():
            pair = rows(*_pair(item))
            yield len(pair[0]), lambda pair=pair: pair


class _Once:
    """An iterator that can be started again as long as no more than its first rows were taken: to look before use."""

    def __init__(self, source: Iterator[Any], window: int):
        self.rest, self.first, num = source, [], 0
        for item in source:
            self.first.append(item)
            num += len(_pair(item)[0])
            if num >= window:
                break

    def __call__(self) -> Iterator[Any]:
        yield from self.first
        for item in self.rest:
            self.first = []
            yield item


def _source(source: Any, targets: Any, inputs: Any, num_rows: int | None, window: int) -> _Slices | _Sequence:
    block = -(-window // BLOCKS)
    if isinstance(source, str | os.PathLike):
        return _parquet(source, targets, inputs, block)
    if targets is not None or inputs is not None:
        raise ValueError("`targets` and `inputs` must be None unless `source` is a Parquet file.")
    if isinstance(source, tuple) and len(source) == 2 and all(hasattr(part, "shape") for part in source):
        x, y = source
        if len(x) != len(y):
            raise ValueError(f"`source` must be arrays of equally many rows, got {len(x)} and {len(y)}.")
        return _Slices(len(x), block, lambda start, stop: (x[start:stop], y[start:stop]))
    if not callable(source) and not hasattr(source, "__iter__"):
        raise ValueError(
            "`source` must be a pair of arrays, a Parquet file, or something that gives pairs `(x, y)`, "
            f"got {type(source).__name__}."
        )
    start: Callable[[], Any] = source if callable(source) else lambda: iter(source)
    if isinstance(source, Iterator):
        if num_rows is None:
            raise ValueError("`num_rows` must be given where `source` can be gone through only once, got None.")
        start = _Once(source, window)
    counted = sum(len(_pair(item)[0]) for item in start()) if num_rows is None else _checks.count("num_rows", num_rows)
    return _Sequence(counted, start)


def _parquet(path: str | os.PathLike[str], targets: Any, inputs: Any, block: int) -> _Slices:
    """A Parquet file, or all whose names match a pattern, one after the other."""
    import polars as pl  # slow to import, and needed here alone

    table = pl.scan_parquet(os.fspath(path))
    names = table.collect_schema().names()
    wanted = [targets] if isinstance(targets, str) else list(targets or [])
    columns = [name for name in names if name not in wanted] if inputs is None else list(inputs)
    absent = [name for name in [*wanted, *columns] if name not in names]
    if absent or not wanted or not columns:
        told = f"{absent[0]!r}" if absent else f"{wanted} and {columns}"
        raise ValueError(
            f"`targets` and `inputs` must be columns of {os.fspath(path)} ({', '.join(names)}), got {told}."
        )
    table = table.select(*columns, *wanted)

    def read(start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        values = table.slice(start, stop - start).collect().cast(pl.Float64).fill_null(np.nan).to_numpy()
        return values[:, : len(columns)], values[:, len(columns) :]

    return _Slices(table.select(pl.len()).collect().item(), block, read)


def _pair(item: Any) -> tuple[Any, Any]:
    if not isinstance(item, tuple | list) or len(item) != 2:
        raise ValueError(f"`source` must give pairs `(x, y)` of rows, got {type(item).__name__}.")
    return item[0], item[1]

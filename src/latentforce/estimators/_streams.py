"""Data that come in chunks: their range, then sums or batches of them, and never more than some chunks in memory."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import reduce
from itertools import chain, islice
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from sklearn.utils.validation import _check_sample_weight

from ..inference._batches import Batches
from ..inference._compression import Statistics, compress_chunks
from ..inference._devices import Devices
from ._table import Column, Table, as_numbers, is_frame, take
from ._targets import Targets, as_targets, target_names, unit


class Stream:
    """Chunks `(X, y)` or `(X, y, weight)` of one input column, and the table that scales it.

    With an `interval` the column is scaled to that, and the chunks are gone through once; else to the range of the
    data, which takes a first pass over them.
    """

    def __init__(self, chunks: Any, interval: tuple[Any, Any] | None):
        self.source: Callable[[], Any] = chunks if callable(chunks) else lambda: chunks
        once = not callable(chunks) and iter(chunks) is chunks
        if once and interval is None:
            raise ValueError(
                "`chunks` must be something to go through twice (a list, or a function that returns an iterator) "
                f"unless `interval` is given, got {type(chunks).__name__}."
            )
        first = next(iter(self.source()), None)
        if first is None:
            raise ValueError("`chunks` must hold some data, got none.")
        if once:
            self.source = lambda: chain([first], cast(Iterator, chunks))
        self.first, targets = _matrix(first[0]), as_targets(first[1], len(first[0]))
        self.flat, self.names = targets.flat, target_names(first[1], targets.values.shape[1])
        self.shift = np.nanmean(targets.values, axis=0)  # near the mean, so that sums of squares keep their digits
        self.table = self._of_range() if interval is None else self._of_interval(interval)
        if self.table.single is None:
            raise ValueError("`chunks` must have one input column that changes, of numbers or times.")

    def _of_range(self) -> Table:
        return Table((reduce(_joined, (_only(Table.of(_matrix(chunk[0]))) for chunk in self.source())),))

    def _of_interval(self, interval: tuple[Any, Any]) -> Table:
        column = _only(Table.of(self.first))
        low, high = (float(end) for end in as_numbers("interval", column.kind, np.asarray(interval)))
        return Table((replace(column, low=low, span=high - low),))

    def sums(self, nodes: dict[str, int]) -> tuple[Statistics, Targets]:
        """Of scaled inputs and targets, and how the targets were scaled."""
        sums = compress_chunks(self._chunks(), (0.0, 1.0), **nodes)
        mean = jnp.sum(sums.targets, axis=0) / sums.num_data
        deviation = jnp.sqrt(jnp.maximum(sums.squares / sums.num_data - mean**2, 0.0))
        shift = self.shift + np.asarray(mean)
        scale = unit(shift, np.asarray(deviation))
        return sums.standardised(mean, jnp.asarray(scale)), Targets(shift, scale, self.flat, self.names)

    def _chunks(self) -> Iterator[tuple[np.ndarray, ...]]:
        for chunk in self.source():
            X, y, *rest = chunk
            targets = as_targets(y, len(X)).values
            if np.isnan(targets).any():
                raise ValueError("`chunks` must have all targets observed, got NaN.")
            weight = _check_sample_weight(
                rest[0] if rest else None, targets, dtype=np.float64, ensure_non_negative=True
            )
            yield self.table.encode(_matrix(X))[:, 0], targets - self.shift, np.asarray(weight)


class Survey:
    """Chunks `(X, y)` of any columns, gone through once for what must be known before they can be trained on."""

    def __init__(self, chunks: Any, scaled: bool):
        self.source: Callable[[], Any] = chunks if callable(chunks) else lambda: chunks
        if isinstance(chunks, Iterator):
            raise ValueError(
                "`chunks` must be something to go through again and again (a list, or a function that returns an "
                f"iterator), got {type(chunks).__name__}."
            )
        columns, self.rows, self.some = None, [], _Some()
        for chunk in self.source():
            X, y = _matrix(chunk[0]), as_targets(chunk[1], len(chunk[0]))
            if len(chunk) > 2:
                raise ValueError("`chunks` must have no weights for a model that is trained by batches, got some.")
            here = Table.of(X).columns
            if columns is None:
                self.first, self.names, self.flat = X, target_names(chunk[1], y.values.shape[1]), y.flat
                columns, moments = here, _moments(y.values)
            else:
                columns = tuple(_joined(*pair) for pair in zip(columns, here, strict=True))
                moments = _pooled(moments, _moments(y.values))
            self.rows.append(len(X))
            self.some.add(X, y.values)
        if columns is None:
            raise ValueError("`chunks` must hold some data, got none.")
        self.table, shift, deviation = Table(columns), moments[1], np.sqrt(moments[2] / moments[0])
        units = (shift, unit(shift, deviation)) if scaled else (0 * shift, np.ones_like(shift))
        self.targets = Targets(*units, self.flat, self.names)

    def sample(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Some rows, scaled, to build a model for: inputs, targets, and weights.

        Rows of no weight show the range: each with one column at an end, the others in the middle.
        """
        pieces = [(self.table.encode(X), self.targets.encode(y)) for X, y in self.some.pieces()]
        x, y = (np.concatenate(part) for part in zip(*pieces, strict=True))
        D = x.shape[1]
        ends = np.where(
            np.tile(np.eye(D, dtype=bool), (2, 1)), np.repeat([[0.0], [1.0]], D, axis=0), np.median(x, axis=0)
        )
        weight = np.concatenate([np.ones(len(x)), np.zeros(2 * D)])
        return np.concatenate([x, ends]), np.concatenate([y, np.zeros((2 * D, y.shape[1]))]), weight

    def batches(self, size: int, seed: int, devices: Devices) -> Batches:
        """Of scaled inputs and targets; of several processes, each gives those of its own chunks."""
        index, count = (jax.process_index(), jax.process_count()) if devices.several_processes else (0, 1)

        def encoded() -> Iterator[tuple[np.ndarray, np.ndarray]]:
            for X, y in islice(self.source(), index, None, count):
                yield self.table.encode(_matrix(X)), self.targets.encode(as_targets(y, len(X)).values)

        num_rows = sum(self.rows[index::count])
        return Batches(encoded, min(-(-size // count), num_rows), num_rows=num_rows, seed=seed)


class _Some:
    """Some thousand of all rows, each as likely as any other."""

    most = 2**12

    def __init__(self):
        self.generator, self.share = np.random.default_rng(0), 1.0
        self.kept: list[tuple[np.ndarray, Any, np.ndarray]] = []  # lots, inputs, targets

    def add(self, X: Any, y: np.ndarray) -> None:
        """Those of these rows whose lot is small; where there are too many, half of them."""
        self._keep(self.generator.random(len(y)), X, y)
        while sum(len(lots) for lots, *_ in self.kept) > self.most:
            self.share /= 2
            before, self.kept = self.kept, []
            for piece in before:
                self._keep(*piece)

    def _keep(self, lots: np.ndarray, X: Any, y: np.ndarray) -> None:
        rows = np.flatnonzero(lots < self.share)
        if len(rows):
            self.kept.append((lots[rows], take(X, rows), y[rows]))

    def pieces(self) -> Iterator[tuple[Any, np.ndarray]]:
        """Inputs and targets, from each chunk."""
        return ((X, y) for _, X, y in self.kept)


Moments = tuple[np.ndarray, np.ndarray, np.ndarray]  # of each column: number, mean, sum of squared deviations


def _moments(y: np.ndarray) -> Moments:
    mean = np.nanmean(y, axis=0)
    return np.sum(~np.isnan(y), axis=0), mean, np.nansum((y - mean) ** 2, axis=0)


def _pooled(one: Moments, other: Moments) -> Moments:
    """Of both together."""
    num, gap = one[0] + other[0], other[1] - one[1]
    return num, one[1] + gap * other[0] / num, one[2] + other[2] + gap**2 * one[0] * other[0] / num


def _joined(one: Column, other: Column) -> Column:
    """One column of two chunks: of a range that holds both."""
    if (one.name, one.kind) != (other.name, other.kind):
        raise ValueError(
            f"`chunks` must all have the same columns, got {one.name!r} ({one.kind}) and {other.name!r} ({other.kind})."
        )
    low, high = min(one.low, other.low), max(one.low + one.span, other.low + other.span)
    return replace(one, low=low, span=high - low, levels=tuple(sorted({*one.levels, *other.levels})))


def _matrix(X: Any) -> Any:
    """A data frame as it is, anything else as a matrix."""
    return X if is_frame(X) else np.asarray(X).reshape(len(X), -1)


def _only(table: Table) -> Any:
    if len(table.columns) != 1 or table.columns[0].kind == "category":
        names = ", ".join(column.name for column in table.columns)
        raise ValueError(f"`chunks` must have one input column, of numbers or times, got {names}.")
    return table.columns[0]

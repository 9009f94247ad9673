"""Data that come in chunks: their range, then sums of them, and never more than one chunk in memory."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from typing import Any, cast

import jax.numpy as jnp
import numpy as np
from sklearn.utils.validation import _check_sample_weight

from ..inference._compression import Statistics, compress_chunks
from ._table import Table, as_numbers, is_frame
from ._targets import Targets, as_targets, target_names


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
        columns = [_only(Table.of(_matrix(chunk[0]))) for chunk in self.source()]
        low, high = min(one.low for one in columns), max(one.low + one.span for one in columns)
        return Table((replace(columns[0], low=low, span=high - low),))

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
        constant = np.asarray(deviation) <= 1e-12 * np.maximum(np.abs(shift), 1e-300)
        scale = np.where(constant, 1.0, np.asarray(deviation))
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


def _matrix(X: Any) -> Any:
    """A data frame as it is, anything else as a matrix."""
    return X if is_frame(X) else np.asarray(X).reshape(len(X), -1)


def _only(table: Table) -> Any:
    if len(table.columns) != 1 or table.columns[0].kind == "category":
        names = ", ".join(column.name for column in table.columns)
        raise ValueError(f"`chunks` must have one input column, of numbers or times, got {names}.")
    return table.columns[0]

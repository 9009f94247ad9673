"""Where displays draw: rows along a column of a fitted estimator's inputs, times of a layer, names for the axes."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from ..depth._inputs import AbstractInputs, Bounded, Directions, Jointly
from ..depth._layer import Layer
from ..depth._model import Model
from ..estimators._table import Column
from ..features._points import InducingPoints


class Path(NamedTuple):
    """Rows along one column, the others held: its values in the user's units, and the scaled rows (G, D)."""

    column: Column
    values: np.ndarray
    rows: np.ndarray


def regression_only(estimator: Any, what: str) -> None:
    """A classifier has no such thing."""
    check_is_fitted(estimator)
    if is_classifier(estimator):
        raise ValueError(f"`estimator` must be a regressor to show {what}, got {type(estimator).__name__}.")


def parts(estimator: Any) -> list[tuple[Column, slice]]:
    """The columns that are not constant, and where they are in the scaled matrix."""
    check_is_fitted(estimator)
    columns = estimator.table_.columns
    ends = np.cumsum([column.width for column in columns])
    return [(c, slice(int(end) - c.width, int(end))) for c, end in zip(columns, ends, strict=True) if c.width]


def find(estimator: Any, column: str | int | None) -> tuple[Column, slice]:
    """The column of that name or number; where only one is not constant, it need not be named."""
    varying = parts(estimator)
    names = [one.name for one, _ in varying]
    if column is None and len(varying) == 1:
        return varying[0]
    if isinstance(column, int | np.integer) and 0 <= column < len(estimator.table_.columns):
        column = estimator.table_.columns[int(column)].name
    if column not in names:
        known = ", ".join(map(repr, names)) or "none: all are constant"
        raise ValueError(f"`column` must be one that changes ({known}), got {column!r}.")
    return varying[names.index(column)]


def scaled(estimator: Any, X: Any) -> np.ndarray:
    """The user's inputs as the scaled matrix (N, D)."""
    return estimator.table_.encode(estimator._validated(X, reset=False))


def label(column: Column) -> str:
    """Its name, with the unit where there is one."""
    return f"{column.name} (s)" if column.kind == "duration" else column.name


def shown(column: Column, values: np.ndarray) -> np.ndarray:
    """Scaled values (N, width) in the user's units (N,)."""
    if column.kind == "category":
        return np.asarray(column.levels)[np.argmax(values, axis=1)]
    numbers = column.low + column.span * values[:, 0]
    return numbers if column.kind != "time" else np.round(1e6 * numbers).astype(np.int64).astype("datetime64[us]")


def centre(estimator: Any, x: np.ndarray | None) -> np.ndarray:
    """A typical row (D,): medians and the most frequent levels of scaled rows, the middle of the ranges without."""
    row = np.full(sum(column.width for column in estimator.table_.columns), 0.5)
    for column, where in parts(estimator):
        if column.kind == "category":
            counts = np.zeros(column.width) if x is None else x[:, where].sum(axis=0)
            row[where] = np.arange(column.width) == np.argmax(counts)
        elif x is not None:
            row[where] = np.median(x[:, where], axis=0)
    return row


def along(
    estimator: Any, column: str | int | None, grid: Any, X: Any = None, held: Mapping[str, Any] | None = None
) -> Path:
    """Rows along a column at `grid` values, or at so many; others as `held` says, or typical of X or of their range."""
    chosen, where = find(estimator, column)
    row = centre(estimator, None if X is None else scaled(estimator, X))
    for name, value in (held or {}).items():
        other, place = find(estimator, name)
        row[place] = other.encode(np.asarray([value]))[0]
    values = steps(chosen, grid) if np.ndim(grid) == 0 else chosen.encode(np.asarray(grid))
    rows = np.repeat(row[None], len(values), axis=0)
    rows[:, where] = values
    return Path(chosen, shown(chosen, values), rows)


def steps(column: Column, num: int) -> np.ndarray:
    """Scaled values (num, width) over the range of the training data; all levels of a category."""
    return np.eye(column.width) if column.kind == "category" else np.linspace(0.0, 1.0, num)[:, None]


def target(estimator: Any, output: int) -> str:
    """The name of an output, or of a class."""
    check_is_fitted(estimator)
    names = [str(name) for name in (estimator.classes_ if is_classifier(estimator) else estimator.targets_.names)]
    if not 0 <= output < len(names):
        raise ValueError(f"`output` must lie between 0 and {len(names) - 1}, got {output!r}.")
    return names[output]


def axis(estimator: Any, layer: int, direction: int, grid: int, whole: bool = False) -> tuple[np.ndarray, str]:
    """Times (grid,) that a layer reads along a direction, and their name; `whole`: the interval of its features.

    With one input column they are in its units at the first layer, over its training range. All others are scaled.
    """
    model = estimator.model_
    single = estimator.table_.single
    depth = model.depth if isinstance(model, Model) else 1
    if not 0 <= layer < depth:
        raise ValueError(f"`layer` must lie between 0 and {depth - 1}, got {layer!r}.")
    source = model.layers[layer] if isinstance(model, Model) else model
    if isinstance(source.inputs, Jointly):
        raise ValueError(f"`estimator` must read its inputs one by one; {estimator.model!r} reads all at once.")
    ends = direction_range(source, direction) if whole and isinstance(source, Layer) else plain_range(source.inputs)
    times = np.linspace(*ends, grid)
    if layer == 0 and single is not None:
        return shown(single, times[:, None]), label(single)
    if layer == 0 and not _oblique(source.inputs):
        names = estimator.table_.names or ["constant inputs"]
        return times, f"{names[min(direction, len(names) - 1)]}, scaled"
    return times, f"direction {direction + 1}{'' if layer == 0 else f' of layer {layer + 1}'}, scaled"


def direction_range(layer: Layer, direction: int) -> tuple[float, float]:
    """The interval that the features of a direction are made for."""
    features: Any = layer.features
    if isinstance(features, InducingPoints):
        return float(np.min(features.locations[direction])), float(np.max(features.locations[direction]))
    if not hasattr(features, "interval"):  # random features are made for all times
        return plain_range(layer.inputs)
    a, b = features.interval
    return float(a[direction]), float(b[direction])


def plain_range(inputs: AbstractInputs) -> tuple[float, float]:
    """Where the scaled inputs lie, as a layer reads them."""
    return (-1.0, 1.0) if _oblique(inputs) else (0.0, 1.0)


def _oblique(inputs: AbstractInputs) -> bool:
    return isinstance(inputs.inner if isinstance(inputs, Bounded) else inputs, Directions)

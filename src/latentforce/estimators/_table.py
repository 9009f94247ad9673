"""Columns as users have them (numbers, times, categories) and the scaled matrix that models read."""

from dataclasses import asdict, dataclass
from datetime import date, datetime
from typing import Any, Literal

import numpy as np

Kind = Literal["number", "time", "duration", "category"]
MOST_LEVELS = 50  # of a category, each a column of its own


@dataclass(frozen=True)
class Column:
    """One column: its kind, and how its values become numbers in [0, 1] over the training data.

    Times count in seconds since `low`, durations in seconds; a category has a column of zeros and ones for each of its
    `levels`.
    """

    name: str
    kind: Kind
    low: float
    span: float  # zero for a constant column
    levels: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        """How many columns it becomes: none if it is constant."""
        return len(self.levels) if self.kind == "category" else int(self.span > 0)

    def encode(self, values: np.ndarray) -> np.ndarray:
        """Values (N,) as (N, width)."""
        if self.kind == "category":
            return self._one_hot(values)
        numbers = as_numbers(self.name, self.kind, values)
        return ((numbers - self.low) / self.span)[:, None] if self.span > 0 else np.zeros((len(numbers), 0))

    def _one_hot(self, values: np.ndarray) -> np.ndarray:
        text = values.astype(str)
        strange = sorted(set(text.tolist()) - set(self.levels))
        if strange:
            raise ValueError(
                f"`X` has values in column {self.name!r} that were not there when the model was fitted: "
                f"{', '.join(map(repr, strange[:5]))}. Known are {', '.join(map(repr, self.levels[:10]))}."
            )
        return (text[:, None] == np.asarray(self.levels)[None]).astype(np.float64)


@dataclass(frozen=True)
class Table:
    """All columns of the inputs, learned from training data and kept."""

    columns: tuple[Column, ...]

    @classmethod
    def of(cls, X: Any) -> "Table":
        """Learn names, kinds and ranges from a data frame or a matrix of numbers."""
        return cls(tuple(_learn(name, values) for name, values in _columns(X)))

    def encode(self, X: Any) -> np.ndarray:
        """The scaled matrix (N, D); a constant column is left out, and if all are, one of zeros stands for them."""
        given = _columns(X)
        parts = [column.encode(values) for column, (_, values) in zip(self.columns, given, strict=True)]
        matrix = np.concatenate(parts, axis=1)
        return matrix if matrix.shape[1] else np.zeros((len(given[0][1]), 1))

    @property
    def single(self) -> Column | None:
        """The one column, of numbers or times that change, where there is no other."""
        column = self.columns[0]
        return column if len(self.columns) == 1 and column.width == 1 and column.kind != "category" else None

    @property
    def names(self) -> list[str]:
        """Of the columns of the scaled matrix."""
        return [
            f"{column.name}={level}" if column.kind == "category" else column.name
            for column in self.columns
            for level in (column.levels if column.kind == "category" else range(column.width))
        ]

    def to_json(self) -> list[dict[str, Any]]:
        """As plain data."""
        return [asdict(column) for column in self.columns]

    @classmethod
    def from_json(cls, columns: list[dict[str, Any]]) -> "Table":
        """From `to_json`."""
        return cls(tuple(Column(**{**column, "levels": tuple(column["levels"])}) for column in columns))


def is_frame(X: Any) -> bool:
    """Whether X has named columns, each of its own type."""
    return hasattr(X, "columns") and hasattr(X, "shape") and not isinstance(X, np.ndarray)


def take(X: Any, rows: Any) -> Any:
    """Some rows of a matrix or a data frame (pandas' or polars')."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def _columns(X: Any) -> list[tuple[str, np.ndarray]]:
    """Names and values; those of a matrix are called x0, x1, ..."""
    if is_frame(X):
        return [(str(name), np.asarray(X[name])) for name in X.columns]
    return [(f"x{k}", values) for k, values in enumerate(np.asarray(X).T)]


def _learn(name: str, values: np.ndarray) -> Column:
    kind = _kind(name, values)
    if kind == "category":
        levels = tuple(sorted(set(values.astype(str).tolist())))
        if len(levels) > MOST_LEVELS:
            raise ValueError(
                f"`X` has a column {name!r} of text with {len(levels)} different values, more than {MOST_LEVELS}. "
                "Leave it out, or turn it into numbers."
            )
        return Column(name, kind, 0.0, 1.0, levels)
    numbers = as_numbers(name, kind, values)
    low, high = float(numbers.min()), float(numbers.max())
    return Column(name, kind, low, high - low)


def _kind(name: str, values: np.ndarray) -> Kind:
    kinds: dict[str, Kind] = {"M": "time", "m": "duration", "U": "category", "S": "category"}
    if values.dtype.kind in kinds:
        return kinds[values.dtype.kind]
    if values.dtype.kind in "iufb":
        return "number"
    if isinstance(values[0], date):
        return "time"
    if all(isinstance(value, int | float | np.number) for value in values):
        return "number"
    if all(isinstance(value, str | bool) for value in values):
        return "category"
    found = " and ".join(sorted({type(value).__name__ for value in values}))
    raise ValueError(f"`X` must have columns of numbers, times or text without gaps, got {found} in column {name!r}.")


def as_numbers(name: str, kind: Kind, values: np.ndarray) -> np.ndarray:
    """Values as float64, all finite."""
    try:
        numbers = _plain(kind, values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"`X` must have {kind}s in column {name!r}, as it had for `fit`: {error}") from error
    if not np.all(np.isfinite(numbers)):
        where = int(np.argmin(np.isfinite(numbers)))
        raise ValueError(f"`X` must be finite, got NaN or infinity in column {name!r}, row {where}.")
    return numbers


def _plain(kind: Kind, values: np.ndarray) -> np.ndarray:
    if kind == "number":
        return values.astype(np.float64)
    if values.dtype.kind == "O" and kind == "time":  # with a zone, or days
        return np.array([_seconds(value) for value in values], np.float64)
    if values.dtype.kind not in "Mm":
        raise ValueError(f"got {values.dtype}.")
    unit = "datetime64[ns]" if kind == "time" else "timedelta64[ns]"
    whole = values.astype(unit)
    numbers = whole.astype(np.int64).astype(np.float64) / 1e9
    return np.where(np.isnat(whole), np.nan, numbers)


def _seconds(value: Any) -> float:
    """Since 1970."""
    if isinstance(value, datetime):
        return value.timestamp()
    if isinstance(value, date):
        return (value - date(1970, 1, 1)).total_seconds()
    raise ValueError(f"got {value!r}.")

"""Data files as inputs and targets, for training and for a model that is trained already."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from sklearn.base import is_classifier

from ..estimators._table import MOST_LEVELS
from ..files._columns import DataFileError, row
from ..files._tables import read_table


class Data(NamedTuple):
    """Inputs (N, D) and targets (N, P), and how many rows were left out since they had no target."""

    inputs: pl.DataFrame
    targets: pl.DataFrame
    dropped: int

    @property
    def categorical(self) -> bool:
        """Whether the one target is text, or true and false."""
        return len(self.targets.columns) == 1 and not _numeric(self.targets.to_series())

    def y(self, classes: bool) -> Any:
        """What estimators take: classes, or numbers with NaN where they are missing; one column is 1-D."""
        if classes:
            return self.targets.to_series()
        numbers = self.targets.cast(pl.Float64).fill_null(np.nan)
        return numbers.to_series() if len(numbers.columns) == 1 else numbers

    def rows(self, which: np.ndarray) -> "Data":
        """Some rows, by number."""
        return Data(self.inputs[which], self.targets[which], 0)


def for_training(path: Path, targets: Sequence[str], inputs: Sequence[str] | None) -> Data:
    """Inputs are those named, or all that are not targets."""
    named = [*targets, *(inputs or ())]
    twice = sorted({name for name in named if named.count(name) > 1})
    if twice:
        raise DataFileError(f"{', '.join(map(repr, twice))} cannot be asked for twice, as targets or inputs.")
    frame = read_table(path, named if inputs else None)
    absent = [name for name in targets if name not in frame.columns]
    if absent:
        raise DataFileError(f"{path} has no column {', '.join(map(repr, absent))}; it has {', '.join(frame.columns)}.")
    inputs = inputs or [name for name in frame.columns if name not in targets]
    if not inputs:
        raise DataFileError(f"{path} has no column beside the targets: the inputs are missing.")
    data = _divided(path, frame, inputs, targets)
    if data.categorical and data.targets.to_series().n_unique() > MOST_LEVELS:
        many = data.targets.to_series().n_unique()
        raise DataFileError(
            f"{path}: column {targets[0]!r} is text with {many} different values, too many for classes."
        )
    if len(data.inputs) < 2:
        raise DataFileError(f"{path} has {len(data.inputs)} row with a target; at least 2 are needed.")
    return data


def for_model(path: Path, estimator: Any) -> pl.DataFrame:
    """The inputs (N, D) that a trained model asks for, in its order."""
    columns, text = _wanted(estimator)
    frame = read_table(path, columns, text=text)
    _complete(path, frame, pl.repeat(True, frame.height, eager=True))
    return frame


def for_scoring(path: Path, estimator: Any) -> Data:
    """The inputs and the targets of a trained model."""
    columns, text = _wanted(estimator)
    targets = estimator.record_["targets"]
    if is_classifier(estimator) and estimator.classes_.dtype.kind in "UO":
        text = [*text, *targets]
    return _divided(path, read_table(path, [*columns, *targets], text=text), columns, targets)


def known(estimator: Any, inputs: pl.DataFrame) -> Any:
    """Inputs as the model knows them: those that it had without names are a matrix."""
    return inputs if hasattr(estimator, "feature_names_in_") else inputs.to_numpy()


def _wanted(estimator: Any) -> tuple[list[str], list[str]]:
    """The names of a model's columns, and which of them are text."""
    columns = estimator.table_.columns
    return [column.name for column in columns], [column.name for column in columns if column.kind == "category"]


def _divided(path: Path, frame: pl.DataFrame, inputs: Sequence[str], targets: Sequence[str]) -> Data:
    for name in targets:
        if frame[name].dtype.is_temporal():
            raise DataFileError(f"{path}: column {name!r} holds times, where a target must be numbers or text.")
    if len(targets) > 1 and any(not _numeric(frame[name]) for name in targets):
        raise DataFileError(
            f"{path}: several targets must be numbers, all of them; got {frame.select(targets).schema}."
        )
    seen = ~frame.select(pl.all_horizontal(pl.col(targets).is_null())).to_series()
    if not seen.any():
        raise DataFileError(f"{path} has no row with a target ({', '.join(targets)}).")
    _complete(path, frame.select(inputs), seen)
    kept = frame.filter(seen)
    return Data(kept.select(inputs), kept.select(targets), frame.height - kept.height)


def _complete(path: Path, inputs: pl.DataFrame, kept: pl.Series) -> None:
    for column in inputs:
        missing = column.is_null() & kept
        if missing.any():
            raise DataFileError(f"{path}: column {column.name!r} is empty in row {row(missing)}; inputs must be there.")


def _numeric(column: pl.Series) -> bool:
    return column.dtype.is_numeric()

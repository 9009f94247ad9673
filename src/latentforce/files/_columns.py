"""From cells of text to columns of numbers, times or text, and what a column must not hold."""

from collections.abc import Sequence

import polars as pl

MISSING = ("", "na", "n/a", "nan", "null", "none", "?")  # in columns of numbers or times, whatever their case
REFUSED = {  # forms that would be misread in silence
    r"^[+-]?\d+,\d+$": "Write decimals with a point (1.5).",
    r"^\d{1,2}[./-]\d{1,2}[./-]\d{2,4}\b": "Write dates with the year first (2024-12-31), as nobody can misread them.",
}


class DataFileError(ValueError):
    """A data file that cannot be read or written, and why."""


def choose(names: Sequence[str], columns: Sequence[str] | None) -> list[str]:
    """The columns that are wanted (None: all that there are), each of which must be there once, with a name."""
    chosen = list(names if columns is None else columns)
    if "" in chosen:
        raise DataFileError(f"column {chosen.index('') + 1} has no name.")
    absent = [name for name in chosen if name not in names]
    if absent:
        raise DataFileError(f"it has no column {_listed(absent)}; it has {_listed(names)}.")
    twice = sorted({name for name in chosen if names.count(name) > 1})
    if twice:
        raise DataFileError(f"more than one column is called {_listed(twice)}.")
    return chosen


def typed(cells: pl.Series) -> pl.Series:
    """A column of cells as numbers, true and false, times or, if it is none of these, text; empty ones are null."""
    given = cells.str.strip_chars()
    given = given.set(given.str.to_lowercase().is_in(MISSING), None)
    whole = given.cast(pl.Int64, strict=False)
    if whole.null_count() == given.null_count():
        return whole
    small = given.str.to_lowercase()
    if small.is_in(("true", "false")).all():
        return small == "true"
    for kind, parsed in (("number", given.cast(pl.Float64, strict=False)), ("time", _times(given))):
        if parsed.null_count() == given.null_count():
            return parsed
        if parsed.count() > given.count() / 2:
            strange = given.is_not_null() & parsed.is_null()
            raise DataFileError(f"column {cells.name!r} has {_shown(given, strange)}, which is not a {kind}.")
    _refuse(given)
    return words(cells)


def words(cells: pl.Series) -> pl.Series:
    """A column of cells as text, empty ones null."""
    text = cells.str.strip_chars()
    return text.set(text == "", None)


def checked(column: pl.Series) -> pl.Series:
    """A column of a kind that we read, without infinities; what is missing is null, NaN included."""
    kind = column.dtype
    if kind in (pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
    elif kind.is_decimal() or kind == pl.Null:
        column = column.cast(pl.Float64)
    elif kind == pl.Time or not (kind.is_numeric() or kind.is_temporal() or kind in (pl.String, pl.Boolean)):
        raise DataFileError(f"column {column.name!r} holds {kind}, where numbers, times or text should be.")
    if not column.dtype.is_float():
        return column
    infinite = column.is_infinite()
    if infinite.any():
        raise DataFileError(f"column {column.name!r} has an infinity in row {row(infinite)}.")
    return column.fill_nan(None)


def row(found: pl.Series) -> int:
    """The first row where it is true, counted from one."""
    return int(found.fill_null(False).arg_max() or 0) + 1


def _times(cells: pl.Series) -> pl.Series:
    """Dates or times that begin with the year, null where there is none."""
    cells = cells.set(~cells.str.contains(r"^\d{4}-\d"), None)
    dates = cells.str.to_date(strict=False)
    if dates.null_count() == cells.null_count():
        return dates
    try:
        return cells.str.to_datetime(strict=False)
    except pl.exceptions.ComputeError:  # it knows no form like the first of them
        return dates


def _refuse(cells: pl.Series) -> None:
    """Text that is meant to be numbers or times, in forms that could be misread."""
    for form, advice in REFUSED.items():
        found = cells.str.contains(form)
        if found.sum() > cells.count() / 2:
            raise DataFileError(f"column {cells.name!r} has {_shown(cells, found)}. {advice}")


def _shown(cells: pl.Series, found: pl.Series) -> str:
    return f"{cells[row(found) - 1]!r} in row {row(found)}"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:10]))
    return shown + (", ..." if len(names) > 10 else "")

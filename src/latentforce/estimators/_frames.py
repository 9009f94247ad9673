"""Intervals and quantiles as data frames in skpro's and sktime's layout, for the tools that read it."""

from collections.abc import Sequence
from typing import Any

import numpy as np


def quantile_frame(values: np.ndarray, names: Sequence[str], levels: Sequence[float], X: Any) -> Any:
    """Quantiles (N, P, K) with columns (target, level)."""
    return _frame(values, [(name, level) for name in names for level in levels], X)


def interval_frame(values: np.ndarray, names: Sequence[str], coverages: Sequence[float], X: Any) -> Any:
    """Bounds (N, P, 2 C), lower and upper for each coverage, with columns (target, coverage, "lower" or "upper")."""
    columns = [(name, coverage, end) for name in names for coverage in coverages for end in ("lower", "upper")]
    return _frame(values, columns, X)


def _frame(values: np.ndarray, columns: list[tuple], X: Any) -> Any:
    try:
        import pandas  # for those who ask for its frames
    except ImportError as error:
        raise ImportError("`as_frame=True` needs pandas: pip install pandas.") from error
    index = X.index if isinstance(X, pandas.DataFrame) else None
    return pandas.DataFrame(
        values.reshape(len(values), -1), index=index, columns=pandas.MultiIndex.from_tuples(columns)
    )

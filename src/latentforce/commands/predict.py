"""`latentforce predict`: a table of predictions for the rows of a data file."""

from argparse import Namespace
from typing import Any

import numpy as np
import polars as pl
from sklearn.base import is_classifier

from .. import load
from ..files._tables import write_table
from . import Outcome
from ._data import for_model, known
from ._outputs import table_ready


def run(options: Namespace) -> Outcome:
    """Predict, and write the table to a file or to the standard output."""
    table_ready(options.out, options.force)
    estimator = load(options.model)
    inputs = for_model(options.data, estimator)
    made = _classes(estimator, inputs) if is_classifier(estimator) else _values(estimator, inputs, options.coverage)
    return written(inputs.select(pl.exclude(made.columns)), made, options)


def written(given: pl.DataFrame, made: pl.DataFrame, options: Namespace) -> Outcome:
    """What was given and what was made of it in a file or, where none is asked for, as the outcome itself.

    As text, for a person, what was made has the digits that a float32 computation can have right; files and JSON keep
    every digit.
    """
    frame = given.hstack(made)
    if options.out is None:
        text = given.hstack(made.with_columns(pl.selectors.float().round_sig_figs(7))).write_csv()
        return Outcome({"rows": frame.height, "columns": frame.to_dict(as_series=False)}, text.rstrip("\n"))
    write_table(frame, options.out, force=options.force)
    data = {"out": options.out, "rows": frame.height, "columns": frame.columns}
    return Outcome(data, f"{frame.height} rows are in {options.out}.")


def _values(estimator: Any, inputs: pl.DataFrame, coverage: float) -> pl.DataFrame:
    """Mean, deviation and interval of every target."""
    names = estimator.record_["targets"]
    X, shape = known(estimator, inputs), (inputs.height, len(names))
    mean, std = (np.reshape(part, shape) for part in estimator.predict(X, return_std=True))
    ends = np.reshape(estimator.predict_interval(X, coverage), (*shape, 2))
    columns: dict[str, np.ndarray] = {}
    for k, name in enumerate(names):
        columns |= {name: mean[:, k], f"{name}_std": std[:, k]}
        columns |= {f"{name}_lower": ends[:, k, 0], f"{name}_upper": ends[:, k, 1]}
    return pl.DataFrame(columns)


def _classes(estimator: Any, inputs: pl.DataFrame) -> pl.DataFrame:
    """The likeliest class and the probability of each."""
    (name,) = estimator.record_["targets"]
    shares = estimator.predict_proba(known(estimator, inputs))
    chosen = estimator.classes_[np.argmax(shares, axis=1)]
    return pl.DataFrame(
        {name: chosen.tolist()} | {f"{name}_{one}": shares[:, k] for k, one in enumerate(estimator.classes_)}
    )

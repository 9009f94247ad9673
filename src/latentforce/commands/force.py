"""`latentforce force`: what was pushing the system, as a table."""

from argparse import Namespace

import polars as pl
from scipy.special import ndtri

from .. import load
from ..plots._source import axis
from . import Outcome
from ._outputs import table_ready
from .predict import written


def run(options: Namespace) -> Outcome:
    """Time, mean, deviation and band of a force over the training range."""
    table_ready(options.out, options.force)
    estimator = load(options.model)
    times, _ = axis(estimator, options.layer, options.direction, options.points)
    which = {"layer": options.layer, "index": options.index, "direction": options.direction}
    mean, std = estimator.predict_force(times, **which, return_std=True)
    reach = ndtri((1 + options.coverage) / 2) * std
    made = pl.DataFrame({"mean": mean, "std": std, "lower": mean - reach, "upper": mean + reach})
    return written(pl.DataFrame({"time": times}), made, options)

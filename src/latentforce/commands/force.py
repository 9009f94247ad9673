"""`latentforce force`: what was pushing the system, as a table."""

import warnings
from argparse import Namespace
from typing import Any

import polars as pl
from scipy.special import ndtri

from .. import load
from ..plots._source import axis
from ..presets import PRESETS
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
    _caution(estimator)
    reach = ndtri((1 + options.coverage) / 2) * std
    made = pl.DataFrame({"mean": mean, "std": std, "lower": mean - reach, "upper": mean + reach})
    return written(pl.DataFrame({"time": times}), made, options)


def _caution(estimator: Any) -> None:
    """What a band of the force does not say by itself."""
    if not PRESETS[estimator.model].ode:
        warnings.warn("the model has no ODE: what is called its force is the signal itself.", stacklevel=2)
    elif estimator.train_filters is not None:
        warnings.warn(
            "the ODE was learned, and the band takes it as known: it may be too narrow. `latentforce.laplace` gives "
            "one that does not; an ODE that is known is given to `fit` by --ode.",
            stacklevel=2,
        )

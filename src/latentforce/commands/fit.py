"""`latentforce fit`: from a data file to a model file."""

import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from ..dynamics._filters import LinearODE
from ..estimators._classifier import LatentForceClassifier
from ..estimators._regressor import LatentForceRegressor
from ..files._columns import DataFileError
from ..files._tables import stem
from ..inference._processes import abandon, distribute
from ..inference._training import STOPPED
from ..presets import PRESETS
from . import Outcome
from ._arguments import Usage
from ._data import Data, for_training
from ._interrupts import stoppable
from ._outputs import keep, ready
from ._scores import scores, told

ENDS = {STOPPED: "stopped by Ctrl-C"}  # what an end is called here


def run(options: Namespace) -> Outcome | None:
    """Train, save, and say what came of it; of several processes that a launcher started, the first does so for all."""
    if options.devices is None:
        return _run(options, first=True)
    processes = distribute()
    try:
        return _run(options, processes.first)
    except BaseException:
        if processes.count > 1:
            abandon()
        raise


def _run(options: Namespace, first: bool) -> Outcome | None:
    out = options.out or Path(f"{stem(options.data)}.lforce")
    ready(out, options.force)
    if options.resume and options.checkpoint is None:
        raise Usage("--resume needs --checkpoint, the file to go on from")
    if options.checkpoint is not None:
        ready(options.checkpoint, options.force or options.resume)
    data = for_training(options.data, options.target, options.inputs)
    train, test = _split(data, options)
    with stoppable() as callback:
        estimator = _estimator(options, data.categorical, callback)
        estimator.fit(train.inputs, train.y(classes=is_classifier(estimator)))
    if not first:
        return None
    keep(estimator, out)
    found = scores(estimator, test) if test is not None else None
    return _outcome(estimator, out, data, found, options.quiet)


def _split(data: Data, options: Namespace) -> tuple[Data, Data | None]:
    """Rows to train on and rows held out, at random."""
    if options.test_share is None:
        return data, None
    order = np.random.default_rng(options.seed).permutation(len(data.inputs))
    count = max(round(options.test_share * len(order)), 1)
    if len(order) - count < 2:
        raise DataFileError(f"{options.data} has {len(order)} rows: too few to hold some out with --test-share.")
    return data.rows(np.sort(order[count:])), data.rows(np.sort(order[:count]))


def _estimator(options: Namespace, categorical: bool, callback: Any) -> Any:
    given = {
        "depth": options.depth,
        "num_frequencies": options.frequencies,
        "steps": options.steps,
        "random_state": options.seed,
        "checkpoint": options.checkpoint,
        "every": options.every,
        "resume": options.resume,
        "devices": options.devices,
        "verbose": int(sys.stderr.isatty() and not options.quiet),
        "callback": callback,
    }
    if options.ode is not None:
        if not PRESETS[options.model].ode:
            raise Usage(f"--ode is for models with an ODE, and {options.model} has none")
        given |= {"filter": LinearODE(options.ode), "train_filters": None}
    if not (options.classify or categorical):
        return LatentForceRegressor(options.model, likelihood=options.likelihood, **given)
    if len(options.target) > 1:
        raise DataFileError(f"--classify takes one target, got {', '.join(options.target)}.")
    if options.likelihood is not None:
        raise DataFileError(f"--likelihood is for numbers; {options.target[0]!r} is sorted into classes.")
    return LatentForceClassifier(options.model, **given)


def _outcome(estimator: Any, out: Path, data: Data, found: dict[str, Any] | None, quiet: bool) -> Outcome:
    history, summary = estimator.history_, estimator.summary()
    early = ENDS.get(history.stopped, history.stopped) if history.ended_early else None
    notes = [
        str(summary),
        data.dropped and f"{data.dropped} of {data.dropped + len(data.inputs)} rows have no target and were left out.",
        early and f"Training ended early ({early}), after {history.steps[-1]} of {estimator.choices_.steps} steps.",
        found and f"On rows held out:\n{told(found)}",
        f"The model is in {out}.",
    ]
    answer = {
        "out": out,
        "rows": estimator.record_["rows"],
        "dropped": data.dropped,
        "steps": history.steps[-1],
        "stopped": history.stopped,
        "seconds": estimator.record_["seconds"],
        "summary": summary.to_dict(),
        "test": found,
    }
    return Outcome(answer, "" if quiet else "\n\n".join(note for note in notes if note))

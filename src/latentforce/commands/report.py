"""`latentforce report`: one page on a model."""

from argparse import Namespace

from sklearn.base import is_classifier

from .. import load
from ..report import write_report
from . import Outcome
from ._data import for_scoring, known
from ._outputs import ready


def run(options: Namespace) -> Outcome:
    """Write the page."""
    ready(options.out, options.force)
    estimator = load(options.model)
    data = None if options.data is None else for_scoring(options.data, estimator)
    X, y = (None, None) if data is None else (known(estimator, data.inputs), data.y(classes=is_classifier(estimator)))
    write_report(estimator, options.out, X, y, force=options.force)
    return Outcome({"out": options.out}, f"The report is in {options.out}.")

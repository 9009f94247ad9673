"""`latentforce evaluate`: how good a model is on data with targets."""

from argparse import Namespace

from .. import load
from . import Outcome
from ._data import for_scoring
from ._scores import scores, told


def run(options: Namespace) -> Outcome:
    """The scores."""
    estimator = load(options.model)
    found = scores(estimator, for_scoring(options.data, estimator))
    return Outcome(found, told(found))

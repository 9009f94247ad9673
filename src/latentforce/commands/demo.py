"""`latentforce demo`: a deep latent force model beside a shallow one, on a step function."""

import sys
from argparse import Namespace
from contextlib import nullcontext, redirect_stdout

from .. import demo
from . import Outcome


def run(options: Namespace) -> Outcome:
    """Train both; they tell their scores as they go, and the standard output is left to JSON where it is asked for."""
    with redirect_stdout(sys.stderr) if options.json else nullcontext():
        reached = demo.run(options.out, options.steps)
    scores = {name: {key: float(value) for key, value in row._asdict().items()} for name, row in reached.items()}
    return Outcome({"out": options.out, "models": scores}, "")

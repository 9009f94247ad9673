"""`latentforce bench`: times on this machine, beside what it could do and what others do."""

import json
import sys
from argparse import Namespace

from .. import bench
from ..files._atomic import atomic
from . import Outcome
from ._outputs import ready


def run(options: Namespace) -> Outcome:
    """Measure, and write the record if that is asked for."""
    if options.out is not None:
        ready(options.out, options.force)
    record = bench.measure(options.quick, options.parts, options.models, _tell)
    if options.out is not None:
        with atomic(options.out) as file:
            file.write((json.dumps({"command": "latentforce bench"} | record, indent=1) + "\n").encode())
    return Outcome(record, bench.text(record))


def _tell(what: str) -> None:
    print(f"measuring: {what}", file=sys.stderr, flush=True)

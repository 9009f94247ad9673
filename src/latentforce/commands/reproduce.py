"""`latentforce reproduce`: the paper's tables and figures."""

import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..experiments import EXPERIMENTS
from . import Outcome, aligned


def run(options: Namespace) -> Outcome:
    """Run one experiment or all, or list them."""
    if options.name == "list":
        rows = [(name, entry.about, ", ".join(entry.labels)) for name, entry in EXPERIMENTS.items()]
        table = {name: {"about": about, "labels": labels.split(", ")} for name, about, labels in rows}
        return Outcome({"experiments": table}, aligned([("name", "what it shows", "in the paper"), *rows]))
    from ..experiments._sweep import Setup, reproduce  # here: the list need not wait for it

    setup = Setup(options.quick, options.data, options.seeds)
    texts = {}
    with _where(options.dask) as jobs:
        for name in EXPERIMENTS if options.name == "all" else [options.name]:
            shown = not options.json and sys.stderr.isatty()
            how: dict[str, Any] = {"only": options.only, "again": options.again, "shown": shown}
            page = reproduce(name, setup, options.out, jobs or options.jobs, **how)
            texts[name] = page.text
    said = "\n\n".join([*texts.values(), f"Results, tables and figures are in {options.out}."])
    return Outcome({"out": options.out, "experiments": texts}, said)


@contextmanager
def _where(dask: str | None) -> Iterator[Any]:
    """Here or, with the address of a Dask scheduler, wherever its workers are, as many cells at a time as it has."""
    if dask is None:
        yield None
        return
    import joblib

    try:
        from distributed import Client
    except ImportError:
        raise ValueError("`--dask` must be left out, or Dask be there: pip install distributed.") from None
    with Client(dask), joblib.parallel_config("dask"):
        yield -1

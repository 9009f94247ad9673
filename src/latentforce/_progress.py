"""The bar that shows how training goes on."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm import tqdm

from .inference._training import Progress


@contextmanager
def progress_bar(steps: int, name: str | None = None, *, shown: bool = True) -> Iterator[Callable[[Progress], None]]:
    """A bar on the standard error stream; gives the callback that moves it and shows the objective."""
    with tqdm(total=steps, desc=name, unit="step", file=sys.stderr, disable=not shown) as bar:

        def show(progress: Progress) -> None:
            bar.set_postfix(bound=f"{progress.objective:.3f}", refresh=False)
            bar.update(progress.step - bar.n)

        yield show

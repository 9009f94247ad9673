"""The report: one page about a fitted estimator, complete in itself."""

import os
import warnings
from pathlib import Path
from typing import Any

from .._version import __version__
from ..files._atomic import atomic
from . import _about, _judgement
from ._facts import gather
from ._headline import title, top
from ._html import page, paragraph
from ._push import force as pushes


def report(estimator: Any, X: Any = None, y: Any = None) -> str:
    """A self-contained HTML page about a fitted regressor or classifier: no network, no scripts, the same each time.

    It says what the data were, what was fitted and why, how training went, how well the model predicts (with data: X
    and y as for `fit`, best those that it was not trained on), what each input does, what the hidden force was, and
    all parameters with units. Without data, what needs them is left out and the page says so.

    !!! example

        >>> import numpy as np, latentforce as lf
        >>> from latentforce.report import report
        >>> x = np.linspace(0.0, 10.0, 30)[:, None]
        >>> regressor = lf.LatentForceRegressor("ssgp", batch_size=20, steps=5).fit(x, np.sin(x[:, 0]))
        >>> html = report(regressor)
        >>> html.startswith("<!DOCTYPE html>"), "<svg" in html
        (True, True)
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        subject = gather(estimator, X, y)
        sections = [
            _about.data(subject),
            _about.fitted(subject),
            _about.training(subject),
            _judgement.fit(subject),
            _judgement.layers(subject),
            _judgement.components(subject),
            pushes(subject),
            _judgement.calibration(subject),
            _judgement.residuals(subject),
            _about.parameters(subject),
        ]
        headline = top(subject)
    said = [f"While this report was made: {warning.message}" for warning in caught]
    parts = [part for part in sections if part is not None] + [_about.record(subject, said)]
    bottom = paragraph(f"Made by latentforce {__version__}. This page is complete in itself and loads nothing.")
    return page(title(subject), headline, parts, bottom)


def write_report(estimator: Any, path: str | os.PathLike, X: Any = None, y: Any = None, force: bool = False) -> None:
    """Write [`latentforce.report.report`][] to a file, at once or not at all; `force`: also where there is one.

    !!! example

        >>> import tempfile, latentforce as lf
        >>> from latentforce.report import write_report
        >>> regressor = lf.LatentForceRegressor("lfm-driven")
        >>> with tempfile.NamedTemporaryFile(suffix=".html") as file:  # what is there stays there
        ...     try:
        ...         write_report(regressor, file.name)
        ...     except FileExistsError as error:
        ...         print(str(error).split(";")[1])
         give `force=True` to write over it.
    """
    target = Path(path)
    if target.exists() and not force:
        raise FileExistsError(f"{target} is there already; give `force=True` to write over it.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"`path` must lie in a folder that exists, got {target}.")
    document = report(estimator, X, y).encode("utf-8")
    with atomic(target) as file:
        file.write(document)

"""Files that commands write: faults are found before the work where they can be, and the work is not lost after it."""

import os
import tempfile
from pathlib import Path
from typing import Any

from ..files._tables import PACK, WRITABLE, kind


def ready(path: Path, force: bool) -> None:
    """An error now if `path` could not be written later: it is there already, its folder is not, or is read-only."""
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a file to write.")
    if path.exists() and not force:
        raise FileExistsError(f"{path} is there already: give --force to replace it.")
    if not path.parent.is_dir():
        raise NotADirectoryError(f"{path.parent} is not a folder that is there: make it first.")
    try:
        with tempfile.TemporaryFile(dir=path.parent) as file:
            file.write(b"0")
    except OSError as error:
        raise type(error)(f"{path.parent} cannot be written to: {error.strerror}.") from error


def table_ready(path: Path | None, force: bool) -> None:
    """The same for a table, whose suffix says how it is written; None goes to the standard output."""
    if path is not None:
        kind(path, WRITABLE, PACK)
        ready(path, force)


def keep(estimator: Any, path: Path) -> None:
    """Save a model; where that fails, save it among the temporary files and say so in the error."""
    try:
        estimator.save(path)
    except OSError as error:
        refuge = Path(tempfile.mkdtemp(prefix="latentforce-")) / path.name
        reason = f"{path} cannot be written: {os.strerror(error.errno) if error.errno else error}"
        try:
            estimator.save(refuge)
        except OSError as again:
            raise OSError(f"{reason}, nor can {refuge} ({again.strerror}): the trained model is lost.") from error
        raise OSError(f"{reason}. The trained model is safe in {refuge}.") from error

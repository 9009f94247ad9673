"""What the command line does: one module for each command, with a function `run` from options to an outcome."""

from collections.abc import Sequence
from typing import Any, NamedTuple


class Outcome(NamedTuple):
    """What a command has to say: as data for machines, and as text for people."""

    data: dict[str, Any]
    text: str


def aligned(rows: Sequence[Sequence[Any]]) -> str:
    """Rows of cells as text, in columns; numbers in short.

    !!! example

        >>> print(aligned([("name", "RMSE"), ("level", 0.123456), ("flow", 12.0)]))
        name   RMSE
        level  0.1235
        flow   12
    """
    cells = [[f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)
    return "\n".join(line.rstrip() for line in lines)

"""Tables in Markdown that are also pleasant to read in a terminal, and the numbers in them."""

from collections.abc import Sequence
from textwrap import fill
from typing import Any

import numpy as np


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Markdown with columns of equal width; numbers with three decimals.

    !!! example

        >>> print(table(["model", "RMSE"], [["iddgp", 0.10812], ["dlfm-vfrf", 0.106]]))
        | model     | RMSE  |
        |-----------|-------|
        | iddgp     | 0.108 |
        | dlfm-vfrf | 0.106 |
    """
    cells = [list(header), *([f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [f"| {' | '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))} |" for row in cells]
    return "\n".join([lines[0], f"|{'|'.join('-' * (width + 2) for width in widths)}|", *lines[1:]])


def paragraph(text: str) -> str:
    """The same words in lines of equal length.

    !!! example

        >>> paragraph("one  two\\n   three")
        'one two three'
    """
    return fill(" ".join(text.split()), 110, break_long_words=False, break_on_hyphens=False)


def spread(values: Any, digits: int = 3) -> str:
    """Mean ± standard deviation, as the paper gives them; small numbers in powers of ten.

    !!! example

        >>> spread([1.0, 2.0, 3.0], 1), spread([1e-4, 2e-4, 3e-4])
        ('2.0 ± 1.0', '2.0e-04 ± 1.0e-04')
    """
    values = np.asarray(values, float)
    kind = f".{digits}f" if abs(values.mean()) > 10.0**-digits else ".1e"
    return f"{values.mean():{kind}}" + (f" ± {values.std(ddof=1):{kind}}" if values.size > 1 else "")


def uncertain(values: Any, digits: int = 3) -> str:
    """Mean ± standard error of the mean; a single number as it is.

    !!! example

        >>> uncertain([1.0, 2.0, 3.0, 2.0], 2), uncertain([1.0], 2)
        ('2.00 ± 0.41', '1.00')
    """
    values = np.asarray(values, float)
    error = f" ± {values.std(ddof=1) / values.size**0.5:.{digits}f}" if values.size > 1 else ""
    return f"{values.mean():.{digits}f}{error}"

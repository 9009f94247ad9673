"""Numbers, dates and lists as people write them."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

NARROW = "\u202f"  # a narrow space that no line is broken at
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_UNITS = {"years": 365.25 * 86400, "days": 86400.0, "hours": 3600.0, "minutes": 60.0}


def number(value: Any, digits: int = 4) -> str:
    """A number with so many digits that matter.

    !!! example

        >>> from latentforce.report._words import NARROW, number
        >>> number(0.12345678), number(2.5), number(12345678), number(-0.00001).split(NARROW)
        ('0.1235', '2.5', '12\u202f345\u202f678', ['−1', '×', '10⁻⁵'])
    """
    if isinstance(value, str):
        return value
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return f"{value:,}".replace(",", NARROW).replace("-", "−")
    if not math.isfinite(value):
        return str(value)
    power = math.floor(math.log10(abs(value))) if value else 0
    if not -4 <= power < 6:
        return f"{_trimmed(value / 10.0**power, digits - 1)}{NARROW}×{NARROW}10{str(power).translate(_RAISED)}"
    return _trimmed(value, max(digits - 1 - power, 0))


def percent(share: float, digits: int = 1) -> str:
    """A share of one.

    !!! example

        >>> from latentforce.report._words import percent
        >>> percent(0.938), percent(0.5)
        ('93.8\\u202f%', '50\\u202f%')
    """
    return f"{_trimmed(100 * share, digits)}{NARROW}%"


def count(value: int, noun: str) -> str:
    """So many of something.

    !!! example

        >>> from latentforce.report._words import count
        >>> count(1, "row"), count(3, "row")
        ('1 row', '3 rows')
    """
    return f"{number(int(value))} {noun}{'' if value == 1 else 's'}"


def duration(seconds: float) -> str:
    """A time as long as that, in the unit that suits it.

    !!! example

        >>> from latentforce.report._words import duration
        >>> duration(21.13), duration(7200.0), duration(2379000.0)
        ('21.1 s', '2 hours', '27.5 days')
    """
    for name, size in _UNITS.items():
        if abs(seconds) >= 2 * size:
            return f"{number(seconds / size, 3)} {name}"
    return f"{number(float(seconds), 3)} s"


def moment(value: Any, span: Any = None) -> str:
    """A value of a column: a number, a level, or a time as exactly as it matters within `span`, a range of times.

    !!! example

        >>> import numpy as np
        >>> from latentforce.report._words import moment
        >>> noon = np.datetime64("2024-02-26T12:00:07")
        >>> moment(noon), moment(noon, np.timedelta64(90, "D")), moment(0.5)
        ('2024-02-26 12:00:07', '2024-02-26', '0.5')
    """
    if not isinstance(value, np.datetime64):
        return number(value)
    day, _, time = np.datetime_as_string(value, unit="s").partition("T")
    whole = time == "00:00:00" or (span is not None and span > np.timedelta64(10, "D"))
    return day if whole else f"{day} {time}"


def names(items: Sequence[str], most: int = 3) -> str:
    """A list in a sentence.

    !!! example

        >>> from latentforce.report._words import names
        >>> names(["a"]), names(["a", "b", "c"]), names(["a", "b", "c", "d", "e"])
        ('a', 'a, b and c', 'a, b and 3 others')
    """
    items = list(items)
    if len(items) > most:
        items = [*items[: most - 1], f"{len(items) - most + 1} others"]
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def _trimmed(value: float, places: int) -> str:
    """With at most so many decimal places, none of them a zero at the end."""
    digits = f"{value:,.{max(places, 0)}f}"
    digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
    return digits.replace(",", NARROW).replace("-", "−")

"""How fast the library is on this machine, beside what the machine could do and what others do in the same run."""

from ._record import PARTS as PARTS
from ._record import measure as measure
from ._text import text as text

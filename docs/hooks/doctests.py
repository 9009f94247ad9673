"""Examples in docstrings (`>>>`, until the next empty line) become blocks of code on the pages of the reference."""

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^(?P<indent> *)>>> .*\n?(?:(?P=indent)\S.*\n?|(?P=indent) +\S.*\n?)*", re.MULTILINE)
FLAGS = re.compile(r"\s*# doctest:.*")


class Doctests(griffe.Extension):
    """Rewrites docstrings as they are read."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Of whatever object: fence its examples."""
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub(_fenced, obj.docstring.value)


def _fenced(found: re.Match) -> str:
    indent = found["indent"]
    lines = [FLAGS.sub("", line) for line in found[0].rstrip("\n").split("\n")]
    return "\n".join([f"{indent}```pycon", *lines, f"{indent}```", ""])

"""The command line: what can be asked for, and how answers, warnings and errors come out."""

import importlib
import json
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .commands import Outcome
from .commands._arguments import Usage, parser
from .commands._cache import keep_programs
from .inference._training import TrainingError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 fine, 1 an error, 2 a wrong call, 130 interrupted."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    machine = "--json" in given
    try:
        return _answer(given)
    except Usage as error:
        return _fail(str(error), 2, machine)
    except KeyboardInterrupt:
        return _fail("interrupted", 130, machine)
    except BrokenPipeError:  # nobody reads on: what is left to say goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if "--debug" in given:
            raise
        return _fail(_reason(error), 1, machine)


def _answer(given: list[str]) -> int:
    options = parser().parse_args(given)
    if options.command is None:
        parser().print_help()
        return 0
    with _collected(options.json) as said:
        keep_programs()
        command = importlib.import_module(f".commands.{options.command}", __package__)  # here: --help need not wait
        outcome: Outcome | None = command.run(options)
    if outcome is None:  # another process has the answer
        return 0
    if options.json:
        print(json.dumps(_plain(outcome.data | {"warnings": said}), allow_nan=False))
    elif outcome.text:
        print(outcome.text)
    sys.stdout.flush()
    return 0


@contextmanager
def _collected(quiet: bool) -> Iterator[list[str]]:
    """Warnings, each once; told on the standard error stream as they come, unless quiet."""
    said: list[str] = []

    def tell(message: Warning | str, *_: Any, **__: Any) -> None:
        text = _line(str(message))
        if text not in said:
            said.append(text)
            if not quiet:
                print(f"latentforce: warning: {text}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = tell
        yield said


def _fail(message: str, code: int, machine: bool) -> int:
    if machine:
        print(json.dumps({"error": message}))
    else:
        print(f"latentforce: {message}", file=sys.stderr)
    return code


def _reason(error: Exception) -> str:
    """One line; the name of the error where it was not written for people."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, OSError | ValueError | TrainingError) and str(error):
        return _line(str(error))
    told = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {told[0]} (--debug shows where)"


def _line(text: str) -> str:
    return " ".join(text.split())


def _plain(value: Any) -> Any:
    """As JSON has it: what is not finite is null, what is not known is text."""
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float):
        return value if abs(value) < float("inf") else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)

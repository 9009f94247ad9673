"""Ctrl-C while a model is trained: once to stop and keep it, twice to give up."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

NOTICE = b"\nlatentforce: stopping after these steps; Ctrl-C again to give up the model\n"


@contextmanager
def stoppable() -> Iterator[Callable[[Any], bool]]:
    """The callback that ends a training after the first Ctrl-C. The second one is Python's own."""
    asked = threading.Event()

    def ask(*_: Any) -> None:
        asked.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.write(2, NOTICE)  # not `print`, which may be what was interrupted

    if threading.current_thread() is not threading.main_thread():  # signals come to the main one alone
        yield lambda _: False
        return
    before = signal.signal(signal.SIGINT, ask)
    try:
        yield lambda _: asked.is_set()
    finally:
        signal.signal(signal.SIGINT, before)

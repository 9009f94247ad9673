"""Writing a file at once or not at all."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO


@contextmanager
def atomic(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """A file to write to. Whatever happens, `path` is the old file or the whole new one, never a part of it.

    !!! example

        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with atomic(Path(folder) / "numbers") as file:
        ...         _ = file.write(b"123")
        ...     (Path(folder) / "numbers").read_bytes()
        b'123'
    """
    target = Path(path)
    part = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")  # beside it: a move across disks copies
    try:
        with open(part, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except BaseException as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:
            error.filename = os.fspath(target)  # the part is nobody's business
        raise

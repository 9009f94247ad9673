"""The file itself: safetensors, with a JSON document of ours in its metadata; read with suspicion, written at once."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from .._version import __version__
from ._atomic import atomic

SCHEMA = 1
LARGEST_HEADER = 16 * 2**20  # bytes


class ModelFileError(ValueError):
    """A file that is not a model of ours, or not a whole one."""


def write(path: str | os.PathLike, document: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write a file so that, whatever happens, there is the old one or the new one there, never a part of it."""
    text = json.dumps({"schema": SCHEMA, "latentforce": __version__, **document}, allow_nan=False)
    data = save(arrays, metadata={"latentforce": text, "sha256": _digest(text, arrays)})
    with atomic(path) as file:
        file.write(data)


def read(path: str | os.PathLike, infinite: bool = False) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The document and the arrays of a file; `ModelFileError` where it is not whole or not ours.

    No array holds NaN, and none of a model is `infinite`; optimisers note infinite errors before they know better.
    """
    try:
        text, digest = _text(Path(path))
        document = _document(path, text)
        with open(path, "rb") as file:
            arrays = load(file.read())
    except ModelFileError:
        raise
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError, OverflowError) as error:
        raise ModelFileError(f"{path} is not a model file, or is damaged: {error}") from error
    if _digest(text, arrays) != digest:
        raise ModelFileError(f"{path} is damaged: its checksum is wrong.")
    for name, array in arrays.items():
        if array.dtype.kind not in "fiu" or np.any(np.isnan(array) if infinite else ~np.isfinite(array)):
            raise ModelFileError(f"{path} holds values that are not finite numbers, in {name!r}.")
    return document, arrays


def _text(path: Path) -> tuple[str, str]:
    """Our part of the header, and the checksum. It is read by itself first: it says how large it is, and may lie."""
    total = path.stat().st_size
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        if total < 8 or size > min(LARGEST_HEADER, total - 8):
            raise ModelFileError(f"{path} is not a model file, or is cut short: its header would be {size} bytes.")
        header = json.loads(file.read(size))
    metadata = header.get("__metadata__") if isinstance(header, dict) else None
    if not isinstance(metadata, dict) or not isinstance(metadata.get("latentforce"), str):
        raise ModelFileError(f"{path} is not a model of latentforce.")
    return metadata["latentforce"], str(metadata.get("sha256"))


def _document(path: str | os.PathLike, text: str) -> dict[str, Any]:
    document = json.loads(text)
    if not isinstance(document, dict) or not isinstance(document.get("schema"), int):
        raise ModelFileError(f"{path} is not a model of latentforce: it does not say which schema it follows.")
    if document["schema"] > SCHEMA:
        raise ModelFileError(
            f"{path} was written by a newer version of latentforce ({document.get('latentforce')}, schema "
            f"{document['schema']}); this is {__version__}, which reads schema {SCHEMA}. Please upgrade."
        )
    return document


def _digest(text: str, arrays: dict[str, np.ndarray]) -> str:
    """Of the document and all arrays, with names, types and shapes."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()

"""Trainings that survive: all that the loop knows, in one file, from which it goes on to the same last bit."""

import hashlib
import os
import warnings
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import _checks
from ..files._format import ModelFileError, read, write

KIND = "checkpoint"
SERIES = ("objective", "gradient_norm", "seconds", "steps", "held_out")  # of a history


class Checkpoint:
    """Where a training writes itself down, every so many steps, and what makes it that training and no other."""

    def __init__(self, path: str | os.PathLike, every: int, identity: dict[str, Any]):
        self.path, self.every, self.identity = Path(path), _checks.count("every", every), identity
        self.last, self.warned = 0, False
        if not self.path.parent.is_dir():
            raise ValueError(f"`checkpoint` must be in a folder that is there, got {os.fspath(path)!r}.")

    def is_due(self, step: int) -> bool:
        """Whether so many steps have been done since the last one."""
        return step - self.last >= self.every

    def write(self, step: int, trees: dict[str, Any], history: Any, facts: dict[str, Any]) -> None:
        """Write it down. A disk that is full must not end a training: that is a warning, and the old file stays."""
        arrays = {f"{name}.{k}": leaf for name, tree in trees.items() for k, leaf in enumerate(_leaves(tree))}
        arrays |= {f"history.{name}": np.asarray(getattr(history, name), np.float64) for name in SERIES}
        names = list(history.parameters[0]) if history.parameters else []
        arrays |= {f"parameters.{name}": np.stack([row[name] for row in history.parameters]) for name in names}
        document = {
            "kind": KIND,
            "identity": self.identity,
            "facts": facts | {"retries": history.retries, "parameters": names},
        }
        try:
            write(self.path, document, arrays)
            self.last = step
        except OSError as error:
            if not self.warned:
                warnings.warn(f"The checkpoint could not be written: {error}. Training goes on.", stacklevel=2)
            self.warned = True

    def read(self, trees: dict[str, Any], history: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """What was written, in the form of these trees, and the facts; the history is filled. None if there is none."""
        if not self.path.exists():
            return None
        document, arrays = read(self.path, infinite=True)
        if document.get("kind") != KIND:
            raise ModelFileError(f"{self.path} is not a checkpoint of a training.")
        self._same(document["identity"])
        facts = document["facts"]
        for name in SERIES:
            setattr(history, name, arrays[f"history.{name}"].tolist())
        history.steps = [int(step) for step in history.steps]
        history.retries = facts["retries"]
        columns = {name: arrays[f"parameters.{name}"] for name in facts["parameters"]}
        history.parameters = [{name: column[k] for name, column in columns.items()} for k in range(len(history.steps))]
        self.last = history.steps[-1]
        return {name: _filled(tree, name, arrays) for name, tree in trees.items()}, facts

    def _same(self, identity: dict[str, Any]) -> None:
        differing = [name for name in self.identity if identity.get(name) != self.identity[name]]
        if differing:
            listed = ", ".join(f"{name} ({identity.get(name)!r} there)" for name in differing)
            raise ValueError(
                f"`resume` must be False, or `checkpoint` another file: {self.path} is of a training with another "
                f"{listed}."
            )


def fingerprint(*trees: Any) -> str:
    """Of all numbers in trees of arrays."""
    digest = hashlib.sha256()
    for leaf in jax.tree.leaves(trees):
        array = np.ascontiguousarray(leaf)
        digest.update(f"{array.dtype} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()[:16]


def shapes(tree: Any) -> str:
    """A fingerprint of the structure, shapes and dtypes alone."""
    text = str(jax.tree.structure(tree)) + str([(leaf.shape, str(leaf.dtype)) for leaf in jax.tree.leaves(tree)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _leaves(tree: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def _filled(tree: Any, name: str, arrays: dict[str, np.ndarray]) -> Any:
    leaves, structure = jax.tree.flatten(tree)
    stored = [arrays[f"{name}.{k}"] for k in range(len(leaves))]
    return jax.tree.unflatten(structure, [jnp.asarray(array) for array in stored])

"""A model as plain data and named arrays, and back. Only classes of this library are made; none of their code runs."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import numpy as np

from ..depth._inputs import Bounded, Coordinates, Directions, Jointly
from ..depth._layer import Layer
from ..depth._likelihoods import Bernoulli, Gaussian, HeteroscedasticGaussian, Poisson, StudentT
from ..depth._means import IdentityMean, LinearMean, ZeroMean
from ..depth._model import Model
from ..depth._outputs import IndependentOutputs, SharedForces
from ..depth._posteriors import BlockPosterior, DiagonalPosterior, FullPosterior
from ..dynamics._filters import FirstOrder, Identity, LinearODE, SecondOrder
from ..dynamics._forces import Matern, SquaredExponential
from ..dynamics._process import Process
from ..features._driven import DrivenFourier
from ..features._harmonic import HarmonicFourier
from ..features._points import InducingPoints
from ..features._random import RandomFourier
from ..inference._exact import ExactModel

KNOWN = {
    kind.__name__: kind
    for kind in (
        Bounded, Coordinates, Directions, Jointly, Layer, Bernoulli, Gaussian, HeteroscedasticGaussian, Poisson,
        StudentT, IdentityMean, LinearMean, ZeroMean, Model, IndependentOutputs, SharedForces, BlockPosterior,
        DiagonalPosterior, FullPosterior, FirstOrder, Identity, LinearODE, SecondOrder, Matern, SquaredExponential,
        Process, DrivenFourier, HarmonicFourier, InducingPoints, RandomFourier, ExactModel,
    )
}  # fmt: skip
DEEPEST = 20  # levels of nesting: more than any model has


def describe(node: Any, arrays: dict[str, np.ndarray], path: str = "model") -> Any:
    """Plain data for JSON; arrays go to `arrays` by their path."""
    if isinstance(node, eqx.Module):
        kind = type(node).__name__
        if KNOWN.get(kind) is not type(node):
            raise ValueError(f"`model` must be made of this library's own parts to be saved, got {kind} at {path}.")
        fields = [field.name for field in dataclasses.fields(node)]
        return {
            "kind": kind,
            "fields": {name: describe(getattr(node, name), arrays, f"{path}.{name}") for name in fields},
        }
    if isinstance(node, jax.Array | np.ndarray):
        arrays[path] = np.ascontiguousarray(node)
        return {"array": path}
    if isinstance(node, tuple):
        return {"tuple": [describe(part, arrays, f"{path}.{k}") for k, part in enumerate(node)]}
    if node is None or isinstance(node, bool | int | float | str):
        return {"value": node}
    raise ValueError(f"`model` must hold arrays and plain values to be saved, got {type(node).__name__} at {path}.")


def rebuild(data: Any, arrays: dict[str, np.ndarray], depth: int = 0) -> Any:
    """The opposite of `describe`; a ValueError where the data are not what it gives."""
    if not isinstance(data, dict) or depth > DEEPEST:
        raise ValueError("its description of the model is not one.")
    match data:
        case {"kind": str(kind), "fields": dict(fields)}:
            return _module(kind, fields, arrays, depth)
        case {"array": str(name)}:
            if name not in arrays:
                raise ValueError(f"the array {name!r} is missing.")
            return arrays[name]
        case {"tuple": list(parts)}:
            return tuple(rebuild(part, arrays, depth + 1) for part in parts)
        case {"value": bool() | int() | float() | str() | None as value}:
            return value
    raise ValueError("its description of the model is not one.")


def _module(kind: str, fields: dict[str, Any], arrays: dict[str, np.ndarray], depth: int) -> Any:
    if kind not in KNOWN:
        raise ValueError(f"it has a part {kind!r} that this version does not know.")
    known = KNOWN[kind]
    wanted = {field.name for field in dataclasses.fields(known)}
    if set(fields) != wanted:
        raise ValueError(f"its part {kind!r} has fields {sorted(fields)} instead of {sorted(wanted)}.")
    module = object.__new__(known)
    for name, value in fields.items():
        object.__setattr__(module, name, rebuild(value, arrays, depth + 1))
    return module

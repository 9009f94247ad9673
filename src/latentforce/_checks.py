"""Argument checks: the one place that turns bad input into a clear `ValueError`.

Values are checked whenever they are concrete, also while a function is being traced by `jax.jit`
with constants closed over; a traced value has no number to look at and passes.
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer
from jax.typing import ArrayLike

Numbers = ArrayLike | Sequence[Any]  # what a user may hand over where an array is meant


def concrete(value: Any) -> np.ndarray | None:
    """The numbers inside `value`, or None where it is traced."""
    return None if isinstance(value, Tracer) else np.asarray(value)


def _array(name: str, value: Numbers) -> Array:
    """A floating-point array. Python numbers stay weakly typed: they follow the dtype of the data."""
    if isinstance(value, bool | str):
        raise ValueError(f"`{name}` must be a number, got {value!r}.")
    if isinstance(value, int | float):
        return jnp.asarray(float(value))
    try:
        array = jnp.asarray(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"`{name}` must be numeric, got {value!r}.") from error
    if jnp.issubdtype(array.dtype, jnp.complexfloating) or array.dtype == bool:
        raise ValueError(f"`{name}` must be real numbers, got dtype {array.dtype}.")
    if not jnp.issubdtype(array.dtype, jnp.floating):
        array = array.astype(jnp.result_type(float))
    return array


def positive(name: str, value: Numbers, *, ranks: tuple[int, ...] = (0,)) -> Array:
    """`value` as an array of positive, finite numbers whose rank is among `ranks`."""
    array = _array(name, value)
    _rank(name, array, ranks)
    numbers = concrete(array)
    if numbers is not None and not (np.all(np.isfinite(numbers)) and np.all(numbers > 0)):
        raise ValueError(f"`{name}` must be positive and finite, got {_show(value)}.")
    return array


def coefficients(name: str, value: Numbers) -> Array:
    """`value` as a non-empty vector of finite numbers."""
    if isinstance(value, list | tuple):
        entries = [_array(f"{name}[{i}]", entry) for i, entry in enumerate(value)]
        for i, entry in enumerate(entries):
            _rank(f"{name}[{i}]", entry, (0,))
        value = jnp.stack(entries) if entries else jnp.zeros(0)
    array = _array(name, value)
    _rank(name, array, (1,))
    if array.shape[0] == 0:
        raise ValueError(f"`{name}` must have at least one entry, got none.")
    return finite(name, array)


def points(name: str, value: Numbers, *, ranks: tuple[int, ...] = (1,)) -> Array:
    """`value` as finite times, or finite inputs, of one of the given ranks."""
    array = _array(name, value)
    _rank(name, array, ranks)
    return finite(name, array)


def finite(name: str, array: Array) -> Array:
    numbers = concrete(array)
    if numbers is not None and not np.all(np.isfinite(numbers)):
        where = np.argwhere(~np.isfinite(numbers))[0]
        raise ValueError(f"`{name}` must be finite, got {numbers[tuple(where)]} at index {tuple(where.tolist())}.")
    return array


def interval(name: str, value: Any) -> tuple[Array, Array]:
    """`(a, b)` with a < b."""
    try:
        left, right = value
    except (TypeError, ValueError) as error:
        raise ValueError(f"`{name}` must be a pair (a, b) with a < b, got {value!r}.") from error
    a, b = points(f"{name}[0]", left, ranks=(0,)), points(f"{name}[1]", right, ranks=(0,))
    low, high = concrete(a), concrete(b)
    if low is not None and high is not None and not low < high:
        raise ValueError(f"`{name}` must be a pair (a, b) with a < b, got ({low}, {high}).")
    return a, b


def count(name: str, value: Any) -> int:
    """A whole number of at least one."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"`{name}` must be a whole number of at least 1, got {value!r}.")
    return int(value)


def instance(name: str, value: Any, kind: type, wanted: str) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"`{name}` must be {wanted}, got {value!r}.")
    return value


def _rank(name: str, array: Array, ranks: tuple[int, ...]) -> None:
    if array.ndim not in ranks:
        shapes = {0: "a scalar", 1: "a 1-D array", 2: "a 2-D array"}
        wanted = " or ".join(shapes[rank] for rank in ranks)
        raise ValueError(f"`{name}` must be {wanted}, got an array of shape {array.shape}.")


def _show(value: Any) -> str:
    numbers = concrete(value)
    return repr(numbers.item() if numbers is not None and numbers.ndim == 0 else value)

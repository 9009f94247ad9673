"""Argument checks: the one place that turns bad input into a clear `ValueError`.

Values are checked whenever they are concrete, also while a function is being traced by `jax.jit`
with constants closed over; a traced value has no number to look at and passes.
"""

import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer
from jax.typing import ArrayLike

Numbers = ArrayLike | Sequence[Any]  # what a user may hand over where an array is meant


def concrete(value: Any) -> np.ndarray | None:
    """The numbers inside `value` as it was handed over, or None where any of them is traced."""
    if isinstance(value, list | tuple):
        parts = [concrete(part) for part in value]
        return None if any(part is None for part in parts) else np.asarray(value)
    return None if isinstance(value, Tracer) else np.asarray(value)


def _array(name: str, value: Numbers) -> Array:
    """A floating-point array. Python numbers stay weakly typed: they follow the dtype of the data."""
    numbers = concrete(value)
    kind = jnp.asarray(value).dtype.kind if numbers is None else numbers.dtype.kind
    if kind not in "iuf":
        raise ValueError(f"`{name}` must be real numbers, got {value!r}.")
    if isinstance(value, int | float):
        return jnp.asarray(float(value))
    array = jnp.asarray(value)
    return array if kind == "f" else array.astype(jnp.result_type(float))


def positive(name: str, value: Numbers, *, ranks: tuple[int, ...] = (0,), floor: float = 0.0, why: str = "") -> Array:
    """`value` as an array of positive, finite numbers above a `floor`, if there is one, whose rank is among `ranks`."""
    array = _array(name, value)
    _rank(name, array, ranks)
    numbers = concrete(value)
    if numbers is not None and not (np.all(np.isfinite(numbers)) and np.all(numbers > 0)):
        raise ValueError(f"`{name}` must be positive and finite, got {_show(value)}.")
    if numbers is not None and not np.all(numbers > floor):
        raise ValueError(f"`{name}` must be larger than {floor:g}{why}, got {_show(value)}.")
    return array


def points(name: str, value: Numbers, *, ranks: tuple[int, ...] = (1,)) -> Array:
    """`value` as finite times, inputs or coefficients, of one of the given ranks."""
    array = _array(name, value)
    _rank(name, array, ranks)
    numbers = concrete(value)
    if numbers is not None and not np.all(np.isfinite(numbers)):
        where = tuple(np.argwhere(~np.isfinite(numbers))[0].tolist())
        raise ValueError(f"`{name}` must be finite, got {numbers[where]} at index {where}.")
    return array


def interval(name: str, value: Any) -> tuple[Array, Array]:
    """`(a, b)` with a < b."""
    try:
        left, right = value
    except (TypeError, ValueError) as error:
        raise ValueError(f"`{name}` must be a pair (a, b) with a < b, got {value!r}.") from error
    a, b = points(f"{name}[0]", left, ranks=(0,)), points(f"{name}[1]", right, ranks=(0,))
    low, high = concrete(left), concrete(right)
    if low is not None and high is not None and not low < high:
        raise ValueError(f"`{name}` must be a pair (a, b) with a < b, got ({low}, {high}).")
    return a, b


def count(name: str, value: Any) -> int:
    """A whole number of at least one."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"`{name}` must be a whole number of at least 1, got {value!r}.")
    return int(value)


def not_negative(name: str, value: Any) -> float:
    """One finite number of at least zero."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = -math.inf
    if not 0 <= number < math.inf:
        raise ValueError(f"`{name}` must be finite and not negative, got {value!r}.")
    return number


def share(name: str, value: float) -> float:
    """A number between 0 and 1, both excluded."""
    if not 0 < value < 1:
        raise ValueError(f"`{name}` must lie between 0 and 1, got {value!r}.")
    return value


def within(name: str, value: int, count: int) -> None:
    """An error that names the argument unless it numbers one of `count` things."""
    if not 0 <= value < count:
        raise ValueError(f"`{name}` must lie between 0 and {count - 1}, got {value!r}.")


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

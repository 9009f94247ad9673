"""What may be trained, and how a constrained number becomes a free one: the one place for both.

A module says of each array field what it is (`POSITIVE`, `FREE`, `TRIANGULAR`, `STABLE`, `CONSTANT`); models hold the
numbers people think in, and the optimiser sees the free ones that `unconstrain` makes of them.
"""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

Tree = TypeVar("Tree")


class Role:
    """The kind of a parameter: its map to free numbers and back; `trainable` is false for constants."""

    def __init__(self, name: str, to_free: Callable, from_free: Callable, trainable: bool = True):
        self.name, self.to_free, self.from_free, self.trainable = name, to_free, from_free, trainable

    def __repr__(self) -> str:
        return self.name


def _routh(coefficients: Float[Array, "*lead n1"]) -> Float[Array, "*lead n1"]:
    """Logarithms of the n ratios of Routh's table and of `a0`: a polynomial is stable where all of them are real.

    Coefficients ascend, `a0 .. an`, and are positive.
    """
    c = coefficients[..., ::-1]
    free = []
    while c.shape[-1] > 1:
        ratio, c = c[..., :1] / c[..., 1:2], c[..., 1:]
        free.append(jnp.log(ratio))
        after = jnp.concatenate([c[..., 2::2], jnp.zeros_like(c[..., :1])], axis=-1)[..., : c[..., 1::2].shape[-1]]
        c = c.at[..., 1::2].add(-ratio * after)
    return jnp.concatenate([*free, jnp.log(c)], axis=-1)


def _routh_inverse(free: Float[Array, "*lead n1"]) -> Float[Array, "*lead n1"]:
    """The stable polynomial of `_routh`: its table built from the bottom up."""
    d = jnp.exp(free[..., -1:])
    for k in range(free.shape[-1] - 2, -1, -1):
        ratio = jnp.exp(free[..., k : k + 1])
        after = jnp.concatenate([d[..., 2::2], jnp.zeros_like(d[..., :1])], axis=-1)[..., : d[..., 1::2].shape[-1]]
        d = jnp.concatenate([ratio * d[..., :1], d.at[..., 1::2].add(ratio * after)], axis=-1)
    return d[..., ::-1]


def _same(x: Array) -> Array:
    return x


POSITIVE = Role("positive", jnp.log, jnp.exp)
"""Numbers above zero: the optimiser sees their logarithms."""
FREE = Role("free", _same, _same)
"""Any numbers, trained as they are: what a field is that says nothing."""
TRIANGULAR = Role("triangular", jnp.tril, jnp.tril)
STABLE = Role("stable", _routh, _routh_inverse)
CONSTANT = Role("constant", _same, jax.lax.stop_gradient, trainable=False)
"""Numbers that stay as they are."""


def above(floor: float) -> Role:
    """Numbers larger than `floor`."""
    return Role(f"above {floor:g}", lambda x: jnp.log(x - floor), lambda x: floor + jnp.exp(x))


def parameter(role: Role) -> Any:
    """A field of a module with its role, to stand where a default would: `variance: Array = parameter(POSITIVE)`.

    !!! example

        >>> import equinox as eqx, jax.numpy as jnp
        >>> from latentforce.extending import POSITIVE, parameter
        >>> class Tank(eqx.Module):
        ...     time: jnp.ndarray = parameter(POSITIVE)
        >>> float(Tank(jnp.asarray(2.0)).time)
        2.0
    """
    return eqx.field(metadata={"role": role})


def owners(model: Any, path: tuple) -> tuple[Role, list[Any]]:
    """The role of the leaf at `path`, and the modules it lies in, from the outermost."""
    role, node, modules = FREE, model, []
    for key in path:
        if isinstance(node, eqx.Module):
            modules.append(node)
            metadata = {field.name: field.metadata for field in fields(node)}[key.name]
            role = metadata.get("role", role)
            node = getattr(node, key.name)
        else:
            node = node[getattr(key, "idx", getattr(key, "key", None))]
    return role, modules


def roles(model: Tree) -> Tree:
    """A tree like `model` with the role of each array in its place."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(model)
    return structure.unflatten([owners(model, path)[0] for path, _ in leaves])


def unconstrain(model: Tree) -> Tree:
    """The model with every parameter replaced by its free numbers."""
    return jax.tree.map(lambda role, x: role.to_free(x), roles(model), model)


def constrain(free: Tree) -> Tree:
    """The model that `unconstrain` made into free numbers."""
    return jax.tree.map(lambda role, x: role.from_free(x), roles(free), free)


def mask(model: Tree, wanted: Callable[[Role, list[Any]], bool]) -> Tree:
    """A tree of booleans like `model`: `wanted` of each leaf's role and the modules it lies in."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(model)
    return structure.unflatten([wanted(*owners(model, path)) for path, _ in leaves])

"""Many devices as one: rows of data divided among them, all else on each of them; also across processes and machines.

The program is that of one device. Where its arrays lie, and which sums go over all devices, is the compiler's business.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxtyping import Bool, Int

AXIS = "rows"  # the one axis of the mesh
GONE = ("ABORTED", "CANCELLED", "DEADLINE_EXCEEDED", "INTERNAL", "UNAVAILABLE", "UNKNOWN")  # how such errors begin

Tree = TypeVar("Tree")


class Lost(RuntimeError):
    """Another process has ended, or cannot be reached."""


def by_rows(function: Callable[[Any, Any, Any], Array], shared: Any, rows: Any, draws: Any) -> Array:
    """`function(shared, rows, draws)`, one number for each row, where each device works on its own rows alone.

    Arrays in `rows` (N, ...) and `draws` (S, N, ...) are divided, those in `shared` are on every device. Nothing
    inside can make devices wait for each other, however the function is written.
    """
    if AXIS not in jax.sharding.get_abstract_mesh().axis_names:
        return function(shared, rows, draws)
    divided = jax.shard_map(function, in_specs=(P(), P(AXIS), P(None, AXIS)), out_specs=P(AXIS), check_vma=False)
    return divided(shared, rows, draws)


@dataclass(frozen=True)
class Devices:
    """The devices of a training, in the order of their processes; no mesh stands for JAX's default device."""

    mesh: Mesh | None = None

    @classmethod
    def of(cls, wanted: int | str | None) -> "Devices":
        """So many devices, "all" of them in all processes, or None for the default one."""
        if wanted is None:
            return cls()
        there = jax.devices()
        numbers = range(1, len(there) + 1) if jax.process_count() == 1 else (len(there),)
        if wanted != "all" and (isinstance(wanted, bool) or wanted not in numbers):
            least = "a number from 1 to" if jax.process_count() == 1 else "the number of devices in all processes,"
            raise ValueError(f'`devices` must be None, "all" or {least} {len(there)}, got {wanted!r}.')
        chosen = there if wanted == "all" else there[: int(wanted)]
        return cls(Mesh(np.array(chosen), (AXIS,), axis_types=(AxisType.Auto,)))

    @property
    def count(self) -> int:
        """How many."""
        return 1 if self.mesh is None else self.mesh.size

    @property
    def several_processes(self) -> bool:
        """Whether other processes take part."""
        return self.mesh is not None and jax.process_count() > 1

    @property
    def first(self) -> bool:
        """Whether this process is the one that writes files and speaks to the user."""
        return not self.several_processes or jax.process_index() == 0

    @contextmanager
    def together(self) -> Iterator[None]:
        """The context in which programs are compiled for these devices, and run; `Lost` where a process is gone."""
        try:
            with nullcontext() if self.mesh is None else jax.set_mesh(self.mesh):
                yield
        except (ValueError, jax.errors.JaxRuntimeError) as error:
            if self.several_processes and str(error).startswith(GONE):
                raise Lost(str(error)) from error
            raise

    def everywhere(self, tree: Tree) -> Tree:
        """Arrays that are equal in all processes, on every device."""
        if self.mesh is None:
            return tree
        placed = NamedSharding(self.mesh, P())
        return jax.tree.map(lambda leaf: jax.make_array_from_process_local_data(placed, np.asarray(leaf)), tree)

    def here(self, tree: Tree) -> Tree:
        """Arrays that are on every device, on the default device of this process alone."""
        return tree if self.mesh is None else jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)), tree)

    def divided(self, array: np.ndarray, axis: int = 0) -> Array:
        """An array of this process's own rows, as many as every other's, joined to theirs and divided."""
        if self.mesh is None:
            return jnp.asarray(array)
        spec = NamedSharding(self.mesh, P(*[None] * axis, AXIS))
        shape = list(array.shape)
        shape[axis] *= jax.process_count()
        return jax.make_array_from_process_local_data(spec, array, tuple(shape))

    def shared_out(self, array: np.ndarray) -> Array:
        """An array that is whole in every process, with its rows divided; the devices must divide their number."""
        assert self.mesh is not None
        return jax.make_array_from_callback(array.shape, NamedSharding(self.mesh, P(AXIS)), lambda part: array[part])

    def room(self, num_rows: int) -> int:
        """The rows that each process must hold so that its devices have equally many, `num_rows` at least."""
        each = self.count // jax.process_count() if self.several_processes else self.count
        return -(-num_rows // each) * each

    def share(self, num_rows: int) -> slice:
        """Which of so many rows, known to all processes, this one holds: as many as the others, but for the last."""
        if not self.several_processes:
            return slice(0, num_rows)
        held, index = self.room(-(-num_rows // jax.process_count())), jax.process_index()
        return slice(min(index * held, num_rows), min((index + 1) * held, num_rows))

    def counts(self, num_rows: int) -> tuple[int, ...]:
        """How many rows each process has."""
        return tuple(int(number) for number in self.gathered(np.asarray(num_rows)))

    def gathered(self, array: np.ndarray) -> np.ndarray:
        """What all processes have (processes, ...), of equal shape and type: as bytes, which lose no digits."""
        if not self.several_processes:
            return array[None]
        data = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
        with self.together():
            parts = np.asarray(multihost_utils.process_allgather(data, tiled=False))
        return np.stack([np.frombuffer(part.tobytes(), array.dtype).reshape(array.shape) for part in parts])

    def any(self, flag: bool) -> bool:
        """Whether it is so in some process: what ends one of them must end all."""
        return bool(self.gathered(np.asarray(flag)).any())


@dataclass(frozen=True)
class Layout:
    """Where the rows of the processes are in divided arrays: each one's own, then rows of weight zero."""

    counts: tuple[int, ...]
    held: int  # by each process
    devices: int

    def positions(self, rows: Int[Array, " B"]) -> tuple[Int[Array, " C"], Bool[Array, " C"]]:
        """Of rows counted through all processes; and, as they are filled up for all devices, which of them count."""
        missing = -rows.shape[0] % self.devices
        counted = jnp.arange(rows.shape[0] + missing) < rows.shape[0]
        ends = np.cumsum(self.counts)
        process = jnp.searchsorted(jnp.asarray(ends, rows.dtype), rows, side="right")
        gaps = np.arange(len(ends)) * self.held - (ends - self.counts)
        return jnp.pad(rows + jnp.asarray(gaps, rows.dtype)[process], (0, missing)), counted

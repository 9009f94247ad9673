"""What the steps read: data that stay on the devices, or batches that are read ahead."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ._batches import Batches
from ._checkpoints import fingerprint
from ._compression import Statistics
from ._devices import Devices, Layout
from ._objectives import Batch, whole
from ._steps import Data, Stack

HASHED = 2**16  # rows at a time


@dataclass(frozen=True)
class Held:
    """All data, on the devices as long as the training lasts."""

    data: Data
    batch_size: int | None = None
    layout: Layout | None = None
    fingerprint: str = ""

    def chunk(self, step: int) -> Data:
        """What the chunk after so many steps reads."""
        del step  # always the same
        return self.data

    def close(self) -> None:
        """Nothing is open."""


class ReadAhead:
    """Batches, put together for whole chunks of steps on a thread, while the devices work on those before."""

    batch_size, layout = None, None
    ahead = 2  # chunks

    def __init__(self, batches: Batches, devices: Devices, dtype: Any, chunk: int):
        self.batches, self.devices, self.dtype, self.size = batches, devices, dtype, chunk
        self.wide = jax.config.jax_enable_x64  # type: ignore[attr-defined]  # threads do not inherit it
        self.num_data = devices.everywhere(jnp.asarray(sum(devices.counts(batches.num_rows)), dtype))
        self.thread = ThreadPoolExecutor(1)
        self.coming: deque[Future[Stack]] = deque()
        self.stacks: Iterator[tuple[np.ndarray, ...]] = iter(())
        self.step, self.current = -1, None

    @property
    def fingerprint(self) -> str:
        """Of some of the rows, and of what makes batches of them."""
        batches = self.batches
        facts = np.array([batches.num_rows, batches.size, batches.window, batches.seed])
        marks = self.devices.gathered(np.frombuffer(bytes.fromhex(fingerprint(facts, *batches.sample(1000))), np.uint8))
        return fingerprint(marks)

    def chunk(self, step: int) -> Stack:
        """What the chunk after so many steps reads; the same again if the step is the same."""
        if step != self.step or self.current is None:
            if not self.coming:
                self.stacks = self._stacks(step)
            while len(self.coming) <= self.ahead:
                self.coming.append(self.thread.submit(self._next))
            self.step, self.current = step, self.coming.popleft().result()
        return self.current

    def close(self) -> None:
        """Stop reading."""
        self.thread.shutdown(wait=True, cancel_futures=True)

    def _next(self) -> Stack:
        with jax.enable_x64(self.wide):
            x, y, weight = (self.devices.divided(part, axis=1) for part in next(self.stacks))
        return Stack(x, y, weight, self.num_data)

    def _stacks(self, step: int) -> Iterator[tuple[np.ndarray, ...]]:
        """Inputs (chunk, B, D), targets (chunk, B, P) and weights (chunk, B), filled up with rows of weight zero."""
        batches = self.batches.after(step, self.dtype)
        size, room = self.batches.size, self.devices.room(self.batches.size)
        weight = np.where(np.arange(room) < size, room / size, 0.0)
        weights = np.broadcast_to(weight, (self.size, room)).astype(self.dtype)
        while True:
            parts = (np.stack(part) for part in zip(*islice(batches, self.size), strict=True))
            yield *(np.pad(part, ((0, 0), (0, room - size), (0, 0)), mode="edge") for part in parts), weights


def held_rows(
    devices: Devices, numbers: tuple[np.ndarray, ...], dtype: Any, batch_size: int | None, hashed: bool
) -> Held:
    """Inputs (N, D), targets (N, P) and weights (N,) of this process, joined to those of the others."""
    counts = devices.counts(len(numbers[0]))
    drawn = None if batch_size is None or batch_size >= sum(counts) else batch_size
    mark = fingerprint_of_rows(devices, [part.astype(dtype) for part in numbers]) if hashed else ""
    if devices.mesh is None:
        return Held(whole(*(jax.device_put(part.astype(dtype, copy=False)) for part in numbers)), drawn, None, mark)
    layout = Layout(counts, devices.room(max(counts)), devices.count)
    x, y, weight = numbers
    total = devices.gathered(np.asarray(weight.sum())).sum()
    averaged = layout.held * len(counts) if drawn is None else sum(counts)  # rows, over which weights have mean one
    missing = layout.held - len(x)
    x, y = (np.concatenate([part, np.repeat(part[-1:], missing, axis=0)]) for part in (x, y))
    weight = np.concatenate([weight * (averaged / total), np.zeros(missing)])
    x, y, weight = (devices.divided(part.astype(dtype)) for part in (x, y, weight))
    return Held(Batch(x, y, weight, devices.everywhere(jnp.asarray(total, dtype))), drawn, layout, mark)


def held_sums(devices: Devices, data: Statistics) -> Held:
    """Sums over the data of this process, added to those of the others; their nodes divided among the devices."""
    data = total(devices, data)
    if devices.mesh is None:
        return Held(data, fingerprint=fingerprint(data))
    missing = -data.nodes.shape[0] % devices.count
    nodes, weights, targets = (
        devices.shared_out(np.concatenate([part, np.repeat(part[-1:] * factor, missing, axis=0)]))
        for part, factor in ((data.nodes, 1), (data.weights, 0), (data.targets, 0))
    )
    squares, num_data = devices.everywhere((data.squares, data.num_data))
    return Held(Statistics(nodes, weights, targets, squares, num_data), fingerprint=fingerprint(data))


def total(devices: Devices, data: Statistics) -> Statistics:
    """The sums of all processes added up: as if one had seen all data."""
    if not devices.several_processes:
        return data
    gathered = jax.tree.map(lambda leaf: devices.gathered(np.asarray(leaf)), data)
    parts = [jax.tree.map(lambda leaf, k=k: jnp.asarray(leaf[k]), gathered) for k in range(jax.process_count())]
    return reduce(Statistics.__add__, parts)


def fingerprint_of_rows(devices: Devices, parts: list[np.ndarray]) -> str:
    """Of the numbers in all rows, in their order; the same however they are divided among processes."""
    num = len(parts[0])
    start = sum(devices.counts(num)[: jax.process_index()]) if devices.several_processes else 0
    code = np.zeros((), np.uint64)
    for low in range(0, num, HASHED):
        rows = [part[low : low + HASHED].reshape(len(part[low : low + HASHED]), -1) for part in parts]
        words = np.concatenate(rows, axis=1).view(np.uint32).astype(np.uint64)
        place = np.arange(start + low, start + low + len(words), dtype=np.uint64)
        odd = np.cumprod(np.full(words.shape[1] + 1, 0x9E3779B97F4A7C15, np.uint64))
        mixed = words @ odd[1:] + place * odd[0]
        mixed ^= mixed >> np.uint64(32)
        mixed *= np.uint64(0xD6E8FEB86659FD93)
        code += np.sum(mixed ^ (mixed >> np.uint64(32)), dtype=np.uint64)
    return f"{int(np.sum(devices.gathered(code), dtype=np.uint64)):016x}"

"""Processes that a launcher started, perhaps on many machines, joined into one training."""

import atexit
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax

from ._devices import Devices

STEPS = ("SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE")  # of launchers that JAX knows: how many processes there are
TORCH = ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE")


class Processes(NamedTuple):
    """Which of how many processes this is."""

    index: int
    count: int

    def share(self, num_rows: int) -> slice:
        """Which of so many rows are this process's: as many as every other's, but for the last ones."""
        return Devices.of("all").share(num_rows)

    @property
    def first(self) -> bool:
        """Whether this is the one that writes files and speaks to the user."""
        return self.index == 0


def distribute(timeout: int = 100) -> Processes:
    """Join the processes that a launcher started into one, before anything else is done with JAX.

    `torchrun` and all that set its variables (MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE), Slurm's `srun` and Open
    MPI's `mpirun` are known. A process that was started by hand is alone: the same script serves both. A process that
    is not heard of for `timeout` seconds has ended for the others; one that ends by an error does not wait for them.

    !!! example

        >>> import numpy as np, latentforce as lf
        >>> processes = lf.distribute()
        >>> x = np.linspace(0.0, 1.0, 30)  # or a memory map, of which no more than the own rows is read
        >>> x = x[processes.share(len(x))]
        >>> model = lf.build("lfm-driven", x, np.sin(6 * x), num_frequencies=3, interval=(0.0, 1.0))
        >>> model = lf.fit(model, x, np.sin(6 * x), steps=10, devices="all").model
    """
    if not jax.distributed.is_initialized():
        given = _torch_style(os.environ)
        if given is not None or any(int(os.environ.get(name, "1")) > 1 for name in STEPS):
            jax.distributed.initialize(**given or {}, heartbeat_timeout_seconds=timeout)
            sys.excepthook = partial(_fail, sys.excepthook)
    return Processes(jax.process_index(), jax.process_count())


def abandon() -> None:
    """Make this process end without waiting for the others, which JAX would do, and then kill it."""
    atexit.register(_leave)  # runs before what was registered before it


def _leave() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


def _fail(tell: Callable[..., Any], *error: Any) -> None:
    tell(*error)
    abandon()


def _torch_style(environment: Mapping[str, str]) -> dict[str, Any] | None:
    """What `jax.distributed.initialize` wants, from the variables that torchrun sets; None where they are not there."""
    if any(name not in environment for name in TORCH) or int(environment["WORLD_SIZE"]) == 1:
        return None
    address, port, rank, count = (environment[name] for name in TORCH)
    taken = environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True"  # torchrun itself listens at its port
    given: dict[str, Any] = {"coordinator_address": f"{address}:{int(port) + taken}"}
    given |= {"num_processes": int(count), "process_id": int(rank)}
    if int(environment.get("LOCAL_WORLD_SIZE", "1")) > 1:  # several on this machine: a device each
        given["local_device_ids"] = [int(environment["LOCAL_RANK"])]
    return given

"""Seconds of whole training steps, compiled before the clock starts."""

import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from ..depth._model import Model
from ..inference._objectives import whole
from ..inference._steps import Plan, adam, advance, begin
from ..inference._training import default_objective


def step_timer(model: Model, x: np.ndarray, y: np.ndarray, num_samples: int, steps: int) -> Callable[[], float]:
    """A function that takes some training steps on all rows by Adam, waits for them, and gives the seconds for each.

    Call it under the `jax.enable_x64` that made the model, and with what it gives again: states go on.
    """
    plan = Plan(
        objective=default_objective(model, num_samples),
        optimizer=adam(0.01, None, textbook=True),
        batch_size=None,
        natural=None,
        train_filters=model.train_filters,
        chunk=steps,
    )
    state, fixed = begin(model, plan)
    columns = (np.reshape(part, (len(y), -1)) for part in (x, y))
    batch, key = whole(*(jnp.asarray(part, state.scale.dtype) for part in columns)), jax.random.key(0)
    compiled = advance.lower(state, fixed, batch, key, plan, 1_000_000).compile()

    def run() -> float:
        nonlocal state
        start = time.perf_counter()
        state, _ = jax.block_until_ready(compiled(state, fixed, batch, key))
        return (time.perf_counter() - start) / (plan.chunk + 1)  # one more is tried than taken

    return run

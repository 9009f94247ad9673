"""Many models of one structure trained and judged at once: repeated draws of the data in one compiled program."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from .._linalg import precise
from ..depth._model import Model
from ..inference._objectives import Batch, whole
from ..inference._prediction import Prediction, fixed_normals
from ..inference._scores import Scores, scores
from ..inference._steps import Plan, advance, assemble, begin
from ..inference._training import default_objective


def train_together(
    models: list[Model],
    data: list[tuple[np.ndarray, np.ndarray]],
    optimizer: optax.GradientTransformation,
    steps: int,
    num_samples: int,
    chunk: int = 500,
) -> tuple[Model, np.ndarray]:
    """The trained models, stacked, and the objective of each at each step (S, steps).

    `fit` without its safety net: a model that fails keeps its last good state.
    """
    plan = Plan(
        objective=default_objective(models[0], num_samples),
        optimizer=optimizer,
        batch_size=None,
        natural=None,
        train_filters=models[0].train_filters,
        chunk=min(chunk, steps),
    )
    dtype = models[0].layers[0].posterior.mean.dtype
    batches = _stack([whole(jnp.asarray(x[:, None], dtype), jnp.asarray(y[:, None], dtype)) for x, y in data])
    begun = [begin(model, plan) for model in models]
    states, fixed = _stack([state for state, _ in begun]), _stack([rest for _, rest in begun])
    keys = jax.random.split(jax.random.key(0), len(models))
    objectives = []
    for _ in range(-(-steps // plan.chunk)):
        states, (_, objective, _) = _advance(states, fixed, batches, keys, plan, steps)
        objectives.append(np.asarray(objective)[:, : plan.chunk])
    return jax.vmap(assemble)(states, fixed), np.concatenate(objectives, axis=1)[:, :steps]


def judge(models: Model, data: list[tuple[np.ndarray, np.ndarray]], num_samples: int) -> Scores:
    """Scores of stacked models on test data, one of each for each model."""
    dtype = models.layers[0].posterior.mean.dtype
    first = jax.tree.map(lambda leaf: leaf[0], models)
    normals, _ = fixed_normals(first, num_samples, 0)
    x, y = (jnp.asarray(np.stack(part), dtype)[..., None] for part in zip(*data, strict=True))
    return _judge(models, x, y, normals)


@partial(jax.jit, static_argnames=("plan", "steps"))
def _advance(states: Any, fixed: Any, batches: Batch, keys: Array, plan: Plan, steps: int) -> Any:
    return jax.vmap(lambda state, rest, batch, key: advance(state, rest, batch, key, plan, steps))(
        states, fixed, batches, keys
    )


@precise
def _judge(models: Model, x: Array, y: Array, normals: tuple[Array, ...]) -> Scores:
    def one(model: Model, x: Array, y: Array) -> Scores:
        return scores(Prediction(*model.moments(x, normals), model.likelihood), y)

    return jax.vmap(one)(models, x, y)


def _stack(trees: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)

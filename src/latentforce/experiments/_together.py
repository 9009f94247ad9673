"""Many models of one structure trained and judged at once: repeated draws of the data in one compiled program."""

from collections.abc import Callable
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
from ..inference._prediction import Prediction, fixed_normals, mixed
from ..inference._scores import Scores, scores
from ..inference._steps import Plan, advance, assemble, begin, dtype_of
from ..inference._training import default_objective


def train_together(
    models: list[Model],
    data: list[tuple[np.ndarray, np.ndarray]],
    optimizer: optax.GradientTransformation,
    steps: int,
    num_samples: int,
    batch_size: int | None = None,
    chunk: int = 500,
    callback: Callable[[np.ndarray, Model], None] | None = None,
    seed: int = 0,
    mirrored: bool = True,
) -> tuple[Model, np.ndarray]:
    """The trained models, stacked, and the objective of each at each step (S, steps).

    All data sets (x (N,) or (N, D), y (N,)) have the same shape, all models one structure. `fit` without its safety
    net: a model that fails keeps its last good state. After each chunk `callback` sees how many steps each model has
    done (S,), which tells that, and the models, stacked. Draws are `mirrored`, as the library's are, or as in the
    paper.
    """
    plan = Plan(
        objective=default_objective(models[0], num_samples, mirrored),
        optimizer=optimizer,
        batch_size=batch_size,
        natural=None,
        train_filters=models[0].train_filters,
        chunk=min(chunk, steps),
    )
    dtype = dtype_of(models[0])
    batches = jax.vmap(whole)(*_columns(data, dtype))
    begun = [begin(model, plan) for model in models]
    states, fixed = _stack([state for state, _ in begun]), _stack([rest for _, rest in begun])
    keys = jax.random.split(jax.random.key(seed), len(models))
    objectives = []
    for _ in range(-(-steps // plan.chunk)):
        states, (_, objective, _) = _advance(states, fixed, batches, keys, plan, steps)
        objectives.append(np.asarray(objective)[:, : plan.chunk])
        now = _assemble(states, fixed)
        if callback is not None:
            callback(np.asarray(states.step), now)
    return now, np.concatenate(objectives, axis=1)[:, :steps]


BLOCK = 1000  # rows whose samples are predicted at once


def judge(models: Model, data: list[tuple[np.ndarray, np.ndarray]], num_samples: int, members: int = 1) -> Scores:
    """Scores of stacked models on test data, one of each for so many `members`, neighbours, that predict together."""
    first = jax.tree.map(lambda leaf: leaf[0], models)
    normals, _ = fixed_normals(first, num_samples, 0)
    groups = jax.tree.map(lambda leaf: leaf.reshape(-1, members, *leaf.shape[1:]), models)
    return _judge(groups, *_columns(data, dtype_of(models)), normals)


def _columns(data: list[tuple[np.ndarray, np.ndarray]], dtype: Any) -> tuple[Array, Array]:
    """Inputs (S, N, D) and targets (S, N, 1)."""
    x, y = (np.stack(part) for part in zip(*data, strict=True))
    return jnp.asarray(x.reshape(*y.shape, -1), dtype), jnp.asarray(y[..., None], dtype)


@partial(jax.jit, static_argnames=("plan", "steps"))
def _advance(states: Any, fixed: Any, batches: Batch, keys: Array, plan: Plan, steps: int) -> Any:
    """Of all models at once; one after the other on a CPU, which has no more to give than one of them takes."""
    jobs = states, fixed, batches, keys
    if jax.default_backend() == "cpu":
        return jax.lax.map(lambda job: advance(*job, plan, steps), jobs)
    return jax.vmap(lambda *job: advance(*job, plan, steps))(*jobs)


_assemble = jax.jit(jax.vmap(assemble))


@precise
def _judge(models: Model, x: Array, y: Array, normals: tuple[Array, ...]) -> Scores:
    def one(job: tuple[Model, Array, Array]) -> Scores:
        group, x, y = job
        means, variances = jax.lax.map(lambda member: _moments(member, x, normals), group)
        noises = [jax.tree.map(lambda leaf, i=i: leaf[i], group.likelihood) for i in range(len(means))]
        return scores(mixed([Prediction(*each) for each in zip(means, variances, noises, strict=True)]), y)

    return jax.lax.map(one, (models, x, y))  # one after the other: all samples of all rows of all models are too many


def _moments(model: Model, x: Array, normals: tuple[Array, ...]) -> tuple[Array, Array]:
    """Means and variances (S, N, P), some rows at a time: the features of all samples of many rows are gigabytes."""
    num, size = len(x), min(len(x), BLOCK)
    blocks = jnp.resize(x, (-(-num // size), size, x.shape[1]))  # repeats the first rows where the last block has none
    means, variances = (
        jnp.concatenate(part, axis=1) for part in jax.lax.map(lambda rows: model.moments(rows, normals), blocks)
    )
    return means[:, :num], variances[:, :num]


def _stack(trees: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)

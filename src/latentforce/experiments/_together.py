"""Many models of one structure trained and judged at once: repeated draws of the data in one compiled program."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .._linalg import precise
from ..depth._model import Model
from ..inference._objectives import Batch, whole
from ..inference._prediction import Prediction, fixed_normals
from ..inference._steps import Plan, advance, assemble, begin
from ..inference._training import default_objective


class Scores(NamedTuple):
    """Of each model: test RMSE, negative log likelihood for each point, coverage of 95 % intervals, final objective."""

    rmse: np.ndarray
    nmll: np.ndarray
    coverage: np.ndarray
    objective: np.ndarray

    def row(self) -> str:
        """Means and standard errors."""

        def show(values: np.ndarray) -> str:
            return f"{values.mean():8.3f} ± {values.std(ddof=1) / len(values) ** 0.5:.3f}"

        return f"{show(self.rmse)}   {show(self.nmll)}   {self.coverage.mean():6.1%}   {show(self.objective)}"


def train_together(
    models: list[Model],
    data: list[tuple[np.ndarray, np.ndarray]],
    *,
    steps: int,
    num_samples: int,
    learning_rate: float = 0.01,
    decay: bool = False,
    natural: float | None = None,
    chunk: int = 500,
) -> tuple[Model, np.ndarray]:
    """The trained models, stacked, and the objective of each at each step (S, steps).

    `fit` without its safety net: a model that fails keeps its last good state.
    """
    plan = Plan(
        objective=default_objective(models[0], num_samples),
        optimizer=None,
        learning_rate=learning_rate,
        cosine_steps=steps if decay else None,
        batch_size=None,
        natural=natural,
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


def judge(models: Model, data: list[tuple[np.ndarray, np.ndarray]], objective: np.ndarray, num_samples: int) -> Scores:
    """Scores of stacked models on test data."""
    dtype = models.layers[0].posterior.mean.dtype
    first = jax.tree.map(lambda leaf: leaf[0], models)
    normals, _ = fixed_normals(first, num_samples, 0)
    x, y = (jnp.asarray(np.stack(part), dtype)[..., None] for part in zip(*data, strict=True))
    rmse, nmll, coverage = _judge(models, x, y, normals)
    return Scores(np.asarray(rmse), np.asarray(nmll), np.asarray(coverage), objective[:, -100:].mean(axis=1))


@partial(jax.jit, static_argnames=("plan", "steps"))
def _advance(states: Any, fixed: Any, batches: Batch, keys: Array, plan: Plan, steps: int) -> Any:
    return jax.vmap(lambda state, rest, batch, key: advance(state, rest, batch, key, plan, steps))(
        states, fixed, batches, keys
    )


@precise
def _judge(models: Model, x: Array, y: Array, normals: tuple[Array, ...]) -> tuple[Array, Array, Array]:
    def one(model: Model, x: Array, y: Array) -> tuple[Array, Array, Array]:
        prediction = Prediction(*model.moments(x, normals), model.likelihood)
        rank = prediction.cdf(y)
        return (
            jnp.sqrt(jnp.mean((prediction.mean - y) ** 2)),
            -jnp.mean(prediction.log_density(y)),
            jnp.mean((rank > 0.025) & (rank < 0.975)),
        )

    return jax.vmap(one)(models, x, y)


def _stack(trees: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)

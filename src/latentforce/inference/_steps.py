"""One training step, compiled: gradients, the optimiser, natural gradients, and checks that all stays finite."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax import Array
from jaxtyping import Bool, Float, Int, PRNGKeyArray

from .._linalg import QUICK, precise
from .._parameters import constrain, mask, unconstrain
from ..depth._model import Model
from ..depth._posteriors import AbstractPosterior
from ..dynamics._filters import AbstractFilter
from ._compression import Statistics
from ._devices import Layout
from ._exact import ExactModel
from ._natural import natural_step
from ._objectives import Batch

Objective = Callable[..., Float[Array, ""]]
AnyModel = TypeVar("AnyModel", bound=Model | ExactModel)


@dataclass(frozen=True)
class Plan:
    """Everything about a step that is known when it is compiled."""

    objective: Objective
    optimizer: optax.GradientTransformation
    batch_size: int | None
    natural: float | None
    train_filters: int | None
    chunk: int
    layout: Layout | None = None  # of data that are divided among devices
    exact: bool = False  # whether equal parameters have equal objectives, so that the best can be told


@cache
def adam(
    learning_rate: float | optax.Schedule, cosine_steps: int | None, textbook: bool = False
) -> optax.GradientTransformation:
    """Adam, whose rate falls along a cosine of so many steps; the same object for the same numbers, so that compiled
    steps are found again.

    The gradients of a bound fall by orders of magnitude as the noise is learned. Adam must forget the large ones of the
    beginning, or its steps stay small for thousands of steps: hence the short memory of their size, 100 steps. The
    gradients themselves are averaged over a 200th of the steps (10 to 50): where noise is small the bound is so much
    steeper in some directions than in others that long trainings get nowhere without momentum. `textbook` is Adam as it
    was published.
    """
    rate = learning_rate
    if cosine_steps is not None and not callable(rate):
        rate = optax.cosine_decay_schedule(rate, cosine_steps)
    if textbook:
        return optax.flatten(optax.adam(rate))
    averaged = min(max((cosine_steps or 0) / 200, 10), 50)
    return optax.flatten(optax.adam(rate, b1=1 - 1 / averaged, b2=0.99))


class Stack(NamedTuple):
    """The batches of one chunk of steps, each a row of these arrays, and the size of the whole data."""

    x: Float[Array, "chunk B D"]
    y: Float[Array, "chunk B P"]
    weight: Float[Array, "chunk B"]
    num_data: Float[Array, ""]


Data = Batch | Stack | Statistics  # what a chunk of steps reads


class State(NamedTuple):
    """What a step changes."""

    free: Any  # the trained parameters as free numbers; None where there is nothing to train
    natural: AbstractPosterior | None  # q of the last layer, where it goes by natural gradients
    optimizer: Any
    filters: Any  # the optimiser's state for the ODEs' coefficients, where they start late
    step: Int[Array, ""]
    scale: Float[Array, ""]  # of all steps: smaller after a failure
    best: tuple[Float[Array, ""], Any] | None = None  # an objective that is known exactly, and `free` where it was best


@partial(precise, static_argnames="plan", compiler_options=QUICK)
def begin(model: AnyModel, plan: Plan) -> tuple[State, AnyModel]:
    """The state before the first step, and all that is not trained.

    Compiled, as `assembled` is: XLA would take longer over its operations one by one.
    """
    wanted = is_trained(model, plan.train_filters)
    natural = None
    if plan.natural is not None and isinstance(model, Model):
        natural = model.layers[-1].posterior
        wanted = eqx.tree_at(lambda m: m.layers[-1].posterior, wanted, jax.tree.map(lambda _: False, natural))
    free, fixed = eqx.partition(unconstrain(model), wanted)
    late, early = eqx.partition(free, mask(free, lambda _, owners: _in_filter(owners)))
    optimizer = optax.with_extra_args_support(plan.optimizer)
    delayed = plan.train_filters is not None and plan.train_filters > 0
    state = State(
        free=free,
        natural=natural,
        optimizer=_strong(optimizer.init(early if delayed else free)),
        filters=_strong(optimizer.init(late)) if delayed else None,
        step=jnp.zeros((), int),
        scale=jnp.ones((), dtype_of(model)),
        best=(jnp.asarray(-jnp.inf, dtype_of(model)), free) if plan.exact else None,
    )
    return state, fixed


def _strong(tree: Any) -> Any:
    """Numbers of the dtype they have: an optimiser that starts with Python's numbers would be compiled twice."""
    return jax.tree.map(lambda leaf: jax.lax.convert_element_type(leaf, jnp.asarray(leaf).dtype), tree)


def best(state: State) -> State:
    """With the best parameters seen, where these can be told: the last step of a line search may lead far away."""
    return state if state.best is None else state._replace(free=state.best[1])


def assemble(state: State, fixed: AnyModel) -> AnyModel:
    """The model that a state stands for."""
    model = constrain(eqx.combine(state.free, fixed))
    if state.natural is not None:
        model = eqx.tree_at(lambda m: m.layers[-1].posterior, model, state.natural)
    return model


assembled = precise(assemble, compiler_options=QUICK)


def _advance(
    state: State, fixed: Model | ExactModel, data: Data, key: PRNGKeyArray, plan: Plan, steps: int
) -> tuple[State, tuple[Bool[Array, ""], Float[Array, " chunk"], Float[Array, " chunk"]]]:
    """A chunk of steps, up to `steps` in all, after which they may be twice as large again if they were made smaller;
    whether one of them failed; objectives and gradient norms.

    One step more than the chunk has is tried and not taken: it tells whether the last one taken led to a good place.
    """

    def attempt(carry: tuple[State, Array], wanted: Array) -> tuple[tuple[State, Array], tuple[Array, Array]]:
        state, failed = carry
        new, objective, norm = _step(state, fixed, data, jax.random.fold_in(key, state.step), plan)
        wanted = wanted & (state.step < steps)
        here = jnp.isfinite(objective) & jnp.isfinite(norm)
        there = _finite((new.free, assemble(new, fixed)))
        failed = failed | ~here | (wanted & ~there)
        go = wanted & ~failed
        kept = jax.tree.map(lambda new, old: jnp.where(go, new, old), new, state)
        return (kept._replace(best=_better(state, objective, here)), failed), (objective, norm)

    wanted = jnp.arange(plan.chunk + 1) < plan.chunk
    (state, failed), records = jax.lax.scan(attempt, (state, jnp.zeros((), bool)), wanted)
    return state._replace(scale=jnp.minimum(2 * state.scale, 1.0)), (failed, *records)


def _better(state: State, objective: Float[Array, ""], known: Bool[Array, ""]) -> tuple[Array, Any] | None:
    """The best so far: this state, or an earlier one."""
    if state.best is None:
        return None
    here = known & (objective > state.best[0])
    return jax.tree.map(lambda new, old: jnp.where(here, new, old), (objective, state.free), state.best)


advance = precise(_advance, static_argnames=("plan", "steps"))
advance_soon = precise(_advance, static_argnames=("plan", "steps"), compiler_options=QUICK)
"""The same, compiled in less time."""

SHORT = 1e11  # rows times trained numbers times steps: five to forty seconds on two cores


def program(state: State, data: Data, plan: Plan, steps: int) -> Callable:
    """`advance` or, where training is over before its better program would have paid, `advance_soon`."""
    rows = plan.batch_size or (data.nodes.shape[0] if isinstance(data, Statistics) else data.x.shape[-2])
    short = rows * steps * sum(leaf.size for leaf in jax.tree.leaves(state.free)) < SHORT
    return advance_soon if short else advance


def _step(state: State, fixed: Any, data: Data, key: PRNGKeyArray, plan: Plan) -> tuple[State, Array, Array]:
    for_batch, for_model = jax.random.split(key)
    batch = _batch(data, for_batch, state.step, plan)

    natural = state.natural
    moments = None if natural is None else natural.moments()

    def loss(free: Any, moments: Any) -> Float[Array, ""]:
        q = None if natural is None else natural.with_moments(*moments)
        model = assemble(state._replace(free=free, natural=q), fixed)
        return -plan.objective(model, batch, for_model)

    value, (gradients, by_moments) = jax.value_and_grad(loss, argnums=(0, 1))(state.free, moments)
    if natural is not None and plan.natural is not None:
        uphill = jax.tree.map(lambda g: -g * batch.num_data, by_moments)  # of the bound on all data
        natural = natural_step(natural, uphill, plan.natural * state.scale)
    optimizer = optax.with_extra_args_support(plan.optimizer)
    extra = {"value": value, "grad": gradients, "value_fn": lambda free: loss(free, moments)}
    if state.filters is None:
        updates, memory = _update(optimizer, gradients, state.optimizer, state.free, **extra)
        late_memory = None
    else:
        updates, memory, late_memory = _delayed(optimizer, gradients, state, plan)
    free = jax.tree.map(lambda p, u: p + (state.scale * u).astype(p.dtype), state.free, updates)
    new = State(free, natural, memory, late_memory, state.step + 1, state.scale, state.best)
    return new, -value, optax.tree.norm(gradients)


def _delayed(optimizer: Any, gradients: Any, state: State, plan: Plan) -> tuple[Any, Any, Any]:
    """Updates where the ODEs' coefficients, with an optimiser of their own, rest for `train_filters` steps."""

    def split(tree: Any) -> tuple[Any, Any]:
        return eqx.partition(tree, mask(tree, lambda _, owners: _in_filter(owners)))

    (late_gradients, early_gradients), (late, early) = split(gradients), split(state.free)
    try:
        early_updates, memory = _update(optimizer, early_gradients, state.optimizer, early)
    except TypeError as error:
        raise ValueError(
            "`train_filters` must be 0 or None with an optimizer that evaluates the objective itself, such as L-BFGS "
            f"(which estimators take for one layer and Gaussian noise), got {plan.train_filters}."
        ) from error
    late_updates, late_memory = _update(optimizer, late_gradients, state.filters, late)
    begun = state.step >= (plan.train_filters or 0)
    late_updates = jax.tree.map(lambda u: jnp.where(begun, u, jnp.zeros_like(u)), late_updates)
    late_memory = jax.tree.map(lambda new, old: jnp.where(begun, new, old), late_memory, state.filters)
    return eqx.combine(early_updates, late_updates), memory, late_memory


def _update(optimizer: Any, gradients: Any, memory: Any, free: Any, **extra: Any) -> tuple[Any, Any]:
    """Optax mixes dtypes as JAX does by default; whoever forbids that for their own code can still train."""
    with jax.numpy_dtype_promotion("standard"):
        return optimizer.update(gradients, memory, free, **extra)


def _batch(data: Data, key: PRNGKeyArray, step: Int[Array, ""], plan: Plan) -> Batch | Statistics:
    """What one step reads: all of it, the batch of this step, or rows drawn from all."""
    if isinstance(data, Stack):
        x, y, weight = (part[step % plan.chunk] for part in data[:3])
        return Batch(x, y, weight, data.num_data)
    if plan.batch_size is None or isinstance(data, Statistics):
        return data
    num_rows = data.x.shape[0] if plan.layout is None else sum(plan.layout.counts)
    rows = jax.random.randint(key, (plan.batch_size,), 0, num_rows)
    if plan.layout is None:
        return Batch(data.x[rows], data.y[rows], data.weight[rows], data.num_data)
    rows, counted = plan.layout.positions(rows)
    share = counted.astype(data.weight.dtype) * (rows.shape[0] / plan.batch_size)
    return Batch(data.x[rows], data.y[rows], data.weight[rows] * share, data.num_data)


def is_trained(model: AnyModel, train_filters: int | None) -> AnyModel:
    """A mask of what is trained."""
    return mask(model, lambda role, owners: role.trainable and (train_filters is not None or not _in_filter(owners)))


def is_hyperparameter(model: AnyModel) -> AnyModel:
    """A mask of what can be trained, but for the posteriors."""
    return mask(
        model, lambda role, owners: role.trainable and not any(isinstance(o, AbstractPosterior) for o in owners)
    )


def _in_filter(owners: list[Any]) -> bool:
    return any(isinstance(owner, AbstractFilter) for owner in owners)


def _finite(tree: Any) -> Bool[Array, ""]:
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree)]))


def dtype_of(model: Any) -> Any:
    """The dtype of the model's numbers."""
    return jnp.result_type(*[leaf for leaf in jax.tree.leaves(model) if eqx.is_inexact_array(leaf)])

"""The training loop: one compiled step, scanned in chunks, for every model and every objective."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Generic, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array
from jaxtyping import Bool, Float, Int, PRNGKeyArray

from .. import _checks
from .._checks import Numbers
from .._data import matrix
from .._linalg import precise
from .._parameters import constrain, mask, unconstrain
from ..depth._model import Model
from ..depth._posteriors import AbstractPosterior
from ..dynamics._filters import AbstractFilter
from ._exact import ExactModel, log_marginal_likelihood
from ._natural import natural_gradients, natural_step
from ._objectives import Batch, elbo, whole
from ._prediction import mean_log_density

Objective = Callable[..., Float[Array, ""]]
AnyModel = TypeVar("AnyModel", Model, ExactModel)


class TrainingError(RuntimeError):
    """Training could not go on. `model` is the last good one, `history` what happened until then."""

    def __init__(self, message: str, model: Any, history: "History"):
        super().__init__(message)
        self.model, self.history = model, history


@dataclass
class History:
    """What happened: one entry for each step, and parameters and held-out scores once for each chunk of steps."""

    objective: list[float] = field(default_factory=list)  # nats for each row, to be maximised
    gradient_norm: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)  # since the start, at the end of each chunk
    steps: list[int] = field(default_factory=list)  # done at the end of each chunk
    parameters: list[dict[str, np.ndarray]] = field(default_factory=list)  # all but the posteriors'
    held_out: list[float] = field(default_factory=list)  # log density for each held-out row
    retries: int = 0
    stopped: str = "all steps done"


class Progress(NamedTuple):
    """What a callback sees after each chunk of steps. To stop the training it returns True."""

    step: int
    total: int
    objective: float
    seconds: float
    model: Any
    history: History


@dataclass(frozen=True)
class Fit(Generic[AnyModel]):
    """A trained model and how it came about."""

    model: AnyModel
    history: History


@dataclass(frozen=True)
class Plan:
    """Everything about a step that is known when it is compiled."""

    objective: Objective
    optimizer: optax.GradientTransformation | None
    learning_rate: float | Callable[[Array], Array]
    cosine_steps: int | None
    num_samples: int
    batch_size: int | None
    natural: float | None
    train_filters: int | None
    chunk: int

    def transformation(self) -> optax.GradientTransformationExtraArgs:
        """The optimiser: Adam with the learning-rate schedule, or the one handed over."""
        if self.optimizer is not None:
            return optax.with_extra_args_support(self.optimizer)
        rate = self.learning_rate
        if self.cosine_steps is not None and isinstance(rate, float):
            rate = optax.cosine_decay_schedule(rate, self.cosine_steps)
        return optax.with_extra_args_support(optax.flatten(optax.adam(rate)))


class State(NamedTuple):
    """What a step changes."""

    free: Any  # the trained parameters as free numbers; None where there is nothing to train
    natural: AbstractPosterior | None  # q of the last layer, where it goes by natural gradients
    optimizer: Any
    filters: Any  # the optimiser's state for the ODEs' coefficients, where they start late
    step: Int[Array, ""]
    scale: Float[Array, ""]  # of all steps: smaller after a failure


def fit(
    model: AnyModel,
    x: Numbers,
    y: Numbers,
    *,
    steps: int = 1000,
    objective: Objective | None = None,
    learning_rate: float | Callable[[Array], Array] = 0.01,
    decay: bool = False,
    optimizer: optax.GradientTransformation | None = None,
    num_samples: int = 5,
    batch_size: int | None = None,
    natural: float | None = None,
    weight: Numbers | None = None,
    held_out: tuple[Numbers, Numbers] | None = None,
    patience: int = 10,
    callback: Callable[[Progress], bool | None] | None = None,
    chunk: int = 100,
    seed: int = 0,
) -> Fit[AnyModel]:
    """Train a model by maximising an objective; deterministic given `seed`.

    **Arguments:**

    - `x` (N, D) or (N,), `y` (N, P) or (N,): data; NaN in `y` means not observed. `weight` (N,): repetitions of rows.
    - `objective`: a function of (model, batch, key); default `elbo` with `num_samples` draws, for an exact model
      `log_marginal_likelihood`. `collapsed_bound` and `importance_weighted_bound` are others.
    - `learning_rate`: a number or an Optax schedule for Adam; `decay=True` lets it fall to zero along a cosine.
    - `optimizer`: any Optax transformation instead, such as `optax.lbfgs()` for deterministic objectives.
    - `batch_size`: rows drawn for each step (default: all).
    - `natural`: size of natural-gradient steps for q of the last layer (1 is exact for one layer and Gaussian noise);
      None trains it like all else.
    - `held_out`: `(x, y)` to stop early on: after `patience` chunks without a better log density; the best is kept.
    - `callback`: called after every chunk of `chunk` steps with a `Progress`; stops the training by returning True.

    Every step is checked: where the objective, a gradient or a parameter is not finite, training goes back to the
    last good chunk and on with smaller steps, and after several attempts stops with a `TrainingError`.

    !!! example

        >>> import jax.numpy as jnp, latentforce as lf
        >>> x = jnp.linspace(0.0, 1.0, 30)
        >>> model = lf.build("lfm-driven", x, jnp.sin(6 * x), num_frequencies=5)
        >>> fitted = lf.fit(model, x, jnp.sin(6 * x), steps=100)
        >>> len(fitted.history.objective), fitted.history.objective[-1] > fitted.history.objective[0]
        (100, True)
    """
    steps, chunk = _checks.count("steps", steps), min(_checks.count("chunk", chunk), steps)
    data = _data(model, x, y, weight)
    rows = data.x.shape[0]
    plan = Plan(
        objective=objective or _default_objective(model, num_samples),
        optimizer=optimizer,
        learning_rate=learning_rate,
        cosine_steps=steps if decay else None,
        num_samples=_checks.count("num_samples", num_samples),
        batch_size=None if batch_size is None or batch_size >= rows else _checks.count("batch_size", batch_size),
        natural=natural,
        train_filters=model.train_filters,
        chunk=chunk,
    )
    return _Loop(model, plan, data, steps, held_out, patience, callback, seed).run()


class _Loop(Generic[AnyModel]):
    """One call of `fit`: the host's side of the loop."""

    attempts = 8

    def __init__(
        self,
        model: AnyModel,
        plan: Plan,
        data: Batch,
        steps: int,
        held_out: tuple[Numbers, Numbers] | None,
        patience: int,
        callback: Callable[[Progress], bool | None] | None,
        seed: int,
    ):
        self.plan, self.data, self.steps, self.patience, self.callback = plan, data, steps, patience, callback
        self.held_out = None if held_out is None else _data(model, *held_out, None)
        self.key = jax.random.key(seed)
        self.state, self.fixed = begin(model, plan)
        self.history, self.started, self.done = History(), time.perf_counter(), 0
        self.best: tuple[float, AnyModel, int] | None = None

    @property
    def model(self) -> AnyModel:
        return assemble(self.state, self.fixed)

    def run(self) -> Fit[AnyModel]:
        failures = 0
        while self.done < self.steps:
            state, (failed, objective, norm) = advance(
                self.state, self.fixed, self.data, jax.random.fold_in(self.key, failures), self.plan, self.steps
            )
            if bool(failed):
                failures += 1
                self._retry(failures, np.asarray(objective))
                continue
            count = min(self.plan.chunk, self.steps - self.done)
            self.state, self.done = state._replace(scale=jnp.minimum(2 * state.scale, 1.0)), self.done + count
            self._record(np.asarray(objective)[:count], np.asarray(norm)[:count])
            if self._enough():
                break
        model = self.model if self.best is None else self.best[1]
        return Fit(model, self.history)

    def _retry(self, failures: int, objective: np.ndarray) -> None:
        self.history.retries += 1
        at_start = self.done == 0 and not np.isfinite(objective[0])
        if at_start or failures >= self.attempts:
            where = "at the start" if at_start else f"after step {self.done}, also with steps {4**failures} times smaller"
            raise TrainingError(
                f"The objective or its gradient is not finite {where}. Usual causes: targets or inputs that are not "
                "scaled to the order of one, a constant column divided by its deviation, a learning rate that is too "
                "large, float32 where float64 is needed (jax.enable_x64). The error's `model` is the last good one.",
                self.model,
                self.history,
            )
        self.state = self.state._replace(scale=self.state.scale / 4)

    def _record(self, objective: np.ndarray, norm: np.ndarray) -> None:
        history = self.history
        history.objective += objective.tolist()
        history.gradient_norm += norm.tolist()
        history.seconds.append(time.perf_counter() - self.started)
        history.steps.append(self.done)
        history.parameters.append(hyperparameters(self.model))

    def _enough(self) -> bool:
        if self.held_out is not None:
            score = float(mean_log_density(self.model, self.held_out.x, self.held_out.y))
            self.history.held_out.append(score)
            if self.best is None or score > self.best[0]:
                self.best = (score, self.model, len(self.history.held_out))
            elif len(self.history.held_out) - self.best[2] >= self.patience:
                self.history.stopped = f"no better on held-out data since step {self.best[2] * self.plan.chunk}"
                return True
        if self.callback is not None:
            history = self.history
            progress = Progress(
                self.done, self.steps, history.objective[-1], history.seconds[-1], self.model, history
            )
            if self.callback(progress):
                history.stopped = "stopped by the callback"
                return True
        return False


def begin(model: AnyModel, plan: Plan) -> tuple[State, AnyModel]:
    """The state before the first step, and all that is not trained."""
    wanted = mask(model, lambda role, owners: role.trainable and (plan.train_filters is not None or not _in_filter(owners)))
    natural = None
    if plan.natural is not None:
        natural = model.layers[-1].posterior
        wanted = eqx.tree_at(lambda m: m.layers[-1].posterior, wanted, jax.tree.map(lambda _: False, natural))
    free, fixed = eqx.partition(unconstrain(model), wanted)
    late, early = eqx.partition(free, mask(free, lambda _, owners: _in_filter(owners)))
    optimizer = plan.transformation()
    delayed = plan.train_filters is not None and plan.train_filters > 0
    state = State(
        free=free,
        natural=natural,
        optimizer=optimizer.init(early if delayed else free),
        filters=optimizer.init(late) if delayed else None,
        step=jnp.zeros((), int),
        scale=jnp.ones((), _dtype(model)),
    )
    return state, fixed


def assemble(state: State, fixed: AnyModel) -> AnyModel:
    """The model that a state stands for."""
    model = constrain(eqx.combine(state.free, fixed))
    if state.natural is not None:
        model = eqx.tree_at(lambda m: m.layers[-1].posterior, model, state.natural)
    return model


@partial(precise, static_argnames=("plan", "steps"))
def advance(
    state: State, fixed: AnyModel, data: Batch, key: PRNGKeyArray, plan: Plan, steps: int
) -> tuple[State, tuple[Bool[Array, ""], Float[Array, " chunk"], Float[Array, " chunk"]]]:
    """A chunk of steps, up to `steps` in all; whether one of them failed; objectives and gradient norms."""

    def attempt(carry: tuple[State, Array], _: None) -> tuple[tuple[State, Array], tuple[Array, Array]]:
        state, failed = carry
        new, objective, norm = _step(state, fixed, data, jax.random.fold_in(key, state.step), plan)
        fine = jnp.isfinite(objective) & jnp.isfinite(norm) & _finite((new.free, new.natural))
        go = fine & ~failed & (state.step < steps)
        state = jax.tree.map(lambda new, old: jnp.where(go, new, old), new, state)
        return (state, failed | (~fine & (state.step < steps))), (objective, norm)

    (state, failed), records = jax.lax.scan(attempt, (state, jnp.zeros((), bool)), None, length=plan.chunk)
    return state, (failed, *records)


def _step(state: State, fixed: Any, data: Batch, key: PRNGKeyArray, plan: Plan) -> tuple[State, Array, Array]:
    for_batch, for_model = jax.random.split(key)
    batch = _draw(data, for_batch, plan.batch_size)

    def loss(free: Any, natural: Any) -> Float[Array, ""]:
        model = assemble(state._replace(free=free, natural=natural), fixed)
        return -plan.objective(model, batch, for_model)

    natural = state.natural
    value, gradients = jax.value_and_grad(loss)(state.free, natural)
    if natural is not None and plan.natural is not None:
        _, by_moments = natural_gradients(lambda q: -loss(state.free, q) * batch.num_data, natural)
        natural = natural_step(natural, by_moments, plan.natural * state.scale)
    optimizer = plan.transformation()
    extra = {"value": value, "grad": gradients, "value_fn": lambda free: loss(free, state.natural)}
    if state.filters is None:
        updates, memory = _update(optimizer, gradients, state.optimizer, state.free, **extra)
        late_memory = None
    else:
        updates, memory, late_memory = _delayed(optimizer, gradients, state, plan)
    free = jax.tree.map(lambda p, u: p + (state.scale * u).astype(p.dtype), state.free, updates)
    new = State(free, natural, memory, late_memory, state.step + 1, state.scale)
    return new, -value, optax.tree.norm(gradients)


def _delayed(optimizer: Any, gradients: Any, state: State, plan: Plan) -> tuple[Any, Any, Any]:
    """Updates where the ODEs' coefficients, with an optimiser of their own, rest for the first `train_filters` steps."""

    def split(tree: Any) -> tuple[Any, Any]:
        return eqx.partition(tree, mask(tree, lambda _, owners: _in_filter(owners)))

    (late_gradients, early_gradients), (late, early) = split(gradients), split(state.free)
    early_updates, memory = _update(optimizer, early_gradients, state.optimizer, early)
    late_updates, late_memory = _update(optimizer, late_gradients, state.filters, late)
    begun = state.step >= plan.train_filters
    late_updates = jax.tree.map(lambda u: jnp.where(begun, u, jnp.zeros_like(u)), late_updates)
    late_memory = jax.tree.map(lambda new, old: jnp.where(begun, new, old), late_memory, state.filters)
    return eqx.combine(early_updates, late_updates), memory, late_memory


def _update(optimizer: Any, gradients: Any, memory: Any, free: Any, **extra: Any) -> tuple[Any, Any]:
    """Optax mixes dtypes as JAX does by default; whoever forbids that for their own code can still train."""
    with jax.numpy_dtype_promotion("standard"):
        return optimizer.update(gradients, memory, free, **extra)


def hyperparameters(model: Any) -> dict[str, np.ndarray]:
    """Everything trainable but the posteriors, by its path in the model."""
    leaves = jax.tree_util.tree_flatten_with_path(model)[0]
    wanted = jax.tree.leaves(
        mask(model, lambda role, owners: role.trainable and not any(isinstance(o, AbstractPosterior) for o in owners))
    )
    return {
        jax.tree_util.keystr(path).lstrip("."): np.asarray(leaf)
        for (path, leaf), keep in zip(leaves, wanted, strict=True)
        if keep
    }


def _data(model: Any, x: Numbers, y: Numbers, weight: Numbers | None) -> Batch:
    dtype = _dtype(model)
    inputs, targets = matrix("x", x), matrix("y", y, missing=True)
    if inputs.shape[0] != targets.shape[0]:
        raise ValueError(f"`y` must have as many rows as `x` ({inputs.shape[0]}), got {targets.shape[0]}.")
    if weight is None:
        return whole(jnp.asarray(inputs, dtype), jnp.asarray(targets, dtype))
    weights = _checks.points("weight", weight)
    if weights.shape[0] != inputs.shape[0] or not bool(jnp.all(weights >= 0)) or not bool(jnp.any(weights > 0)):
        raise ValueError(
            f"`weight` must be {inputs.shape[0]} numbers, none negative and not all zero, got shape {weights.shape}."
        )
    return whole(jnp.asarray(inputs, dtype), jnp.asarray(targets, dtype), weights.astype(dtype))


def _default_objective(model: Any, num_samples: int) -> Objective:
    if isinstance(model, ExactModel):
        return log_marginal_likelihood
    return _sampled_elbo(num_samples if model.depth > 1 else 1)


@cache
def _sampled_elbo(num_samples: int) -> Objective:
    """The same object for the same number, so that compiled steps are found again."""
    return partial(elbo, num_samples=num_samples)


def _draw(data: Batch, key: PRNGKeyArray, size: int | None) -> Batch:
    if size is None:
        return data
    rows = jax.random.randint(key, (size,), 0, data.x.shape[0])
    return Batch(data.x[rows], data.y[rows], data.weight[rows], data.num_data)


def _in_filter(owners: list[Any]) -> bool:
    return any(isinstance(owner, AbstractFilter) for owner in owners)


def _finite(tree: Any) -> Bool[Array, ""]:
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree)]))


def _dtype(model: Any) -> Any:
    return jnp.result_type(*[leaf for leaf in jax.tree.leaves(model) if eqx.is_inexact_array(leaf)])

"""The training loop: one compiled step, scanned in chunks, for every model and every objective."""

import math
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, Generic, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import PRNGKeyArray

from .. import _checks
from .._checks import Numbers
from .._data import observed, row_weights, rows
from ..depth._model import layered
from ._batches import Batches
from ._checkpoints import Checkpoint, fingerprint, shapes
from ._collapsed import collapsed_bound
from ._compression import Statistics
from ._devices import Devices, Lost
from ._exact import ExactModel, log_marginal_likelihood
from ._feeds import Held, ReadAhead, held_rows, held_sums
from ._objectives import Batch, elbo, whole
from ._prediction import mean_log_density
from ._steps import AnyModel, Objective, Plan, State, adam, assembled, begin, best, dtype_of, is_hyperparameter, program

DONE, CONVERGED, STOPPED = "all steps done", "converged", "stopped by the callback"
STALE = "no better on held-out data since step"
LOST = "another process ended"
EXACT = (collapsed_bound, log_marginal_likelihood)  # objectives without random numbers


class TrainingError(RuntimeError):
    """Training could not go on. `model` is the last good one, `history` what happened until then.

    !!! example

        >>> import numpy as np, latentforce as lf
        >>> x = np.linspace(0.0, 1.0, 30)
        >>> try:
        ...     lf.fit(lf.build("lfm-driven", x, x, num_frequencies=5), x, 1e30 * x, steps=100)
        ... except lf.TrainingError as error:
        ...     print(error.history.stopped)
        failed at the start
    """

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
    stopped: str = DONE

    @property
    def ended_early(self) -> bool:
        """Whether more steps might have gained something."""
        return self.stopped != DONE and not self.stopped.startswith((CONVERGED, STALE))


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


def fit(
    model: AnyModel,
    x: Numbers | Statistics | Batches,
    y: Numbers | None = None,
    *,
    steps: int = 1000,
    objective: Objective | None = None,
    learning_rate: Numbers | optax.Schedule = 0.05,
    decay: bool | None = None,
    optimizer: optax.GradientTransformation | None = None,
    num_samples: int = 4,
    batch_size: int | None = None,
    natural: float | None = None,
    weight: Numbers | None = None,
    held_out: tuple[Numbers, Numbers] | None = None,
    patience: int = 10,
    tolerance: float | None = None,
    callback: Callable[[Progress], bool | None] | None = None,
    chunk: int = 100,
    checkpoint: str | os.PathLike | None = None,
    every: int = 1000,
    resume: bool = False,
    devices: int | str | None = None,
    seed: int = 0,
) -> Fit[AnyModel]:
    """Train a model by maximising an objective; deterministic given `seed`.

    **Arguments:**

    - `x` (N, D) or (N,), `y` (N, P) or (N,): data; NaN in `y` means not observed. `weight` (N,): repetitions of rows.
      Instead of both, what [`latentforce.compress`][] made of the data of a shallow model, whose steps then cost the
      same for any number of rows; or [`latentforce.Batches`][] of data that outgrow memory.
    - `objective`: a function of (model, batch, key); default `elbo` with `num_samples` draws (in mirrored pairs), for
      an exact model `log_marginal_likelihood`, for compressed data `collapsed_bound`; `importance_weighted_bound` is
      another.
    - `learning_rate`: a number or an Optax schedule for Adam; a number falls to zero along a cosine unless
      `decay=False` (0.01 without decay is the paper's).
    - `optimizer`: any Optax transformation instead, such as `optax.lbfgs()` for deterministic objectives.
    - `batch_size`: rows drawn for each step (default: all).
    - `natural`: size of natural-gradient steps for q of the last layer (1 is exact for one layer and Gaussian noise);
      None trains it like all else.
    - `held_out`: `(x, y)` to stop early on: after `patience` chunks without a better log density; the best is kept.
    - `tolerance`: stop where the best objective of a chunk is not this much above that of all before (nats a row); for
      deterministic objectives.
    - `callback`: called after every chunk of `chunk` steps with a `Progress`; stops the training by returning True.
    - `checkpoint`: a file that the training is written to every `every` steps (at the end of that chunk) and when it
      ends; with `resume=True` it goes on from that file, if there is one, to the result it would have had, to the bit.
    - `devices`: None for JAX's default device, a number of them, or "all", also those of other processes, each of
      which gives its own rows and ends with the same model (see [`latentforce.distribute`][]). Rows of data, or of
      each batch, are divided among them; the result is that of one device, to rounding.

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
    if isinstance(model, ExactModel):
        _unused("for an exact model", natural=natural, batch_size=batch_size, weight=weight)
        _unused("for an exact model", held_out=held_out, devices=devices)
        if isinstance(x, Statistics | Batches):
            raise ValueError(f"`x` must be the data themselves for an exact model, got {type(x).__name__}.")
    if not callable(learning_rate):
        learning_rate = _checks.not_negative("learning_rate", learning_rate)
    natural = None if natural is None else _checks.not_negative("natural", natural)
    tolerance = None if tolerance is None else _checks.not_negative("tolerance", tolerance)
    if held_out is not None and not (isinstance(held_out, tuple | list) and len(held_out) == 2):
        raise ValueError(f"`held_out` must be a pair (x, y), got {type(held_out).__name__}.")
    if decay and (callable(learning_rate) or optimizer is not None):
        raise ValueError("`decay` must be False with a schedule or an optimizer, which have their own, got True.")
    patience = _checks.count("patience", patience)
    default = default_objective(model, _checks.count("num_samples", num_samples))
    placed = Devices.of(devices)
    if isinstance(x, Statistics | Batches):
        kind = "compressed" if isinstance(x, Statistics) else "batches"
        _unused(f"where the data are {kind}", y=y, weight=weight, batch_size=batch_size)
        feed = _fed(model, x, placed, chunk)
    else:
        size = None if batch_size is None else _checks.count("batch_size", batch_size)
        data = checked(model, x, y, weight)
        if objective is collapsed_bound:
            observed(data[1], "`collapsed_bound`")
        feed = held_rows(placed, data, dtype_of(model), size, checkpoint is not None)
    objective = objective or (collapsed_bound if isinstance(x, Statistics) else default)
    plan = Plan(
        objective=objective,
        optimizer=optimizer or adam(learning_rate, steps if decay is not False else None),
        batch_size=feed.batch_size,
        natural=natural,
        train_filters=model.train_filters,
        chunk=chunk,
        layout=feed.layout,
        exact=natural is None and objective in EXACT and feed.batch_size is None and not isinstance(x, Batches),
    )
    loop = _Loop(model, plan, feed, placed, steps, held_out, patience, tolerance, callback, seed)
    if checkpoint is not None:
        rate = learning_rate if isinstance(learning_rate, int | float) else "a schedule"
        loop.keep(checkpoint, every, resume, {"learning_rate": rate, "num_samples": num_samples, "seed": seed})
    elif resume:
        raise ValueError("`checkpoint` must be a file to `resume` from, got None.")
    return loop.run()


def _unused(where: str, **given: Any) -> None:
    """An error for the first argument that is given where it has no meaning."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"`{name}` must be None {where}, got {value!r}.")


def _fed(model: Any, x: Statistics | Batches, placed: Devices, chunk: int) -> Held | ReadAhead:
    """What steps read of data that are sums, or outgrow memory."""
    if isinstance(x, Statistics):
        return held_sums(placed, jax.tree.map(lambda leaf: leaf.astype(dtype_of(model)), x))
    checked(model, *x.sample(1), None)
    return ReadAhead(x, placed, dtype_of(model), chunk)


class _Loop(Generic[AnyModel]):
    """One call of `fit`: the host's side of the loop."""

    attempts = 8

    def __init__(
        self,
        model: AnyModel,
        plan: Plan,
        feed: Held | ReadAhead,
        devices: Devices,
        steps: int,
        held_out: tuple[Numbers, Numbers] | None,
        patience: int,
        tolerance: float | None,
        callback: Callable[[Progress], bool | None] | None,
        seed: int,
    ):
        self.plan, self.feed, self.devices, self.steps, self.callback = plan, feed, devices, steps, callback
        self.patience, self.tolerance = patience, tolerance
        self.held_out = None if held_out is None else data_for(model, *held_out, None)
        self.key = jax.random.key(seed)
        self.state, self.fixed = devices.everywhere(_trainable(begin(model, plan), model))
        self.history, self.started, self.done = History(), time.perf_counter(), 0
        self.best: tuple[float, AnyModel, int] | None = None  # score, model and number of its chunk
        self.checkpoint: Checkpoint | None = None

    @property
    def model(self) -> AnyModel:
        return assembled(*self.devices.here((self.state, self.fixed)))

    def keep(self, path: str | os.PathLike, every: int, resume: bool, identity: dict[str, Any]) -> None:
        """Write checkpoints, and go on from the one that is there if that is asked for."""
        plan = self.plan
        identity |= {"steps": self.steps, "chunk": plan.chunk, "batch_size": plan.batch_size, "natural": plan.natural}
        identity |= {
            "tolerance": self.tolerance,
            "train_filters": plan.train_filters,
            "held_out": fingerprint(self.held_out),
        }
        identity |= {"data": self.feed.fingerprint, "model": shapes((self.state, self.fixed))}
        self.checkpoint = Checkpoint(path, every, identity)
        trees = {"state": self.state, "fixed": self.fixed, "best": self.model}
        if len(set(self.devices.gathered(np.asarray(self.checkpoint.path.exists())).tolist())) > 1:
            raise ValueError(f"`checkpoint` must be a file that all processes see, got {os.fspath(path)!r}.")
        found = self.checkpoint.read(trees, self.history) if resume else None
        if found is not None:
            trees, facts = found
            self.state, self.fixed = self.devices.everywhere((trees["state"], trees["fixed"]))
            self.done = self.history.steps[-1]
            self.best = (facts["score"], trees["best"], facts["at"]) if facts["at"] is not None else None
            self.started -= self.history.seconds[-1]

    def run(self) -> Fit[AnyModel]:
        try:
            self._train()
        except Lost as error:
            raise self._alone() from error
        finally:
            self.feed.close()
        if self.best is not None:
            return Fit(self.best[1], self.history)
        return Fit(assembled(*self.devices.here((best(self.state), self.fixed))), self.history)

    def _train(self) -> None:
        failures = 0
        while self.done < self.steps and not self._over():
            data, key = self.feed.chunk(self.done), self._attempt_key()
            with self.devices.together():
                advance = program(self.state, data, self.plan, self.steps)
                state, (fault, objective, norm) = advance(self.state, self.fixed, data, key, self.plan, self.steps)
                failed = bool(fault)
            if failed:
                failures += 1
                self._retry(failures, np.asarray(objective))
                continue
            failures = 0
            count = min(self.plan.chunk, self.steps - self.done)
            self.state, self.done = state, self.done + count
            self._record(np.asarray(objective)[:count], np.asarray(norm)[:count])
            self._save(last=self.done == self.steps or self._over())
            if self._told_to_stop():
                self._save(last=True)
                break

    def _alone(self) -> TrainingError:
        """The error where another process is gone; what this one knows is written down first."""
        self.history.stopped = LOST
        self._save(last=True)
        advice = "Give `checkpoint` a file to go on from next time."
        if self.checkpoint is not None:
            advice = f"All processes can be started again with `resume=True`, to go on from {self.checkpoint.path}."
        return TrainingError(
            f"Another process of this training has ended or cannot be reached, after step {self.done}. {advice}",
            self.model,
            self.history,
        )

    def _attempt_key(self) -> PRNGKeyArray:
        """Other random numbers after each failure."""
        return jax.random.fold_in(self.key, self.history.retries)

    def _retry(self, failures: int, objective: np.ndarray) -> None:
        self.history.retries += 1
        at_start = self.done == 0 and not np.isfinite(objective[0])
        if at_start or failures >= self.attempts:
            smaller = f"after step {self.done}, also with steps {4 ** (failures - 1)} times smaller"
            where = "at the start" if at_start else smaller
            self.history.stopped = f"failed {where}"
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

        if self.held_out is not None:
            score = float(mean_log_density(self.model, self.held_out.x, self.held_out.y))
            score = score if math.isfinite(score) else -sys.float_info.max  # a checkpoint holds finite numbers
            history.held_out.append(score)
            if self.best is None or score > self.best[0]:
                self.best = (score, self.model, len(history.held_out))

    def _over(self) -> bool:
        """Whether there is nothing more to gain."""
        return self.devices.any(self._stale() or self._converged())

    def _converged(self) -> bool:
        """Whether the objective has not risen in the last chunk, by more than the tolerance."""
        before, last = self.history.objective[: -self.plan.chunk], self.history.objective[-self.plan.chunk :]
        if self.tolerance is None or not before or max(last) > max(before) + self.tolerance:
            return False
        self.history.stopped = f"{CONVERGED}: no gain above {self.tolerance:g} since step {len(before)}"
        return True

    def _stale(self) -> bool:
        """Whether the held-out score has not risen for long."""
        if self.best is None or len(self.history.held_out) - self.best[2] < self.patience:
            return False
        self.history.stopped = f"{STALE} {self.best[2] * self.plan.chunk}"
        return True

    def _told_to_stop(self) -> bool:
        history = self.history
        if self.callback is None:
            return False
        progress = Progress(self.done, self.steps, history.objective[-1], history.seconds[-1], self.model, history)
        stop = self.devices.any(bool(self.callback(progress))) and self.done < self.steps
        if stop:
            history.stopped = STOPPED
        return stop

    def _save(self, last: bool) -> None:
        if self.checkpoint is None or not (last or self.checkpoint.is_due(self.done)) or not self.devices.first:
            return
        score, best, at = self.best or (None, self.model, None)
        trees = {"state": self.state, "fixed": self.fixed, "best": best}
        self.checkpoint.write(self.done, trees, self.history, {"score": score, "at": at})


def _trainable(begun: tuple[State, Any], model: Any) -> tuple[State, Any]:
    """The start of a training, or an error where a parameter is outside of what training can reach."""
    for path, free in jax.tree_util.tree_flatten_with_path(begun[0].free)[0]:
        if not np.isfinite(np.asarray(free)).all():
            value = {jax.tree_util.keystr(at): leaf for at, leaf in jax.tree_util.tree_flatten_with_path(model)[0]}
            name = jax.tree_util.keystr(path)
            raise ValueError(
                f"`model` must have parameters that can be trained, got {name.lstrip('.')} = "
                f"{np.asarray(value[name]).tolist()} (`train_filters=None` leaves those of an ODE as they are)."
            )
    return begun


def hyperparameters(model: Any) -> dict[str, np.ndarray]:
    """Everything that can be trained but the posteriors, by its path in the model."""
    leaves = jax.tree_util.tree_flatten_with_path(model)[0]
    wanted = jax.tree.leaves(is_hyperparameter(model))
    return {
        jax.tree_util.keystr(path).lstrip("."): np.asarray(leaf)
        for (path, leaf), keep in zip(leaves, wanted, strict=True)
        if keep
    }


def data_for(model: Any, x: Numbers, y: Numbers | None, weight: Numbers | None) -> Batch:
    """The data as one batch, on the default device."""
    return whole(*(jnp.asarray(part, dtype_of(model)) for part in checked(model, x, y, weight)))


def checked(model: Any, x: Numbers, y: Numbers | None, weight: Numbers | None) -> tuple[np.ndarray, ...]:
    """Inputs (N, D), targets (N, P) and weights (N,) that the model can be trained on."""
    inputs, targets = rows(x, y, model.num_inputs)
    if isinstance(model, ExactModel):
        observed(targets, "an exact model")
    else:
        layered(model).takes(targets.shape[1])
        model.likelihood.check(targets)
    return inputs, targets, row_weights(weight, len(inputs))


def default_objective(model: Any, num_samples: int, mirrored: bool = True) -> Objective:
    """The exact likelihood where there is one, else the evidence lower bound."""
    if isinstance(model, ExactModel):
        return log_marginal_likelihood
    return sampled_elbo(num_samples if model.depth > 1 else 1, mirrored=mirrored)


@cache
def sampled_elbo(num_samples: int, **options: bool) -> Objective:
    """`elbo`; the same object for the same options, so that compiled steps are found again."""
    return partial(elbo, num_samples=num_samples, **options)

"""Exact inference: dense for any inputs, in time linear in N for one."""

import math
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, PRNGKeyArray

from .._checks import Numbers, concrete, instance, points, within
from .._data import matrix, observed, rows
from .._linalg import precise, stable_cholesky
from ..depth._inputs import AbstractInputs, Jointly
from ..depth._likelihoods import Gaussian
from ..dynamics._forces import Matern
from ..dynamics._process import Process
from ._gaussian import Normal
from ._objectives import Batch
from ._prediction import Prediction


class ExactModel(eqx.Module):
    """A Gaussian process, additive over directions, observed in Gaussian noise. Targets are independent outputs of the
    same process.

    `solver`: "dense" (any inputs), "quasiseparable" (one-dimensional inputs and a Matérn force: time linear in N),
    "auto" (the latter where it can be).
    """

    inputs: AbstractInputs
    process: Process  # arrays lead with K
    likelihood: Gaussian
    solver: Literal["auto", "dense", "quasiseparable"] = eqx.field(static=True, default="auto")
    train_filters: int | None = eqx.field(static=True, default=0)

    def __check_init__(self) -> None:
        if self.solver not in ("auto", "dense", "quasiseparable"):
            raise ValueError(f"`solver` must be 'auto', 'dense' or 'quasiseparable', got {self.solver!r}.")
        if self.solver == "quasiseparable" and not self.markov:
            raise ValueError(
                "`solver` must be 'dense' for several inputs or a force that is not Matérn, got 'quasiseparable'."
            )

    @property
    def num_inputs(self) -> int:
        """D: how many columns the inputs have."""
        return self.inputs.num_inputs

    @property
    def markov(self) -> bool:
        """Whether inference can go through a state space."""
        able = isinstance(self.process.force, Matern) and not isinstance(self.inputs, Jointly)
        return able and jax.tree.leaves(self.process)[0].shape[0] == 1

    def covariance(self, x1: Float[Array, "N1 D"], x2: Float[Array, "N2 D"]) -> Float[Array, "N1 N2"]:
        """The prior covariance of the output."""
        kernels = jax.vmap(lambda process, t1, t2: process.covariance(t1, t2))(
            self.process, self.inputs(x1), self.inputs(x2)
        )
        return jnp.sum(kernels, axis=0)

    def variance(self) -> Float[Array, ""]:
        """The prior variance of the output."""
        return jnp.sum(jax.vmap(lambda process: process.variance())(self.process))


def log_marginal_likelihood(model: ExactModel, batch: Batch, key: PRNGKeyArray | None = None) -> Float[Array, ""]:
    """`log p(y)`, for each row; `key` is not used: objectives all have the same signature.

    !!! example

        >>> import jax.numpy as jnp, latentforce as lf
        >>> x = jnp.linspace(0.0, 1.0, 20)[:, None]
        >>> model = lf.build("exact-lfm", x, jnp.sin(6 * x))
        >>> bool(lf.log_marginal_likelihood(model, lf.whole(x, jnp.sin(6 * x))) < 10.0)
        True
    """
    instance("model", model, ExactModel, "an exact one (for a model of layers see `latentforce.elbo`)")
    quasiseparable = model.solver == "quasiseparable" or (model.solver == "auto" and model.markov)
    total = (_markov_likelihood if quasiseparable else _dense_likelihood)(model, batch.x, batch.y)
    return total / batch.num_data


def condition(model: ExactModel, x: Numbers, y: Numbers) -> "ExactPosterior":
    """The posterior of output and force given data x (N, D) or (N,) and y (N, P) or (N,), by dense algebra; all targets
    must be observed.

    !!! example

        >>> import jax.numpy as jnp, latentforce as lf
        >>> x = jnp.linspace(0.0, 1.0, 20)[:, None]
        >>> posterior = lf.condition(lf.build("exact-lfm", x, x), x, jnp.sin(6 * x))
        >>> posterior.output(x).mean.shape, posterior.force(jnp.linspace(0.0, 1.0, 7)).covariance.shape
        ((20,), (7, 7))
    """
    instance("model", model, ExactModel, "an exact one (for a model of layers see `latentforce.predict`)")
    if concrete(x) is not None and concrete(y) is not None:
        x, y = rows(x, y, model.num_inputs)
        observed(y, "an exact model")
    dtype = model.process.force.variance.dtype
    return _condition(model, jnp.asarray(x, dtype), jnp.asarray(y, dtype))


class ExactPosterior(eqx.Module):
    """The exact posterior of output and force."""

    model: ExactModel
    x: Float[Array, "N D"]
    root: Float[Array, "P N N"]  # of the covariance of each target
    weights: Float[Array, "P N"]

    def predict(self, x: Numbers) -> Prediction:
        """What is believed of f and y at new inputs (M, D) or (M,), each by itself."""
        mean, variance = self.moments(x)
        return Prediction(mean[None], variance[None], self.model.likelihood)

    def output(self, x: Numbers, target: int = 0) -> Normal:
        """The posterior of f at new inputs (M, D) or (M,), jointly."""
        x = self._rows(x)
        cross = self.model.covariance(x, self.x)
        return self._given(cross, self.model.covariance(x, x), target)

    def moments(self, x: Numbers) -> tuple[Float[Array, "M P"], Float[Array, "M P"]]:
        """Mean and variance of f at new inputs (M, D) or (M,), each by itself."""
        x = self._rows(x)
        cross = self.model.covariance(x, self.x)
        explained = jax.vmap(lambda root: jnp.sum(_solve(root, cross.T) ** 2, axis=0))(self.root)
        return cross @ self.weights.T, jnp.maximum(self.model.variance() - explained.T, 0.0)

    def force(self, t: Numbers, direction: int = 0, target: int = 0) -> Normal:
        """The posterior of the force along one direction at times t (M,), jointly."""
        t = points("t", t).astype(self.x.dtype)
        within("direction", direction, self.model.process.force.variance.shape[0])
        process = jax.tree.map(lambda leaf: leaf[direction], self.model.process)
        times = self.model.inputs(self.x)[direction]
        return self._given(process.cross_covariance(times, t).T, process.force_covariance(t, t), target)

    def _rows(self, x: Numbers) -> Float[Array, "M D"]:
        x = x if concrete(x) is None else matrix("x", x, self.model.num_inputs)
        return jnp.asarray(x, self.x.dtype)

    def _given(self, cross: Array, prior: Array, target: int) -> Normal:
        within("target", target, self.root.shape[0])
        half = _solve(self.root[target], cross.T)
        return Normal(cross @ self.weights[target], prior - half.T @ half)


def _noise(model: ExactModel, num_targets: int) -> Float[Array, " P"]:
    return jnp.broadcast_to(model.likelihood.variance, (num_targets,))


def _solve(root: Float[Array, "N N"], b: Array) -> Array:
    return jax.scipy.linalg.solve_triangular(root, b, lower=True)


def _roots(model: ExactModel, x: Float[Array, "N D"], noise: Float[Array, " P"]) -> Float[Array, "P N N"]:
    K, eye = model.covariance(x, x), jnp.eye(x.shape[0], dtype=x.dtype)
    return jax.vmap(lambda noise: stable_cholesky(K + noise * eye, jnp.diag(K)))(noise)


@precise
def _condition(model: ExactModel, x: Float[Array, "N D"], y: Float[Array, "N P"]) -> ExactPosterior:
    roots = _roots(model, x, _noise(model, y.shape[1]))
    weights = jax.vmap(lambda root, y: jax.scipy.linalg.cho_solve((root, True), y))(roots, y.T)
    return ExactPosterior(model, x, roots, weights)


@precise
def _dense_likelihood(model: ExactModel, x: Float[Array, "N D"], y: Float[Array, "N P"]) -> Float[Array, ""]:
    def one(root: Float[Array, "N N"], y: Float[Array, " N"]) -> Float[Array, ""]:
        white = _solve(root, y)
        return -jnp.sum(white * white) / 2 - jnp.sum(jnp.log(jnp.diag(root))) - y.size * math.log(2 * math.pi) / 2

    return jnp.sum(jax.vmap(one)(_roots(model, x, _noise(model, y.shape[1])), y.T))


@precise
def _markov_likelihood(model: ExactModel, x: Float[Array, "N D"], y: Float[Array, "N P"]) -> Float[Array, ""]:
    from ._markov import log_likelihood

    process = jax.tree.map(lambda leaf: leaf[0], model.process)
    t = model.inputs(x)[0]
    order = jnp.argsort(t)
    noise = _noise(model, y.shape[1])
    return jnp.sum(jnp.stack([log_likelihood(process, t[order], y[order, k], noise[k]) for k in range(y.shape[1])]))

"""How well the data determine the hyperparameters, and what that means for the force: Laplace's approximation."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree
from jaxtyping import Float

from .._checks import Numbers, count, points
from .._data import observed
from .._linalg import precise
from .._parameters import constrain, unconstrain
from ..depth._outputs import SharedForces
from ..dynamics._filters import AbstractFilter
from ._collapsed import collapse, collapsed_bound
from ._exact import ExactModel, condition, log_marginal_likelihood
from ._force import force
from ._gaussian import Normal
from ._objectives import Batch
from ._steps import is_hyperparameter, is_trained
from ._training import data_for

AnyShallow = Any  # an `ExactModel`, or a `Model` of one layer with Gaussian noise


class Laplace(eqx.Module):
    """A Gaussian over hyperparameters, as free numbers, about the most likely ones; see [`latentforce.laplace`][]."""

    mode: Float[Array, " H"]
    root: Float[Array, "H k"]  # of the covariance; k < H where directions are not determined
    curvatures: Float[Array, " H"]  # of the log likelihood of all data, increasing
    free: AnyShallow
    fixed: AnyShallow
    data: Batch

    def model(self, numbers: Float[Array, " H"]) -> AnyShallow:
        """The model of those free numbers, with the best q for the data where it has one."""
        model = _assemble(numbers, self.free, self.fixed)
        return model if isinstance(model, ExactModel) else collapse(model, self.data)

    def deviation(self, function: Callable[[AnyShallow], Float[Array, " n"]]) -> Float[Array, " n"]:
        """Standard errors of numbers that are functions of the model, to first order."""
        slopes = jax.jacfwd(lambda numbers: function(_assemble(numbers, self.free, self.fixed)))(self.mode)
        return jnp.sqrt(jnp.sum((slopes @ self.root) ** 2, axis=-1))

    def integrate(self, function: Callable[[AnyShallow], Normal], *, num_samples: int = 50, seed: int = 0) -> Normal:
        """Mean and covariance of what `function` says of a model, over the hyperparameters too.

        `function` gives a `Normal` for each of `num_samples` draws of the hyperparameters; the result has the moments
        of their mixture. It is compiled; a `jax.tree_util.Partial` or a module with `__call__` is compiled once for all
        values of the arrays that it holds.
        """
        shape = (count("num_samples", num_samples), self.root.shape[1])
        normal = jax.random.normal(jax.random.key(seed), shape, self.mode.dtype)
        if jax.tree_util.all_leaves([function]):
            function = jax.tree_util.Partial(function)
        return _integrate(self, self.mode[None] + normal @ self.root.T, function)

    def force(self, t: Numbers, *, index: int = 0, direction: int = 0, num_samples: int = 50, seed: int = 0) -> Normal:
        """The posterior of a force at times t (N,) with the uncertainty of the hyperparameters in it.

        `index` is the output (the number of a shared force), `direction` the input dimension. The scale of a force can
        be moved into its ODE, so it is given in the units in which the ODE keeps the static gain that it has at the
        mode.
        """
        gain = _gain(self.model(self.mode), index, direction)
        scaled = _ScaledForce(points("t", t), gain, self.data, index, direction)
        return self.integrate(scaled, num_samples=num_samples, seed=seed)


class _ScaledForce(eqx.Module):
    """The force's posterior as a function of the model, in units of a given static gain."""

    t: Float[Array, " N"]
    gain: Float[Array, ""]
    data: Batch
    index: int = eqx.field(static=True)
    direction: int = eqx.field(static=True)

    def __call__(self, model: AnyShallow) -> Normal:
        if isinstance(model, ExactModel):
            posterior = condition(model, self.data.x, self.data.y).force(self.t, self.direction, self.index)
        else:
            posterior = force(model, self.t, index=self.index, direction=self.direction)
        scale = _gain(model, self.index, self.direction) / self.gain
        return Normal(scale * posterior.mean, scale**2 * posterior.covariance)


def laplace(model: AnyShallow, x: Numbers, y: Numbers, *, determined: float = 0.01) -> Laplace:
    """How well data determine the hyperparameters of a trained shallow model with Gaussian noise.

    The log marginal likelihood (of a variational model: its collapsed bound) is taken to be quadratic in the free
    numbers about the most likely ones, where the model must have been trained to: a prior that is flat in logarithms.
    Directions in which it is flat, of curvature below `determined`, change nothing (the scale of a force against its
    ODE's) or cannot be learned from these data; they stay as they are.

    **Returns** a `Laplace`: `.deviation(function)` gives standard errors, `.force(t)` the band of the force with the
    uncertainty of the hyperparameters in it, `.integrate(function)` that of anything else.

    !!! example

        >>> import jax.numpy as jnp, latentforce as lf, optax
        >>> x = jnp.linspace(0.0, 10.0, 60)
        >>> y = jnp.sin(2 * x) + 0.1 * jnp.cos(31 * x)
        >>> model = lf.build("exact-gp", x, y)
        >>> model = lf.fit(model, x, y, steps=40, optimizer=optax.lbfgs()).model
        >>> known = lf.laplace(model, x, y)
        >>> known.deviation(lambda model: jnp.log(model.process.force.lengthscale)).shape
        (1,)
        >>> known.force(jnp.linspace(0.0, 10.0, 7)).deviation.shape
        (7,)
    """
    data = data_for(model, x, y, None)
    observed(data.y, "a likelihood in closed form")
    wanted = jax.tree.map(
        lambda one, other: one and other, is_trained(model, model.train_filters), is_hyperparameter(model)
    )
    free, fixed = eqx.partition(unconstrain(model), wanted)
    mode, _ = ravel_pytree(free)
    curvatures, directions = jnp.linalg.eigh(-_hessian(mode, free, fixed, data))
    if not bool(jnp.all(curvatures > -1.0)):
        raise ValueError(
            "`model` must be trained until its likelihood is at a maximum (optimizer=optax.lbfgs() with "
            "`log_marginal_likelihood` or `collapsed_bound` as objective), got one with a curvature of "
            f"{-float(curvatures[0]):.3g} nats upwards."
        )
    kept = curvatures > determined
    root = directions[:, kept] / jnp.sqrt(curvatures[kept])[None]
    return Laplace(mode, root, curvatures, free, fixed, data)


def _assemble(numbers: Float[Array, " H"], free: AnyShallow, fixed: AnyShallow) -> AnyShallow:
    return constrain(eqx.combine(ravel_pytree(free)[1](numbers), fixed))


def _gain(model: AnyShallow, index: int, direction: int) -> Float[Array, ""]:
    """The static gain of the ODE that a force drives; for a shared force the length of all outputs' gains."""
    if isinstance(model, ExactModel):
        return 1 / _stiffness(model.process.filter, direction)
    outputs = model.layers[0].outputs
    if isinstance(outputs, SharedForces):
        gains = [
            s / _stiffness(outputs.filter, r, direction) for r, s in enumerate(outputs.sensitivity[:, index, direction])
        ]
        return jnp.linalg.norm(jnp.stack(gains))
    kernel = min(index, outputs.num_kernels - 1)
    return 1 / _stiffness(outputs.process.filter, kernel, direction)


def _stiffness(filters: AbstractFilter, *place: int) -> Float[Array, ""]:
    """`a0` of one filter among many."""
    return jax.tree.map(lambda leaf: leaf[place], filters).coefficients[0]


@precise
def _hessian(mode: Array, free: AnyShallow, fixed: AnyShallow, data: Batch) -> Float[Array, "H H"]:
    """Of the log likelihood of all data, row by row: columns by forward mode over reverse mode."""

    def total(numbers: Array) -> Array:
        model = _assemble(numbers, free, fixed)
        exact = isinstance(model, ExactModel)
        return data.num_data * (log_marginal_likelihood(model, data) if exact else collapsed_bound(model, data))

    rows = jax.lax.map(lambda row: jax.jvp(jax.grad(total), (mode,), (row,))[1], jnp.eye(mode.size, dtype=mode.dtype))
    return (rows + rows.T) / 2


@precise
def _integrate(known: Laplace, draws: Float[Array, "S H"], function: Callable[[Any], Normal]) -> Normal:
    each = jax.lax.map(lambda numbers: function(known.model(numbers)), draws)
    mean = jnp.mean(each.mean, axis=0)
    gaps = each.mean - mean[None]
    return Normal(mean, jnp.mean(each.covariance, axis=0) + gaps.T @ gaps / draws.shape[0])

"""The collapsed bound: one layer and Gaussian noise need no q to be learned."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, PRNGKeyArray

from .._linalg import precise
from ..depth._layer import Layer
from ..depth._likelihoods import Gaussian
from ..depth._model import Model, layered
from ..depth._outputs import IndependentOutputs
from ..depth._posteriors import FullPosterior
from ._compression import Statistics, of_data
from ._objectives import Batch


def collapsed_bound(model: Model, data: Batch | Statistics, key: PRNGKeyArray | None = None) -> Float[Array, ""]:
    """The evidence lower bound for each row at its best q, which need not be known; `key` is not used.

    `log N(y; 0, A A^T + noise) - residual / (2 noise)`, through `A^T A` and `A^T y` alone.

    !!! example

        >>> import jax, jax.numpy as jnp, latentforce as lf
        >>> x = jnp.linspace(0.0, 1.0, 30)[:, None]
        >>> model, data = lf.build("lfm-driven", x, jnp.sin(6 * x), num_frequencies=5), lf.whole(x, jnp.sin(6 * x))
        >>> bool(lf.collapsed_bound(model, data) > lf.elbo(model, data, jax.random.key(0)))
        True
    """
    statistics = of_data(data) if isinstance(data, Batch) else data
    return jnp.sum(_bound(_regression(model, statistics))) / statistics.num_data


def collapse(model: Model, data: Batch | Statistics) -> Model:
    """The model with its best q, a full covariance, for these data.

    !!! example

        >>> import jax, jax.numpy as jnp, latentforce as lf
        >>> x = jnp.linspace(0.0, 1.0, 30)[:, None]
        >>> model, data = lf.build("lfm-driven", x, x, num_frequencies=5), lf.whole(x, jnp.sin(6 * x))
        >>> gap = lf.elbo(lf.collapse(model, data), data, jax.random.key(0)) - lf.collapsed_bound(model, data)
        >>> bool(abs(gap) < 1e-3)
        True
    """
    statistics = of_data(data) if isinstance(data, Batch) else data
    regression, layer = _regression(layered(model), statistics), model.layers[0]
    mean, root = _best(regression)
    groups, B, F = layer.posterior.shape
    if groups != mean.shape[0]:
        raise ValueError(f"`model` must have a group of features for each target, got {groups} for {mean.shape[0]}.")
    posterior = FullPosterior(mean.reshape(groups, B, F), root)
    return eqx.tree_at(lambda m: m.layers[0].posterior, model, posterior)


def absorb(model: Model, data: Batch | Statistics) -> Model:
    """The model with q brought up to date by further data, its hyperparameters kept: exact, and without the old data.

    For a q of full covariance that is the best one for what was seen before, as `collapse` makes it, the result is the
    best one for all data together.

    !!! example

        >>> import jax.numpy as jnp, latentforce as lf
        >>> x = jnp.linspace(0.0, 1.0, 30)[:, None]
        >>> model, y = lf.build("lfm-driven", x, x, num_frequencies=5), jnp.sin(6 * x)
        >>> begun = lf.collapse(model, lf.whole(x[:20], y[:20]))
        >>> later, at_once = lf.absorb(begun, lf.whole(x[20:], y[20:])), lf.collapse(model, lf.whole(x, y))
        >>> bool(jnp.allclose(later.layers[0].posterior.mean, at_once.layers[0].posterior.mean, atol=1e-3))
        True
    """
    statistics = of_data(data) if isinstance(data, Batch) else data
    regression, posterior = _regression(model, statistics), model.layers[0].posterior
    if not isinstance(posterior, FullPosterior):
        raise ValueError(
            f"`model` must have a q of full covariance to absorb data, got {type(posterior).__name__}; see `collapse`."
        )
    mean, root = _further(regression, posterior.mean.reshape(regression.moment.shape), posterior.root)
    return eqx.tree_at(lambda m: m.layers[0].posterior, model, FullPosterior(mean.reshape(posterior.shape), root))


class _Regression(eqx.Module):
    """g independent linear regressions on F features with unit prior."""

    gram: Float[Array, "g F F"]  # A^T A / noise
    moment: Float[Array, "g F"]  # A^T y / noise
    square: Float[Array, " g"]  # y^T y / noise
    residual: Float[Array, " g"]  # what A leaves unexplained of the prior, summed, over noise
    log_noise: Float[Array, " g"]  # sum of log(2 pi noise)


def _regression(model: Model, data: Statistics) -> _Regression:
    if model.depth != 1 or not isinstance(model.likelihood, Gaussian):
        raise ValueError(
            "`model` must have one layer and a Gaussian likelihood to be collapsed, got "
            f"{model.depth} layers and {type(model.likelihood).__name__}."
        )
    layer = model.layers[0]
    if layer.mixing is not None:
        raise ValueError("`model` must not mix its outputs to be collapsed, got a layer with `mixing`.")
    noise = jnp.broadcast_to(model.likelihood.variance, data.squares.shape)
    return (_independent if isinstance(layer.outputs, IndependentOutputs) else _shared)(layer, data, noise)


@precise
def _independent(layer: Layer, data: Statistics, noise: Float[Array, " P"]) -> _Regression:
    A, residual = layer.outputs.summary(layer.features, layer.inputs(data.nodes))
    P = noise.size
    A = A.reshape(A.shape[0], -1, A.shape[3])
    gram = jnp.broadcast_to((A * data.weights[None, None]) @ jnp.swapaxes(A, 1, 2), (P, A.shape[1], A.shape[1]))
    moment = jnp.broadcast_to(A, (P, *A.shape[1:])) @ data.targets.T[:, :, None]
    return _Regression(
        gram / noise[:, None, None],
        moment[:, :, 0] / noise[:, None],
        data.squares / noise,
        jnp.broadcast_to(data.weights @ residual, (P,)) / noise,
        data.num_data * jnp.log(2 * math.pi * noise),
    )


@precise
def _shared(layer: Layer, data: Statistics, noise: Float[Array, " P"]) -> _Regression:
    """One regression: the outputs are rows that share their features."""
    A, residual = layer.outputs.summary(layer.features, layer.inputs(data.nodes))
    A = A.reshape(A.shape[0], -1, A.shape[3])
    gram = jnp.sum(((A * data.weights[None, None]) @ jnp.swapaxes(A, 1, 2)) / noise[:, None, None], axis=0)
    moment = jnp.sum((A @ data.targets.T[:, :, None])[:, :, 0] / noise[:, None], axis=0)
    return _Regression(
        gram[None],
        moment[None],
        jnp.sum(data.squares / noise)[None],
        jnp.sum((data.weights @ residual) / noise)[None],
        data.num_data * jnp.sum(jnp.log(2 * math.pi * noise))[None],
    )


@precise
def _bound(r: _Regression) -> Float[Array, " g"]:
    root = _root(r)
    half = jax.scipy.linalg.solve_triangular(root, r.moment[..., None], lower=True)[..., 0]
    determinant = jnp.sum(jnp.log(jnp.diagonal(root, axis1=1, axis2=2)), axis=1)
    return -(r.log_noise + r.square + r.residual - jnp.sum(half**2, axis=1)) / 2 - determinant


@precise
def _best(r: _Regression) -> tuple[Float[Array, "g F"], Float[Array, "g F F"]]:
    """Mean and root of the covariance of the best q, of precision `I + A^T A / noise`."""
    root = _root(r)
    mean = jax.vmap(lambda root, moment: jax.scipy.linalg.cho_solve((root, True), moment))(root, r.moment)
    eye = jnp.broadcast_to(jnp.eye(root.shape[1], dtype=root.dtype), root.shape)
    half = jax.scipy.linalg.solve_triangular(root, eye, lower=True)
    return mean, jnp.linalg.cholesky(jnp.swapaxes(half, 1, 2) @ half)


def _root(r: _Regression) -> Float[Array, "g F F"]:
    return jnp.linalg.cholesky(r.gram + jnp.eye(r.gram.shape[1], dtype=r.gram.dtype)[None])


@precise
def _further(
    r: _Regression, mean: Float[Array, "g F"], root: Float[Array, "g F F"]
) -> tuple[Float[Array, "g F"], Float[Array, "g F F"]]:
    """Mean and root of the covariance of q after a regression whose prior they are of."""
    eye = jnp.eye(root.shape[1], dtype=root.dtype)[None]
    inner = jnp.linalg.cholesky(eye + jnp.swapaxes(root, 1, 2) @ r.gram @ root)
    half = jax.scipy.linalg.solve_triangular(inner, jnp.swapaxes(root, 1, 2), lower=True)
    covariance = jnp.swapaxes(half, 1, 2) @ half
    surprise = r.moment - (r.gram @ mean[..., None])[..., 0]
    return mean + (covariance @ surprise[..., None])[..., 0], jnp.linalg.cholesky(covariance)

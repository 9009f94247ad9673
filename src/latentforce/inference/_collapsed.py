"""The collapsed bound: one layer and Gaussian noise need no q to be learned, and of the data only sums."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, PRNGKeyArray

from .._checks import Numbers, count
from .._data import matrix
from .._linalg import precise
from ..depth._layer import Layer
from ..depth._likelihoods import Gaussian
from ..depth._model import Model
from ..depth._outputs import IndependentOutputs
from ..depth._posteriors import FullPosterior
from ._objectives import Batch


class Statistics(eqx.Module):
    """All that the bound needs of the data, for features that are functions of the nodes: sums of smooth functions.

    `sum_n g(x_n) = sum_j weight_j g(node_j)` and `sum_n y_n g(x_n) = sum_j target_j g(node_j)`. Of the data themselves
    (`of_data`) the nodes are the inputs; in one dimension they can be few Chebyshev nodes instead (`compress`).
    """

    nodes: Float[Array, "J D"]
    weights: Float[Array, " J"]
    targets: Float[Array, "J P"]
    squares: Float[Array, " P"]  # sum of y^2
    num_data: Float[Array, ""]


def of_data(batch: Batch) -> Statistics:
    """The data as their own statistics; every target must be observed."""
    scale = batch.num_data / batch.x.shape[0]
    weights = batch.weight * scale
    return Statistics(
        batch.x, weights, weights[:, None] * batch.y, jnp.sum(weights[:, None] * batch.y**2, axis=0), batch.num_data
    )


def compress(
    t: Numbers, y: Numbers, interval: tuple[float, float], *, bins: int = 128, degree: int = 16, dense: int = 0
) -> Statistics:
    """Data in one dimension, whatever their number, as `bins * degree` weighted nodes that serve all hyperparameters.

    `interval` is cut into bins with `degree` Chebyshev nodes each; a datum gives each node of its bin the value of
    that node's Lagrange polynomial. Features are analytic inside their interval, so sums over the data become sums
    over nodes to rounding. `dense` bins more, each half as wide as the one after it, next to the left end serve
    very fast filters, whose transients are there. The statistics are sums: those of parts of the data add up.

    !!! example

        >>> import numpy as np, latentforce as lf
        >>> t = np.random.default_rng(0).uniform(0.0, 1.0, 10_000)
        >>> lf.compress(t, np.sin(9 * t), (0.0, 1.0), bins=16).nodes.shape
        (256, 1)
    """
    inputs, targets = matrix("t", t), matrix("y", y)
    bins, degree = count("bins", bins), count("degree", degree)
    a, b = (float(end) for end in interval)
    if inputs.shape[1] != 1 or len(inputs) != len(targets):
        raise ValueError(
            f"`t` must be one-dimensional, with as many rows as `y`, got {inputs.shape} and {targets.shape}."
        )
    if inputs.min() < a or inputs.max() > b:
        raise ValueError(
            f"`t` must lie inside `interval` ({a}, {b}), got values from {inputs.min()} to {inputs.max()}."
        )
    edges = np.linspace(a, b, bins + 1)
    fine = a + (edges[1] - a) * 0.5 ** np.arange(dense, 0, -1)
    edges = np.concatenate([edges[:1], fine, edges[1:]])
    angles = (np.arange(degree) + 0.5) * math.pi / degree
    unit, barycentric = np.cos(angles), (-1.0) ** np.arange(degree) * np.sin(angles)
    which = np.clip(np.searchsorted(edges, inputs[:, 0], side="right") - 1, 0, len(edges) - 2)
    middle, half = (edges[1:] + edges[:-1]) / 2, np.diff(edges) / 2
    basis = _lagrange((inputs[:, 0] - middle[which]) / half[which], unit, barycentric)
    size = (len(edges) - 1, degree)
    weights, sums = np.zeros(size), np.zeros((*size, targets.shape[1]))
    np.add.at(weights, which, basis)
    np.add.at(sums, which, basis[:, :, None] * targets[:, None, :])
    dtype = jnp.result_type(float)
    return Statistics(
        nodes=jnp.asarray((middle[:, None] + half[:, None] * unit[None]).reshape(-1, 1), dtype),
        weights=jnp.asarray(weights.reshape(-1), dtype),
        targets=jnp.asarray(sums.reshape(-1, targets.shape[1]), dtype),
        squares=jnp.asarray(np.sum(targets**2, axis=0), dtype),
        num_data=jnp.asarray(len(inputs), dtype),
    )


def add(one: Statistics, other: Statistics) -> Statistics:
    """The statistics of two sets of data on the same nodes, together."""
    return Statistics(
        one.nodes,
        one.weights + other.weights,
        one.targets + other.targets,
        one.squares + other.squares,
        one.num_data + other.num_data,
    )


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
    regression, layer = _regression(model, statistics), model.layers[0]
    mean, root = _best(regression)
    groups, B, F = layer.posterior.shape
    if groups != mean.shape[0]:
        raise ValueError(f"`model` must have a group of features for each target, got {groups} for {mean.shape[0]}.")
    posterior = FullPosterior(mean.reshape(groups, B, F), root)
    return eqx.tree_at(lambda m: m.layers[0].posterior, model, posterior)


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


def _lagrange(x: np.ndarray, nodes: np.ndarray, barycentric: np.ndarray) -> np.ndarray:
    """Values (N, degree) of the Lagrange polynomials of the nodes at x, by the barycentric formula."""
    gap = x[:, None] - nodes[None]
    hit = np.abs(gap) < 1e-15
    terms = barycentric[None] / np.where(hit, 1.0, gap)
    values = terms / terms.sum(axis=1, keepdims=True)
    return np.where(np.any(hit, axis=1, keepdims=True), hit.astype(float), values)

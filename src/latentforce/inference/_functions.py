"""Coherent draws of whole functions: one draw, evaluated at any points, through all layers."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, PRNGKeyArray

from .. import _checks
from .._checks import Numbers
from .._data import matrix
from .._linalg import precise, stable_cholesky
from ..depth._layer import Layer
from ..depth._model import Model, layered
from ..depth._posteriors import apply
from ..features._points import InducingPoints


class Functions(eqx.Module):
    """n functions of the inputs: call them with (N, D) or (N,) for values (n, N, R) of f, as often as you like."""

    model: Model
    features: tuple[Float[Array, "n _ _ _"], ...]  # (n, g, B, F) of each layer
    knots: tuple[Array | None, ...]  # (B', G) or (B', G, D) times of each direction
    weights: tuple[Float[Array, "n _ _ _"] | None, ...]  # (n, r, B, G), of the residual kernel at the knots

    def __call__(self, x: Numbers) -> Float[Array, "n N R"]:
        """Values at x."""
        return _evaluate(self, jnp.asarray(matrix("x", x, self.model.num_inputs), self.features[0].dtype))


def sample_functions(model: Model, key: PRNGKeyArray, num_samples: int = 1, *, num_knots: int = 200) -> Functions:
    """Draws of the function that the model believes in.

    A draw is `A(t) e` with e from q, and a draw of what the features leave unexplained, which is fixed at
    `num_knots` times for each direction (over the features' interval and half its length on either side) and
    interpolated between them by its own kernel. Where a layer reads all inputs jointly the knots are scattered over the
    range of the inducing points. For shared forces that rest is drawn for each output by itself.

    !!! example

        >>> import jax, jax.numpy as jnp, latentforce as lf
        >>> x = jnp.linspace(0.0, 1.0, 30)
        >>> model = lf.build("dlfm-driven", x, jnp.sin(6 * x), num_frequencies=5)
        >>> functions = lf.sample_functions(model, jax.random.key(0), 3)
        >>> bool(jnp.all(functions(x)[:, :5] == functions(x)[:, :5])), functions(jnp.linspace(0.0, 1.0, 7)).shape
        (True, (3, 7, 1))
    """
    num_samples, num_knots = _checks.count("num_samples", num_samples), _checks.count("num_knots", num_knots)
    features, knots, weights = [], [], []
    for layer, k in zip(layered(model).layers, jax.random.split(key, model.depth), strict=True):
        for_features, for_rest, for_knots = jax.random.split(k, 3)
        features.append(jax.vmap(layer.posterior.sample)(jax.random.split(for_features, num_samples)))
        if layer.features.weight_space:
            knots.append(None)
            weights.append(None)
        else:
            knots.append(_knots(layer, num_knots, for_knots))
            weights.append(_weights(layer, knots[-1], for_rest, num_samples))
    return Functions(model, tuple(features), tuple(knots), tuple(weights))


def _knots(layer: Layer, num: int, key: PRNGKeyArray) -> Array:
    if isinstance(layer.features, InducingPoints):
        low, high = jnp.min(layer.features.locations, axis=1), jnp.max(layer.features.locations, axis=1)
    else:
        low, high = layer.features.interval  # type: ignore[attr-defined]
    middle, reach = (low + high) / 2, high - low
    if low.ndim == 1:
        return middle[:, None] + reach[:, None] * jnp.linspace(-1.0, 1.0, num, dtype=low.dtype)[None]
    scattered = jax.random.uniform(key, (num, low.shape[1]), low.dtype, -0.6, 0.6)
    return middle[:, None] + reach[:, None] * scattered[None]


@partial(precise, static_argnames="num_samples")
def _weights(layer: Layer, knots: Array, key: PRNGKeyArray, num_samples: int) -> Float[Array, "n r B G"]:
    """`K^{-1} values` of draws at the knots, K the residual kernel: `root^{-T} normal`."""
    kernel = layer.outputs.residual_kernel(layer.features, knots, knots)  # (a, B, G, G)
    scale = jnp.maximum(jnp.diagonal(kernel, axis1=2, axis2=3), jnp.max(jnp.abs(kernel), axis=(2, 3))[..., None] / 10)
    roots = jax.vmap(jax.vmap(stable_cholesky))(kernel, scale)
    _, B, G, _ = kernel.shape
    normal = jax.random.normal(key, (num_samples, layer.num_latents, B, G), kernel.dtype)
    roots = jnp.broadcast_to(roots, (layer.num_latents, B, G, G))
    solve = jax.vmap(jax.vmap(lambda root, z: jax.scipy.linalg.solve_triangular(root, z, lower=True, trans=1)))
    return jax.vmap(lambda z: solve(roots, z))(normal)


@precise
def _evaluate(functions: Functions, x: Float[Array, "N D"]) -> Float[Array, "n N R"]:
    def one(features: tuple, weights: tuple) -> Float[Array, "N R"]:
        h = x
        for layer, e, knots, w in zip(functions.model.layers, features, functions.knots, weights, strict=True):
            times = layer.inputs(h)
            A, _ = layer.outputs.summary(layer.features, times)
            latent = apply(A, e)
            if w is not None and knots is not None:
                kernel = layer.outputs.residual_kernel(layer.features, times, knots)  # (a, B, N, G)
                kernel = jnp.broadcast_to(kernel, (layer.num_latents, *kernel.shape[1:]))
                latent = latent + jnp.einsum("rbng,rbg->nr", kernel, w)
            h = layer.finish(latent, h)
        return h

    return jax.vmap(one)(functions.features, functions.weights)

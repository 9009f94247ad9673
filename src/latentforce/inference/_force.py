"""The hidden force: what was pushing the system, for every layer, direction and output."""

from functools import partial

from jax import Array
from jaxtyping import Float

from .. import _checks
from .._checks import Numbers, within
from .._linalg import precise
from ..depth._layer import Layer
from ..depth._model import Model, layered
from ._gaussian import Normal


def force(model: Model, t: Numbers, *, layer: int = 0, index: int = 0, direction: int = 0) -> Normal:
    """The posterior of a force `u` at times t (N,), jointly: mean, covariance and draws.

    Times are what the layer reads: input dimension `direction` for the first layer of an additive model, an output of
    the layer before for others. `index` is the output whose force is asked for, or the number of a shared force.
    (Where a layer reads all inputs jointly, its force is its output, and `t` is (N, D).) Its band takes the
    hyperparameters as known: where the data leave a rate or a sensitivity open, the force is less certain than it says,
    and [`latentforce.laplace`][] gives the band with that uncertainty in it (`benchmarks/force_recovery.py`).

    !!! example

        >>> import jax.numpy as jnp, latentforce as lf
        >>> x = jnp.linspace(0.0, 1.0, 30)
        >>> model = lf.build("dlfm-driven", x, jnp.sin(6 * x), num_frequencies=5)
        >>> u = lf.force(model, x, layer=0)
        >>> u.mean.shape, u.covariance.shape
        ((30,), (30, 30))
    """
    times = _checks.points("t", t, ranks=(1, 2))
    within("layer", layer, layered(model).depth)
    chosen = model.layers[layer]
    groups, blocks, _ = chosen.posterior.shape
    num_forces = chosen.outputs.num_forces(groups)
    within("index", index, num_forces)
    within("direction", direction, groups * blocks // num_forces)
    return _force(chosen, times.astype(chosen.posterior.mean.dtype), index, direction)


@partial(precise, static_argnames=("index", "direction"))
def _force(layer: Layer, t: Float[Array, " N"] | Float[Array, "N D"], index: int, direction: int) -> Normal:
    A, residual = layer.outputs.force(layer.features, t, index, direction)
    group, block = layer.outputs.block(index, direction)
    spread = A @ layer.posterior.rows(group, block)
    return Normal(A @ layer.posterior.mean[group, block], residual + spread @ spread.T)

"""How good predictions are: the three numbers of every table."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from .._checks import Numbers
from ._prediction import AbstractPrediction


class Scores(NamedTuple):
    """Root mean square error, negative log likelihood for each target, share of targets inside the central interval."""

    rmse: Float[Array, ""]
    nmll: Float[Array, ""]
    coverage: Float[Array, ""]


def scores(prediction: AbstractPrediction, y: Numbers, *, coverage: float = 0.95) -> Scores:
    """Scores of a prediction on observations (N, P) or (N,); those that are NaN do not count.

    !!! example

        >>> import jax.numpy as jnp, latentforce as lf
        >>> x = jnp.linspace(0.0, 1.0, 30)
        >>> model = lf.build("lfm-driven", x, jnp.sin(6 * x), num_frequencies=5)
        >>> lf.scores(lf.predict(model, x), jnp.sin(6 * x)).rmse.shape
        ()
    """
    mean, targets = prediction.mean, prediction.targets(y)
    seen = ~jnp.isnan(targets)
    inside = prediction.holds(targets, coverage).astype(mean.dtype)

    rmse = jnp.sqrt(jnp.mean((mean - targets) ** 2, where=seen))
    return Scores(rmse, -jnp.mean(prediction.log_density(targets), where=seen), jnp.mean(inside, where=seen))

"""Linear algebra on covariances."""

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float


def stable_cholesky(matrix: Float[Array, "n n"], scale: Float[Array, " n"] | None = None) -> Float[Array, "n n"]:
    """The Cholesky factor of a covariance: the library's one place for jitter.

    The jitter follows the dtype, the size and `scale`, the variances (default: the diagonal) whose rounding it must
    cover.
    """
    scale = jnp.diag(matrix) if scale is None else scale
    return jnp.linalg.cholesky(matrix + 8 * matrix.shape[0] * jnp.finfo(matrix.dtype).eps * jnp.diag(scale))

"""Linear algebra on covariances."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float


def precise(function: Callable, **options: Any) -> Callable:
    """`jax.jit(function, **options)`, with matrix products in full precision.

    By default an accelerator may multiply float32 matrices with ten bits of mantissa, three digits: not enough here.
    """

    @functools.wraps(function)
    def in_full_precision(*arguments: Any, **keywords: Any) -> Any:
        with jax.default_matmul_precision("highest"):
            return function(*arguments, **keywords)

    return jax.jit(in_full_precision, **options)


def stable_cholesky(matrix: Float[Array, "n n"], scale: Float[Array, " n"] | None = None) -> Float[Array, "n n"]:
    """The Cholesky factor of a covariance: the library's one place for jitter.

    The jitter follows the dtype, the size and `scale`, the variances (default: the diagonal) whose rounding it must
    cover.
    """
    scale = jnp.diag(matrix) if scale is None else scale
    return jnp.linalg.cholesky(matrix + 8 * matrix.shape[0] * jnp.finfo(matrix.dtype).eps * jnp.diag(scale))

"""Linear algebra on covariances."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float


def in_full_precision(function: Callable) -> Callable:
    """The function, with its matrix products in full precision.

    By default an accelerator may multiply float32 matrices with ten bits of mantissa, three digits: not enough here.
    """

    @functools.wraps(function)
    def precisely(*arguments: Any, **keywords: Any) -> Any:
        with jax.default_matmul_precision("highest"):
            return function(*arguments, **keywords)

    return precisely


def precise(function: Callable, **options: Any) -> Callable:
    """`jax.jit(function, **options)`, `in_full_precision`."""
    return jax.jit(in_full_precision(function), **options)


QUICK = {"xla_cpu_use_fusion_emitters": False} if jax.__version_info__ < (0, 11) else {}
"""`compiler_options` of a large program that does not run for long: XLA's older code generator for CPUs needs two
thirds of the newer one's time, and its loops up to a tenth more. Where it is gone, the option would be an error.
"""


def computed(*vectors: Float[Array, "*shape"]) -> list[Float[Array, "*shape"]]:
    """The vectors as they are, but computed here and kept.

    XLA's fusion computes an expression anew wherever it is used: cosines for F numbers become cosines for N x F
    entries, a random number is drawn again in every pass. Accelerators keep what is behind a barrier; on a CPU barriers
    are gone before fusion, but a matrix product is never repeated, so the vectors go through one with the identity; it
    is exact, and has a gradient.
    """
    rows = jnp.stack(vectors if len(vectors) > 1 else vectors * 2)
    eye = jnp.eye(rows.shape[0], dtype=rows.dtype)
    kept = jax.lax.platform_dependent(
        rows,
        cpu=lambda rows: jnp.tensordot(eye, rows, axes=1, precision="highest"),
        default=jax.lax.optimization_barrier,
    )
    return list(kept[: len(vectors)])


@jax.custom_jvp
def narrow_product(left: Float[Array, "F r"], right: Float[Array, "r N"]) -> Float[Array, "F N"]:
    """`left @ right` over few terms, which on an accelerator merges with what it is added to."""
    return outer_products(left, right)


@narrow_product.defjvp
def _narrow_product_jvp(factors: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    (left, right), (by_left, by_right) = factors, tangents
    return narrow_product(left, right), outer_products(by_left, right) + _whole_product(left, by_right)


def outer_products(left: Float[Array, "F r"], right: Float[Array, "r N"]) -> Float[Array, "F N"]:
    """`left @ right`, over few terms: on an accelerator the sum of r outer products, so that F x N numbers need not be
    written and read again, nor for its gradients; on a CPU a product, as its gradients are faster products than sums.
    """
    return jax.lax.platform_dependent(left, right, cpu=_whole_product, default=_summed_products)


def _whole_product(left: Float[Array, "F r"], right: Float[Array, "r N"]) -> Float[Array, "F N"]:
    return jnp.matmul(left, right, precision="highest")  # said here: gradients are traced after their function


def _summed_products(left: Float[Array, "F r"], right: Float[Array, "r N"]) -> Float[Array, "F N"]:
    return functools.reduce(jnp.add, [left[:, i : i + 1] * right[i : i + 1] for i in range(right.shape[0])])


def stable_cholesky(matrix: Float[Array, "n n"], scale: Float[Array, " n"] | None = None) -> Float[Array, "n n"]:
    """The Cholesky factor of a covariance, `steadied`."""
    return jnp.linalg.cholesky(steadied(matrix, scale))


def steadied(matrix: Float[Array, "n n"], scale: Float[Array, " n"] | None = None) -> Float[Array, "n n"]:
    """A covariance that has a Cholesky factor in spite of its rounding: the library's one place for jitter.

    The jitter follows the dtype, the size and `scale`, the variances (default: the diagonal) whose rounding it must
    cover.
    """
    scale = jnp.diag(matrix) if scale is None else scale
    return matrix + 8 * matrix.shape[0] * jnp.finfo(matrix.dtype).eps * jnp.diag(scale)

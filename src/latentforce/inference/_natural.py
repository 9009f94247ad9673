"""Natural-gradient steps for q(e): exact for a Gaussian likelihood with step one, sound for log-concave ones."""

import jax.numpy as jnp
from jax import Array

from .._triangular import cholesky, solve_lower
from ..depth._posteriors import AbstractPosterior


def natural_step(posterior: AbstractPosterior, gradients: tuple[Array, Array], size: Array) -> AbstractPosterior:
    """`eta + size dL/dmu`, `eta` the natural and `mu` the expectation parameters of q.

    `gradients` of an evidence lower bound L of all data, in q's mean and covariance (`AbstractPosterior.moments`).
    With `Lambda` the precision: `Lambda <- Lambda - 2 size dL/dS`, and
    `Lambda m <- Lambda m + size (dL/dm - 2 dL/dS m)`.
    """
    mean, covariance = posterior.moments()
    by_mean, by_covariance = gradients
    by_covariance = (by_covariance + jnp.swapaxes(by_covariance, -1, -2)) / 2
    precision = _inverse(covariance)
    shifted = _times(precision, mean) + size * (by_mean - 2 * _times(by_covariance, mean))
    covariance = _inverse(precision - 2 * size * by_covariance)
    return posterior.with_moments(_times(covariance, shifted), covariance)


def _times(matrix: Array, vector: Array) -> Array:
    return jnp.einsum("...ij,...j->...i", matrix, vector)


def _inverse(matrix: Array) -> Array:
    """Of a positive definite matrix; symmetric. Not finite where it is not positive definite: training looks."""
    eye = jnp.broadcast_to(jnp.eye(matrix.shape[-1], dtype=matrix.dtype), matrix.shape)
    half = solve_lower(cholesky(matrix), eye)
    return jnp.swapaxes(half, -1, -2) @ half

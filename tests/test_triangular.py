"""Factors and triangular systems made of products: against dense algebra, in value and gradient."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from latentforce._triangular import LARGEST, SMALL, cholesky, small_inverse, solve_lower

SIZES = (1, 2, 3, 4, 5, 16, 17, 40, 130)


def problem(n, dtype, seed=0):
    generator = np.random.default_rng(seed)
    draws = generator.standard_normal((n, n + 5))
    return (draws @ draws.T / n + 0.1 * np.eye(n)).astype(dtype), generator.standard_normal((n, 3)).astype(dtype)


@pytest.mark.parametrize("n", SIZES)
def test_factor_and_solution_against_scipy(n, dtype):
    matrix, b = problem(n, dtype)
    root, white = jax.jit(lambda matrix, b: (cholesky(matrix), solve_lower(cholesky(matrix), b)))(matrix, b)
    expected = scipy.linalg.cholesky(matrix.astype("float64"), lower=True)
    tolerance = 1e-12 if dtype == "float64" else 1e-4
    np.testing.assert_allclose(root, expected, rtol=tolerance, atol=tolerance)
    expected = scipy.linalg.solve_triangular(expected, b.astype("float64"), lower=True)
    np.testing.assert_allclose(white, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("n", (2, 3, 5, 40))
def test_gradient_against_the_closed_form(n, x64):
    """`b^T K^{-1} b + log |K|` has the derivative `K^{-1} - K^{-1} b b^T K^{-1}`."""
    matrix, b = problem(n, "float64")

    def value(matrix, b):
        root = cholesky(matrix)
        return jnp.sum(solve_lower(root, b) ** 2) + 2 * jnp.sum(jnp.log(jnp.diag(root)))

    by_matrix, by_b = jax.jit(jax.grad(value, argnums=(0, 1)))(matrix, b)
    inverse = np.linalg.inv(matrix)
    np.testing.assert_allclose(by_matrix, inverse - inverse @ b @ b.T @ inverse, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(by_b, 2 * inverse @ b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n", range(1, SMALL + 1))
def test_small_inverse_against_numpy(n, dtype):
    root = np.linalg.cholesky(problem(n, "float64")[0])
    tolerance = 1e-13 if dtype == "float64" else 1e-5
    np.testing.assert_allclose(small_inverse(jnp.asarray(root, dtype)), np.linalg.inv(root), tolerance, tolerance)


def test_batches_are_factorised_one_by_one(x64):
    matrices, b = (np.stack(part) for part in zip(*(problem(20, "float64", seed) for seed in range(6)), strict=True))
    matrices, b = jnp.asarray(matrices.reshape(2, 3, 20, 20)), jnp.asarray(b.reshape(2, 3, 20, 3))
    together = solve_lower(cholesky(matrices), b)
    np.testing.assert_allclose(together[1, 2], solve_lower(cholesky(matrices[1, 2]), b[1, 2]), rtol=1e-12, atol=1e-12)


def test_not_positive_definite_is_nan(dtype):
    assert np.isnan(cholesky(-jnp.eye(20, dtype=dtype))).any()


def test_training_calls_no_lapack_on_a_cpu(x64):
    """LAPACK's batches can wait for themselves (see the module): compiled programs must not call it."""
    matrix, b = problem(40, "float64")
    matrices, bs = jnp.stack([matrix] * 4), jnp.stack([b] * 4)
    gradient = jax.jit(jax.grad(lambda matrices, bs: jnp.sum(solve_lower(cholesky(matrices), bs) ** 2)))
    assert "lapack_d" not in gradient.lower(matrices, bs).compile().as_text()


def test_large_matrices_take_the_vendors_routines(x64):
    text = jax.jit(cholesky).lower(jnp.eye(LARGEST + 1)).as_text()
    assert "lapack_d" in text or "cusolver" in text

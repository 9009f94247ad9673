"""Cholesky factors and triangular systems that never wait for themselves.

On a CPU, jaxlib 0.10 cuts batches of LAPACK calls into tasks for the threads that the calls themselves occupy: where as
many run at once as there are cores, all wait for ever; and a BLAS with threads of its own slows down tenfold where two
run at once. So here, up to `LARGEST`, they are made of matrix products and of loops over the columns of small blocks;
other devices, and larger matrices, take the vendors' routines. Those of a few columns are written out, on every device:
to call a routine takes longer than to do its work.
"""

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

BLOCK, MOST = 16, 8  # columns of a block, more where there would be more than so many: they take long to compile
LARGEST = 1024
SMALL = 4  # columns that are written out


def cholesky(matrix: Float[Array, "*batch n n"]) -> Float[Array, "*batch n n"]:
    """The lower triangular L with `L L^T = matrix`; NaN where the matrix is not positive definite."""
    return jnp.vectorize(small_root if matrix.shape[-1] <= SMALL else _root, signature="(n,n)->(n,n)")(matrix)


def solve_lower(root: Float[Array, "*batch n n"], b: Float[Array, "*batch n m"]) -> Float[Array, "*batch n m"]:
    """`L^{-1} b` for a lower triangular L."""
    return jnp.vectorize(_solution, signature="(n,n),(n,m)->(n,m)")(root, b)


def small_root(matrix: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """`cholesky` of a few columns."""
    rest, rows, columns = (matrix + matrix.T) / 2, jnp.arange(matrix.shape[0]), []  # for a symmetric gradient
    for j in range(matrix.shape[0]):
        columns.append(jnp.where(rows >= j, rest[:, j], 0.0) / jnp.sqrt(rest[j, j]))
        rest = rest - columns[j][:, None] * columns[j][None, :]
    return jnp.stack(columns, axis=1)


def small_inverse(root: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """`L^{-1}` for a lower triangular L of a few columns, from the last to the first."""
    columns: list[Array] = []
    for j in reversed(range(root.shape[0])):
        known = sum((root[j + 1 + i, j] * column for i, column in enumerate(columns)), jnp.zeros_like(root[0]))
        columns.insert(0, (jnp.eye(root.shape[0], dtype=root.dtype)[j] - known) / root[j, j])
    return jnp.stack(columns, axis=1)


@jax.custom_jvp
def _root(matrix: Array) -> Array:
    if matrix.shape[0] > LARGEST:
        return jnp.linalg.cholesky(matrix)
    return jax.lax.platform_dependent(matrix, cpu=_cholesky, default=jnp.linalg.cholesky)


@_root.defjvp
def _root_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """`dL = L half(L^{-1} dK L^{-T})`, where `half` keeps the lower triangle and half of the diagonal."""
    (matrix,), (change,) = primals, tangents
    root = _root(matrix)
    inner = _solution(root, _solution(root, (change + change.T) / 2).T)
    return root, root @ (jnp.tril(inner) - jnp.diag(jnp.diag(inner)) / 2)


@jax.custom_jvp
def _solution(root: Array, b: Array) -> Array:
    def vendor(root: Array, b: Array) -> Array:
        return jax.scipy.linalg.solve_triangular(root, b, lower=True)

    if root.shape[0] > LARGEST:
        return vendor(root, b)
    return jax.lax.platform_dependent(root, b, cpu=_solve_lower, default=vendor)


@_solution.defjvp
def _solution_jvp(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    (root, b), (by_root, by_b) = primals, tangents
    x = _solution(root, b)
    return x, _solution(root, by_b - jnp.tril(by_root) @ x)


def _cholesky(matrix: Array) -> Array:
    n, padded = matrix.shape[0], _padded(matrix)
    return _factor(padded, _num_blocks(n))[0][:n, :n]


def _solve_lower(root: Array, b: Array) -> Array:
    n, num = root.shape[0], _num_blocks(root.shape[0])
    root = _padded(root)
    size = root.shape[0] // num
    blocks = jnp.stack([root[i : i + size, i : i + size] for i in range(0, root.shape[0], size)])
    return _substitute(root, jax.vmap(_inverse)(blocks), jnp.pad(b, ((0, root.shape[0] - n), (0, 0))))[:n]


def _num_blocks(n: int) -> int:
    return min(-(-n // BLOCK), MOST)


def _padded(matrix: Array) -> Array:
    """With ones on the diagonal, up to a multiple of the size of a block."""
    n, num = matrix.shape[0], _num_blocks(matrix.shape[0])
    total = n + -n % num
    return jnp.eye(total, dtype=matrix.dtype).at[:n, :n].set(matrix)


def _factor(matrix: Array, num: int) -> tuple[Array, Array]:
    """L and the inverses of its diagonal blocks, by halves: `L21 = K21 L11^{-T}`, and L22 from what is left of K22."""
    if num == 1:
        root = _factor_block(matrix)
        return root, _inverse(root)[None]
    h = num // 2 * (matrix.shape[0] // num)
    first, inverses = _factor(matrix[:h, :h], num // 2)
    below = _substitute(first, inverses, matrix[h:, :h].T).T
    second, more = _factor(matrix[h:, h:] - below @ below.T, num - num // 2)
    root = jnp.block([[first, jnp.zeros((h, second.shape[0]), matrix.dtype)], [below, second]])
    return root, jnp.concatenate([inverses, more])


def _substitute(root: Array, inverses: Array, b: Array) -> Array:
    """`L^{-1} b` by halves, from the inverses of the diagonal blocks."""
    num = inverses.shape[0]
    if num == 1:
        return inverses[0] @ b
    h = num // 2 * (root.shape[0] // num)
    first = _substitute(root[:h, :h], inverses[: num // 2], b[:h])
    second = _substitute(root[h:, h:], inverses[num // 2 :], b[h:] - root[h:, :h] @ first)
    return jnp.concatenate([first, second])


def _factor_block(matrix: Array) -> Array:
    """A column at a time; its square is taken off those that follow."""
    rows = jnp.arange(matrix.shape[0])

    def column(j: Array, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        rest, root = carry
        values = jnp.where(rows >= j, rest[:, j], 0.0) / jnp.sqrt(rest[j, j])
        return rest - values[:, None] * values[None, :], root.at[:, j].set(values)

    return jax.lax.fori_loop(0, matrix.shape[0], column, (matrix, jnp.zeros_like(matrix)))[1]


def _inverse(root: Array) -> Array:
    """W of `W L = I`, from the last column to the first.

    Its rounding is small on this side: what matters is W b, and b is L times what is looked for.
    """
    size, rows = root.shape[0], jnp.arange(root.shape[0])

    def column(i: Array, inverse: Array) -> Array:
        j = size - 1 - i
        known = jnp.sum(inverse * jnp.where(rows > j, root[:, j], 0.0)[None, :], axis=1)
        return inverse.at[:, j].set(((rows == j).astype(root.dtype) - known) / root[j, j])

    return jax.lax.fori_loop(0, size, column, jnp.zeros_like(root))

"""Variational posteriors q(e) of whitened features: full, block-diagonal by direction, or diagonal covariance.

Shapes: `e` is (g, B, F), g independent groups of B blocks of F features. Feature maps `A` are (a, B, F, N), with the
inputs last: so all products are of long rows; where one of a and g is one, it serves all of the other.
"""

import abc

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, PRNGKeyArray

from .._parameters import FREE, POSITIVE, TRIANGULAR, parameter
from .._triangular import cholesky


class AbstractPosterior(eqx.Module):
    """`q(e) = N(mean, root root^T)` against the prior `N(0, I)`."""

    mean: eqx.AbstractVar[Float[Array, "g B F"]]

    @abc.abstractmethod
    def project_and_spread(self, A: Float[Array, "a B F N"]) -> tuple[Float[Array, "N r"], Float[Array, "N r"]]:
        """Mean and variance of `A . e`, for each output r: `A . mean` and `|A root|^2`."""

    @abc.abstractmethod
    def spread_jointly(self, A: Float[Array, "a B F N"]) -> Float[Array, "N a a"]:
        """Covariance of `A_r . e` and `A_s . e` for outputs r, s of one group."""

    @abc.abstractmethod
    def kl(self) -> Float[Array, ""]:
        """`KL(q(e) || N(0, I))`."""

    @abc.abstractmethod
    def rows(self, group: int, block: int) -> Float[Array, "F c"]:
        """A root of the covariance of one block."""

    @abc.abstractmethod
    def deviate(self, normal: Float[Array, "g B F"]) -> Float[Array, "g B F"]:
        """`root @ normal`."""

    @classmethod
    @abc.abstractmethod
    def start(cls, shape: tuple[int, int, int], deviation: float, dtype: jnp.dtype) -> "AbstractPosterior":
        """Mean zero and every standard deviation `deviation`."""

    @abc.abstractmethod
    def moments(self) -> tuple[Float[Array, "*lead c"], Float[Array, "*lead c c"]]:
        """Mean and covariance of each independent part."""

    def moments_of_block(self) -> tuple[Float[Array, "g F"], Float[Array, "g F F"]] | None:
        """Mean and covariance where there is one block and its features depend on each other; None elsewhere."""
        g, B, F = self.shape
        mean, covariance = self.moments()
        if B > 1 or covariance.shape[-1] != F:
            return None
        return mean.reshape(g, F), covariance.reshape(g, F, F)

    @abc.abstractmethod
    def with_moments(self, mean: Float[Array, "*lead c"], covariance: Float[Array, "*lead c c"]) -> "AbstractPosterior":
        """A posterior of this kind with those moments."""

    @property
    def shape(self) -> tuple[int, ...]:
        """`(g, B, F)`."""
        return self.mean.shape

    def project(self, A: Float[Array, "a B F N"]) -> Float[Array, "N r"]:
        """`A . mean`, for each output."""
        return apply(A, self.mean)

    def sample(self, key: PRNGKeyArray) -> Float[Array, "g B F"]:
        """One draw of all features."""
        return self.mean + self.deviate(jax.random.normal(key, self.mean.shape, self.mean.dtype))

    def _distance(self) -> Float[Array, ""]:
        return jnp.sum(self.mean * self.mean) - self.mean.size


class FullPosterior(AbstractPosterior):
    """One covariance for all features of a group (the paper's)."""

    mean: Float[Array, "g B F"] = parameter(FREE)
    root: Float[Array, "g BF BF"] = parameter(TRIANGULAR)

    def project_and_spread(self, A: Float[Array, "a B F N"]) -> tuple[Float[Array, "N r"], Float[Array, "N r"]]:
        """Products with the mean as one more column of the root: A is read once.

        Many features go in two halves, as the root is triangular: its second half sees the second half of them only.
        """
        flat, size = _flat(A), self.root.shape[1]
        cut = size // 2 if size >= MANY else size
        rows = jnp.concatenate([jnp.swapaxes(self.root, 1, 2)[:, :cut], self.mean.reshape(-1, 1, size)], axis=1)
        moved = _times(rows, flat)
        spread = jnp.sum(moved[:, :-1] ** 2, axis=1)
        if cut < size:
            rest = _times(jnp.swapaxes(self.root, 1, 2)[:, cut:, cut:], flat[:, cut:])
            spread = spread + jnp.sum(rest**2, axis=1)
        return moved[:, -1].T, spread.T

    def spread_jointly(self, A: Float[Array, "a B F N"]) -> Float[Array, "N a a"]:
        """See `AbstractPosterior`."""
        return _gram(jnp.swapaxes(self.root, 1, 2) @ _flat(A))

    def kl(self) -> Float[Array, ""]:
        """See `AbstractPosterior`."""
        return _kl(self._distance(), self.root, jnp.diagonal(self.root, axis1=1, axis2=2))

    def rows(self, group: int, block: int) -> Float[Array, "F c"]:
        """See `AbstractPosterior`."""
        size = self.mean.shape[2]
        return self.root[group, block * size : (block + 1) * size]

    def deviate(self, normal: Float[Array, "g B F"]) -> Float[Array, "g B F"]:
        """See `AbstractPosterior`."""
        return jnp.einsum("gij,gj->gi", self.root, normal.reshape(normal.shape[0], -1)).reshape(normal.shape)

    def moments(self) -> tuple[Float[Array, "*lead c"], Float[Array, "*lead c c"]]:
        """See `AbstractPosterior`."""
        return self.mean.reshape(self.root.shape[:2]), self.root @ jnp.swapaxes(self.root, 1, 2)

    def with_moments(self, mean: Float[Array, "*lead c"], covariance: Float[Array, "*lead c c"]) -> "FullPosterior":
        """See `AbstractPosterior`."""
        return FullPosterior(mean.reshape(self.mean.shape), cholesky(covariance))

    @classmethod
    def start(cls, shape: tuple[int, int, int], deviation: float, dtype: jnp.dtype) -> "FullPosterior":
        """See `AbstractPosterior`."""
        g, B, F = shape
        return cls(*_start(shape, deviation * np.eye(B * F), (g,), dtype))


class BlockPosterior(AbstractPosterior):
    """Directions independent: a covariance for each block, so the cost grows linearly with their number."""

    mean: Float[Array, "g B F"] = parameter(FREE)
    root: Float[Array, "g B F F"] = parameter(TRIANGULAR)

    def project_and_spread(self, A: Float[Array, "a B F N"]) -> tuple[Float[Array, "N r"], Float[Array, "N r"]]:
        """One product with the mean as one more column of each root: A is read once."""
        g, B, F, _ = self.root.shape
        rows = jnp.concatenate([jnp.swapaxes(self.root, 2, 3), self.mean[:, :, None]], axis=2)  # (g, B, F+1, F)
        if A.shape[0] == 1:
            moved = (jnp.swapaxes(rows, 0, 1).reshape(B, g * (F + 1), F) @ A[0]).reshape(B, g, F + 1, -1)
            blocks = 0
        else:
            moved = jnp.broadcast_to(rows, (A.shape[0], B, F + 1, F)) @ A
            blocks = 1
        mean = jnp.sum(moved[:, :, -1], axis=blocks)
        return mean.T, jnp.sum(moved[:, :, :-1] ** 2, axis=(blocks, 2)).T

    def spread_jointly(self, A: Float[Array, "a B F N"]) -> Float[Array, "N a a"]:
        """See `AbstractPosterior`."""
        return _gram(_flat(jnp.swapaxes(self.root, 2, 3) @ A))

    def kl(self) -> Float[Array, ""]:
        """See `AbstractPosterior`."""
        return _kl(self._distance(), self.root, jnp.diagonal(self.root, axis1=2, axis2=3))

    def rows(self, group: int, block: int) -> Float[Array, "F c"]:
        """See `AbstractPosterior`."""
        return self.root[group, block]

    def deviate(self, normal: Float[Array, "g B F"]) -> Float[Array, "g B F"]:
        """See `AbstractPosterior`."""
        return jnp.einsum("gbij,gbj->gbi", self.root, normal)

    def moments(self) -> tuple[Float[Array, "*lead c"], Float[Array, "*lead c c"]]:
        """See `AbstractPosterior`."""
        return self.mean, self.root @ jnp.swapaxes(self.root, 2, 3)

    def with_moments(self, mean: Float[Array, "*lead c"], covariance: Float[Array, "*lead c c"]) -> "BlockPosterior":
        """See `AbstractPosterior`."""
        return BlockPosterior(mean, cholesky(covariance))

    @classmethod
    def start(cls, shape: tuple[int, int, int], deviation: float, dtype: jnp.dtype) -> "BlockPosterior":
        """See `AbstractPosterior`."""
        g, B, F = shape
        return cls(*_start(shape, deviation * np.eye(F), (g, B), dtype))


class DiagonalPosterior(AbstractPosterior):
    """All features independent: the cheapest."""

    mean: Float[Array, "g B F"] = parameter(FREE)
    scale: Float[Array, "g B F"] = parameter(POSITIVE)

    def project_and_spread(self, A: Float[Array, "a B F N"]) -> tuple[Float[Array, "N r"], Float[Array, "N r"]]:
        """See `AbstractPosterior`."""
        return self.project(A), apply(A * A, self.scale**2)

    def spread_jointly(self, A: Float[Array, "a B F N"]) -> Float[Array, "N a a"]:
        """See `AbstractPosterior`."""
        return _gram(_flat(A * self.scale[..., None]))

    def kl(self) -> Float[Array, ""]:
        """See `AbstractPosterior`."""
        return _kl(self._distance(), self.scale, self.scale)

    def rows(self, group: int, block: int) -> Float[Array, "F c"]:
        """See `AbstractPosterior`."""
        return jnp.diag(self.scale[group, block])

    def deviate(self, normal: Float[Array, "g B F"]) -> Float[Array, "g B F"]:
        """See `AbstractPosterior`."""
        return self.scale * normal

    def moments(self) -> tuple[Float[Array, "*lead c"], Float[Array, "*lead c c"]]:
        """See `AbstractPosterior`."""
        return self.mean[..., None], (self.scale**2)[..., None, None]

    def with_moments(self, mean: Float[Array, "*lead c"], covariance: Float[Array, "*lead c c"]) -> "DiagonalPosterior":
        """See `AbstractPosterior`."""
        return DiagonalPosterior(mean[..., 0], jnp.sqrt(covariance[..., 0, 0]))

    @classmethod
    def start(cls, shape: tuple[int, int, int], deviation: float, dtype: jnp.dtype) -> "DiagonalPosterior":
        """See `AbstractPosterior`."""
        return cls(*_start(shape, np.asarray(deviation), shape, dtype))


def _start(
    shape: tuple[int, ...], root: np.ndarray, lead: tuple[int, ...], dtype: jnp.dtype
) -> tuple[Float[Array, "g B F"], Float[Array, "..."]]:
    """Means of zero, and a root repeated over leading axes. Made by NumPy: JAX would compile a program for each."""
    repeated = np.broadcast_to(root.astype(dtype), (*lead, *root.shape))
    return jax.device_put(np.zeros(shape, dtype)), jax.device_put(repeated)


MANY = 128  # features, from where half a product is worth a second call
POSTERIORS = {"full": FullPosterior, "block": BlockPosterior, "diagonal": DiagonalPosterior}


def apply(A: Float[Array, "a B F N"], e: Float[Array, "g B F"]) -> Float[Array, "N r"]:
    """`A . e` for each output, where one of a and g may serve all of the other."""
    if A.shape[0] == 1:
        return (e.reshape(e.shape[0], -1) @ _flat(A)[0]).T
    if e.shape[0] == 1:
        return jnp.einsum("abfn,bf->na", A, e[0])
    return jnp.einsum("gbfn,gbf->ng", A, e)


def _times(rows: Float[Array, "g c F"], flat: Float[Array, "a F N"]) -> Float[Array, "r c N"]:
    """The product, for each output, where one of a and g may serve all of the other."""
    g, c, size = rows.shape
    if flat.shape[0] == 1:
        return (rows.reshape(g * c, size) @ flat[0]).reshape(g, c, -1)
    return jnp.broadcast_to(rows, (flat.shape[0], c, size)) @ flat


def _flat(A: Float[Array, "a B F N"]) -> Float[Array, "a BF N"]:
    return A.reshape(A.shape[0], -1, A.shape[3])


def _gram(moved: Float[Array, "a c N"]) -> Float[Array, "N a a"]:
    return jnp.einsum("rcn,scn->nrs", moved, moved)


def _kl(distance: Float[Array, ""], root: Array, diagonal: Array) -> Float[Array, ""]:
    return (jnp.sum(root * root) + distance) / 2 - jnp.sum(jnp.log(jnp.abs(diagonal)))

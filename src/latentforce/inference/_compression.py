"""Data as sums: all that a shallow model with Gaussian noise needs of them, in one pass, whatever their number."""

import math
from collections.abc import Iterable, Iterator

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from .._checks import Numbers, concrete, count
from .._checks import interval as checked_interval
from .._data import matrix, observed, row_weights
from ._objectives import Batch

BLOCK = 2**16  # rows at a time: what is made of them stays in the processor's cache


class Statistics(eqx.Module):
    """All that the bound needs of the data, for features that are functions of the nodes: sums of smooth functions.

    `sum_n g(x_n) = sum_j weight_j g(node_j)` and `sum_n y_n g(x_n) = sum_j target_j g(node_j)`. Of the data themselves
    (`of_data`) the nodes are the inputs; in one dimension they can be few Chebyshev nodes instead (`compress`). Those
    of two sets of data on the same nodes add up.
    """

    nodes: Float[Array, "J D"]
    weights: Float[Array, " J"]
    targets: Float[Array, "J P"]
    squares: Float[Array, " P"]  # sum of y^2
    num_data: Float[Array, ""]

    def __add__(self, other: "Statistics") -> "Statistics":
        if self.nodes.shape != other.nodes.shape or not bool(jnp.all(self.nodes == other.nodes)):
            raise ValueError("`other` must be of data compressed to the same nodes: equal interval, bins and degree.")
        return Statistics(
            self.nodes,
            self.weights + other.weights,
            self.targets + other.targets,
            self.squares + other.squares,
            self.num_data + other.num_data,
        )

    def of_nothing(self) -> "Statistics":
        """Of no data, on the same nodes."""
        return Statistics(
            self.nodes, *(jnp.zeros_like(part) for part in (self.weights, self.targets, self.squares, self.num_data))
        )

    def standardised(self, mean: Float[Array, " P"], scale: Float[Array, " P"]) -> "Statistics":
        """Of the targets `(y - mean) / scale`: also their units can be settled after the data are gone."""
        total = jnp.sum(self.targets, axis=0)  # Lagrange polynomials add up to one
        squares = self.squares - 2 * mean * total + self.num_data * mean**2
        targets = self.targets - self.weights[:, None] * mean[None]
        return Statistics(self.nodes, self.weights, targets / scale[None], squares / scale**2, self.num_data)


def of_data(batch: Batch) -> Statistics:
    """The data as their own statistics; every target must be observed."""
    if concrete(batch.y) is not None:
        observed(batch.y, "a bound in closed form")
    scale = batch.num_data / batch.x.shape[0]
    weights = batch.weight * scale
    return Statistics(
        batch.x, weights, weights[:, None] * batch.y, jnp.sum(weights[:, None] * batch.y**2, axis=0), batch.num_data
    )


def compress(
    t: Numbers,
    y: Numbers,
    interval: tuple[float, float],
    *,
    weight: Numbers | None = None,
    bins: int = 128,
    degree: int = 16,
    dense: int = 0,
) -> Statistics:
    """Data in one dimension, whatever their number, as `bins * degree` weighted nodes that serve all hyperparameters.

    `interval` is cut into bins with `degree` Chebyshev nodes each; a datum gives each node of its bin the value of
    that node's Lagrange polynomial. Features are analytic inside their interval, so sums over the data become sums
    over nodes to rounding. `dense` bins more, each half as wide as the one after it, next to the left end serve
    very fast filters, whose transients are there. The statistics are sums: those of parts of the data add up.

    `t` (N,), `y` (N,) or (N, P), `weight` (N,) are read in blocks: memory-mapped files of any length will do.

    !!! example

        >>> import numpy as np, latentforce as lf
        >>> t = np.random.default_rng(0).uniform(0.0, 1.0, 10_000)
        >>> data = lf.compress(t, np.sin(9 * t), (0.0, 1.0), bins=16)
        >>> data.nodes.shape, float(data.num_data)
        ((256, 1), 10000.0)
    """
    inputs, targets = np.asarray(t), np.asarray(y)
    if len(inputs.reshape(len(inputs), -1).T) != 1 or len(inputs) != len(targets):
        raise ValueError(
            f"`t` must be one-dimensional, with as many rows as `y`, got {inputs.shape} and {targets.shape}."
        )
    weights = None if weight is None else row_weights(weight, len(inputs))
    return compress_chunks(_blocks(inputs, targets, weights), interval, bins=bins, degree=degree, dense=dense)


def compress_chunks(
    chunks: Iterable[tuple[Numbers, ...]],
    interval: tuple[float, float],
    *,
    bins: int = 128,
    degree: int = 16,
    dense: int = 0,
) -> Statistics:
    """As [`latentforce.compress`][], of data that come in chunks `(t, y)` or `(t, y, weight)`, each seen once.

    !!! example

        >>> import numpy as np, latentforce as lf
        >>> chunks = ((t, np.sin(9 * t)) for t in np.random.default_rng(0).uniform(0.0, 1.0, (20, 500)))
        >>> float(lf.compress_chunks(chunks, (0.0, 1.0), bins=16).num_data)
        10000.0
    """
    sums = _Sums(interval, count("bins", bins), count("degree", degree), dense)
    for chunk in chunks:
        t, y, *rest = chunk
        for block in _blocks(np.asarray(t), np.asarray(y), None if not rest else np.asarray(rest[0])):
            sums.add(*block)
    return sums.statistics()


def _blocks(t: np.ndarray, y: np.ndarray, weight: np.ndarray | None) -> Iterator[tuple[np.ndarray, ...]]:
    """Rows as float64, checked, a block at a time."""
    for start in range(0, len(t), BLOCK):
        rows = slice(start, start + BLOCK)
        where = f"[{start}:{min(start + BLOCK, len(t))}]" if len(t) > BLOCK else ""
        block = (matrix(f"t{where}", t[rows], 1), matrix(f"y{where}", y[rows]))
        yield block if weight is None else (*block, matrix(f"weight{where}", weight[rows], 1))


class _Sums:
    """Sums of Chebyshev polynomials in each bin: three multiplications for each datum and polynomial, no division."""

    def __init__(self, interval: tuple[float, float], bins: int, degree: int, dense: int):
        checked_interval("interval", interval)
        self.a, self.b = (float(end) for end in interval)
        edges = np.linspace(self.a, self.b, bins + 1)
        fine = self.a + (edges[1] - self.a) * 0.5 ** np.arange(dense, 0, -1)
        self.edges = np.concatenate([edges[:1], fine, edges[1:]])
        self.bins, self.degree = bins, degree
        self.values: np.ndarray | None = None  # (degree, 1 + P, bins): of the polynomials, and of y times them
        self.squares: np.ndarray | None = None
        self.num_data = 0.0

    def add(self, t: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None) -> None:
        """One block: t (N, 1), y (N, P), weight (N, 1)."""
        t = t[:, 0]
        if t.min() < self.a or t.max() > self.b:
            raise ValueError(
                f"`t` must lie inside `interval` ({self.a}, {self.b}), got values from {t.min()} to {t.max()}."
            )
        weight = np.ones_like(t) if weight is None else weight[:, 0]
        factors = [weight, *(weight * column for column in y.T)]
        if self.values is None or self.squares is None:
            self.values = np.zeros((self.degree, len(factors), len(self.edges) - 1))
            self.squares = np.zeros(y.shape[1])
        which, x = self._locate(t)
        before, here = np.ones_like(x), x
        for k in range(self.degree):
            for row, factor in zip(self.values[k], factors, strict=True):
                row += np.bincount(which, factor * before, len(row))
            before, here = here, 2 * x * here - before
        self.squares += np.array([np.dot(factor, column) for factor, column in zip(factors[1:], y.T, strict=True)])
        self.num_data += float(weight.sum())

    def _locate(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The bin of each time, and its place there in [-1, 1]."""
        which = np.minimum(((t - self.a) * (self.bins / (self.b - self.a))).astype(np.intp), self.bins - 1)
        extra = len(self.edges) - 1 - self.bins
        if extra:
            first = which == 0
            which = which + extra
            which[first] = np.searchsorted(self.edges[: extra + 2], t[first], side="right") - 1
        low, high = self.edges[which], self.edges[which + 1]
        return which, (2 * t - low - high) / (high - low)

    def statistics(self) -> Statistics:
        """The sums at the nodes: `l_j(x) = (1/q) (1 + 2 sum_k T_k(x_j) T_k(x))` turns the ones into the others."""
        if self.values is None or self.squares is None:
            raise ValueError("`chunks` must hold some data, got none.")
        angles = (np.arange(self.degree) + 0.5) * math.pi / self.degree
        transform = 2 / self.degree * np.cos(np.outer(angles, np.arange(self.degree)))
        transform[:, 0] /= 2
        at_nodes = np.einsum("jk,kpb->bjp", transform, self.values)
        middle, half = (self.edges[1:] + self.edges[:-1]) / 2, np.diff(self.edges) / 2
        nodes = (middle[:, None] + half[:, None] * np.cos(angles)[None]).reshape(-1, 1)
        flat = at_nodes.reshape(len(nodes), -1)
        dtype = jnp.result_type(float)
        numbers = (nodes, flat[:, 0], flat[:, 1:], self.squares, np.asarray(self.num_data))
        return Statistics(*(jnp.asarray(part, dtype) for part in numbers))

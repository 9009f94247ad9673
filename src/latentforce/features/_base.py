"""The one contract that every feature family keeps, and that layers rely on."""

import abc
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from .. import _checks
from .._checks import Numbers
from ..dynamics._process import Process
from ..dynamics._system import LinearSystem


class AbstractFeatures(eqx.Module):
    """A summary of a process by F jointly Gaussian variables `v`, whitened to `e ~ N(0, I)`.

    With `A(t) = Cov[f(t), e]` the process given its summary is `f(t) | e ~ N(A(t) . e, k_ff - |A(t)|^2)`.
    Mathematics that every family must satisfy: `whitened = cross_covariance @ T` for some `T` with
    `T^T covariance T = I`; so `whitened @ whitened.T` never exceeds the prior covariance (in the order of positive
    semi-definite matrices), with equality where the features explain the process completely. No method adds noise.
    """

    weight_space: ClassVar[bool] = False  # whether the features are the whole process, so that nothing is left over

    @abc.abstractmethod
    def num_features(self, process: Process) -> int:
        """F for this process."""

    @abc.abstractmethod
    def covariance(self, process: Process) -> Float[Array, "F F"]:
        """`Cov[v, v]`, dense, for inspection; the identity where `v` is white by construction."""

    @abc.abstractmethod
    def cross_covariance(self, process: Process, t: Numbers) -> Float[Array, "N F"]:
        """`Cov[f(t), v]`, shape `(N, F)`."""

    @abc.abstractmethod
    def whitened(self, process: Process, t: Numbers) -> Float[Array, "N F"]:
        """`A(t) = Cov[f(t), e]`, `e ~ N(0, I)`, shape `(N, F)`."""

    @abc.abstractmethod
    def force_whitened(self, process: Process, t: Numbers) -> Float[Array, "N F"]:
        """`Cov[u(t), e]` for the same `e`: what the summary knows of the force, shape `(N, F)`."""

    def residual_variance(self, process: Process, t: Numbers) -> Float[Array, " N"]:
        """`Var[f(t) | e] = k_ff - |A(t)|^2`, never negative, shape `(N,)`."""
        return self.unexplained(process, self.whitened(process, t))

    def unexplained(self, process: Process, whitened: Float[Array, "N F"]) -> Float[Array, " N"]:
        """The residual variance (N,) where the features `A(t)` are known already."""
        if self.weight_space:
            return jnp.zeros(whitened.shape[0], whitened.dtype)
        rows = whitened.T  # how features are made: summed over rows, they need not be transposed
        return jnp.maximum(process.variance().astype(rows.dtype) - jnp.sum(rows * rows, axis=0), 0.0)

    def unexplained_covariance(
        self, prior: Float[Array, "N1 N2"], whitened1: Float[Array, "N1 F"], whitened2: Float[Array, "N2 F"]
    ) -> Float[Array, "N1 N2"]:
        """What the features leave of a prior covariance between two sets of values, of the output or of the force."""
        if self.weight_space:
            return jnp.zeros_like(prior)
        return prior - jnp.matmul(whitened1, whitened2.T, precision="highest")

    def shared(self, processes: Process, t: Numbers) -> Float[Array, "R N F"]:
        """`Cov[f_r(t), e]` (R, N, F) for R outputs of one force, with one `e` for all of them.

        The arrays in `processes` lead with an axis of length R; only the filters may differ along it. Here the
        summary is of the force alone, so each output has the features it would have by itself.
        """
        return jax.vmap(lambda process: self.whitened(process, t))(processes)

    def force_shared(self, processes: Process, t: Numbers) -> Float[Array, "N F"]:
        """`Cov[u(t), e]` (N, F) for the `e` of `shared`."""
        return self.force_whitened(jax.tree.map(lambda leaf: leaf[0], processes), t)


def system_and_times(
    process: Process, t: Numbers, interval: tuple[Float[Array, ""], Float[Array, ""]]
) -> tuple[LinearSystem, Float[Array, " N"]]:
    """The process as a linear system, and the times, checked and in one dtype together with the interval."""
    times = _checks.points("t", t)
    dtype = process.dtype(times, *interval)
    return process.system(dtype), times.astype(dtype)

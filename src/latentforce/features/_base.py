"""The one contract that every feature family keeps, and that layers rely on."""

import abc

import equinox as eqx
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
        A = self.whitened(process, t)
        return jnp.maximum(process.variance().astype(A.dtype) - jnp.sum(A * A, axis=1), 0.0)


def system_and_times(
    process: Process, t: Numbers, interval: tuple[Float[Array, ""], Float[Array, ""]]
) -> tuple[LinearSystem, Float[Array, " N"]]:
    """The process as a linear system, and the times, checked and in one dtype together with the interval."""
    times = _checks.points("t", t)
    dtype = process.dtype(times, *interval)
    return process.system(dtype), times.astype(dtype)

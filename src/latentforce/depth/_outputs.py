"""How forces become a layer's outputs: a force for each output, or a few forces shared by all."""

import abc
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from .._linalg import computed, steadied
from .._parameters import FREE, parameter
from .._triangular import cholesky
from ..dynamics._filters import AbstractFilter
from ..dynamics._forces import AbstractForce
from ..dynamics._joint import shared_state
from ..dynamics._process import Process
from ..features._base import AbstractFeatures
from ..features._polynomials import Expandable, marginals
from ._posteriors import AbstractPosterior

Times1 = Float[Array, " N"] | Float[Array, "N D"]  # of one direction
Times = Float[Array, "K N"] | Float[Array, "K N D"]  # of all
Knots = Float[Array, "K G"] | Float[Array, "K G D"]  # other times
MANY_WAVES = 256  # bytes of the features of a time, from where polynomials are faster than products
Root = Float[Array, "N Q"] | Float[Array, "N Q Q"]  # standard deviations, or of all functions jointly


class AbstractOutputs(eqx.Module):
    """The prior of a layer's functions. `features` and the times lead with an axis of K directions."""

    @abc.abstractmethod
    def summary(self, features: AbstractFeatures, t: Times) -> tuple[Float[Array, "a B F N"], Float[Array, "N a"]]:
        """Feature maps of each output and block, and the variance that they leave unexplained."""

    def marginals(
        self, features: AbstractFeatures, posterior: AbstractPosterior, t: Times
    ) -> tuple[Float[Array, "N Q"], Float[Array, "N Q"]]:
        """Mean and variance of each function under a posterior of its features."""
        A, residual = self.summary(features, t)
        mean, spread = posterior.project_and_spread(A)
        return mean, residual + spread

    @abc.abstractmethod
    def force(
        self, features: AbstractFeatures, t: Times1, force: int, direction: int
    ) -> tuple[Float[Array, "N F"], Float[Array, "N N"]]:
        """`Cov[u(t), e]` of one force along one direction, and the covariance of u that the features leave."""

    @abc.abstractmethod
    def residual_kernel(self, features: AbstractFeatures, t: Times, knots: Knots) -> Float[Array, "a B N G"]:
        """The covariance of each output and block between two sets of times that the features leave unexplained."""

    @abc.abstractmethod
    def block(self, force: int, direction: int) -> tuple[int, int]:
        """Group and block of the features of that force along that direction."""

    @abc.abstractmethod
    def num_forces(self, groups: int) -> int:
        """How many different forces there are along a direction, for so many groups of features."""

    @abc.abstractmethod
    def num_functions(self, groups: int) -> int:
        """How many outputs there are, for so many groups of features."""

    @abc.abstractmethod
    def rooted(
        self, features: AbstractFeatures, posterior: AbstractPosterior, t: Times
    ) -> tuple[Float[Array, "N Q"], Root]:
        """Mean of each function under a posterior of its features, and a root of their covariance at each time."""

    @abc.abstractmethod
    def residual_root(
        self, features: AbstractFeatures, A: Float[Array, "a B F N"], residual: Float[Array, "N a"]
    ) -> Root:
        """A root of the covariance that the features leave at each time."""


class IndependentOutputs(AbstractOutputs):
    """Every output has its own forces, one along each direction: `g_r(t) = sum_k f_rk(t_k)`.

    The process's arrays lead with (G, K): G is the number of outputs, or one where all share their kernels.
    """

    process: Process

    @property
    def num_kernels(self) -> int:
        """G: one where all outputs share their kernels."""
        return jax.tree.leaves(self.process)[0].shape[0]

    def one(self, output: int, direction: int) -> Process:
        """The process of one output along one direction."""
        return jax.tree.map(lambda leaf: leaf[min(output, self.num_kernels - 1), direction], self.process)

    def summary(self, features: AbstractFeatures, t: Times) -> tuple[Float[Array, "a B F N"], Float[Array, "N a"]]:
        """See `AbstractOutputs`: a = G, B = K."""

        def one(features: AbstractFeatures, process: Process, t: Array) -> tuple[Array, Array]:
            A = features.whitened(process, t)
            return A.T, features.unexplained(process, A)

        A, residual = jax.vmap(jax.vmap(one), (None, 0, None))(features, self.process, computed(t)[0])
        return A, jnp.sum(residual, axis=1).T

    def force(
        self, features: AbstractFeatures, t: Times1, force: int, direction: int
    ) -> tuple[Float[Array, "N F"], Float[Array, "N N"]]:
        """See `AbstractOutputs`."""
        process = self.one(force, direction)
        one = jax.tree.map(lambda leaf: leaf[direction], features)
        A = one.force_whitened(process, t)
        return A, one.unexplained_covariance(process.force_covariance(t, t), A, A)

    def residual_kernel(self, features: AbstractFeatures, t: Times, knots: Knots) -> Float[Array, "a B N G"]:
        """See `AbstractOutputs`."""

        def one(features: AbstractFeatures, process: Process, t: Array, knots: Array) -> Float[Array, "N G"]:
            A, B = features.whitened(process, t), features.whitened(process, knots)
            return features.unexplained_covariance(process.covariance(t, knots), A, B)

        return jax.vmap(jax.vmap(one), (None, 0, None, None))(features, self.process, t, knots)

    def block(self, force: int, direction: int) -> tuple[int, int]:
        """See `AbstractOutputs`."""
        return force, direction

    def num_forces(self, groups: int) -> int:
        """See `AbstractOutputs`."""
        return groups

    def num_functions(self, groups: int) -> int:
        """See `AbstractOutputs`."""
        return groups

    def rooted(
        self, features: AbstractFeatures, posterior: AbstractPosterior, t: Times
    ) -> tuple[Float[Array, "N Q"], Float[Array, "N Q"]]:
        """See `AbstractOutputs`: standard deviations."""
        mean, variance = self.marginals(features, posterior, t)
        return mean, _deviation(variance)

    def residual_root(
        self, features: AbstractFeatures, A: Float[Array, "a B F N"], residual: Float[Array, "N a"]
    ) -> Float[Array, "N a"]:
        """See `AbstractOutputs`: standard deviations."""
        return _deviation(residual)

    def marginals(
        self, features: AbstractFeatures, posterior: AbstractPosterior, t: Times
    ) -> tuple[Float[Array, "N Q"], Float[Array, "N Q"]]:
        """See `AbstractOutputs`; by polynomials where there are many waves of one time."""
        many = posterior.shape[2] * posterior.mean.dtype.itemsize >= MANY_WAVES
        beliefs = posterior.moments_of_block() if many else None
        if beliefs is None or not isinstance(features, Expandable):
            return super().marginals(features, posterior, t)
        one, times = jax.tree.map(lambda leaf: leaf[0], features), computed(t[0])[0]
        process = jax.tree.map(lambda leaf: leaf[:, 0], self.process)
        grouped = (part.reshape(self.num_kernels, -1, *part.shape[1:]) for part in beliefs)
        with_kernel = jax.vmap(partial(marginals, one), (None, None, 0, 0))
        mean, variance = jax.vmap(with_kernel, (0, None, 0, 0))(process, times, *grouped)
        return mean.reshape(-1, times.size).T, variance.reshape(-1, times.size).T


class SharedForces(AbstractOutputs):
    """Q forces drive all R outputs: `filter_r(f_r) = sum_q sensitivity_rq u_q` (paper, `eq:lfm-equation`).

    Arrays of the force lead with (Q, K), of the filters with (R, K), the sensitivities are (R, Q, K).
    """

    driving: AbstractForce
    filter: AbstractFilter
    sensitivity: Float[Array, "R Q K"] = parameter(FREE)

    def summary(self, features: AbstractFeatures, t: Times) -> tuple[Float[Array, "a B F N"], Float[Array, "N a"]]:
        """See `AbstractOutputs`: a = R, B = Q K."""
        A = jax.vmap(lambda features, processes, t: jax.vmap(lambda process: features.shared(process, t))(processes))(
            features, self._processes(), computed(t)[0]
        )  # (K, Q, R, N, F)
        A = self.sensitivity[..., None, None] * jnp.transpose(A, (2, 1, 0, 4, 3))
        R, Q, K, F, N = A.shape
        A = A.reshape(R, Q * K, F, N)
        if features.weight_space:
            return A, jnp.zeros((N, R), A.dtype)
        variance = jnp.diagonal(self._covariance())
        return A, jnp.maximum(variance[None] - jnp.sum(A * A, axis=(1, 2)).T, 0.0)

    def force(
        self, features: AbstractFeatures, t: Times1, force: int, direction: int
    ) -> tuple[Float[Array, "N F"], Float[Array, "N N"]]:
        """See `AbstractOutputs`."""
        processes = jax.tree.map(lambda leaf: leaf[direction, force], self._processes())
        one = jax.tree.map(lambda leaf: leaf[direction], features)
        A = one.force_shared(processes, t)
        prior = jax.tree.map(lambda leaf: leaf[0], processes).force_covariance(t, t)
        return A, one.unexplained_covariance(prior, A, A)

    def residual_kernel(self, features: AbstractFeatures, t: Times, knots: Knots) -> Float[Array, "a B N G"]:
        """See `AbstractOutputs`."""

        def one(features: AbstractFeatures, processes: Process, t: Array, knots: Array) -> Float[Array, "R N G"]:
            A, B = features.shared(processes, t), features.shared(processes, knots)
            prior = jax.vmap(lambda process: process.covariance(t, knots))(processes)
            return jax.vmap(features.unexplained_covariance)(prior, A, B)

        each = jax.vmap(jax.vmap(one, (None, 0, None, None)))(features, self._processes(), t, knots)  # (K, Q, R, ..)
        each = self.sensitivity[..., None, None] ** 2 * jnp.moveaxis(each, (0, 1, 2), (2, 1, 0))
        return each.reshape(each.shape[0], -1, *each.shape[3:])

    def block(self, force: int, direction: int) -> tuple[int, int]:
        """See `AbstractOutputs`."""
        return 0, force * self.sensitivity.shape[2] + direction

    def num_forces(self, groups: int) -> int:
        """Q."""
        return self.sensitivity.shape[1]

    def num_functions(self, groups: int) -> int:
        """R."""
        return self.sensitivity.shape[0]

    def rooted(
        self, features: AbstractFeatures, posterior: AbstractPosterior, t: Times
    ) -> tuple[Float[Array, "N Q"], Float[Array, "N Q Q"]]:
        """See `AbstractOutputs`: of all outputs jointly, as they share forces."""
        A, _ = self.summary(features, t)
        covariance = self.residual_covariance(features, A) + posterior.spread_jointly(A)
        return posterior.project(A), cholesky(jax.vmap(steadied)(covariance))

    def residual_root(
        self, features: AbstractFeatures, A: Float[Array, "a B F N"], residual: Float[Array, "N a"]
    ) -> Float[Array, "N a a"]:
        """See `AbstractOutputs`: of all outputs jointly."""
        return cholesky(jax.vmap(steadied)(self.residual_covariance(features, A)))

    def residual_covariance(self, features: AbstractFeatures, A: Float[Array, "a B F N"]) -> Float[Array, "N a a"]:
        """What the features leave unexplained, jointly for all outputs."""
        explained = jnp.einsum("rbfn,sbfn->nrs", A, A)
        if features.weight_space:
            return jnp.zeros_like(explained)
        return self._covariance()[None] - explained

    def _processes(self) -> Process:
        """Processes with arrays that lead with (K, Q, R)."""
        R, Q, K = self.sensitivity.shape

        def spread(leaf: Array, missing: int) -> Array:
            leaf = jnp.expand_dims(jnp.swapaxes(leaf, 0, 1), missing)
            return jnp.broadcast_to(leaf, (K, Q, R, *leaf.shape[3:]))

        force = jax.tree.map(lambda leaf: spread(leaf, 2), self.driving)
        filter = jax.tree.map(lambda leaf: spread(leaf, 1), self.filter)
        return jax.vmap(jax.vmap(jax.vmap(Process)))(force, filter)

    def _covariance(self) -> Float[Array, "R R"]:
        """`Cov[f_r(t), f_s(t)]` a priori."""

        def one(processes: Process) -> Float[Array, "R R"]:
            dtype = self.sensitivity.dtype
            systems = jax.vmap(lambda process: process.system(dtype))(processes)
            root = shared_state(systems).output_root(systems)
            return root @ root.T

        covariance = jax.vmap(jax.vmap(one))(self._processes())  # (K, Q, R, R)
        return jnp.einsum("rqk,sqk,kqrs->rs", self.sensitivity, self.sensitivity, covariance)


def _deviation(variance: Float[Array, "N Q"]) -> Float[Array, "N Q"]:
    """The square root, with a finite gradient also where nothing is left."""
    return jnp.sqrt(jnp.maximum(variance, jnp.finfo(variance.dtype).tiny))

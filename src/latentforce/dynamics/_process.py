"""A process: a force seen through a filter. Covariances, state space and samples of the pair (f, u)."""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.special import erfcx
from jaxtyping import Float, PRNGKeyArray

from .. import _checks
from .._checks import Numbers
from .._linalg import stable_cholesky
from ._filters import AbstractFilter, Identity
from ._forces import AbstractForce, Matern, stationary_kernel
from ._moments import cross_covariance, output_covariance
from ._sampling import sample_markov
from ._system import LinearSystem, force_constants, linear_system


class StateSpace(NamedTuple):
    """`s' = A s + B w`, `f = C s`, with `w` white of density `q` and `P` the stationary covariance of `s`.

    The state is `s = (u, u', ..., u^(p), f, f', ..., f^(n-1))`, of dimension `d = p + 1 + n`.
    """

    A: Float[Array, "d d"]
    B: Float[Array, " d"]
    C: Float[Array, " d"]
    P: Float[Array, "d d"]
    q: Float[Array, ""]


class Process(eqx.Module):
    """The output `f` of a filter driven by a force `u`, jointly with `u`: a Gaussian process with zero mean.

    `f(t) = ∫ G(t - s) u(s) ds` over the whole past (paper, `eq:f(t)`), so both are stationary. Times are 1-D arrays
    `(N,)`; with `Identity`, inputs `(N, D)` are welcome too (one length-scale, or D of them).

    **Arguments:** `force`: [`latentforce.Matern`][] or [`latentforce.SquaredExponential`][]; `filter`: one of the
    filters.

    !!! example

        >>> import jax.numpy as jnp, latentforce as lf
        >>> process = lf.Process(lf.Matern(nu=1.5, lengthscale=0.3), lf.FirstOrder(alpha=1.0, beta=0.1))
        >>> t = jnp.linspace(0.0, 1.0, 5)
        >>> process.covariance(t, t).shape
        (5, 5)
    """

    force: AbstractForce
    filter: AbstractFilter

    def __init__(self, force: AbstractForce, filter: AbstractFilter | None = None):
        filter = Identity() if filter is None else filter
        self.force = _checks.instance("force", force, AbstractForce, "a force such as latentforce.Matern(...)")
        self.filter = _checks.instance("filter", filter, AbstractFilter, "a filter such as latentforce.FirstOrder(...)")
        if self.force.lengthscale.ndim and self.filter.order:
            raise ValueError(
                "`force` must have a scalar lengthscale when the filter is a differential equation in time, "
                f"got lengthscale of shape {self.force.lengthscale.shape} with {type(filter).__name__}."
            )

    # --- second moments ----------------------------------------------------------------------------------------------

    def covariance(self, t1: Numbers, t2: Numbers) -> Float[Array, "N1 N2"]:
        """`Cov[f(t1), f(t2)]`, shape `(N1, N2)` (paper, `eq:gkg` and `tab:gkg`, for every order).

        !!! example

            >>> import latentforce as lf
            >>> process = lf.Process(lf.Matern(nu=0.5, lengthscale=2.0), lf.FirstOrder(alpha=1.0, beta=2.0))
            >>> round(float(process.covariance([0.0], [0.0])[0, 0]), 6)
            0.5
        """
        t1, t2 = self._inputs(t1, t2)
        if self.filter.order == 0:
            return self._force_kernel(t1, t2) * self._gain(t1.dtype) ** 2
        if isinstance(self.force, Matern):
            return output_covariance(self.system(t1.dtype), t1, t2)
        lag = jnp.abs(t1[:, None] - t2[None, :])
        alpha = self.filter.coefficients[0].astype(lag.dtype)
        return (self._smooth_cross(lag) + self._smooth_cross(-lag)) / (2 * alpha)

    def force_covariance(self, t1: Numbers, t2: Numbers) -> Float[Array, "N1 N2"]:
        """`Cov[u(t1), u(t2)]`, shape `(N1, N2)`.

        !!! example

            >>> import latentforce as lf
            >>> process = lf.Process(lf.Matern(nu=0.5, variance=2.0), lf.FirstOrder())
            >>> round(float(process.force_covariance([0.0], [0.0])[0, 0]), 6)
            2.0
        """
        return self._force_kernel(*self._inputs(t1, t2))

    def cross_covariance(self, t1: Numbers, t2: Numbers) -> Float[Array, "N1 N2"]:
        """`Cov[f(t1), u(t2)]`, shape `(N1, N2)`: not symmetric, for the output follows its force.

        !!! example

            >>> import latentforce as lf
            >>> process = lf.Process(lf.Matern(nu=0.5), lf.FirstOrder(alpha=1.0, beta=1.0))
            >>> c = process.cross_covariance([0.0, 1.0], [0.0, 1.0])
            >>> bool(c[1, 0] > c[0, 1])                              # past forces matter more than future ones
            True
        """
        t1, t2 = self._inputs(t1, t2)
        if self.filter.order == 0:
            return self._force_kernel(t1, t2) * self._gain(t1.dtype)
        if isinstance(self.force, Matern):
            return cross_covariance(self.system(t1.dtype), t1, t2)
        return self._smooth_cross(t1[:, None] - t2[None, :])

    def variance(self) -> Float[Array, ""]:
        """`k_ff`, the prior variance of `f(t)` at any t: a scalar.

        !!! example

            >>> import latentforce as lf
            >>> float(lf.Process(lf.Matern(nu=2.5, variance=4.0), lf.Identity()).variance())
            4.0
        """
        dtype = self.dtype()
        if self.filter.order == 0:
            return self.force.variance.astype(dtype) * self._gain(dtype) ** 2
        if isinstance(self.force, Matern):
            return jnp.sum(self.system(dtype).output_root ** 2)
        return self.covariance(jnp.zeros(1, dtype), jnp.zeros(1, dtype))[0, 0]

    # --- the process as a linear system ------------------------------------------------------------------------------

    def system(self, dtype: jnp.dtype) -> LinearSystem:
        """The process as a linear system in well-scaled coordinates (what the Fourier features are made of)."""
        if not isinstance(self.force, Matern) or self.force.lengthscale.ndim:
            raise ValueError(
                "`force` must be Matern with a scalar lengthscale to have a state space, "
                f"got {type(self.force).__name__} with lengthscale of shape {self.force.lengthscale.shape}."
            )
        return linear_system(self.force, self.filter, dtype)

    def state_space(self) -> StateSpace:
        """`A (d, d), B (d,), C (d,), P (d, d), q ()` with `s' = A s + B w`, `f = C s` (Matérn forces only).

        !!! example

            >>> import latentforce as lf
            >>> A, B, C, P, q = lf.Process(lf.Matern(nu=1.5), lf.FirstOrder()).state_space()
            >>> A.shape, C.tolist()
            ((3, 3), [0.0, 0.0, 1.0])
        """
        dtype = self.dtype()
        system = self.system(dtype)
        p1, n = system.degree + 1, system.order
        force = jnp.zeros((p1, p1), dtype).at[jnp.arange(p1 - 1), jnp.arange(1, p1)].set(1.0)
        force = force.at[p1 - 1].set(jnp.stack([-math.comb(p1, i) * system.decay ** (p1 - i) for i in range(p1)]))
        units = jnp.stack([system.decay**i for i in range(p1)] + [system.rate**j for j in range(n)])
        drive = system.push * units[p1:]
        motion = system.matrix * units[p1:, None] / units[None, p1:]
        A = jnp.block([[force, jnp.zeros((p1, n), dtype)], [jnp.zeros((n, p1), dtype).at[:, 0].set(drive), motion]])
        root = system.root.at[:p1, :p1].set(
            system.scale * jnp.asarray(force_constants(system.degree).derivative_root, dtype)
        )
        root = units[:, None] * root
        output = jnp.zeros(p1 + n, dtype)
        output = output.at[0].set(system.direct) if system.direct is not None else output.at[p1].set(1.0)
        return StateSpace(
            A=A,
            B=jnp.zeros(p1 + n, dtype).at[p1 - 1].set(1.0),
            C=output,
            P=jnp.matmul(root, root.T, precision="highest"),
            q=system.noise_scale**2 * system.decay ** (2 * p1),
        )

    def sample(
        self, key: PRNGKeyArray, t: Numbers, num_samples: int = 1
    ) -> tuple[Float[Array, "S N"], Float[Array, "S N"]]:
        """Joint draws of `(f, u)` at the times `t` (N,), in any order: two arrays `(num_samples, N)`.

        A Matérn force is drawn exactly, step by step through its state space, in time linear in N.

        !!! example

            >>> import jax, jax.numpy as jnp, latentforce as lf
            >>> process = lf.Process(lf.Matern(nu=1.5, lengthscale=0.3), lf.FirstOrder(alpha=1.0, beta=0.1))
            >>> f, u = process.sample(jax.random.key(0), jnp.linspace(0.0, 1.0, 100), 3)
            >>> f.shape, u.shape
            ((3, 100), (3, 100))
        """
        num_samples = _checks.count("num_samples", num_samples)
        (t,) = self._inputs(t)
        if t.ndim == 1 and isinstance(self.force, Matern) and not self.force.lengthscale.ndim:
            return sample_markov(self.system(t.dtype), key, t, num_samples)
        return self._sample_dense(key, t, num_samples)

    # --- private -----------------------------------------------------------------------------------------------------

    def dtype(self, *arrays: Array) -> jnp.dtype:
        """The dtype in which the process is computed together with `arrays`: JAX's promotion over all parameters."""
        return jnp.result_type(*arrays, *jax.tree.leaves((self.force, self.filter)))

    def _inputs(self, *inputs: Numbers) -> tuple[Array, ...]:
        ranks = (1,) if self.filter.order else (1, 2)
        names = ("t",) if len(inputs) == 1 else ("t1", "t2")
        arrays = [_checks.points(name, t, ranks=ranks) for name, t in zip(names, inputs, strict=True)]
        dimensions = {array.shape[1:] for array in arrays}
        scales = self.force.lengthscale.shape
        if len(dimensions) > 1 or (scales and dimensions != {scales}):
            raise ValueError(
                f"`{names[-1]}` must have as many columns as the other inputs and as there are length-scales, "
                f"got shapes {[array.shape for array in arrays]} and lengthscale of shape {scales}."
            )
        dtype = self.dtype(*arrays)
        return tuple(array.astype(dtype) for array in arrays)

    def _gain(self, dtype: jnp.dtype) -> Float[Array, ""]:
        return 1 / self.filter.coefficients[0].astype(dtype)

    def _force_kernel(
        self,
        t1: Float[Array, " N1"] | Float[Array, "N1 D"],
        t2: Float[Array, " N2"] | Float[Array, "N2 D"],
    ) -> Float[Array, "N1 N2"]:
        scale = self.force.lengthscale.astype(t1.dtype)
        if t1.ndim == 1:
            return stationary_kernel(self.force, jnp.abs(t1[:, None] - t2[None, :]) / scale)
        gap = (t1[:, None, :] - t2[None, :, :]) / scale.reshape(1, 1, -1)
        squared = jnp.sum(gap * gap, axis=-1)
        apart = squared > 0
        return stationary_kernel(self.force, jnp.where(apart, jnp.sqrt(jnp.where(apart, squared, 1.0)), 0.0))

    def _smooth_cross(self, lag: Float[Array, "N1 N2"]) -> Float[Array, "N1 N2"]:
        """`Cov[f(t + lag), u(t)]` of a squared-exponential force through a first-order filter.

        `erfcx` keeps `e^{x^2} erfc(x)` whole; where x < 0 its mirror image keeps the growing factor out of sight.
        """
        if self.filter.order > 1:
            raise ValueError(
                "`force` must be Matern to have covariances behind a filter of order two or more, got "
                f"{type(self.force).__name__} with {type(self.filter).__name__}; latentforce.RandomFourier takes both."
            )
        alpha, beta = self.filter.coefficients.astype(lag.dtype)
        length, rate = self.force.lengthscale.astype(lag.dtype), alpha / beta
        x = (rate * length - lag / length) / math.sqrt(2)
        ahead = x < 0
        bump = jnp.exp(-((lag / length) ** 2) / 2) * erfcx(jnp.abs(x))
        decay = rate * length * jnp.where(ahead, rate * length / 2 - lag / length, 0.0)
        tail = jnp.where(ahead, 2 * jnp.exp(decay) - bump, bump)
        return self.force.variance.astype(lag.dtype) * length / beta * math.sqrt(math.pi / 2) * tail

    def _sample_dense(self, key: PRNGKeyArray, t: Array, num_samples: int) -> tuple[Array, Array]:
        cross = self.cross_covariance(t, t)
        joint = jnp.block([[self.covariance(t, t), cross], [cross.T, self.force_covariance(t, t)]])
        root = stable_cholesky(joint)
        noise = jax.random.normal(key, (num_samples, root.shape[0]), root.dtype)
        draws = jnp.matmul(noise, root.T, precision="highest")
        return draws[:, : t.shape[0]], draws[:, t.shape[0] :]

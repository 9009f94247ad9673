"""Random Fourier (response) features: the process replaced by a random sum of filtered waves."""

import math
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from .. import _checks
from .._checks import Numbers
from ..dynamics._filters import AbstractFilter, Identity
from ..dynamics._forces import AbstractForce, Matern
from ..dynamics._process import Process
from ._base import AbstractFeatures
from ._phases import divide, turns_of_product


class RandomFourier(AbstractFeatures):
    r"""`sqrt(variance/M) H(j w_m) e^{j w_m t}` at M random frequencies (paper, appendix `app:fastkernel`).

    Frequencies are `w'/lengthscale`, `w'` Student-t with `2 nu` degrees of freedom for a Matérn force and normal for
    the squared exponential, drawn once from `seed` and the same in every dtype. The model lives in weight space: its
    own prior covariance is `A A^T`, an unbiased estimate of `k_ff`, and by definition no variance is left over.
    Order: M real parts, M imaginary parts; `F = 2 M`.

    **Arguments:** `num_frequencies`: M, at least 1. `seed`: a whole number.

    !!! example

        >>> import jax.numpy as jnp, latentforce as lf
        >>> process = lf.Process(lf.SquaredExponential(lengthscale=0.3), lf.FirstOrder(alpha=1.0, beta=0.1))
        >>> lf.RandomFourier(50, seed=1).whitened(process, jnp.linspace(0.0, 1.0, 4)).shape
        (4, 100)
    """

    weight_space: ClassVar[bool] = True
    num_frequencies: int = eqx.field(static=True)
    seed: int = eqx.field(static=True)

    def __init__(self, num_frequencies: int, seed: int = 0):
        self.num_frequencies = _checks.count("num_frequencies", num_frequencies)
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise ValueError(f"`seed` must be a whole number of at least 0, got {seed!r}.")
        self.seed = int(seed)

    def num_features(self, process: Process) -> int:
        return 2 * self.num_frequencies

    def standard_frequencies(self, force: AbstractForce) -> np.ndarray:
        """`w'` (M,), the frequencies of a force of length-scale one, in float64."""
        generator = np.random.default_rng(self.seed)
        if isinstance(force, Matern):
            return generator.standard_t(2 * force.nu, self.num_frequencies)
        return generator.standard_normal(self.num_frequencies)

    def covariance(self, process: Process) -> Float[Array, "F F"]:
        """The identity (F, F): independent standard normal weights."""
        return jnp.eye(2 * self.num_frequencies, dtype=process.dtype())

    def cross_covariance(self, process: Process, t: Numbers) -> Float[Array, "N F"]:
        """`Cov[f(t), v]` (N, F), the same as `whitened`."""
        return self.whitened(process, t)

    def whitened(self, process: Process, t: Numbers) -> Float[Array, "N F"]:
        """`Cov[f(t), e]` (N, F)."""
        return self._waves(process, process.filter, t)

    def force_whitened(self, process: Process, t: Numbers) -> Float[Array, "N F"]:
        """`Cov[u(t), e]` (N, F): the waves before the filter."""
        return self._waves(process, Identity(), t)

    def _waves(self, process: Process, filter: AbstractFilter, t: Numbers) -> Float[Array, "N F"]:
        t = _checks.points("t", t)
        if process.force.lengthscale.ndim:
            raise ValueError(
                "`process` must have a force with a scalar lengthscale (random features are functions of time), "
                f"got shape {process.force.lengthscale.shape}."
            )
        return _waves(self, process.force, filter, t.astype(process.dtype(t)))


@jax.jit
def _waves(
    features: RandomFourier, force: AbstractForce, filter: AbstractFilter, t: Float[Array, " N"]
) -> Float[Array, "N F"]:
    standard = features.standard_frequencies(force) / (2 * math.pi)  # in turns
    high = standard.astype(t.dtype)
    low = (standard - high).astype(t.dtype)
    length = force.lengthscale.astype(t.dtype)
    frequency = divide((jnp.asarray(high), jnp.asarray(low)), (length, jnp.zeros_like(length)))
    response = filter.response(2 * math.pi * frequency[0])
    angle = 2 * math.pi * turns_of_product(frequency, t) + jnp.angle(response)[:, None]
    size = jnp.sqrt(force.variance.astype(t.dtype) / features.num_frequencies) * jnp.abs(response)
    return jnp.concatenate([size[:, None] * jnp.cos(angle), size[:, None] * jnp.sin(angle)]).T

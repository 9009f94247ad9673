"""Inducing points: the process summarised by the values of its force at chosen inputs."""

import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from .. import _checks
from .._checks import Numbers
from .._linalg import precise, steadied
from .._triangular import cholesky, solve_lower
from ..dynamics._process import Process
from ._base import AbstractFeatures


class InducingPoints(AbstractFeatures):
    r"""`v = u(Z)`, the force at M locations; with `Identity` that is the process itself at M inducing inputs.

    The classical summary: with `Identity` SVGP (paper, `eq:svgp-post`), with a filter the LFM with inducing forces.
    With `Identity` the locations may be inputs `(M, D)`, and the force may have one length-scale for each dimension.

    **Arguments:** `locations`: `(M,)` times, or `(M, D)` inputs.

    !!! example

        >>> import jax.numpy as jnp, latentforce as lf
        >>> process = lf.Process(lf.Matern(nu=2.5, lengthscale=jnp.array([0.5, 2.0])), lf.Identity())
        >>> features = lf.InducingPoints(jnp.zeros((3, 2)).at[:, 0].set(jnp.arange(3.0)))
        >>> features.whitened(process, jnp.ones((5, 2))).shape
        (5, 3)
    """

    locations: Float[Array, " M"] | Float[Array, "M D"]

    def __init__(self, locations: Numbers):
        self.locations = _checks.points("locations", locations, ranks=(1, 2))
        if self.locations.shape[0] == 0:
            raise ValueError("`locations` must have at least one entry, got none.")

    def num_features(self, process: Process) -> int:
        return self.locations.shape[0]

    def covariance(self, process: Process) -> Float[Array, "M M"]:
        """`K_ZZ = Cov[u(Z), u(Z)]` (M, M)."""
        return process.force_covariance(self.locations, self.locations)

    def cross_covariance(self, process: Process, t: Numbers) -> Float[Array, "N M"]:
        """`Cov[f(t), u(Z)]` (N, M)."""
        return process.cross_covariance(t, self.locations)

    def whitened(self, process: Process, t: Numbers) -> Float[Array, "N M"]:
        """`K_fZ K_ZZ^{-1/2}` (N, M), through a Cholesky factor."""
        return _whiten(self.cross_covariance(process, t), self.covariance(process))

    def force_whitened(self, process: Process, t: Numbers) -> Float[Array, "N M"]:
        """`K_uZ K_ZZ^{-1/2}` (N, M)."""
        return _whiten(process.force_covariance(t, self.locations), self.covariance(process))


@precise
def _whiten(cross: Float[Array, "N M"], covariance: Float[Array, "M M"]) -> Float[Array, "N M"]:
    dtype = jnp.result_type(cross, covariance)
    return solve_lower(cholesky(steadied(covariance.astype(dtype))), cross.astype(dtype).T).T

"""A multivariate normal distribution: what posteriors of forces and functions at several points are."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float, PRNGKeyArray

from .._linalg import stable_cholesky


class Normal(eqx.Module):
    """`N(mean, covariance)` over M points.

    !!! example

        >>> import jax, jax.numpy as jnp
        >>> from latentforce.inference._gaussian import Normal
        >>> Normal(jnp.zeros(3), jnp.eye(3)).sample(jax.random.key(0), 5).shape
        (5, 3)
    """

    mean: Float[Array, " M"]
    covariance: Float[Array, "M M"]

    @property
    def variance(self) -> Float[Array, " M"]:
        """At each point by itself; never negative."""
        return jnp.maximum(jnp.diag(self.covariance), 0.0)

    @property
    def deviation(self) -> Float[Array, " M"]:
        """The standard deviation at each point."""
        return jnp.sqrt(self.variance)

    def sample(self, key: PRNGKeyArray, num_samples: int = 1) -> Float[Array, "S M"]:
        """Joint draws (S, M)."""
        root = stable_cholesky(
            (self.covariance + self.covariance.T) / 2, jnp.maximum(self.variance, jnp.max(self.variance) / 100)
        )
        noise = jax.random.normal(key, (num_samples, self.mean.size), self.mean.dtype)
        return self.mean[None] + jnp.matmul(noise, root.T, precision="highest")

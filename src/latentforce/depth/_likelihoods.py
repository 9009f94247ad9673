"""Likelihoods: what is observed, given the functions of the last layer.

`expected_log_prob` integrates over a Gaussian function value: in closed form where there is one, else by Gauss-Hermite
quadrature. Functions are (..., N, R), observations (N, P); a NaN observation is one that was not made.
"""

import abc
import math
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import betainc, gammainc, gammaln, logsumexp
from jax.scipy.stats import norm
from jaxtyping import Float, PRNGKeyArray

from .. import _checks
from .._checks import Numbers
from .._parameters import above, parameter

NOISE_FLOOR = 1e-6  # in units of the target's variance: below, float32 can no longer tell residuals from rounding
_NODES, _WEIGHTS = (x for x in np.polynomial.hermite_e.hermegauss(20))

F = Float[Array, "*S N R"]
Y = Float[Array, "N P"]


class AbstractLikelihood(eqx.Module):
    """`p(y | f)`, one output at a time."""

    @abc.abstractmethod
    def log_prob(self, y: Y, f: Float[Array, "*S N R"]) -> Float[Array, "*S N P"]:
        """`log p(y | f)`; zero where y is NaN."""

    @abc.abstractmethod
    def moments(self, f: Float[Array, "*S N R"]) -> tuple[Float[Array, "*S N P"], Float[Array, "*S N P"]]:
        """Mean and variance of y given f."""

    @abc.abstractmethod
    def cdf(self, y: Float[Array, "*S N P"], f: Float[Array, "*S N R"]) -> Float[Array, "*S N P"]:
        """`P(Y <= y | f)`."""

    @abc.abstractmethod
    def sample(self, key: PRNGKeyArray, f: Float[Array, "*S N R"]) -> Float[Array, "*S N P"]:
        """Draws of y given f."""

    functions_per_target: ClassVar[int] = 1
    mean_is_function: ClassVar[bool] = True  # whether y's mean given f is f (its first half)
    counts: ClassVar[bool] = False  # whether y is a whole number

    def check(self, y: np.ndarray) -> None:
        """An error where targets (N, P) are none that there can be; NaN is a missing one."""

    def num_functions(self, num_targets: int) -> int:
        """R, the functions that P targets need."""
        return self.functions_per_target * num_targets

    def num_targets(self, num_functions: int) -> int:
        """P, the targets that R functions serve."""
        return num_functions // self.functions_per_target

    def expected_log_prob(self, y: Y, mean: F, variance: F) -> Float[Array, "*S N P"]:
        """`E log p(y | f)` under `f ~ N(mean, variance)`."""
        nodes, weights = hermite(mean.dtype)
        values = self.log_prob(y, _at_nodes(mean, variance, nodes))
        return jnp.tensordot(weights, values, axes=1)

    def log_density(self, y: Y, mean: F, variance: F) -> Float[Array, "*S N P"]:
        """`log E p(y | f)` under `f ~ N(mean, variance)`: the predictive density."""
        nodes, weights = hermite(mean.dtype)
        values = self.log_prob(y, _at_nodes(mean, variance, nodes))
        return logsumexp(values + jnp.log(weights).reshape(-1, *[1] * mean.ndim), axis=0)

    def predictive_moments(self, mean: F, variance: F) -> tuple[Float[Array, "*S N P"], Float[Array, "*S N P"]]:
        """Mean and total variance of y under `f ~ N(mean, variance)`."""
        nodes, weights = hermite(mean.dtype)
        inner_mean, inner_variance = self.moments(_at_nodes(mean, variance, nodes))
        total = jnp.tensordot(weights, inner_mean, axes=1)
        spread = jnp.tensordot(weights, inner_variance + (inner_mean - total[None]) ** 2, axes=1)
        return total, spread

    def predictive_cdf(self, y: Float[Array, "*S N P"], mean: F, variance: F) -> Float[Array, "*S N P"]:
        """`P(Y <= y)` under `f ~ N(mean, variance)`."""
        nodes, weights = hermite(mean.dtype)
        y = jnp.broadcast_to(y[None], (nodes.size, *y.shape))
        return jnp.tensordot(weights, self.cdf(y, _at_nodes(mean, variance, nodes)), axes=1)


class Gaussian(AbstractLikelihood):
    """`y = f + noise` of the given variance, one for all outputs or one each `(P,)`.

    !!! example

        >>> import latentforce as lf
        >>> float(lf.Gaussian(variance=0.25).moments(lf.Gaussian().variance[None, None])[1][0, 0])
        0.25
    """

    variance: Float[Array, ""] | Float[Array, " P"] = parameter(above(NOISE_FLOOR))

    def __init__(self, variance: Numbers = 0.01):
        self.variance = _checks.positive("variance", variance, ranks=(0, 1), floor=NOISE_FLOOR)

    def log_prob(self, y: Y, f: F) -> Float[Array, "*S N P"]:
        """See `AbstractLikelihood`."""
        return self.expected_log_prob(y, f, jnp.zeros_like(f))

    def expected_log_prob(self, y: Y, mean: F, variance: F) -> Float[Array, "*S N P"]:
        """Closed form."""
        known, y = _observed(y, mean)
        noise = self._noise(mean)
        squared = (y - mean) ** 2 + variance
        return jnp.where(known, _log_normal(squared, noise), 0.0)

    def log_density(self, y: Y, mean: F, variance: F) -> Float[Array, "*S N P"]:
        """Closed form."""
        known, y = _observed(y, mean)
        total = variance + self._noise(mean)
        return jnp.where(known, _log_normal((y - mean) ** 2, total), 0.0)

    def moments(self, f: F) -> tuple[F, F]:
        """See `AbstractLikelihood`."""
        return f, jnp.broadcast_to(self._noise(f), f.shape)

    def predictive_moments(self, mean: F, variance: F) -> tuple[F, F]:
        """Closed form."""
        return mean, variance + self._noise(mean)

    def cdf(self, y: F, f: F) -> F:
        """See `AbstractLikelihood`."""
        return norm.cdf((y - f) / jnp.sqrt(self._noise(f)))

    def predictive_cdf(self, y: F, mean: F, variance: F) -> F:
        """Closed form."""
        return norm.cdf((y - mean) / jnp.sqrt(variance + self._noise(mean)))

    def sample(self, key: PRNGKeyArray, f: F) -> F:
        """See `AbstractLikelihood`."""
        return f + jnp.sqrt(self._noise(f)) * jax.random.normal(key, f.shape, f.dtype)

    def _noise(self, like: Array) -> Array:
        return _lead(self.variance, like)


class HeteroscedasticGaussian(AbstractLikelihood):
    """`y = f_1 + noise` of variance `scale^2 exp(f_2)`: a second function for each target is the log-variance.

    The variance has a floor, added to it: where data are followed exactly, noise could else become ever smaller.

    **Arguments:** `scale`: the noise's standard deviation where `f_2` is zero.

    !!! example

        >>> import latentforce as lf
        >>> lf.HeteroscedasticGaussian(scale=0.2).num_functions(3)
        6
    """

    functions_per_target: ClassVar[int] = 2  # all means, then all log-variances
    scale: Float[Array, ""] = parameter(above(NOISE_FLOOR**0.5))

    def __init__(self, scale: Numbers = 0.1):
        self.scale = _checks.positive("scale", scale, floor=NOISE_FLOOR**0.5)

    def log_prob(self, y: Y, f: F) -> Float[Array, "*S N P"]:
        """See `AbstractLikelihood`."""
        known, y = _observed(y, f)
        mean, noise = self.moments(f)
        return jnp.where(known, _log_normal((y - mean) ** 2, noise), 0.0)

    def expected_log_prob(self, y: Y, mean: F, variance: F) -> Float[Array, "*S N P"]:
        """Closed form over `f_1`, quadrature over `f_2`."""
        known, y = _observed(y, mean)
        nodes, weights = hermite(mean.dtype)
        m, noise, v = self._levels(mean, variance, nodes)
        values = jnp.tensordot(weights, _log_normal(((y - m) ** 2 + v)[None], noise), axes=1)
        return jnp.where(known, values, 0.0)

    def log_density(self, y: Y, mean: F, variance: F) -> Float[Array, "*S N P"]:
        """Closed form over `f_1`, quadrature over `f_2`."""
        known, y = _observed(y, mean)
        nodes, weights = hermite(mean.dtype)
        m, noise, v = self._levels(mean, variance, nodes)
        total = v[None] + noise
        values = _log_normal(((y - m) ** 2)[None], total)
        values = logsumexp(values + jnp.log(weights).reshape(-1, *[1] * m.ndim), axis=0)
        return jnp.where(known, values, 0.0)

    def moments(self, f: F) -> tuple[Float[Array, "*S N P"], Float[Array, "*S N P"]]:
        """See `AbstractLikelihood`."""
        mean, level = _halves(f)
        return mean, self._noise(level)

    def predictive_moments(self, mean: F, variance: F) -> tuple[Float[Array, "*S N P"], Float[Array, "*S N P"]]:
        """Closed form."""
        (m, level), (v, spread) = _halves(mean), _halves(variance)
        return m, v + self._noise(level + spread / 2)

    def cdf(self, y: Float[Array, "*S N P"], f: F) -> Float[Array, "*S N P"]:
        """See `AbstractLikelihood`."""
        mean, noise = self.moments(f)
        return norm.cdf((y - mean) / jnp.sqrt(noise))

    def predictive_cdf(self, y: Float[Array, "*S N P"], mean: F, variance: F) -> Float[Array, "*S N P"]:
        """Closed form over `f_1`, quadrature over `f_2`."""
        nodes, weights = hermite(mean.dtype)
        m, noise, v = self._levels(mean, variance, nodes)
        return jnp.tensordot(weights, norm.cdf((y - m)[None] / jnp.sqrt(v[None] + noise)), axes=1)

    def sample(self, key: PRNGKeyArray, f: F) -> Float[Array, "*S N P"]:
        """See `AbstractLikelihood`."""
        mean, noise = self.moments(f)
        return mean + jnp.sqrt(noise) * jax.random.normal(key, mean.shape, mean.dtype)

    def _levels(self, mean: F, variance: F, nodes: Array) -> tuple[Array, Array, Array]:
        (m, level), (v, spread) = _halves(mean), _halves(variance)
        return m, self._noise(_at_nodes(level, spread, nodes)), v

    def _noise(self, level: Array) -> Array:
        return self.scale**2 * _exp(level) + NOISE_FLOOR


class StudentT(AbstractLikelihood):
    """`y = f + scale t`, t Student-t with `df` degrees of freedom: outliers cost little.

    !!! example

        >>> import latentforce as lf
        >>> float(lf.StudentT(df=4.0, scale=0.1).df)
        4.0
    """

    df: Float[Array, ""] = parameter(above(2.0))
    scale: Float[Array, ""] = parameter(above(NOISE_FLOOR**0.5))

    def __init__(self, df: Numbers = 4.0, scale: Numbers = 0.1):
        self.df = _checks.positive("df", df, floor=2.0, why=" (else y has no variance)")
        self.scale = _checks.positive("scale", scale, floor=NOISE_FLOOR**0.5)

    def log_prob(self, y: Y, f: F) -> Float[Array, "*S N P"]:
        """See `AbstractLikelihood`."""
        known, y = _observed(y, f)
        df = self.df.astype(f.dtype)
        z = (y - f) / self.scale
        constant = gammaln((df + 1) / 2) - gammaln(df / 2) - jnp.log(math.pi * df) / 2 - jnp.log(self.scale)
        return jnp.where(known, constant - (df + 1) / 2 * jnp.log1p(z * z / df), 0.0)

    def moments(self, f: F) -> tuple[F, F]:
        """See `AbstractLikelihood`."""
        return f, jnp.broadcast_to(self.scale**2 * self.df / (self.df - 2), f.shape)

    def cdf(self, y: F, f: F) -> F:
        """See `AbstractLikelihood`."""
        z = (y - f) / self.scale
        df = jnp.broadcast_to(self.df.astype(z.dtype), z.shape)
        tail = betainc(df / 2, jnp.full_like(z, 0.5), df / (df + z * z)) / 2
        return jnp.where(z > 0, 1 - tail, tail)

    def sample(self, key: PRNGKeyArray, f: F) -> F:
        """See `AbstractLikelihood`."""
        return f + self.scale * jax.random.t(key, self.df.astype(f.dtype), f.shape, f.dtype)


class Bernoulli(AbstractLikelihood):
    """y is 0 or 1, `P(y = 1) = sigmoid(f)`.

    !!! example

        >>> import jax.numpy as jnp, latentforce as lf
        >>> float(lf.Bernoulli().moments(jnp.zeros((1, 1)))[0][0, 0])
        0.5
    """

    mean_is_function: ClassVar[bool] = False
    counts: ClassVar[bool] = True

    def check(self, y: np.ndarray) -> None:
        """See `AbstractLikelihood`."""
        _one_of_these(y, (y == 0) | (y == 1), "0 or 1")

    def log_prob(self, y: Y, f: F) -> Float[Array, "*S N P"]:
        """See `AbstractLikelihood`."""
        known, y = _observed(y, f)
        return jnp.where(known, -jax.nn.softplus(jnp.where(y > 0.5, -f, f)), 0.0)

    def moments(self, f: F) -> tuple[F, F]:
        """See `AbstractLikelihood`."""
        p = jax.nn.sigmoid(f)
        return p, p * (1 - p)

    def cdf(self, y: F, f: F) -> F:
        """See `AbstractLikelihood`."""
        return jnp.where(y < 0, 0.0, jnp.where(y < 1, jax.nn.sigmoid(-f), 1.0))

    def sample(self, key: PRNGKeyArray, f: F) -> F:
        """See `AbstractLikelihood`."""
        return jax.random.bernoulli(key, jax.nn.sigmoid(f)).astype(f.dtype)


class Poisson(AbstractLikelihood):
    """y is a count, of mean `exp(f)`; `E log p` is in closed form.

    !!! example

        >>> import jax.numpy as jnp, latentforce as lf
        >>> float(lf.Poisson().moments(jnp.zeros((1, 1)))[0][0, 0])
        1.0
    """

    mean_is_function: ClassVar[bool] = False
    counts: ClassVar[bool] = True

    def check(self, y: np.ndarray) -> None:
        """See `AbstractLikelihood`."""
        _one_of_these(y, (y >= 0) & (y == np.floor(y)), "counts (whole numbers, none negative)")

    def log_prob(self, y: Y, f: F) -> Float[Array, "*S N P"]:
        """See `AbstractLikelihood`."""
        return self.expected_log_prob(y, f, jnp.zeros_like(f))

    def expected_log_prob(self, y: Y, mean: F, variance: F) -> Float[Array, "*S N P"]:
        """Closed form: `E exp(f) = exp(m + v/2)`."""
        known, y = _observed(y, mean)
        rate = _exp(mean + variance / 2)
        return jnp.where(known, y * mean - rate - gammaln(y + 1), 0.0)

    def moments(self, f: F) -> tuple[F, F]:
        """See `AbstractLikelihood`."""
        rate = _exp(f)
        return rate, rate

    def cdf(self, y: F, f: F) -> F:
        """See `AbstractLikelihood`."""
        whole = jnp.maximum(jnp.floor(y), 0.0)
        return jnp.where(y < 0, 0.0, 1 - gammainc(whole + 1, jnp.broadcast_to(_exp(f), whole.shape)))

    def sample(self, key: PRNGKeyArray, f: F) -> F:
        """See `AbstractLikelihood`."""
        return jax.random.poisson(key, _exp(f), f.shape).astype(f.dtype)


def hermite(dtype: jnp.dtype) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """Nodes and weights that integrate against the standard normal density."""
    return jnp.asarray(_NODES, dtype), jnp.asarray(_WEIGHTS / math.sqrt(2 * math.pi), dtype)


def _at_nodes(mean: Array, variance: Array, nodes: Float[Array, " n"]) -> Float[Array, "n *shape"]:
    deviation = jnp.sqrt(jnp.maximum(variance, jnp.finfo(variance.dtype).tiny))
    return mean[None] + nodes.reshape(-1, *[1] * mean.ndim) * deviation[None]


def _observed(y: Y, like: Array) -> tuple[Array, Array]:
    """Which observations there are, and y with the missing ones set to zero so that no gradient sees a NaN."""
    y = _lead(y, like)
    known = ~jnp.isnan(y)
    return known, jnp.where(known, y, 0.0)


def _one_of_these(y: np.ndarray, fine: np.ndarray, wanted: str) -> None:
    wrong = y[~fine & ~np.isnan(y)]
    if wrong.size:
        raise ValueError(f"`y` must be {wanted} for this likelihood, got {wrong[0]:g}.")


def _log_normal(squared: Array, variance: Array) -> Array:
    return -(math.log(2 * math.pi) + jnp.log(variance) + squared / variance) / 2


def _halves(f: Array) -> tuple[Array, Array]:
    half = f.shape[-1] // 2
    return f[..., :half], f[..., half:]


def _lead(value: Array, like: Array) -> Array:
    """A scalar or (P,) vector with leading axes to stand beside (..., N, P)."""
    return value.reshape((1,) * (like.ndim - value.ndim) + value.shape)


def _exp(x: Array) -> Array:
    """exp, held where the next operations would overflow."""
    return jnp.exp(jnp.minimum(x, math.log(jnp.finfo(x.dtype).max) / 2))

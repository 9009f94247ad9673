"""Prediction: a mixture of Gaussians over draws of the hidden layers, and what is observed of it."""

import abc
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import logsumexp
from jaxtyping import Bool, Float, PRNGKeyArray
from scipy.special import ndtri

from .. import _checks
from .._checks import Numbers
from .._data import bucket, matrix
from .._linalg import precise
from ..depth._likelihoods import AbstractLikelihood
from ..depth._model import Model, layered

ROWS = 4096  # rows times draws that are worked on at once is this times 16, whatever the number of rows


class AbstractPrediction(eqx.Module):
    """What is believed of the functions f and of observations y at N inputs: a mixture of equally likely Gaussians of
    f, as many from each of its `parts`. `mean`, `variance`, `quantile`, ... speak of y unless they say `f_`.
    """

    @property
    @abc.abstractmethod
    def parts(self) -> "tuple[Prediction, ...]":
        """The predictions of single models."""

    @abc.abstractmethod
    def sample(self, key: PRNGKeyArray, num_samples: int = 1) -> Float[Array, "n N P"]:
        """Draws of y, each input by itself (for coherent functions see `sample_functions`)."""

    @property
    def f_mean(self) -> Float[Array, "N R"]:
        """Mean of f."""
        return jnp.mean(self._all(lambda part: part.means), axis=0)

    @property
    def f_variance(self) -> Float[Array, "N R"]:
        """Total variance of f: the mean of the variances and the variance of the means."""
        return _total(self._all(lambda part: part.means), self._all(lambda part: part.variances))[1]

    @property
    def mean(self) -> Float[Array, "N P"]:
        """Mean of y."""
        return self._moments()[0]

    @property
    def variance(self) -> Float[Array, "N P"]:
        """Total variance of y."""
        return self._moments()[1]

    def targets(self, y: Numbers) -> Float[Array, "N P"]:
        """Observations (N, P) or (N,) of the shape that is predicted."""
        first = self.parts[0]
        _, N, R = first.means.shape
        shape = (N, first.likelihood.num_targets(R))
        targets = jnp.asarray(y, first.means.dtype)
        if targets.shape != shape and not (targets.shape == (N,) and shape[1] == 1):
            raise ValueError(f"`y` must have the shape of the prediction, {shape}, got {targets.shape}.")
        return targets.reshape(shape)

    def log_density(self, y: Numbers) -> Float[Array, "N P"]:
        """`log p(y)` of each observation (zero where it is NaN)."""
        y = self.targets(y)
        values = self._all(lambda part: part.likelihood.log_density(y, part.means, part.variances))
        return logsumexp(values, axis=0) - jnp.log(jnp.asarray(values.shape[0], values.dtype))

    def cdf(self, y: Numbers) -> Float[Array, "N P"]:
        """`P(Y <= y)`."""
        y = self.targets(y)

        def of(part: Prediction) -> Float[Array, "S N P"]:
            each = jnp.broadcast_to(y[None], (part.means.shape[0], *y.shape))
            return part.likelihood.predictive_cdf(each, part.means, part.variances)

        return jnp.mean(self._all(of), axis=0)

    @property
    def counts(self) -> bool:
        """Whether y is a whole number."""
        return self.parts[0].likelihood.counts

    def quantile(self, level: float) -> Float[Array, "N P"]:
        """The smallest y with `P(Y <= y) >= level` (0 < level < 1): of the mixture itself, by bisection."""
        _checks.share("level", level)
        mean, variance = self._moments()
        above = _quantile(self, jnp.asarray(level, mean.dtype), mean, jnp.sqrt(variance))
        return jnp.floor(above) if self.counts else above

    def interval(self, coverage: float = 0.9) -> tuple[Float[Array, "N P"], Float[Array, "N P"]]:
        """The central interval that holds y with probability `coverage`."""
        _checks.share("coverage", coverage)
        return self.quantile((1 - coverage) / 2), self.quantile((1 + coverage) / 2)

    def holds(self, y: Numbers, coverage: float = 0.9) -> Bool[Array, "N P"]:
        """Whether `interval(coverage)` holds these observations."""
        _checks.share("coverage", coverage)
        rank = self.cdf(y)
        below = self.cdf(self.targets(y) - 1) if self.counts else rank  # P(Y < y)
        return (rank >= (1 - coverage) / 2) & (below <= (1 + coverage) / 2)

    def _moments(self) -> tuple[Float[Array, "N P"], Float[Array, "N P"]]:
        each = [part.likelihood.predictive_moments(part.means, part.variances) for part in self.parts]
        means, variances = (jnp.concatenate(values) for values in zip(*each, strict=True))
        return _total(means, variances)

    def _all(self, values: "Callable[[Prediction], Array]") -> Array:
        """Of all Gaussians of all parts, one below the other."""
        return jnp.concatenate([values(part) for part in self.parts])


class Prediction(AbstractPrediction):
    """The prediction of one model: S Gaussians, `means` and `variances` (S, N, R) of f."""

    means: Float[Array, "S N R"]
    variances: Float[Array, "S N R"]
    likelihood: AbstractLikelihood

    @property
    def parts(self) -> "tuple[Prediction, ...]":
        """This one."""
        return (self,)

    def sample(self, key: PRNGKeyArray, num_samples: int = 1) -> Float[Array, "n N P"]:
        """Draws of y, each input by itself (for coherent functions see `sample_functions`)."""
        which, normal, noise = jax.random.split(key, 3)
        S, N, R = self.means.shape
        index = jax.random.randint(which, (num_samples, N, 1), 0, S)
        mean, variance = (jnp.take_along_axis(v, index, axis=0) for v in (self.means, self.variances))
        f = mean + jnp.sqrt(variance) * jax.random.normal(normal, (num_samples, N, R), mean.dtype)
        return self.likelihood.sample(noise, f)


class Mixture(AbstractPrediction):
    """What several models say together, each as likely as the others: where they disagree, less is certain."""

    predictions: tuple[Prediction, ...]

    @property
    def parts(self) -> tuple[Prediction, ...]:
        """Those of single models."""
        return self.predictions

    def sample(self, key: PRNGKeyArray, num_samples: int = 1) -> Float[Array, "n N P"]:
        """Draws of y, each input by itself."""
        which, *keys = jax.random.split(key, len(self.parts) + 1)
        drawn = jnp.stack([part.sample(k, num_samples) for part, k in zip(self.parts, keys, strict=True)])
        index = jax.random.randint(which, (1, *drawn.shape[1:3], 1), 0, len(self.parts))
        return jnp.take_along_axis(drawn, index, axis=0)[0]


def mixed(predictions: Sequence[Prediction]) -> AbstractPrediction:
    """One prediction of several models."""
    return predictions[0] if len(predictions) == 1 else Mixture(tuple(predictions))


def predict(model: Model, x: Numbers, *, num_samples: int = 100, seed: int = 0, chunk: int | None = None) -> Prediction:
    """What a trained model says of new inputs (N, D) or (N,).

    The same quasi-random numbers serve every input, so the answer depends on `seed` alone, not on which inputs are
    asked for together or on `chunk`, the number of rows worked on at once.

    !!! example

        >>> import jax.numpy as jnp, latentforce as lf
        >>> x = jnp.linspace(0.0, 1.0, 30)
        >>> model = lf.build("dlfm-driven", x, jnp.sin(6 * x), num_frequencies=5)
        >>> prediction = lf.predict(model, x)
        >>> low, high = prediction.interval(0.9)
        >>> prediction.mean.shape, bool(jnp.all(low < high))
        ((30, 1), True)
    """
    normals, dtype = fixed_normals(model, num_samples, seed)
    inputs, draws = matrix("x", x, model.num_inputs), len(normals) and num_samples
    means, variances = _by_chunks(partial(_moments, model, normals), inputs, dtype, chunk, draws)
    return Prediction(means, variances, model.likelihood)


def predict_mean(
    model: Model, x: Numbers, *, num_samples: int = 100, seed: int = 0, chunk: int | None = None
) -> Float[Array, "N P"]:
    """The mean of y alone; where y's mean is f's, the last layer's variance is never computed.

    !!! example

        >>> import jax.numpy as jnp, latentforce as lf
        >>> x = jnp.linspace(0.0, 1.0, 30)
        >>> lf.predict_mean(lf.build("lfm-driven", x, x, num_frequencies=5), x).shape
        (30, 1)
    """
    normals, dtype = fixed_normals(model, num_samples, seed)
    return _by_chunks(
        partial(_mean, model, normals), matrix("x", x, model.num_inputs), dtype, chunk, len(normals) and num_samples
    )[0][0]


def hidden_marginals(
    model: Model, x: Numbers, *, num_samples: int = 100, seed: int = 0, chunk: int | None = None
) -> list[tuple[Float[Array, "N R"], Float[Array, "N R"]]]:
    """Mean and total variance of every layer's outputs, the last one's f included (paper, `fig:hidden-layers`).
    `chunk`: as for [`latentforce.predict`][].

    !!! example

        >>> import jax.numpy as jnp, latentforce as lf
        >>> x = jnp.linspace(0.0, 1.0, 30)
        >>> model = lf.build("dlfm-driven", x, x, num_frequencies=5)
        >>> [mean.shape for mean, variance in lf.hidden_marginals(model, x)]
        [(30, 1), (30, 1)]
    """
    normals, dtype = fixed_normals(model, num_samples, seed)
    inputs, marginals = matrix("x", x, model.num_inputs), []
    for depth in range(model.depth):
        part = partial(_marginals, Model(model.layers[: depth + 1], model.likelihood), normals[:depth])
        mean, variance = _by_chunks(part, inputs, dtype, chunk, depth and num_samples)
        marginals.append((mean[0], variance[0]))
    return marginals


def mean_log_density(model: Any, x: Float[Array, "N D"], y: Float[Array, "N P"]) -> Float[Array, ""]:
    """The average of `log p(y)` over rows, with all of a row's targets."""
    return jnp.mean(jnp.sum(predict(model, x).log_density(y), axis=1))


@precise
def _moments(model: Model, normals: tuple[Array, ...], x: Float[Array, "N D"]) -> tuple[Array, Array]:
    return model.moments(x, normals)


@precise
def _marginals(model: Model, normals: tuple[Array, ...], x: Float[Array, "N D"]) -> tuple[Array, Array]:
    mean, variance = _total(*model.moments(x, normals))
    return mean[None], variance[None]


@precise
def _mean(model: Model, normals: tuple[Array, ...], x: Float[Array, "N D"]) -> tuple[Float[Array, "1 N P"]]:
    hidden = model.hidden(x, normals)
    flat = hidden.reshape(-1, hidden.shape[2])
    shape = (*hidden.shape[:2], -1)
    if model.likelihood.mean_is_function:
        mean = (
            model.layers[-1]
            .expectation(flat)
            .reshape(shape)[..., : model.likelihood.num_targets(model.layers[-1].num_outputs)]
        )
    else:
        mean, variance = model.layers[-1].moments(flat)
        mean, _ = model.likelihood.predictive_moments(mean.reshape(shape), variance.reshape(shape))
    return (jnp.mean(mean, axis=0)[None],)


def fixed_normals(model: Model, num_samples: int, seed: int) -> tuple[tuple[Float[Array, "S 1 Q"], ...], Any]:
    """Quasi-random standard normal numbers for the hidden layers, the same for all inputs."""
    _checks.count("num_samples", num_samples)
    layered(model)
    dtype = model.layers[0].posterior.mean.dtype
    widths = model.hidden_widths
    numbers = _halton(num_samples, sum(widths), seed)
    parts = np.split(numbers, np.cumsum(widths)[:-1], axis=1) if widths else []
    return tuple(jnp.asarray(part[:, None, :], dtype) for part in parts), dtype


@cache
def _halton(num: int, dimension: int, seed: int) -> np.ndarray:
    """Standard normal numbers (num, dimension) that fill space evenly."""
    if dimension == 0:
        return np.zeros((num, 0))
    from scipy.stats import qmc  # a third of the time that importing the library takes, and training needs none

    return ndtri(qmc.Halton(dimension, rng=np.random.default_rng(seed)).random(num))


def _by_chunks(function: Any, x: np.ndarray, dtype: Any, chunk: int | None, draws: int) -> tuple[Array, ...]:
    """`function` of rows, some at a time, joined along axis 1; the last is filled up, so few sizes are compiled."""
    rows = jnp.asarray(x, dtype)
    num = rows.shape[0]
    size = min(bucket(num), max(ROWS * 16 // max(draws, 1), 1) if chunk is None else _checks.count("chunk", chunk))
    padded = jnp.concatenate([rows, jnp.repeat(rows[-1:], -num % size, axis=0)])
    parts = [function(padded[start : start + size]) for start in range(0, num, size)]
    return tuple(jnp.concatenate(pieces, axis=1)[:, :num] for pieces in zip(*parts, strict=True))


def _total(means: Float[Array, "S N R"], variances: Float[Array, "S N R"]) -> tuple[Array, Array]:
    return jnp.mean(means, axis=0), jnp.mean(variances, axis=0) + jnp.var(means, axis=0)


@jax.jit
def _quantile(
    prediction: AbstractPrediction, level: Float[Array, ""], mean: Float[Array, "N P"], deviation: Float[Array, "N P"]
) -> Float[Array, "N P"]:
    """Bisection between bounds that Cantelli's inequality gives for any distribution with these moments."""
    low = mean - deviation * jnp.sqrt((1 - level) / level) - 1
    high = mean + deviation * jnp.sqrt(level / (1 - level))

    def halve(_: Any, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = (low + high) / 2
        below = prediction.cdf(middle) < level
        return jnp.where(below, middle, low), jnp.where(below, high, middle)

    steps = 60 if mean.dtype == jnp.float64 else 30
    return jax.lax.fori_loop(0, steps, halve, (low, high))[1]

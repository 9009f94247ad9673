"""Objectives: pure functions of (model, batch, key), in nats for each observation, to be maximised."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import logsumexp
from jaxtyping import Float, PRNGKeyArray

from .._checks import count
from .._linalg import in_full_precision
from ..depth._model import Model, layered
from ._devices import by_rows

Rows = tuple[Float[Array, "N D"], Float[Array, "N P"]]  # inputs and targets


class Batch(NamedTuple):
    """Rows of data: inputs, targets, weights (of mean one over the whole data), and the size of the whole data.

    A NaN target was not observed. A row of weight w counts as w rows, and `num_data` is the sum of all weights.
    """

    x: Float[Array, "N D"]
    y: Float[Array, "N P"]
    weight: Float[Array, " N"]
    num_data: Float[Array, ""]


def whole(x: Float[Array, "N D"], y: Float[Array, "N P"], weight: Float[Array, " N"] | None = None) -> Batch:
    """All of the data as one batch: inputs (N, D), targets (N, P), weights (N,).

    !!! example

        >>> import jax.numpy as jnp, latentforce as lf
        >>> float(lf.whole(jnp.zeros((3, 1)), jnp.zeros((3, 1)), jnp.array([1.0, 2.0, 3.0])).num_data)
        6.0
    """
    return Batch(x, y, *_relative(jnp.ones(x.shape[0], x.dtype) if weight is None else weight))


@jax.jit
def _relative(weight: Float[Array, " N"]) -> tuple[Float[Array, " N"], Float[Array, ""]]:
    """Weights of mean one, and the sum of what they were."""
    return weight / jnp.mean(weight), jnp.sum(weight)


@in_full_precision
def elbo(
    model: Model, batch: Batch, key: PRNGKeyArray, num_samples: int = 2, alike: bool = False, mirrored: bool = True
) -> Float[Array, ""]:
    """The doubly stochastic evidence lower bound for each row (paper, section `sec:DLFM`).

    Exact for one layer; else `num_samples` draws of the hidden layers are averaged over. They come in pairs, the second
    the mirror image of the first: whatever is linear in them cancels, and of the gradients' noise that is most. Without
    `mirrored` each is drawn by itself, as in the paper; the expectation is the same. `alike` draws the same numbers for
    equal inputs, wherever they stand: then a weight of two is to the digit the row twice, and order is no matter.

    !!! example

        >>> import jax, jax.numpy as jnp, latentforce as lf
        >>> x = jnp.linspace(0.0, 1.0, 30)[:, None]
        >>> model = lf.build("lfm-driven", x, jnp.sin(6 * x), num_frequencies=5)
        >>> bool(jnp.isfinite(lf.elbo(model, lf.whole(x, jnp.sin(6 * x)), jax.random.key(0))))
        True
    """
    layered(model).takes(batch.y.shape[1])
    S, draw = count("num_samples", num_samples), normals_of_rows if alike else normals
    drawn = _paired(draw(model, key, -(-S // 2), batch.x), S) if mirrored else draw(model, key, S, batch.x)

    def expected(model: Model, rows: Rows, drawn: tuple[Float[Array, "S N Q"], ...]) -> Float[Array, " N"]:
        x, y = rows
        values = model.likelihood.expected_log_prob(y, *model.moments(x, drawn))
        return jnp.mean(jnp.sum(values, axis=2), axis=0)

    return _average(by_rows(expected, model, (batch.x, batch.y), drawn), batch) - model.kl() / batch.num_data


@in_full_precision
def importance_weighted_bound(
    model: Model, batch: Batch, key: PRNGKeyArray, num_samples: int = 1, num_inner: int = 10
) -> Float[Array, ""]:
    """A tighter bound: given all features, each row's likelihood is averaged before its logarithm is taken.

    `log p(y) >= E_q(e) sum_n log p(y_n | e) - KL`, and `p(y_n | e)` is an expectation over what the features leave
    open of the hidden layers: `num_inner` draws of that go inside the logarithm, `num_samples` draws of e outside.
    It grows with `num_inner`, and with one inner draw it is no smaller than `elbo`.

    !!! example

        >>> import jax, jax.numpy as jnp, latentforce as lf
        >>> x = jnp.linspace(0.0, 1.0, 30)[:, None]
        >>> model, data = lf.build("dgp", x, x, num_frequencies=2), lf.whole(x, jnp.sin(6 * x))
        >>> bool(jnp.isfinite(lf.importance_weighted_bound(model, data, jax.random.key(0), num_inner=5)))
        True
    """

    layered(model).takes(batch.y.shape[1])
    count("num_samples", num_samples)
    count("num_inner", num_inner)

    def one(key: PRNGKeyArray) -> Float[Array, " N"]:
        features, noise = jax.random.split(key)
        drawn = [
            layer.posterior.sample(k) for layer, k in zip(model.layers, _split(features, model.depth), strict=True)
        ]
        return by_rows(given, (model, drawn), (batch.x, batch.y), normals(model, noise, num_inner, batch.x))

    def given(shared: tuple[Model, list[Array]], rows: Rows, noise: tuple[Array, ...]) -> Float[Array, " N"]:
        (model, drawn), (x, y) = shared, rows
        h = jnp.broadcast_to(x[None], (num_inner, *x.shape))
        for layer, e, normal in zip(model.layers[:-1], drawn[:-1], noise, strict=True):
            flat = layer.draw_given(h.reshape(-1, h.shape[2]), e, normal.reshape(1, -1, normal.shape[2]))
            h = flat.reshape(num_inner, x.shape[0], -1)
        mean, variance = model.layers[-1].given(h.reshape(-1, h.shape[2]), drawn[-1])
        shape = (num_inner, x.shape[0], mean.shape[1])
        values = model.likelihood.log_density(y, mean.reshape(shape), variance.reshape(shape))
        return logsumexp(jnp.sum(values, axis=2), axis=0) - jnp.log(jnp.asarray(num_inner, mean.dtype))

    values = jnp.mean(jax.vmap(one)(jax.random.split(key, num_samples)), axis=0)
    return _average(values, batch) - model.kl() / batch.num_data


def normals(
    model: Model, key: PRNGKeyArray, num_samples: int, x: Float[Array, "N D"]
) -> tuple[Float[Array, "S N Q"], ...]:
    """Standard normal numbers for the hidden layers: a row's are the same whatever the number of rows after it."""
    widths = model.hidden_widths
    return tuple(
        jnp.swapaxes(jax.random.normal(k, (x.shape[0], num_samples, width), x.dtype), 0, 1)
        for k, width in zip(_split(key, len(widths)), widths, strict=True)
    )


def normals_of_rows(
    model: Model, key: PRNGKeyArray, num_samples: int, x: Float[Array, "N D"]
) -> tuple[Float[Array, "S N Q"], ...]:
    """As `normals`, equal for equal rows: the inputs' digits are part of the key."""
    digits = jax.lax.bitcast_convert_type(x, jnp.uint32).reshape(x.shape[0], -1)
    factors = np.cumprod(np.full(digits.shape[1], 2654435761, np.uint32), dtype=np.uint32)  # odd: no digit is lost
    codes = jnp.sum(digits * factors[None], axis=1, dtype=jnp.uint32)
    keys = jax.vmap(lambda code: jax.random.fold_in(key, code))(codes)
    widths = model.hidden_widths
    if not widths:
        return ()
    drawn = jax.vmap(lambda k: jax.random.normal(k, (num_samples, sum(widths)), x.dtype))(keys)
    return tuple(jnp.split(jnp.swapaxes(drawn, 0, 1), np.cumsum(widths)[:-1], axis=2))


def _paired(half: tuple[Float[Array, "H N Q"], ...], num_samples: int) -> tuple[Float[Array, "S N Q"], ...]:
    """The draws and their mirror images, so many in all: the last one of an odd number has none."""
    return tuple(jnp.concatenate([drawn, -drawn])[:num_samples] for drawn in half)


def _average(values: Float[Array, " N"], batch: Batch) -> Float[Array, ""]:
    return jnp.mean(batch.weight * values)


def _split(key: PRNGKeyArray, num: int) -> list[PRNGKeyArray]:
    return list(jax.random.split(key, num)) if num else []

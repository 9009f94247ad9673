"""From options to layers: shapes and starting points that follow the data."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .depth._inputs import AbstractInputs, Bounded, Coordinates, Directions, Jointly, normalized
from .depth._layer import Layer
from .depth._likelihoods import AbstractLikelihood, Gaussian
from .depth._means import ZeroMean, hidden_mean
from .depth._model import Model
from .depth._outputs import AbstractOutputs, IndependentOutputs, SharedForces
from .depth._posteriors import POSTERIORS
from .dynamics._filters import AbstractFilter, FirstOrder, Identity, SecondOrder
from .dynamics._forces import AbstractForce, Matern, SquaredExponential
from .dynamics._process import Process
from .features._base import AbstractFeatures
from .features._driven import DrivenFourier
from .features._harmonic import HarmonicFourier
from .features._points import InducingPoints
from .features._random import RandomFourier
from .inference._exact import ExactModel


@dataclass(frozen=True)
class Options:
    """What [`latentforce.build`][] was asked for, checked; see there for the meaning of each."""

    family: str | None
    num_frequencies: int
    nu: float | None
    interval: tuple[float, float] | None
    filter: AbstractFilter | str
    lengthscale: float | None
    variance: float | None
    width: int
    directions: int | None
    covariance: str
    start: str
    shared_kernels: bool
    num_forces: int | None
    num_latents: int | None
    bounded: bool
    seed: int
    weight: np.ndarray  # of each row
    dtype: Any

    def generator(self, *purpose: int) -> np.random.Generator:
        """Random numbers of their own for each purpose."""
        return np.random.default_rng((self.seed, *purpose))

    def arrays(self, *values: np.ndarray | jax.Array) -> list[jax.Array]:
        """The values in the model's dtype. NumPy converts them: JAX would compile a program for each shape."""
        return [jax.device_put(np.asarray(value, self.dtype)) for value in values]


def stack(
    options: Options,
    x: np.ndarray,
    depth: int,
    num_outputs: int,
    likelihood: AbstractLikelihood,
    train_filters: int | None,
) -> Model:
    """All layers; each is set up for what the means of those before it make of the inputs."""
    layers = []
    for index in range(depth):
        last = index == depth - 1
        layer = _layer(options, index, x, num_outputs if last else options.width, last)
        x = x if last else np.asarray(layer.mean(*options.arrays(x)), np.float64)
        layers.append(layer)
    return Model(tuple(layers), likelihood, train_filters)


def exact(options: Options, x: np.ndarray, likelihood: AbstractLikelihood, train_filters: int | None) -> ExactModel:
    """The exact model with the same priors as a shallow one."""
    if not isinstance(likelihood, Gaussian):
        raise ValueError(f"`likelihood` must be Gaussian for exact inference, got {type(likelihood).__name__}.")
    for name in ("num_forces", "num_latents"):
        if getattr(options, name) is not None:
            raise ValueError(f"`{name}` must be None for an exact model, got {getattr(options, name)}.")
    inputs, times = _inputs(options, 0, x)
    process = _process(options, _spans(times), True, isinstance(inputs, Jointly))
    return ExactModel(inputs, process, likelihood, train_filters=train_filters)


def _layer(options: Options, index: int, x: np.ndarray, num_outputs: int, last: bool) -> Layer:
    inputs, times = _inputs(options, index, x)
    spans = _spans(times)
    features = _features(options, index, times, spans)
    mixed = last and options.num_latents is not None
    latents = options.num_latents if mixed and options.num_latents else num_outputs
    outputs, groups = _outputs(options, index, _process(options, spans, last, isinstance(inputs, Jointly)), latents)
    if options.bounded and index > 0:
        inputs = _bounded(options, inputs, features, spans)
    A, _ = jax.eval_shape(lambda: outputs.summary(features, inputs(jnp.zeros((1, x.shape[1]), options.dtype))))
    tiny = not last and options.start == "paper"
    shape = (groups, A.shape[1], A.shape[2])
    return Layer(
        inputs=inputs,
        outputs=outputs,
        features=features,
        posterior=POSTERIORS[options.covariance].start(shape, 1e-5**0.5 if tiny else 1.0, options.dtype),
        mean=ZeroMean() if last else hidden_mean(x, num_outputs, options.weight, options.dtype),
        mixing=_mixing(options, index, num_outputs, latents) if mixed else None,
    )


def _inputs(options: Options, index: int, x: np.ndarray) -> tuple[AbstractInputs, list[np.ndarray]]:
    """How the layer reads, and the times (N,) of each direction; the columns where all are read jointly.

    Without an ODE there is no time, and kernels can be of a vector: of exact models and of inducing points.
    """
    dim, K = x.shape[1], options.directions
    of_vectors = options.family in ("points", None) and isinstance(options.filter, Identity)
    if of_vectors and K is None and options.num_forces is None and dim > 1:
        return Jointly(dim), [x]
    if K is None:
        return Coordinates(dim), list(x.T)
    low, high = _spans(list(x.T)).T
    centre, half = (low + high) / 2, (high - low) / 2
    random = options.generator(index, 1).standard_normal((dim, dim) if dim > K else (K - dim, dim))
    # Fewer directions than inputs are random ones: a part of the inputs would leave the others unseen.
    weights = np.linalg.qr(random)[0][:K] if dim > K else np.concatenate([np.eye(dim), random])
    times = np.asarray(normalized(jnp.asarray(weights)), np.float64) @ ((x - centre) / half).T
    return Directions(*options.arrays(weights, centre, half)), list(times)


def _spans(times: list[np.ndarray]) -> np.ndarray:
    """The range (K, 2) of each direction's times (of each column, if there are several): one where it is empty."""
    columns = [column for t in times for column in t.reshape(len(t), -1).T]
    low, high = (np.array([end(column) for column in columns]) for end in (np.min, np.max))
    empty = ~(high > low)
    return np.stack([np.where(empty, low - 0.5, low), np.where(empty, high + 0.5, high)], axis=1)


def _features(options: Options, index: int, times: list[np.ndarray], spans: np.ndarray) -> AbstractFeatures:
    """Features with arrays that lead with K."""
    M = options.num_frequencies
    if options.family == "points":
        centres = np.stack([_centres(t, 2 * M + 1, options) for t in times])
        return jax.vmap(InducingPoints)(*options.arrays(centres))
    if options.family == "random":
        return RandomFourier(M, seed=options.seed + 1000 * index)
    harmonic = options.family == "harmonic"
    margin = (1 / 3 if harmonic else 0.1) * (spans[:, 1] - spans[:, 0])
    a, b = spans[:, 0] - margin, spans[:, 1] + margin
    if options.interval is not None:
        a, b = (np.full_like(margin, end) for end in options.interval)
    family = HarmonicFourier if harmonic else DrivenFourier
    return jax.vmap(lambda a, b: family(M, (a, b)))(*options.arrays(a, b))


def _centres(t: np.ndarray, num: int, options: Options) -> np.ndarray:
    """Inducing points by k-means; where there are fewer different inputs, the rest is scattered among them."""
    from sklearn.cluster import KMeans  # slow to import, and needed here alone

    flat = t.reshape(len(t), -1)
    distinct = np.unique(flat, axis=0)
    low, high = _spans([flat]).T
    if len(distinct) > num:
        scaled = (flat - low) / (high - low)
        means = KMeans(num, random_state=options.seed, n_init="auto").fit(scaled, sample_weight=options.weight)
        centres = low + (high - low) * means.cluster_centers_
    else:
        extra = np.random.default_rng(options.seed).random((num - len(distinct), flat.shape[1]))
        centres = np.concatenate([distinct, low + (high - low) * extra])
    return np.sort(centres[:, 0]) if t.ndim == 1 else centres


def _process(options: Options, spans: np.ndarray, last: bool, joint: bool) -> Process:
    """The process along each direction, arrays leading with K; its scales follow the range of the times."""
    size = spans[:, 1] - spans[:, 0]
    length = size / 3 if options.lengthscale is None else np.full_like(size, options.lengthscale)
    if options.variance is not None:
        variance = np.full_like(size, options.variance)
    elif last:
        variance = np.full_like(size, 0.1 if options.start == "paper" else 1.0)
    else:
        variance = (0.1 if options.start == "paper" else 0.01) * (size / 3) ** 2
    if isinstance(options.filter, AbstractFilter) and options.variance is None:
        variance = variance * float(options.filter.coefficients[0]) ** 2  # so that the output has that variance
    if joint:
        length, variance, size = length[None], variance[:1], size[:1]
    return jax.vmap(
        lambda length, variance, delay: Process(_force(options, length, variance), _filter(options, delay))
    )(*options.arrays(length, variance, size / 300))


def _force(options: Options, lengthscale: jax.Array, variance: jax.Array) -> AbstractForce:
    if options.nu is None:
        return SquaredExponential(lengthscale, variance)
    return Matern(options.nu, lengthscale, variance)


def _filter(options: Options, delay: jax.Array) -> AbstractFilter:
    """The filter asked for, or one that answers within `delay`: first order, or second and critically damped."""
    if isinstance(options.filter, AbstractFilter):
        return jax.tree.map(lambda leaf: options.arrays(leaf)[0], options.filter)
    if options.filter == "first":
        return FirstOrder(jnp.ones_like(delay), delay)
    return SecondOrder(mass=delay**2, damping=2 * delay, stiffness=jnp.ones_like(delay))


def _outputs(options: Options, index: int, process: Process, latents: int) -> tuple[AbstractOutputs, int]:
    """The prior of `latents` functions, and the number of independent groups of features."""

    def repeat(tree: Any, times: int) -> Any:
        return jax.tree.map(lambda leaf: jax.device_put(np.repeat(np.asarray(leaf)[None], times, axis=0)), tree)

    if options.num_forces is None:
        return IndependentOutputs(repeat(process, 1 if options.shared_kernels else latents)), latents
    Q, K = options.num_forces, process.force.variance.shape[0]
    sensitivity = options.generator(index, 3).standard_normal((latents, Q, K)) if Q > 1 else np.ones((latents, 1, K))
    sensitivity = sensitivity / np.linalg.norm(sensitivity, axis=1, keepdims=True)
    return SharedForces(repeat(process.force, Q), repeat(process.filter, latents), *options.arrays(sensitivity)), 1


def _mixing(options: Options, index: int, num_outputs: int, latents: int) -> jax.Array:
    """The identity as far as it goes, then random weights of the size that keeps the outputs' variance."""
    weights = np.eye(num_outputs, latents)
    rest = options.generator(index, 2).standard_normal((max(num_outputs - latents, 0), latents)) / latents**0.5
    weights[latents:] = rest
    return options.arrays(weights)[0]


def _bounded(options: Options, inputs: AbstractInputs, features: AbstractFeatures, spans: np.ndarray) -> Bounded:
    """Inputs bent into the features' interval; families without one are held to the range and half of it."""
    if isinstance(features, HarmonicFourier | DrivenFourier):
        a, b = features.interval
        return Bounded(inputs, (a + b) / 2, (b - a) / 2)
    if isinstance(inputs, Jointly):
        raise ValueError("`bounded` must be False where inputs are read jointly (inducing points without an ODE).")
    return Bounded(inputs, *options.arrays(spans.mean(axis=1), 0.75 * (spans[:, 1] - spans[:, 0])))

"""The models by name: a table of data. A model is `dynamics x features x depth`, and a name is a row."""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import jax
import jax.numpy as jnp

from . import _checks
from ._assembly import Options, exact, stack
from ._checks import Numbers
from ._data import row_weights, rows
from .depth._likelihoods import AbstractLikelihood, Gaussian
from .depth._posteriors import POSTERIORS
from .dynamics._filters import AbstractFilter, Identity


@dataclass(frozen=True)
class Preset:
    """A corner of the cube: is there an ODE, which features (None: exact inference), is it deep."""

    ode: bool
    features: Literal["points", "random", "harmonic", "driven"] | None
    deep: bool
    about: str

    @property
    def joint(self) -> bool:
        """Whether kernels are of all inputs at once, and not of one time: without an ODE, exact or on points."""
        return self.features in ("points", None) and not self.ode


PRESETS = MappingProxyType(
    {
        "svgp": Preset(False, "points", False, "sparse variational GP on inducing points"),
        "lfm": Preset(True, "points", False, "latent force model on inducing forces"),
        "dgp": Preset(False, "points", True, "deep GP on inducing points"),
        "dlfm-ip": Preset(True, "points", True, "deep latent force model on inducing forces"),
        "ssgp": Preset(False, "random", False, "sparse spectrum GP"),
        "lfm-rff": Preset(True, "random", False, "latent force model on random Fourier features"),
        "dgp-rff": Preset(False, "random", True, "deep GP on random Fourier features"),
        "dlfm-rff": Preset(True, "random", True, "deep latent force model on random Fourier features"),
        "gp-vff": Preset(False, "harmonic", False, "GP on variational Fourier features"),
        "lfm-vfrf": Preset(True, "harmonic", False, "latent force model on variational Fourier response features"),
        "iddgp": Preset(False, "harmonic", True, "inter-domain deep GP on variational Fourier features"),
        "dlfm-vfrf": Preset(True, "harmonic", True, "the paper's deep latent force model"),
        "gp-driven": Preset(False, "driven", False, "GP on driven Fourier features"),
        "lfm-driven": Preset(True, "driven", False, "latent force model on driven Fourier features"),
        "dgp-driven": Preset(False, "driven", True, "deep GP on driven Fourier features"),
        "dlfm-driven": Preset(True, "driven", True, "deep latent force model on driven Fourier features"),
        "exact-gp": Preset(False, None, False, "exact GP"),
        "exact-lfm": Preset(True, None, False, "exact latent force model"),
    }
)


def presets() -> dict[str, Preset]:
    """The models by name, with their place on the three axes.

    !!! example

        >>> import latentforce as lf
        >>> len(lf.presets()), lf.presets()["dlfm-vfrf"].features
        (18, 'harmonic')
    """
    return dict(PRESETS)


def build(
    name: str,
    x: Numbers,
    y: Numbers,
    *,
    depth: int | None = None,
    width: int | None = None,
    num_frequencies: int = 20,
    nu: float | None = 1.5,
    interval: tuple[float, float] | None = None,
    filter: AbstractFilter | str = "first",
    lengthscale: float | None = None,
    variance: float | None = None,
    likelihood: AbstractLikelihood | None = None,
    train_filters: int | None = 0,
    directions: int | None = None,
    covariance: str = "full",
    start: str | None = None,
    shared_kernels: bool = True,
    num_forces: int | None = None,
    num_latents: int | None = None,
    bounded: bool = False,
    weight: Numbers | None = None,
    seed: int = 0,
) -> Any:  # `Model`, or `ExactModel` where the preset has no features
    """A model by name (see [`latentforce.presets`][]), ready to be trained on data like these.

    The data set shapes and the starting point (ranges, k-means, principal directions) and are not kept. Nothing is
    scaled here: defaults follow the range of the inputs, and targets are taken to be of the order of one.

    **Arguments:**

    - `x` (N, D) or (N,), `y` (N, P) or (N,): inputs and targets; NaN in `y` means not observed.
    - `depth`: number of layers (default: 2 for deep models, 1 for shallow ones).
    - `width`: outputs of each hidden layer (default: D, with the identity as its mean; else linear by SVD).
    - `num_frequencies`: M; inducing points are 2M+1, as many as there are features at M frequencies.
    - `nu`: Matérn order; None: a squared-exponential force (inducing points and random features).
    - `interval`: `(a, b)` for the Fourier features (default: the range of the inputs and a third of it on either
      side for harmonic, a tenth for driven features; hidden layers take the range of what their means give).
    - `filter`: "first" (alpha = 1, beta a 300th of the range), "second" (the same speed, critically damped) or a
      filter, the same at every layer. Presets without an ODE have none.
    - `lengthscale` (default: a third of the range), `variance` of the force (default: 0.1 or, starting at the prior, 1
      at the last layer; at hidden ones 0.1 or 0.01, times the square of a third of the range).
    - `likelihood`: default `Gaussian(0.01)` as in the paper or, starting at the prior, `Gaussian(0.1)`.
    - `train_filters`: train the ODE's coefficients from the start (0), after k steps, or never (None).
    - `directions`: None for additive over input dimensions; K for additive over K learned directions (at every layer).
      Models on inducing points without an ODE are not additive unless K is given: their kernel sees all inputs.
    - `covariance` of q: "full", "block" (by direction) or "diagonal".
    - `start`: "paper" (hidden q of variance 1e-5) or "prior" (q = p everywhere, and a small hidden variance);
      default: "prior" for driven features and exact models, "paper" for the others.
    - `shared_kernels`: one kernel for all outputs of a layer, or one each.
    - `num_forces`: None for a force of its own for each output; Q for Q forces that drive all outputs of the last layer
      (and of every hidden one) through sensitivities and an ODE for each output.
    - `num_latents`: Q latent functions mixed linearly into the outputs of the last layer (LMC); None: no mixing.
    - `bounded`: bend the inputs of hidden layers into the interval.
    - `weight` (N,): how often each row counts, for k-means and principal directions.
    - `seed`: for k-means, random frequencies, directions and sensitivities.

    !!! example

        >>> import jax.numpy as jnp, latentforce as lf
        >>> x = jnp.linspace(0.0, 1.0, 50)
        >>> model = lf.build("dlfm-vfrf", x, jnp.sign(x - 0.5), depth=3, interval=(-0.5, 1.5))
        >>> model.depth, model.layers[0].posterior.shape
        (3, (1, 1, 41))
    """
    if not isinstance(name, str) or name not in PRESETS:
        raise ValueError(f"`name` must be one of {', '.join(PRESETS)}, got {name!r}.")
    preset = PRESETS[name]
    inputs, targets = rows(x, y)
    depth = (2 if preset.deep else 1) if depth is None else _checks.count("depth", depth)
    if depth > 1 and not preset.deep:
        deep = next((other for other, row in PRESETS.items() if row == _deepened(preset, row.about)), None)
        raise ValueError(f"`depth` must be 1 for {name!r}, got {depth}; its deep counterpart is {deep!r}.")
    _one_of("start", start, ("paper", "prior", None))
    start = start or ("prior" if preset.features in ("driven", None) else "paper")
    observed = Gaussian(0.01 if start == "paper" else 0.1) if likelihood is None else likelihood
    _checks.instance("likelihood", observed, AbstractLikelihood, "a likelihood such as latentforce.Gaussian(...)")
    _one_of("covariance", covariance, POSTERIORS)
    if nu is None and preset.features not in ("points", "random"):
        raise ValueError(
            f"`nu` must be a half-integer for {name!r} (only inducing points and random features take a "
            "squared-exponential force), got None."
        )
    if interval is not None:
        _checks.interval("interval", interval)
        if directions is not None:
            raise ValueError(f"`interval` must be None with learned directions, which choose it, got {interval}.")
    for key, value in (("lengthscale", lengthscale), ("variance", variance)):
        if value is not None:  # looked at here: where the layers are made, numbers are traced
            _checks.positive(key, value)
    if train_filters is not None and train_filters != 0:
        _checks.count("train_filters", train_filters)
    if not isinstance(filter, AbstractFilter):
        _one_of("filter", filter, ("first", "second"))
    dtype = jnp.result_type(float)
    options = Options(
        family=preset.features,
        num_frequencies=_checks.count("num_frequencies", num_frequencies),
        nu=nu,
        interval=interval,
        filter=filter if preset.ode else Identity(),
        lengthscale=lengthscale,
        variance=variance,
        width=inputs.shape[1] if width is None else _checks.count("width", width),
        directions=None if directions is None else _checks.count("directions", directions),
        covariance=covariance,
        start=start,
        shared_kernels=shared_kernels,
        num_forces=None if num_forces is None else _checks.count("num_forces", num_forces),
        num_latents=None if num_latents is None else _checks.count("num_latents", num_latents),
        bounded=bounded,
        seed=seed,
        weight=row_weights(weight, len(inputs)),
        dtype=dtype,
    )
    observed = jax.tree.map(lambda leaf: options.arrays(leaf)[0], observed)
    if isinstance(observed, Gaussian) and observed.variance.ndim and observed.variance.size != targets.shape[1]:
        raise ValueError(
            f"`likelihood` must have one variance, or one for each of the {targets.shape[1]} targets, "
            f"got {observed.variance.size}."
        )
    if preset.features is None:
        return exact(options, inputs, observed, train_filters)
    return stack(options, inputs, depth, observed.num_functions(targets.shape[1]), observed, train_filters)


def _one_of(name: str, value: Any, allowed: Any) -> None:
    if value not in allowed:
        raise ValueError(f"`{name}` must be one of {', '.join(map(repr, allowed))}, got {value!r}.")


def _deepened(preset: Preset, about: str) -> Preset:
    return Preset(preset.ode, preset.features, True, about)

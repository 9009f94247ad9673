"""Variational Fourier (response) features on harmonic sinusoids: the paper's VFF and VFRF."""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Complex, Float

from .. import _checks
from .._checks import Numbers
from .._linalg import narrow_product, precise
from .._parameters import CONSTANT, parameter
from .._triangular import small_inverse, small_root
from ..dynamics._process import Process
from ..dynamics._system import LinearSystem, force_constants, imaginary
from ._base import AbstractFeatures, system_and_times
from ._phases import oscillations, phasors, position
from ._polynomials import Expansion, Rows
from ._regions import Regions


class HarmonicFourier(AbstractFeatures):
    r"""Projections of the force on `1, cos z_m(t-a), sin z_m(t-a)`, `z_m = 2 pi m/(b-a)`, in its RKHS on `[a, b]`.

    With `Identity` these are the variational Fourier features (paper, `eq:fourier-basis`, `tab:hzx-12`, `tab:hzx-32`,
    `tab:hzx-52`), with a filter the variational Fourier response features (`eq:gkm-feature`, `tab:mkg-12-cos` to
    `tab:mkg-52-sin`), for every Matérn order, every stable ODE and every t, also outside `[a, b]`.
    Order: the constant, M cosines, M sines; `F = 2 M + 1`.

    Harmonic sinusoids are periodic and a process is not, so some variance near the ends stays out of reach for every M:
    keep the data well inside `[a, b]`, or use [`latentforce.DrivenFourier`][].

    **Arguments:** `num_frequencies`: M, at least 1. `interval`: `(a, b)` with `a < b`.

    !!! example

        >>> import jax.numpy as jnp, latentforce as lf
        >>> process = lf.Process(lf.Matern(nu=1.5, lengthscale=1.0), lf.FirstOrder(alpha=1.0, beta=0.01))
        >>> features = lf.HarmonicFourier(20, interval=(-1.0, 4.0))
        >>> features.whitened(process, jnp.linspace(0.0, 3.0, 7)).shape
        (7, 41)
    """

    num_frequencies: int = eqx.field(static=True)
    interval: tuple[Float[Array, ""], Float[Array, ""]] = parameter(CONSTANT)

    def __init__(self, num_frequencies: int, interval: tuple[Numbers, Numbers]):
        self.num_frequencies = _checks.count("num_frequencies", num_frequencies)
        self.interval = _checks.interval("interval", interval)

    def num_features(self, process: Process) -> int:
        return 2 * self.num_frequencies + 1

    def frequencies(self) -> Float[Array, " M_plus_1"]:
        """`z_0 = 0, z_1, ..., z_M`."""
        a, b = self.interval
        return _frequencies(self.num_frequencies, b - a)

    def covariance(self, process: Process) -> Float[Array, "F F"]:
        """`K_vv = D + X P_u^{-1} X^T` (F, F): diagonal plus rank p+1; dense here, for inspection.

        !!! example

            >>> import latentforce as lf
            >>> lf.HarmonicFourier(2, interval=(0.0, 1.0)).covariance(lf.Process(lf.Matern(nu=0.5))).shape
            (5, 5)
        """
        dtype = process.dtype(*self.interval)
        return _covariance(self, process.system(dtype))

    def cross_covariance(self, process: Process, t: Numbers) -> Float[Array, "N F"]:
        """`Cov[f(t), v]` (N, F) (paper, `eq:cov-fv`)."""
        system, t = system_and_times(process, t, self.interval)
        return _cross(self, system, t)

    def whitened(self, process: Process, t: Numbers) -> Float[Array, "N F"]:
        """`Cov[f(t), e]` (N, F): O(N F (p+1+order)), nothing that grows with N or F is factorised."""
        system, t = system_and_times(process, t, self.interval)
        return _whitened(self, system, t)

    def expansion(self, system: LinearSystem, t: Float[Array, " N"]) -> Expansion:
        """The features `whitened` as waves and what is added to them."""
        scale, V = _structure(self, system, t.dtype)
        parts, inner = _parts(self, system, t, scale), _whitening(V)
        num_modes, gain = parts.size.size, parts.gain[:, None]

        def modes(rows: Rows) -> Complex[Array, "K c"]:
            cosine, sine = jnp.split(rows.astype(gain.dtype), [num_modes])
            sine = jnp.concatenate([jnp.zeros_like(sine[:1]), sine])
            return gain * (cosine - 1j * sine)

        return Expansion(
            left=V,
            right=inner,
            modes=modes,
            num_modes=num_modes,
            high=parts.high,
            low=parts.low,
            within=parts.within,
            weights=_less(inner, V, parts.weights),
            basis=parts.basis,
            meeting=slice(system.degree + 1, system.degree + 1 + system.order),
        )

    def force_whitened(self, process: Process, t: Numbers) -> Float[Array, "N F"]:
        """`Cov[u(t), e]` (N, F): the same projections seen from the force."""
        system, t = system_and_times(process, t, self.interval)
        return _whitened(self, system.observing_force(), t)


def _frequencies(num: int, length: Float[Array, ""]) -> Float[Array, " M_plus_1"]:
    return jnp.arange(num + 1, dtype=length.dtype) * (2 * math.pi / length)


def _split(values: Complex[Array, "*lead M_plus_1"]) -> Float[Array, "*lead F"]:
    """Real parts (constant and cosine features), then imaginary parts (sine features)."""
    return jnp.concatenate([values.real, values.imag[..., 1:]], axis=-1)


def _twofold(values: Float[Array, " M_plus_1"]) -> Float[Array, " F"]:
    """Numbers by frequency, repeated for cosine and sine."""
    return jnp.concatenate([values, values[1:]])


@precise
def _cross(features: HarmonicFourier, system: LinearSystem, t: Float[Array, " N"]) -> Float[Array, "N F"]:
    parts = _parts(features, system, t, jnp.ones(features.num_frequencies + 1, t.dtype))
    return (parts.waves() + narrow_product(parts.weights, parts.basis)).T


@precise
def _whitened(features: HarmonicFourier, system: LinearSystem, t: Float[Array, " N"]) -> Float[Array, "N F"]:
    """`B T`, with `B` the projections over the root of `D`."""
    scale, V = _structure(features, system, t.dtype)
    parts, inner = _parts(features, system, t, scale), _whitening(V)
    weights, waves = jnp.concatenate([_less(inner, V, parts.weights), -inner], axis=1), parts.waves()
    return (waves + narrow_product(weights, jnp.concatenate([parts.basis, V.T @ waves]))).T


def _whitening(V: Float[Array, "F p1"]) -> Float[Array, "F p1"]:
    """`U` with `T = I - V U^T` a root of `(I + V V^T)^{-1}`, `T T^T`.

    With `L L^T = I + V^T V` it is `U = V (I + L)^{-T} L^{-1}`: it needs a Cholesky factor of size p+1 and has a
    gradient everywhere.
    """
    eye = jnp.eye(V.shape[1], dtype=V.dtype)
    L = small_root(eye + V.T @ V)
    return narrow_product(V, small_inverse(eye + L).T @ small_inverse(L))


def _less(left: Float[Array, "F p1"], right: Float[Array, "F p1"], rows: Float[Array, "F c"]) -> Float[Array, "F c"]:
    """`(I - left right^T) rows`."""
    return rows - left @ (right.T @ rows)


@precise
def _covariance(features: HarmonicFourier, system: LinearSystem) -> Float[Array, "F F"]:
    scale, V = _structure(features, system, system.decay.dtype)
    scale = _twofold(scale)
    return (jnp.eye(V.shape[0], dtype=V.dtype) + V @ V.T) / (scale[:, None] * scale[None, :])


def _structure(
    features: HarmonicFourier, system: LinearSystem, dtype: jnp.dtype
) -> tuple[Float[Array, " M_plus_1"], Float[Array, "F p1"]]:
    """`D^{-1/2}` by frequency, and `V = D^{-1/2} X P_u^{-1/2}`, so that `K_vv = D^{1/2} (I + V V^T) D^{1/2}`."""
    a, b = (end.astype(dtype) for end in features.interval)
    z = _frequencies(features.num_frequencies, b - a)
    twice = jnp.where(z == 0, 1.0, 2.0).astype(dtype)
    scale = system.spectral_amplitude(z) * jnp.sqrt(twice / (b - a))
    # sqrt(S(z)) |1 + jz/lambda|^(p+1) = noise_scale: divide the powers of z by their growth before they overflow.
    p1 = system.degree + 1
    modulus = jnp.sqrt(1 + (z / system.decay) ** 2)
    direction = imaginary(z / system.decay / modulus)
    X = jnp.stack([_split(direction**i) * _twofold(modulus ** (i - p1)) for i in range(p1)], axis=1)
    X = X * _twofold(system.noise_scale * jnp.sqrt(twice / (b - a)))[:, None]
    inverse_root = np.linalg.inv(force_constants(system.degree).derivative_root)
    return scale, narrow_product(X, jnp.asarray(inverse_root.T, dtype)) / system.scale


class _Parts(NamedTuple):
    """`Cov[v, output(t)]` = waves + weights @ basis: one F x N matrix of cosines; all else are narrow matrices."""

    size: Float[Array, " M_plus_1"]  # of `H(jz)`, and its phase
    phase: Float[Array, " M_plus_1"]
    high: Float[Array, " N"]  # (t - a) / (b - a) as a sum
    low: Float[Array, " N"]
    within: Float[Array, " N"]
    weights: Float[Array, "F d"]
    basis: Float[Array, "d N"]

    @property
    def gain(self) -> Complex[Array, " M_plus_1"]:
        """`H(jz)`."""
        return jax.lax.complex(*phasors(self.size, self.phase))

    def waves(self) -> Float[Array, "F N"]:
        """The constant, cosines, sines."""
        cosine, sine = oscillations(1, self.size[1:], self.phase[1:], self.high, self.low, self.within)
        return jnp.concatenate([(self.size[0] * self.within)[None], cosine, sine])


def _parts(
    features: HarmonicFourier, system: LinearSystem, t: Float[Array, " N"], scale: Float[Array, " M_plus_1"]
) -> _Parts:
    r"""Each frequency times its `scale`. In complex form, `e^{jz r}` with the cosine feature as real and the sine
    feature as imaginary part:

        t < a        e^{-x} sum_k x^k/k! sum_{i>=k} (1 - jz/lambda)^i h_{i-k},   x = lambda (a - t)
        a <= t <= b  H(jz) e^{jz(t-a)} - C e^{F(t-a)} T(z),    T = (1 - jz/lambda)^{p+1} (jz - F)^{-1} R^{p+1} g
        t > b        C e^{F(t-b)} (jz - F)^{-1} g - C e^{F(t-a)} T(z) + the filter's answer to the force beyond b
    """
    a, b = (end.astype(t.dtype) for end in features.interval)
    p, regions = system.degree, Regions(t, a, b)
    z = _frequencies(features.num_frequencies, b - a)
    amplitude, phase = system.frequency_response(z)
    high, low = position(regions.inside, a, b)
    backward = 1 - imaginary(z / system.decay)
    memory = system.output_memory.astype(backward.dtype)
    before = jnp.stack([sum(backward**i * memory[i - k] for i in range(k, p + 1)) for k in range(p + 1)])
    forward = jnp.conj(backward)
    beyond = jnp.stack([forward**i for i in range(p + 1)])
    if system.order:
        steady = system.resolvent(imaginary(z), system.push)
        transient = (backward ** (p + 1))[None] * system.resolvent(imaginary(z), system.residual_push)
    else:
        steady = transient = jnp.zeros((0, z.size), backward.dtype)
    start, end = system.motion(regions.distances).split(t.size)
    basis = jnp.concatenate(
        [
            regions.before[None] * start.powers,
            regions.since_start[None] * system.output_after(start)[p + 1 :],
            regions.beyond[None] * system.output_after(end),
        ]
    )
    weights = jnp.concatenate([before, -transient, beyond, steady])
    weights = (_split(weights) * _twofold(scale)[None]).T
    return _Parts(scale * amplitude, phase, high, low, regions.within, weights, basis)

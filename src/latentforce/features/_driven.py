"""Driven Fourier features: the noise that drives the force, expanded in cosines, and the state at the left end."""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Complex, Float

from .. import _checks
from .._checks import Numbers
from .._linalg import narrow_product, precise
from .._parameters import CONSTANT, parameter
from ..dynamics._joint import outputs_before, shared_state
from ..dynamics._process import Process
from ..dynamics._responses import Motion
from ..dynamics._system import LinearSystem
from ._base import AbstractFeatures, system_and_times
from ._phases import oscillations, phasors, position
from ._polynomials import Expansion
from ._regions import Regions


class DrivenFourier(AbstractFeatures):
    r"""Complete, white by construction: 2M+1 cosine modes of the driving noise on `[a, b]` and the state at `a`.

    On `[a, b]`, `f(t) = C e^{A(t-a)} s(a) + ∫_a^t C e^{A(t-s)} B w(s) ds`. The state `s(a)` is kept whole (p+1+order
    features) and the noise `w` is expanded in the orthonormal cosines of `z_k = pi k/(b-a)`, k = 0 .. 2M, whose
    coefficients are independent standard normals: nothing to whiten. As M grows the features explain all of the prior
    on `[a, b]`, right up to the ends, so the interval may be the data's own range.
    Order: the modes, then the state; `F = 2 M + 1 + p + 1 + order`.

    **Arguments:** `num_frequencies`: M, at least 1. `interval`: `(a, b)` with `a < b`.

    !!! example

        >>> import jax.numpy as jnp, latentforce as lf
        >>> process = lf.Process(lf.Matern(nu=1.5, lengthscale=1.0), lf.FirstOrder(alpha=1.0, beta=0.1))
        >>> features = lf.DrivenFourier(20, interval=(0.0, 3.0))
        >>> t = jnp.linspace(0.0, 3.0, 7)
        >>> features.whitened(process, t).shape
        (7, 44)
        >>> bool(jnp.max(features.residual_variance(process, t)) < 1e-4 * process.variance())
        True
    """

    num_frequencies: int = eqx.field(static=True)
    interval: tuple[Float[Array, ""], Float[Array, ""]] = parameter(CONSTANT)

    def __init__(self, num_frequencies: int, interval: tuple[Numbers, Numbers]):
        self.num_frequencies = _checks.count("num_frequencies", num_frequencies)
        self.interval = _checks.interval("interval", interval)

    def num_features(self, process: Process) -> int:
        system = process.system(process.dtype())
        return 2 * self.num_frequencies + 1 + system.degree + 1 + system.order

    def covariance(self, process: Process) -> Float[Array, "F F"]:
        """The identity (F, F): the features are white by construction."""
        return jnp.eye(self.num_features(process), dtype=process.dtype(*self.interval))

    def cross_covariance(self, process: Process, t: Numbers) -> Float[Array, "N F"]:
        """`Cov[f(t), v]` (N, F), the same as `whitened`."""
        return self.whitened(process, t)

    def whitened(self, process: Process, t: Numbers) -> Float[Array, "N F"]:
        """`Cov[f(t), e]` (N, F): O(N F (p+1+order))."""
        system, t = system_and_times(process, t, self.interval)
        return _features(self, system, t)

    def expansion(self, system: LinearSystem, t: Float[Array, " N"]) -> Expansion:
        """The features `whitened` as waves and what is added to them."""
        parts = _parts(self, system, t)
        before = parts.regions.before[None] * system.output_before(parts.start)
        eye = jnp.eye(before.shape[0], dtype=t.dtype)
        of_modes = jnp.concatenate([-parts.state, parts.state_at_end, jnp.zeros_like(parts.state)])
        of_state = jnp.concatenate([system.root, jnp.zeros_like(eye), eye])
        gain, num_modes = parts.gain[:, None], parts.size.size
        nothing = jnp.zeros((num_modes + before.shape[0], 0), t.dtype)
        return Expansion(
            left=nothing,
            right=nothing,
            modes=lambda rows: gain * rows[:num_modes].astype(gain.dtype),
            num_modes=num_modes,
            high=parts.high,
            low=parts.low,
            within=parts.regions.within,
            weights=jnp.concatenate([of_modes, of_state], axis=1).T,
            basis=jnp.concatenate([parts.since_start, parts.since_end, before]),
            meeting=slice(before.shape[0]),
        )

    def force_whitened(self, process: Process, t: Numbers) -> Float[Array, "N F"]:
        """`Cov[u(t), e]` (N, F): the same noise and state seen from the force."""
        system, t = system_and_times(process, t, self.interval)
        return _features(self, system.observing_force(), t)

    def shared(self, processes: Process, t: Numbers) -> Float[Array, "R N F"]:
        """`Cov[f_r(t), e]` (R, N, F) for R outputs of one force: the modes, then the state at `a` of the force and of
        all R filters together, so `F = 2 M + 1 + p + 1 + R order`.
        """
        return _shared_features(self, *self._systems_and_times(processes, t))

    def force_shared(self, processes: Process, t: Numbers) -> Float[Array, "N F"]:
        """`Cov[u(t), e]` (N, F) for the `e` of `shared`."""
        systems, times = self._systems_and_times(processes, t)
        return _shared_features(self, systems.observing_force(), times)[0]

    def _systems_and_times(self, processes: Process, t: Numbers) -> tuple[LinearSystem, Float[Array, " N"]]:
        times = _checks.points("t", t)
        times = times.astype(processes.dtype(times, *self.interval))
        return jax.vmap(lambda process: process.system(times.dtype))(processes), times


@precise
def _features(features: DrivenFourier, system: LinearSystem, t: Float[Array, " N"]) -> Float[Array, "N F"]:
    """Modes and state."""
    parts = _parts(features, system, t)
    state_at_a = system.root.T @ parts.since_start + parts.regions.before[None] * system.output_before(parts.start)
    return jnp.concatenate([parts.modes(), state_at_a]).T


@precise
def _shared_features(features: DrivenFourier, systems: LinearSystem, t: Float[Array, " N"]) -> Float[Array, "R N F"]:
    """Modes and joint state."""
    parts = jax.vmap(lambda system: _parts(features, system, t))(systems)
    state, distances = shared_state(systems), parts.regions.distances[0, : t.size]
    before = parts.regions.before[:, None] * outputs_before(systems, state, distances)
    state_at_a = jnp.swapaxes(state.root, 1, 2) @ parts.since_start + before
    return jnp.swapaxes(jnp.concatenate([jax.vmap(_Parts.modes)(parts), state_at_a], axis=1), 1, 2)


class _Parts(NamedTuple):
    r"""What the features are made of, in three regions. With the phasor `s_k` (the state's steady motion under the
    noise `e^{j z_k r}`) the modes of the noise and the state's features are

    t < a        0                                                      and  Cov[e, f(t)] of the state at a
    a <= t <= b  Re[C s_k e^{j z_k (t-a)}] - C e^{A(t-a)} Re[s_k]             and  C e^{A(t-a)} P^{1/2}
    t > b        C e^{A(t-b)} Re[s_k] (-1)^k - C e^{A(t-a)} Re[s_k]           and  the same
    """

    size: Float[Array, " K"]  # of `C s_k`, and its phase
    phase: Float[Array, " K"]
    high: Float[Array, " N"]  # (t - a) / 2 (b - a) as a sum
    low: Float[Array, " N"]
    state: Float[Array, "d K"]  # Re[s_k], and what is left of it at b
    state_at_end: Float[Array, "d K"]
    since_start: Float[Array, "d N"]  # C e^{A(t-a)}, and from b
    since_end: Float[Array, "d N"]
    start: Motion
    regions: Regions

    @property
    def gain(self) -> Complex[Array, " K"]:
        """`C s_k`."""
        return jax.lax.complex(*phasors(self.size, self.phase))

    def modes(self) -> Float[Array, "K N"]:
        """The modes of the noise."""
        steady, _ = oscillations(0, self.size, self.phase, self.high, self.low, self.regions.within)
        weights = jnp.concatenate([self.state, self.state_at_end])
        return steady + narrow_product(weights.T, jnp.concatenate([-self.since_start, self.since_end]))


def _parts(features: DrivenFourier, system: LinearSystem, t: Float[Array, " N"]) -> _Parts:
    a, b = (end.astype(t.dtype) for end in features.interval)
    regions = Regions(t, a, b)
    k = jnp.arange(2 * features.num_frequencies + 1, dtype=t.dtype)
    z = k * (math.pi / (b - a))
    norm = jnp.sqrt(jnp.where(k == 0, 1.0, 2.0).astype(t.dtype) / (b - a))
    amplitude, phase = system.frequency_response(z)
    high, low = position(regions.inside, a, b)
    start, end = system.motion(regions.distances).split(t.size)
    state = (norm * system.noise_scale)[None] * system.phasors(z).real
    return _Parts(
        size=norm * system.spectral_amplitude(z) * amplitude,
        phase=phase - (system.degree + 1) * jnp.arctan(z / system.decay),
        high=high / 2,
        low=low / 2,
        state=state,
        state_at_end=jnp.where(k % 2 == 0, 1.0, -1.0).astype(t.dtype)[None] * state,
        since_start=regions.since_start[None] * system.output_after(start),
        since_end=regions.beyond[None] * system.output_after(end),
        start=start,
        regions=regions,
    )

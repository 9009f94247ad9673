"""Derivatives by every parameter and by time against the oracle's, also where the paper's formulas have none."""

import functools

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest

import cases
import latentforce as lf
import oracles
from cases import INTERVAL

LARGE, SMALL = lf.HarmonicFourier(400, INTERVAL), lf.HarmonicFourier(3, INTERVAL)
DRIVEN = lf.DrivenFourier(400, INTERVAL)
HARMONICS, MODES = (1, 400), (0, 3, 800)
ORIGIN = 1.0

RESONANT = [f"first-order {name}" for name in ("0.001", "1+0", "1+1e-08", "1000", "1e+06")]
DAMPED = ["under-damped", "over-damped", "critical", "critical +1e-9", "critical at lambda"]
SINGULAR = [
    *[(nu, name) for nu in (0.5, 2.5) for name in ("identity", *RESONANT)],
    *[(nu, "first-order 1+0") for nu in (1.5, 3.5)],
    *[(nu, name) for nu in (0.5, 2.5) for name in DAMPED],
    *[(1.5, name) for name in ("repeated pole", "triple pole at lambda")],
]
STEP = mp.mpf(10) ** -20  # of 60 digits: differences to one side are right to 20
TIMES = np.resize(cases.INNER_TIMES, cases.TIMES.size)  # as many as everywhere: the same programs


def parameters(process):
    return jnp.concatenate([process.force.lengthscale[None], process.force.variance[None], process.filter.coefficients])


def rebuild(nu, kind, theta):
    """The process with the numbers `theta`, built as a user would build it."""
    coefficients = theta[2:]
    kinds = {
        lf.Identity: lambda: lf.Identity(),
        lf.FirstOrder: lambda: lf.FirstOrder(alpha=coefficients[0], beta=coefficients[1]),
        lf.SecondOrder: lambda: lf.SecondOrder(
            stiffness=coefficients[0], damping=coefficients[1], mass=coefficients[2]
        ),
        lf.LinearODE: lambda: lf.LinearODE(coefficients),
    }
    return lf.Process(lf.Matern(nu, theta[0], theta[1]), kinds[kind]())


def library(process, t):
    """Everything the library computes, in blocks of shape (N, .)."""
    origin = jnp.full(1, ORIGIN, t.dtype)
    waves = LARGE.cross_covariance(process, t)
    driven, explained = DRIVEN.whitened(process, t), SMALL.whitened(process, t)
    state = driven[:, 2 * DRIVEN.num_frequencies + 1 :]
    return {
        "covariance": process.covariance(t, origin),
        "cross-covariance": process.cross_covariance(t, origin),
        "harmonic": waves[:, jnp.asarray([*HARMONICS, *[400 + m for m in HARMONICS]])],
        "driven modes": driven[:, jnp.asarray(MODES)],
        "driven state": state @ state.T,
        "explained by harmonics": explained @ explained.T,
    }


def exact(p, theta, t):
    """The same from the oracle."""
    system, (a, b) = oracles.System(p, theta[0], theta[1], theta[2:]), INTERVAL
    z = [2 * mp.pi * m / (b - a) for m in range(max(HARMONICS) + 1)]
    waves = [[system.response(s, z[m], a, b) for m in HARMONICS] for s in t]
    low = [[system.response(s, z[m], a, b) for m in range(4)] for s in t]
    raw = mp.matrix([[w.real for w in row] + [w.imag for w in row[1:]] for row in low])
    state = mp.matrix([system.driven_state(s, a) for s in t])
    return {
        "covariance": mp.matrix([[system.covariance(s, ORIGIN)] for s in t]),
        "cross-covariance": mp.matrix([[system.covariance(s, ORIGIN, (system.C, system.U))] for s in t]),
        "harmonic": mp.matrix([[w.real for w in row] + [w.imag for w in row] for row in waves]),
        "driven modes": mp.matrix([system.driven_modes(s, MODES, a, b) for s in t]),
        "driven state": state * state.T,
        "explained by harmonics": raw * mp.inverse(system.harmonic_prior(3, a, b)) * raw.T,
    }


@functools.partial(jax.jit, static_argnames=("nu", "kind"))
def directional(nu, kind, theta, t, theta_direction, t_direction):
    """Values and their derivatives along a direction; one compilation serves every filter of a kind."""
    return jax.jvp(lambda x, s: library(rebuild(nu, kind, x), s), (theta, t), (theta_direction, t_direction))


@pytest.mark.parametrize("nu, name", SINGULAR)
def test_derivatives(nu, name, x64):
    process = cases.process(nu, name)
    kind, theta, p = type(process.filter), parameters(process), process.force.degree
    numbers, times = [mp.mpf(float(x)) for x in theta], [mp.mpf(s) for s in cases.INNER_TIMES]
    here, t = exact(p, numbers, times), jnp.asarray(TIMES)
    for i in range(2 if kind is lf.Identity else theta.size):
        unit = np.eye(theta.size)[i]
        got = directional(nu, kind, theta, t, jnp.asarray(unit), jnp.zeros_like(t))
        moved = [x + STEP * numbers[i] * e for x, e in zip(numbers, unit, strict=True)]
        compare(got, exact(p, moved, times), here, float(theta[i]))
    got = directional(nu, kind, theta, t, jnp.zeros_like(theta), jnp.ones_like(t))
    compare(got, exact(p, numbers, [s + STEP for s in times]), here, 1.0)


def compare(got, there, here, size):
    """Differences of the oracle, to 1e-6 of the derivative's natural scale (at least value over parameter)."""
    for key, (value, slope) in {key: (got[0][key], got[1][key]) for key in here}.items():
        want = oracles.to_float(((there[key] - here[key]) / (STEP * size)).tolist())
        scale = max(np.max(np.abs(want)), np.max(np.abs(value)) / size)
        error = np.max(np.abs(slope[: len(want), : want.shape[1]] - want)) / scale
        assert error <= 1e-6, f"{key}: error {error:.1e} of the scale"


@functools.partial(jax.jit, static_argnames=("nu", "kind"))
def pulled_back(nu, kind, theta, t):
    """Reverse mode, through everything at once."""
    return jax.grad(
        lambda x, s: sum(jnp.sum(jnp.sin(block)) for block in library(rebuild(nu, kind, x), s).values()), argnums=(0, 1)
    )(theta, t)


FINITE = [("float64", name) for name in cases.SINGLE]
FINITE += [("float32", name) for name in cases.SINGLE if "pole" not in name]  # third order: one precision will do


@pytest.mark.parametrize("dtype, name", FINITE, indirect=["dtype"])
def test_gradients_are_finite_everywhere(name, dtype):
    """On the whole grid, at the seams, and 100 length-scales out; reverse mode."""
    nu = 2.5 if dtype == "float64" else 0.5
    process = cases.process(nu, name)
    by_theta, by_t = pulled_back(nu, type(process.filter), parameters(process), jnp.asarray(cases.TIMES))
    assert by_theta.dtype == by_t.dtype == dtype
    assert np.all(np.isfinite(by_theta)) and np.all(np.isfinite(by_t))


@pytest.mark.parametrize("name", ["first-order 1+0", "critical"])
def test_reverse_mode_agrees_with_forward_mode(name, x64):
    nu, process = 2.5, cases.process(2.5, name)
    kind, theta, t = type(process.filter), parameters(process), jnp.asarray(TIMES)
    by_theta, by_t = pulled_back(nu, kind, theta, t)
    for direction in (*np.eye(theta.size), None):
        along = jnp.zeros_like(theta) if direction is None else jnp.asarray(direction)
        moving = jnp.ones_like(t) if direction is None else jnp.zeros_like(t)
        values, slopes = directional(nu, kind, theta, t, along, moving)
        forward = sum(float(jnp.sum(jnp.cos(values[key]) * slopes[key])) for key in values)
        np.testing.assert_allclose(by_theta @ along + by_t @ moving, forward, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("family", [lf.HarmonicFourier, lf.DrivenFourier])
def test_derivatives_by_the_interval(family, x64):
    """The ends of the interval are parameters too: central differences."""
    process, t = cases.process(1.5, "first-order 10"), jnp.asarray(cases.INNER_TIMES)

    def explained(ends):
        A = family(5, (ends[0], ends[1])).whitened(process, t)
        return A @ A.T

    ends, h = jnp.asarray(INTERVAL), 1e-5
    slopes = jax.jacfwd(explained)(ends)
    for i in range(2):
        step = jnp.asarray(np.eye(2)[i] * h)
        want = (explained(ends + step) - explained(ends - step)) / (2 * h)
        np.testing.assert_allclose(slopes[..., i], want, atol=1e-7)

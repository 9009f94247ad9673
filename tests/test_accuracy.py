"""Every covariance, cross-covariance and feature against the oracle, on the whole grid, in both precisions."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest

import cases
import latentforce as lf
import oracles
from cases import INTERVAL, TIMES

HARMONIC, DRIVEN = lf.HarmonicFourier(400, INTERVAL), lf.DrivenFourier(400, INTERVAL)
FEW = lf.HarmonicFourier(3, INTERVAL)
HARMONICS = [0, 1, 37, 400]
MODES = [0, 1, 2, 75, 800]


@jax.jit
def everything(process, t):
    """All that is judged below, in one compiled program for each order of force and filter."""
    return {
        "covariance": process.covariance(t, t),
        "force_covariance": process.force_covariance(t, t),
        "cross_covariance": process.cross_covariance(t, t),
        "variance": process.variance(),
        "projections": HARMONIC.cross_covariance(process, t),
        "harmonic": (HARMONIC.whitened(process, t), HARMONIC.force_whitened(process, t)),
        "few harmonic": (FEW.whitened(process, t), FEW.force_whitened(process, t)),
        "driven": (DRIVEN.whitened(process, t), DRIVEN.force_whitened(process, t)),
        "state_space": process.state_space(),
    }


@pytest.fixture(scope="module", params=cases.GRID, ids=lambda case: "-".join(map(str, case)))
def case(request):
    """A process of the grid, what the library says of it, and the oracle for it."""
    dtype, nu, name = request.param
    with jax.enable_x64(dtype == "float64"):
        process = cases.process(nu, name)
        got = jax.tree.map(np.asarray, everything(process, jnp.asarray(TIMES)))
        return SimpleNamespace(dtype=dtype, got=got, system=cases.oracle(process))


def test_covariances(case):
    got, system, middle = case.got, case.system, 5
    f, u = cases.deviations(system)
    second = [("covariance", system.C, system.C), ("force_covariance", system.U, system.U)]
    for key, row, column in [*second, ("cross_covariance", system.C, system.U)]:
        scale = (f if row is system.C else u) * (f if column is system.C else u)
        later = [[system.covariance(s, TIMES[middle], (row, column)) / scale for s in TIMES]]
        cases.assert_close(got[key][:, middle] / float(scale), oracles.to_float(later)[0], case.dtype)
        earlier = [[system.covariance(TIMES[middle], s, (row, column)) / scale for s in TIMES]]
        cases.assert_close(got[key][middle] / float(scale), oracles.to_float(earlier)[0], case.dtype)
    cases.assert_close(got["variance"] / float(f**2), 1.0, case.dtype)


def test_harmonic_features(case):
    (a, b), M = INTERVAL, HARMONIC.num_frequencies
    frequencies = [2 * mp.pi * m / (b - a) for m in HARMONICS]
    want = [[case.system.response(t, z, a, b) for z in frequencies] for t in TIMES]
    scale = np.array([max(float(abs(row[i])) for row in want) for i in range(len(HARMONICS))])
    cosines = oracles.to_float([[v.real for v in row] for row in want])
    sines = oracles.to_float([[v.imag for v in row[1:]] for row in want])
    got = case.got["projections"]
    cases.assert_close(got[:, HARMONICS], cosines, case.dtype, scale)
    cases.assert_close(got[:, [M + m for m in HARMONICS[1:]]], sines, case.dtype, scale[1:])


def test_driven_features(case):
    system, start = case.system, 2 * DRIVEN.num_frequencies + 1
    states = []
    for got, row, scale in zip(case.got["driven"], (system.C, system.U), cases.deviations(system), strict=True):
        want = oracles.to_float([[v / scale for v in system.driven_modes(s, MODES, *INTERVAL, row)] for s in TIMES])
        cases.assert_close(got[:, MODES] / float(scale), want, case.dtype)
        exact = mp.matrix([[v / scale for v in system.driven_state(s, INTERVAL[0], row)] for s in TIMES])
        states.append((got[:, start:].astype(np.float64) / float(scale), exact))
    # The whitened state is unique up to a rotation: compare what it says of f and u at all pairs of times.
    for got_row, want_row in states:
        for got_column, want_column in states:
            want = oracles.to_float((want_row * want_column.T).tolist())
            cases.assert_close((got_row @ got_column.T).astype(case.dtype), want, case.dtype)


@pytest.mark.parametrize("family", ["harmonic", "driven"])
def test_what_is_left_is_positive_semi_definite(case, family):
    """`[K_ff K_fu; K_uf K_uu] - [A; A_u] [A; A_u]^T`, jointly for output and force."""
    got = {key: jax.tree.map(lambda x: x.astype(np.float64), value) for key, value in case.got.items()}
    prior = np.block(
        [[got["covariance"], got["cross_covariance"]], [got["cross_covariance"].T, got["force_covariance"]]]
    )
    A, scale = np.concatenate(got[family]), np.sqrt(np.diag(prior))
    left = (prior - A @ A.T) / np.outer(scale, scale)
    bound = {"float64": 1e-11, "float32": 2e-4}[case.dtype]
    assert np.linalg.eigvalsh((left + left.T) / 2)[0] > -bound


def test_state_space(case):
    system, got = case.system, case.got["state_space"]
    P = oracles.to_float(system.P.tolist())
    cases.assert_close(got.P, P, case.dtype, np.sqrt(np.outer(np.diag(P), np.diag(P))))
    for mine, theirs in ((got.A, system.A), (got.B[:, None], system.B), (got.C[None], system.C)):
        want = oracles.to_float(theirs.tolist())
        cases.assert_close(mine, want, case.dtype, np.maximum(np.abs(want), 1e-30))
    cases.assert_close(got.q / float(system.q), 1.0, case.dtype)


WHITENING = [  # with 3 frequencies, and with all
    *[
        (nu, name, FEW.num_frequencies)
        for nu in cases.ORDERS
        for name in ("identity", "first-order 1+0", "under-damped", "repeated pole")
    ],
    (2.5, "first-order 10", HARMONIC.num_frequencies),
]


@pytest.mark.parametrize(
    "dtype, nu, name, size",
    [("float64", *case) for case in WHITENING] + [("float32", *case) for case in WHITENING if case[0] == 2.5],
    indirect=["dtype"],
)
def test_harmonic_whitening(nu, name, size, dtype):
    """`A A^T = K_fv K_vv^{-1} K_vf`, with `K_vv^{-1}` by the Woodbury identity in high precision."""
    process = cases.process(nu, name)
    system, chosen = cases.oracle(process), [1, 3, 5, 9]
    whitened = everything(process, jnp.asarray(TIMES))["few harmonic" if size == FEW.num_frequencies else "harmonic"]
    times = TIMES[chosen]
    a, b = INTERVAL
    D, X, inner = _woodbury(system, size, b - a)
    f, u = cases.deviations(system)
    force = cases.oracle(lf.Process(process.force, lf.Identity()))
    rows = {}
    for key, source, scale in (("f", system, f), ("u", force, u)):
        waves = [[source.response(t, 2 * mp.pi * m / (b - a), a, b) / scale for m in range(size + 1)] for t in times]
        rows[key] = [[w.real for w in row] + [w.imag for w in row[1:]] for row in waves]
    got = {key: np.asarray(w)[chosen] / float(s) for key, w, s in zip("fu", whitened, (f, u), strict=True)}
    for left in rows:
        for right in rows:
            want = [
                [
                    mp.fsum(p * q / d for p, q, d in zip(one, two, D, strict=True))
                    - (mp.matrix([_over(one, X, D)]) * inner * mp.matrix([_over(two, X, D)]).T)[0]
                    for two in rows[right]
                ]
                for one in rows[left]
            ]
            cases.assert_close(got[left] @ got[right].T, oracles.to_float(want), dtype)


def _over(row, X, D):
    return [mp.fsum(r * x / d for r, x, d in zip(row, column, D, strict=True)) for column in X]


def _woodbury(system, M, R):
    z = [2 * mp.pi * m / mp.mpf(R) for m in range(M + 1)]
    energy = [abs((system.decay + 1j * w) ** (system.p + 1)) ** 2 * mp.mpf(R) / system.q for w in z]
    D = [energy[0], *[e / 2 for e in energy[1:]], *[e / 2 for e in energy[1:]]]
    powers = [[(1j * w) ** i for w in z] for i in range(system.p + 1)]
    X = [[w.real for w in row] + [w.imag for w in row[1:]] for row in powers]
    P = system.P[: system.p + 1, : system.p + 1]
    gram = mp.matrix([_over(column, X, D) for column in X])
    return D, X, mp.inverse(P + gram)


@pytest.mark.parametrize("nu", cases.ORDERS)
def test_harmonic_covariance(nu, dtype):
    process = cases.process(nu, "first-order 10")
    got = lf.HarmonicFourier(6, INTERVAL).covariance(process)
    want = oracles.to_float(cases.oracle(process).harmonic_prior(6, *INTERVAL).tolist())
    scale = np.sqrt(np.outer(np.diag(want), np.diag(want)))
    cases.assert_close(got, want, dtype, scale)

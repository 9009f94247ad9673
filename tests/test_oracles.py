"""The oracles themselves, against quadrature of the definitions and against the Matérn kernel."""

import functools

import mpmath as mp
import pytest

import oracles

SYSTEMS = {
    "identity": [1],
    "first order": [1.25, 0.5],
    "under-damped": [9, 0.75, 1],
    "repeated pole": [4, 8, 5, 1],
}
A, B = -1.0, 1.5
Z = 3 * 2 * mp.pi / mp.mpf(2.5)  # harmonic on [A, B]


@functools.cache
def system(p, name):
    return oracles.System(p, 0.75, 0.625, SYSTEMS[name])


def green(s, x):
    """The filter's impulse response."""
    return (oracles.expm(s.F * x) * s.g)[0]


def matern(s, r):
    """The half-integer Matérn kernel through the Bessel function."""
    if r == 0:
        return s.variance
    nu, x = s.p + mp.mpf(1) / 2, s.decay * abs(r)
    return s.variance * 2 ** (1 - nu) / mp.gamma(nu) * x**nu * mp.besselk(nu, x)


def integral(function, points):
    """By Gauss's rule in each piece, where all that is integrated is smooth."""
    with mp.workdps(15):
        value, error = mp.quad(function, points, method="gauss-legendre", error=True)
    assert error < 1e-11
    return value


@pytest.mark.parametrize("p", [0, 1, 2, 3])
def test_force(p):
    s = system(p, "identity")
    for r in (0, 0.1, 1.0, 4.0):
        assert abs(s.covariance(r, 0) - matern(s, r)) < 1e-30


@pytest.mark.parametrize("name", list(SYSTEMS)[1:])
@pytest.mark.parametrize("p", [0, 2])
def test_cross_covariance_is_the_filtered_kernel(p, name):
    """`Cov[f(t), u(0)] = ∫ G(x) k(t - x) dx`; and filtering that once more gives `Cov[f, f]`."""
    s = system(p, name)
    for t in (-0.5, 0.75):
        points = sorted({0, max(t, 0), 2, 6, 15, 40})
        want = integral(lambda x, t=t: green(s, x) * matern(s, t - x), points)
        assert abs(s.covariance(t, 0, (s.C, s.U)) - want) < 1e-9
    want = integral(lambda x: green(s, x) * s.covariance(0, 0.75 - x, (s.C, s.U)), [0, 0.75, 2, 6, 15, 40])
    assert abs(s.covariance(0.75, 0) - want) < 1e-9


@pytest.mark.parametrize("p", [0, 1, 2, 3])
def test_waves_come_from_the_inner_product(p):
    """`<phi, k(., tau)>_H = (1/q) ∫ (L phi)(L k) + s_phi(a)^T P^{-1} s_k(a)`, `L = (D + lambda)^(p+1)`."""
    s = system(p, "identity")
    start = mp.matrix([(1j * Z) ** i for i in range(p + 1)])
    lowered_wave = (s.decay + 1j * Z) ** (p + 1)
    for tau in (A - 0.4, 0.3, B + 0.4):
        moved = s.motion(mp.mpf(abs(tau - A))) * s.P
        kernel_start = moved[:, 0] if tau < A else moved[0, :].T  # Cov[s(a), u(tau)]
        boundary = (start.T * mp.inverse(s.P) * kernel_start)[0]
        # L k(., tau) is zero right of tau, where k solves the equation; left of it the derivatives are those of k.
        points = [A, min(tau, B)] if tau > A else [A, A]
        inner = integral(lambda x, tau=tau: lowered_wave * mp.expj(Z * (x - A)) * _lowered(s, x, tau), points)
        assert abs(boundary + inner / s.q - s.wave(tau, Z, A, B)) < 1e-9


def _lowered(s, x, tau):
    """`(d/dx + lambda)^(p+1) k(x, tau)`, x < tau, where k is `e^{-y}` times a polynomial in `y = lambda (tau - x)`."""
    c = [mp.factorial(s.p) * mp.factorial(2 * s.p - k) * 2**k for k in range(s.p + 1)]
    c = [v / (mp.factorial(2 * s.p) * mp.factorial(s.p - k) * mp.factorial(k)) for k, v in enumerate(c)]
    for _ in range(s.p + 1):  # (d/dx + lambda) e^{-y} y^k = lambda e^{-y} (2 y^k - k y^(k-1))
        c = [2 * c[k] - (k + 1) * c[k + 1] for k in range(s.p)] + [2 * c[s.p]]
    y = s.decay * (tau - x)
    return s.variance * s.decay ** (s.p + 1) * mp.exp(-y) * sum(v * y**k for k, v in enumerate(c))


@pytest.mark.parametrize("name", list(SYSTEMS)[1:])
@pytest.mark.parametrize("p", [0, 3])
def test_response_is_the_filtered_wave(p, name):
    s = system(p, name)
    for t in (-1.5, 0.25, 2.0):
        points = sorted({0, max(t - B, 0), max(t - A, 0), t + 4, t + 10, t + 40})
        want = integral(lambda x, t=t: green(s, x) * s.wave(t - x, Z, A, B), points)
        assert abs(s.response(t, Z, A, B) - want) < 1e-8


@pytest.mark.parametrize("p", [0, 2])
def test_driven_modes_are_integrals_of_noise(p):
    s = system(p, "under-damped")
    for t in (0.5, 2.0):
        for k in (0, 3):
            z, R = mp.pi * k / (B - A), mp.mpf(B) - A
            norm = mp.sqrt((1 if k == 0 else 2) * s.q / R)
            want = integral(
                lambda x, t=t, z=z: (s.C * oracles.expm(s.A * (t - x)) * s.B)[0] * mp.cos(z * (x - A)), [A, min(t, B)]
            )
            assert abs(s.driven_modes(t, [k], A, B)[0] - norm * want) < 1e-10

"""Slow, independent answers in 60-digit arithmetic, from the definitions and in plain (unscaled) coordinates.

The library never divides by a difference of poles; here nothing needs care, digits are thrown at it instead. Nothing is
imported from the package. Rational functions of matrices and `mpmath.expm` stand for the integrals; `test_oracles.py`
holds them against quadrature of the definitions.
"""

import functools

import gmpy2
import mpmath as mp
import numpy as np

mp.mp.dps = 60


class System:
    """`s' = A s + B w`, `f = C s`: a Matérn force of order p + 1/2 through `sum_k a_k f^(k) = u`."""

    def __init__(self, p, lengthscale, variance, coefficients):
        self.p, self.n = p, len(coefficients) - 1
        self.variance = mp.mpf(variance)
        self.decay = mp.sqrt(2 * p + 1) / mp.mpf(lengthscale)
        a = self.a = [mp.mpf(c) for c in coefficients]
        d = p + 1 + self.n
        self.A, self.B, self.C, self.U = mp.zeros(d), mp.zeros(d, 1), mp.zeros(1, d), mp.zeros(1, d)
        for i in range(p):
            self.A[i, i + 1] = 1
        for i in range(p + 1):
            self.A[p, i] = -mp.binomial(p + 1, i) * self.decay ** (p + 1 - i)
        for j in range(self.n - 1):
            self.A[p + 1 + j, p + 2 + j] = 1
        if self.n:
            self.A[d - 1, 0] = 1 / a[-1]
            for j in range(self.n):
                self.A[d - 1, p + 1 + j] = -a[j] / a[-1]
        self.B[p] = 1
        self.U[0] = 1
        if self.n:
            self.C[p + 1] = 1
        else:
            self.C[0] = 1 / a[0]
        self.q = (
            self.variance * 2 ** (2 * p + 1) * mp.factorial(p) ** 2 / mp.factorial(2 * p) * self.decay ** (2 * p + 1)
        )
        self.F = self.A[p + 1 :, p + 1 :] if self.n else mp.zeros(0)
        self.g = mp.matrix(self.n, 1)
        if self.n:
            self.g[self.n - 1] = 1 / a[-1]

    @functools.cached_property
    def P(self):
        """Lyapunov: `A P + P A^T + q B B^T = 0`, as a linear system for the upper triangle."""
        d = self.A.rows
        pairs = [(i, j) for i in range(d) for j in range(i, d)]
        index = {pair: k for k, pair in enumerate(pairs)}
        M, rhs = mp.zeros(len(pairs)), mp.zeros(len(pairs), 1)
        for row, (i, j) in enumerate(pairs):
            for k in range(d):
                M[row, index[min(k, j), max(k, j)]] += self.A[i, k]
                M[row, index[min(k, i), max(k, i)]] += self.A[j, k]
            rhs[row] = -self.q * self.B[i] * self.B[j]
        solution = mp.lu_solve(M, rhs)
        P = mp.zeros(d)
        for (i, j), k in index.items():
            P[i, j] = P[j, i] = solution[k]
        return P

    @functools.cached_property
    def root(self):
        return mp.cholesky(self.P)

    @functools.cache  # noqa: B019  (systems are short-lived)
    def motion(self, r):
        """`e^{A r}`."""
        return expm(self.A * r)

    @functools.cache  # noqa: B019
    def steady(self, z):
        """`(jz - A)^{-1} B`, the state's steady motion under the noise `e^{jzt}`."""
        return mp.lu_solve(1j * z * mp.eye(self.A.rows) - self.A, self.B)

    @functools.cache  # noqa: B019
    def filter_steady(self, z):
        """`(jz - F)^{-1} g`, the filter's steady motion under the force `e^{jzt}`."""
        return mp.lu_solve(1j * z * mp.eye(self.n) - self.F, self.g)

    @functools.cached_property
    def moments(self):
        """`∫ x^k/k! e^{(F - lambda) x} g dx = (lambda - F)^{-(k+1)} g`, k = 0 .. p."""
        resolvent = mp.inverse(self.decay * mp.eye(self.n) - self.F)
        moments = [resolvent * self.g]
        for _ in range(self.p):
            moments.append(resolvent * moments[-1])
        return moments

    # --- second moments

    def covariance(self, t1, t2, rows=None):
        """`Cov[y1(t1), y2(t2)]` for rows `(y1, y2)` of C (default: f and f)."""
        first, second = rows or (self.C, self.C)
        r = mp.mpf(t1) - mp.mpf(t2)
        if r >= 0:
            return (first * self.motion(r) * self.P * second.T)[0]
        return (second * self.motion(-r) * self.P * first.T)[0]

    # --- harmonic features

    def wave(self, tau, z, a, b):
        """`h(tau) = <e^{jz(.-a)}, k(., tau)>_H`, left of a, inside, right of b: truncated Taylor series outside."""
        tau, a, b = mp.mpf(tau), mp.mpf(a), mp.mpf(b)
        if a <= tau <= b:
            return mp.expj(z * (tau - a))
        r, growth = (a - tau, self.decay - 1j * z) if tau < a else (tau - b, self.decay + 1j * z)
        return mp.exp(-self.decay * r) * sum((growth * r) ** i / mp.factorial(i) for i in range(self.p + 1))

    def response(self, t, z, a, b):
        """`∫ G(t - tau) h(tau) dtau`, complex: real part the cosine, imaginary part the sine feature."""
        t, a, b = mp.mpf(t), mp.mpf(a), mp.mpf(b)
        if not self.n:
            return self.wave(t, z, a, b) / self.a[0]
        if t < a:
            return self._left(a - t, z)[0]
        if t <= b:
            return self._inside(t - a, z)[0]
        return self._right(t - b, self._inside(b - a, z), z)[0]

    def _left(self, r, z):
        """State at a - r. (1/i!) (r + x)^i e^{-lambda(r + x)} split by the binomial theorem; ∫ x^k/k! e^{(F -
        lambda)x} g dx.
        """
        state = mp.zeros(self.n, 1)
        for i in range(self.p + 1):
            for k in range(i + 1):
                state += (self.decay - 1j * z) ** i * r ** (i - k) / mp.factorial(i - k) * self.moments[k]
        return mp.exp(-self.decay * r) * state

    def _inside(self, r, z):
        start = self._left(mp.mpf(0), z)
        E = self._filter_motion(r)
        steady = self.filter_steady(z)
        return E * start + mp.expj(z * r) * steady - E * steady

    def _filter_motion(self, r):
        return self.motion(r)[self.p + 1 :, self.p + 1 :]

    def _right(self, r, start, z):
        """The force past b moves freely from `(D + lambda)^i u = (lambda + jz)^i`; turn that into derivatives of u."""
        growth = [(self.decay + 1j * z) ** i for i in range(self.p + 1)]
        state = mp.matrix(self.p + 1 + self.n, 1)
        for i in range(self.p + 1):  # D^i = ((D + lambda) - lambda)^i
            state[i] = sum(mp.binomial(i, k) * (-self.decay) ** (i - k) * growth[k] for k in range(i + 1))
        for j in range(self.n):
            state[self.p + 1 + j] = start[j]
        moved = self.motion(r) * state
        return moved[self.p + 1 :, 0]

    def harmonic_prior(self, M, a, b):
        """`K_vv = <phi_i, phi_j>_H`, from the RKHS of the Matérn SDE: (1/q) ∫ (Lg)(Lh) + s_g(a)^T P_u^{-1} s_h(a)."""
        R, p = mp.mpf(b) - mp.mpf(a), self.p
        F = 2 * M + 1
        z = [2 * mp.pi * m / R for m in range(M + 1)]
        K = mp.zeros(F)
        X = mp.zeros(F, p + 1)
        for row in range(F):
            m, sine = (row, False) if row <= M else (row - M, True)
            energy = abs((self.decay + 1j * z[m]) ** (p + 1)) ** 2  # |L e^{jzr}|^2, averaged over whole periods
            K[row, row] = energy * (R if m == 0 else R / 2) / self.q
            for i in range(p + 1):
                value = (1j * z[m]) ** i
                X[row, i] = value.imag if sine else value.real
        return K + X * mp.inverse(self.P[: p + 1, : p + 1]) * X.T

    # --- driven features

    def driven_modes(self, t, K, a, b, row=None):
        """`Cov[y(t), e_k]`, k in K: the system's answer, from rest at a, to the noise sqrt(2 q/R) cos(z_k (s - a))."""
        row = self.C if row is None else row
        t, a, b = mp.mpf(t), mp.mpf(a), mp.mpf(b)
        R = b - a
        if t < a:
            return [mp.mpf(0) for _ in K]
        r = min(t, b) - a
        after = row * self.motion(t - b) if t > b else row
        E = self.motion(r)
        values = []
        for k in K:
            z = mp.pi * k / R
            states = mp.expj(z * r) * self.steady(z) - E * self.steady(z)
            values.append(mp.sqrt((1 if k == 0 else 2) * self.q / R) * (after * states)[0].real)
        return values

    def driven_state(self, t, a, row=None):
        """`Cov[y(t), e]` for `s(a) = L e`, L the Cholesky factor of P."""
        row = self.C if row is None else row
        r = mp.mpf(t) - mp.mpf(a)
        if r >= 0:
            return list(row * self.motion(r) * self.root)
        return list(mp.lu_solve(self.root, self.motion(-r) * self.P * row.T))


def expm(X):
    """Scaling and squaring of the Taylor series, with the digits that the squarings eat added beforehand.

    In MPFR's numbers, since most of the oracle's time would go into products of `mpmath`'s matrices.
    """
    norm = max(mp.mnorm(X, 1), mp.mpf(1))
    squarings = int(mp.ceil(mp.log(norm, 2))) + 8
    digits = mp.mp.dps + squarings + 10
    with mp.workdps(digits), gmpy2.context(precision=mp.mp.prec):
        Y = np.array([[_to_mpfr(x) for x in row] for row in X.tolist()]) / 2**squarings
        total = term = np.array([[gmpy2.mpfr(i == j) for j in range(X.rows)] for i in range(X.rows)])
        k = 0
        while np.max(np.abs(term)) > gmpy2.mpfr(10) ** -digits:
            k += 1
            term = term @ Y / k
            total = total + term
        for _ in range(squarings):
            total = total @ total
        return mp.matrix([[mp.ldexp(*map(int, x.as_mantissa_exp())) for x in row] for row in total])


def _to_mpfr(x):
    return gmpy2.mpfr(int(mp.sign(x)) * x.man) * gmpy2.exp2(x.exp)


def to_float(values):
    return np.array([[float(v) for v in row] for row in values])

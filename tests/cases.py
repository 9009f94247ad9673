"""The grid of processes and times on which everything numerical is tried."""

import math

import mpmath as mp
import numpy as np

import latentforce as lf
import oracles

ORDERS = (0.5, 1.5, 2.5, 3.5)
LENGTHSCALE, VARIANCE = 0.75, 0.625  # exact in both dtypes
INTERVAL = (-1.0, 4.0)
TIMES = np.array([-76.0, -3.0, -1.25, -1.0, -0.75, 1.625, 3.875, 4.0, 4.25, 6.5, 79.0])  # 100 length-scales out
INNER_TIMES = np.array([-3.0, -1.25, -0.75, 1.625, 4.25, 6.5])  # away from the seams: derivatives exist

RESONANCE = [0.0] + [sign * 10.0**-k for k in (2, 4, 6, 8, 10, 12) for sign in (1, -1)]


def decay(nu):
    return math.sqrt(2 * nu) / LENGTHSCALE


def first_order(nu, ratio):
    """gamma = ratio * lambda."""
    return lf.FirstOrder(alpha=1.25, beta=1.25 / (ratio * decay(nu)))


FILTERS = {
    "identity": lambda nu: lf.Identity(),
    **{f"first-order {r:g}": (lambda nu, r=r: first_order(nu, r)) for r in (1e-3, 1e-1, 10.0, 1e3, 1e6)},
    **{f"first-order 1{d:+g}": (lambda nu, d=d: first_order(nu, 1 + d)) for d in RESONANCE},
    "under-damped": lambda nu: lf.SecondOrder(1.0, 0.75, 9.0),
    "over-damped": lambda nu: lf.SecondOrder(1.0, 20.0, 9.0),
    "stiff": lambda nu: lf.SecondOrder(1.0, 2000.0, 9.0),
    "critical": lambda nu: lf.SecondOrder(1.0, 6.0, 9.0),
    "critical +1e-9": lambda nu: lf.SecondOrder(1.0, 6.0 * (1 + 1e-9), 9.0),
    "critical -1e-9": lambda nu: lf.SecondOrder(1.0, 6.0 * (1 - 1e-9), 9.0),
    "critical at lambda": lambda nu: lf.SecondOrder(1.0, 2 * decay(nu), decay(nu) ** 2),
    "repeated pole": lambda nu: lf.LinearODE([4.0, 8.0, 5.0, 1.0]),  # (s + 1)(s + 2)^2
    "triple pole at lambda": lambda nu: lf.LinearODE([decay(nu) ** (3 - k) * math.comb(3, k) for k in range(4)]),
}
# float32 cannot tell 1 + 1e-8 from 1: one such case stands for them all.
SINGLE = [name for name in FILTERS if not name.endswith(("e-08", "e-10", "e-12", "1e-9"))]
GRID = [(dtype, nu, name) for dtype in ("float64", "float32") for nu in ORDERS for name in FILTERS]
GRID = [case for case in GRID if case[0] == "float64" or (case[2] in SINGLE and case[1] in (0.5, 2.5))]
# Near resonance the orders 1/2 and 5/2 see every step, the others the outermost and the innermost.
BETWEEN = ("0.0001", "1e-06", "1e-08", "1e-10")
GRID = [case for case in GRID if case[1] in (0.5, 2.5) or not case[2].endswith(BETWEEN)]


def process(nu, name):
    return lf.Process(lf.Matern(nu, LENGTHSCALE, VARIANCE), FILTERS[name](nu))


def oracle(process):
    """The oracle for exactly the numbers that the process holds (after rounding to its dtype)."""
    force = process.force
    coefficients = [float(a) for a in process.filter.coefficients]
    return oracles.System(force.degree, float(force.lengthscale), float(force.variance), coefficients)


def deviations(system):
    """Prior standard deviations of f and of u: the scales by which errors are judged."""
    return mp.sqrt(system.covariance(0, 0)), mp.sqrt(system.variance)


def tolerance(dtype):
    return {"float64": 1e-9, "float32": 2e-4}[dtype]


def assert_close(got, want, dtype, scale: float | np.ndarray = 1.0):
    """Finite, of the right dtype, and right to the issue's tolerance times `scale`."""
    got = np.asarray(got)
    assert got.dtype == dtype
    assert np.all(np.isfinite(got))
    error = np.max(np.abs(got.astype(np.float64) - want) / scale)
    assert error <= tolerance(dtype), f"error {error:.2e} of the scale"

"""Bad input gets a `ValueError` that names the argument, says what it got and what it wants."""

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

import latentforce as lf

NAN, INF = float("nan"), float("inf")
PROCESS = lf.Process(lf.Matern(1.5, 0.3), lf.FirstOrder(1.0, 0.1))
PLANE = lf.Process(lf.Matern(1.5, np.array([0.3, 0.5])), lf.Identity())


@pytest.fixture(autouse=True)
def as_a_user_runs_it():
    """Without the test run's type checker, which would complain first."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


CONSTRUCTORS = [
    (lambda: lf.Matern(nu=1.5, lengthscale=-0.3), "`lengthscale` must be positive and finite, got -0.3"),
    (lambda: lf.Matern(nu=1.5, lengthscale=0.0), "`lengthscale` must be positive and finite, got 0.0"),
    (lambda: lf.Matern(nu=1.5, lengthscale=NAN), "`lengthscale` must be positive and finite, got nan"),
    (lambda: lf.Matern(nu=1.5, variance=INF), "`variance` must be positive and finite, got inf"),
    (lambda: lf.Matern(nu=1.5, variance=0), "`variance` must be positive and finite, got 0"),
    (lambda: lf.Matern(nu=1.5, lengthscale=np.ones((2, 2))), "`lengthscale` must be a scalar or a 1-D array, got"),
    (lambda: lf.Matern(nu=1.5, lengthscale="long"), "`lengthscale` must be real numbers, got 'long'"),
    (lambda: lf.Matern(nu=1.5, lengthscale=1j), "`lengthscale` must be real numbers"),
    (lambda: lf.Matern(nu=1.0), "`nu` must be a positive half-integer .*, got 1.0"),
    (lambda: lf.Matern(nu=-0.5), "`nu` must be a positive half-integer .*, got -0.5"),
    (lambda: lf.Matern(nu=NAN), "`nu` must be a positive half-integer .*, got nan"),
    (lambda: lf.Matern(nu="3/2"), "`nu` must be a positive half-integer .*, got '3/2'"),
    (lambda: lf.SquaredExponential(lengthscale=-1.0), "`lengthscale` must be positive and finite, got -1.0"),
    (lambda: lf.FirstOrder(alpha=0.0), "`alpha` must be positive and finite, got 0.0"),
    (lambda: lf.FirstOrder(beta=-0.1), "`beta` must be positive and finite, got -0.1"),
    (lambda: lf.FirstOrder(beta=np.ones(2)), r"`beta` must be a scalar, got an array of shape \(2,\)"),
    (lambda: lf.SecondOrder(mass=0.0), "`mass` must be positive and finite, got 0.0"),
    (lambda: lf.SecondOrder(damping=-1.0), "`damping` must be positive and finite, got -1.0"),
    (lambda: lf.SecondOrder(stiffness=NAN), "`stiffness` must be positive and finite, got nan"),
    (lambda: lf.LinearODE([1.0, -1.0]), "`coefficients` must describe a stable ODE"),
    (lambda: lf.LinearODE([1.0, 0.0, 1.0]), "`coefficients` must describe a stable ODE"),
    (lambda: lf.LinearODE([1.0, 1.0, 1.0, 1.0]), "`coefficients` must describe a stable ODE"),
    (lambda: lf.LinearODE([1.0, 1.0, 0.0]), "`coefficients` must describe a stable ODE"),
    (lambda: lf.LinearODE([0.0, 1.0]), "`coefficients` must describe a stable ODE"),
    (lambda: lf.LinearODE([1.0, NAN]), "`coefficients` must be finite, got nan at index"),
    (lambda: lf.LinearODE([]), "`coefficients` must have at least one entry"),
    (lambda: lf.LinearODE(2.0), "`coefficients` must be a 1-D array, got an array of shape"),
    (lambda: lf.LinearODE([[1.0], [1.0]]), r"`coefficients` must be a 1-D array, got an array of shape \(2, 1\)"),
    (lambda: lf.Process(lf.FirstOrder(), lf.Identity()), "`force` must be a force such as"),
    (lambda: lf.Process(lf.Matern(), lf.Matern()), "`filter` must be a filter such as"),
    (lambda: lf.Process(lf.Matern(1.5, np.ones(2)), lf.FirstOrder()), "`force` must have a scalar lengthscale when"),
    (lambda: lf.HarmonicFourier(0, (0.0, 1.0)), "`num_frequencies` must be a whole number of at least 1, got 0"),
    (lambda: lf.DrivenFourier(1.5, (0.0, 1.0)), "`num_frequencies` must be a whole number of at least 1, got 1.5"),
    (lambda: lf.RandomFourier(-2), "`num_frequencies` must be a whole number of at least 1, got -2"),
    (lambda: lf.RandomFourier(3, seed=-1), "`seed` must be a whole number of at least 0, got -1"),
    (lambda: lf.HarmonicFourier(3, (1.0, 1.0)), r"`interval` must be a pair \(a, b\) with a < b, got \(1.0, 1.0\)"),
    (lambda: lf.DrivenFourier(3, (2.0, 1.0)), r"`interval` must be a pair \(a, b\) with a < b, got \(2.0, 1.0\)"),
    (lambda: lf.DrivenFourier(3, (0.0, INF)), r"`interval\[1\]` must be finite, got inf"),
    (lambda: lf.DrivenFourier(3, 1.0), r"`interval` must be a pair \(a, b\) with a < b, got 1.0"),
    (lambda: lf.InducingPoints(np.array([0.0, NAN])), r"`locations` must be finite, got nan at index \(1,\)"),
    (lambda: lf.InducingPoints(np.zeros(0)), "`locations` must have at least one entry"),
    (lambda: lf.InducingPoints(1.0), "`locations` must be a 1-D array or a 2-D array, got an array of shape"),
]


@pytest.mark.parametrize("build, message", CONSTRUCTORS, ids=[message[:48] for _, message in CONSTRUCTORS])
def test_constructors(build, message):
    with pytest.raises(ValueError, match=message):
        build()


TIMES = {
    "nan": (np.array([0.0, NAN]), r"`{name}` must be finite, got nan at index \(1,\)"),
    "inf": ([INF], r"`{name}` must be finite, got inf at index \(0,\)"),
    "rank 0": (0.5, "`{name}` must be a 1-D array, got an array of shape"),
    "rank 2": (np.zeros((2, 1)), r"`{name}` must be a 1-D array, got an array of shape \(2, 1\)"),
    "text": (["a"], "`{name}` must be real numbers, got"),
}


@pytest.mark.parametrize("times, message", TIMES.values(), ids=TIMES)
@pytest.mark.parametrize("jitted", [False, True])
def test_times(times, message, jitted):
    """Also under jit, where the times are constants of the function being compiled."""
    good = jnp.zeros(2)
    calls = [
        (lambda: PROCESS.covariance(times, good), "t1"),
        (lambda: PROCESS.covariance(good, times), "t2"),
        (lambda: PROCESS.cross_covariance(good, times), "t2"),
        (lambda: PROCESS.force_covariance(times, good), "t1"),
        (lambda: PROCESS.sample(jax.random.key(0), times, 1), "t"),
    ]
    for features in (lf.HarmonicFourier(3, (0.0, 1.0)), lf.DrivenFourier(3, (0.0, 1.0)), lf.RandomFourier(3)):
        for method in (
            features.whitened,
            features.force_whitened,
            features.cross_covariance,
            features.residual_variance,
        ):
            calls.append((lambda method=method: method(PROCESS, times), "t"))
    calls.append((lambda: lf.InducingPoints(good).whitened(PROCESS, times), "t1"))
    for call, name in calls:
        # A process with a filter takes times only; rank 2 is fine for one without.
        with pytest.raises(ValueError, match=message.format(name=name)):
            jax.jit(call)() if jitted else call()


def test_parameters_under_jit():
    """A constant is checked while tracing; a traced value cannot be."""
    with pytest.raises(ValueError, match="`lengthscale` must be positive"):
        jax.jit(lambda t: lf.Process(lf.Matern(1.5, -1.0)).covariance(t, t))(jnp.zeros(2))
    assert jax.jit(lambda x: lf.Matern(1.5, x).lengthscale)(-1.0) == -1.0


SMOOTH = lf.Process(lf.SquaredExponential(), lf.SecondOrder())
MISFITS = [
    (
        lambda: SMOOTH.covariance([0.0], [0.0]),
        "`force` must be Matern to have covariances behind a filter of order two",
    ),
    (lambda: SMOOTH.cross_covariance([0.0], [0.0]), "got SquaredExponential with SecondOrder"),
    (lambda: SMOOTH.variance(), "latentforce.RandomFourier takes both"),
    (lambda: PLANE.covariance(np.zeros((3, 2)), np.zeros((3, 3))), "as many columns"),
    (lambda: PLANE.covariance(np.zeros(3), np.zeros(3)), "as there are length-scales"),
    (lambda: PLANE.state_space(), "`force` must be Matern with a scalar lengthscale to have a state space"),
    (lambda: lf.RandomFourier(3).whitened(PLANE, np.zeros(2)), "`process` must have a force with a scalar lengthscale"),
    (
        lambda: lf.DrivenFourier(3, (0.0, 1.0)).whitened(lf.Process(lf.SquaredExponential()), np.zeros(2)),
        "`force` must be Matern with a scalar lengthscale to have a state space, got SquaredExponential",
    ),
    (lambda: PROCESS.sample(jax.random.key(0), np.zeros(2), 0), "`num_samples` must be a whole number of at least 1"),
]


@pytest.mark.parametrize("call, message", MISFITS, ids=[message[:40] for _, message in MISFITS])
def test_misfits(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_stable_equations_are_accepted():
    rng = np.random.default_rng(0)
    for _ in range(50):
        poles = -rng.uniform(0.1, 3.0, 5) + 1j * np.array([0, 1, -1, 2, -2]) * rng.uniform(0, 5)
        poles[2], poles[4] = np.conj(poles[1]), np.conj(poles[3])
        coefficients = np.real(np.poly(poles))[::-1]
        assert lf.LinearODE(coefficients.tolist()).order == 5
        unstable = np.real(np.poly(np.append(poles, rng.uniform(0.1, 1.0))))[::-1]
        with pytest.raises(ValueError, match="stable"):
            lf.LinearODE(unstable.tolist())
    assert lf.LinearODE([-1.0, -2.0]).order == 1  # stable, with a negative gain


def test_data_to_condition_on():
    x = np.linspace(0.0, 1.0, 6)
    model = lf.build("exact-lfm", x, np.sin(x))
    flat, columns = (lf.condition(model, *data).weights for data in ((x, x**2), (x[:, None], x[:, None] ** 2)))
    np.testing.assert_array_equal(flat, columns)
    with pytest.raises(ValueError, match="`y` must have as many rows as `x`"):
        lf.condition(model, x, x[:3])
    with pytest.raises(ValueError, match="`y` must be observed everywhere"):
        lf.condition(model, x, np.where(x > 0.5, np.nan, x))

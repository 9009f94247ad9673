"""Are the hidden force and the ODE's coefficients found again, and is the stated uncertainty right?

    OPENBLAS_NUM_THREADS=1 python benchmarks/force_recovery.py --out benchmarks/results/force-recovery.json

(On a machine that is shared, threads of LAPACK that wait for each other make small factorisations hundreds of times
slower: hence the one thread.)

Three kinds of system, 20 simulations of each, 500 times with noise of 5 % of the output's deviation. The simulator is
not the library's: the stationary state of forces and outputs together is walked exactly over a grid. One output is
fitted by `exact-lfm`, three outputs of two forces by `lfm-driven` and its collapsed bound, all hyperparameters (ODE,
forces, noise), by L-BFGS from a start that is wrong by factors of about two.

What is identifiable. The scale of a force can be moved into the ODE's coefficients or its sensitivity, so rates,
natural frequencies and damping ratios are judged, not coefficients, and forces in the units that give the ODE a static
gain of one (output q then answers force q with sensitivity one, which fixes signs too). Two shared forces can be told
apart because their length-scales differ; they are ordered by them.

Three bands, mean +- 1.96 deviations, at 200 times between the data:

- known: all hyperparameters true. This is what inference alone is answerable for.
- plugged in: learned hyperparameters, taken as if they were true. This is what `lf.force` says of a trained model.
- integrated: learned hyperparameters with their uncertainty, 50 draws from `lf.laplace`.

The standard errors of the ODE's parameters are of that same approximation: the inverse of the Hessian of the log
marginal likelihood (or its bound), without the directions that change nothing.
"""

import argparse
import json
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import scipy.linalg
from jax import Array

import latentforce as lf
from latentforce.inference._exact import ExactModel
from latentforce.inference._gaussian import Normal

POINTS, TESTED, NOISE, BAND, DRAWS, FREQUENCIES, CHUNK = 500, 200, 0.05, 1.96, 50, 100, 10
OPTIMIZER = optax.lbfgs()  # one object, so that compiled steps serve all fits
Model = Any  # the library's exact or variational model


@dataclass(frozen=True)
class System:
    """Outputs `sum_i coefficients[r, i] f_r^(i) = sum_q sensitivity[r, q] u_q` of Matérn-3/2 forces of variance one."""

    name: str
    duration: float
    lengthscales: tuple[float, ...]  # increasing
    coefficients: tuple[tuple[float, ...], ...]  # static gain one
    sensitivity: tuple[tuple[float, ...], ...]  # one on the diagonal
    start: lf.FirstOrder | lf.SecondOrder
    start_lengthscales: tuple[float, ...]

    @property
    def shared(self) -> bool:
        """Whether forces are shared by several outputs."""
        return len(self.coefficients) > 1

    def state_space(self) -> tuple[np.ndarray, np.ndarray]:
        """Drift and diffusion of the state: u_q, u_q' of every force, then f_r, f_r', ... of every output."""
        Q, R, order = len(self.lengthscales), len(self.coefficients), len(self.coefficients[0]) - 1
        drift, diffusion = np.zeros((2 * Q + R * order,) * 2), np.zeros(2 * Q + R * order)
        for q, lengthscale in enumerate(self.lengthscales):
            decay = 3**0.5 / lengthscale
            drift[2 * q, 2 * q + 1], drift[2 * q + 1, 2 * q], drift[2 * q + 1, 2 * q + 1] = 1.0, -(decay**2), -2 * decay
            diffusion[2 * q + 1] = 4 * decay**3
        for r, a in enumerate(self.coefficients):
            own = slice(2 * Q + r * order, 2 * Q + (r + 1) * order)
            drift[own, own] = np.eye(order, k=1)
            drift[own.stop - 1, own] = -np.array(a[:-1]) / a[-1]
            drift[own.stop - 1, : 2 * Q : 2] = np.array(self.sensitivity[r]) / a[-1]
        return drift, np.diag(diffusion)

    def parameters(self) -> tuple[str, ...]:
        """The names of what is identifiable of the ODEs, the same order as `ode_parameters`."""
        kinds = ("rate",) if isinstance(self.start, lf.FirstOrder) else ("natural frequency", "damping ratio")
        return tuple(
            f"{kind} {r + 1}" if self.shared else kind for kind in kinds for r in range(len(self.coefficients))
        )


def _second_order(frequency: float, damping: float) -> tuple[float, float, float]:
    return (1.0, 2 * damping / frequency, frequency**-2)


SYSTEMS = (
    System("first order", 100.0, (0.3,), ((1.0, 1.5),), ((1.0,),), lf.FirstOrder(1.0, 3.0), (0.6,)),
    System(
        "second order", 100.0, (0.3,), (_second_order(3.0, 0.2),), ((1.0,),),
        lf.SecondOrder(*_second_order(2.0, 0.4)[::-1]), (0.6,),
    ),
    System(
        "three outputs, two forces", 20.0, (0.4, 1.6), ((1.0, 0.5), (1.0, 1.0), (1.0, 2.0)),
        ((1.0, 0.5), (-0.5, 1.0), (1.0, 1.0)), lf.FirstOrder(1.0, 0.5), (0.2, 3.2),
    ),
)  # fmt: skip


class Data(NamedTuple):
    """Noisy outputs y at x, and the true forces (Q, TESTED) at times in between."""

    x: Array
    y: Array
    t: Array
    forces: Array
    noise: Array  # variance of each output's


def simulate(system: System, seed: int) -> Data:
    """Walk the stationary state over a grid: data at its even points, forces at some of its odd ones."""
    rng = np.random.default_rng(seed)
    grid = np.linspace(0.0, system.duration, 2 * POINTS - 1)
    drift, diffusion = system.state_space()
    stationary = scipy.linalg.solve_continuous_lyapunov(drift, -diffusion)
    step = scipy.linalg.expm(drift * (grid[1] - grid[0]))
    root = _root(stationary - step @ stationary @ step.T)
    state = np.empty((grid.size, len(drift)))
    state[0] = _root(stationary) @ rng.standard_normal(len(drift))
    for n in range(1, grid.size):
        state[n] = step @ state[n - 1] + root @ rng.standard_normal(len(drift))
    Q, order = len(system.lengthscales), len(system.coefficients[0]) - 1
    noise = NOISE**2 * np.diag(stationary)[2 * Q :: order]
    clean = state[::2, 2 * Q :: order]
    y = clean + np.sqrt(noise) * rng.standard_normal(clean.shape)
    tested = 1 + 2 * np.round(np.linspace(0, POINTS - 2, TESTED)).astype(int)
    x, y, t = (jnp.asarray(v) for v in (grid[::2, None], y, grid[tested]))
    return Data(x, y, t, jnp.asarray(state[tested, : 2 * Q : 2].T), jnp.asarray(noise))


def _root(covariance: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def build(system: System, data: Data) -> Model:
    """The model before training; its noise starts four times too large, its sensitivities at random."""
    options: dict[str, Any] = {
        "filter": system.start, "lengthscale": system.start_lengthscales[0], "variance": 1.0,
        "likelihood": lf.Gaussian(4 * data.noise),
    }  # fmt: skip
    if not system.shared:
        return lf.build("exact-lfm", data.x, data.y, **options)
    Q = len(system.lengthscales)
    model = lf.build("lfm-driven", data.x, data.y, num_forces=Q, num_frequencies=FREQUENCIES, **options)
    starts = jnp.asarray(system.start_lengthscales)[:, None]
    return eqx.tree_at(lambda m: m.layers[0].outputs.driving.lengthscale, model, starts)


def true_model(system: System, model: Model, data: Data) -> Model:
    """The model with the hyperparameters that made the data."""
    a = jnp.asarray(system.coefficients)  # (R, order + 1), the lowest first
    filter = lf.FirstOrder if isinstance(system.start, lf.FirstOrder) else lf.SecondOrder
    filters = jax.vmap(lambda a: filter(*(a if filter is lf.FirstOrder else a[::-1])))(a)
    forces = jax.vmap(lambda length: lf.Matern(1.5, length, 1.0))(jnp.asarray(system.lengthscales))
    model = eqx.tree_at(lambda m: m.likelihood, model, lf.Gaussian(data.noise))
    if not system.shared:
        return eqx.tree_at(lambda m: (m.process.force, m.process.filter), model, (forces, filters))
    forces, filters = jax.tree.map(lambda leaf: leaf[:, None], (forces, filters))
    outputs = lambda m: [getattr(m.layers[0].outputs, name) for name in ("driving", "filter", "sensitivity")]  # noqa: E731
    return eqx.tree_at(outputs, model, [forces, filters, jnp.asarray(system.sensitivity)[:, :, None]])


def objective(model: Model) -> Callable[..., Array]:
    """What is maximised: for each row, so that of all data is `POINTS` times this."""
    return lf.log_marginal_likelihood if isinstance(model, ExactModel) else lf.collapsed_bound


def train(model: Model, data: Data) -> Model:
    """L-BFGS until a chunk of steps gains nothing."""

    def settled(progress: Any) -> bool:
        return abs(progress.objective - progress.history.objective[-CHUNK]) < 1e-9

    return lf.fit(
        model, data.x, data.y, objective=objective(model), steps=100 * CHUNK, chunk=CHUNK, optimizer=OPTIMIZER,
        callback=settled,
    ).model  # fmt: skip


def ode_parameters(model: Model) -> Array:
    """Logarithms of what is identifiable of the ODEs."""
    filter: Any = model.process.filter if isinstance(model, ExactModel) else model.layers[0].outputs.filter
    if isinstance(filter, lf.FirstOrder):
        return jnp.log(filter.rate).ravel()
    return jnp.log(jnp.concatenate([filter.natural_frequency.ravel(), filter.damping_ratio.ravel()]))


def forces(model: Model, data: Data) -> tuple[Array, Array]:
    """Means and deviations (Q, TESTED) of the forces in units of static gain one, by increasing length-scale."""
    if isinstance(model, ExactModel):
        posterior = lf.condition(model, data.x, data.y).force(data.t)
        filter: Any = model.process.filter
        gain = _stiffness(filter)
        return (posterior.mean / gain)[None], (posterior.deviation / gain)[None]
    outputs = model.layers[0].outputs
    model = lf.collapse(model, lf.whole(data.x, data.y))
    posteriors = [lf.force(model, data.t, index=q) for q in range(outputs.sensitivity.shape[1])]
    mean, deviation = (jnp.stack([getattr(p, name) for p in posteriors]) for name in ("mean", "deviation"))
    order = jnp.argsort(outputs.driving.lengthscale[:, 0])
    sensitivity = outputs.sensitivity[:, :, 0][:, order] / _stiffness(outputs.filter)
    gain = jnp.diagonal(sensitivity)[:, None]
    return gain * mean[order], jnp.abs(gain) * deviation[order]


def _stiffness(filter: lf.FirstOrder | lf.SecondOrder) -> Array:
    """`a0`."""
    return filter.alpha if isinstance(filter, lf.FirstOrder) else filter.stiffness


def flat(model: Model, data: Data) -> Normal:
    """`forces`, one after the other."""
    mean, deviation = forces(model, data)
    return Normal(mean.ravel(), jnp.diag(deviation.ravel() ** 2))


def integrated(known: Any, data: Data, seed: int) -> tuple[Array, Array]:
    """`forces` over the hyperparameters too."""
    band = known.integrate(jax.tree_util.Partial(flat, data=data), num_samples=DRAWS, seed=seed)
    return band.mean.reshape(-1, TESTED), band.deviation.reshape(-1, TESTED)


def judge(system: System, seed: int) -> dict[str, Any]:
    """One simulation: coverage of the three bands, and how many standard errors the ODE's parameters are off."""
    data = simulate(system, seed)
    start = build(system, data)
    truth = true_model(system, start, data)
    learned = train(start, data)
    known = lf.laplace(learned, data.x, data.y)
    bands = {
        "known": forces(truth, data),
        "plugged in": forces(learned, data),
        "integrated": integrated(known, data, seed),
    }
    error = np.asarray(ode_parameters(learned) - ode_parameters(truth))
    deviation = known.deviation(ode_parameters)
    coverage = {
        name: [float(c) for c in _coverage(band[0], band[1], np.asarray(data.forces))] for name, band in bands.items()
    }
    return {
        "coverage": coverage, "log_error": error.tolist(), "log_deviation": deviation.tolist(),
        "undetermined": known.mode.size - known.root.shape[1], "curvatures": known.curvatures[:8].tolist(),
    }  # fmt: skip


def _coverage(mean: Array, deviation: Array, truth: np.ndarray) -> np.ndarray:
    return np.mean(np.abs(np.asarray(mean) - truth) <= BAND * np.asarray(deviation), axis=1)


def summarise(system: System, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Averages over simulations."""
    bands = {}
    for name in runs[0]["coverage"]:
        each = np.mean([run["coverage"][name] for run in runs], axis=1)
        bands[name] = {"mean": float(each.mean()), "smallest": float(each.min()), "largest": float(each.max())}
    error, deviation = (np.array([run[name] for run in runs]) for name in ("log_error", "log_deviation"))
    parameters = {
        name: {
            "within_2": int(np.sum(np.abs(error[:, k]) <= 2 * deviation[:, k])),
            "of": len(runs),
            "median_log_deviation": float(np.median(deviation[:, k])),
            "mean_log_error": float(error[:, k].mean()),
            "rms_standard_errors": float(np.sqrt(np.mean((error[:, k] / deviation[:, k]) ** 2))),
        }
        for k, name in enumerate(system.parameters())
    }
    return {"force_coverage": bands, "parameters": parameters}


def show(system: System, summary: dict[str, Any]) -> None:
    """Print the tables of one kind of system."""
    print(f"\n{system.name}\n  {'95 % band of the force':<24}{'inside':>8}{'worst':>8}{'best':>8}")
    for name, row in summary["force_coverage"].items():
        print(f"  {name:<24}{row['mean']:>8.1%}{row['smallest']:>8.1%}{row['largest']:>8.1%}")
    print(f"  {'parameter of the ODE':<24}{'within 2 s.e.':>14}{'s.e. of its log':>17}{'rms error / s.e.':>18}")
    for name, row in summary["parameters"].items():
        within = f"{row['within_2']} of {row['of']}"
        print(
            f"  {name:<24}{within:>14}{row['median_log_deviation']:>17.3f}{row['rms_standard_errors']:>18.2f}",
            flush=True,
        )


def main() -> None:
    """Simulate, fit, judge, print; write JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the numbers to this JSON file")
    parser.add_argument("--simulations", type=int, default=20, help="of each kind of system (seeds 0, 1, ...)")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    start, result = time.perf_counter(), {}
    for system in SYSTEMS:
        runs = [judge(system, seed) for seed in range(options.simulations)]
        result[system.name] = {"settings": repr(system), **summarise(system, runs), "runs": runs}
        show(system, result[system.name])
    if options.out:
        command = f"OPENBLAS_NUM_THREADS=1 python benchmarks/force_recovery.py --simulations {options.simulations}"
        header = {
            "command": command,
            "jax": jax.__version__,
            "latentforce": lf.__version__,
            "machine": platform.machine(),
        }
        header |= {"seconds": round(time.perf_counter() - start)}
        options.out.write_text(json.dumps({**header, "result": result}, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Scores and times of other Gaussian process libraries beside ours, on two small tasks that need no download.

    pip install ".[benchmarks]" gpjax && python benchmarks/peers.py --out benchmarks/results/peers.json

GPflow and GPflux want an older numpy than we do: an environment of their own, whose results are added to the same file
(a library that is not installed is skipped, and said to be):

    pip install gpflow gpflux tensorflow tf-keras scikit-learn
    python benchmarks/peers.py --only GPflow GPflux --out benchmarks/results/peers.json

"step" is the paper's multi-step function, "friedman" scikit-learn's `make_friedman1` (ten inputs of which five matter,
noise of deviation one), 500 rows for training and 500 for testing. All see standardised inputs and targets; scores are
in the target's units. Kernels are Matérn-3/2 with a length-scale for each input, except GPflux's (squared exponential,
as its `architectures` build them). Exact and collapsed sparse GPs start from the same point and are trained by the
(L-)BFGS that their library offers, gpytorch's by Adam as in its tutorials; deep and variational models take a stated
number of steps of Adam on all rows. Seconds are of the first fit of a process, with compilation, and of later ones.

Not here: alfi 1.0.2 installs but cannot be imported, as it needs `torchcubicspline`, which is not on PyPI; the paper's
code is no package.
"""

import argparse
import importlib
import json
import os
import runpy
import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from importlib.metadata import distributions, version
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm
from sklearn.datasets import make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

SEEDS = {"step": 3, "friedman": 2}
SIZE = 500  # rows of the table for training, and for testing
NUM_POINTS, DEEP_POINTS = 100, 50  # inducing points of sparse models, and of each layer of deep ones
STEPS = {"exact GP": 500, "SVGP": 2000, "deep GP": 3000}  # of Adam, where it is what is used
LIMITS = {"exact GP": 1000, "state-space GP": 1000, "sparse GP": 200}  # of iterations of L-BFGS or BFGS
DRAWS = 100  # of hidden layers, for predictions of the peers
OURS, TORCH, FLOW = ("latentforce", "jax"), ("latentforce", "gpytorch", "torch"), ("gpflow", "tensorflow")

Rows = tuple[np.ndarray, np.ndarray]
Judge = Callable[[np.ndarray, np.ndarray], tuple[float, float]]  # test rows to RMSE and NMLL
Fitted = tuple[Judge, int | None]  # and the number of steps, where the library says


@dataclass(frozen=True)
class Library:
    """What it needs, how a model of it is trained (inputs, targets, seed, name), and which models for which task."""

    needs: tuple[str, ...]
    fit: Callable[[np.ndarray, np.ndarray, int, str], Fitted]
    step: tuple[str, ...] = ("exact GP",)
    friedman: tuple[str, ...] = ("exact GP",)
    double: bool = False  # JAX in float64, which ours switches on by itself where it matters


def load(task: str, seed: int) -> tuple[Rows, Rows, float]:
    """Rows for training and for testing, standardised by the first, and the deviation of the target."""
    if task == "step":  # by its path: environments of peers need not hold the package
        source = Path(__file__).parents[1] / "src" / "latentforce" / "datasets.py"
        x, y, x_test, y_test = runpy.run_path(str(source))["multi_step"](seed)
        x, x_test = x[:, None], x_test[:, None]
    else:
        x, y = make_friedman1(2 * SIZE, noise=1.0, random_state=seed)
        x, y, x_test, y_test = x[:SIZE], y[:SIZE], x[SIZE:], y[SIZE:]
    centre, spread, shift, scale = x.mean(axis=0), x.std(axis=0), y.mean(), float(y.std())
    train, test = (((a - centre) / spread, (b - shift) / scale) for a, b in ((x, y), (x_test, y_test)))
    return train, test, scale


def lengths(x: np.ndarray) -> np.ndarray:
    """To start from: one, and ten for ten inputs, as from shorter ones some optimisers end where there is no noise."""
    return np.full(x.shape[1], float(x.shape[1]))


def rmse(mean: np.ndarray, y: np.ndarray) -> float:
    """Root of the mean squared error."""
    return float(np.sqrt(np.mean((mean - y) ** 2)))


def mixture(predict: Callable[[np.ndarray], tuple[Any, Any]]) -> Judge:
    """Scores of Gaussian predictions: mean and deviation of the target, (N,) or (S, N) for S draws of equal weight."""

    def judge(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
        mean, std = (np.atleast_2d(np.asarray(part)) for part in predict(x))
        density = logsumexp(norm.logpdf(y, mean, std), axis=0) - np.log(len(mean))
        return rmse(mean.mean(axis=0), y), float(-density.mean())

    return judge


def ours(x: np.ndarray, y: np.ndarray, seed: int, model: str) -> Fitted:
    """Our regressor, untouched but for the name of the model and, as for the others, the number of inducing points."""
    import latentforce as lf

    frequencies = NUM_POINTS // 2 if model == "svgp" else None
    fitted = lf.LatentForceRegressor(model, num_frequencies=frequencies, random_state=seed).fit(x, y)
    return lambda x, y: (rmse(fitted.predict(x), y), -float(fitted.log_score(x, y))), fitted.n_iter_


def sklearn_fit(x: np.ndarray, y: np.ndarray, seed: int, model: str) -> Fitted:
    """`GaussianProcessRegressor`."""
    scales: Any = lengths(x)
    kernel = ConstantKernel(1.0) * Matern(scales, (1e-3, 1e5), nu=1.5) + WhiteKernel(0.1, (1e-8, 10.0))
    with warnings.catch_warnings():  # a length-scale at its bound: an input that does not matter
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = GaussianProcessRegressor(kernel, random_state=seed).fit(x, y)
    return mixture(lambda x: fitted.predict(x, return_std=True)), None


def tinygp_fit(x: np.ndarray, y: np.ndarray, seed: int, model: str) -> Fitted:
    """One input: its solver in linear time; several: dense. Trained by SciPy, as in its tutorials."""
    import jax
    import jax.numpy as jnp
    import tinygp
    from scipy.optimize import minimize

    flat, order = x.shape[1] == 1, np.argsort(x[:, 0])
    inputs, targets = jnp.asarray(x[order, 0] if flat else x[order]), jnp.asarray(y[order])

    def process(raw: Any) -> Any:
        amplitude, noise, *scales = jnp.exp(raw)
        radial = tinygp.kernels.Matern32(distance=tinygp.kernels.distance.L2Distance())
        dense = tinygp.transforms.Linear(1 / jnp.stack(scales), radial)
        kernel = tinygp.kernels.quasisep.Matern32(scales[0]) if flat else dense
        return tinygp.GaussianProcess(amplitude * kernel, inputs, diag=noise)

    loss = jax.jit(jax.value_and_grad(lambda raw: -process(raw).log_probability(targets)))
    start = np.log([1.0, 0.1, *lengths(x)])
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": LIMITS[model]})

    def predict(x: np.ndarray) -> tuple[Any, Any]:
        given = process(found.x).condition(targets, jnp.asarray(x[:, 0] if flat else x)).gp
        return given.loc, jnp.sqrt(given.variance + np.exp(found.x[1]))

    return mixture(predict), found.nit


def gpjax_fit(x: np.ndarray, y: np.ndarray, seed: int, model: str) -> Fitted:
    """Dense, state-space (in linear time, one input) or sparse (the collapsed bound), by its SciPy optimiser."""
    import gpjax as gpx
    import jax.numpy as jnp

    order = np.argsort(x[:, 0])
    data = gpx.Dataset(X=jnp.asarray(x[order]), y=jnp.asarray(y[order])[:, None])
    prior = gpx.state_space.StateSpacePrior if model == "state-space GP" else gpx.gps.Prior
    kernel = gpx.kernels.Matern32(lengthscale=jnp.squeeze(lengths(x)), variance=1.0)
    noise = gpx.likelihoods.Gaussian(obs_stddev=jnp.sqrt(0.1))
    joint = prior(mean_function=gpx.mean_functions.Zero(), kernel=kernel) * noise
    if model == "sparse GP":
        family, gain = gpx.variational_families.CollapsedVariationalGaussian, gpx.objectives.collapsed_elbo
        start = family(joint, jnp.asarray(np.random.default_rng(seed).permutation(x)[:NUM_POINTS]))
    else:
        start, gain = joint, gpx.objectives.conjugate_mll
    options: dict[str, Any] = {"objective": lambda model, data: -gain(model, data), "max_iters": LIMITS[model]}
    fitted, history = gpx.fit_scipy(model=start, train_data=data, verbose=False, **options)

    def predict(x: np.ndarray) -> tuple[Any, Any]:
        likelihood = (fitted.model if model == "sparse GP" else fitted).likelihood
        seen = likelihood(fitted.condition(data)(jnp.asarray(x), covariance="diagonal"))
        return seen.mean, jnp.sqrt(seen.variance)

    return mixture(predict), len(history) - 1


def gpytorch_fit(x: np.ndarray, y: np.ndarray, seed: int, model: str) -> Fitted:
    """`ExactGP` by Adam at 0.1; SVGP and deep GP as `latentforce bench` builds them."""
    import torch
    from gpytorch import constraints, distributions, kernels, likelihoods, mlls, models, settings

    from latentforce.experiments import _peers

    class Exact(models.ExactGP):
        """Zero mean, Matérn-3/2."""

        def forward(self, x: Any) -> Any:
            """The prior at x."""
            return distributions.MultivariateNormal(x.new_zeros(len(x)), self.kernel(x))

    inputs, targets = torch.tensor(x), torch.tensor(y)
    if model == "exact GP":
        noise = likelihoods.GaussianLikelihood(noise_constraint=constraints.GreaterThan(1e-6))
        fitted: Any = Exact(inputs, targets, noise)
        fitted.kernel = kernels.ScaleKernel(kernels.MaternKernel(nu=1.5, ard_num_dims=x.shape[1]))
        fitted.double().initialize(**{"likelihood.noise": 0.1, "kernel.outputscale": 1.0})
        fitted.kernel.base_kernel.lengthscale = torch.tensor(lengths(x))
        likelihood = mlls.ExactMarginalLogLikelihood(fitted.likelihood, fitted)
        optimizer = torch.optim.Adam(fitted.parameters(), lr=0.1)
        for _ in range(STEPS[model]):
            optimizer.zero_grad()
            (-likelihood(fitted(inputs), targets)).backward()
            optimizer.step()
    else:
        peer = _peers.SVGPPeer(x, y, NUM_POINTS) if model == "SVGP" else _peers.DeepGPPeer(x, y, DEEP_POINTS)
        peer.train(STEPS[model])
        fitted = peer.model
    fitted.eval()

    def predict(x: np.ndarray) -> tuple[Any, Any]:
        with torch.no_grad(), settings.num_likelihood_samples(DRAWS):
            seen = fitted.likelihood(fitted(torch.tensor(x)))
        return seen.mean, seen.stddev

    return mixture(predict), STEPS[model]


def gpflow_fit(x: np.ndarray, y: np.ndarray, seed: int, model: str) -> Fitted:
    """`GPR`, or `SGPR` for the sparse one, by its SciPy optimiser."""
    import gpflow

    kernel, data = gpflow.kernels.Matern32(lengthscales=lengths(x)), (x, y[:, None])
    points = np.random.default_rng(seed).permutation(x)[:NUM_POINTS]
    fitted: Any = gpflow.models.GPR(data, kernel, noise_variance=0.1)
    if model == "sparse GP":
        fitted = gpflow.models.SGPR(data, kernel, points, noise_variance=0.1)
    optimizer, limit = gpflow.optimizers.Scipy(), {"maxiter": LIMITS[model]}
    found = optimizer.minimize(fitted.training_loss, fitted.trainable_variables, options=limit)

    def predict(x: np.ndarray) -> tuple[Any, Any]:
        mean, variance = fitted.predict_y(x)
        return mean[:, 0], np.sqrt(variance[:, 0])

    return mixture(predict), found.nit


def gpflux_fit(x: np.ndarray, y: np.ndarray, seed: int, model: str) -> Fitted:
    """Two layers, trained by Keras."""
    import tensorflow as tf
    import tf_keras
    from gpflux.architectures import Config, build_constant_input_dim_deep_gp

    tf_keras.backend.set_floatx("float64")
    tf_keras.utils.set_random_seed(seed)
    config = Config(DEEP_POINTS, inner_layer_qsqrt_factor=1e-5, likelihood_noise_variance=1e-2)
    deep = build_constant_input_dim_deep_gp(x, num_layers=2, config=config)
    keras = deep.as_training_model()
    keras.compile(tf_keras.optimizers.Adam(0.01))
    keras.fit({"inputs": x, "targets": y[:, None]}, batch_size=len(x), epochs=STEPS[model], verbose=0)

    def predict(x: np.ndarray) -> tuple[Any, Any]:
        likelihood, inputs = deep.likelihood_layer.likelihood, tf.constant(x)
        seen = [likelihood.predict_mean_and_var(inputs, *deep.predict_f(inputs)) for _ in range(DRAWS)]
        mean, variance = np.stack(seen, axis=1)[..., 0]
        return mean, np.sqrt(variance)

    return mixture(predict), STEPS[model]


LIBRARIES = {
    "latentforce": Library(OURS, ours, ("exact-gp", "lfm-driven", "dlfm-driven"), ("exact-gp", "svgp", "dlfm-driven")),
    "scikit-learn": Library(("scikit-learn",), sklearn_fit),
    "tinygp": Library(("tinygp", "jax"), tinygp_fit, double=True),
    "GPJax": Library(("gpjax", "jax"), gpjax_fit, ("exact GP", "state-space GP"), ("exact GP", "sparse GP"), True),
    "gpytorch": Library(TORCH, gpytorch_fit, ("exact GP", "deep GP"), ("exact GP", "SVGP")),
    "GPflow": Library(FLOW, gpflow_fit, friedman=("exact GP", "sparse GP")),
    "GPflux": Library((*FLOW, "gpflux", "tf-keras"), gpflux_fit, ("deep GP",), ()),
}


def measure(library: Library, model: str, task: str) -> dict[str, Any]:
    """Scores, seconds and steps of each seed, and versions."""
    row: dict[str, Any] = {name: [] for name in ("rmse", "nmll", "seconds", "steps")}
    precision = importlib.import_module("jax").enable_x64 if library.double else nullcontext
    for seed in range(SEEDS[task]):
        train, test, scale = load(task, seed)
        with precision(True):
            start = time.perf_counter()
            judge, steps = library.fit(*train, seed, model)
            row["seconds"].append(round(time.perf_counter() - start, 3))
            error, nmll = judge(*test)
        row["rmse"].append(error * scale)
        row["nmll"].append(nmll + float(np.log(scale)))
        row["steps"].append(steps)
    return row | {"versions": {name: version(name) for name in library.needs}}


def add(out: Path, task: str, name: str, row: dict[str, Any]) -> None:
    """To the file, beside what other environments have found."""
    record: dict[str, Any] = {"command": "python benchmarks/peers.py", "result": {}}
    record |= json.loads(out.read_text()) if out.exists() else {}
    record["cores"] = len(os.sched_getaffinity(0))
    record["result"].setdefault(task, {})[name] = row
    out.write_text(json.dumps(record, indent=1) + "\n")


def main() -> None:
    """Run, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=LIBRARIES, default=list(LIBRARIES), metavar="LIBRARY")
    parser.add_argument("--tasks", nargs="+", choices=SEEDS, default=list(SEEDS))
    parser.add_argument("--out", type=Path, help="added to, if it is there")
    options = parser.parse_args()
    print(f"{'task':<10}{'library':<14}{'model':<16}{'rmse':>8}{'nmll':>9}{'first s':>9}{'later s':>9}{'steps':>7}")
    present = {found.name.replace("_", "-") for found in distributions()}
    for name in options.only:
        library = LIBRARIES[name]
        missing = [package for package in library.needs if package not in present]
        if missing:
            print(f"{name}: skipped, not installed here: {', '.join(missing)}")
            continue
        for task in options.tasks:
            for model in getattr(library, task):
                row = measure(library, model, task)
                scores = f"{np.mean(row['rmse']):>8.3f}{np.mean(row['nmll']):>9.3f}{row['seconds'][0]:>9.1f}"
                scores += f"{np.mean(row['seconds'][1:]):>9.1f}{row['steps'][0] or '':>7}"
                print(f"{task:<10}{name:<14}{model:<16}{scores}", flush=True)
                if options.out:
                    add(options.out, task, f"{name}: {model}", row)


if __name__ == "__main__":
    main()

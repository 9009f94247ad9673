"""Time of one training step on the multi-step signal (paper, `fig:synthetic`), beside gpytorch's deep GP.

Two layers, 350 points, 10 samples, 41 features or inducing points, Adam, float64, in one run on the same machine:

    pip install ".[benchmarks]" && python benchmarks/step.py
"""

import argparse
import json
import platform
import time
from pathlib import Path

import gpytorch
import jax
import numpy as np
import torch
from gpytorch.models.deep_gps import DeepGP, DeepGPLayer
from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy

import latentforce as lf
from latentforce.datasets import multi_step

SAMPLES, FREQUENCIES, ROUNDS = 10, 20, 7


class TorchLayer(DeepGPLayer):
    """A layer of gpytorch's deep GP as its documentation builds it: Matérn-3/2, inducing points, Cholesky q."""

    def __init__(self, num_points: int, hidden: bool):
        shape = torch.Size([1]) if hidden else torch.Size([])
        points = torch.linspace(0, 1, num_points, dtype=torch.float64)[:, None]
        points = points.expand(*shape, num_points, 1).clone()
        q = CholeskyVariationalDistribution(num_points, batch_shape=shape)
        super().__init__(VariationalStrategy(self, points, q, learn_inducing_locations=True), 1, 1 if hidden else None)
        self.mean_module = gpytorch.means.LinearMean(1) if hidden else gpytorch.means.ZeroMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(
            gpytorch.kernels.MaternKernel(nu=1.5, batch_shape=shape), batch_shape=shape
        )

    def forward(self, x: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
        """The prior at x."""
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


class TorchDeepGP(DeepGP):
    """Two such layers."""

    def __init__(self, num_points: int):
        super().__init__()
        self.hidden, self.last = TorchLayer(num_points, True), TorchLayer(num_points, False)
        self.likelihood = gpytorch.likelihoods.GaussianLikelihood()

    def forward(self, x: torch.Tensor) -> gpytorch.distributions.MultivariateNormal:
        """Through both layers."""
        return self.last(self.hidden(x))


def torch_steps(x: np.ndarray, y: np.ndarray):
    """A function that runs a number of gpytorch's training steps."""
    torch.manual_seed(0)
    inputs, targets = torch.tensor(x)[:, None], torch.tensor(y)
    model = TorchDeepGP(2 * FREQUENCIES + 1).double()
    bound = gpytorch.mlls.DeepApproximateMLL(gpytorch.mlls.VariationalELBO(model.likelihood, model, len(y)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def run(steps: int) -> None:
        with gpytorch.settings.num_likelihood_samples(SAMPLES):
            for _ in range(steps):
                optimizer.zero_grad()
                (-bound(model(inputs), targets)).backward()
                optimizer.step()

    return run


def our_steps(name: str, x: np.ndarray, y: np.ndarray):
    """A function that runs a number of our training steps (a multiple of 50)."""
    model = lf.build(
        name, x, y, num_frequencies=FREQUENCIES, interval=(-0.5, 1.5), lengthscale=0.1, variance=0.1,
        filter=lf.FirstOrder(3.0, 0.1),
    )  # fmt: skip
    return lambda steps: lf.fit(model, x, y, steps=steps, chunk=50, num_samples=SAMPLES)


def main() -> None:
    """Time all in turn, several rounds, and print medians and ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the numbers to this JSON file")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    x, y, _, _ = multi_step(seed=0)
    runs = {"gpytorch DeepGP": (torch_steps(x, y), 50)}
    for name in ("dlfm-vfrf", "dlfm-driven", "iddgp", "dgp", "dlfm-rff"):
        runs[name] = (our_steps(name, x, y), 200)
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for run, _ in runs.values():
        run(50)  # compiled, warmed up
    for _ in range(ROUNDS):
        for name, (run, steps) in runs.items():
            start = time.perf_counter()
            run(steps)
            seconds[name].append((time.perf_counter() - start) / steps)
    peer = float(np.median(seconds["gpytorch DeepGP"]))
    result = {
        name: {"ms": 1e3 * float(np.median(s)), "speedup": peer / float(np.median(s))} for name, s in seconds.items()
    }
    print(f"{'model':<18}{'ms/step':>10}{'times faster':>14}")
    for name, row in result.items():
        print(f"{name:<18}{row['ms']:>10.2f}{row['speedup']:>14.1f}")
    if options.out:
        versions = {"jax": jax.__version__, "torch": torch.__version__, "gpytorch": gpytorch.__version__}
        header = {
            "command": "python benchmarks/step.py",
            "machine": platform.machine(),
            "threads": torch.get_num_threads(),
        }
        options.out.write_text(json.dumps({**header, **versions, "result": result}, indent=1) + "\n")


if __name__ == "__main__":
    main()

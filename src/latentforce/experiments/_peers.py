"""gpytorch's deep GP, two layers on inducing points as its documentation builds them, and its SVGP: peers to be
compared with.

torch and gpytorch come with the `benchmarks` extra alone, so they are imported where they are used.
"""

import importlib.util
import time
import warnings
from functools import cache
from typing import Any

import numpy as np

RATE = 0.01  # of Adam
WIDEST = 10  # outputs of the hidden layer


def platform() -> str | None:
    """Where the peer would run: "gpu" or "cpu"; None where it is not installed."""
    if any(importlib.util.find_spec(name) is None for name in ("torch", "gpytorch")):
        return None
    torch, _ = _imported()
    return "gpu" if torch.cuda.is_available() else "cpu"


class DeepGPPeer:
    """The model and its data, inputs (N,) or (N, D) and targets (N,): on a GPU where torch finds one."""

    def __init__(self, x: np.ndarray, y: np.ndarray, num_points: int, dtype: str = "float64"):
        torch, gpytorch = _imported()
        torch.manual_seed(0)
        self.place = {"dtype": getattr(torch, dtype), "device": "cuda" if platform() == "gpu" else "cpu"}
        x = x.reshape(len(y), -1)
        self.centre, self.scale = x.mean(axis=0), x.std(axis=0)
        self.x, self.y = self._tensors(x, y)
        points = self.x[torch.randperm(len(y))[:num_points]]
        self.model = self._built(points).to(**self.place)
        self.bound = self._bound(gpytorch.mlls.VariationalELBO(self.model.likelihood, self.model, len(y)))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=RATE)

    def train(self, steps: int, num_samples: int = 5, batch_size: int | None = None) -> float:
        """Take so many steps, on all rows or on random ones; how many seconds it took."""
        torch, gpytorch = _imported()
        num = len(self.y)
        self._wait()
        start = time.perf_counter()
        with gpytorch.settings.num_likelihood_samples(num_samples):
            for _ in range(steps):
                rows = slice(None)
                if batch_size is not None and batch_size < num:
                    rows = torch.randint(num, (batch_size,), device=self.place["device"])
                self.optimizer.zero_grad()
                (-self.bound(self.model(self.x[rows]), self.y[rows])).backward()
                self.optimizer.step()
        self._wait()
        return time.perf_counter() - start

    def scores(self, x: np.ndarray, y: np.ndarray, num_samples: int = 100) -> tuple[float, float]:
        """RMSE and NMLL of a mixture over draws of the hidden layer, like those of our own models."""
        torch, gpytorch = _imported()
        inputs, targets = self._tensors(x.reshape(len(y), -1), y)
        self.model.eval()
        with torch.no_grad(), gpytorch.settings.num_likelihood_samples(num_samples):
            seen = self.model.likelihood(self.model(inputs))
            density = torch.distributions.Normal(seen.mean, seen.variance.sqrt()).log_prob(targets)
            nmll = np.log(num_samples) - torch.logsumexp(density, dim=0).mean()
            rmse = (seen.mean.mean(dim=0) - targets).square().mean().sqrt()
        self.model.train()
        return float(rmse), float(nmll)

    def _built(self, points: Any) -> Any:
        return _two_layers()(points, min(points.shape[1], WIDEST))

    def _bound(self, elbo: Any) -> Any:
        return _imported()[1].mlls.DeepApproximateMLL(elbo)

    def _tensors(self, x: np.ndarray, y: np.ndarray) -> tuple[Any, Any]:
        """Inputs of mean 0 and deviation 1, which its starting point is made for."""
        torch, _ = _imported()
        return torch.tensor((x - self.centre) / self.scale, **self.place), torch.tensor(y, **self.place)

    def _wait(self) -> None:
        torch, _ = _imported()
        if self.place["device"] == "cuda":
            torch.cuda.synchronize()


class SVGPPeer(DeepGPPeer):
    """The same with one layer: nothing is sampled."""

    def _built(self, points: Any) -> Any:
        return _one_layer()(points)

    def _bound(self, elbo: Any) -> Any:
        return elbo


def deep_gp_scores(
    train: tuple[np.ndarray, np.ndarray],
    test: tuple[np.ndarray, np.ndarray],
    num_points: int,
    steps: int,
    batch_size: int | None = None,
) -> tuple[float, float]:
    """Test RMSE and NMLL of the trained peer, in float32."""
    peer = DeepGPPeer(*train, num_points, "float32")
    peer.train(steps, batch_size=batch_size)
    return peer.scores(*test)


def _imported() -> tuple[Any, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of what they use of each other
        import gpytorch
        import torch

    return torch, gpytorch


@cache
def _two_layers() -> Any:
    """The class of the model, made here: its bases are gpytorch's."""
    torch, gpytorch = _imported()
    from gpytorch.models.deep_gps import DeepGP, DeepGPLayer
    from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy

    class Layer(DeepGPLayer):
        """Matérn-3/2 with a length-scale for each input, q by its Cholesky factor; one output or, if hidden, more."""

        def __init__(self, points: Any, width: int | None):
            num_points, num_inputs = points.shape
            shape = torch.Size([] if width is None else [width])
            q = CholeskyVariationalDistribution(num_points, batch_shape=shape)
            points = points.expand(*shape, num_points, num_inputs).clone()
            super().__init__(VariationalStrategy(self, points, q, learn_inducing_locations=True), num_inputs, width)
            self.mean_module = gpytorch.means.ZeroMean() if width is None else gpytorch.means.LinearMean(num_inputs)
            kernel = gpytorch.kernels.MaternKernel(nu=1.5, batch_shape=shape, ard_num_dims=num_inputs)
            self.covar_module = gpytorch.kernels.ScaleKernel(kernel, batch_shape=shape)

        def forward(self, x: Any) -> Any:
            """The prior at x."""
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    class TwoLayers(DeepGP):
        """Inducing inputs (M, D) are given for the hidden layer, random for the last."""

        def __init__(self, points: Any, width: int):
            super().__init__()
            self.hidden = Layer(points, width)
            self.last = Layer(torch.randn(len(points), width), None)
            self.likelihood = gpytorch.likelihoods.GaussianLikelihood()

        def forward(self, x: Any) -> Any:
            """Through both layers."""
            return self.last(self.hidden(x))

    return TwoLayers


@cache
def _one_layer() -> Any:
    """The class of the shallow model: Matérn-3/2, q by its Cholesky factor."""
    _, gpytorch = _imported()
    from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy

    class OneLayer(gpytorch.models.ApproximateGP):
        """Inducing inputs (M, D) are given."""

        def __init__(self, points: Any):
            q = CholeskyVariationalDistribution(len(points))
            super().__init__(VariationalStrategy(self, points.clone(), q, learn_inducing_locations=True))
            self.mean_module = gpytorch.means.ZeroMean()
            kernel = gpytorch.kernels.MaternKernel(nu=1.5, ard_num_dims=points.shape[1])
            self.covar_module = gpytorch.kernels.ScaleKernel(kernel)
            self.likelihood = gpytorch.likelihoods.GaussianLikelihood()

        def forward(self, x: Any) -> Any:
            """The prior at x."""
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    return OneLayer

"""How well a few features stand for the exact posterior (paper, `fig:vff_vs_rff`).

    python -m latentforce.experiments.vff_vs_rff

Twenty noisy points, half of them in [0, 0.4]; a Matérn-1/2 force behind a first-order ODE. Hyperparameters come from
the exact model's marginal likelihood and are the same for all.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from ..dynamics._process import Process
from ..inference._collapsed import collapse
from ..inference._exact import ExactModel, condition
from ..inference._objectives import whole
from ..inference._prediction import predict
from ..inference._training import fit
from ..presets import build

RANGE = (0.0, 2.0)
INTERVALS = {"lfm-rff": None, "lfm-vfrf": (-1.0, 3.0), "lfm-driven": RANGE}


class Quality(NamedTuple):
    """Averages over 200 inputs: of `KL(exact || approximate)` of y's predictive, and of the smallest variance ratio."""

    name: str
    num_frequencies: int
    kl: float
    worst_variance_ratio: float  # the smallest share of the exact variance of f: small means starved


def data(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """20 points of `sin 2t + 0.4 cos 10t - 0.1` with noise of standard deviation 0.2, half of them in [0, 0.4]."""
    generator = np.random.default_rng(seed)
    t = np.concatenate([generator.uniform(0.0, 0.4, 10), generator.uniform(0.4, RANGE[1], 10)])
    return t, np.sin(2 * t) + 0.4 * np.cos(10 * t) - 0.1 + 0.2 * generator.standard_normal(20)


def exact_fit(t: np.ndarray, y: np.ndarray) -> ExactModel:
    """The exact model with the hyperparameters that maximise its marginal likelihood."""
    model = build("exact-lfm", t, y, nu=0.5, lengthscale=0.5, variance=1.0)
    return fit(model, t, y, steps=100, chunk=100, optimizer=optax.lbfgs()).model


def compare(seed: int = 0, sizes: tuple[int, ...] = (20, 80, 500)) -> list[Quality]:
    """Every family at every number of frequencies, in float64."""
    with jax.enable_x64(True):
        t, y = data(seed)
        exact = exact_fit(t, y)
        batch = whole(jnp.asarray(t)[:, None], jnp.asarray(y)[:, None])
        grid = jnp.linspace(*RANGE, 200)[:, None]
        mean, variance = condition(exact, batch.x, batch.y).moments(grid)
        rows = []
        for name, interval in INTERVALS.items():
            for size in sizes:
                model = build(name, t, y, nu=0.5, num_frequencies=size, interval=interval, likelihood=exact.likelihood)
                model = collapse(_with_process(model, exact.process), batch)
                prediction = predict(model, grid)
                noise = exact.likelihood.variance
                kl = _kl(mean, variance + noise, prediction.f_mean, prediction.f_variance + noise)
                ratio = jnp.min(prediction.f_variance / variance)
                rows.append(Quality(name, size, float(jnp.mean(kl)), float(ratio)))
        return rows


def _with_process(model, process: Process):
    """The shallow model with the exact one's process."""
    return eqx.tree_at(lambda m: m.layers[0].outputs.process, model, jax.tree.map(lambda leaf: leaf[None], process))


def _kl(m1: jax.Array, v1: jax.Array, m2: jax.Array, v2: jax.Array) -> jax.Array:
    """`KL(N(m1, v1) || N(m2, v2))` of each point."""
    return (jnp.log(v2 / v1) + (v1 + (m1 - m2) ** 2) / v2 - 1) / 2


def main() -> None:
    """Print the table, over five draws of the data."""
    rows = [compare(seed) for seed in range(5)]
    print("KL from the exact predictive (mean over 200 inputs and 5 draws), smallest share of the exact variance\n")
    print(f"{'model':<12}{'M':>5}{'KL':>12}{'variance':>12}")
    for group in zip(*rows, strict=True):
        kl, ratio = np.mean([row.kl for row in group]), np.mean([row.worst_variance_ratio for row in group])
        print(f"{group[0].name:<12}{group[0].num_frequencies:>5}{kl:>12.5f}{ratio:>12.3f}")


if __name__ == "__main__":
    main()

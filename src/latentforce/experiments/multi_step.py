"""The multi-step function (paper, `fig:synthetic` and `tab:iddgp-vs-dlfm-vfrf`), over many draws of the data.

    python -m latentforce.experiments.multi_step --draws 20 --out multi-step.json

All models see the same draws, so that their differences can be paired; all draws of a model are trained at once.
"""

import argparse
import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np
import optax

from ..datasets import LEVELS, multi_step
from ..depth._likelihoods import Gaussian
from ..dynamics._filters import FirstOrder
from ..inference._steps import adam
from ..presets import build
from ._together import judge, train_together

PAPER = {
    "num_frequencies": 20, "interval": (-0.5, 1.5), "lengthscale": 0.1, "variance": 0.1,
    "filter": FirstOrder(3.0, 0.1), "likelihood": Gaussian(0.01),
}  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """A model and how it is trained; where nothing is said, as in the paper (6000 steps of Adam at 0.01)."""

    name: str
    about: str
    options: dict[str, Any] = field(default_factory=dict)
    learning_rate: float = 0.01
    decay: bool = False  # along a cosine
    memory: float = 0.999  # of Adam for the size of gradients

    def optimizer(self, steps: int) -> optax.GradientTransformation:
        """Adam."""
        return adam(self.learning_rate, steps if self.decay else None, self.memory)

    def models(self, draws: list[tuple[np.ndarray, ...]]) -> list[Any]:
        """One model for each draw."""
        return [build(self.name, x, y, **{**PAPER, **self.options}) for x, y, *_ in draws]


DRIVEN = {"interval": (-0.1, 1.1)}
SETTINGS = {
    "lfm-vfrf": Setting("lfm-vfrf", "shallow, the paper's features"),
    "dgp": Setting("dgp", "deep GP, 41 inducing points, squared exponential", {"nu": None}),
    "dlfm-rff": Setting("dlfm-rff", "deep LFM, random features, squared exponential", {"nu": None}),
    "iddgp": Setting("iddgp", "deep GP, the paper's features"),
    "dlfm-vfrf": Setting("dlfm-vfrf", "the paper's model"),
    "dlfm-vfrf, bounded": Setting("dlfm-vfrf", "hidden inputs bent into the interval", {"bounded": True}),
    "dlfm-driven, M = 20": Setting("dlfm-driven", "driven, as many features as the paper", DRIVEN, decay=True),
    "dlfm-driven": Setting(
        "dlfm-driven", "driven, M = 160", {**DRIVEN, "num_frequencies": 160, "lengthscale": 0.05}, decay=True
    ),
    "dlfm-driven, sharp": Setting(
        "dlfm-driven",
        "driven, M = 160, larger steps",
        {**DRIVEN, "num_frequencies": 160, "lengthscale": 0.03},
        learning_rate=0.03,
        decay=True,
        memory=0.99,
    ),
    "dlfm-driven, three layers": Setting(
        "dlfm-driven", "driven, M = 80", {**DRIVEN, "num_frequencies": 80, "depth": 3}, decay=True
    ),
}


def run(setting: Setting, draws: list[tuple[np.ndarray, ...]], steps: int = 6000) -> dict[str, np.ndarray]:
    """Train and judge one model on all draws, in float64: test scores and the bound of the last 100 steps."""
    with jax.enable_x64(True):
        data = [(x, y) for x, y, *_ in draws]
        models, objective = train_together(setting.models(draws), data, setting.optimizer(steps), steps, 10)
        reached = judge(models, [(x, y) for *_, x, y in draws], 100)
    table = {name: np.asarray(value) for name, value in reached._asdict().items()}
    return table | {"objective": objective[:, -100:].mean(axis=1)}


def row(reached: dict[str, np.ndarray]) -> str:
    """Means over draws, and their standard errors."""

    def show(values: np.ndarray) -> str:
        return f"{values.mean():8.3f} ± {values.std(ddof=1) / len(values) ** 0.5:.3f}"

    parts = (show(reached["rmse"]), show(reached["nmll"]), f"{reached['coverage'].mean():6.1%}")
    return "   ".join((*parts, show(reached["objective"])))


def oracle(draws: list[tuple[np.ndarray, ...]]) -> float:
    """RMSE of one who knows the levels and, between the training points that enclose a jump, draws a straight line."""
    errors = []
    for x, _, x_test, y_test in draws:
        x = np.sort(x)
        mean = np.interp(x_test, x, LEVELS[(5 * x).astype(int)])
        errors.append(np.sqrt(np.mean((mean - y_test) ** 2)))
    return float(np.mean(errors))


def main() -> None:
    """Run the settings asked for and print a table with paired differences from the paper's model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=list(SETTINGS), choices=list(SETTINGS), metavar="MODEL")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    draws = [multi_step(seed) for seed in range(options.draws)]
    results: dict[str, Any] = {}
    record: dict[str, Any] = {"command": "python -m latentforce.experiments.multi_step", "steps": options.steps}
    record |= {"device": jax.devices()[0].device_kind, "oracle_rmse": oracle(draws), "result": results}
    print(f"{'model':<27}{'RMSE':>16}{'NMLL':>19}{'95 % band':>10}{'bound':>17}{'seconds':>9}")
    for name in options.models:
        start = time.perf_counter()
        reached = run(SETTINGS[name], draws, options.steps)
        seconds = time.perf_counter() - start
        print(f"{name:<27}{row(reached)}{seconds:>9.0f}", flush=True)
        results[name] = {"about": SETTINGS[name].about, "seconds": seconds}
        results[name] |= {key: value.tolist() for key, value in reached.items()}
        if options.out:
            options.out.write_text(json.dumps(record, indent=1) + "\n")
    print(f"{'levels known, lines between':<27}{record['oracle_rmse']:8.3f}")
    paired(results)


def paired(results: dict[str, Any], reference: str = "dlfm-vfrf") -> None:
    """Print each model's mean difference from the reference on the same draws, with its standard error."""
    if reference not in results:
        return
    print(f"\ndifference from {reference} on the same draws:")
    for name, row in results.items():
        if name != reference:
            parts = []
            for score in ("rmse", "nmll"):
                gap = np.asarray(row[score]) - np.asarray(results[reference][score])
                parts.append(f"{score} {gap.mean():+.3f} ± {gap.std(ddof=1) / len(gap) ** 0.5:.3f}")
            print(f"{name:<27}" + "   ".join(parts))


if __name__ == "__main__":
    main()

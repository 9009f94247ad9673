"""Do intervals cover what they say on data that the model itself has drawn?

    OPENBLAS_NUM_THREADS=1 python benchmarks/calibration.py --out benchmarks/results/calibration.json

Functions are drawn from the prior of a model (`start="prior"`, `lf.sample_functions`), noise of known variance is
added, and q is found for the training points with all hyperparameters held at the truth. Then it is counted how many
test points lie in their 50, 80 and 95 % intervals: noisy observations y, and the function f itself, which is the
harder test, for the noise of y is known and hides errors of f.

- shallow: `lfm-driven`, q in closed form (`lf.collapse`): the intervals should be right within sampling error.
- deep: `dlfm-driven` of two layers, q by `lf.fit`. Its q is Gaussian and independent between layers, the posterior is
  not, so some error is expected here and the table says how much.

Points of one data set are not independent: standard errors are over data sets.
"""

import argparse
import json
import platform
import time
from functools import partial
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

import latentforce as lf

LEVELS = (0.5, 0.8, 0.95)
TRAIN, TEST, NOISE = 60, 200, 0.01
TINY = 1.1e-6  # the noise of an interval for f: as little as the library takes


def draw(model: Any, seed: int) -> tuple[Array, Array, Array]:
    """Places scattered over [0, 1], noisy values there of one function from the prior, and that function's values."""
    places, function, noise = jax.random.split(jax.random.key(seed), 3)
    x = jax.random.uniform(places, (TRAIN + TEST, 1))
    f = lf.sample_functions(model, function, 1)(x)[0]
    return x, f + NOISE**0.5 * jax.random.normal(noise, f.shape), f


def shallow(frequencies: int) -> Any:
    """A latent force model whose outputs vary by about one."""
    ends = jnp.array([0.0, 1.0])
    return lf.build(
        "lfm-driven", ends, ends, num_frequencies=frequencies, filter=lf.FirstOrder(1.0, 0.1), lengthscale=0.2,
        variance=2.0, likelihood=lf.Gaussian(NOISE), start="prior",
    )  # fmt: skip


def deep() -> Any:
    """Two layers: the first bends time by about a tenth of its range."""
    ends = jnp.array([0.0, 1.0])
    model = lf.build(
        "dlfm-driven", ends, ends, num_frequencies=20, filter=lf.FirstOrder(1.0, 0.1), lengthscale=0.3,
        variance=2.0, interval=(-0.5, 1.5), likelihood=lf.Gaussian(NOISE), start="prior",
    )  # fmt: skip
    return eqx.tree_at(lambda m: m.layers[0].outputs.process.force.variance, model, replace_fn=lambda v: 0.01 + 0 * v)


def held_elbo(model: Any, batch: Any, key: Array) -> Array:
    """The bound with nothing but q to be trained: everything else gets no gradient."""

    def posteriors(m: Any) -> list[Any]:
        return [layer.posterior for layer in m.layers]

    held = eqx.tree_at(posteriors, jax.lax.stop_gradient(model), posteriors(model))
    return lf.elbo(held, batch, key, num_samples=5)


def collapsed(model: Any, x: Array, y: Array) -> Any:
    """The best q of one layer."""
    return lf.collapse(model, lf.whole(x, y))


def trained(model: Any, x: Array, y: Array, steps: int) -> Any:
    """q of all layers by Adam."""
    return lf.fit(model, x, y, steps=steps, objective=held_elbo, learning_rate=0.02, decay=True, chunk=500).model


def coverages(model: Any, infer: Any, sets: int) -> tuple[dict[str, np.ndarray], float]:
    """Shares (sets, levels) of test points inside their intervals; the mean variance of f in units of the noise's."""
    shares = {"y": np.empty((sets, len(LEVELS))), "f": np.empty((sets, len(LEVELS)))}
    variance = 0.0
    for seed in range(sets):
        x, y, f = draw(model, seed)
        prediction = lf.predict(infer(model, x[:TRAIN], y[:TRAIN]), x[TRAIN:], num_samples=200)
        bare = eqx.tree_at(lambda p: p.likelihood, prediction, lf.Gaussian(TINY))
        variance += float(jnp.mean(prediction.f_variance)) / NOISE / sets
        for k, level in enumerate(LEVELS):
            shares["y"][seed, k] = _inside(prediction.interval(level), y[TRAIN:])
            shares["f"][seed, k] = _inside(bare.interval(level), f[TRAIN:])
    return shares, variance


def _inside(interval: tuple[Array, Array], values: Array) -> float:
    low, high = interval
    return float(jnp.mean((low <= values) & (values <= high)))


def summarise(shares: np.ndarray) -> list[dict[str, float]]:
    """For each level: the mean, its standard error over data sets, and how many of these it is off."""
    rows = []
    for level, share in zip(LEVELS, shares.T, strict=True):
        mean, error = float(share.mean()), float(share.std(ddof=1) / len(share) ** 0.5)
        rows.append(
            {"level": level, "covered": mean, "standard_error": error, "off": (mean - level) / max(error, 1e-9)}
        )
    return rows


def main() -> None:
    """Draw, infer, count, print; write JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the numbers to this JSON file")
    parser.add_argument("--sets", type=int, default=40, help="data sets for shallow models")
    parser.add_argument("--deep-sets", type=int, default=20, help="data sets for the deep model")
    parser.add_argument("--steps", type=int, default=3000, help="training steps for the deep model")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    cases = {
        "shallow, 20 frequencies": (shallow(20), collapsed, options.sets),
        "shallow, 5 frequencies": (shallow(5), collapsed, options.sets),
        "deep": (deep(), partial(trained, steps=options.steps), options.deep_sets),
    }
    start, result = time.perf_counter(), {}
    print(f"{'model':<26}{'sets':>6}{'of':>4}{'interval':>10}{'covers':>9}{'s.e.':>8}{'off by s.e.':>13}")
    for name, (model, infer, sets) in cases.items():
        shares, variance = coverages(model, infer, sets)
        rows = {of: summarise(share) for of, share in shares.items()}
        result[name] = {"variance_of_f_over_noise": variance, "rows": rows}
        result[name]["shares"] = {of: share.tolist() for of, share in shares.items()}
        for of, row in [(kind, row) for kind in rows for row in rows[kind]]:
            numbers = f"{row['level']:>10.0%}{row['covered']:>9.1%}{row['standard_error']:>8.1%}{row['off']:>13.1f}"
            print(f"{name:<26}{sets:>6}{of:>4}{numbers}", flush=True)
        print(f"{name:<26}mean variance of f / noise: {variance:.2f}")
    if options.out:
        arguments = f"--sets {options.sets} --deep-sets {options.deep_sets} --steps {options.steps}"
        header = {"command": f"OPENBLAS_NUM_THREADS=1 python benchmarks/calibration.py {arguments}"}
        header |= {"jax": jax.__version__, "latentforce": lf.__version__, "machine": platform.machine()}
        settings = {"train": TRAIN, "test": TEST, "noise": NOISE, "seconds": round(time.perf_counter() - start)}
        options.out.write_text(json.dumps({**header, **settings, "result": result}, indent=1) + "\n")


if __name__ == "__main__":
    main()

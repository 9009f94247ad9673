"""Where the time of a training step goes: processor time of its parts, each compiled by itself in a loop.

    taskset -c 0 python benchmarks/parts.py --dtype float64

Processor time, because what else the machine does moves it little; on one core, so that no thread waits for another.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

import latentforce as lf
from latentforce._linalg import precise
from latentforce.bench._steps import SETTING, signal
from latentforce.inference._steps import Plan, adam, advance, assemble, begin
from latentforce.inference._training import default_objective

SIZES = ((350, 10, 20, 20), (1000, 5, 100, 3))  # rows, samples, frequencies, steps


def total(tree: Any) -> Array:
    """The sum of everything: so that nothing is left out by the compiler."""
    return sum((jnp.sum(leaf) for leaf in jax.tree.leaves(tree)), jnp.zeros(()))


def parts(rows: int, samples: int, frequencies: int, steps: int) -> dict[str, Callable[[], Any]]:
    """Functions that run each part `steps + 1` times."""
    x, y = signal(rows)
    model = lf.build("dlfm-driven", x, y, num_frequencies=frequencies, **SETTING)
    objective = default_objective(model, samples)
    plan = Plan(objective, adam(0.01, None, textbook=True), None, None, model.train_filters, steps)
    state, fixed = begin(model, plan)
    data, key = lf.whole(jnp.asarray(x)[:, None], jnp.asarray(y)[:, None]), jax.random.key(0)
    times = jnp.tile(data.x, (samples, 1))

    def last(free: Any) -> Any:
        return assemble(state._replace(free=free), fixed).layers[-1]

    def value(free: Any, key: Array) -> Array:
        return objective(assemble(state._replace(free=free), fixed), data, key)

    def marginals(free: Any, times: Array) -> Array:
        layer = last(free)
        mean, variance = layer.outputs.marginals(layer.features, layer.posterior, layer.inputs(times))
        return jnp.sum(mean) + jnp.sum(variance**2)

    def covariance(free: Any) -> Array:
        return jnp.sum(last(free).posterior.moments()[1] ** 2)

    loops = {
        "value and gradient": lambda free, key: total(jax.value_and_grad(value)(free, key)),
        "value": value,
        "means, variances, gradients, last layer": lambda free, _: total(
            jax.value_and_grad(marginals, argnums=(0, 1))(free, times)
        ),
        "means and variances, last layer": lambda free, _: marginals(free, times),
        "covariance of q and gradient, last layer": lambda free, _: total(jax.value_and_grad(covariance)(free)),
        "random numbers": lambda _, key: jnp.sum(jax.random.normal(key, (samples, rows))),
    }
    step = advance.lower(state, fixed, data, key, plan, 1_000_000).compile()
    found: dict[str, Callable[[], Any]] = {"whole step": lambda: step(state, fixed, data, key)}
    for name, part in loops.items():
        found[name] = repeated(part, state.free, key, steps + 1)
    return found


def repeated(part: Callable[[Any, Array], Array], free: Any, key: Array, num: int) -> Callable[[], Any]:
    """`part` again and again, each time with slightly other numbers."""

    def once(free: Any, i: Array) -> tuple[Any, None]:
        change = 1e-12 * part(free, jax.random.fold_in(key, i))
        return jax.tree.map(lambda leaf: leaf + change, free), None

    run = precise(lambda free: jax.lax.scan(once, free, jnp.arange(num))[0]).lower(free).compile()
    return lambda: run(free)


def main() -> None:
    """Measure in turn and print the least of several rounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", choices=("float64", "float32"), default="float64")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", options.dtype == "float64")
    for rows, samples, frequencies, steps in SIZES:
        runs = parts(rows, samples, frequencies, steps)
        taken: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(10):
            for name, run in runs.items():
                start = time.process_time()
                jax.block_until_ready(run())
                taken[name].append(1e3 * (time.process_time() - start) / (steps + 1))
        print(f"N = {rows}, S = {samples}, M = {frequencies}, {options.dtype}, milliseconds of processor time")
        for name, times in taken.items():
            print(f"  {name:<42}{np.min(times):>8.2f}", flush=True)


if __name__ == "__main__":
    main()

"""Trainings in processes of their own, with many devices or many of them: `python parallel.py eight|two CHECKPOINT`."""

import json
import os
import signal
import sys

import jax
import numpy as np

import latentforce as lf
from latentforce.inference._devices import Devices
from latentforce.inference._feeds import ReadAhead, held_rows, held_sums, total
from latentforce.inference._training import checked

GENERATOR = np.random.default_rng(0)
X = GENERATOR.uniform(size=(43, 2))
Y = np.sin(5 * X[:, 0]) + X[:, 1] ** 2
T, Z = X[:, 0], np.where(np.arange(43) % 7, Y, np.nan)
OPTIONS = {"steps": 6, "chunk": 3}


def deep():
    return lf.build("dgp-driven", X, Y, num_frequencies=2, width=1)


def shallow():
    return lf.build("gp-driven", T, Z, num_frequencies=2)


def sums(rows):
    return lf.compress(T[rows], Y[rows], (-0.1, 1.1), bins=3, degree=7)


def told(fitted):
    """All numbers of a training and its model."""
    model = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(fitted.model)])
    return [*fitted.history.objective, *fitted.history.gradient_norm, *model.tolist()]


def same(one, other):
    one, other = jax.tree.leaves(one), jax.tree.leaves(other)
    assert len(one) == len(other) > 0
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


def compare(objective, model, feed):
    """Value and gradient on one device, and on eight; returns the program for eight."""
    one, many = Devices.of(None), Devices.of("all")
    assert many.count == 8 and Devices.of(3).count == 3
    value = jax.jit(jax.value_and_grad(lambda model, data: objective(model, data, jax.random.key(1))))
    with many.together():
        placed = many.everywhere(model), feed(many).data
        assert len(jax.tree.leaves(placed[1])[0].sharding.device_set) == 8
        program = value.lower(*placed).compile()
    same(program(*placed), value(model, feed(one).data))
    return program


def eight(checkpoint):
    """Objectives, gradients and a training on eight devices; prints a program."""
    rows = checked(deep(), X, Y, np.linspace(0.0, 2.0, 43))

    def bound(*given):
        return lf.elbo(*given, num_samples=3)

    print(compare(bound, deep(), lambda devices: held_rows(devices, rows, np.float64, None, False)).as_text())
    compare(lf.collapsed_bound, shallow(), lambda devices: held_sums(devices, sums(slice(None))))
    feed, alone = (ReadAhead(lf.Batches((X, Y), 10), Devices.of(some), np.float64, 3) for some in ("all", None))
    stack, expected = feed.chunk(0), alone.chunk(0)
    assert stack.x.shape == (3, 16, 2) and len(stack.x.sharding.device_set) == 8
    same((stack.x[:, :10], stack.y[:, :10], stack.weight[:, :10]), (expected.x, expected.y, 1.6 * expected.weight))
    assert not stack.weight[:, 10:].any()
    drawn = OPTIONS | {"batch_size": 10}
    here, kept = told(lf.fit(shallow(), T, Z, **drawn)), drawn | {"checkpoint": checkpoint, "every": 3}
    lf.fit(shallow(), T, Z, **kept, devices=8, callback=lambda progress: True)  # half the way, the rest on one
    same(told(lf.fit(shallow(), T, Z, **kept, resume=True)), here)


def two(checkpoint):
    """A training in two processes, of which the first tells the result; then the second one dies in the midst of it."""
    processes = lf.distribute()
    assert processes.count == 2 and processes.index == int(os.environ["RANK"])
    own, kept = processes.share(43), OPTIONS | {"every": 3, "devices": "all"}
    same(total(Devices.of("all"), sums(own)), sums(slice(None)))
    fitted = lf.fit(deep(), X[own], Y[own], **kept)
    if processes.first:
        print(json.dumps(told(fitted)), flush=True)

    def die(progress):
        if progress.step == 3 and not processes.first:
            os.kill(os.getpid(), signal.SIGKILL)

    lf.fit(deep(), X[own], Y[own], **kept, checkpoint=checkpoint, callback=die)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_disable_most_optimizations", True)
    jax.config.update("jax_compilation_cache_dir", os.environ["JAX_COMPILATION_CACHE_DIR"])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    {"eight": eight, "two": two}[sys.argv[1]](sys.argv[2])

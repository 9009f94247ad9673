"""Trainings that are interrupted, killed and resumed end where they would have ended, to the bit."""

import os
import signal
import subprocess
import sys
import time

import jax
import numpy as np
import optax
import pytest

import latentforce as lf
from latentforce.files._format import ModelFileError, read

GENERATOR = np.random.default_rng(0)
X = np.sort(GENERATOR.uniform(0.0, 1.0, 30))
Y = np.sin(7 * X) + 0.1 * GENERATOR.standard_normal(30)


def start(name="gp-driven", **options):
    return lf.build(name, X, Y, num_frequencies=3, **options)


def same(one, other):
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


def stop_at(step):
    return lambda progress: progress.step >= step


STEPS = {"steps": 24, "chunk": 4}  # the same everywhere: they are part of the compiled program
SETTINGS = {
    "adam": {},
    "batches": {"batch_size": 10},
    "natural": {"natural": 0.1},
    "lbfgs": {"objective": lf.collapsed_bound, "optimizer": optax.lbfgs()},
    "held out": {"held_out": (X[::3], Y[::3]), "patience": 2, "learning_rate": 0.5, "decay": False},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_resumed_training_ends_where_it_would_have(name, tmp_path):
    options = {**STEPS, **SETTINGS[name]}
    whole = lf.fit(start(), X, Y, **options)
    kept = {"checkpoint": tmp_path / "run.ckpt", "every": 4}
    part = lf.fit(start(), X, Y, **options, **kept, callback=stop_at(8))
    assert part.history.stopped == "stopped by the callback"
    assert len(part.history.objective) == 8
    resumed = lf.fit(start(), X, Y, **options, **kept, resume=True)
    assert same(resumed.model, whole.model)
    assert resumed.history.objective == whole.history.objective
    assert resumed.history.gradient_norm == whole.history.gradient_norm
    assert resumed.history.steps == whole.history.steps
    assert resumed.history.held_out == whole.history.held_out
    assert resumed.history.stopped == whole.history.stopped
    assert all(same(a, b) for a, b in zip(resumed.history.parameters, whole.history.parameters, strict=True))
    again = lf.fit(start(), X, Y, **options, **kept, resume=True, callback=pytest.fail)  # nothing is left to do
    assert same(again.model, whole.model)


def test_filters_that_start_late_resume(tmp_path):
    options = {"steps": 20, "chunk": 5, "num_samples": 2}
    whole = lf.fit(start("dlfm-driven", train_filters=7), X, Y, **options)
    kept = {"checkpoint": tmp_path / "run.ckpt", "every": 5}
    lf.fit(start("dlfm-driven", train_filters=7), X, Y, **options, **kept, callback=stop_at(10))
    resumed = lf.fit(start("dlfm-driven", train_filters=7), X, Y, **options, **kept, resume=True)
    assert same(resumed.model, whole.model)


def test_every_so_many_steps(tmp_path):
    path, seen = tmp_path / "run.ckpt", []

    def look(progress):
        seen.append(read(path)[1]["history.steps"][-1] if path.exists() else 0)

    lf.fit(start(), X, Y, **STEPS, checkpoint=path, every=8, callback=look)
    assert seen == [0, 8, 8, 16, 16, 24]


def test_resume_without_a_file_begins(tmp_path):
    one = lf.fit(start(), X, Y, **STEPS, checkpoint=tmp_path / "run.ckpt", resume=True)
    assert same(one.model, lf.fit(start(), X, Y, **STEPS).model)


@pytest.mark.parametrize("change", [{"steps": 16}, {"seed": 1}, {"learning_rate": 0.01}, {"batch_size": 7}])
def test_another_training_is_refused(change, tmp_path):
    kept = {"checkpoint": tmp_path / "run.ckpt", "every": 4}
    lf.fit(start(), X, Y, **STEPS, **kept)
    before = kept["checkpoint"].read_bytes()
    with pytest.raises(ValueError, match=f"`resume`.*{next(iter(change))}"):
        lf.fit(start(), X, Y, **{**STEPS, **change}, **kept, resume=True)
    with pytest.raises(ValueError, match=r"`resume`.*data"):
        lf.fit(start(), X, Y + 1.0, **STEPS, **kept, resume=True)
    with pytest.raises(ValueError, match=r"`resume`.*model"):
        lf.fit(lf.build("gp-driven", X, Y, num_frequencies=4), X, Y, **STEPS, **kept, resume=True)
    assert kept["checkpoint"].read_bytes() == before


def test_bad_arguments(tmp_path):
    with pytest.raises(ValueError, match="`checkpoint`"):
        lf.fit(start(), X, Y, steps=4, resume=True)
    with pytest.raises(ValueError, match=r"`checkpoint`.*nowhere"):
        lf.fit(start(), X, Y, steps=4, checkpoint=tmp_path / "nowhere" / "run.ckpt")
    with pytest.raises(ValueError, match="`every`"):
        lf.fit(start(), X, Y, steps=4, checkpoint=tmp_path / "run.ckpt", every=0)
    path = tmp_path / "other.ckpt"
    path.write_bytes(b"something else")
    with pytest.raises(ModelFileError):
        lf.fit(start(), X, Y, steps=4, checkpoint=path, resume=True)


def test_a_full_disk_does_not_end_the_training(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(UserWarning, match="No space left"):
        fitted = lf.fit(start(), X, Y, **STEPS, checkpoint=tmp_path / "run.ckpt", every=4)
    assert len(fitted.history.objective) == STEPS["steps"]
    assert list(tmp_path.iterdir()) == []


SCRIPT = """
import os, sys, numpy as np, latentforce as lf
x = np.linspace(0.0, 1.0, 30)
tell = lambda progress: print(progress.step, flush=True)
for _ in sys.stdin:  # imported once; each training is a process of its own
    child = os.fork()
    if not child:
        options = dict(steps=10**6, chunk=20, checkpoint=sys.argv[1], every=20, resume=True, callback=tell)
        lf.fit(lf.build("ssgp", x, np.sin(7 * x), num_frequencies=3), x, np.sin(7 * x), **options)  # soon compiled
        os._exit(0)
    print("child", child, flush=True)
    print("ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def test_killed_twenty_times(tmp_path):
    """Kill -9 at random moments: the file is whole whenever there is one, and nothing that was told of is lost."""
    path, script = tmp_path / "run.ckpt", tmp_path / "train.py"
    script.write_text(SCRIPT)
    generator = np.random.default_rng(1)
    command = [sys.executable, script, path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        assert process.stdin is not None and process.stdout is not None
        for _ in range(20):
            process.stdin.write("go\n")
            lines = [process.stdout.readline(), process.stdout.readline()]  # its number, and the first steps
            child = int(next(line for line in lines if line.startswith("child")).split()[1])
            time.sleep(generator.uniform(0.0, 0.3))
            os.kill(child, signal.SIGKILL)
            while not lines[-1].startswith("ended"):
                lines.append(process.stdout.readline())
            assert lines[-1].split() == ["ended", str(-signal.SIGKILL)], "it ended by itself"
            done = max(int(line) for line in lines if line.strip().isdecimal())
            assert read(path)[1]["history.steps"][-1] >= done, "a step that was told of is lost"

"""Trainings on many devices, and in many processes, are those on one, to rounding."""

import functools
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import latentforce as lf
import parallel
from latentforce import cli
from latentforce.commands import fit as fit_command
from latentforce.estimators import _engine
from latentforce.inference._devices import Layout
from latentforce.inference._processes import Processes
from latentforce.inference._training import LOST, History


def start(case, checkpoint, **changes):
    command = [sys.executable, str(Path(parallel.__file__)), case, str(checkpoint)]
    environment = os.environ | {"JAX_NUM_CPU_DEVICES": "1"} | changes
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def test_eight_devices(tmp_path):
    process = start("eight", tmp_path / "run.ckpt", JAX_NUM_CPU_DEVICES="8")
    program, complaint = process.communicate(timeout=300)
    assert process.returncode == 0, complaint[-3000:]
    collectives = re.findall(r" (all-\w+|collective-\w+|reduce-scatter)(?:-start)?\(", program)
    assert collectives == ["all-reduce"]  # the bound and all gradients at once, and no rows


def test_two_processes_and_the_death_of_one(tmp_path, x64):
    """It ends by an error that says what to do, and that leads to the training that was meant."""
    checkpoint, options = tmp_path / "run.ckpt", parallel.OPTIONS
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    launcher = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2"}
    launched = [start("two", checkpoint, **launcher, RANK=rank) for rank in "01"]
    expected = parallel.told(lf.fit(parallel.deep(), parallel.X, parallel.Y, **options))
    (answer, complaint), (_, other) = (process.communicate(timeout=300) for process in launched)
    assert [process.returncode for process in launched] == [1, -9], complaint[-3000:] + other[-3000:]
    parallel.same(json.loads(re.findall(r"\[.*\]", answer.splitlines()[-1])[0]), expected)
    last = complaint.strip().splitlines()[-1]
    assert "TrainingError: Another process of this training has ended or cannot be reached, after step 3" in last
    assert f"started again with `resume=True`, to go on from {checkpoint}" in last
    resumed = lf.fit(parallel.deep(), parallel.X, parallel.Y, **options, checkpoint=checkpoint, resume=True)
    parallel.same(parallel.told(resumed), expected)


def test_rows_of_processes_are_found():
    layout = Layout(counts=(3, 1, 2), held=4, devices=4)
    rows, counted = layout.positions(jax.numpy.arange(6))
    assert rows[:6].tolist() == [0, 1, 2, 4, 8, 9]
    assert counted.tolist() == [True] * 6 + [False] * 2


@pytest.mark.parametrize("devices", [0, 2, True, "some"])
def test_bad_devices(devices):
    x = np.linspace(0.0, 1.0, 9)
    with pytest.raises(ValueError, match='`devices` must be None, "all" or a number from 1 to 1'):
        lf.fit(lf.build("lfm-driven", x, x, num_frequencies=2), x, x, devices=devices)


def test_exact_models_are_not_divided():
    x = np.linspace(0.0, 1.0, 9)
    with pytest.raises(ValueError, match="`devices` must be None for an exact model"):
        lf.fit(lf.build("exact-gp", x, x), x, x, devices=1)


TORCHRUN = {"MASTER_ADDR": "host", "MASTER_PORT": "1234", "RANK": "3", "WORLD_SIZE": "4"}


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, None),
        ({"SLURM_STEP_NUM_TASKS": "1"}, None),
        (TORCHRUN | {"WORLD_SIZE": "1"}, None),
        ({"SLURM_STEP_NUM_TASKS": "4"}, {}),
        ({"OMPI_COMM_WORLD_SIZE": "2"}, {}),
        (TORCHRUN, {"coordinator_address": "host:1234", "num_processes": 4, "process_id": 3}),
        (
            TORCHRUN | {"LOCAL_WORLD_SIZE": "2", "LOCAL_RANK": "1", "TORCHELASTIC_USE_AGENT_STORE": "True"},
            {"coordinator_address": "host:1235", "num_processes": 4, "process_id": 3, "local_device_ids": [1]},
        ),
    ],
)
def test_launchers(variables, expected, monkeypatch):
    seen = []
    monkeypatch.setattr(os, "environ", variables)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(jax.distributed, "initialize", lambda **given: seen.append(given))
    processes = lf.distribute(timeout=7)
    assert processes == (0, 1) and processes.first
    assert processes.share(10) == slice(0, 10)
    assert seen == ([] if expected is None else [expected | {"heartbeat_timeout_seconds": 7}])
    assert isinstance(sys.excepthook, functools.partial) == (expected is not None)


def test_the_first_process_answers_for_all(tmp_path, monkeypatch, capsys):
    """The others train too, write nothing and say nothing; one that fails does not wait for them."""
    table, out = tmp_path / "table.csv", tmp_path / "model.lforce"
    table.write_text("x,y\n" + "".join(f"{k},{k * k}\n" for k in range(9)))
    trained, left = [], []
    monkeypatch.setattr(fit_command, "distribute", lambda: Processes(1, 2))
    monkeypatch.setattr(fit_command, "abandon", lambda: left.append(True))
    monkeypatch.setattr(lf.LatentForceRegressor, "fit", lambda self, X, y: trained.append(self.devices))
    call = ["fit", str(table), "--target", "y", "--out", str(out), "--devices"]
    assert cli.main([*call, "all"]) == 0 and cli.main([*call, "4", "--json"]) == 0
    assert trained == ["all", 4] and not out.exists() and not left
    assert capsys.readouterr() == ("", "")
    assert cli.main([*call, "none"]) == 2
    table.unlink()
    assert cli.main([*call, "all"]) == 1 and left == [True]


def test_a_lost_process_is_no_reason_to_be_content(monkeypatch):
    """Where steps fail an estimator keeps what it has, with a warning; not where others are still to be restarted."""

    def lost(model, *_, **__):
        raise lf.TrainingError("lost", model, History(objective=[0.0], stopped=LOST))

    monkeypatch.setattr(_engine, "fit", lost)
    with pytest.raises(lf.TrainingError, match="lost"):
        lf.LatentForceRegressor("lfm-driven", num_frequencies=2).fit(np.linspace(0.0, 1.0, 9)[:, None], np.zeros(9))


def test_an_estimator_divides_its_rows():
    x = np.linspace(0.0, 1.0, 30)[:, None]
    one, divided = (
        lf.LatentForceRegressor("gp-driven", num_frequencies=3, steps=5, batch_size=8, devices=devices).fit(x, x[:, 0])
        for devices in (None, "all")
    )
    np.testing.assert_allclose(divided.predict(x), one.predict(x), rtol=1e-4, atol=1e-4)

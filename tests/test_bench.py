"""The command that measures: floors by hand, the record as text and as a file. Nothing is timed here."""

import json

import numpy as np
import pytest

import latentforce as lf
from latentforce import bench, cli
from latentforce.bench import _others, _record, _steps
from latentforce.bench._steps import Size, _floor, signal, sizes

RATES = {"flops": 1e9, "bytes": 1e9}
ROW = {"dtype": "float64", "N": 350, "S": 10, "M": 20, "published": 28, "goal": 2.5}
RECORD = {
    "machine": {"name": "abacus", "cores": 2, "jax": "0.10", "load": 0.5, "peers": None},
    "rates": {"float64": RATES},
    "steps": [
        ROW | {"model": "dlfm-driven", "seconds": 0.002, "flops_floor": 1e-3, "bytes_floor": 5e-4, "over_floor": 2.0},
        ROW | {"model": "gpytorch DeepGP", "seconds": 0.02, "over_ours": {"dlfm-driven": 10.0}},
    ],
    "prediction": [
        {"model": "dlfm-driven", "dtype": "float64", "M": 20, "rows": 7, "samples": 100, "points_a_second": 12345.6}
    ],
    "together": {"model": "dlfm-driven", "seeds": 20, "one": 0.001, "all": 0.0025, "ratio": 2.5},
    "start": {"first": {"import": 1.0, "build": 0.5, "fit": 4.0}},
}


def test_floor_by_hand(x64):
    """Three triangular products, and six passes, for 10 and 20 rows of 2 * 3 + 1 + 2 + 1 features."""
    x, y = signal(10)
    model = lf.build("dlfm-driven", x, y, num_frequencies=3, nu=1.5)
    floor = _floor(model, Size("float64", 10, 2, 3, 0, 0), 1.0, RATES)
    assert floor["flops"] == 3 * 30 * 10 * 11
    assert floor["bytes"] == 6 * 30 * 10 * 8
    assert floor["over_floor"] == pytest.approx(1e9 / (6 * 30 * 10 * 8))


def test_floor_of_polynomials_by_hand(x64):
    """17 modes of 33 features, the mean and one transient of degree 16, and squares of degree 32: 8 waves are taken at
    once, which makes 3 + 3 + 5 sums.
    """
    x, y = signal(10)
    model = lf.build("dlfm-vfrf", x, y, num_frequencies=16, nu=1.5)
    floor = _floor(model, Size("float64", 10, 2, 16, 0, 0), 1.0, RATES)
    assert floor["flops"] == 3 * (30 * 8 * 8 * 11 + 2 * 33**3)
    assert floor["bytes"] == 6 * 30 * 2 * (8 + 11) * 8


def test_sizes_are_those_of_the_device():
    assert {size.N for size in sizes("gpu", quick=False)} == {7000}
    assert [size.M for size in sizes("cpu", quick=False)] == [20, 100]
    assert len(sizes("cpu", quick=True)) == 1


def test_rounds_alternate_and_the_first_is_left_out():
    calls = []

    def timer(name):
        return lambda: calls.append(name) or float(len(calls))

    seconds = _steps._in_turn({"a": timer("a"), "b": timer("b")}, 2, "float32")
    assert calls == ["a", "b"] * 3
    assert seconds == {"a": [3.0, 5.0], "b": [4.0, 6.0]}


def test_text_has_times_floors_and_ratios():
    text = bench.text(RECORD)
    for piece in ("abacus, 2 cores", "not installed", "10.0 x dlfm-driven", "12,346", "2.50 times"):
        assert piece in text
    (line,) = (line for line in text.splitlines() if line.startswith("dlfm-driven") and "28" in line)
    assert line.split() == ["dlfm-driven", "float64", "350", "10", "20", "2", "2.5", "28", "1", "0.5", "2"]


def test_the_command_writes_its_record(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(bench, "measure", lambda *_: RECORD)
    out = tmp_path / "bench.json"
    assert cli.main(["bench", "--quick", "--out", str(out)]) == 0
    assert json.loads(out.read_text()) == {"command": "latentforce bench"} | RECORD
    assert "abacus" in capsys.readouterr().out
    assert cli.main(["bench", "--quick", "--out", str(out)]) == 1
    assert "there already" in capsys.readouterr().err


def test_only_the_parts_that_are_asked_for(monkeypatch):
    monkeypatch.setattr(_record._machine, "rates", lambda *_: RATES)
    monkeypatch.setattr(_others, "together", lambda quick: {"ratio": 2.0})
    told = []
    record = bench.measure(True, ["together"], tell=told.append)
    assert set(record) == {"machine", "quick", "rates", "together"}
    assert "many models in one program" in told


def test_unknown_part(capsys):
    assert cli.main(["bench", "--parts", "speed"]) == 2
    assert "--parts" in capsys.readouterr().err


def test_a_first_fit_that_fails_says_so(monkeypatch):
    monkeypatch.setattr(_others, "FIRST_FIT", "raise ValueError('no luck')")
    with pytest.raises(RuntimeError, match="no luck"):
        _others._start({})


def test_signal_has_all_levels():
    x, y = signal(1000)
    assert x.shape == y.shape == (1000,)
    assert len(np.unique(np.round(y, 1))) >= 4

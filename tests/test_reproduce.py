"""Sweeps as such: they are kept as they come, go on where they stopped, and run wherever joblib sends them."""

import json
import re
import subprocess
import sys

import jax
import joblib
import numpy as np
import pytest
from matplotlib.figure import Figure

import latentforce as lf
from latentforce import cli
from latentforce.datasets import LEVELS, multi_step
from latentforce.experiments import EXPERIMENTS, _sweep, _together, multistep, uci
from latentforce.experiments._sweep import Measured, Page, Setup, SweepError, plain, reproduce
from latentforce.experiments._together import judge
from latentforce.inference._prediction import mixed
from latentforce.inference._scores import scores


class Squares:
    """An experiment that needs no time."""

    def __init__(self, broken=()):
        self.broken, self.seen = broken, []

    def cells(self, setup):
        return [{"number": n} for n in range(setup.seeds or 4)]

    def measure(self, cell, data):
        self.seen.append(cell["number"])
        if cell["number"] in self.broken:
            raise ZeroDivisionError("no such number")
        return {"square": np.float64(cell["number"] ** 2), "data": None if data is None else data.name}

    def present(self, results):
        figure = Figure()
        figure.subplots().plot([row.result["square"] for row in results])
        return Page("squares: " + ", ".join(str(row.result["square"]) for row in results), {"curve": figure})


@pytest.fixture
def squares(monkeypatch):
    def use(**options):
        experiment = Squares(**options)
        monkeypatch.setattr(_sweep, "load", lambda name: experiment)
        return experiment

    return use


def test_results_are_kept_and_presented(squares, tmp_path):
    squares()
    page = reproduce("cube", Setup(data=tmp_path / "numbers"), tmp_path / "out", shown=False)
    assert page.text == "squares: 0.0, 1.0, 4.0, 9.0"
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "cube.json", "cube.md", "cube-curve.png", "cube-curve.pdf",
    }  # fmt: skip
    record = json.loads((tmp_path / "out" / "cube.json").read_text())
    assert record["command"] == "latentforce reproduce cube" and record["labels"] == ["fig:model-comparison"]
    assert [row["cell"]["number"] for row in record["cells"]] == [0, 1, 2, 3]
    assert record["cells"][2]["result"] == {"square": 4.0, "data": "numbers"}
    assert record["cells"][0]["seconds"] >= 0 and {"jax", "latentforce"} <= set(record["cells"][0]["versions"])


def test_a_failure_costs_one_cell_and_the_rest_is_not_done_again(squares, tmp_path):
    squares(broken=[2])
    with pytest.raises(
        SweepError, match=r"1 of 4 cells of 'cube' failed; .*number 2: ZeroDivisionError: no such number"
    ):
        reproduce("cube", Setup(), tmp_path, shown=False)
    assert (tmp_path / "cube.md").read_text() == "squares: 0.0, 1.0, 9.0\n"
    mended = squares()
    assert reproduce("cube", Setup(), tmp_path, shown=False).text == "squares: 0.0, 1.0, 4.0, 9.0"
    assert mended.seen == [2]
    once_more = squares()
    reproduce("cube", Setup(), tmp_path, again=True, shown=False)
    assert once_more.seen == [0, 1, 2, 3]
    fewer = squares()
    assert reproduce("cube", Setup(seeds=2), tmp_path, shown=False).text == "squares: 0.0, 1.0" and not fewer.seen


def test_a_part_of_a_sweep(squares, tmp_path):
    experiment = squares()
    assert reproduce("cube", Setup(), tmp_path, only=[("number", "2")], shown=False).text == "squares: 4.0"
    assert reproduce("cube", Setup(), tmp_path, only=[("number", "0")], shown=False).text == "squares: 0.0, 4.0"
    assert experiment.seen == [2, 0]
    with pytest.raises(ValueError, match=r"`only` must name `number` one of 0, 1, 2, 3; got number=7\."):
        reproduce("cube", Setup(), tmp_path, only=[("number", "7")], shown=False)
    with pytest.raises(ValueError, match=r"`only` must name one of number; got size=7\."):
        reproduce("cube", Setup(), tmp_path, only=[("size", "7")], shown=False)


def test_parts_of_lists():
    cells = [{"seeds": [0, 1], "depth": 2}, {"seeds": [2, 3], "depth": 1}]
    assert _sweep._matching(cells, [("seeds", "3")]) == cells[1:]
    assert _sweep._matching(cells, [("depth", "1"), ("depth", "2"), ("seeds", "0")]) == cells[:1]
    assert _sweep._matching(cells, []) == cells
    with pytest.raises(ValueError, match="none has seeds=3 depth=2"):
        _sweep._matching(cells, [("seeds", "3"), ("depth", "2")])


def test_quick_results_have_a_file_of_their_own(squares, tmp_path):
    squares()
    reproduce("cube", Setup(quick=True), tmp_path, shown=False)
    assert (tmp_path / "cube-quick.json").exists() and not (tmp_path / "cube.json").exists()


def test_another_files_results_are_refused(squares, tmp_path):
    squares()
    (tmp_path / "cube.json").write_text("{}")
    with pytest.raises(ValueError, match=r"cube.json` must hold the results of an earlier run, got KeyError"):
        reproduce("cube", Setup(), tmp_path, shown=False)
    assert (tmp_path / "cube.json").read_text() == "{}"


def test_an_interrupted_sweep_keeps_what_is_done(squares, tmp_path):
    experiment = squares()
    measure = experiment.measure

    def stop(cell, data):
        if cell["number"] == 2:
            raise KeyboardInterrupt
        return measure(cell, data)

    experiment.measure = stop
    with pytest.raises(KeyboardInterrupt):
        reproduce("cube", Setup(), tmp_path, shown=False)
    assert len(json.loads((tmp_path / "cube.json").read_text())["cells"]) == 2


CLUSTER = """
import sys, joblib
from pathlib import Path
from distributed import Client, LocalCluster
from latentforce.experiments._sweep import Setup, reproduce

if __name__ == "__main__":
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        with joblib.parallel_config("dask"):
            page = reproduce("cube", Setup(), Path(sys.argv[1]), None, shown=False)
    print(page.text)
"""


def test_a_dask_cluster_does_the_work(tmp_path):
    """In a process of its own: a cluster leaves threads and sockets behind."""
    (tmp_path / "cluster.py").write_text(CLUSTER)
    command = [sys.executable, str(tmp_path / "cluster.py"), str(tmp_path / "out")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    assert "dlfm-vfrf" in run.stdout
    assert json.loads((tmp_path / "out" / "cube.json").read_text())["cells"]


def test_plain_numbers():
    value = plain({"a": np.array([1.0 / 3, np.nan, np.inf]), "b": (np.int64(3), "text", None, True)})
    assert value == {"a": [0.333333, None, None], "b": [3, "text", None, True]}


def test_command_line(tmp_path, capsys):
    assert cli.main(["reproduce", "list", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["experiments"]) == set(EXPERIMENTS)
    assert cli.main(["reproduce", "cube", "--out", str(tmp_path)]) == 0
    assert f"figures are in {tmp_path}" in capsys.readouterr().out
    assert (tmp_path / "cube.json").exists()
    assert cli.main(["reproduce", "cube", "--out", str(tmp_path), "--only", "number"]) == 2
    assert "must be KEY=VALUE, got 'number'" in capsys.readouterr().err
    assert cli.main(["reproduce", "cube", "--out", str(tmp_path), "--only", "number=1"]) == 1
    assert "got number=1" in capsys.readouterr().err
    assert cli.main(["reproduce", "square", "--out", str(tmp_path)]) == 2
    assert "square" in capsys.readouterr().err


def test_jobs_in_other_processes(tmp_path):
    """Two at a time; both give what one would have given alone."""
    page = reproduce("cube", Setup(), tmp_path / "two", 2, shown=False)
    assert page.text == reproduce("cube", Setup(), tmp_path / "one", 1, shown=False).text
    joblib.externals.loky.get_reusable_executor().shutdown(wait=True)


def test_multistep_small():
    cell = {"model": "dlfm-driven, M = 20", "draws": 2, "steps": 3}
    result = plain(multistep.measure(cell))
    assert len(result["rmse"]) == len(result["nmll"]) == 2
    assert np.isfinite(result["picture"]["hidden_draws"]).all()
    page = multistep.present([Measured(cell, result)])
    assert "0.0" in page.text and len(page.figures["posteriors"].axes) == 1
    other = Measured(cell | {"model": "dlfm-vfrf"}, result | {"rmse": [1.0, 3.0], "nmll": [0.0, 0.0]})
    page = multistep.present([Measured(cell, result), other])
    assert "`dlfm-driven, M = 20` is better in RMSE" in page.text
    assert "| 2.000 ± 1.414 " in page.text and "0.095 ± 0.010" in page.text


def test_multistep_straight_line():
    """By hand: between the training points that enclose it, each test point takes the share of the way that it is."""
    x, _, test, y = multi_step(4)
    squares = []
    for at, value in zip(test, y, strict=True):
        before, after = max(x[x <= at], default=min(x)), min(x[x > at], default=max(x))
        low, high = (LEVELS[int(5 * end)] for end in (before, after))
        squares.append((low + (high - low) * (at - before) / ((after - before) or 1.0) - value) ** 2)
    assert multistep.straight(5)[4] == pytest.approx(np.mean(squares) ** 0.5)


def test_uci_cells(tmp_path):
    full = uci.cells(Setup())
    assert {cell["set"] for cell in full} == set(uci.BUILT_IN) and {cell["depth"] for cell in full} == {1, 2, 3}
    assert {cell["model"] for cell in full} == {*uci.SETTINGS, uci.PEER} - {uci.WIDE}  # the built-in sets are small
    with pytest.raises(ValueError, match=r"`data` must be a folder with boston\.csv\.gz"):
        uci.cells(Setup(data=_sweep.Path("nowhere")))
    for name in ("power", "yacht"):
        (tmp_path / f"{name}.csv.gz").touch()
    extra = [cell for cell in uci.cells(Setup(data=tmp_path)) if cell["model"] == uci.WIDE]
    assert {(cell["set"], cell["depth"]) for cell in extra} == {("power", 2)} and len(extra) == 2


def test_uci_takes_what_estimators_choose_for_few_rows():
    x, y = uci.load("friedman", None, 400)
    ours = uci.SETTINGS["ours"]
    assert ours.effort_on(x, 4000) == ours.effort_on(np.tile(x, (5, 1)), 4000) == (2000, 4)
    assert ours.effort_on(np.tile(x, (6, 1)), 4000) == (8000, 1)
    many = np.tile(x, (6, 1))
    assert uci.SETTINGS[uci.WIDE].effort_on(many, 4000) == (2000, 4)
    found = [uci.SETTINGS[name].choices(many).directions for name in ("ours", uci.WIDE)]
    assert found == [16, 32] and uci.SETTINGS[uci.WIDE].choices(np.tile(x, (6, 2))).directions == uci.WIDEST
    assert [ours.build(x, y, 1, M).layers[0].features.num_frequencies for M in (3, 20)] == [3, 10]


@pytest.mark.parametrize(("model", "mirrored"), [("ours", True), (uci.WIDE, True), ("dlfm-vfrf", False)])
def test_the_papers_models_keep_independent_draws(model, mirrored, monkeypatch):
    def train(*_, **options):
        assert options["mirrored"] == mirrored
        raise InterruptedError

    monkeypatch.setattr(uci, "train_together", train)
    cell = {"set": "friedman", "model": model, "depth": 2, "seeds": [0], "steps": 10, "frequencies": 2, "rows": 60}
    with pytest.raises(InterruptedError):
        uci.measure(cell, None)


def test_uci_splits():
    x, y = uci.load("friedman", None)
    one, other = uci.split(x, y, 0), uci.split(x, y, 1)
    assert one.train[0].shape == (900, 8) and one.test[1].shape == (100,)
    assert one.train[0].min() == 0 and one.train[0].max() == pytest.approx(3)
    assert one.train[1].std() == pytest.approx(1) and not np.array_equal(one.test[1], other.test[1])
    together = np.sort(np.concatenate([one.train[1], one.test[1]]))
    np.testing.assert_allclose(together * one.scale + np.mean(y) - np.mean(together * one.scale), np.sort(y))


def test_uci_small(tmp_path):
    cell = {"set": "friedman", "model": "ours", "depth": 2, "seeds": [0, 1], "steps": 2, "frequencies": 3, "rows": 60}
    result = plain(uci.measure(cell, None))
    assert all(np.isfinite(result[score]).all() and len(result[score]) == 2 for score in ("rmse", "nmll", "bound"))
    names = ("iddgp", "dlfm-vfrf", "ours")
    worse = [result | {"rmse": [9.0 - i, 9.0 - i], "nmll": [1.0 * i, 2.0 * i]} for i in range(3)]
    rows = [
        Measured(cell | {"set": one, "model": name}, numbers)
        for one in ("a", "b", "c")
        for name, numbers in zip(names, worse, strict=True)
    ]
    page = uci.present(rows)
    all_three = "**a**, **b**, **c**"
    claim = f"by RMSE on 3 of 3 ({all_three}); by NMLL on 0 of 3 (none), behind on {all_three}."
    assert f"`ours-2` before `dlfm-vfrf-2` {claim}" in page.text
    assert "where their ranks are 1.91 apart" in page.text  # Demšar's table: q = 2.343 for three models
    assert [len(page.figures[score].axes) for score in ("rmse", "nmll")] == [3, 3]
    assert uci.present(rows[:1]).text


def test_uci_says_which_differences_are_clear():
    """Bold where the mean of the paired differences is more than two standard errors from 0."""

    def pair(*less):
        return {"seeds": [0, 1], "rmse": [1.0, 1.0], "nmll": [1.0, 1.0]}, {
            "seeds": [0, 1], "rmse": [1.0 + part for part in less], "nmll": [1.0 - part for part in less],
        }  # fmt: skip

    sets = {"clear": pair(0.2, 0.4), "unclear": pair(0.1, 0.4)}  # 3.0 and 1.7 standard errors
    found = {one: dict(zip(("ours-2", "dlfm-vfrf-2"), both, strict=True)) for one, both in sets.items()}
    said = "by RMSE on 2 of 2 (**clear**, unclear); by NMLL on 0 of 2 (none), behind on **clear**."
    assert said in uci.verdict(found)
    first = {
        one: {name: {key: part[:1] for key, part in row.items()} for name, row in both.items()}
        for one, both in found.items()
    }
    one_split_tells_nothing = "by RMSE on 2 of 2 (clear, unclear); by NMLL on 0 of 2 (none)."
    assert one_split_tells_nothing in uci.verdict(first)


def test_uci_models_are_compared_on_the_splits_that_they_share():
    def row(name, model, seeds, score):
        cell = {"set": name, "model": model, "depth": 2, "seeds": seeds}
        return Measured(cell, {"rmse": [score + seed for seed in seeds], "nmll": [score + seed for seed in seeds]})

    sets = ("boston", "energy", "yacht")
    rows = [
        row(name, *model) for name in sets for model in (("ours", [3, 9], 1), ("dgp", [0, 1, 3], 2), ("iddgp", [3], 3))
    ]
    rows += [row(name, "ours", [0], 1) for name in sets]
    found = uci.gather(rows)
    assert found["boston"]["ours-2"] == {"seeds": [0, 3, 9], "rmse": [1, 4, 10], "nmll": [1, 4, 10]}
    assert np.mean(found["boston"]["ours-2"]["rmse"]) > np.mean(found["boston"]["dgp-2"]["rmse"])  # by harder splits
    ranked = re.findall(r"^\| (\S+-2) +\| (\S+)", uci.ranks(found), re.MULTILINE)
    assert ranked == [("ours-2", "1.000"), ("dgp-2", "2.000"), ("iddgp-2", "3.000")]
    for name in sets:
        found[name]["dgp-2"] |= {"seeds": [7, 8, 9]}
    assert not uci.ranks(found)


def test_models_are_judged_in_blocks_of_rows(monkeypatch, x64):
    rng = np.random.default_rng(0)
    x, y = rng.uniform(size=(23, 2)), rng.standard_normal(23)
    members = [lf.build("dlfm-driven", x, y, num_frequencies=3, directions=3, seed=seed) for seed in (0, 1)]
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *members)
    monkeypatch.setattr(_together, "BLOCK", 7)
    found = judge(stacked, [(x, y)], 5, members=2)
    wanted = scores(mixed([lf.predict(member, x, num_samples=5) for member in members]), y[:, None])
    for name in ("rmse", "nmll", "coverage"):
        np.testing.assert_allclose(getattr(found, name)[0], getattr(wanted, name), rtol=1e-10)

"""The command line: from a data file to predictions, and what it says when something is wrong."""

import contextlib
import errno
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import polars as pl
import pytest

import latentforce as lf
from latentforce import cli, demo
from latentforce.commands import _interrupts, _outputs, fit, report
from latentforce.estimators._regressor import LatentForceRegressor
from latentforce.files import _format
from latentforce.files._atomic import atomic
from latentforce.inference._scores import Scores

NUM = 40
GENERATOR = np.random.default_rng(0)
TIMES = np.arange(NUM) / 4
LEVEL = 5 + 3 * np.sin(TIMES) + 0.1 * GENERATOR.standard_normal(NUM)
DAYS = pl.date_range(pl.date(2024, 1, 1), pl.date(2024, 2, 9), eager=True)
DATA = pl.DataFrame({"day": DAYS, "level": LEVEL})
SMALL = ("--model", "lfm-rff", "--frequencies", "4", "--steps", "10")  # little to compile
QUICK = ("--model", "ssgp", "--frequencies", "3")


@pytest.fixture(autouse=True)
def as_users_have_it(monkeypatch, tmp_path):
    """JAX's own rules for mixed dtypes and shapes, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """With `tide.csv`, a model of it in `tide.lforce`, and what was said in `said`."""
    folder = tmp_path_factory.mktemp("tide")
    DATA.with_columns(level=pl.when(pl.int_range(NUM) == 7).then(None).otherwise("level")).write_csv(
        folder / "tide.csv"
    )
    said = io.StringIO()
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"), contextlib.redirect_stdout(said):
        out = ("--out", str(folder / "tide.lforce"))
        assert cli.main(["fit", str(folder / "tide.csv"), "--target", "level", *SMALL, *out]) == 0
    (folder / "said").write_text(said.getvalue())
    return folder


@pytest.fixture
def model(folder):
    return str(folder / "tide.lforce")


@pytest.fixture
def data(folder):
    return str(folder / "tide.csv")


@pytest.fixture
def untrained(monkeypatch, model):
    """No training: every regressor becomes the one in the file. Gives what it was made with."""
    made = []

    def become(self, X, y):
        made.append(self.get_params())
        vars(self).update({name: value for name, value in vars(lf.load(model)).items() if name.endswith("_")})

    monkeypatch.setattr(LatentForceRegressor, "fit", become)
    return made


def called(capsys, *arguments):
    """Exit code, standard output and standard error."""
    code = cli.main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def answer(capsys, *arguments):
    code, out, err = called(capsys, *arguments, "--json")
    assert code == 0 and err == "", out
    return json.loads(out)


def refused(capsys, *arguments, code=1):
    """The one line of the error; as JSON it is the same."""
    found, out, err = called(capsys, *arguments)
    assert found == code and out == "" and err.startswith("latentforce: ") and err.count("\n") == 1
    found, out, silent = called(capsys, *arguments, "--json")
    assert found == code and silent == ""
    assert json.loads(out) == {"error": err.removeprefix("latentforce: ").removesuffix("\n")}
    return err


def test_fit_says_what_it_did(folder):
    said = (folder / "said").read_text()
    for part in (
        "lfm-rff",
        "decay rate",
        f"1 of {NUM} rows have no target",
        f"model is in {folder / 'tide.lforce'}",
    ):
        assert part in said
    estimator = lf.load(folder / "tide.lforce")
    assert estimator.record_["rows"] == NUM - 1 and estimator.record_["targets"] == ["level"]
    assert estimator.n_iter_ == 10 and estimator.choices_.num_frequencies == 4


def test_predict(capsys, model, data, tmp_path):
    code, out, err = called(capsys, "predict", model, data)
    assert code == 0 and err == ""
    table = pl.read_csv(out.encode(), try_parse_dates=True)
    assert table.columns == ["day", "level", "level_std", "level_lower", "level_upper"]
    assert table["day"].equals(DAYS)
    mean, std = lf.load(model).predict(DATA.select("day"), return_std=True)
    np.testing.assert_allclose(table["level"], mean, rtol=1e-6)
    np.testing.assert_allclose(table["level_upper"], mean + 1.6448536 * std, rtol=1e-4)
    assert max(len(cell) for cell in out.split("\n")[1].split(",")[1:]) <= 9  # seven digits, a point and a sign

    DATA.select(pl.lit("x").alias("note"), "level", "day").write_parquet("other.parquet")  # other order, more columns
    file = ("--out", "out.parquet")
    assert answer(capsys, "predict", model, "other.parquet", "--coverage", "0.5", *file)["rows"] == NUM
    half = pl.read_parquet("out.parquet")
    np.testing.assert_allclose(half["level"], mean, rtol=1e-12)
    np.testing.assert_allclose(half["level_upper"], mean + 0.6744898 * std, rtol=1e-4)
    assert "out.parquet is there already: give --force" in refused(capsys, "predict", model, data, *file)
    assert called(capsys, "predict", model, data, *file, "--force")[0] == 0
    columns = answer(capsys, "predict", model, data)["columns"]
    assert columns["day"][0] == "2024-01-01" and len(columns["level_std"]) == NUM


def test_predict_far_away_warns_once(capsys, model):
    pl.DataFrame({"day": ["2030-01-01"]}).write_csv("later.csv")
    code, out, err = called(capsys, "predict", model, "later.csv")
    assert code == 0 and out.count("\n") == 2
    assert err.startswith("latentforce: warning: ") and err.count("\n") == 1 and "outside the range" in err
    assert "outside the range" in answer(capsys, "predict", model, "later.csv")["warnings"][0]


def test_data_that_do_not_fit_the_model(capsys, model):
    DATA.select("level").write_csv("data.csv")
    assert "data.csv: it has no column 'day'; it has 'level'" in refused(capsys, "predict", model, "data.csv")
    Path("data.csv").write_text("day,x\n2024-01-01,1\n,2\n")
    assert "column 'day' is empty in row 2" in refused(capsys, "predict", model, "data.csv")
    assert "no column 'level'" in refused(capsys, "evaluate", model, "data.csv")
    Path("data.csv").write_text("day\nsoon\nlater\n")
    assert "column 'day'" in refused(capsys, "predict", model, "data.csv")


def test_a_model_of_plain_arrays(capsys, data):
    """Trained in Python on matrices, its columns are x0, x1, ..., as those of a .npy file are."""
    x = TIMES[:, None]
    lf.LatentForceRegressor("lfm-rff", num_frequencies=4, steps=10).fit(x, LEVEL).save("plain.lforce")
    np.save("rows.npy", x[:5])
    said = answer(capsys, "predict", "plain.lforce", "rows.npy")
    assert list(said["columns"])[:2] == ["x0", "y"] and said["warnings"] == []
    assert "no column 'x0'" in refused(capsys, "predict", "plain.lforce", data)


def test_evaluate(capsys, model, data):
    found = answer(capsys, "evaluate", model, data)
    kept = DATA.filter(pl.int_range(NUM) != 7)
    estimator = lf.load(model)
    mean = estimator.predict(kept.select("day"))
    level = found["targets"]["level"]
    assert found["rows"] == NUM - 1 and found["dropped"] == 1
    np.testing.assert_allclose(level["rmse"], np.sqrt(np.mean((mean - kept["level"].to_numpy()) ** 2)))
    np.testing.assert_allclose(level["mae"], np.mean(np.abs(mean - kept["level"].to_numpy())))
    np.testing.assert_allclose(level["r2"], estimator.score(kept.select("day"), kept["level"]))
    np.testing.assert_allclose(found["nmll"], -estimator.log_score(kept.select("day"), kept["level"]))
    low, high = estimator.predict_interval(kept.select("day"), 0.8).T
    assert level["coverage_80"] == np.mean((low <= kept["level"].to_numpy()) & (kept["level"].to_numpy() <= high))
    code, out, _ = called(capsys, "evaluate", model, data)
    assert code == 0 and f"rows {NUM - 1}, NMLL" in out and "in 95% band" in out


def test_force(capsys, model):
    said = answer(capsys, "force", model, "--points", 5)
    columns = said["columns"]
    assert len(said["warnings"]) == 1 and "the ODE was learned" in said["warnings"][0]
    assert columns["time"][0].startswith("2024-01-01") and columns["time"][-1].startswith("2024-02-09")
    times = np.asarray(columns["time"], "datetime64[us]")
    mean, std = lf.load(model).predict_force(times, return_std=True)
    np.testing.assert_allclose(columns["mean"], mean)
    np.testing.assert_allclose(columns["lower"], mean - 1.6448536 * std, rtol=1e-6)
    assert "`layer` must lie between 0 and 0, got 3" in refused(capsys, "force", model, "--layer", 3)
    assert called(capsys, "force", model, "--out", "force.npz")[0] == 0
    assert np.load("force.npz")["std"].shape == (200,)
    estimator = lf.load(model)
    for options, words in (({"train_filters": None}, []), ({"model": "gp-driven"}, ["the model has no ODE"])):
        estimator.set_params(train_filters=0, model="lfm-driven").set_params(**options).save("other.lforce")
        warned = answer(capsys, "force", "other.lforce", "--points", 3)["warnings"]
        assert len(warned) == len(words) and all(word in text for word, text in zip(words, warned, strict=True))


def test_a_known_ode_is_kept(capsys, untrained, data):
    options = ("--target", "level", "--out", "known.lforce", "--ode", 2)
    assert called(capsys, "fit", data, *options, 3600)[0] == 0
    assert untrained[0]["filter"].coefficients.tolist() == [2.0, 3600.0] and untrained[0]["train_filters"] is None
    said = refused(capsys, "fit", data, *options, "-1", "--force")
    assert "must describe a stable ODE" in said


def test_report(capsys, monkeypatch, model, data):
    calls = []

    def write_report(estimator, path, X=None, y=None, force=False):
        calls.append((estimator.record_["targets"], path, None if X is None else (X.shape, y.shape), force))

    monkeypatch.setattr(report, "write_report", write_report)
    assert answer(capsys, "report", model, "--out", "page.html")["out"] == "page.html"
    assert called(capsys, "report", model, data, "--out", "page.html", "--force")[0] == 0
    rows = NUM - 1
    page = Path("page.html")
    assert calls == [(["level"], page, None, False), (["level"], page, ((rows, 1), (rows,)), True)]
    page.write_text("")
    assert "is there already" in refused(capsys, "report", model, "--out", "page.html")


def test_models(capsys):
    models = answer(capsys, "models")["models"]
    assert set(models) == set(lf.presets())
    assert models["dlfm-driven"]["depth"] == "deep" and models["exact-gp"]["inference"] == "exact"
    code, out, _ = called(capsys, "models")
    lines = out.splitlines()
    assert code == 0 and lines[0].split()[:5] == ["name", "features", "ODE", "depth", "inference"]
    assert len(lines) == 1 + len(models) and lines[-1].split()[:4] == ["exact-lfm", "none", "yes", "shallow"]


def test_demo_leaves_the_output_to_json(capsys, monkeypatch):
    def run(folder, steps):
        print("in words")
        return {"lfm-driven": Scores(np.float64(1.0), np.float64(2.0), np.float64(0.5))}

    monkeypatch.setattr(demo, "run", run)
    code, out, err = called(capsys, "demo", "--json")
    assert code == 0 and err == "in words\n"
    assert json.loads(out)["models"]["lfm-driven"] == {"rmse": 1.0, "nmll": 2.0, "coverage": 0.5}


def test_several_targets_text_and_huge_cells(capsys):
    """Two targets observed at different rows, a column of text, and a cell of 1e9."""
    frame = DATA.with_columns(
        load=pl.when(pl.int_range(NUM) == 3).then(1e9).otherwise(pl.lit(TIMES)),
        site=pl.when(pl.int_range(NUM) % 3 == 0).then(pl.lit("north")).otherwise(pl.lit("south")),
        flow=pl.when(pl.int_range(NUM) % 2 == 0).then(None).otherwise(1e9 * pl.col("level")),
    )
    frame.write_csv("data.csv.gz", compression="gzip")
    both = ("--target", "level", "--target", "flow")
    said = answer(capsys, "fit", "data.csv.gz", *both, *QUICK, "--steps", 3, "--test-share", 0.1)
    assert said["out"] == "data.lforce" and said["rows"] == 36 and said["test"]["rows"] == 4
    assert said["summary"]["model"]["inputs"] == "day, load, site"
    table = pl.DataFrame(answer(capsys, "predict", "data.lforce", "data.csv.gz")["columns"])
    assert table.columns[:4] == ["day", "load", "site", "level"] and table.columns[-1] == "flow_upper"
    assert np.all(np.isfinite(table.select(pl.exclude("day", "site")).to_numpy()))
    scores = answer(capsys, "evaluate", "data.lforce", "data.csv.gz")
    assert list(scores["targets"]) == ["level", "flow"] and scores["targets"]["flow"]["mae"] > 1e7
    pl.DataFrame({"day": ["2024-01-03"], "load": [2.0], "site": ["east"]}).write_csv("east.csv")
    assert "'east'" in refused(capsys, "predict", "data.lforce", "east.csv")


@pytest.mark.parametrize("kinds", [("low", "high"), (7, 8), (False, True)])
def test_classes(capsys, kinds):
    """Text and truth are classes by themselves, numbers if they are said to be."""
    coded = kinds == (7, 8)
    DATA.with_columns(kind=pl.Series([kinds[int(level > 5)] for level in LEVEL])).write_csv("data.csv")
    options = ("--inputs", "day", *QUICK, "--steps", 20)
    said = answer(capsys, "fit", "data.csv", "--target", "kind", *options, *(["--classify"] if coded else []))
    assert said["rows"] == NUM
    columns = answer(capsys, "predict", "data.lforce", "data.csv")["columns"]
    names = [f"kind_{kind}" for kind in sorted(kinds)]
    assert list(columns) == ["day", "kind", *names]
    np.testing.assert_allclose(np.add(columns[names[0]], columns[names[1]]), 1.0)
    assert set(columns["kind"]) <= set(kinds)
    scores = answer(capsys, "evaluate", "data.lforce", "data.csv")
    assert 0 <= scores["accuracy"] <= 1 and scores["log_loss"] > 0
    assert "accuracy" in called(capsys, "evaluate", "data.lforce", "data.csv")[1]


def test_wrong_calls(capsys, data):
    for arguments in (
        ["fit", data],
        ["fit", data, "--target", "level", "--model", "nonsense"],
        ["fit", data, "--target", "level", "--steps", "0"],
        ["fit", data, "--target", "level", "--resume"],
        ["fit", data, "--target", "level", "--model", "gp-driven", "--ode", "1", "1"],
        ["predict", "model", data, "--coverage", "95"],
        ["guess"],
    ):
        refused(capsys, *arguments, code=2)


def test_wrong_data(capsys, data):
    def says(text, *options):
        Path("data.csv").write_text(text)
        return refused(capsys, "fit", "data.csv", *options)

    table = "a,b,y\n1,2,3\n4,5,6\n7,8,9\n"
    assert "has no column 'z'; it has a, b, y" in says(table, "--target", "z")
    assert "has no column 'z'; it has 'a', 'b', 'y'" in says(table, "--target", "y", "--inputs", "a", "z")
    assert "'y' cannot be asked for twice" in says(table, "--target", "y", "--inputs", "a", "y")
    assert "data.csv has 1 row with a target" in says("a,y\n1,2\n", "--target", "y")
    assert "no row with a target" in says("a,y\n1,\n2,\n", "--target", "y")
    assert "the inputs are missing" in says("y\n1\n2\n", "--target", "y")
    assert "column 'a' is empty in row 3" in says("a,y\n1,1\n,\n,3\n4,4\n", "--target", "y")
    many = "".join(f"{k},name {k}\n" for k in range(60))
    assert "column 'y' is text with 60 different values" in says(f"a,y\n{many}", "--target", "y")
    assert "column 'y' holds times" in says("a,y\n1,2024-01-01\n2,2024-01-02\n", "--target", "y")
    assert "several targets must be numbers" in says("a,y,z\n1,2,x\n2,2,y\n", "--target", "y", "--target", "z")
    assert "--classify takes one target" in says(table, "--target", "y", "--target", "b", "--classify")
    assert "--likelihood is for numbers" in says("a,y\n1,u\n2,v\n", "--target", "y", "--likelihood", "poisson")
    assert "`likelihood` must be one of" in says(table, "--target", "y", "--likelihood", "normal")
    assert "too few to hold some out" in says("a,y\n1,2\n2,3\n", "--target", "y", "--test-share", "0.5")
    assert "missing.csv does not exist" in refused(capsys, "fit", "missing.csv", "--target", "y")
    assert os.listdir() == ["data.csv"]


def test_wrong_models(capsys, data):
    Path("noise").write_bytes(b"noise")
    assert "is not a model file" in refused(capsys, "predict", "noise", data)
    assert "missing: No such file" in refused(capsys, "evaluate", "missing", data)


def test_faults_of_folders_are_found_before_training(capsys, monkeypatch, data, untrained):
    fit = ("fit", data, "--target", "level", "--out")
    Path("old.lforce").write_text("precious")
    assert "old.lforce is there already: give --force" in refused(capsys, *fit, "old.lforce")
    assert "is not a folder that is there" in refused(capsys, *fit, "missing/new.lforce")
    assert "is a folder" in refused(capsys, *fit, ".")
    assert "is there already" in refused(capsys, *fit, "new.lforce", "--checkpoint", "old.lforce")
    assert "must end in one of" in refused(capsys, "predict", "model", data, "--out", "predictions.xls")

    def read_only(**_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(_outputs.tempfile, "TemporaryFile", read_only)
    assert "cannot be written to: Permission denied" in refused(capsys, *fit, "new.lforce")
    assert untrained == [] and Path("old.lforce").read_text() == "precious" and os.listdir() == ["old.lforce"]


def test_a_full_disk_after_training(capsys, monkeypatch, data, untrained):
    @contextlib.contextmanager
    def full(path):
        if Path(path).parent == Path():
            raise OSError(errno.ENOSPC, "No space left on device")
        with atomic(path) as file:
            yield file

    monkeypatch.setattr(_format, "atomic", full)
    code, out, err = called(capsys, "fit", data, "--target", "level")
    assert code == 1 and out == "" and "tide.lforce cannot be written: No space left on device." in err
    refuge = Path(err.split("safe in ")[1].strip().rstrip("."))
    assert lf.load(refuge).record_["targets"] == ["level"] and os.listdir() == []
    refuge.unlink()
    refuge.parent.rmdir()


def test_options_reach_the_estimator(capsys, monkeypatch, data, untrained):
    options = ("--depth", 3, "--seed", 5, "--checkpoint", "state", "--every", 7, "--resume", "--likelihood", "poisson")
    assert called(capsys, "fit", data, "--target", "level", *options, "--quiet") == (0, "", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert called(capsys, "fit", data, "--target", "level", "--force")[0] == 0
    wanted = {"depth": 3, "random_state": 5, "checkpoint": Path("state"), "every": 7, "resume": True, "verbose": 0}
    assert wanted.items() <= untrained[0].items() and untrained[0]["likelihood"] == "poisson"
    assert untrained[1]["verbose"] == 1 and untrained[1]["model"] == "dlfm-driven"
    assert set(os.listdir()) == {"tide.lforce"}


def test_debug_and_surprises(capsys, monkeypatch, model, data):
    with pytest.raises(ValueError, match="does not exist"):
        cli.main(["fit", "missing.csv", "--target", "y", "--debug"])

    def surprise(*_):
        raise KeyError("two\nlines")

    monkeypatch.setattr(fit, "for_training", surprise)
    assert "KeyError: " in refused(capsys, "fit", data, "--target", "level")

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(fit, "for_training", interrupt)
    assert refused(capsys, "fit", data, "--target", "level", code=130) == "latentforce: interrupted\n"


def test_ctrl_c_once_and_twice(capfd):
    before = signal.getsignal(signal.SIGINT)  # not the default where the tests run in the background
    with pytest.raises(KeyboardInterrupt), _interrupts.stoppable() as stop:
        assert not stop(None)
        os.kill(os.getpid(), signal.SIGINT)
        assert stop(None) and "Ctrl-C again" in capfd.readouterr().err
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_keeps_the_model(data):
    """A real process and a real signal, sent once the training has written a checkpoint."""
    endless = [*QUICK, "--steps", "1000000", "--likelihood", "student-t", "--checkpoint", "state", "--every", "100"]
    command = [sys.executable, "-m", "latentforce", "fit", data, "--target", "level", *endless, "--out", "kept.lforce"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        while process.poll() is None and not Path("state").exists():
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 0, err
    assert "stopping after these steps" in err and "step/s" not in err  # no bar where there is no terminal
    assert "Training ended early (stopped by Ctrl-C)" in out and "The model is in kept.lforce" in out
    estimator = lf.load("kept.lforce")
    assert 0 < estimator.history_.steps[-1] < 1_000_000 and np.all(np.isfinite(estimator.predict(DATA.select("day"))))


def test_stopped_and_resumed_is_as_if_never_stopped(capsys, monkeypatch, data):
    training = ("fit", data, "--target", "level", *QUICK, "--steps", 300, "--likelihood", "student-t", "--quiet")
    assert called(capsys, *training, "--out", "whole.lforce") == (0, "", "")
    kept = ("--checkpoint", "state", "--every", 100, "--out", "parts.lforce")
    with monkeypatch.context() as patch:
        patch.setattr(fit, "stoppable", lambda: contextlib.nullcontext(lambda progress: progress.step >= 100))
        assert called(capsys, *training, *kept)[0] == 0
    assert lf.load("parts.lforce").history_.steps[-1] < 200
    assert "is there already" in refused(capsys, *training, *kept, "--resume")  # the model of the first part
    assert called(capsys, *training, *kept, "--resume", "--force") == (0, "", "")
    whole, parts = lf.load("whole.lforce"), lf.load("parts.lforce")
    assert parts.history_.steps[-1] == 300 and parts.history_.objective == whole.history_.objective
    np.testing.assert_array_equal(parts.predict(DATA.select("day")), whole.predict(DATA.select("day")))


def test_nobody_reads_on():
    read, write = os.pipe()
    os.close(read)
    run = subprocess.run(
        [sys.executable, "-m", "latentforce", "models"], stdout=write, stderr=subprocess.PIPE, text=True
    )
    os.close(write)
    assert run.returncode == 1 and run.stderr == ""

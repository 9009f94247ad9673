"""The package as a user meets it: names, imports, examples, command line, README."""

import doctest
import functools
import importlib
import importlib.metadata
import inspect
import os
import pkgutil
import re
import subprocess
import sys
import types
from pathlib import Path

import jax
import numpy as np
import pytest

import latentforce as lf
from latentforce import cli, demo

PUBLIC = {
    "Batches", "Bernoulli", "DrivenFourier", "ExtrapolationWarning", "FirstOrder", "Gaussian", "HarmonicFourier",
    "HeteroscedasticGaussian", "Identity", "InducingPoints", "LatentForceClassifier", "LatentForceRegressor",
    "LinearODE", "Matern", "Model", "Poisson", "Process", "RandomFourier", "SecondOrder", "SquaredExponential",
    "StudentT", "TrainingError", "absorb", "build", "collapse", "collapsed_bound", "compress", "compress_chunks",
    "condition", "distribute", "elbo", "fit", "force", "hidden_marginals", "importance_weighted_bound", "laplace",
    "load", "log_marginal_likelihood", "predict", "predict_mean", "presets", "sample_functions", "scores", "whole",
}  # fmt: skip
MODULES = sorted(
    name for _, name, _ in pkgutil.walk_packages(lf.__path__, "latentforce.") if not name.endswith("__main__")
)
ROOT = Path(__file__).parent.parent


def test_public_names():
    helpers = {"TYPE_CHECKING", "Any"}
    found = {name for name, value in vars(lf).items() if not isinstance(value, types.ModuleType)} - helpers
    lazy = {name for name in lf.__all__ if name not in found and getattr(lf, name)}
    assert {name for name in found if not name.startswith("_")} | lazy == set(lf.__all__) == PUBLIC
    absent = "LatentForceClairvoyant"
    with pytest.raises(AttributeError, match=f"no attribute '{absent}'"):
        getattr(lf, absent)
    assert lf.__all__ == sorted(lf.__all__)


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_public_name_is_documented_with_an_example(name):
    thing = getattr(lf, name)
    assert ">>>" in inspect.getdoc(thing)
    for attribute, value in vars(thing).items() if inspect.isclass(thing) else ():
        if not attribute.startswith("_") and (callable(value) or isinstance(value, property)):
            assert inspect.getdoc(getattr(thing, attribute)), f"{name}.{attribute}"


@pytest.mark.parametrize("module", MODULES)
def test_examples_in_docstrings(module):
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        result = doctest.testmod(importlib.import_module(module))
    assert result.failed == 0


def test_examples_in_the_readme():
    text = (ROOT / "README.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert blocks
    names: dict = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)


def python(code, **environment):
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}, timeout=300
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def test_import_is_light_and_leaves_jax_alone():
    code = (
        "import sys, jax; import latentforce, latentforce.cli;"
        "heavy = [m for m in ('matplotlib', 'pandas', 'polars', 'torch', 'sklearn', 'tqdm') if m in sys.modules];"
        "print(heavy, jax.config.jax_enable_x64)"
    )
    assert python(code) == "[] False"


def test_runs_without_the_test_extras():
    """The type checker and the oracle's arithmetic are the tests' business alone."""
    code = (
        "import sys; sys.modules['beartype'] = sys.modules['mpmath'] = None;"
        "import jax.numpy as jnp, latentforce as lf;"
        "p = lf.Process(lf.Matern(1.5, 0.3), lf.FirstOrder(1.0, 0.1));"
        "print(lf.DrivenFourier(3, (0.0, 1.0)).whitened(p, jnp.zeros(2)).shape)"
    )
    assert python(code) == "(2, 10)"


def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out.strip() == f"latentforce {lf.__version__}"
    assert importlib.metadata.version("latentforce") == lf.__version__


def test_help(capsys):
    assert cli.main([]) == 0
    assert "demo" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stop:
        cli.main(["--help"])
    assert stop.value.code == 0


def test_demo(tmp_path, capsys, monkeypatch):
    small = functools.partial(demo.run, points=4)  # the same path on less data
    monkeypatch.setattr(demo, "run", small)
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        assert cli.main(["demo", "--steps", "1", "--out", str(tmp_path / "picture")]) == 0
    out = capsys.readouterr().out
    for name in ("lfm-driven (shallow)", "dlfm-driven (two layers)"):
        assert re.search(re.escape(name) + r"\s+\d\.\d+\s+-?\d+\.\d+\s+\d+\.\d%", out)
    assert (tmp_path / "picture" / "multi-step.png").read_bytes().startswith(b"\x89PNG")
    assert np.loadtxt(tmp_path / "picture" / "multi-step.csv", delimiter=",", skiprows=1).shape == (10, 2)


def test_demo_says_what_is_wrong(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert cli.main(["demo", "--out", str(tmp_path / "file" / "below")]) == 1
    assert capsys.readouterr().err.startswith("latentforce: ")

"""The explorer: its numbers are the library's, and it works in a real browser, on a phone and by its address alone."""

import html
import json
import math
import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import quote

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import latentforce as lf

PAGE = Path(__file__).parents[1] / "docs" / "explorer" / "index.html"
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
NO_BROWSER = "there is no chromium, chromium-browser or google-chrome on the PATH"
needs_browser = pytest.mark.skipif(BROWSER is None, reason=NO_BROWSER)

TIMES = [-3.0, -1.2, -1.0, -0.7, 0.0, 1.3, 3.9, 4.0, 4.4, 9.0]  # both ends of [-1, 4], inside and out
LAGS = [-2.5, -0.3, 0.0, 1e-3, 0.4, 1.7, 12.0]
FREQUENCIES = [0.0, 0.3, 2.9, 3.0, 40.0]
RATE = math.sqrt(3) / 0.7  # lambda of a Matérn-3/2 force of length-scale 0.7
CASES = {
    "no system": {"nu": 2.5, "lengthscale": 0.3, "ode": "none"},
    "resonance": {"nu": 1.5, "lengthscale": 0.7, "ode": "first", "gamma": RATE},
    "next to resonance": {"nu": 1.5, "lengthscale": 0.7, "ode": "first", "gamma": RATE * (1 + 1e-7)},
    "a fast system": {"nu": 2.5, "lengthscale": 2.0, "ode": "first", "gamma": 100.0},
    "a slow system": {"nu": 2.5, "lengthscale": 0.05, "ode": "first", "gamma": 0.1},
    "ringing": {"nu": 0.5, "ode": "second", "damping": 0.05, "stiffness": 9.0},
    "critical damping": {"nu": 1.5, "ode": "second", "damping": 6.0, "stiffness": 9.0},
    "next to critical damping": {"nu": 1.5, "ode": "second", "damping": 6.0 + 1e-7, "stiffness": 9.0},
    "overdamped": {"nu": 2.5, "lengthscale": 0.5, "ode": "second", "damping": 40.0, "stiffness": 0.05},
}
FIXED = {"lengthscale": 1.0, "a": -1.0, "b": 4.0, "M": 7}


def browse(folder, address, *options):
    """Run the browser on an address, with nothing of the user's own, and give the page as it ends."""
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={folder}/profile"]
    run = subprocess.run(
        [str(BROWSER), *flags, "--dump-dom", *options, address], capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.fixture
def as_users_have_it():
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        yield


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """All cases by one visit."""
    where = {"t": TIMES, "lag": LAGS, "omega": FREQUENCIES}
    asked = [{"settings": FIXED | settings, **where} for settings in CASES.values()]
    dom = browse(tmp_path_factory.mktemp("browser"), f"{PAGE.as_uri()}#numbers={quote(json.dumps(asked))}")
    return dict(zip(CASES, json.loads(re.search(r'<script id="numbers"[^>]*>(.*?)</script>', dom)[1]), strict=True))


def library(code):
    """The same numbers, from the objects that the page's code makes."""
    names = {}
    exec(code.split("\nt = ")[0], names)
    return judged(*(names[name] for name in ("process", "harmonic", "driven")))


@jax.jit
def judged(process, harmonic, driven):
    """In one compiled program for each order of force and system."""
    t, lag, omega = (jnp.asarray(values) for values in (TIMES, LAGS, FREQUENCIES))
    response, origin = process.filter.response(omega), jnp.zeros(1)
    want = {
        "variance": process.variance(),
        "amplitude": jnp.abs(response),
        "phase": jnp.angle(response),
        "force.kernel": process.force_covariance(lag, origin)[:, 0],
        "force.harmonic": harmonic.cross_covariance(lf.Process(process.force), t).T,
        "force.driven": driven.force_whitened(process, t).T,
        "output.kernel": process.covariance(lag, origin)[:, 0],
        "output.harmonic": harmonic.cross_covariance(process, t).T,
        "output.harmonicWhitened": harmonic.whitened(process, t).T,
        "output.driven": driven.whitened(process, t).T,
    }
    for name, family in (("harmonic", harmonic), ("driven", driven)):
        want[f"unexplained.{name}"] = family.residual_variance(process, t) / process.variance()
    return want


@needs_browser
@pytest.mark.parametrize("name", CASES)
def test_numbers_are_the_librarys(answers, name, x64, as_users_have_it):
    for key, values in library(answers[name]["python"]).items():
        got = answers[name]
        for part in key.split("."):
            got = got[part]
        scale = 1.0 if key.startswith(("unexplained", "phase")) else np.max(np.abs(values))
        np.testing.assert_allclose(got, values, rtol=0, atol=1e-9 * scale, err_msg=key)


WIDTHS = (1200, 360)
MEASURE = """<script>addEventListener("message", ({data}) => {
  document.body.setAttribute("data-found-" + data.inner, JSON.stringify(data));
});</script>"""
TELL = """<script>addEventListener("load", () => {
  const shown = [...document.querySelectorAll(".plot")].map((svg) => {
    const {x, width, height} = svg.getBoundingClientRect();
    return {x, width, height, curves: [...svg.querySelectorAll(".curve")].map((path) => path.getAttribute("d").length)};
  });
  const before = document.getElementById("gamma").value;
  const slider = document.getElementById("lengthscale");
  slider.value = Math.log10(0.5);
  slider.dispatchEvent(new Event("input"));
  const unnamed = [...document.querySelectorAll("input, svg.plot")].filter(
    (one) => !(one.labels && one.labels.length) && !one.getAttribute("aria-label"));
  parent.postMessage({shown, inner: innerWidth, scroll: document.documentElement.scrollWidth, before,
    unnamed: unnamed.length, hash: location.hash, python: document.getElementById("python").textContent}, "*");
});</script></body>"""


@needs_browser
def test_on_a_desk_and_on_a_phone(tmp_path, as_users_have_it):
    page = tmp_path / "page.html"
    page.write_text(PAGE.read_text(encoding="utf-8").replace("</body>", TELL), encoding="utf-8")
    address = f"{page.as_uri()}#ode=first&gamma=10&lengthscale=2&M=9&a=7&b=1&shown=50&nu=nonsense"
    frames = "".join(
        f'<iframe style="border:0;width:{width}px;height:800px" src="{html.escape(address)}"></iframe>'
        for width in WIDTHS
    )
    outer = tmp_path / "outer.html"
    outer.write_text(f'<!DOCTYPE html><body style="margin:0;display:flex">{MEASURE}{frames}</body>', encoding="utf-8")
    dom = browse(tmp_path, outer.as_uri(), f"--window-size={sum(WIDTHS)},800", "--virtual-time-budget=5000")
    for width in WIDTHS:
        found = json.loads(html.unescape(re.search(rf'data-found-{width}="([^"]*)"', dom)[1]))
        assert found["scroll"] <= width and len(found["shown"]) == 7 and found["unnamed"] == 0
        for plot in found["shown"]:
            assert plot["x"] >= 0 and plot["width"] >= 240 and plot["x"] + plot["width"] <= width
            assert plot["height"] > 100 and plot["curves"] and min(plot["curves"]) > 500
        assert float(found["before"]) == 1.0  # a slider of logarithms
        settings = dict(pair.split("=") for pair in found["hash"][1:].split("&"))
        assert settings["lengthscale"] == "0.5" and settings["b"] == "7.5" and settings["shown"] == "9"
        assert settings["nu"] == "1.5" and "lf.Matern(nu=1.5, lengthscale=0.5)" in found["python"]
    names = {}
    exec(found["python"], names)
    assert names["A"].shape == (201, 2 * 9 + 1 + 3) and names["kernel"].shape == (201, 201)
    assert float(jnp.max(names["unexplained"])) < 1e-3


def test_the_page_needs_nothing_else():
    page = PAGE.read_text(encoding="utf-8")
    assert not re.search(r"https?://|@import|<link|\bsrc=|fetch\(|import\(", page)
    assert 'name="viewport"' in page and 'lang="en"' in page

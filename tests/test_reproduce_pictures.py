"""`latentforce reproduce features`, `cube` and `posterior`: curves against formulas, and what pages and figures say."""

import json
import re
from dataclasses import asdict
from itertools import combinations

import jax
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex

from latentforce.experiments import cube, features, posterior
from latentforce.experiments._sweep import Measured, Setup, plain
from latentforce.presets import PRESETS


def measured(experiment, cell):
    """As the runner has it: after a round trip through JSON."""
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        result = experiment.measure(cell, None)
    return Measured(*(json.loads(json.dumps(part, allow_nan=False)) for part in (cell, plain(result))))


def renderer(figure):
    """Draws, so that places are known; warnings are errors."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return canvas.get_renderer()


def response_kernel(lag, rate, decay, gain=1.0):
    """Of a Matérn-1/2 force of decay `decay` behind a first-order ODE of rate `rate`."""
    lag = np.abs(lag)
    return gain**2 * rate / (rate**2 - decay**2) * (rate * np.exp(-decay * lag) - decay * np.exp(-rate * lag))


@pytest.fixture(scope="module")
def shapes():
    return measured(features, features.cells(Setup())[0])


@pytest.fixture(scope="module")
def unexplained():
    return measured(features, features.cells(Setup())[-1] | {"orders": [1.5], "sizes": [20, 80]})


def test_cells_of_features():
    cells = features.cells(Setup(quick=True))
    assert [cell.get("nu") for cell in cells] == [0.5, 1.5, 2.5, None]
    assert cells[-1]["sizes"] == [20, 80] and cells[-1]["orders"] == [0.5, 1.5, 2.5]
    assert json.loads(json.dumps(cells)) == cells


def test_kernels(shapes):
    kernels = {name: np.array(values) for name, values in shapes.result["kernels"].items()}
    np.testing.assert_allclose(kernels["force"], np.exp(-np.abs(kernels["lag"]) / 0.2), atol=1e-5)
    for gamma in (2.0, 20.0, 100.0):
        want = response_kernel(kernels["lag"], gamma, 5.0)
        np.testing.assert_allclose(kernels[f"{gamma:g}"], want, atol=1e-5)
    np.testing.assert_allclose(kernels["usual"], kernels["5"] / 25, atol=1e-5)


@pytest.mark.parametrize("harmonic, wave", [(4, np.cos), (14, np.sin)])
def test_features_follow_the_force_with_the_filters_phase_delay(shapes, harmonic, wave):
    t = np.array(shapes.result["waves"]["t"])
    found = shapes.result["waves"][str(harmonic)]
    (vff, vfrf), (force_mode, mode) = np.array(found["harmonic"]), np.array(found["driven"])
    z, delay = 2 * np.pi * harmonic / 5, np.arctan(2 * np.pi * harmonic / 25)
    np.testing.assert_allclose(found["phase"], delay, rtol=1e-5)
    inside, late = (t >= -1) & (t <= 4), (t > 2.5) & (t <= 4)
    np.testing.assert_allclose(vff[inside], wave(z * (t[inside] + 1)), atol=1e-5)
    np.testing.assert_allclose(vfrf[late], np.cos(delay) * wave(z * (t[late] + 1) - delay), atol=1e-5)
    before = t < -1
    np.testing.assert_allclose(vff[before], wave(0) * np.exp(5 * (t[before] + 1)), atol=1e-5)
    assert np.all(force_mode[before] == 0) and np.all(mode[before] == 0)
    shift = delay / z
    inner = (t > 2.5) & (t + shift < 3.9)
    later = np.interp(t[inner] + shift, t, mode)
    np.testing.assert_allclose(later, np.cos(delay) * force_mode[inner], atol=0.02)


def test_page_of_features(shapes, unexplained):
    page = features.present([shapes, unexplained])
    assert page.text.startswith("## ") and "fig:basis-function52" in page.text
    assert re.search(r"8 π/\(b−a\), cosine +\| 1/4 π +\| 0\.251 π", page.text)
    assert re.search(r"28 π/\(b−a\), sine +\| 5/12 π +\| 0\.412 π", page.text)
    assert re.search(r"Matérn-3/2 \| 16\.4 % +\| 16\.3 % +\| 0\.0129 %", page.text)
    assert page.text.count(": holds.") == 3 and "does not hold" not in page.text
    assert list(page.figures) == ["matern-1-2", "unexplained"]
    axes = page.figures["matern-1-2"].axes
    assert len(axes) == 5
    assert [len(ax.lines) for ax in axes] == [6, 2, 2, 2, 2]
    assert [len(ax.child_axes) for ax in axes] == [0, 1, 1, 1, 1]
    assert "0.25" in axes[1].child_axes[0].texts[-1].get_text()
    for figure in page.figures.values():
        renderer(figure)


def test_page_of_some_features(shapes, unexplained):
    assert list(features.present([unexplained]).figures) == ["unexplained"]
    assert "unexplained" not in features.present([shapes]).text
    worse = json.loads(json.dumps(unexplained.result))
    for row in worse["rows"]:
        row["share"] = 0.5
    assert "does not hold" in features.present([Measured(unexplained.cell, worse)]).text


@pytest.mark.parametrize("name, count", [("dlfm-driven", 44), ("svgp", 41), ("exact-lfm", None)])
def test_models_are_where_the_map_has_them(name, count):
    (cell,) = (cell for cell in cube.cells(Setup()) if cell["name"] == name)
    assert measured(cube, cell).result == {"ode": cell["ode"], "deep": cell["deep"], "num_features": count}


def placed(name):
    preset = PRESETS[name]
    cell = {"name": name, **asdict(preset), "num_frequencies": 20}
    return Measured(cell, {"ode": preset.ode, "deep": preset.deep, "num_features": 41 if preset.features else None})


def test_map_of_models():
    assert [cell["name"] for cell in cube.cells(Setup())] == list(PRESETS)
    page = cube.present([placed(name) for name in PRESETS])
    assert "fig:model-comparison" in page.text and "18 models, 8 of them deep" in page.text
    assert re.search(r"harmonic.*gp-vff.*\*\*lfm-vfrf\*\* \(41\).*iddgp.*\*\*dlfm-vfrf\*\* \(41\)", page.text)
    assert page.text.endswith("holds.") and "does not" not in page.text
    figure = page.figures["map"]
    drawn = renderer(figure)
    texts = figure.axes[0].texts
    labels = {text.get_text(): to_hex(text.get_color()) for text in texts}
    assert set(PRESETS) | set(cube.FEATURES.values()) | {"shallow", "deep", "ODE", "no ODE"} <= set(labels)
    assert len({labels["dgp"], labels["dlfm-vfrf"], labels["dlfm-driven"]}) == 3
    assert labels["lfm-vfrf"] == labels["dlfm-vfrf"] and labels["gp-driven"] == labels["dlfm-driven"]
    boxes = [
        text.get_window_extent(drawn) for text in [*texts, *figure.axes[0].get_legend().get_texts()] if text.get_text()
    ]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    assert all(figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 for box in boxes)


def test_map_of_some_models():
    wrong = placed("iddgp")
    wrong.result["ode"] = True
    page = cube.present([wrong, placed("exact-gp")])
    assert "2 models, 1 of them deep" in page.text and page.text.endswith("does not hold.")
    assert "svgp" not in {text.get_text() for text in page.figures["map"].axes[0].texts}


def test_cells_of_posterior():
    assert [cell["seed"] for cell in posterior.cells(Setup())] == [0, 1, 2, 3, 4]
    assert [cell["curves"] for cell in posterior.cells(Setup(seeds=3, quick=True))] == [True, False, False]
    assert all(cell["sizes"] == [20, 80, 500] for cell in posterior.cells(Setup(quick=True)))


def test_posteriors_against_dense_algebra():
    one = measured(posterior, {"seed": 0, "sizes": [30], "steps": 3, "curves": True})
    t, y, grid = (np.array(one.result[name]) for name in ("t", "y", "grid"))
    values = one.result["hyperparameters"]

    def kernel(t1, t2):
        rate, decay = values["alpha"] / values["beta"], 1 / values["lengthscale"]
        return values["variance"] * response_kernel(t1[:, None] - t2[None], rate, decay, 1 / values["alpha"])

    noisy, cross = kernel(t, t) + values["noise"] * np.eye(len(t)), kernel(grid, t)
    mean = cross @ np.linalg.solve(noisy, y)
    variance = np.diag(kernel(grid, grid) - cross @ np.linalg.solve(noisy, cross.T))
    exact = one.result["curves"]["exact"]
    np.testing.assert_allclose(exact["mean"], mean, atol=1e-4)
    np.testing.assert_allclose(exact["sd"], np.sqrt(variance), atol=1e-4)
    rows = {(row["family"], row["num_frequencies"]): row for row in one.result["rows"]}
    assert len(rows) == 3 and all(row["kl"] > 0 and row["variance_ratio"] > 0 for row in rows.values())
    for (family, size), row in rows.items():
        curve = one.result["curves"][f"{family} {size}"]
        ratio = np.min(np.array(curve["sd"]) ** 2 / np.array(exact["sd"]) ** 2)
        np.testing.assert_allclose(row["variance_ratio"], ratio, rtol=1e-3)
    assert rows["driven", 30]["kl"] < rows["harmonic", 30]["kl"] < rows["random", 30]["kl"]


def pretended(seed, curves, kl):
    """Results with that KL by family, the same at all sizes."""
    sizes = [20, 80, 500]
    rows = [
        {"family": family, "num_frequencies": size, "kl": value, "variance_ratio": 1 / (1 + value)}
        for family, value in kl.items()
        for size in sizes
    ]
    result = {"rows": rows}
    if curves:
        names = ["exact", *(f"{family} {size}" for family in kl for size in sizes)]
        flat = {"mean": [0.0, 1.0, 0.0], "sd": [1.0, 1.0, 1.0]}
        result |= {"grid": [0.0, 1.0, 2.0], "t": [0.5], "y": [0.1], "curves": dict.fromkeys(names, flat)}
    return Measured({"seed": seed, "sizes": sizes, "steps": 1, "curves": curves}, result)


def test_page_of_posteriors():
    kl = {"random": 0.3, "harmonic": 0.02, "driven": 0.001}
    page = posterior.present([pretended(0, True, kl), pretended(1, False, kl)])
    assert "fig:vff_vs_rff" in page.text and "Means over 2 draws" in page.text
    assert re.search(r"\| harmonic \| 0\.02 +\| 0\.02 +\| 0\.02 +\| 0\.980", page.text)
    assert page.text.count("holds (6 of 6 cases)") == 3 and "holds (4 of 4 cases)" in page.text
    axes = page.figures["bands"].axes
    names = [ax.texts[0].get_text() for ax in axes]
    assert names[:6] == ["20 RFF", "80 RFF", "500 RFF", "20 VFRF", "80 VFRF", "exact"]
    assert names[6:] == ["20 driven", "80 driven", "500 driven"]
    assert len({ax.get_ylim() for ax in axes}) == 1 and all(len(ax.collections) == 2 for ax in axes)
    renderer(page.figures["bands"])


def test_page_of_some_posteriors():
    page = posterior.present([pretended(1, False, {"random": 0.3, "harmonic": 0.02, "driven": 0.05})])
    assert page.figures == {} and "does not always hold (0 of 3 cases)" in page.text

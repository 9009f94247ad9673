"""The speech and runtime experiments, on very little sound."""

import jax
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.io import wavfile

from latentforce.datasets import voice
from latentforce.experiments import _peers, runtime, speech
from latentforce.experiments._sound import hold_out, signal, split
from latentforce.experiments._sweep import Measured, Setup, plain
from latentforce.inference._scores import Scores

TINY = {"samples": 80, "loudest": True, "window": 8, "steps": 4, "every": 2, "dtype": "float32", "sound": "voice"}


def test_cells_are_complete():
    full = speech.cells(Setup())
    assert {cell["model"] for cell in full} == set(speech.SETTINGS)
    for name in speech.SETTINGS:
        for size in {cell["frequencies"] for cell in full if cell["model"] == name}:
            seeds = [
                seed for cell in full if (cell["model"], cell["frequencies"]) == (name, size) for seed in cell["seeds"]
            ]
            assert seeds == list(range(10))
    assert {cell["free_after"] for cell in full} == {0, 2000}


def test_the_voice():
    sound = voice(seed=1, samples=4000)
    np.testing.assert_array_equal(sound, voice(seed=1, samples=4000))
    assert np.abs(sound).max() == pytest.approx(0.5) and not np.array_equal(sound, voice(seed=2, samples=4000))


def test_sound_is_smoothed_and_split(tmp_path):
    rate, raw = 16_000, (1000 * np.sin(np.arange(2000) / 9)).astype(np.int16)
    wavfile.write(tmp_path / "a.wav", rate, raw)
    values = signal(tmp_path / "a.wav", 500, 4)
    expected = np.convolve(raw.astype(float), np.full(4, 0.25), "valid")[:500]
    assert np.corrcoef(values, expected)[0, 1] > 0.999
    one = split(values, 0)
    assert len(one.train[0]) == 350 and len(one.test[0]) == 150
    assert one.train[1].mean() == pytest.approx(0, abs=1e-9) and one.train[1].std() == pytest.approx(1)


def test_a_small_cell_and_its_page():
    cells = [
        {"model": name, "frequencies": 3, "free_after": free, "seeds": [0, 1]} | TINY
        for name, free in (("iddgp", 0), ("dlfm-vfrf", 0), (speech.LATE, 2))
    ]
    results = [Measured(cell, plain(speech.measure(cell, None))) for cell in cells]
    for row in results:
        assert np.shape(row.result["rmse"]) == np.shape(row.result["bound"]) == (2, 2)
        assert row.result["done"] == [4, 4] and np.isfinite(row.result["nmll"]).all()
    page = speech.present(results)
    assert "fig:timit" in page.text and "the built-in voice" in page.text and set(page.figures) == {"curves", "scores"}
    assert speech.present(results[:1]).text
    with pytest.raises(ValueError, match="`data` must be the sound that the cell speaks of"):
        speech.measure(cells[0] | {"sound": "another.wav", "checksum": "0"}, None)


def test_runtime_small():
    listed = runtime.cells(Setup(quick=True))
    assert {row["device"] for row in listed} == {jax.devices()[0].platform}
    cell = listed[0] | {"model": "dlfm-driven", "frequencies": 3, "samples": 60, "steps": 2, "rounds": 2}
    result = plain(runtime.measure(cell))
    assert result["rows"] == 42 and len(result["seconds"]) == 2 and min(result["seconds"]) > 0
    with pytest.raises(ValueError, match="`device` of the cell must be"):
        runtime.measure(cell | {"device": "abacus"})
    other = Measured(cell | {"model": "iddgp"}, result | {"seconds": [2 * one for one in result["seconds"]]})
    rows = [other, Measured(cell, result), Measured(cell | {"model": "dlfm-vfrf"}, result)]
    page = runtime.present(rows)
    assert "in units of one of `iddgp`" in page.text and "0.5 (M = 3)" in page.text and "1.98 s" in page.text


def test_the_peer_is_not_needed():
    assert _peers.platform() in (None, "cpu", "gpu")


def test_a_training_is_stopped_by_points_that_it_never_saw():
    """Held-out points are a share of all, chosen by the seed; scores are those of the best by them so far."""
    times = np.linspace(0.0, 3.0, 50)
    (held, values), (train, others) = hold_out((times, times**2), 0.1, seed=3)
    assert len(held) == 5 and len(train) == 45
    assert_array_equal(np.sort(np.concatenate([held, train])), times)
    assert_array_equal(np.concatenate([held, train]) ** 2, np.concatenate([values, others]))
    assert set(held) != set(hold_out((times, times), 0.1, seed=4)[0][0])
    losses = np.array([[3.0, 2.0, 5.0, 1.0, 1.5], [1.0, np.nan, 2.0, 0.5, 0.7], [0.0, 1.0, 2.0, 3.0, 4.0]])
    want = [[int(np.nanargmin(row[: i + 1])) for i in range(5)] for row in losses]
    assert_array_equal(speech.best_so_far(losses), want)


def test_ours_is_judged_where_it_was_best(monkeypatch):
    """Test scores follow the best model so far by the points that are held out."""
    losses = np.array([[3.0, 2.0, 5.0, 1.0], [1.0, 4.0, 0.5, 2.0]])
    looks = {"test": 0, "held": 0}

    def judge(models, data, num_samples):
        kind = "held" if len(data[0][0]) < 10 else "test"  # 4 or 18 points
        looks[kind] += 1
        score = losses[:, looks["held"] - 1] if kind == "held" else np.full(2, looks["test"] - 1.0)
        return Scores(score, score, score)

    monkeypatch.setattr(speech, "judge", judge)
    cell = TINY | {"model": "dlfm-driven", "frequencies": 3, "free_after": 0, "seeds": [0, 1], "samples": 60}
    found = speech.measure(cell | {"steps": 8, "every": 2}, None)
    assert looks == {"test": 4, "held": 4}
    for score in ("rmse", "nmll"):
        assert_array_equal(found[score], [[0, 1, 1, 3], [0, 0, 2, 2]])
    assert_array_equal(found["coverage"], [3, 2])

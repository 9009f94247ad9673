"""Model files: they come back whole, and what is broken or hostile is refused by name."""

import json
import os

import jax
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import latentforce as lf
from latentforce.files import _format
from latentforce.files._format import ModelFileError

X = np.linspace(0.0, 5.0, 20)[:, None]
Y = np.sin(X[:, 0])


@pytest.fixture(autouse=True)
def as_users_have_it():
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        yield


@pytest.fixture(scope="module")
def fitted():
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        options = {"num_frequencies": 2, "steps": 5, "filter": lf.FirstOrder(1.0, 0.5), "random_state": 3}
        return lf.LatentForceRegressor("dlfm-driven", **options).fit(X, Y)


@pytest.fixture
def path(fitted, tmp_path):
    fitted.save(tmp_path / "model.lforce")
    return tmp_path / "model.lforce"


def test_there_and_back(fitted, path):
    again = lf.load(path)
    for one, other in zip(again.predict(X, return_std=True), fitted.predict(X, return_std=True), strict=True):
        np.testing.assert_array_equal(one, other)
    assert again.table_ == fitted.table_ and again.choices_ == fitted.choices_
    assert again.history_.objective == fitted.history_.objective and again.n_iter_ == 5
    np.testing.assert_array_equal(again.filter.coefficients, [1.0, 0.5])
    assert again.get_params()["num_frequencies"] == 2
    again.save(path)  # over the old one
    np.testing.assert_array_equal(lf.load(path).predict(X), fitted.predict(X))
    assert os.listdir(path.parent) == ["model.lforce"]


def test_exact_models_keep_their_data(tmp_path):
    exact = lf.LatentForceRegressor("exact-gp", steps=3, precision="float64").fit(X, np.stack([Y, -Y], axis=1))
    exact.save(tmp_path / "exact")
    np.testing.assert_array_equal(lf.load(tmp_path / "exact").predict(X), exact.predict(X))


def refused(path, message="not a model|damaged|cut short"):
    with pytest.raises(ModelFileError, match=message) as error:
        lf.load(path)
    assert str(path) in str(error.value)


def test_cut_short(path):
    whole = path.read_bytes()
    for length in [*range(0, 40), *np.linspace(40, len(whole) - 1, 40).astype(int)]:
        path.write_bytes(whole[:length])
        refused(path)


def test_flipped_bytes(path):
    whole = path.read_bytes()
    generator = np.random.default_rng(0)
    header = 8 + int.from_bytes(whole[:8], "little")
    places = [generator.integers(0, header, 150), generator.integers(header, len(whole), 50)]
    for place in np.concatenate([np.arange(8), *places]):
        broken = bytearray(whole)
        broken[place] ^= 1 << generator.integers(8)
        path.write_bytes(broken)
        refused(path, "not a model|damaged|cut short|newer version")  # the schema is a byte too


def test_noise_and_strangers(tmp_path):
    generator = np.random.default_rng(1)
    for size in (0, 7, 8, 100, 5000):
        (tmp_path / "noise").write_bytes(generator.bytes(size))
        refused(tmp_path / "noise")
    save_file({"weight": np.ones(3)}, tmp_path / "other.safetensors", metadata={"format": "pt"})
    refused(tmp_path / "other.safetensors", "is not a model of latentforce")
    (tmp_path / "large").write_bytes((2**30).to_bytes(8, "little") + b"{" * 100)
    refused(tmp_path / "large", "its header would be 1073741824 bytes")
    (tmp_path / "deep").write_bytes((200_000).to_bytes(8, "little") + b"[" * 200_000)
    refused(tmp_path / "deep")
    with pytest.raises(FileNotFoundError):
        lf.load(tmp_path / "missing")


def rewrite(path, change):
    """The file with a changed document or arrays, and a right checksum: what a hostile or future writer could make."""
    arrays = load_file(path)
    document = json.loads(_format._text(path)[0])
    change(document, arrays)
    text = json.dumps(document)
    save_file(arrays, path, metadata={"latentforce": text, "sha256": _format._digest(text, arrays)})


def first(arrays):
    return next(name for name in sorted(arrays) if arrays[name].ndim)


def models(document):
    return document["models"]["tuple"]


CHANGES = {
    "future": (lambda d, a: d.update(schema=99), "newer version of latentforce .* Please upgrade"),
    "no schema": (lambda d, a: d.pop("schema"), "does not say which schema"),
    "not a number": (lambda d, a: a.update({first(a): np.full_like(a[first(a)], np.nan)}), "not finite numbers, in"),
    "a shape": (lambda d, a: a.update({"model.0.layers.0.posterior.mean": np.ones((1, 1, 3))}), "damaged"),
    "an array less": (lambda d, a: a.pop(first(a)), "the array .* is missing"),
    "a stranger": (lambda d, a: models(d)[0].update(kind="Popen"), "a part 'Popen' that this version does not know"),
    "a field": (lambda d, a: models(d)[0]["fields"].pop("layers"), "fields .* instead of"),
    "another estimator": (lambda d, a: d.update(estimator="os.system"), "damaged"),
    "another part": (lambda d, a: models(d).append(models(d)[0]["fields"]["likelihood"]), "damaged"),
    "no model": (lambda d, a: models(d).clear(), "damaged"),
    "targets": (lambda d, a: d["targets"].update(scale=[1.0, 2.0]), "predicts 1 targets, its units are of 2"),
    "a column": (lambda d, a: d["table"].append(d["table"][0]), "damaged"),
    "a parameter": (lambda d, a: d["parameters"].update(colour="red"), "damaged"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changed_with_intent(path, name):
    change, message = CHANGES[name]
    rewrite(path, change)
    refused(path, message)


def test_nothing_is_lost_when_writing_fails(fitted, path, monkeypatch):
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_format.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        fitted.save(path)
    monkeypatch.undo()
    assert path.read_bytes() == before and os.listdir(path.parent) == ["model.lforce"]
    with pytest.raises(FileNotFoundError):
        fitted.save(path.parent / "missing" / "model.lforce")

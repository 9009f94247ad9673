"""Data as sums: the same whatever the blocks and chunks, with weights, units settled afterwards, and files."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import latentforce as lf
from latentforce.inference import _compression

INTERVAL = (-0.1, 1.1)


@pytest.fixture
def data():
    generator = np.random.default_rng(2)
    t = generator.uniform(0.0, 1.0, 5000)
    y = np.stack([np.sin(9 * t), 3 + t], axis=1) + 0.1 * generator.standard_normal((5000, 2))
    return t, y


def equal(one, other, rtol=1e-12):
    for left, right in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(left, right, rtol=rtol, atol=1e-12 * np.max(np.abs(right)))


def test_sums_over_nodes_are_sums_over_data(data, x64):
    t, y = data
    found = lf.compress(t, y, INTERVAL, bins=20)
    for function in (np.ones_like, np.cos, lambda s: np.exp(-3 * s) * np.sin(20 * s)):
        at_nodes = function(np.asarray(found.nodes[:, 0]))
        np.testing.assert_allclose(found.weights @ at_nodes, function(t).sum(), rtol=1e-11)
        np.testing.assert_allclose(found.targets.T @ at_nodes, y.T @ function(t), rtol=1e-11)
    np.testing.assert_allclose(found.squares, (y**2).sum(axis=0), rtol=1e-13)


def test_blocks_chunks_and_memory_maps_make_no_difference(data, x64, monkeypatch, tmp_path):
    t, y = data
    at_once = lf.compress(t, y, INTERVAL, bins=20, dense=4)
    monkeypatch.setattr(_compression, "BLOCK", 999)
    equal(lf.compress(t, y, INTERVAL, bins=20, dense=4), at_once)
    chunks = ((t[start : start + 1234], y[start : start + 1234]) for start in range(0, len(t), 1234))
    equal(lf.compress_chunks(chunks, INTERVAL, bins=20, dense=4), at_once)
    np.save(tmp_path / "t.npy", t.astype(np.float32))
    np.save(tmp_path / "y.npy", y)
    mapped = (np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "ty")
    equal(lf.compress(*mapped, INTERVAL, bins=20, dense=4), at_once, rtol=1e-4)


def test_a_weight_of_two_is_the_row_twice(data, x64):
    t, y = data
    twice = lf.compress(np.repeat(t, 2), np.repeat(y, 2, axis=0), INTERVAL, bins=20)
    equal(lf.compress(t, y, INTERVAL, weight=np.full(len(t), 2.0), bins=20), twice)
    equal(lf.compress_chunks([(t, y, np.full(len(t), 2.0))], INTERVAL, bins=20), twice)


def test_units_settled_afterwards(data, x64):
    t, y = data
    mean, scale = y.mean(axis=0), y.std(axis=0)
    later = lf.compress(t, y, INTERVAL, bins=20).standardised(jnp.asarray(mean), jnp.asarray(scale))
    equal(later, lf.compress(t, (y - mean) / scale, INTERVAL, bins=20), rtol=1e-9)


def test_points_at_the_edges_of_bins_are_counted_once(x64):
    t = np.linspace(0.0, 1.0, 17)
    found = lf.compress(t, t, (0.0, 1.0), bins=16, degree=4, dense=3)
    np.testing.assert_allclose([jnp.sum(found.weights), jnp.sum(found.targets)], [17, t.sum()], rtol=1e-13)


@pytest.mark.parametrize("name", ["lfm-driven", "gp-driven", "lfm-vfrf", "gp-vff", "lfm-rff"])
def test_the_bound_of_many_points(name, x64):
    generator = np.random.default_rng(3)
    t = generator.uniform(0.0, 1.0, 100_000)
    y = np.sin(9 * t) + 0.1 * generator.standard_normal(len(t))
    options = {} if name == "lfm-rff" else {"interval": INTERVAL}
    model = lf.build(name, t, y, num_frequencies=10, lengthscale=0.2, **options)
    whole = lf.collapsed_bound(model, lf.whole(jnp.asarray(t)[:, None], jnp.asarray(y)[:, None]))
    np.testing.assert_allclose(lf.collapsed_bound(model, lf.compress(t, y, INTERVAL, bins=32)), whole, rtol=1e-9)


def test_training_on_compressed_data_is_training_on_the_data(x64):
    generator = np.random.default_rng(3)
    t = generator.uniform(0.0, 1.0, 400)
    y = np.sin(9 * t) + 0.1 * generator.standard_normal(len(t))
    model = lf.build("lfm-driven", t, y, num_frequencies=5, interval=INTERVAL)
    options = {"steps": 5, "optimizer": optax.adam(0.01)}
    short = lf.fit(model, lf.compress(t, y, INTERVAL, bins=32, dense=4), **options)
    whole = lf.fit(model, t, y, objective=lf.collapsed_bound, **options)
    np.testing.assert_allclose(short.history.objective, whole.history.objective, rtol=1e-7)
    with pytest.raises(ValueError, match="`y` must be None where the data are compressed"):
        lf.fit(model, lf.compress(t, y, INTERVAL), y)


def test_bad_input(data):
    t, y = data
    for call, message in (
        (lambda: lf.compress(t, y[:-1], INTERVAL), "`t` must be one-dimensional, with as many rows as `y`"),
        (lambda: lf.compress(t, y, (0.2, 0.8)), "`t` must lie inside `interval`"),
        (lambda: lf.compress(t, y, (0.8, 0.2)), "`interval` must be a pair"),
        (lambda: lf.compress(np.append(t, np.nan), np.append(y, y[:1], axis=0), INTERVAL), "`t` must be finite"),
        (lambda: lf.compress_chunks([], INTERVAL), "`chunks` must hold some data"),
        (lambda: lf.compress(t, y, INTERVAL) + lf.compress(t, y, INTERVAL, bins=9), "`other` must be of data"),
    ):
        with pytest.raises(ValueError, match=message):
            call()

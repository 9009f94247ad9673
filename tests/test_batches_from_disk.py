"""Batches of data that outgrow memory: every row its turn, the same again from the seed, and read ahead."""

import itertools
import threading

import jax
import jax.numpy as jnp
import numpy as np
import optax
import polars as pl
import pytest

import latentforce as lf

GENERATOR = np.random.default_rng(0)
X = GENERATOR.uniform(size=(1000, 2))
Y = np.stack([np.arange(1000.0), np.sin(5 * X[:, 0])], axis=1)  # the first says which row it is


def on_disk(folder):
    np.save(folder / "x.npy", X)
    np.save(folder / "y.npy", Y)
    return tuple(np.load(folder / name, mmap_mode="r") for name in ("x.npy", "y.npy"))


def in_parquet(folder):
    columns = {"a": X[:, 0], "row": Y[:, 0], "b": X[:, 1], "wave": Y[:, 1]}
    pl.DataFrame(columns).write_parquet(folder / "data.parquet", row_group_size=300)
    return folder / "data.parquet"


def in_pieces(size=70):
    return [(X[start : start + size], Y[start : start + size]) for start in range(0, 1000, size)]


SOURCES = {
    "arrays": lambda folder: ((X, Y), {}),
    "memory maps": lambda folder: (on_disk(folder), {}),
    "parquet": lambda folder: (in_parquet(folder), {"targets": ["row", "wave"]}),
    "list": lambda folder: (in_pieces(), {}),
    "function": lambda folder: (lambda: iter(in_pieces()), {}),
}


def make(name, folder, size=32, **options):
    source, given = SOURCES[name](folder)
    return lf.Batches(source, size, **given, **options)


def taken(batches, number, start=0):
    return list(itertools.islice(batches.after(start), number))


@pytest.mark.parametrize("name", SOURCES)
def test_every_row_has_its_turn(name, tmp_path):
    batches = make(name, tmp_path, window=256)
    assert batches.num_rows == 1000
    windows = [256 + (-256 % 70 if name in ("list", "function") else 0)] * 3
    dealt = sum(rows // 32 for rows in [*windows, 1000 - sum(windows)])  # in each window some rows may be left
    for epoch in range(2):
        seen = np.concatenate([y[:, 0] for _, y in taken(batches, dealt, epoch * dealt)])
        assert len(np.unique(seen)) == len(seen) == 32 * dealt
    for x, y in taken(batches, 5):
        assert x.shape == (32, 2) and y.shape == (32, 2)
        np.testing.assert_array_equal(x, X[y[:, 0].astype(int)])  # inputs and targets stay together
        np.testing.assert_array_equal(y, Y[y[:, 0].astype(int)])


def test_rows_are_shuffled():
    """Also between blocks, and otherwise in each epoch; where all are in one window, all are mixed."""
    rows = np.concatenate([y[:, 0] for _, y in taken(lf.Batches((X, Y), 100), 20)]).reshape(2, 1000)
    assert np.array_equal(np.sort(rows), np.tile(np.arange(1000.0), (2, 1)))
    for order in rows:
        assert abs(np.corrcoef(order, np.arange(1000))[0, 1]) < 0.15
    assert abs(np.corrcoef(*rows)[0, 1]) < 0.15
    first = taken(lf.Batches((X, Y), 50, window=160), 1)[0][1][:, 0]
    assert len(np.unique(first // 10)) > 10  # from many blocks of ten rows, not from five


@pytest.mark.parametrize("name", SOURCES)
def test_the_seed_tells_all(name, tmp_path):
    def rows(seed, start=0, number=60):
        return np.stack([y[:, 0] for _, y in taken(make(name, tmp_path, window=256, seed=seed), number, start)])

    whole = rows(0)
    np.testing.assert_array_equal(whole, rows(0))
    assert not np.array_equal(whole, rows(1))
    for start in (1, 25, 47):  # as after a checkpoint
        np.testing.assert_array_equal(whole[start:], rows(0, start, 60 - start))


def test_what_is_skipped_is_not_read():
    class Watched(np.ndarray):
        read = 0

        def __getitem__(self, key):
            Watched.read += 1
            return np.asarray(super().__getitem__(key))

    batches = lf.Batches((X[:768].view(Watched), Y[:768]), 32, window=256)
    taken(batches, 1, start=24 * 100 + 17)  # a hundred epochs and two windows on
    assert Watched.read == 16


def options(**more):
    return {"steps": 12, "chunk": 4, "num_samples": 1} | more


def start_model(y=Y[:, 1]):
    return lf.build("lfm-driven", X, y, num_frequencies=2)


def same(one, other):
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


def test_training_takes_the_batches_in_turn(x64):
    batches = lf.Batches((X, Y[:, 1]), 50, seed=3)
    fitted = lf.fit(start_model(), batches, **options(optimizer=optax.sgd(0.0)))
    data = [lf.whole(*map(jnp.asarray, pair))._replace(num_data=jnp.asarray(1e3)) for pair in taken(batches, 12)]
    bound = jax.jit(lf.elbo)  # exact for one layer: any key will do
    expected = [float(bound(start_model(), batch, jax.random.key(0))) for batch in data]
    np.testing.assert_allclose(fitted.history.objective, expected, rtol=1e-10)


def test_resumed_to_the_bit(tmp_path):
    def batches(seed=0):
        return lf.Batches((X, Y[:, 1]), 50, window=300, seed=seed)

    whole = lf.fit(start_model(), batches(), **options())
    kept = options(checkpoint=tmp_path / "run.ckpt", every=4)
    lf.fit(start_model(), batches(), **kept, callback=lambda progress: progress.step == 8)
    resumed = lf.fit(start_model(), batches(), **kept, resume=True)
    assert same(resumed.model, whole.model)
    assert resumed.history.objective == whole.history.objective
    for other in (batches(seed=1), lf.Batches((X, Y[:, 1] + 1e-9), 50, window=300), lf.Batches((X, Y[:, 1]), 49)):
        with pytest.raises(ValueError, match=r"`resume`.*data"):
            lf.fit(start_model(), other, **kept, resume=True)


def test_failures_try_the_same_batches_again():
    fitted = lf.fit(start_model(), lf.Batches((X, Y[:, 1]), 50), **options(learning_rate=1e4, decay=False))
    assert fitted.history.retries > 0 and len(fitted.history.objective) == 12


def test_an_iterator_serves_as_long_as_it_lasts():
    def endless():
        while True:
            yield X, Y[:, 1]

    batches = lf.Batches(endless(), 50, num_rows=1000, window=1000)
    model = lf.build("lfm-driven", *batches.sample(100), num_frequencies=2)
    assert len(lf.fit(model, batches, **options()).history.objective) == 12
    short = lf.Batches(iter(in_pieces()), 50, num_rows=1000, window=100)
    assert len(taken(short, 12)) == 12
    with pytest.raises(ValueError, match="`source` must give at least `size` rows"):
        taken(short, 20)


def test_the_thread_ends_with_the_training():
    def broken():
        yield from in_pieces()[:3]
        raise OSError("the disk is gone")

    before = threading.active_count()
    lf.fit(start_model(), lf.Batches((X, Y[:, 1]), 50), **options())
    with pytest.raises(OSError, match="the disk is gone"):
        lf.fit(start_model(Y), lf.Batches(broken, 50, num_rows=1000, window=100), **options())
    assert threading.active_count() == before


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: lf.Batches((X, Y), 0), "`size` must be a whole number"),
        (lambda: lf.Batches((X, Y), 2000), "`size` must not be above the number of rows, 1000, got 2000"),
        (lambda: lf.Batches((X, Y[1:]), 5), "`source` must be arrays of equally many rows, got 1000 and 999"),
        (lambda: lf.Batches(5, 5), "`source` must be a pair of arrays.*got int"),
        (lambda: lf.Batches([1, 2], 5), "`source` must give pairs"),
        (lambda: lf.Batches(iter(in_pieces()), 5), "`num_rows` must be given where `source` can be gone through only"),
        (lambda: lf.Batches((X, Y), 5, targets="y"), "`targets` and `inputs` must be None unless `source` is a Parq"),
        (lambda: taken(lf.Batches(lambda: iter([]), 5, num_rows=9), 1), "`source` must give at least `size` rows"),
        (lambda: taken(lf.Batches((X * np.nan, Y), 5), 1), r"`x\[0:1000\]` must be finite"),
        (lambda: lf.fit(start_model(), lf.Batches((X, Y[:, 1]), 5), Y), "`y` must be None where the data are batches"),
        (lambda: lf.fit(start_model(), lf.Batches((X, Y), 5)), "`y` must have as many columns as the data the model"),
        (lambda: lf.fit(start_model(), lf.Batches((X[:, :1], Y), 5)), "`x` must have 2 columns"),
    ],
)
def test_bad_sources(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_columns_of_parquet_files(tmp_path):
    path = in_parquet(tmp_path)
    x, y = taken(lf.Batches(path, 10, targets="row", inputs=["b"]), 1)[0]
    np.testing.assert_array_equal(x[:, 0], X[y[:, 0].astype(int), 1])
    for given in ({}, {"targets": "none"}, {"targets": "row", "inputs": []}):
        with pytest.raises(
            ValueError, match=r"`targets` and `inputs` must be columns of .*data.parquet \(a, row, b, wave"
        ):
            lf.Batches(path, 10, **given)

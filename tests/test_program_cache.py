"""Where the command line keeps compiled programs."""

import platform

import jax
import pytest

from latentforce.commands._cache import keep_programs

NAMES = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")


@pytest.fixture
def untold():
    """JAX as it is where nobody has told it of a folder."""
    before = {name: jax.config.values[name] for name in NAMES}
    jax.config.update("jax_compilation_cache_dir", None)
    yield
    for name, value in before.items():
        jax.config.update(name, value)


def test_in_the_users_cache_folder(untold, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    keep_programs()
    folder = tmp_path / "latentforce" / platform.node()
    assert jax.config.values["jax_compilation_cache_dir"] == str(folder)
    assert folder.is_dir()


def test_where_jax_was_told_it_stays(untold, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    jax.config.update("jax_compilation_cache_dir", "elsewhere")
    keep_programs()
    assert jax.config.values["jax_compilation_cache_dir"] == "elsewhere"
    assert not list(tmp_path.iterdir())


def test_nowhere_where_no_folder_can_be_made(untold, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    keep_programs()
    assert jax.config.values["jax_compilation_cache_dir"] is None

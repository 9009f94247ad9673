"""Every test runs strictly: no silent promotion of rank or dtype, in float64 and in float32."""

import gc
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

if "PYTEST_XDIST_WORKER" not in os.environ:  # workers, and what tests start, inherit what is set here
    # workers share the cores: threads that wait for each other cost most
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # compiling is most of the run, and this way of doing it takes a third of the time, with the same values
    os.environ |= {"JAX_DISABLE_MOST_OPTIMIZATIONS": "1", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    flags = ["use_fusion_emitters=false", "parallel_codegen_split_count=1", "prefer_vector_width=128"]
    probe = [sys.executable, "-c", "import jax; jax.devices()"]

    def with_flags(flags):
        return os.environ | {
            "XLA_FLAGS": " ".join([os.environ.get("XLA_FLAGS", ""), *(f"--xla_cpu_{f}" for f in flags)])
        }

    def known(flags):  # a jaxlib that does not know one of them dies
        return subprocess.run(probe, env=with_flags(flags), capture_output=True).returncode == 0

    os.environ |= with_flags(flags if known(flags) else [flag for flag in flags if known([flag])])

import jax
import pytest

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")

_tests = itertools.count(1)
_MAPS = Path("/proc/self/maps")


def pytest_configure(config):
    """What one worker has compiled the others need not compile again."""
    if not hasattr(config, "workerinput"):
        os.environ["JAX_COMPILATION_CACHE_DIR"] = tempfile.mkdtemp(prefix="compiled-")  # workers inherit it
    jax.config.update("jax_compilation_cache_dir", os.environ["JAX_COMPILATION_CACHE_DIR"])


def pytest_collection_finish():
    """Tracing makes objects by the million, few of them garbage: look for it seldom, and not among what stays."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)


def pytest_unconfigure(config):
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ.pop("JAX_COMPILATION_CACHE_DIR"))


@pytest.fixture(autouse=True)
def bounded_number_of_programs():
    """Every compiled program holds pieces of memory, of which Linux gives a process 65530: forget them in time."""
    yield
    if next(_tests) % 20 == 0 and _MAPS.exists() and _MAPS.read_bytes().count(b"\n") > 25_000:
        jax.clear_caches()


@pytest.fixture(params=["float64", "float32"])
def dtype(request):
    """The test runs once with 64-bit and once with 32-bit numbers as JAX's default."""
    with jax.enable_x64(request.param == "float64"):
        yield request.param


@pytest.fixture
def x64():
    """The test runs with 64-bit numbers."""
    with jax.enable_x64(True):
        yield

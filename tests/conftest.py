"""Every test runs strictly: no silent promotion of rank or dtype, in float64 and in float32."""

import jax
import pytest

jax.config.update("jax_disable_most_optimizations", True)  # compiling is most of the run; values are the same
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")


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

"""Compiled programs kept from one call of the command line to the next."""

import os
import platform
import warnings
from pathlib import Path

import jax

WORTH_KEEPING = 0.1  # seconds of compiling


def keep_programs() -> None:
    """Have JAX keep them in the user's cache folder, unless it was told of another or of none.

    Each host has a folder of its own: processors differ. Where none can be made, or two processes meet in one, a
    program is compiled again, which nobody need be told.
    """
    settings = jax.config.values
    if settings["jax_compilation_cache_dir"] is not None or not settings["jax_enable_compilation_cache"]:
        return
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "latentforce" / platform.node()
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return
    warnings.filterwarnings("ignore", "Error (reading|writing) persistent compilation cache")
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", WORTH_KEEPING)

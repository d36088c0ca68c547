"""What every test shares: eight CPU devices, so that sharding can be tested anywhere, and one cache
of compiled programs, in pytest's own cache folder, since many tests train the same small models."""

import os

import jax
import pytest

from xling_jax import devices

devices.set_cpu_devices(8)
os.environ.setdefault("MPLBACKEND", "Agg")


def pytest_configure(config: pytest.Config) -> None:
    """The cache is named in the environment too, for the commands that tests start."""
    cache = {
        "jax_compilation_cache_dir": str(config.cache.mkdir("compiled")),
        "jax_persistent_cache_min_compile_time_secs": 0.2,
    }
    for name, value in cache.items():
        jax.config.update(name, value)
        os.environ.setdefault(name.upper(), str(value))

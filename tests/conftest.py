"""What every test shares: eight CPU devices, so that sharding can be tested anywhere; programs that
LLVM does not optimise, since tests compile far longer than they compute; and one cache of compiled
programs, in pytest's own cache folder, since many tests train the same small models."""

import os

import jax
import pytest

from xling_jax import devices
from xling_jax.report import figures

devices.set_cpu_devices(8)
os.environ.setdefault("MPLBACKEND", "Agg")
LONGEST = (  # files, those that train most first
    "test_bilingual",
    "test_main",
    "test_groups",
    "test_processes",
    "test_real_xnli",
    "test_zero_shot",
    "test_evaluate",
    "test_similarity_experiment",
    "test_bilingual_input",
    "test_training",
    "test_stream_step",
    "test_finetune",
)


def pytest_configure(config: pytest.Config) -> None:
    """JAX's settings, in the environment too, for the commands that tests start.

    Those need no other allocator, for which they would start a second time (`suit_libraries`);
    threads of OpenBLAS would spin beside several processes of tests.
    """
    config.option.loadscopereorder = False  # xdist's: files stay in the order of below
    os.environ.setdefault(devices.TUNABLES, "")
    os.environ.setdefault(devices.BLAS_THREADS, "1")
    settings: dict[str, object] = {"jax_disable_most_optimizations": True}
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ and hasattr(config, "cache"):
        settings["jax_compilation_cache_dir"] = str(config.cache.mkdir("compiled"))
        settings["jax_persistent_cache_min_compile_time_secs"] = 0.2
    for name, value in settings.items():
        jax.config.update(name, value)
        os.environ[name.upper()] = str(value)


@pytest.fixture(scope="module")
def without_pictures():
    """Reports have no figures, which take a tenth of the time of runs as small as the tests'."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(figures, "can_draw", lambda: False)
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files come first, so that at the end no process is left alone with one."""
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.stem, len(places)))

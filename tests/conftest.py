"""What every test shares: eight CPU devices, so that sharding can be tested anywhere, and no
accelerator; programs that are quick to trace and compile, since tests do that far longer than they
compute; one cache of compiled programs, in pytest's own cache folder, since many tests train the
same small models; less patience in VecMap, enough for the tests' easy vectors (commands that tests
start keep the paper's); and the command itself, called in the tests' process."""

import gc
import os
import subprocess
import sys
import threading

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # before JAX is imported

import jax
import pytest
from absl.testing import flagsaver
from small_run import on_devices

from xling_jax import devices, errors, main
from xling_jax.linalg import vecmap
from xling_jax.report import figures

devices.set_cpu_devices(8)
vecmap.PATIENCE = 10
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.pop(errors.TRACEBACK, None)  # errors take one line
CAN_DRAW = figures.can_draw  # before tests forbid it
# XLA's older kernels take a third less time to compile. With them, programs that differ may round
# differently: tests that such programs give the same bits are marked slow, and sessions with slow
# tests have the newer kernels.
OLDER_KERNELS = "--xla_cpu_use_fusion_emitters=false"
WHOLE_MODULES = "--xla_cpu_parallel_codegen_split_count=1"  # LLVM compiles a program in one piece
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
    gc.set_threshold(100_000, 50, 100)  # tracing makes many objects, and few that are garbage
    settings: dict[str, object] = {
        "jax_disable_most_optimizations": True,
        "jax_traceback_in_locations_limit": 0,  # lines of Python in every operation's location
    }
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ and hasattr(config, "cache"):
        settings["jax_compilation_cache_dir"] = str(config.cache.mkdir("compiled"))
        settings["jax_persistent_cache_min_compile_time_secs"] = 0.2
    for name, value in settings.items():
        jax.config.update(name, value)
        os.environ[name.upper()] = str(value)
    if "XLA_FLAGS" not in os.environ:
        older = [OLDER_KERNELS] if config.option.markexpr == "not slow" else []
        flags = " ".join([*older, WHOLE_MODULES])
        os.environ["XLA_FLAGS"] = flags if _starts_with(flags) else ""


def _starts_with(flags: str) -> bool:
    """Whether JAX starts with flags of XLA's, which aborts at one that it does not know."""
    start = [sys.executable, "-c", "import jax; jax.devices()"]
    tried = subprocess.run(start, env={**os.environ, "XLA_FLAGS": flags}, capture_output=True)
    return tried.returncode == 0


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Reports written in this process have figures, which take long to draw, only in tests that are
    marked `pictures`."""
    figures.can_draw = CAN_DRAW if item.get_closest_marker("pictures") else lambda: False


@pytest.fixture
def own_hooks(monkeypatch):
    """Gives Python its hooks back, which the command keeps where it ends a program."""
    for hook in ((sys, "unraisablehook"), (threading, "excepthook")):
        monkeypatch.setattr(*hook, getattr(*hook))


@pytest.fixture
def called(own_hooks, monkeypatch, capfd):
    """The command in this process, on one device: its status, output and errors."""
    monkeypatch.setattr(devices, "set_cpu_devices", lambda _: None)  # this process has used them

    def call(arguments):
        monkeypatch.setattr(sys, "argv", ["main.py", *arguments])
        capfd.readouterr()
        with on_devices(1), flagsaver.flagsaver(), pytest.raises(SystemExit) as end:
            sys.exit(main.main())
        return end.value.code or 0, *capfd.readouterr()

    return call


@pytest.fixture
def said(tmp_path, called):
    """What the command says of bad arguments; nothing else is printed, and nothing written."""

    def run(arguments):
        workdir = tmp_path / "run"
        status, printed, line = called([f"--workdir={workdir}", *arguments])
        assert status in (1, 2) and not workdir.exists(), arguments
        assert not printed and line.startswith("error: ") and line.count("\n") == 1, line
        return line

    return run


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files come first, so that at the end no process is left alone with one."""
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.stem, len(places)))

"""Runs an experiment: `python -m xling_jax.main --config=configs/fake_english.py`."""

import importlib
import os
import sys
import traceback
from pathlib import Path

from absl import app, flags, logging
from ml_collections import config_flags

from xling_jax import devices, processes

CONFIG = config_flags.DEFINE_config_file(
    "config", None, "The experiment, as FILE.py or FILE.py:OPTION=VALUE,…", lock_config=True
)
WORKDIR = flags.DEFINE_string(
    "workdir", None, "Where the run is stored and resumed from (default: below runs/)."
)
PREPARE = flags.DEFINE_bool("prepare", False, "Only prepare the texts of an experiment on streams.")
# The names of configs.
LABORATORIES = ("fake_english", "bilingual", "similarity", "zero_shot", "natural")
INTERRUPTED = 143  # exit status, as of a process that SIGTERM ended


def run(arguments: list[str]) -> int:
    """Runs the experiment of the flags; returns the exit status."""
    if len(arguments) > 1:
        raise app.UsageError(f"unknown argument {arguments[1]!r}: write --config=… --workdir=…")
    logging.set_verbosity(logging.ERROR)  # the libraries' reports of their every step
    config = CONFIG.value
    workdir = Path(WORKDIR.value or Path("runs") / config.workdir)
    devices.set_cpu_devices(config.devices.cpu)

    # Imported late: it takes seconds, and the devices must not be used before.
    from xling_jax.training.interruption import Interrupted
    from xling_jax.training.loop import Diverged

    try:
        processes.start()
        if config.name not in LABORATORIES:
            raise ValueError(f"config.name={config.name!r}: choose from {', '.join(LABORATORIES)}")
        laboratory = importlib.import_module(f"xling_jax.{config.name}.laboratory")
        made = laboratory.Laboratory(config, workdir)
        if PREPARE.value:
            if not hasattr(made, "prepare"):
                raise ValueError(f"--prepare: {config.name} reads its texts when it runs")
            print(processes.by_first(made.prepare))
            return 0
        table = made.run()
        if processes.is_first():
            print(table)
    except Interrupted as error:
        print(error, file=sys.stderr)
        return INTERRUPTED
    except (ValueError, FileNotFoundError, Diverged) as error:
        if os.environ.get("XLING_JAX_TRACEBACK"):
            raise
        message = f"error: {error}"
        if processes.are_several():
            processes.end(1, message)
        print(message, file=sys.stderr)
        return 1
    except Exception as error:
        if processes.are_several():
            processes.end_if_abandoned(error)
            processes.end(1, traceback.format_exc())
        raise
    page = workdir / "report" / "report.html"
    if processes.is_first():
        print(f"\nReport: {page if page.exists() else page.parent / 'tables'}")
    return 0


def parse(arguments: list[str]) -> list[str]:
    """Parses the flags; ends the program with one line where they, or the config, are wrong."""
    try:
        return flags.FLAGS(arguments)
    except Exception as error:  # whatever a config file raises
        cause: BaseException = error
        while cause.__cause__ or cause.__context__:
            cause = cause.__cause__ or cause.__context__  # type: ignore[assignment]
        message = " ".join(str(cause).split())
        for argument in arguments:
            name, _, value = argument.partition("=")
            if name.startswith("--config.") and f"'{name.rsplit('.', 1)[1]}'" in message:
                message = f"{name}: the config has no such field"
            elif name.startswith("--config.") and f"'{value}'" in message:
                message = f"{argument}: {message}"
        print(f"error: {message}", file=sys.stderr)
        sys.exit(2)


def main() -> None:
    """The command's entry point."""
    devices.keep_memory(sys.argv)
    flags.mark_flag_as_required("config")
    app.run(lambda arguments: sys.exit(run(arguments)), flags_parser=parse)


if __name__ == "__main__":
    main()

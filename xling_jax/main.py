"""Runs an experiment: `python -m xling_jax.main --config=configs/fake_english.py`.

--help lists the flags; together with --config also the options and fields of that config.
"""

import ast
import io
import sys
from pathlib import Path

from absl import app, flags, logging
from ml_collections import ConfigDict, config_flags

from xling_jax import errors, processes
from xling_jax.runs import config_files, fields

# The rest is imported where it is used, so that errors there, such as a lack of memory, are also
# explained.


class _ConfigParser(flags.ArgumentParser[ConfigDict]):
    """Reads the config file, and refuses fields on the command line that it does not have."""

    def parse(self, path: str) -> ConfigDict:
        try:
            config = config_files.load_config(*path.split(":", 1))
            config_files.require_fields(config, "--config", sys.argv[1:])
        except ValueError as error:
            raise flags.Error(str(error)) from error  # Abseil does not change these
        return config.lock()


CONFIG = config_flags.DEFINE_config_file(
    "config", None, "The experiment, as FILE.py or FILE.py:OPTION=VALUE,…"
)
flags.FLAGS[CONFIG.name].parser = _ConfigParser()
WORKDIR = flags.DEFINE_string(
    "workdir", None, "Where the run is stored and resumed from (default: below runs/)."
)
PREPARE = flags.DEFINE_bool(
    "prepare", False, "Make the token files of an experiment on streams, and stop (bilingual only)."
)
flags.register_validator(
    CONFIG, lambda config: config is not None, "name a config file, such as configs/fake_english.py"
)
flags.register_validator(WORKDIR, lambda folder: folder != "", "name a folder")
HELP = {"-h", "--help", "--helpfull", "--helpshort"}
INTERRUPTED = 143  # exit status, the same as of a process that SIGTERM ended


def run() -> int:
    """Runs the experiment of the flags; returns the exit status."""
    # Libraries would report every step, and errors that they raise as well.
    logging.set_verbosity(logging.FATAL)
    config = CONFIG.value
    fields.check(config)
    workdir = Path(WORKDIR.value or Path("runs") / config.workdir).expanduser()

    import jax

    from xling_jax import devices
    from xling_jax.training.interruption import Interrupted
    from xling_jax.training.metrics import say

    devices.set_cpu_devices(config.devices.cpu)
    processes.start()
    if jax.config.read("jax_enable_x64"):
        jax.config.update("jax_enable_x64", False)
        say("JAX_ENABLE_X64 has no effect here: everything is computed in 32 bits or fewer")
    kind = fields.experiment(config.name)
    if PREPARE.value and not hasattr(kind, "prepare"):
        raise ValueError(f"--prepare: {config.name} reads its texts when it runs")
    try:
        experiment = kind(config, workdir)
        if PREPARE.value:
            made = experiment.prepare()
            if processes.is_first():
                print(made)
            return 0
        table = experiment.run()
    except Interrupted as error:
        print(error, file=sys.stderr)
        return INTERRUPTED
    if processes.is_first():
        print(f"{table}\n\nReport: {workdir / 'report' / 'report.html'}")
    return 0


def usage(arguments: list[str]) -> str:
    """The help: the flags, and the fields of the config if the arguments name one."""
    holders = (CONFIG, WORKDIR, PREPARE, processes.COUNT, processes.INDEX, processes.COORDINATOR)
    lines = [f"{__doc__}\nFlags:\n"]
    lines += [f"--{each.name}\n    {flags.FLAGS[each.name].help}" for each in holders]
    rest = [argument for argument in arguments if argument not in HELP]
    if any(argument.startswith("--config") for argument in rest):
        errors.parse_flags(rest)
        path, _, _ = config_flags.get_config_filename(flags.FLAGS[CONFIG.name]).partition(":")
        about = ast.get_docstring(ast.parse(Path(path).read_text("utf-8"))) or ""
        lines += [f"\n{about}\n\nThe fields of this config:\n"]
        lines += fields.described(CONFIG.value)
    return "\n".join(lines)


def main() -> None:
    """The command's entry point."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal may lack some characters
    with errors.in_one_line():
        if not HELP.isdisjoint(sys.argv):
            print(usage(sys.argv))
            return
        from xling_jax import devices

        devices.suit_libraries(sys.argv)
        app.run(lambda _: sys.exit(run()), flags_parser=errors.parse_flags)


if __name__ == "__main__":
    main()

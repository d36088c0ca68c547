"""Fake-English at a size that trains in seconds, as a config and as a command."""

import contextlib
import importlib.util
import json
import signal
import subprocess
import sys
from pathlib import Path
from unittest import mock

import jax
import numpy as np

from xling_jax.training import checkpoints

ROOT = Path(__file__).parent.parent
CONFIG = ROOT / "configs" / "fake_english.py"
SMALL = {
    "batches.sentences": 64,
    "models.dropout": 0.0,
    "corpora.train_sentences": 300,
    "corpora.dev_sentences": 60,
    "corpora.synthetic.word_types": 200,
    "vocabulary.size": 200,
    "vocabulary.neighbours.skip_gram.epochs": 1,
    "vocabulary.neighbours.skip_gram.buckets": 2000,
    "models.layers": 1,
    "models.hidden": 16,
    "models.intermediate": 32,
    "overparam.hidden": 32,
    "overparam.intermediate": 64,
    "overparam.heads": 2,
    "overparam.epochs": 0,
    "training.steps_per_call": 4,
    "training.save_every": 5,
    "devices.cpu": 1,
}


def config(options, **changes):
    """The config with the fields of `SMALL` and these."""
    return config_of(CONFIG, options, {**SMALL, **changes})


def config_of(file, options, fields):
    """The config of a file with some fields set."""
    spec = importlib.util.spec_from_file_location("config", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = module.get_config(options)
    with made.ignore_type():
        made.update_from_flattened_dict(fields)
    return made


@contextlib.contextmanager
def on_devices(number):
    """Lets experiments see only so many of the tests' devices: for one they compile fastest."""
    seen = jax.devices()[:number]
    with (
        mock.patch("jax.devices", lambda *_: seen),
        mock.patch("jax.device_count", lambda: number),
    ):
        yield


def command(workdir, options="row=0,epochs=2", **changes):
    """The command line of the same."""
    fields = {**SMALL, **changes}
    return [
        sys.executable,
        "-m",
        "xling_jax.main",
        f"--config={CONFIG}:{options}",
        f"--workdir={workdir}",
        *(f"--config.{name}={value}" for name, value in fields.items()),
    ]


def run(*args, **kwargs):
    """Runs the command to its end."""
    return subprocess.run(command(*args, **kwargs), capture_output=True, text=True, cwd=ROOT)


def interrupted(arguments, is_time, number=signal.SIGKILL):
    """Runs a command until a line of progress for which `is_time` holds, then sends a signal."""
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        for line in process.stderr:
            if is_time(line):
                process.send_signal(number)
                break
        process.stderr.read()
    return process.returncode


def results(workdir):
    """What a run stored, by row and seed."""
    stored = json.loads((workdir / "results.json").read_text())
    return {(result["row"], result["seed"]): result for result in stored}


def final_state(workdir, group=0):
    """Every leaf of a group's newest checkpoint, by name."""
    folder = workdir / "checkpoints" / f"group{group}"
    step = max(int(path.name) for path in folder.iterdir() if path.name.isdigit())
    leaves = {}

    def collect(value, name=""):
        if isinstance(value, dict | list):
            items = value.items() if isinstance(value, dict) else enumerate(value)
            for key, inner in items:
                collect(inner, f"{name}/{key}")
        elif value is not None:
            leaves[name] = np.asarray(value)

    collect(checkpoints.read(folder, step))
    return leaves


def assert_same_run(workdir, other, groups=1):
    """Raises unless all final parameters and results are equal, bit for bit."""
    for group in range(groups):
        mine, theirs = final_state(workdir, group), final_state(other, group)
        assert mine.keys() == theirs.keys() and len(mine) > 30
        for name, leaf in mine.items():
            np.testing.assert_array_equal(leaf, theirs[name], err_msg=name)
    assert (workdir / "results.json").read_text() == (other / "results.json").read_text()

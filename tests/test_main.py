"""The command itself: what it writes, how it resumes, what it says of bad input."""

import errno
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest
from absl import flags
from small_run import (
    CONFIG,
    ROOT,
    assert_same_run,
    command,
    config,
    config_of,
    interrupted,
    on_devices,
    run,
)

from xling_jax import devices, errors
from xling_jax.experiments.fake_english.experiment import Experiment
from xling_jax.runs import config_files, fields


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of two epochs, with the allocator that the command chooses."""
    workdir = tmp_path_factory.mktemp("runs") / "whole"
    with pytest.MonkeyPatch.context() as patched:
        patched.delenv(devices.TUNABLES)
        patched.delenv(devices.BLAS_THREADS)
        done = run(workdir)
    assert done.returncode == 0, done.stderr
    return workdir, done


def test_openblas_has_one_thread_unless_another_number_is_asked_for(monkeypatch):
    for asked, given in ((None, "1"), ("4", "4")):
        monkeypatch.delenv(devices.BLAS_THREADS, raising=False)
        if asked:
            monkeypatch.setenv(devices.BLAS_THREADS, asked)
        devices.suit_libraries([])  # the tunables are set: this process goes on
        assert os.environ[devices.BLAS_THREADS] == given


def test_it_writes_what_it_promises(finished):
    workdir, done = finished
    results = json.loads((workdir / "results.json").read_text())
    assert [(r["row"], r["seed"], r["step"]) for r in results] == [("0", 0, 20)]
    assert 0 <= results[0]["metrics"]["mu"] <= 1
    lines = [json.loads(line) for line in (workdir / "metrics.jsonl").read_text().splitlines()]
    evaluated = [line["step"] for line in lines if line["kind"] == "evaluation"]
    assert evaluated == sorted({round(20 * p / 100) for p in (5, 10, 20, 40, 60, 80, 95, 100)})
    assert (workdir / "report" / "report.html").read_text().startswith("<!")
    assert (workdir / "report" / "tables" / "table1.md").exists()
    assert "D&S 2020" in done.stdout and ".70" in done.stdout
    for said in (
        "train text",
        "compiled in",
        "MiB",
        "tokens/s",
        "% of the matrix rate",
        "left",
        "step 20 of 20",
    ):
        assert said in done.stderr


def test_a_finished_run_is_not_done_again(finished, called):
    workdir, done = finished
    before = (workdir / "metrics.jsonl").read_bytes()
    status, printed, _ = called(command(workdir)[3:])
    assert status == 0 and printed == done.stdout
    assert (workdir / "metrics.jsonl").read_bytes() == before


def test_another_config_is_refused_in_the_same_workdir(finished, called):
    workdir, _ = finished
    status, _, said = called(command(workdir, options="row=0,epochs=3")[3:])
    assert status == 1
    assert "training.epochs: 2 there, 3 now" in said


def test_killed_and_terminated_it_ends_with_the_same_bits(finished, tmp_path):
    """Killed between an evaluation and the next checkpoint; `test_groups` kills while it trains."""
    workdir, _ = finished
    assert (
        interrupted(command(tmp_path), lambda line: "seed 0, step 12:" in line) == -signal.SIGKILL
    )
    status = interrupted(command(tmp_path), lambda line: "step 15 of" in line, signal.SIGTERM)
    assert status == 143
    last = run(tmp_path)
    assert last.returncode == 0 and "resuming from the checkpoint" in last.stderr
    assert_same_run(tmp_path, workdir)


@pytest.mark.slow
def test_killed_at_20_random_moments_it_ends_with_the_same_bits(finished, tmp_path):
    workdir, _ = finished
    moments, kills, done = random.Random(0), 0, 0
    while kills < 20:
        process = subprocess.Popen(
            command(tmp_path), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT
        )
        try:
            assert process.wait(timeout=moments.uniform(3, 30)) == 0
            assert_same_run(tmp_path, workdir)
            shutil.rmtree(tmp_path / "checkpoints")
            (tmp_path / "results.json").unlink()
            done += 1
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills += 1
    assert run(tmp_path).returncode == 0
    assert_same_run(tmp_path, workdir)
    print(f"{kills} kills, {done + 1} runs to the end")


@pytest.mark.pictures
@pytest.mark.slow
def test_all_ablations_run_together_with_untrained_rows(tmp_path):
    with on_devices(1):
        Experiment(config("row=9+21b+18+no-random-as-published,epochs=1"), tmp_path).run()
    results = {r["row"]: r for r in json.loads((tmp_path / "results.json").read_text())}
    assert {row: r["step"] for row, r in results.items()} == {
        "9": 10,
        "21b": 10,
        "18": 0,
        "no-random-as-published": 10,
    }
    figures = {path.name for path in (tmp_path / "report" / "figures").iterdir()}
    assert any("position" in name for name in figures)


BAD = {
    "missing file": (
        {"corpora.train": "no.txt", "corpora.dev": "no.txt"},
        "corpora.train.*no.txt: no such file",
    ),
    "empty file": ({"corpora.train": "EMPTY", "corpora.dev": "EMPTY"}, "EMPTY has no text"),
    "invalid UTF-8": (
        {"corpora.train": "LATIN", "corpora.dev": "LATIN"},
        "LATIN, line 2: not valid UTF-8",
    ),
    "one word": (
        {"corpora.train": "WORD", "corpora.dev": "OTHER", "corpora.train_sentences": 0}
        | {"corpora.dev_sentences": 1},
        "vocabulary.size.*too large for this text",
    ),
    "held-out text that is trained on": (
        {"corpora.train": "WORD", "corpora.dev": "WORD", "corpora.train_sentences": 0}
        | {"corpora.dev_sentences": 1},
        "WORD is both train and dev of en: what is learned from cannot be tested on",
    ),
    "large vocabulary": ({"vocabulary.size": 90_000}, "vocabulary.size.*allows"),
    "short dev text": (
        {"corpora.train": "WORD", "corpora.dev": "WORD", "corpora.train_sentences": 0},
        "corpora.dev_sentences: 60",
    ),
    "one of two texts": ({"corpora.train": "WORD"}, "for both"),
    "one language": ({"corpora.languages": ("a",)}, "a tuple of 2 or more"),
    "batch not divisible": ({"batches.sentences": 63}, "choose 56 or 64"),
    "too few positions": ({"models.positions": 64}, "models.positions=64"),
    "heads do not divide": ({"models.heads": 3}, "models.heads=3"),
    "no epochs": ({"training.epochs": 0}, "training.epochs=0"),
    "bad vectors": (
        {"row": "30", "vocabulary.neighbours.vectors": ("no.vec", "no.vec")},
        "vocabulary.neighbours.vectors: no.vec: no such file",
    ),
    "vectors of one language": (
        {"row": "30", "vocabulary.neighbours.vectors": ("no.vec",)},
        "vocabulary.neighbours.vectors=.*give a .vec file for each",
    ),
    "a layer that is not there": ({"evaluators.layers": (0, 9)}, "has layers 0..1"),
    "short rows": ({"batches.row_lengths": (0,)}, "batches.row_lengths"),
    "no room for a piece": ({"batches.max_length": 2}, "batches.max_length=2"),
    "a negative seed": ({"seeds": (-1,)}, "seeds="),
    "an unknown row": ({"row": "99"}, "row='99'.*or a row: 0, 1"),
    "a row twice": ({"row": "0+0"}, "named twice"),
}


@pytest.mark.parametrize(("changes", "message"), BAD.values(), ids=BAD)
def test_bad_input_gets_one_clear_error_and_stores_no_config(changes, message, tmp_path):
    texts = {"EMPTY": b"", "LATIN": b"good\nna\xefve\n", "WORD": b"word\n", "OTHER": b"other\n"}
    for name, content in texts.items():
        (tmp_path / name).write_bytes(content)
    made = config(
        "epochs=1", **{k: str(tmp_path / v) if v in texts else v for k, v in changes.items()}
    )
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        Experiment(made, tmp_path / "run")
    assert not (tmp_path / "run" / "config.json").exists()


CONFIGS = {
    "empty.py": ("", "empty.py: a config file needs a function get_config"),
    "syntax.py": ("x = 1\ndef get_config(:", "syntax.py, line 2: invalid syntax"),
    "null.py": ("\0", "null.py, line 1: source code"),
    "none.py": ("def get_config():\n    pass", "get_config returns a NoneType, not a ConfigDict"),
    "key.py": ("def get_config():\n    return {}['rows']", "key.py, line 2: KeyError: 'rows'"),
    "value.py": ("x = int('x')", "value.py, line 1: invalid literal for int"),
    "imports.py": ("import no_such_module", "imports.py, line 1: ModuleNotFoundError"),
    "exits.py": ("raise SystemExit(0)", "exits.py, line 1: SystemExit"),
    "no_fields.py": (
        "from ml_collections import ConfigDict\ndef get_config():\n    return ConfigDict()",
        "config.name=None: choose from fake_english",
    ),
    "unknown.py": (
        "from ml_collections import ConfigDict\n"
        "def get_config():\n    return ConfigDict({'name': 'x'})",
        "config.name='x': choose from fake_english",
    ),
}
GOOD = f"--config={CONFIG}"
FOLDER = f"--config={ROOT}/configs"
LINES = [
    ([], "--config=None: name a config file"),
    (["--config"], "Missing value for flag --config"),
    (["--config="], "--config= is empty: name a config file"),
    ([f"{FOLDER}/fake_englsh.py"], r"no such file; is it .*/configs/fake_english.py\?"),
    ([f"{FOLDER}/transfer.py:task=ner"], "no such file; it is called .*/configs/zero_shot.py now"),
    (["--config=no/such/thing"], "--config=no/such/thing: no such file; name a config file"),
    (["--config=/dev/null"], "--config=/dev/null: not a regular file"),
    ([FOLDER], "a folder; name a file in it: .*bilingual.py"),
    ([f"--config={ROOT}/README.md"], r"/README.md, line \d+: "),
    (["--config=" + "x" * 5000], "File name too long: give shorter names"),
    ([f"{GOOD}:scale=huge"], "scale='huge' is unknown: choose from laptop, paper"),
    ([f"{GOOD}:row=0,seed=1"], "fake_english.py: unknown option 'seed=1'"),
    ([f"{GOOD}:seeds=a"], r"seeds='a': write whole numbers joined by \+, such as 0\+42"),
    ([f"{GOOD}:seeds=0++1"], "seeds='0[+][+]1': write whole numbers"),
    ([f"{GOOD}:seeds=4294967296"], r"seeds=\(4294967296,\): .* from 0 to 4,294,967,295"),
    ([f"{GOOD}:epochs=²"], "epochs='²': write one whole number"),
    ([f"{GOOD}:epochs=1e3"], "epochs='1e3': write one whole number"),
    ([f"{GOOD}:epochs=0"], "training.epochs=0: give a whole number from 1 to"),
    ([f"{GOOD}:row=0,row=3"], "option 'row=3' of the config: row is given twice"),
    ([f"{FOLDER}/bilingual.py:pair=near-far"], "near-far: the .* languages are en, near, middle"),
    ([f"{FOLDER}/bilingual.py:pair=en-near-fr"], "en-near-fr: .*, far, of which en comes first"),
    ([f"{FOLDER}/zero_shot.py:task=ccg"], r"tasks=\('ccg',\): .*: 'nli', 'ner', 'parsing' or"),
    ([f"{FOLDER}/zero_shot.py:task=ner+ner"], r"tasks=\('ner', 'ner'\): .*, each once"),
    ([f"{FOLDER}/zero_shot.py:search=all"], "search='all' is unknown: choose from one, paper, d"),
    ([f"{FOLDER}/zero_shot.py:pair=en-near+en-fr"], r"pair=en-near\+en-fr: .*; run them apart"),
    ([f"{FOLDER}/real_xnli.py:languages=en"], "languages='en': name two languages or more"),
    ([f"{FOLDER}/real_xnli.py:tasks=pos"], "tasks='pos' is unknown: choose from nli, none"),
    (
        [GOOD, "--config.training.epoch=3"],
        r"--config.training.epoch: .* --config.training.epochs\?",
    ),
    ([GOOD, "--config.scale=paper"], "--config.scale=paper: this would change no size; choose it"),
    ([GOOD, "--config.no.such=3"], "--config.no.such: the config has no such field"),
    ([GOOD, "--config.training.epochs.x=3"], "training.epochs.x: the config has no such field"),
    ([GOOD, "--config.rows.0=bogus"], "--config.rows.0=bogus: 0 cannot be set here"),
    ([GOOD, "--config..=3"], "--config..: the config has no such field"),
    ([GOOD, "--config.training.epochs"], "Missing value for flag --config.training.epochs"),
    ([GOOD, "--config.training.epochs=a"], "--config.training.epochs=a: .*; write a whole number"),
    ([GOOD, "--config.training.epochs=1.5"], "epochs=1.5: .*; write a whole number"),
    ([GOOD, "--config.training=3"], "--config.training=3: .*; set its fields one by one"),
    ([GOOD, "--config.profile=a"], "--config.profile=a: .*; write True or False"),
    ([GOOD, "--workdir="], "--workdir=: name a folder"),
    ([GOOD, "--workdri=x"], "Unknown command line flag 'workdri'. Did you mean: workdir"),
    ([GOOD, "stray"], "unknown argument 'stray'"),
    ([GOOD, "--process=-5"], "--process=-5: -5 is not a non-negative integer"),
    ([GOOD, "--prepare"], "--prepare: fake_english reads its texts when it runs"),
]


@pytest.mark.parametrize(("arguments", "message"), LINES)
def test_a_command_line_that_is_wrong_takes_one_line(said, arguments, message):
    assert re.search(message, said(arguments))


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_file_that_is_wrong_takes_one_line(said, tmp_path, name):
    content, message = CONFIGS[name]
    (tmp_path / name).write_text(content)
    assert re.search(message, said([f"--config={tmp_path / name}"]))


@pytest.mark.parametrize(
    ("name", "content"), [("fifo", None), ("latin.py", b"x = '\xff'"), ("dangling.py", "nowhere")]
)
def test_a_config_that_is_no_text_takes_one_line(said, tmp_path, name, content):
    path = tmp_path / name
    if content is None:
        os.mkfifo(path)
    elif isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.symlink_to(content)
    assert name in said([f"--config={path}"])


def test_help_lists_the_flags(called):
    status, printed, said = called(["--help"])
    listed = re.findall(r"^--(\S+)$", printed, re.MULTILINE)
    assert sorted(listed) == ["config", "coordinator", "prepare", "process", "processes", "workdir"]
    assert status == 0 and not said


@pytest.mark.parametrize("name", fields.EXPERIMENTS)
def test_help_lists_the_options_of_a_config_and_each_field_once(called, name):
    file = ROOT / "configs" / f"{name}.py"
    status, printed, said = called([f"--config={file}", "--config.devices.cpu=3", "--help"])
    about, _, each = printed.partition("The fields of this config:")
    assert re.search(r"^Options: \w+ \(", about, re.MULTILINE)
    listed = re.findall(r"^--config\.([^=]+)=", each, re.MULTILINE)
    assert listed == list(config_files.flatten(config_of(file, "", {}).to_dict()))
    assert "\n--config.devices.cpu=3\n" in each
    assert status == 0 and not said


def test_output_that_nobody_reads_takes_one_line():
    unread, output = os.pipe()
    os.close(unread)
    ended = subprocess.run(
        [sys.executable, "-m", "xling_jax.main", "--help"], stdout=output, stderr=subprocess.PIPE,
        text=True, cwd=ROOT, env={**os.environ, "PYTHONUNBUFFERED": ""},
    )  # fmt: skip
    os.close(output)
    assert ended.returncode == 1
    assert re.fullmatch("error: .*: nobody reads the output any more; .*\n", ended.stderr)


DISK = 'RESOURCE_EXHAUSTED: Failed writing: "/runs/x": No space left on device [os_error_code=28]'


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (PermissionError(errno.EACCES, "", "x"), "x: Permission denied: give yourself access"),
        (OSError(errno.ENOSPC, ""), "No space left on device: free some, .* the same command goes"),
        (OSError(errno.ENOSPC, "", "a/b"), "a/b: No space left on device: free some"),
        (IsADirectoryError(errno.EISDIR, "", "x"), "x: Is a directory: a folder stands where"),
        (NotADirectoryError(errno.ENOTDIR, "", b"x"), "x: Not a directory: a file stands where"),
        (OSError(errno.EROFS, "", "x"), "x: Read-only file system: give yourself access"),
        (OSError(errno.EMFILE, "", "x"), "x: Too many open files: raise the limit"),
        (OSError(errno.ESTALE, "", "x"), "x: Stale file handle: see to the file system"),
        (OSError(errno.EXDEV, "", "x"), "x: Invalid cross-device link: see to the file system"),
        (ValueError(DISK), "/runs/x: No space left on device: free some"),
        (MemoryError(), "the memory does not suffice .MemoryError.: end other programs"),
        (RuntimeError("RESOURCE_EXHAUSTED: 9 GiB"), "the memory does not suffice .* 9 GiB"),
        (TypeError("a\nb"), r"TypeError at \S+, line \d+: a b. This is a fault of the program"),
        (flags.IllegalFlagValueError("flag --x=y: no"), "--x=y: no"),
    ],
)
def test_errors_of_the_system_and_of_libraries_get_a_way_out(error, message):
    with pytest.raises(type(error)) as raised:
        raise error
    assert re.fullmatch(f"{message}.*", errors.explain(raised.value))


def test_a_run_is_computed_in_32_bits_whatever_the_environment_asks_for(monkeypatch, called):
    class Experiment:
        def __init__(self, config, workdir):
            pass

        def run(self):
            return jnp.arange(2.0).dtype

    monkeypatch.setattr(fields, "experiment", lambda name: Experiment)
    jax.config.update("jax_enable_x64", True)
    try:
        status, printed, said = called([GOOD])
    finally:
        jax.config.update("jax_enable_x64", False)
    assert status == 0 and printed.startswith("float32\n")
    assert "JAX_ENABLE_X64 has no effect" in said


def test_ctrl_c_is_told_without_a_traceback(own_hooks, capsys):
    with pytest.raises(SystemExit) as end, errors.in_one_line():
        raise KeyboardInterrupt
    assert end.value.code == 130
    assert re.fullmatch("interrupted: .* the same command goes on\n", capsys.readouterr().err)


@pytest.mark.parametrize("platform", ["cuda", "nonsense"])
def test_devices_that_are_not_there_take_one_line(tmp_path, platform):
    failed = subprocess.run(
        command(tmp_path, "row=0"), capture_output=True, text=True, cwd=ROOT,
        env={**os.environ, "JAX_PLATFORMS": platform},
    )  # fmt: skip
    assert failed.returncode == 1 and failed.stderr.count("\n") == 1
    assert failed.stderr.startswith(f"error: JAX_PLATFORMS={platform}: JAX cannot compute there")


def test_a_traceback_is_printed_where_it_is_asked_for(tmp_path):
    failed = subprocess.run(
        command(tmp_path, "row=99"), capture_output=True, text=True, cwd=ROOT,
        env={**os.environ, "XLING_JAX_TRACEBACK": "1"},
    )  # fmt: skip
    assert failed.returncode == 1 and failed.stderr.startswith("Traceback")


def limited():
    """Files may have 1,000 bytes: the first that is longer cannot be written."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))


def run_limited(workdir):
    return subprocess.run(
        command(workdir), capture_output=True, text=True, cwd=ROOT, preexec_fn=limited
    )


def test_a_file_that_cannot_be_written_takes_one_line(tmp_path):
    failed = run_limited(tmp_path)
    assert failed.returncode == 1 and "Traceback" not in failed.stderr
    line = failed.stderr.splitlines()[-1]
    assert re.match(rf"error: {tmp_path}/\S+: File too large: raise the limit .* goes on$", line)


@pytest.mark.slow
def test_after_a_file_that_could_not_be_written_the_same_command_goes_on(finished, tmp_path):
    assert run_limited(tmp_path).returncode == 1
    assert run(tmp_path).returncode == 0
    assert_same_run(tmp_path, finished[0])

"""The command itself: what it writes, how it resumes, what it says of bad input."""

import json
import random
import shutil
import signal
import subprocess

import pytest
from small_run import ROOT, assert_same_run, command, config, interrupted, run

from xling_jax.fake_english.laboratory import Laboratory


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of two epochs."""
    workdir = tmp_path_factory.mktemp("runs") / "whole"
    done = run(workdir)
    assert done.returncode == 0, done.stderr
    return workdir, done


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
    for said in ("train text", "compiled in", "MiB", "tokens/s", "left", "step 20 of 20"):
        assert said in done.stderr


def test_a_finished_run_is_not_done_again(finished):
    workdir, done = finished
    before = (workdir / "metrics.jsonl").read_bytes()
    again = run(workdir)
    assert again.returncode == 0 and again.stdout == done.stdout
    assert (workdir / "metrics.jsonl").read_bytes() == before


def test_another_config_is_refused_in_the_same_workdir(finished):
    workdir, _ = finished
    other = run(workdir, options="row=0,epochs=3")
    assert other.returncode == 1
    assert "training.epochs: 2 there, 3 now" in other.stderr


def test_killed_twice_and_terminated_once_it_ends_with_the_same_bits(finished, tmp_path):
    workdir, _ = finished
    assert interrupted(command(tmp_path), lambda line: "step 8 of" in line) == -signal.SIGKILL
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


def test_all_ablations_run_together_with_untrained_rows(tmp_path):
    done = run(tmp_path, options="row=9+21b+18+no-random-as-published,epochs=1")
    assert done.returncode == 0, done.stderr
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
        {"corpora.train": "WORD", "corpora.dev": "WORD", "corpora.train_sentences": 0}
        | {"corpora.dev_sentences": 1},
        "vocabulary.size.*too large for this text",
    ),
    "large vocabulary": ({"vocabulary.size": 90_000}, "vocabulary.size.*allows"),
    "short dev text": (
        {"corpora.train": "WORD", "corpora.dev": "WORD", "corpora.train_sentences": 0},
        "corpora.dev_sentences: limit=60",
    ),
    "one of two texts": ({"corpora.train": "WORD"}, "for both"),
    "three languages": ({"corpora.languages": ("a", "b", "c")}, "name two"),
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
    "a layer that is not there": ({"evaluators.layers": (0, 9)}, "has layers 0..2"),
    "short rows": ({"batches.row_lengths": (0,)}, "batches.row_lengths"),
    "no room for a piece": ({"batches.max_length": 2}, "batches.max_length=2"),
    "a negative seed": ({"seeds": (-1,)}, "seeds="),
    "an unknown row": ({"row": "99"}, "row='99'.*or a row: 0, 1"),
    "a row twice": ({"row": "0+0"}, "named twice"),
}


@pytest.mark.parametrize(("changes", "message"), BAD.values(), ids=BAD)
def test_bad_input_gets_one_clear_error_and_stores_no_config(changes, message, tmp_path):
    texts = {"EMPTY": b"", "LATIN": b"good\nna\xefve\n", "WORD": b"word\n"}
    for name, content in texts.items():
        (tmp_path / name).write_bytes(content)
    made = config(
        "epochs=1", **{k: str(tmp_path / v) if v in texts else v for k, v in changes.items()}
    )
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        Laboratory(made, tmp_path / "run")
    assert not (tmp_path / "run" / "config.json").exists()


@pytest.mark.parametrize(
    ("options", "changes", "message"),
    [
        ("row=99", {}, "error: row='99': unknown modification"),
        ("scale=huge", {}, "error: scale='huge' is unknown: choose from laptop, paper"),
        ("row=0,seed=1", {}, "error: unknown option 'seed=1'"),
        ("row=0", {"training.epoch": 3}, "error: --config.training.epoch: the config has no such"),
    ],
)
def test_errors_of_the_command_take_one_line(options, changes, message, tmp_path):
    failed = run(tmp_path, options, **changes)
    assert failed.returncode in (1, 2)
    assert failed.stderr.startswith(message) and failed.stderr.count("\n") == 1, failed.stderr

"""Several processes compute the run of one, and go on after one of them was killed."""

import shutil
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest
from small_run import ROOT, assert_same_run, command, final_state, results, run

CHANGES = {"devices.cpu": 2, "evaluators.curve": "(50,100)"}
PROGRAM = [sys.executable, "-m", "xling_jax.main"]
PATIENCE = 300  # seconds, after which a run is taken to hang


def process(line):
    pipe = subprocess.PIPE
    return subprocess.Popen(line, cwd=ROOT, stdout=pipe, stderr=pipe, text=True)


def together(line, number):
    """The processes of a command."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    line = [*line, f"--coordinator=localhost:{port}", f"--processes={number}"]
    return [process([*line, f"--process={index}"]) for index in range(number)]


def started(workdir, number, cpu, **changes):
    """The processes of a run of Fake-English, each with so many devices."""
    return together(command(workdir, **{**CHANGES, **changes, "devices.cpu": cpu}), number)


def ended(processes):
    """The status, output and errors of each."""
    outputs = [process.communicate(timeout=PATIENCE) for process in processes]
    return [(p.returncode, *own) for p, own in zip(processes, outputs, strict=True)]


def assert_close(workdir, other):
    mine, theirs = final_state(workdir), final_state(other)
    assert mine.keys() == theirs.keys() and len(mine) > 30
    for name, leaf in mine.items():
        np.testing.assert_allclose(leaf, theirs[name], rtol=1e-4, atol=1e-4, err_msg=name)
    (a,), (b,) = results(workdir).values(), results(other).values()
    assert a["metrics"].keys() == b["metrics"].keys()
    for name, value in a["metrics"].items():
        assert value == pytest.approx(b["metrics"][name], rel=1e-3, abs=1e-3), name


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run of two processes, with a device each."""
    workdir = tmp_path_factory.mktemp("processes") / "two"
    first, second = ended(started(workdir, 2, 1))
    assert first[0] == second[0] == 0, first[2] + second[2]
    return workdir, first, second


def test_two_processes_compute_what_one_with_two_devices_does(whole, tmp_path):
    workdir, first, second = whole
    assert run(tmp_path / "one", **CHANGES).returncode == 0
    assert_close(workdir, tmp_path / "one")
    assert "D&S 2020" in first[1] and "step 20 of 20" in first[2]
    assert "D&S 2020" not in second[1] and not second[2].strip()  # the first speaks for both
    lines = [(d / "metrics.jsonl").read_text().count("\n") for d in (workdir, tmp_path / "one")]
    assert lines[0] == lines[1]
    assert (workdir / "report" / "report.html").exists()


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """A run of two processes of which the second was killed, and what the first said of it."""
    workdir = tmp_path_factory.mktemp("processes") / "killed"
    processes = started(workdir, 2, 1)
    for line in processes[0].stderr:
        if "step 10 of 20" in line:
            break
    processes[1].send_signal(signal.SIGKILL)
    (status, _, said), _ = ended(processes)
    return workdir, status, said


def test_when_a_process_is_killed_the_other_ends_and_the_same_command_goes_on(killed, whole):
    workdir, status, said = killed
    if status == 75:
        assert "another process of this run has ended" in said and "the same command" in said
    else:  # it was waiting where JAX itself finds out, when no heartbeat came any more
        assert status == -signal.SIGABRT and "another task died" in said
    assert not (workdir / "results.json").exists()
    again = workdir.with_name("again")
    shutil.copytree(workdir, again)
    (first, *_), second = (done for done in ended(started(again, 2, 1)))
    assert first == second[0] == 0
    assert_same_run(again, whole[0])


@pytest.mark.slow
@pytest.mark.parametrize(("number", "cpu"), [(1, 2), (4, 1)])
def test_a_checkpoint_of_two_processes_is_read_by_other_numbers_of_them(
    killed, whole, tmp_path, number, cpu
):
    shutil.copytree(killed[0], tmp_path / "run")
    done = ended(started(tmp_path / "run", number, cpu))
    assert {status for status, *_ in done} == {0}, done[0][2]
    assert "resuming from the checkpoint of step" in done[0][2]
    assert_close(tmp_path / "run", whole[0])


@pytest.mark.slow
def test_parameters_divided_among_processes_are_read_by_one(whole, tmp_path):
    """Two processes with a part each are asked to end; one with all of it goes on, then two."""
    processes = started(tmp_path / "run", 2, 1, **{"devices.shard_parameters": True})
    for line in processes[0].stderr:
        if "step 5 of 20" in line:
            break
    processes[0].send_signal(signal.SIGTERM)
    (status, _, said), (other, *_) = ended(processes)
    assert {status, other} == {128 + signal.SIGTERM} and "interrupted at step" in said, said
    for number, cpu, divided in ((1, 2, False), (2, 1, True)):
        shutil.copytree(tmp_path / "run", again := tmp_path / f"again{number}")
        changes = {"devices.shard_parameters": divided}
        done = ended(started(again, number, cpu, **changes))
        assert {status for status, *_ in done} == {0}, done[0][2]
        assert "resuming from the checkpoint of step" in done[0][2]
        assert_close(again, whole[0])


BILINGUAL = {
    "models.layers": 2,
    "models.hidden": 16,
    "models.intermediate": 32,
    "corpora.train_sentences": 400,
    "corpora.dev_sentences": 60,
    "corpora.test_sentences": 40,
    "batches.short.updates": 6,
    "batches.resident_tokens": 1000,
    "training.epochs": 2,
    "training.steps_per_epoch": 6,
    "training.warmup_steps": 2,
    "evaluators.curve": "(50,100)",
}
TRANSFER = {
    "sentences.train": 64,
    "sentences.dev": 20,
    "sentences.test": 20,
    "settings.ner.epochs": 2,
}


@pytest.mark.slow
def test_two_processes_pretrain_and_fine_tune_as_one_does(tmp_path):
    """Two replicas on a device each, whose text is read from disk, and then fine-tuning of one;
    or, in two processes, all replicas in both, with a part of the parameters in each."""
    for name, number, cpu in (("one", 1, 2), ("two", 2, 1)):
        run = tmp_path / name
        transfer = f"task=ner,pair=en-near,row=sep_l1_3,from={run}"
        for config, options, workdir, changes in (
            ("bilingual", "row=sep_l1_3,pair=en-near,seeds=0+1", run, BILINGUAL),
            ("transfer", transfer, run / "transfer", TRANSFER),
        ):
            line = [*PROGRAM, f"--config={ROOT / 'configs' / config}.py:{options}"]
            line += [f"--workdir={workdir}", f"--config.devices.cpu={cpu}"]
            if number > 1:
                line += ["--config.devices.shard_parameters=True"]
                line += ["--config.devices.replica_axis_at_most=1"]
            line += [f"--config.{field}={value}" for field, value in changes.items()]
            done = ended(together(line, number) if number > 1 else [process(line)])
            assert {status for status, *_ in done} == {0}, done[0][2]
    for folder in ("", "transfer"):
        one, two = (results(tmp_path / name / folder) for name in ("one", "two"))
        assert one.keys() == two.keys() and len(one) == (1 if folder else 2)
        for key, found in one.items():
            assert found["metrics"] == pytest.approx(two[key]["metrics"], rel=1e-3, abs=1e-3)


def test_an_error_in_one_process_ends_all(tmp_path):
    """The first finds the workdir closed to it; the others do not wait for it."""
    (tmp_path / "run").write_text("a file where the workdir should be")
    first, second = ended(started(tmp_path / "run", 2, 1))
    assert first[0] == 1 and "cannot write there" in first[2]
    assert second[0] in (1, 75, -signal.SIGABRT)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--processes=2"], "--processes=2 --process=-1"),
        (["--processes=2", "--process=2", "--coordinator=localhost:1"], "--process=2"),
        (["--process=0"], "say how many there are, --processes=N"),
    ],
)
def test_flags_that_do_not_fit_are_refused(tmp_path, flags, message):
    done = subprocess.run([*command(tmp_path), *flags], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1 and message in done.stderr

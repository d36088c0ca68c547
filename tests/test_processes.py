"""Several processes compute the run of one, and go on after one of them was killed."""

import shutil
import signal
import socket
import subprocess
import time

import numpy as np
import pytest
from small_run import ROOT, assert_same_run, command, final_state, results, run

CHANGES = {"devices.cpu": 2, "evaluators.curve": "(50,100)"}
PATIENCE = 300  # seconds


def started(workdir, number, cpu, **changes):
    """The processes of a run, each with so many devices."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    line = command(workdir, **{**CHANGES, **changes, "devices.cpu": cpu})
    line += [f"--coordinator=localhost:{port}", f"--processes={number}"]
    return [
        subprocess.Popen(
            [*line, f"--process={index}"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for index in range(number)
    ]


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
        if "step 15 of 20" in line:
            break
    processes[1].send_signal(signal.SIGKILL)
    began = time.monotonic()
    (status, _, said), _ = ended(processes)
    return workdir, status, said, time.monotonic() - began


def test_when_a_process_is_killed_the_other_ends_and_the_same_command_goes_on(killed, whole):
    workdir, status, said, seconds = killed
    assert seconds < 120
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

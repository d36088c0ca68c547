"""Several processes compute the run of one, and go on after one of them was killed."""

import shutil
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import jax
import numpy as np
import pytest
from absl import flags
from absl.testing import flagsaver
from small_run import (
    CONFIG,
    ROOT,
    assert_same_run,
    command,
    config_of,
    final_state,
    results,
    run,
)

from xling_jax import lock
from xling_jax import processes as own
from xling_jax.runs import results as results_file
from xling_jax.runs import workdirs
from xling_jax.runs.run import Run
from xling_jax.training.step import RUNNING
from xling_jax.vocabulary import pieces

CHANGES = {"devices.cpu": 2, "evaluators.curve": "(50,100)"}
PROGRAM = [sys.executable, "-m", "xling_jax.main"]
PATIENCE = 300  # seconds, after which a run is taken to hang


# Prepares a text and says how many of its files existed before the first process went through all.
PREPARES = """
import sys
from absl import flags
from xling_jax import processes
from xling_jax.batches import prepare, token_files
from xling_jax.corpora.normalize import Normalization
from xling_jax.vocabulary.pieces import Pieces
text, model, folder, limit = flags.FLAGS(sys.argv)[1:]
processes.start()
collect = prepare._limited
def counted(jobs, *rest):
    print(sum(token_files.read_shard(job.path) is not None for job in jobs), "of", len(jobs))
    return collect(jobs, *rest)
prepare._limited = counted
encoding = prepare.Encoding("en", Normalization(), Pieces.load(model))
try:
    prepare.prepare([text], encoding, folder, limit=int(limit) or None, chunk_bytes=2000)
except ValueError as error:
    print("error:", error)
"""


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


@pytest.fixture
def text(tmp_path):
    lines = [f"a line of words with the number {k % 97}" for k in range(600)]
    pieces.train(lines, 60).save(tmp_path / "pieces.model")
    (tmp_path / "text.txt").write_text("\n".join(lines), "utf-8")
    return tmp_path / "text.txt"


def prepared(text, number, limit=0):
    """What processes that prepare a text together say, and the files that they make."""
    folder = text.parent / f"by{number}"
    given = [text, text.parent / "pieces.model", folder, limit]
    found = ended(together([sys.executable, "-c", PREPARES, *map(str, given)], number))
    assert all(status == 0 for status, _, _ in found), found
    return [said for _, said, _ in found], {x.name: x.read_bytes() for x in folder.glob("*/*")}


@pytest.mark.parametrize("limit", [0, 60])
def test_processes_make_the_files_of_a_text_together(text, limit):
    (alone,), files = prepared(text, 1, limit)
    (first, second), same = prepared(text, 2, limit)
    assert alone == "0 of 11\n" and second == ""
    made = int(first.removesuffix(" of 11\n"))
    # One of each share has half of the sentences; the other process's pool may have begun more.
    assert 2 <= made <= 6 if limit else made == 11
    assert same == files and len(files) == 1 + 2 * (2 if limit else 11)


@pytest.mark.parametrize("line", [1, pytest.param(100, marks=pytest.mark.slow), 600])
def test_all_processes_tell_what_is_wrong_with_any_share_of_a_text(text, line):
    lines = text.read_bytes().split(b"\n")
    lines[line - 1] += b"caf\xe9"
    text.write_bytes(b"\n".join(lines))
    for said in prepared(text, 2)[0]:
        assert said.count(f"text.txt, line {line}: not valid UTF-8") == 1, said


def test_processes_prepare_an_experiment_together(tmp_path):
    line = [*PROGRAM, f"--config={ROOT / 'configs/bilingual.py'}", f"--workdir={tmp_path}"]
    first, second = ended(together([*line, "--config.corpora.train_sentences=400", "--prepare"], 2))
    assert (first[0], second[0]) == (0, 0), first[2] + second[2]
    assert first[1] == f"Prepared: {tmp_path / 'tokens'}\n" and not second[1]
    assert len(list((tmp_path / "tokens").glob("*/index.json"))) == 4
    assert "400 sentences" in first[2] and not second[2].strip()


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


@pytest.mark.slow
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
    "models.layers": 3,
    "models.hidden": 16,
    "models.intermediate": 32,
    "corpora.train_sentences": 400,
    "corpora.dev_sentences": 60,
    "corpora.test_sentences": 40,
    "batches.resident_tokens": 1000,
    "training.epochs": 2,
    "training.steps_per_epoch": 6,
    "training.warmup_steps": 2,
    "evaluators.curve": "(50,100)",
}
ZERO_SHOT = {
    "sentences.train": 64,
    "sentences.dev": 20,
    "sentences.test": 20,
    "settings.ner.epochs": 2,
    "settings.ner.examples": 0,
}


@pytest.mark.slow
def test_two_processes_pretrain_and_fine_tune_as_one_does(tmp_path):
    """Two replicas on a device each, whose text is read from disk, and then fine-tuning of one;
    or, in two processes, all replicas in both, with a part of the parameters in each."""
    for name, number, cpu in (("one", 1, 2), ("two", 2, 1)):
        run = tmp_path / name
        task = f"task=ner,pair=en-near,row=sep_l1_3,from={run}"
        for config, options, workdir, changes in (
            ("bilingual", "row=sep_l1_3,pair=en-near,seeds=0+1", run, BILINGUAL),
            ("zero_shot", task, run / "zero_shot", ZERO_SHOT),
        ):
            line = [*PROGRAM, f"--config={ROOT / 'configs' / config}.py:{options}"]
            line += [f"--workdir={workdir}", f"--config.devices.cpu={cpu}"]
            if number > 1:
                line += ["--config.devices.shard_parameters=True"]
                line += ["--config.devices.replica_axis_at_most=1"]
            line += [f"--config.{field}={value}" for field, value in changes.items()]
            done = ended(together(line, number) if number > 1 else [process(line)])
            assert {status for status, *_ in done} == {0}, done[0][2]
    for folder in ("", "zero_shot"):
        one, two = (results(tmp_path / name / folder) for name in ("one", "two"))
        assert one.keys() == two.keys() and len(one) == (1 if folder else 2)
        for key, found in one.items():
            assert found["metrics"] == pytest.approx(two[key]["metrics"], rel=1e-3, abs=1e-3)


class Service:
    """The service of two processes, for two threads in their place."""

    def __init__(self):
        self.values, self.is_new = {}, threading.Condition()
        self.barrier = threading.Barrier(2)

    def key_value_set(self, key, value):
        with self.is_new:
            self.values[key] = value
            self.is_new.notify_all()

    def blocking_key_value_get(self, key, _):
        with self.is_new:
            assert self.is_new.wait_for(lambda: key in self.values, PATIENCE)
            return self.values[key]

    def wait_at_barrier(self, *_):
        self.barrier.wait(PATIENCE)


@pytest.fixture
def by_two(monkeypatch):
    """Calls a function with 0 and 1 as two processes would; returns what each returns or raises."""

    class Place(threading.local):
        index, count, meetings = 0, 2, 0

    monkeypatch.setattr(own, "_Place", Place())

    def call(work, index):
        own._Place.index = index
        try:
            return work(index)
        except ValueError as error:
            return str(error)

    def by_two(work):
        service = Service()
        monkeypatch.setattr(own, "_client", lambda: service)
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(partial(call, work), range(2)))

    return by_two


def test_processes_with_different_texts_or_configs_are_refused(by_two, tmp_path):
    def opened(texts, **changes):
        def work(index):
            config = config_of(CONFIG, "row=0", changes if index else {})
            entry = {"source": "a.txt", "language": "en", "sha256": texts[index]}
            Run(tmp_path, str).open(config, [entry], {"0": "original"})

        return by_two(work)

    assert opened("11") == [None, None]
    both = opened("12", **{"seeds": (1,), "training.learning_rate": 1.0})
    assert both[0] == both[1]
    assert "differ in seeds, training.learning_rate, the content of a.txt: give all" in both[0]


def test_processes_that_do_not_share_the_workdir_are_refused(by_two, tmp_path, monkeypatch, capsys):
    def locked(*folders):
        def work(index):
            held.append(workdirs.lock(tmp_path / folders[index]))

        held = []
        return by_two(work), [each for each in held if each]

    assert locked("a", "a")[0] == [None, None]
    assert not (tmp_path / "a" / workdirs._SHARED).exists()
    monkeypatch.setattr(workdirs, "_SEEN_WITHIN", 1)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / workdirs._SHARED).write_text("of an earlier run")
    for said in locked("a", "b")[0]:
        assert f"--workdir={tmp_path}/b: on " in said and "does not see what the first one" in said
    assert not (tmp_path / "a" / workdirs._SHARED).exists()
    (tmp_path / "c").write_text("no folder")
    for said in locked("c", "c")[0]:
        assert f"--workdir={tmp_path}/c: cannot write there (" in said

    def refuse(_):
        raise ValueError("it is in use by another process")

    monkeypatch.setattr(lock, "take", refuse)
    assert locked("d", "d")[0] == ["it is in use by another process"] * 2
    assert capsys.readouterr().err.count("waiting up to 1 seconds for its lock: it is in use") == 1


def test_only_the_first_process_reads_results(by_two, tmp_path, monkeypatch):
    """A network file system may show the others an older folder for a while."""
    read = results_file.read_results
    monkeypatch.setattr(
        results_file, "read_results", lambda path: read(path) if own.is_first() else []
    )

    def trained(index):
        run = Run(tmp_path, lambda _: "a table")
        run.stored = {"fingerprint": "1", "experiment": "fake_english"}
        for seed in (0, 1):
            replica = run.replica("0", "original", seed, None)
            run.store_result(replica, 10, RUNNING, {"mu": 0.5})
        return run.done(), run.train([])

    assert by_two(trained) == [({("0", 0), ("0", 1)}, "a table"), ({("0", 0), ("0", 1)}, "")]


def test_processes_with_different_vocabularies_are_refused(by_two, tmp_path):
    texts = ["some words of a text"], ["other words of a text"]
    found = by_two(lambda index: pieces.train(texts[0], 30, cache=tmp_path).sha256)
    assert found[0] == found[1]
    for said in by_two(lambda index: pieces.train(texts[index], 30, cache=tmp_path)):
        assert "different vocabularies" in said


def test_an_error_in_one_process_ends_all(tmp_path):
    """The first finds the workdir closed to it; the others do not wait for it."""
    (tmp_path / "run").write_text("a file where the workdir should be")
    first, second = ended(started(tmp_path / "run", 2, 1))
    assert first[0] == 1 and "cannot write there" in first[2]
    assert second[0] != 0


@pytest.fixture
def start(monkeypatch):
    """Joins a run by the flags that are given, in this process: JAX must not see them."""

    def asked(*_, **__):
        raise AssertionError("JAX was asked")

    monkeypatch.setattr(jax.distributed, "initialize", asked)
    flags.FLAGS.mark_as_parsed()
    monkeypatch.delenv("SLURM_STEP_NUM_TASKS", raising=False)

    def start(**given):
        defaults = {"coordinator": "", "processes": "", "process": None}
        with flagsaver.flagsaver(**{**defaults, **given}):
            own.start()

    return start


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"processes": "2"}, "--processes=2 --process=: give"),
        ({"processes": "2", "process": 2, "coordinator": "localhost:1"}, "--process=2: give"),
        ({"processes": "x", "process": 0}, "--processes=x"),
        ({"processes": "²", "process": 0}, "--processes=²"),
        ({"processes": "0", "process": 0}, "--processes=0"),
        ({"processes": "9" * 20, "process": 0}, "--processes=999"),
        ({"processes": "auto", "process": 0}, "--processes=auto alone"),
        ({"process": 0}, "give the number of processes"),
        ({"coordinator": "localhost:1"}, "give the number of processes"),
    ],
)
def test_flags_that_do_not_fit_are_refused(start, given, message):
    with pytest.raises(ValueError, match=message):
        start(**given)


@pytest.mark.parametrize("process", [0, 1])
@pytest.mark.parametrize(
    "address",
    ["", "x", ":123", "host", "host:", "host:abc", "host:99999999", "host:-1", "host:0", "host:1_0",
     " host:1", "host:1 ", "ho st:1", "host:1 2", "host\n:1", "host:1\n", "höst:1", "host:١",
     "host:+1", "::1:1", "[::1]", "[]:1", "[::x]:1", "[host]:1", "1.2.3.999:1", "1.2.3:1", "http://host:1",
     "-:1", "..:1", "a,b:1", "a" * 300 + ":1"],
)  # fmt: skip
def test_a_coordinator_that_is_no_address_is_refused_before_jax_sees_it(start, address, process):
    with pytest.raises(ValueError, match="--coordinator=.* write the first process's host"):
        start(processes="2", process=process, coordinator=address)


@pytest.mark.parametrize("host", ["localhost", "node-1.lab", "my_host", "10.0.0.1", "[fd00::1]"])
def test_addresses_reach_jax(start, host):
    with pytest.raises(AssertionError, match="JAX was asked"):
        start(processes="2", process=1, coordinator=f"{host}:8476")


def test_one_process_joins_nothing(start, monkeypatch):
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "4")
    start(processes="1")
    assert not own.are_several()


def test_sigterm_ends_a_process_that_has_joined(start, monkeypatch):
    before = signal.getsignal(signal.SIGTERM)

    def initialize(*_, **__):
        signal.signal(signal.SIGTERM, lambda *_: None)  # as JAX does, out of Python's sight

    monkeypatch.setattr(jax.distributed, "initialize", initialize)
    monkeypatch.setattr(own._Place, "count", 1)
    monkeypatch.setattr(own._Place, "index", 0)
    try:
        start(processes="2", process=1, coordinator="localhost:8476")
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_port_that_is_taken_is_refused(start):
    with socket.create_server(("", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ValueError, match=f"cannot listen at port {port}"):
            start(processes="2", process=0, coordinator=f"localhost:{port}")


def test_no_cluster_is_said(start, monkeypatch):
    def none(**_):
        raise ValueError("nothing found")

    monkeypatch.setattr(jax.distributed, "initialize", none)
    with pytest.raises(ValueError, match="--processes=auto: this is no TPU pod.*nothing found"):
        start(processes="auto")


def test_a_process_that_nobody_meets_ends_with_one_line():
    program = "from xling_jax import main, processes; processes.JOINING = 1; main.main()"
    with socket.create_server(("", 0)) as other:  # listens, and is no process of a run
        address = f"--coordinator=localhost:{other.getsockname()[1]}"
        line = [f"--config={CONFIG}", "--processes=2", "--process=1", address]
        done = subprocess.run(
            [sys.executable, "-c", program, *line], capture_output=True, text=True, cwd=ROOT,
            timeout=PATIENCE,
        )  # fmt: skip
    assert done.returncode == 75 and done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("error: this process did not meet the others at localhost")

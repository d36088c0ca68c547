"""fake_english: which replicas share a program, and what fits in memory."""

import contextlib
import dataclasses
import io
import json
import re
import signal

import numpy as np
import pytest
from ml_collections import ConfigDict
from small_run import (
    ROOT,
    assert_same_run,
    command,
    config,
    config_of,
    interrupted,
    on_devices,
    results,
    run,
)

from xling_jax import devices, processes
from xling_jax.experiments.fake_english import experiment
from xling_jax.experiments.fake_english.data import read
from xling_jax.experiments.fake_english.experiment import Experiment
from xling_jax.experiments.fake_english.group import Group
from xling_jax.experiments.fake_english.programs import replica_specs
from xling_jax.runs import group, store
from xling_jax.runs.results import METRICS, RESULTS, read_metrics, read_results
from xling_jax.runs.run import Measurement, Run
from xling_jax.training.loop import Diverged


def test_a_table_has_every_row_of_the_paper_and_five_seeds():
    wanted = replica_specs(config("row=all,scale=paper"))
    rows = "0 1 2 4 5 6 7 8 3 9 21 21b 30 18 19 15 16 17 17-250".split()
    assert [(c.row, c.seed) for c in wanted] == [
        (row, seed) for row in rows for seed in (0, 42, 43, 100, 101)
    ]


def test_the_long_row_trains_two_and_a_half_times_as_long():
    by_row = {c.row: c.modifications for c in replica_specs(config("row=17+17-250,scale=paper"))}
    assert by_row["17"].epochs_of(100) == 100 and by_row["17-250"].epochs_of(100) == 250
    assert by_row["17-250"].names == by_row["17"].names | {"epochs"}


def test_sets_and_rows_can_be_joined_and_nothing_is_named_twice():
    assert [c.row for c in replica_specs(config("row=search+3"))][-2:] == ["ep200", "3"]
    with pytest.raises(ValueError, match="row 3 named twice"):
        replica_specs(config("row=small+3"))
    with pytest.raises(ValueError, match="or a set of rows: all, search, small"):
        replica_specs(config("row=smal"))


def test_epochs_that_are_none_are_refused_before_anything_is_written(tmp_path):
    for row in ("epochs[0.0001x]", "overparam;epochs[0.001x]", "epochs[1e9]"):
        with pytest.raises(ValueError, match=rf"row='{re.escape(row)}': epochs: .* choose from 1"):
            Experiment(config(f"row={row}"), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("scale", ["laptop", "paper"])
@pytest.mark.parametrize("name", ["fake_english", "bilingual", "real_xnli"])
def test_the_optimiser_is_what_the_config_says(name, scale):
    training = config_of(ROOT / "configs" / f"{name}.py", f"scale={scale}", {}).training
    made = dataclasses.asdict(group.optimizer(training, 10))
    known = made.keys() & training.keys()
    assert {"warmup_steps", "weight_decay"} <= known
    assert {field: made[field] for field in known} == {field: training[field] for field in known}


def test_replicas_of_one_kind_share_programs(tmp_path):
    names = ("0", "15", "3", "18", "ep10", "16")
    wanted = [(name, seed) for name in names for seed in (0, 1)]
    kinds = {"15": "large", "16": "large", "18": "untrained", "ep10": "short"}
    dealt = Run(tmp_path, str).deal(
        wanted, lambda member: kinds.get(member[0], "small"), lambda *_: tmp_path, 3
    )
    assert dealt == [
        [("0", 0), ("0", 1), ("3", 0)],
        [("3", 1)],
        [("15", 0), ("15", 1), ("16", 0)],
        [("16", 1)],
        [("18", 0), ("18", 1)],
        [("ep10", 0), ("ep10", 1)],
    ]


def test_groups_are_dealt_anew_more_than_once_and_keep_their_places(tmp_path):
    """An empty place, which an earlier dealing left, has no folder to look into."""
    run, wanted = Run(tmp_path, str), [("0", 0), ("1", 0), ("2", 0)]
    run.stored = {"groups": [[], [["0", 0]], [["1", 0], ["2", 0]]]}

    def folder(number, members):
        return tmp_path / f"{number}-{members[0][0]}"

    (tmp_path / "1-0" / "5").mkdir(parents=True)
    found = run.deal(wanted, lambda member: 0, folder, 1)
    assert found == [[], [("0", 0)], [("1", 0)], [("2", 0)]]
    run.stored = {"groups": [[["0", 0], ["1", 0]], [["2", 0], ["3", 0]]]}
    found = run.deal(wanted[:1], lambda member: 0, folder, 1)
    assert found == [[("1", 0)], [("2", 0), ("3", 0)], [("0", 0)]]


def test_a_run_that_finds_nothing_to_measure_says_so(tmp_path):
    run = Run(tmp_path, str)
    run.stored = {"experiment": "e", "fingerprint": "f", "versions": {}}
    with pytest.raises(ValueError, match="no row has anything that can be measured: give"):
        run.measure([Measurement("a", "a|b", 0, lambda: dict)])


def test_what_changed_before_it_was_read_gives_no_result(tmp_path):
    path = tmp_path / "words.vec"
    path.write_text("as hashed")

    def measure():
        path.write_text("as read")
        return {"mu": 0.5}

    run, entry = Run(tmp_path / "run", str), store.hashed(str(path), "en", "vectors", "vectors")
    run.open(ConfigDict({"name": "similarity"}), [entry], {"a": "a|b"})
    with pytest.raises(ValueError, match="words.vec is not what it was when this run began: put"):
        run.measure([Measurement("a", "a|b", 0, lambda: measure)])
    assert not (run.workdir / RESULTS).exists()
    assert store.read(run.workdir)["texts"][0].keys() == {"source", "language", "field", "sha256"}


def test_texts_that_change_while_they_are_prepared_bind_nothing(tmp_path):
    path = tmp_path / "text"
    path.write_text("as hashed")

    def late(config):
        manifest, prepare = read(config)

        def changing(cache):
            path.write_text("as read")
            return prepare(cache)

        return [*manifest, store.hashed(str(path), "en", "train", "train")], changing

    with pytest.raises(ValueError, match="text is not what it was when this run began"):
        Experiment(config("row=0,epochs=1", **{"devices.side_by_side": 1}), tmp_path / "run", late)
    assert not (tmp_path / "run" / "config.json").exists()


def test_asked_to_end_in_the_last_group_that_waits_a_run_has_ended(tmp_path):
    """Though a later group's number is higher: it ended before."""

    def asked_to_end():
        signal.raise_signal(signal.SIGTERM)
        return {"mu": 0.5}

    first = Measurement("a", "a", 0, lambda: asked_to_end)
    second = Measurement("b", "b", 0, lambda: lambda: {"mu": 0.1})
    run = Run(tmp_path, lambda _: "table")
    run.stored = {"experiment": "e", "fingerprint": "f", "versions": {}}
    run.measure([second])
    assert run.measure([first, second]) == "table" and run.was_interrupted
    assert {each.row for each in read_results(tmp_path / RESULTS)} == {"a", "b"}


def groups_of(workdir):
    return json.loads((workdir / "config.json").read_text())["groups"]


@pytest.fixture
def limit(monkeypatch):
    """Sets the bytes that a program may use on a device."""
    return lambda number: monkeypatch.setattr(devices, "memory_limit", lambda: number)


def test_processes_on_one_host_share_its_memory(monkeypatch):
    alone = devices.memory_limit()
    monkeypatch.setattr(processes, "of_all", lambda value: [value, value])
    assert devices.memory_limit() == pytest.approx(alone / 2, abs=1)
    monkeypatch.setattr(processes, "of_all", lambda value: [value, value + 1])
    assert devices.memory_limit() == alone


def test_as_many_replicas_as_fit_in_memory_train_at_once(tmp_path, limit, capsys):
    options, deep = "row=0+1+2+4,seeds=0+1,epochs=1", {"models.layers": 2}
    limit(10**12)
    Experiment(config(options, **deep), tmp_path / "roomy")
    assert [len(group) for group in groups_of(tmp_path / "roomy")] == [8]
    needed = int(capsys.readouterr().err.split(" MiB a device")[0].split()[-1].replace(",", ""))
    # Two replicas on eight devices leave each a quarter of a batch.
    limit(needed * 2**20 // 3)
    Experiment(config(options, **deep), tmp_path / "tight")
    assert [len(group) for group in groups_of(tmp_path / "tight")] == [2, 2, 2, 2]
    assert "fewer at a time" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("replicas", "at_most", "count", "expected"),
    [(70, 70, 1, 70), (70, 40, 1, 35), (20, 8, 1, 7), (20, 8, 4, 8), (7, 3, 4, 3), (20, 20, 8, 20)],
)
def test_groups_on_accelerators_are_nearly_equal(replicas, at_most, count, expected, monkeypatch):
    monkeypatch.setattr("jax.default_backend", lambda: "gpu")
    monkeypatch.setattr("jax.device_count", lambda: count)
    assert devices.side_by_side(replicas, at_most) == expected


def test_a_model_that_does_not_fit_at_all_is_tried_with_a_warning(tmp_path, limit, capsys):
    limit(1000)
    Experiment(config("row=0,seeds=0+1,epochs=1"), tmp_path)
    assert [len(group) for group in groups_of(tmp_path)] == [1, 1]
    said = capsys.readouterr().err
    assert "memory may not suffice: one replica needs" in said and "batches.sentences" in said


def test_the_config_overrides_what_fits(tmp_path, limit):
    limit(1000)
    Experiment(config("row=0+1,seeds=0+1,epochs=1", **{"devices.side_by_side": 3}), tmp_path)
    assert [len(group) for group in groups_of(tmp_path)] == [3, 1]


def test_a_resumed_run_keeps_its_grouping_unless_told_otherwise(tmp_path, limit, capsys):
    limit(None)
    options = "row=0+1+2,epochs=1"
    Experiment(config(options, **{"devices.side_by_side": 1}), tmp_path)
    Experiment(config(options), tmp_path)
    assert groups_of(tmp_path) == [[["0", 0]], [["1", 0]], [["2", 0]]]
    (tmp_path / "checkpoints" / "group0" / "5").mkdir(parents=True)
    (tmp_path / "checkpoints" / "group1" / "5.orbax-checkpoint-tmp").mkdir(parents=True)
    Experiment(config(options, **{"devices.side_by_side": 2}), tmp_path)
    assert groups_of(tmp_path) == [[["0", 0]], [["1", 0], ["2", 0]]]
    begun = tmp_path / "checkpoints" / "group1"
    (begun / "10").mkdir()
    Experiment(config(options, **{"devices.side_by_side": 1}), tmp_path)
    assert groups_of(tmp_path) == [[["0", 0]], [["1", 0], ["2", 0]]]
    said = capsys.readouterr().err
    assert "2 replicas go on side by side from their checkpoint" in said
    assert f"remove {begun}" in said
    again = json.loads((tmp_path / "config.json").read_text())
    assert again["rows"].keys() == {"0", "1", "2"} and again["fingerprint"]


def test_a_table_grows_by_the_rows_and_seeds_that_it_is_asked_for(tmp_path, monkeypatch):
    trained = []
    monkeypatch.setattr(Group, "run", lambda self, *_: trained.append(self.members))
    monkeypatch.setattr(experiment.Programs, "at_most", lambda self, members: len(members))

    def asked(options):
        trained.clear()
        with pytest.raises(Diverged):  # nothing is trained here, so there is no result
            Experiment(config(options), tmp_path, report=lambda _: "").run()
        return [[(cell.row, cell.seed) for cell in members] for members in trained]

    assert asked("row=0+1,epochs=1") == [[("0", 0), ("1", 0)]]
    assert asked("row=2,seeds=0+42,epochs=1") == [[("2", 0), ("2", 42)]]
    assert asked("row=0,seeds=42+0,epochs=1") == [[("0", 0), ("1", 0)], [("0", 42)]]
    stored = json.loads((tmp_path / "config.json").read_text())
    assert stored["rows"].keys() == stored["steps"].keys() == {"0", "1", "2"}
    before = [[["0", 0], ["1", 0]], [["2", 0], ["2", 42]], [["0", 42]]]
    assert groups_of(tmp_path) == before
    # What has not begun is dealt anew where another number is told, wherever it stands.
    (tmp_path / "checkpoints" / "group1" / "5").mkdir(parents=True)
    monkeypatch.undo()
    Experiment(config("row=0+1,epochs=1", **{"devices.side_by_side": 1}), tmp_path)
    assert groups_of(tmp_path) == [[], *before[1:], [["0", 0]], [["1", 0]]]


TABLE = {
    "options": "row=learning-rate[1e30]+0+1+30+overparam;epochs[2x],epochs=1",
    "devices.side_by_side": 2,
}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A table of three groups, of which one row diverges: workdir, table, and progress."""
    workdir = tmp_path_factory.mktemp("tables") / "whole"
    with on_devices(1), contextlib.redirect_stderr(io.StringIO()) as said:
        shown = Experiment(config(**TABLE), workdir).run()
    return workdir, shown, said.getvalue()


def test_groups_of_one_kind_are_compiled_once(table):
    workdir, _, said = table
    assert [len(group) for group in groups_of(workdir)] == [2, 2, 1]
    assert said.count("compiled in") == 2  # small models and a large one


def test_a_diverged_row_is_in_the_table_and_takes_no_other_along(table):
    workdir, shown, _ = table
    found = results(workdir)
    diverged = found.pop(("learning-rate[1e30]", 0))
    at = diverged["diverged_at"]
    assert at is not None and not diverged["metrics"]
    later = [
        each.values
        for each in read_metrics(workdir / METRICS).evaluations
        if each.row == "learning-rate[1e30]" and each.step > at
    ]
    assert later and not any(later)  # nor in curves and means before the run has ended
    assert {row: result["step"] for (row, _), result in found.items()} == {
        "0": 10, "1": 10, "30": 10, "overparam;epochs[2x]": 20,
    }  # fmt: skip
    assert all(0 <= result["metrics"]["mu"] <= 1 for result in found.values())
    assert "learning-rate[1e30]" in shown and "diverged" in shown


def test_a_row_with_neighbours_reports_how_good_they_are(table):
    workdir, *_ = table
    found = results(workdir)
    shares = found["30", 0]["metrics"]
    assert shares["neighbours_known"] > 0.5
    assert "neighbours_known" not in found["0", 0]["metrics"]
    table = np.load(workdir / "vocabulary" / "neighbours-parallel.npy")
    assert table.shape == (400, 1)
    known = np.flatnonzero(table[:, 0] >= 0)
    assert (known // 200 != table[known, 0] // 200).all()  # of the other language
    assert (table[known, 0] % 200 >= 5).all() and (known % 200 >= 5).all()  # no special tokens


@pytest.mark.slow
def test_a_table_killed_in_the_middle_goes_on_with_what_is_missing(tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"  # both by commands: the same programs
    done = run(whole, **TABLE)
    assert done.returncode == 0, done.stderr
    seen = []

    def is_time(line):
        if "3 of 3: " in line:
            seen.append(line)
        return bool(seen) and "step 5 of" in line

    assert interrupted(command(killed, **TABLE), is_time) < 0
    done = run(killed, **TABLE)
    assert done.returncode == 0, done.stderr
    assert " 1 of 3: " not in done.stderr and " 2 of 3: " not in done.stderr
    assert_same_run(killed, whole, groups=3)
    for kept in (whole / "report" / "tables").iterdir():
        assert (killed / "report" / "tables" / kept.name).read_bytes() == kept.read_bytes()

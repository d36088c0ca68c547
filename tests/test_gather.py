"""Runs of one experiment that lie apart, put together as one run."""

import dataclasses
import json
import shutil
import subprocess
import sys

import pytest
from fake_run import fake_run, replica
from small_run import config, on_devices, results

from xling_jax.experiments.fake_english import report
from xling_jax.experiments.fake_english.experiment import Experiment
from xling_jax.gather import gather, main
from xling_jax.report.frame import Run
from xling_jax.runs import results as stored
from xling_jax.runs import store


def part(folder, rows, fingerprint, seeds=(0,), **fields):
    """A run of some rows, with a fingerprint of its own and fields of its config."""
    fake_run(folder, rows, seeds)
    described = json.loads((folder / stored.CONFIG).read_text())
    described |= {"fingerprint": fingerprint}
    described["config"] |= fields
    (folder / stored.CONFIG).write_text(json.dumps(described))
    ended = stored.read_results(folder / stored.RESULTS)
    own = [dataclasses.replace(each, fingerprint=fingerprint) for each in ended]
    stored.write_results(folder / stored.RESULTS, own)
    return folder


@pytest.fixture
def parts(tmp_path):
    """Two runs of other rows."""
    return [part(tmp_path / "a", ["0"], "aaaa"), part(tmp_path / "b", ["1", "3"], "bbbb")]


def test_gathered_runs_have_the_report_of_one_run(parts, tmp_path):
    whole = fake_run(tmp_path / "whole", ("0", "1", "3"), (0,))
    to = tmp_path / "new" / "all"
    assert gather(parts, to) == report.write(whole)
    mine, theirs = Run(to), Run(whole)
    assert mine.rows == theirs.rows and mine.evaluations.equals(theirs.evaluations)
    assert mine.training.equals(theirs.training)
    for folder in (to, whole):
        assert len(list((folder / "arrays").iterdir())) == 3
        assert (folder / "report" / "report.html").exists()


def test_seeds_are_gathered_as_rows_are_and_again(parts, tmp_path):
    gather(parts, tmp_path / "rows")
    small = tmp_path / "small"  # all that is needed of a run
    small.mkdir()
    for name in (stored.CONFIG, stored.RESULTS):
        shutil.copy(tmp_path / "rows" / name, small)
    seeds = part(tmp_path / "c", ["0", "3"], "cccc", seeds=(42,))
    gather([small, seeds], tmp_path / "all")
    expected = {("0", 0), ("1", 0), ("3", 0), ("0", 42), ("3", 42)}
    assert results(tmp_path / "all").keys() == expected
    found = {each.fingerprint for each in stored.read_results(tmp_path / "all" / stored.RESULTS)}
    assert found == {"aaaa", "bbbb", "cccc"}
    assert Run(tmp_path / "all").seeds_planned("3") == {0, 42}


@pytest.mark.slow
def test_a_gathered_run_trains_what_it_lacks_and_nothing_else(tmp_path):
    def train(workdir, rows):
        fields = {"vocabulary.neighbours.skip_gram.threads": 2}
        with on_devices(1):
            Experiment(config(f"row={rows},epochs=1", **fields), workdir).run()

    for row in ("18", "30"):  # the neighbours of row 30 cannot be computed again to the same bits
        train(tmp_path / row, row)
    gather([tmp_path / "18", tmp_path / "30"], tmp_path / "all")
    before = results(tmp_path / "all")
    train(tmp_path / "all", "19+30+18")
    after = results(tmp_path / "all")
    assert after.keys() - before.keys() == {("19", 0)}
    assert {key: after[key] for key in before} == before


def test_what_has_not_ended_stays_planned_and_begins_anew(tmp_path):
    run = fake_run(tmp_path / "run", ("0", "1", "3"), (0, 42), {"0": 1.0, "1": 0.5, "3": 0.0})
    gather([str(run)], str(tmp_path / "copy"))
    mine, theirs = Run(tmp_path / "copy"), Run(run)
    assert mine.planned == theirs.planned and mine.rows == theirs.rows
    ended = [["0", 0]], [["0", 42]]
    waiting = [["1", 0], ["3", 0]], [["1", 42], ["3", 42]]
    assert mine.config["groups"] == [ended[0], waiting[0], ended[1], waiting[1]]


def test_a_row_and_seed_is_of_the_run_that_ended_it(parts, tmp_path):
    begun = fake_run(tmp_path / "begun", ("0", "1"), (0,), {"0": 0.3, "1": 0.3})
    for name, run in (("ended", parts[0]), ("begun", begun)):
        models = store.models_of(run, "0", 0)
        models.mkdir(parents=True)
        (models / "which").write_text(name)
        stored.arrays_of(run, "0", 0).write_text(name)
    gather([begun, *parts], tmp_path / "all")
    mine, alone = Run(tmp_path / "all"), Run(parts[0])
    assert mine.rows["0"] == alone.rows["0"]
    own = mine.evaluations.query("row == '0'").reset_index(drop=True)
    assert own.equals(alone.evaluations)
    assert (store.models_of(tmp_path / "all", "0", 0) / "which").read_text() == "ended"
    assert stored.arrays_of(tmp_path / "all", "0", 0).read_text() == "ended"


def test_a_run_that_has_results_alone_takes_nothing_from_another(parts, tmp_path):
    few = tmp_path / "few"
    few.mkdir()
    for name in (stored.CONFIG, stored.RESULTS):
        shutil.copy(parts[0] / name, few / name)
    models = store.models_of(parts[0], "0", 0)
    models.mkdir(parents=True)
    (models / "which").write_text("whole")
    for number, runs in enumerate(([few, parts[0]], [parts[0], few])):
        gather(runs, tmp_path / f"all{number}")
        assert Run(tmp_path / f"all{number}").evaluations.equals(Run(parts[0]).evaluations)
        assert (store.models_of(tmp_path / f"all{number}", "0", 0) / "which").exists()


def test_a_row_that_nobody_ended_is_of_the_run_that_trained_it_longest(tmp_path):
    shares = {"a": 0.0, "b": 0.5, "c": 0.2}
    runs = [fake_run(tmp_path / x, ("0", "1"), (0,), {"0": 0.0, "1": s}) for x, s in shares.items()]
    gather(runs, tmp_path / "all")
    assert Run(tmp_path / "all").evaluations.equals(Run(runs[1]).evaluations)


def test_the_two_that_differ_are_named_and_a_folder_within_is_no_run(parts, tmp_path):
    (parts[0] / "exported").mkdir()
    (parts[0] / "exported" / "config.json").write_text("{}")
    (parts[0] / "transfer").mkdir()
    gather(parts, tmp_path / "all")
    third = part(tmp_path / "c", ["3"], "cccc")
    described = json.loads((third / stored.CONFIG).read_text())
    (third / stored.CONFIG).write_text(json.dumps({**described, "rows": {"3": "another"}}))
    refused([*parts, third], tmp_path / "new", "row 3: .* in .*b, another in .*c")


def test_what_an_experiment_notes_of_rows_and_seeds_is_of_the_same_run(parts, tmp_path):
    noted = {"a": [["0", 0, "x"]], "b": [["1", 0, "y"], ["3", 0, "z"]]}
    again = part(tmp_path / "again", ["0"], "dddd")
    for run, entries in zip([*parts, again], [*noted.values(), [["0", 0, "w"]]], strict=True):
        described = json.loads((run / stored.CONFIG).read_text())
        (run / stored.CONFIG).write_text(json.dumps({**described, "compared": entries}))
    gather([*parts, again], tmp_path / "all")
    found = json.loads((tmp_path / "all" / stored.CONFIG).read_text())
    assert found["compared"] == noted["a"] + noted["b"]


def test_a_run_that_was_killed_leaves_half_a_line_behind(parts, tmp_path):
    path = parts[0] / stored.METRICS
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"kind": "eval')
    gather(parts, tmp_path / "all")
    gathered = (tmp_path / "all" / stored.METRICS).read_bytes()
    assert gathered == whole + (parts[1] / stored.METRICS).read_bytes()


def test_the_command_prints_the_tables_or_one_line(parts, tmp_path, monkeypatch, capsys):
    arguments = [*map(str, parts), f"--workdir={tmp_path / 'all'}"]
    monkeypatch.setattr(sys, "argv", ["gather", *arguments])
    main()
    printed = capsys.readouterr().out
    assert "D&S 2020" in printed
    assert f"Report: {tmp_path / 'all' / 'report' / 'report.html'}" in printed
    command = [sys.executable, "-m", "xling_jax.gather", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode and done.stderr == (
        f"error: --workdir={tmp_path / 'all'} already exists; name a new folder\n"
    )


def refused(runs, to, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        gather(runs, to)
    assert not (to / stored.CONFIG).exists()


def test_runs_of_other_configs_are_refused_with_what_differs(parts, tmp_path):
    rate = part(tmp_path / "rate", ["1"], "cccc", training={"epochs": 100, "learning_rate": 0.1})
    refused([parts[0], rate], tmp_path / "all", "learning_rate: 0.002 in .*a, 0.1 in .*rate")
    names = part(tmp_path / "names", ["1"], "cccc", evaluators={"names": ["retrieval"]})
    refused([parts[0], names], tmp_path / "all", "evaluators.names: .*retrieval.* in .*names")
    other = part(tmp_path / "other", ["1"], "cccc")
    described = json.loads((other / stored.CONFIG).read_text())
    for name, known, own in (("vocabulary", 128, 7), ("steps", 9000, 90)):
        key = {"vocabulary": "size", "steps": "0"}[name]
        changed = {**described, name: {key: own}}
        (other / stored.CONFIG).write_text(json.dumps(changed))
        message = f"{name} {key}: {known} in .*a, {own} in .*other"
        refused([parts[0], other], tmp_path / "all", message)


def test_two_results_of_a_row_and_seed_are_refused_unless_they_are_the_same(parts, tmp_path):
    again = part(tmp_path / "again", ["0", "3"], "dddd")
    gather([*parts, again], tmp_path / "same")
    assert len(results(tmp_path / "same")) == 3
    stored.write_results(again / stored.RESULTS, [replica("3", 0, {"mu": 0.5})])
    refused([*parts, again], tmp_path / "all", "row 3, seed 0 has other results in .*b than in")


def test_what_is_no_run_or_damaged_or_in_the_way_is_refused(parts, tmp_path):
    refused([*parts, tmp_path], tmp_path / "all", "config.json is not there: name the folder")
    refused(parts, tmp_path, "already exists; name a new folder")
    entries = json.loads((parts[1] / stored.RESULTS).read_text())
    entries[0]["metrics"]["mu"] = 1.0
    (parts[1] / stored.RESULTS).write_text(json.dumps(entries))
    refused(parts, tmp_path / "all", "not what was written")
    assert not (tmp_path / "all").exists()

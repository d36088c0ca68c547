"""Results are read as they were stored, and averaged over the seeds that have them."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
import re
import struct
from pathlib import Path

import numpy as np
import pytest
from fake_run import add_line, fake_run, replica

from xling_jax.experiments.fake_english import published, report
from xling_jax.records import UNKNOWN, Identity
from xling_jax.report import frame
from xling_jax.runs import config_files, results
from xling_jax.training import metrics

ENTRY = {"experiment": "e", "row": "0", "description": "", "seed": 0, "step": 1}


def test_the_papers_mu_is_the_mean_of_its_four_scores() -> None:
    for line in published.LINES:
        four = [
            line.cells[f"{n}_{k}"].mean for n in ("retrieval", "translation") for k in (0, "deep")
        ]
        assert abs(np.mean(four) - line.cells["mu"].mean) <= 0.0101, line.row


def test_a_row_has_a_paper_line_only_in_the_papers_experiment() -> None:
    line = published.find("fake_english", "0")
    assert line is not None and line.more["table"] == 1 and line.cells["retrieval_0"].sd == 0.02
    assert published.find("bilingual", "0") is None and published.find("fake_english", "99") is None
    of_table_1, long = (
        published.find("fake_english", "17"),
        published.find("fake_english", "17-250"),
    )
    assert of_table_1 is not None and of_table_1.cells["perplexity_dev"] == frame.Measure(
        307, 7.7, 5
    )
    assert long is not None and long.cells["perplexity_dev"].mean == 1111


@pytest.mark.parametrize(
    ("source", "place", "changes", "said"),
    [
        ("bible.txt", 0, {}, ""),
        ("bible.txt", 1, {}, "the training text is not known"),
        ("synthetic", 0, {}, "the training text is not known"),
        ("bible.txt", 0, {"epochs": 1}, "training.epochs is 1 and not 100. Compare"),
    ],
)
def test_the_papers_setting_is_that_of_its_own_text_and_fields(
    tmp_path: Path, source: str, place: int, changes: dict[str, int], said: str
) -> None:
    path = fake_run(tmp_path, ("0",)) / "config.json"
    config = json.loads(path.read_text())
    config["scale"], fields = "paper", config["config"]
    for name, value in published.SETTING.items():
        section, field = name.split(".")
        fields.setdefault(section, {})[field] = value
    fields["corpora"] = {"train": source}
    fields["training"] |= changes
    config["texts"][place]["sentences"] = published.TRAINING_SENTENCES
    path.write_text(json.dumps(config))
    found = " ".join(report.write(tmp_path).split())
    assert ("Not the paper's setting" in found) == bool(said) and said in found


@pytest.mark.parametrize(("rows", "epochs"), [("0 15", 40), ("0 15", 0), ("15", 40), ("0", 40)])
def test_large_models_that_train_for_other_epochs_are_said(
    tmp_path: Path, rows: str, epochs: int
) -> None:
    path = fake_run(tmp_path, rows.split()) / "config.json"
    config = json.loads(path.read_text())
    config["config"] |= {"overparam": {"epochs": epochs}, "training": {"epochs": 100}}
    config["scale"] = "paper"
    path.write_text(json.dumps(config))
    (notes,) = {" ".join(each.notes) for each in report.tables(frame.Run(tmp_path))}
    is_said = "train for 40 epochs and the others for 100" in notes
    assert is_said == (rows == "0 15" and epochs == 40)
    is_said = "overparam.epochs is 40 and not 100" in notes
    assert is_said == ("15" in rows and epochs == 40)


def test_rows_mean_in_the_config_what_they_mean_in_the_paper() -> None:
    path = Path(__file__).parent.parent / "configs" / "fake_english.py"
    spec = importlib.util.spec_from_file_location("config", path)
    assert spec is not None and spec.loader is not None
    config = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(config)
    made = config.get_config("scale=paper")
    fields, descriptions = config_files.flatten(made.to_dict()), made.rows
    assert {name: fields[name] for name in published.SETTING} == published.SETTING
    printed = {line.row: line.description for line in published.LINES}
    for row, description in {**printed, **published.SEARCH_ROWS}.items():
        assert descriptions[row] == description, row
    of_code = config.get_config("scale=paper,reading=code")
    assert of_code.workdir != made.workdir
    for row, description in descriptions.items():
        others = re.sub("no-random|knn-replace", r"\g<0>-as-published", description)
        assert of_code.rows[row] == others, row


def test_what_a_row_of_the_search_tries_is_read_from_its_description() -> None:
    tried = {
        row: published.tried(description) for row, description in published.SEARCH_ROWS.items()
    }
    assert tried["lr2e-3"] == ("learning-rate", 0.002) and tried["ep50"] == ("epochs", 50)
    assert len(tried) == 11 and None not in tried.values()
    for other in ("original", "overparam;epochs[250]", "epochs[many]", "epochs[]", "epochs"):
        assert published.tried(other) is None


def test_results_come_back_as_written_without_what_is_not_finite(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    first = replica("0", 0, {"mu": 0.5, "perplexity_dev": np.inf, "perplexity_train": np.nan})
    results.write_results(path, [first, replica("0", 42, {}, diverged=7)])
    back = results.read_results(path)
    assert back[0].metrics == {"mu": 0.5}
    assert (back[1].diverged_at, back[0].diverged_at) == (7, None)
    assert "NaN" not in path.read_text() and "Infinity" not in path.read_text()


def test_a_result_takes_the_place_of_its_own_earlier_one(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    for mu in (0.1, 0.2):
        results.add_result(path, replica("0", 0, {"mu": mu}))
        results.add_result(path, replica("0", 42, {"mu": mu}))
    assert [(r.seed, r.metrics["mu"]) for r in results.read_results(path)] == [(0, 0.2), (42, 0.2)]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = results.write_results(tmp_path / "results.json", [replica("0", 0, {"mu": 0.5})])
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError(28, "disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        results.add_result(path, replica("0", 42, {"mu": 0.6}))
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ('[{"row": "0", "seed": 0, "step": 1,\n "metrics": }]', r"results.json .* \(line 2"),
        ('[ENTRY, {"row": "0"}]', "entry 2: experiment is missing"),
        ("[ENTRY, ENTRY]", "twice"),
        ("{}", "list of replicas"),
        ("[[1]]", "entry 1: "),
        ("[ENTRY", "not JSON"),
        ("[" * 100_000, "nested too deep"),
    ],
)
def test_a_bad_result_is_named_by_file_and_place(
    tmp_path: Path, entries: str, message: str
) -> None:
    (tmp_path / "results.json").write_text(entries.replace("ENTRY", json.dumps(ENTRY)))
    with pytest.raises(ValueError, match=message):
        results.read_results(tmp_path / "results.json")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"metrics": {"mu": "high"}}, "metrics.mu='high': .*number"),
        ({"metrics": [1]}, r"metrics=\[1\]: "),
        ({"metrics": {"mu": [[]]}}, r"metrics.mu=\[\[\]\]: "),
        ({"seed": -1}, "seed=-1: "),
        ({"seed": True}, "seed=True: "),
        ({"step": 1.5}, "step=1.5: "),
        ({"row": 7}, "row=7: "),
        ({"diverged_at": "soon"}, "diverged_at='soon': "),
        ({"fingerprint": 1}, "fingerprint=1: "),
        ({"sha256": "0"}, "is not what was written"),
    ],
)
def test_a_bad_field_of_a_result_is_named(
    tmp_path: Path, fields: dict[str, object], message: str
) -> None:
    (tmp_path / "results.json").write_text(json.dumps([ENTRY | fields]))
    with pytest.raises(ValueError, match=f"results.json, entry 1:? {message}"):
        results.read_results(tmp_path / "results.json")


@pytest.mark.parametrize("written", ["mu", "seed", "fingerprint"])
def test_a_result_that_was_changed_is_refused(tmp_path: Path, written: str) -> None:
    path = tmp_path / "results.json"
    results.write_results(path, [replica("0", 0, {"mu": 0.5})])
    (entry,) = json.loads(path.read_text())
    where = entry["metrics"] if written == "mu" else entry
    where[written] = {"mu": 0.9, "seed": 1, "fingerprint": "0"}[written]
    path.write_text(json.dumps([entry]))
    with pytest.raises(ValueError, match="entry 1 is not what was written there"):
        results.read_results(path)


def test_results_and_metrics_of_another_experiment_are_refused(tmp_path: Path) -> None:
    ended = dataclasses.replace(replica("0", 0, {"mu": 0.5}), fingerprint="a")
    results.write_results(tmp_path / "results.json", [ended])
    file = metrics.MetricsFile(tmp_path / "metrics.jsonl", Identity("e", "a"))
    file.write(kind="train", row="0", seed=0, step=1, loss=2.0)
    read = {"results.json": results.read_results, "metrics.jsonl": results.read_metrics}
    for name, reader in read.items():
        for identity in (Identity("e", "a"), Identity("e", "b", ("a",)), UNKNOWN):
            assert reader(tmp_path / name, identity)
        with pytest.raises(ValueError, match=f"{name}.* is of another experiment"):
            reader(tmp_path / name, Identity("e", "b"))


def events(folder: Path) -> list[tuple[int, str, float]]:
    """The scalars of a folder's files, by step, and from which step on each file takes the place of
    earlier ones: records of a length, its hash, data and a hash."""
    from tensorboardX.proto.event_pb2 import Event

    found = []
    for path in sorted(folder.glob("events*")):
        content = path.read_bytes()
        while content:
            (length,) = struct.unpack("<Q", content[:8])
            event = Event.FromString(content[12 : 12 + length])
            content = content[16 + length :]
            found += [(event.step, "from", 0.0)] * event.HasField("session_log")
            found += [(event.step, x.tag, x.simple_value) for x in event.summary.value]
    return found


@pytest.mark.parametrize("first", [2, 3])
def test_scalars_for_tensorboard_are_those_of_the_metrics(tmp_path: Path, first: int) -> None:
    """An evaluation that comes first is a repeated one, and the call before it is kept."""
    pytest.importorskip("tensorboardX")
    file = metrics.MetricsFile(tmp_path / "metrics.jsonl", UNKNOWN, tmp_path / "tensorboard")
    if first == 2:
        file.write(kind="train", row="a;b", seed=3, step=2, epoch=0.5, loss=2.0)
    file.write(kind="evaluation", row="a;b", seed=3, step=2, epoch=0.5, metrics={"mu": 0.25})
    for writer in file._writers.values():  # as at the end of the process
        writer.close()
    found = events(tmp_path / "tensorboard" / "rowa_b_seed3")
    call = [(2, "train/epoch", 0.5), (2, "train/loss", 2.0)] * (first == 2)
    assert found == [(first, "from", 0.0), *call, (2, "evaluation/mu", 0.25)]
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 4 - first


def test_scalars_need_their_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"log\.tensorboard: .*pip install tensorboardX"):
        metrics.MetricsFile(tmp_path / "metrics.jsonl", UNKNOWN, tmp_path / "tensorboard")


def test_metrics_can_be_read_wherever_a_kill_cut_the_last_line(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    full = '{"kind": "train", "row": "é", "seed": 0, "step": 1, "loss": 2.5}'.encode()
    last = '{"kind": "train", "row": "é", "seed": 0, "step": 2, "loss": 2.0}'.encode()
    for cut in range(len(last)):
        path.write_bytes(full + b"\n" + last[:cut])
        assert [r.step for r in results.read_metrics(path).training] == [1]
    path.write_bytes(full + b"\n" + last)
    assert [r.values["loss"] for r in results.read_metrics(path).training] == [2.5, 2.0]


def test_a_broken_line_inside_the_metrics_is_named(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"kind": "other"}\n{"kind": "tr\n{"kind": "other"}\n')
    with pytest.raises(ValueError, match="metrics.jsonl, line 2"):
        results.read_metrics(path)


def test_of_a_step_logged_twice_by_a_resumed_run_the_later_holds(tmp_path: Path) -> None:
    for mu in (0.1, 0.3):
        add_line(tmp_path, kind="evaluation", row="0", seed=0, step=5, metrics={"mu": mu})
    records = results.read_metrics(tmp_path / "metrics.jsonl").evaluations
    assert frame.curves(frame.tidy(records))["mu"] == frame.Curve([5], [0.3], [0.0])


def test_seeds_that_log_at_other_steps_have_one_mean_loss(tmp_path: Path) -> None:
    for seed, steps in ((1, range(30, 301, 30)), (3, range(100, 301, 100))):
        for step in steps:
            add_line(tmp_path, kind="train", row="0", seed=seed, step=step, loss=float(seed))
    add_line(tmp_path, kind="train", row="1", seed=1, step=30, speed=1.0)
    run = frame.Run(tmp_path)
    steps = [100, 120, 150, 180, 200, 210, 240, 270, 300]
    assert run.loss("0") == frame.Curve(steps, [2.0] * 9, [1.0] * 9) and run.loss("1") is None


def test_a_diverged_seed_is_in_no_mean_and_is_counted(tmp_path: Path) -> None:
    ended = [replica("0", seed, {"mu": mu}, 9) for seed, mu in ((0, 0.2), (42, 0.6))]
    ended.append(replica("0", 43, {"mu": 0.99}, 4, diverged=4))
    results.write_results(tmp_path / "results.json", ended)
    run = frame.Run(tmp_path)
    row = run.rows["0"]
    found = row.metrics["mu"]
    assert (found.mean, found.sd, found.number) == pytest.approx((0.4, 0.2, 2))
    assert found.by_seed == {0: 0.2, 42: 0.6}
    assert row.diverged == {43: 4} and row.seeds == (0, 42)
    table = report.whole_table(run)
    assert table.lines[0].seeds == "2/3"
    assert any("seed 43 at step 4" in note for note in table.notes)


def test_the_results_are_read_as_a_frame_without_seeds_that_diverged(tmp_path: Path) -> None:
    scored = dataclasses.replace(replica("0", 0, {"retrieval_near_8": 0.5}, 9), scored_at=6)
    others = replica("3", 0, {"mu": 0.25}, 9), replica("0", 43, {"mu": 0.99}, 4, diverged=4)
    results.write_results(tmp_path / "results.json", [scored, *others])
    columns = ["row", "seed", "step", "metric", "language", "layer", "value"]
    assert frame.Run(tmp_path).results[columns].values.tolist() == [
        ["0", 0, 6, "retrieval", "near", 8, 0.5],
        ["3", 0, 9, "mu", "", "", 0.25],
    ]


def test_a_running_row_is_shown_at_the_last_step_all_its_seeds_reached(tmp_path: Path) -> None:
    logged = [(0, 5, {"mu": 0.1}), (0, 10, {"mu": 0.9}), (42, 5, {"mu": 0.3})]
    logged += [(43, 0, {"mu": 0.8}), (43, 5, {})]  # the third seed has diverged
    for seed, step, values in logged:
        add_line(tmp_path, kind="evaluation", row="0", seed=seed, step=step, metrics=values)
    run = frame.Run(tmp_path)
    assert [line.seeds for line in report.whole_table(run).lines] == ["2/3 (in training)"]
    row = run.rows["0"]
    assert (row.step, row.running) == (5, (0, 42)) and row.metrics["mu"].mean == pytest.approx(0.2)
    assert row.diverged == {43: 5}


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_a_row_with_its_own_epochs_has_its_own_number_of_steps(
    tmp_path: Path, share: float
) -> None:
    run = frame.Run(fake_run(tmp_path, ["0", "17-250", "18", "ep10"], [0], share))
    found = {row: run.steps_of(row) for row in run.row_names}
    assert found == {"0": 9_000, "17-250": 22_500, "18": 0, "ep10": 900}


def test_rows_come_in_the_order_of_the_papers_tables_then_in_the_runs_own(tmp_path: Path) -> None:
    names = ["z", "lr1e-3", "17-250", "21", "9", "a", "0", "15"]
    run = frame.Run(fake_run(tmp_path, names, [0], 0.0), published.ORDER)
    assert run.row_names == ["0", "15", "9", "21", "17-250", "lr1e-3", "z", "a"]


def test_rows_that_have_no_printed_order_come_in_that_of_the_configs_sets(tmp_path: Path) -> None:
    workdir = fake_run(tmp_path, ["z", "30", "9", "0", "18", "21"], [0], 0.0)
    described = json.loads((workdir / "config.json").read_text())
    described["config"]["sets"] = {"early": ["18"], "all": ["21", "0", "9"], "a": ["30", "9"]}
    (workdir / "config.json").write_text(json.dumps(described))
    assert frame.Run(workdir).row_names == ["21", "0", "9", "18", "30", "z"]
    described["config"]["sets"] = 3
    (workdir / "config.json").write_text(json.dumps(described))
    assert sorted(frame.Run(workdir).row_names) == ["0", "18", "21", "30", "9", "z"]

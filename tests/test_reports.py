"""Results are read as they were stored, and the table holds them beside the paper's numbers."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path

import numpy as np
import pytest
from fake_run import add_line, fake_metrics, fake_run, replica

from xling_jax.reports import papers, results, rows, tables


def test_the_papers_mu_is_the_mean_of_its_four_scores() -> None:
    for line in (*papers.TABLE_1, *papers.TABLE_2):
        four = [line.metrics[f"{n}_{k}"].mean for n in ("retrieval", "translation") for k in (0, 8)]
        assert abs(np.mean(four) - line.metrics["mu"].mean) <= 0.0101, line.row


def test_a_row_has_a_paper_line_only_in_the_papers_experiment() -> None:
    line = papers.find("fake_english", "0")
    assert line is not None and line.table == 1 and line.metrics["retrieval_0"].sd == 0.02
    assert papers.find("bilingual", "0") is None and papers.find("fake_english", "99") is None


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
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        results.add_result(path, replica("0", 42, {"mu": 0.6}))
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ('[{"row": "0", "seed": 0, "step": 1,\n "metrics": }]', "results.json, line 2"),
        ('[{"row": "0", "seed": 0, "step": 1}, {"row": "0"}]', "entry 2: seed"),
        ('[{"row": "0", "seed": 0, "step": 1, "metrics": {"mu": "high"}}]', "entry 1: mu"),
        ('[{"row": "0", "seed": 0, "step": 1}, {"row": "0", "seed": 0, "step": 2}]', "twice"),
        ("{}", "list of replicas"),
    ],
)
def test_a_bad_result_is_named_by_file_and_place(
    tmp_path: Path, entries: str, message: str
) -> None:
    (tmp_path / "results.json").write_text(entries)
    with pytest.raises(ValueError, match=message):
        results.read_results(tmp_path / "results.json")


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
    assert rows.curves(records, "0")["mu"] == rows.Curve([5], [0.3], [0.0])


def test_a_diverged_seed_is_in_no_mean_and_is_counted(tmp_path: Path) -> None:
    ended = [replica("0", seed, {"mu": mu}, 9) for seed, mu in ((0, 0.2), (42, 0.6))]
    ended.append(replica("0", 43, {"mu": 0.99}, 4, diverged=4))
    results.write_results(tmp_path / "results.json", ended)
    run = rows.read_run(tmp_path)
    row = rows.read_row(run, "0")
    assert row.metrics["mu"] == pytest.approx((0.4, 0.2, 2))
    assert row.diverged == {43: 4} and row.seeds == (0, 42)
    table = tables.build(run)
    assert table.lines[0].seeds == "2/3"
    assert any("seed 43 at step 4" in note for note in table.notes)


def test_a_running_row_is_shown_at_the_last_step_all_its_seeds_reached(tmp_path: Path) -> None:
    for seed, step, mu in ((0, 5, 0.1), (0, 10, 0.9), (42, 5, 0.3)):
        add_line(tmp_path, kind="evaluation", row="0", seed=seed, step=step, metrics={"mu": mu})
    row = rows.read_row(rows.read_run(tmp_path), "0")
    assert (row.step, row.running) == (5, (0, 42)) and row.metrics["mu"].mean == pytest.approx(0.2)


@pytest.mark.parametrize("deep", [3, 8])
def test_the_deeper_layer_is_found_by_its_metrics(tmp_path: Path, deep: int) -> None:
    metrics = {"retrieval_0": 0.1, f"retrieval_{deep}": 0.9, f"retrieval_{deep}_p5": 0.95}
    results.write_results(tmp_path / "results.json", [replica("0", 0, metrics)])
    table = tables.build(rows.read_run(tmp_path))
    assert [line.cells["retrieval_deep"].mean for line in table.lines] == [0.9, 0.97]
    assert f"layer {deep}" in {column.group for column in table.columns}
    assert any(f"layer {deep}," in note for note in table.notes) == (deep != 8)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.7, ".70"), (1, "1.00"), (0.996, "1.00"), (0.994, ".99"), (0, ".00"), (-0.05, "-.05"),
     (-0.001, ".00"), (0.12, ".12"), (1.5, "1.50")],
)  # fmt: skip
def test_scores_look_as_in_the_paper(value: float, text: str) -> None:
    assert tables.score(value) == text


def test_the_terminal_table_fits_and_has_the_papers_line_beneath_ours(tmp_path: Path) -> None:
    metrics = {name.replace("_8", "_3"): 1.0 for name in papers.METRICS} | {"mu": 1.0}
    metrics |= {"perplexity_train": 12_345.0, "perplexity_dev": 7e7, "retrieval_candidates": 1e4}
    ended = []
    for row in (*papers.ORDER, "99"):
        worse = {name: value * 1.5 for name, value in metrics.items()}
        ended += [replica(row, 0, metrics), replica(row, 42, worse), replica(row, 43, metrics)]
    results.write_results(tmp_path / "results.json", ended)
    text = tables.terminal(tmp_path)
    lines = text.splitlines()
    assert max(map(len, lines)) <= tables.WIDTH
    assert sum(papers.SOURCE in line.split("±")[0] for line in lines if line[:2] == "  ") == 18
    first = lines.index("0   original")
    assert lines[first + 1].startswith("  ours") and lines[first + 2].startswith("  D&S 2020")
    assert lines[-1] and "99  another setting" in lines


def test_markdown_and_csv_hold_the_tables_numbers(tmp_path: Path) -> None:
    table = tables.build(rows.read_run(fake_run(tmp_path)))
    markdown = [line for line in tables.to_markdown(table).splitlines() if line[:1] == "|"]
    assert len({line.count("|") for line in markdown}) == 1 and len(markdown) == 2 + 6
    lines = list(csv.DictReader(io.StringIO(tables.to_csv(table))))
    expected = [fake_metrics("1", seed, 1.0)["mu"] for seed in (0, 42)]
    ours = next(line for line in lines if (line["row"], line["source"]) == ("1", "ours"))
    assert float(ours["mu"]) == pytest.approx(np.mean(expected), rel=1e-4)
    assert float(ours["mu_sd"]) == pytest.approx(np.std(expected), rel=1e-4)
    paper = next(line for line in lines if (line["row"], line["source"]) == ("1", papers.SOURCE))
    assert (paper["mu"], paper["mu_sd"], paper["deep_layer"]) == ("0.3", "", "8")


def test_notes_say_that_another_text_is_no_match(tmp_path: Path) -> None:
    notes = " ".join(tables.build(rows.read_run(fake_run(tmp_path))).notes)
    assert "Compare the shape" in notes and "'laptop'" in notes and "fewer candidates" in notes

"""Every row is in the tables it belongs to, with its numbers, its best value or why it has none."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from fake_run import fake_metrics, fake_run, replica

from xling_jax.experiments.fake_english import published, report
from xling_jax.report import claims, frame
from xling_jax.report.prose import listed
from xling_jax.report.table import (
    ABSENT,
    WIDTH,
    Line,
    Table,
    score,
    share,
    to_csv,
    to_latex,
    to_markdown,
    to_terminal,
)
from xling_jax.runs import results

EVERY = ("0", "15", "17", "17-250", "18", "21", "lr1e-4", "lr2e-3", "lr2e-2", "ep10", "ep200", "99")


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> frame.Run:
    """A run with rows of every table; one learning rate diverged, and one seed of row 15."""
    folder = tmp_path_factory.mktemp("every")
    diverged = {"lr2e-2": (0, 42), "15": (42,)}
    return frame.Run(fake_run(folder, EVERY, (0, 42), diverged=diverged), published.ORDER)


def by_title(run: frame.Run) -> dict[str, Table]:
    return {table.title: table for table in report.tables(run)}


def terminal(workdir: Path) -> str:
    return report.write(workdir)


def ours(table: Table) -> list[str]:
    return [line.row for line in table.lines if line.ours]


def test_each_table_has_its_rows_in_order_and_the_lines_it_prints(every: frame.Run) -> None:
    assert {title: ours(table) for title, table in by_title(every).items()} == {
        "Table 1": ["0", "15", "17", "18"],
        "Table 2": ["0", "21"],
        "Table 10": ["17", "17-250"],
        "Search": ["0", "lr1e-4", "lr2e-3", "lr2e-2", "ep10", "ep200"],
        "Other rows": ["99"],
    }
    for title, table in by_title(every).items():
        for line in table.lines:
            assert line.ours or f"Table {line.more['table']}" == title
    dev = [line.cells["perplexity_dev"] for line in by_title(every)["Table 10"].lines]
    assert (dev[1].mean, dev[1].sd, dev[3].mean, dev[3].sd) == (270, 20.1, 1111, 30.7)


@pytest.mark.parametrize(
    ("names", "titles"),
    [
        (["0"], ["Table 1"]),
        (["0", "21b"], ["Table 1", "Table 2"]),
        (["17"], ["Table 1"]),
        (["0", "learning-rate[5e-4]"], ["Table 1", "Search"]),
        (["shift-special;inv-order"], ["Other rows"]),
    ],
)
def test_a_table_is_there_where_the_run_has_a_row_of_its_own(
    tmp_path: Path, names: list[str], titles: list[str]
) -> None:
    ended = [results.Replica("fake_english", name, name, 0, 1, {"mu": 0.5}) for name in names]
    results.write_results(tmp_path / "results.json", ended)
    assert list(by_title(frame.Run(tmp_path, published.ORDER))) == titles


def test_another_experiment_has_one_table_of_its_own(tmp_path: Path) -> None:
    ended = [results.Replica("bilingual", "0", "original", 0, 1, {"mu": 0.5})]
    results.write_results(tmp_path / "results.json", ended)
    table = by_title(frame.Run(tmp_path, published.ORDER))["Results"]
    assert [line.source for line in table.lines] == ["ours"]
    assert published.SOURCE not in terminal(tmp_path)


def marked(table: Table) -> set[tuple[str, str]]:
    return {(line.row, n) for line in table.lines for n in line.best}


def test_the_best_perplexity_of_each_search_is_marked(every: frame.Run) -> None:
    table = by_title(every)["Search"]
    # Row 0 stands for 100 epochs, but not for the learning rate that lr2e-3 tries itself.
    both = ("perplexity_train", "perplexity_dev")
    assert marked(table) == {(row, name) for row in ("0", "lr2e-3") for name in both}
    assert all(not marked(other) for title, other in by_title(every).items() if title != "Search")
    assert "9*" in to_terminal(table) and "**9**" in to_markdown(table)
    assert r"\textbf{9}" in to_latex(table)


def test_nothing_is_best_while_it_trains_or_alone(tmp_path: Path) -> None:
    share = {"lr2e-3": 0.5, "lr1e-3": 1.0, "lr1e-4": 1.0}
    run = frame.Run(fake_run(tmp_path / "a", list(share), [0], share), published.ORDER)
    assert {row for row, _ in marked(by_title(run)["Search"])} == {"lr1e-3"}
    path = run.workdir / "config.json"
    config = json.loads(path.read_text())
    config["groups"].append([["lr1e-4", 42]])  # which has not begun
    path.write_text(json.dumps(config))
    assert not marked(by_title(frame.Run(run.workdir, published.ORDER))["Search"])
    share = {"lr2e-3": 0.5, "lr1e-3": 1.0}
    run = frame.Run(fake_run(tmp_path / "b", list(share), [0], share), published.ORDER)
    assert not marked(by_title(run)["Search"])


def test_a_row_that_diverged_is_a_line_that_says_so(every: frame.Run) -> None:
    table = by_title(every)["Search"]
    said = "diverged at step 4,500"
    for text in (to_markdown(table), to_latex(table)):
        (line,) = [line for line in text.splitlines() if said in line]
        assert "lr2e-2" in line and "0/2" in line
    lines = to_terminal(table).splitlines()
    place = next(n for n, line in enumerate(lines) if line.startswith("lr2e-2"))
    assert said in lines[place + 1] and lines[place + 1].endswith("0/2")
    written = csv.DictReader(io.StringIO(to_csv(table)))
    (line,) = [line for line in written if line["row"] == "lr2e-2"]
    assert (line["mu"], line["diverged"]) == ("", "0@4500 42@4500")
    some = by_title(every)["Table 1"]
    assert next(line for line in some.lines if line.row == "15").seeds == "1/2"
    assert "Row 15: seed 42 at step 4,500 diverged and is in no mean." in some.notes


def test_a_mean_over_fewer_seeds_than_the_row_has_says_so(tmp_path: Path) -> None:
    own = [replica("0", seed, {"mu": 0.5, "perplexity_dev": 9.0}) for seed in (0, 1)]
    own.append(replica("0", 2, {"mu": 0.5, "perplexity_dev": math.inf}))
    results.write_results(tmp_path / "results.json", own)
    notes = by_title(frame.Run(tmp_path, published.ORDER))["Table 1"].notes
    said = "Row 0: some of its 3 seeds lack a finite perplexity_dev; the mean is of the others."
    assert said in notes


def test_a_score_after_a_map_is_said_to_be_of_half_the_sentences(tmp_path: Path) -> None:
    own = replica("0", 0, {"mapped_3": 0.5, "retrieval_candidates": 1e4})
    results.write_results(tmp_path / "results.json", [own])
    (table,) = report.tables(frame.Run(tmp_path, published.ORDER))
    assert any("Among half as many sentences" in note for note in table.notes)


@pytest.mark.parametrize("deep", [3, 8])
def test_the_deeper_layer_is_found_by_its_metrics(tmp_path: Path, deep: int) -> None:
    metrics = {"retrieval_0": 0.1, f"retrieval_{deep}": 0.9, f"retrieval_{deep}_p5": 0.95}
    results.write_results(tmp_path / "results.json", [replica("0", 0, metrics)])
    table = by_title(frame.Run(tmp_path, published.ORDER))["Table 1"]
    assert [line.cells["retrieval_deep"].mean for line in table.lines] == [0.9, 0.97]
    assert f"layer {deep}" in {column.group for column in table.columns}
    assert any(f"layer {deep}," in note for note in table.notes) == (deep != 8)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.7, ".70"), (1, "1.00"), (0.996, "1.00"), (0.994, ".99"), (0, ".00"), (-0.05, "-.05"),
     (-0.001, ".00"), (0.12, ".12"), (1.5, "1.50")],
)  # fmt: skip
def test_scores_look_as_in_the_paper(value: float, text: str) -> None:
    assert score(value) == text


def test_a_score_that_is_rounded_to_zero_has_no_sign() -> None:
    assert (share(-0.0004), claims.score(-0.0004)) == (".000", ".00")


def test_the_terminal_tables_fit_and_have_the_papers_line_beneath_ours(tmp_path: Path) -> None:
    metrics = {name.replace("_8", "_3"): 1.0 for name in published.METRICS} | {"mu": 1.0}
    metrics |= {"perplexity_train": 12_345.0, "perplexity_dev": 7e7, "retrieval_candidates": 1e4}
    ended = []
    for row in (*published.ORDER, "99"):
        worse = {name: value * 1.5 for name, value in metrics.items()}
        ended += [replica(row, 0, metrics), replica(row, 42, worse), replica(row, 43, metrics)]
    results.write_results(tmp_path / "results.json", ended)
    lines = terminal(tmp_path).splitlines()
    assert max(map(len, lines)) <= WIDTH
    starts = [line.split("±")[0] for line in lines if line.startswith("  D&S 2020")]
    assert len(starts) == 16 + 3 + 2
    first = lines.index("0   original")
    assert lines[first + 1].startswith("  ours") and lines[first + 2].startswith("  D&S 2020")
    assert lines[-1] and "99  another setting" in lines
    titles = [table.heading for table in report.tables(frame.Run(tmp_path, published.ORDER))]
    assert [line for line in lines if line in titles] == titles and len(titles) == 5


def test_markdown_and_csv_hold_the_tables_numbers(tmp_path: Path) -> None:
    run = frame.Run(fake_run(tmp_path), published.ORDER)
    report.write(run.workdir)
    tables = tmp_path / "report" / "tables"
    text = (tables / "table1.md").read_text()
    markdown = [line for line in text.splitlines() if line[:1] == "|"]
    assert len({line.count("|") for line in markdown}) == 1 and len(markdown) == 2 + 6
    expected = [fake_metrics("1", seed, 1.0)["mu"] for seed in (0, 42)]
    for name in ("table1.csv", "results.csv"):
        lines = list(csv.DictReader(io.StringIO((tables / name).read_text())))
        own = next(line for line in lines if (line["row"], line["source"]) == ("1", "ours"))
        assert float(own["mu"]) == pytest.approx(np.mean(expected), rel=1e-4)
        assert float(own["mu_sd"]) == pytest.approx(np.std(expected), rel=1e-4)
        paper = next(line for line in lines if (line["row"], line["table"]) == ("1", "1"))
        assert (paper["mu"], paper["mu_sd"], paper["deep_layer"]) == ("0.3", "", "8")


def test_the_whole_in_one_file_has_each_row_once_and_every_printed_line(
    every: frame.Run,
) -> None:
    report.write(every.workdir)
    tables = every.workdir / "report" / "tables"
    lines = list(csv.DictReader(io.StringIO((tables / "results.csv").read_text())))
    assert sorted(line["row"] for line in lines if line["source"] == "ours") == sorted(EVERY)
    of = [(line["row"], line["table"]) for line in lines if line["row"] in ("0", "17")]
    assert of == [("0", ""), ("0", "1"), ("0", "2"), ("17", ""), ("17", "1"), ("17", "10")]
    kinds = {path.name for path in tables.iterdir()}
    names = ("table1", "table2", "table10", "search", "otherrows", "claims")
    assert kinds == {"results.csv"} | {
        f"{n}.{kind}" for n in names for kind in ("md", "csv", "tex")
    }


def test_what_a_line_lacks_is_empty_in_csv() -> None:
    lines = [Line("0", "", seeds="4/5", candidates="1000"), Line("0", "", {}, "", ABSENT, ABSENT)]
    ours, paper = csv.DictReader(io.StringIO(to_csv(Table("", "", "", [], lines))))
    assert (ours["seeds"], ours["candidates"]) == ("4/5", "1000")
    assert paper["seeds"] == paper["candidates"] == ""


def latex_columns(line: str) -> int:
    """How many columns a line of a tabular fills."""
    spans = [int(size) for size in re.findall(r"\\multicolumn\{(\d+)\}", line)]
    return len(re.findall(r"(?<!\\)&", line)) + 1 + sum(spans) - len(spans)


def test_latex_lines_fill_the_columns_that_are_declared(every: frame.Run) -> None:
    for table in report.tables(every):
        text = to_latex(table)
        code = [line for line in text.splitlines() if not line.startswith("%")]
        declared = re.fullmatch(r"\\begin\{tabular\}\{([lr]+)\}", code[0])
        assert declared and code[-1] == r"\end{tabular}"
        full = [line for line in code if line.endswith(r"\\")]
        assert {latex_columns(line) for line in full} == {len(declared[1])}
        assert len(full) == 2 + len(table.lines)
        assert all(line.count("{") == line.count("}") for line in code)


def test_what_a_user_wrote_is_text_in_every_format(tmp_path: Path) -> None:
    evil = "50%_of|#1 & {x}^2 ~\\input{a}\n[b](c) *$<i>"
    results.write_results(
        tmp_path / "results.json",
        [results.Replica("fake_english", evil, evil, 0, 1, {}, 1)],
    )
    (table,) = report.tables(frame.Run(tmp_path, published.ORDER))
    (line,) = [line for line in to_latex(table).splitlines() if "50" in line and "&" in line][:1]
    assert latex_columns(line) == 13
    bare = re.sub(
        r"\\(?:textbackslash|textasciitilde|textasciicircum|textless|textgreater|textbar)\{\}",
        "",
        line,
    )
    assert not re.search(r"(?<!\\)[%#_^~]|\\input|<", bare)
    markdown = [line for line in to_markdown(table).splitlines() if line[:1] == "|"]
    assert len({len(re.findall(r"(?<!\\)\|", line)) for line in markdown}) == 1
    assert "<i>" not in to_markdown(table) and "[b](c)" not in to_markdown(table)
    (row,) = csv.DictReader(io.StringIO(to_csv(table)))
    assert row["row"] == evil


@pytest.mark.parametrize(
    ("names", "words"), [(["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")]
)
def test_names_are_listed_in_words(names: list[str], words: str) -> None:
    assert listed(names) == words

"""The report of fine-tuned rows shows what is stored, whole or half, beside the paper's numbers."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import fake_zero_shot
import numpy as np
import pytest
from fake_zero_shot import (
    EPOCHS,
    PAIRS,
    ROWS,
    STEPS,
    TASKS,
    changed,
    fake_run,
    metrics_of,
    printed,
)

from xling_jax.experiments.zero_shot import notes
from xling_jax.experiments.zero_shot import report as transfer
from xling_jax.experiments.zero_shot.scores import SOURCE, Board, read
from xling_jax.gather import gather
from xling_jax.report import figures
from xling_jax.report.frame import Run
from xling_jax.report.gallery import Gallery
from xling_jax.runs import results


def board_of(workdir: Path) -> Board:
    return read(Run(workdir))


def page_of(workdir: Path) -> str:
    transfer.write(workdir)
    return (workdir / "report" / "report.html").read_text()


def notes_of(workdir: Path) -> str:
    run = Run(workdir)
    return "\n".join(notes.texts(run, read(run))["Notes"])


def table_of(workdir: Path, name: str) -> dict[tuple[str, str], dict[str, str]]:
    with open(workdir / "report" / "tables" / f"{name}.csv") as file:
        return {(line["row"], line["description"]): line for line in csv.DictReader(file)}


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that ended, with its report: two seeds, two languages, two tasks."""
    workdir = fake_run(tmp_path_factory.mktemp("ended"), ("default", "sep_l1_3", "mine"),
                       ("ner", "parsing"), ("en-fr", "en-ru"), (0, 1))  # fmt: skip
    transfer.write(workdir)
    return workdir


def test_the_tables_have_our_numbers_and_the_papers_in_percent(ended: Path) -> None:
    found = table_of(ended, "table1_ner")
    assert list(found) == [
        ("default", "ours"), ("default", "W&C 2020"), ("sep_l1_3", "ours"),
        ("sep_l1_3", "W&C 2020"), ("mine", "alone;first[4];map"), ("majority", "baseline"),
        ("chance", "baseline"),
    ]  # fmt: skip
    ours, paper = found["sep_l1_3", "ours"], found["sep_l1_3", "W&C 2020"]
    # The second seed is a point better, so the mean is half a point above the paper's.
    assert (ours["target fr"], ours["target fr_sd"], ours["target ru"], ours["target zh"]) == (
        "74.5",
        "0.5",
        "53.8",
        "",
    )
    assert (ours["mean"], ours["mean_sd"], ours["seeds"]) == ("64.15", "0.5", "2")
    assert float(ours["delta"]) == pytest.approx((74.0 + 53.3 - 79.8 - 60.9) / 2)
    assert (ours["source en (en-fr)"], paper["source en (en-fr)"]) == ("85.5", "")
    assert (paper["target fr"], paper["target zh"], paper["delta"]) == ("74", "60.8", "-5.3")
    assert found["mine", "alone;first[4];map"]["target fr"] == "50.5"
    assert found["majority", "baseline"]["mean"] == "0"
    summary = table_of(ended, "table1")
    assert summary["default", "ours"]["average"] == "0"
    assert summary["sep_l1_3", "W&C 2020"]["ner_delta"] == "-5.3"
    assert float(summary["sep_l1_3", "W&C 2020"]["average"]) == pytest.approx((-5.3 - 2.8) / 2)


@pytest.mark.pictures
def test_a_task_that_the_paper_does_not_have_is_shown_without_its_lines(tmp_path: Path) -> None:
    workdir = fake_run(tmp_path, ["default", "sep_emb"], ["ner", "pos"], ["en-fr"])
    text = page_of(workdir)
    assert "POS: accuracy, the share of words with the right universal part of speech." in text
    found = table_of(workdir, "table1_pos")
    assert [what for _, what in found] == ["ours", "ours", "baseline", "baseline"]
    assert (
        found["default", "ours"]["target fr"] == "50"
        and found["majority", "baseline"]["target fr"] == "20"
    )
    paper = table_of(workdir, "table1")["sep_emb", "W&C 2020"]
    assert (paper["ner_delta"], paper["pos_delta"], paper["average"]) == ("-4.1", "", "")
    figures = {path.stem for path in (workdir / "report" / "figures").glob("*.svg")}
    assert {"rows_pos", "epochs_pos_en-fr"} <= figures


def test_a_task_of_fewer_pairs_has_a_mean_of_its_own_and_is_not_averaged(tmp_path: Path) -> None:
    rows = ["default", "no_anchors", "default_anchors"]
    parts = [
        fake_run(tmp_path / "two", rows, ["nli", "ner"], ["en-fr", "en-ru"]),
        fake_run(tmp_path / "parsing", rows, ["parsing"], ["en-fr"]),
        fake_run(tmp_path / "one", ["sep_emb"], ["ner"], ["en-fr"]),
    ]
    gather(parts, tmp_path / "all")
    ner, parsing = (table_of(tmp_path / "all", f"table1_{task}") for task in ("ner", "parsing"))
    for row in rows:
        own = ner[row, "ours"], parsing[row, "ours"]
        assert float(own[0]["mean"]) == pytest.approx(
            (float(own[0]["target fr"]) + float(own[0]["target ru"])) / 2
        )
        assert own[1]["mean"] == own[1]["target fr"] != ""
        assert table_of(tmp_path / "all", "table1")[row, "ours"]["average"] == ""
    assert ner["sep_emb", "ours"]["mean"] == "" != ner["sep_emb", "ours"]["delta"]
    assert "Some rows do not have a score in every target language" in notes_of(tmp_path / "all")
    verdicts = (tmp_path / "all" / "report" / "tables" / "claims.csv").read_text()
    assert "not asked for in every pair: row sep_emb/ner" in verdicts
    assert verdicts.count("not every task is tested in every language") == 5
    assert "only for rows whose Δ is over the same languages" in notes_of(tmp_path / "all")
    assert "not ended" not in verdicts


def test_rows_of_one_pair_of_two_decide_nothing_and_say_why(tmp_path: Path) -> None:
    pairs = {"default": ["en-fr", "en-ru"], "no_anchors": ["en-fr"]}
    parts = [fake_run(tmp_path / row, [row], TASKS, own, seeds=(0, 1)[: len(own)])
             for row, own in pairs.items()]  # fmt: skip
    gather(parts, tmp_path / "all")
    verdicts = (tmp_path / "all" / "report" / "tables" / "claims.csv").read_text()
    assert "not asked for in every pair: row no_anchors" in verdicts
    assert "not ended" not in verdicts


@pytest.mark.parametrize(
    ("rows", "pair", "are_there"),
    [(ROWS, "de-fr", True), (["mine"], "en-fr", False)],
)
def test_claims_stand_beside_the_papers_rows(
    tmp_path: Path, rows: Sequence[str], pair: str, are_there: bool
) -> None:
    said = transfer.write(fake_run(tmp_path, rows, ["ner"], [pair]))
    assert ("What became of the paper's claims" in said) == are_there
    assert ("fewer-shared-layers" in (tmp_path / "report" / "report.html").read_text()) == are_there


@pytest.mark.parametrize(("best", "expected"), [(1, 3.0), (2, 2.5), (5, 2.0)])
def test_the_best_settings_by_the_first_languages_examples_are_averaged(
    tmp_path: Path, best: int, expected: float
) -> None:
    workdir = fake_run(tmp_path, ["default"], ["nli"], ["en-fr"], extras=(2.0, 3.0, 1.0),
                       more={"best": best})  # fmt: skip
    (job,) = board_of(workdir).jobs
    assert job.scores["fr"].mean == pytest.approx(73.6 + expected)
    assert len(job.chosen) == min(best, 3) and job.scores["fr"].sd is None
    text = notes_of(workdir)
    assert ("the best of at most 3 settings" if best == 1 else f"the best {best} of") in text


def test_of_equal_settings_the_first_by_name_counts_whatever_the_order(tmp_path: Path) -> None:
    workdir = fake_run(tmp_path, ["default"], ["nli"], ["en-fr"], extras=(0.0, 5.0),
                       more={"best": 1})  # fmt: skip
    path = workdir / "results.json"
    both = [replace(each, metrics={**each.metrics, "accuracy_dev": 0.9})
            for each in results.read_results(path)]  # fmt: skip
    chosen = set()
    for own in (both, both[::-1]):
        results.write_results(path, own)
        (job,) = board_of(workdir).jobs
        chosen.add(job.chosen[0].row)
    assert chosen == {min(each.row for each in both)}


def test_the_test_languages_do_not_choose(tmp_path: Path) -> None:
    workdir = fake_run(tmp_path, ["default"], ["nli"], ["en-fr"], extras=(0.0, 5.0),
                       more={"best": 1})  # fmt: skip
    path = workdir / "results.json"
    first, second = results.read_results(path)
    worse = replace(second, metrics={**second.metrics, "accuracy_dev": 0.1})
    results.write_results(path, [first, worse])
    assert board_of(workdir).jobs[0].scores["fr"].mean == pytest.approx(73.6)


def test_settings_that_diverged_are_in_no_mean(tmp_path: Path) -> None:
    workdir = fake_run(
        tmp_path, ["default", "sep_emb"], ["ner"], ["en-fr"], extras=(0.0, 4.0),
        diverged=[("en-fr/default/ner/16/2e-05", 0), ("en-fr/sep_emb", 0)],
    )  # fmt: skip
    transfer.write(workdir)
    found = table_of(workdir, "table1_ner")
    assert found["default", "ours"]["target fr"] == "79.8"
    assert found["default", "ours"]["seeds"] == "1 (1 diverged)"
    assert (
        found["sep_emb", "ours"]["target fr"] == ""
        and found["sep_emb", "ours"]["diverged"] == "0@40"
    )
    text = (workdir / "report" / "report.html").read_text()
    assert f"diverged at step {STEPS}" in text
    assert "in no mean: en-fr/default/ner (1 of 2 settings; seed 0) and en-fr/sep_emb" in text


def test_a_delta_is_over_languages_that_both_rows_have(tmp_path: Path) -> None:
    board = board_of(fake_run(tmp_path, ["default", "sep_emb"], ["nli"], PAIRS,
                              waiting=[("en-zh/sep_emb", 0)]))  # fmt: skip
    delta = board.delta("sep_emb", "nli")
    assert board.mean("default", "nli") and board.mean("sep_emb", "nli") is None
    assert delta and delta.mean == pytest.approx((72.7 + 63.6 - 73.6 - 68.7) / 2)


@pytest.mark.parametrize(("lacks", "is_averaged"), [(["ner"], False), (["nli", "ner"], True)])
def test_differences_over_other_languages_are_not_averaged(
    tmp_path: Path, lacks: Sequence[str], is_averaged: bool
) -> None:
    """Even if the row itself has all of its languages, and default alone lacks one."""
    workdir = fake_run(tmp_path, ["default", "sep_emb"], ["nli", "ner"], ["en-fr", "en-zh"],
                       waiting=[(f"en-zh/default/{task}", 0) for task in lacks])  # fmt: skip
    cells = next(
        line.cells for line in transfer.tables(board_of(workdir), [])[0].lines
        if line.row == "sep_emb"
    )  # fmt: skip
    assert {"nli_mean", "nli_delta", "ner_mean", "ner_delta"} <= cells.keys()
    assert (transfer.AVERAGE in cells) == is_averaged
    assert ("Δ of all tasks is given only" in notes_of(workdir)) != is_averaged


def test_languages_may_be_called_as_columns(tmp_path: Path) -> None:
    changes = {("default", "ner"): 40.0}
    workdir = fake_run(tmp_path, ["default"], ["ner"], ["en-mean-seeds"], scores=changed(changes))
    transfer.write(workdir)
    line = table_of(workdir, "table1_ner")["default", "ours"]
    assert (line["target mean"], line["target seeds"], line["seeds"]) == ("40", "40", "1")


def test_the_paper_stands_beside_what_is_learned_from_english_alone(tmp_path: Path) -> None:
    for pair, expected in (("en-fr", True), ("de-fr", False)):
        workdir = fake_run(tmp_path / pair, ["default"], ["ner"], [pair])
        transfer.write(workdir)
        assert (("default", SOURCE) in table_of(workdir, "table1_ner")) == expected


def test_a_language_of_two_pairs_is_told_apart(tmp_path: Path) -> None:
    workdir = fake_run(tmp_path, ["default"], ["ner"], ["en-fr", "en-fr-ru"])
    transfer.write(workdir)
    line = table_of(workdir, "table1_ner")["default", "ours"]
    assert (
        line["target fr (en-fr)"] == line["target fr (en-fr-ru)"] == "79.8"
        and line["target ru"] == "60.9"
    )


@pytest.mark.pictures
@pytest.mark.parametrize("number", [4, 5, 9])
def test_many_languages_have_several_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    drawn: list[list[str]] = []
    monkeypatch.setattr(
        figures, "bars", lambda _, scores, *__: drawn.append([x.name for x in scores])
    )
    names = [f"x{n}" for n in range(number)]
    board = board_of(fake_run(tmp_path, ["default"], ["ner"], ["-".join(["en", *names])]))
    transfer._bars(board, Gallery(tmp_path))
    assert max(map(len, drawn)) <= 4 and sum(drawn, []) == names


def test_curves_run_over_epochs_whatever_the_batches(ended: Path) -> None:
    lines = transfer.over_epochs(transfer.by_epoch(Run(ended)), board_of(ended), "en-fr", "ner")
    assert [line.label for line in lines] == ["default", "sep_l1_3", "mine"]
    curve = lines[0].curves["fr"]
    assert list(curve.steps) == list(range(1, EPOCHS + 1))
    assert curve.mean[-1] == pytest.approx(0.803) and curve.sd[-1] == pytest.approx(0.005)


@pytest.mark.pictures
def test_rows_with_long_names_are_told_apart_in_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[set[str]] = []
    monkeypatch.setattr(figures, "bars", lambda rows, *_: drawn.append({x.label for x in rows}))
    rows = [f"sep-emb_shared-special_sep_layers_0..{n}_" for n in (1, 3)]
    workdir = fake_run(tmp_path, rows, ["ner"], ["en-fr"])
    board = board_of(workdir)
    transfer._bars(board, Gallery(tmp_path))
    lines = transfer.over_epochs(transfer.by_epoch(Run(workdir)), board, "en-fr", "ner")
    assert [line.label for line in lines] == rows and len(drawn[0]) == 2


def test_scores_that_are_not_above_the_majority_are_named(tmp_path: Path) -> None:
    workdir = fake_run(tmp_path, ["default", "sep_emb"], ["nli", "parsing"], ["en-ru"],
                       scores=changed({("sep_emb", "nli"): 33.0}))  # fmt: skip
    text = notes_of(workdir)
    assert "NLI, not above the majority baseline: sep_emb (ru)." in text
    assert "Parsing, not above" not in text


def test_notes_follow_the_config(tmp_path: Path) -> None:
    more = {"parsing": {"subtypes": True, "punctuation": False}, "ner": {"new_names": True}}
    text = notes_of(fake_run(tmp_path, ["default"], ["ner"], ["en-near"], more=more))
    assert "segmenter's words; in embedded languages no name of the tests is in the" in text
    text = notes_of(fake_run(tmp_path, ["default"], ["ner"], ["en-near"]))
    assert "segmenter's words." in text
    text = notes_of(fake_run(tmp_path, ["default"], ["parsing"], ["en-near"], more=more))
    assert "relations with subtypes, punctuation is not counted" in text
    assert "Examples tested on: Parsing 1,000 of en and 1,000 of near." in text


def test_the_notes_have_the_sizes_of_all_texts_of_a_language(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def metrics(pair: str, *_: object) -> dict[str, float]:
        return metrics_of(pair, "default", "ner", printed) | {
            "examples_en": {"en-fr": 10_000.0, "en-zh": 3453.0}[pair]
        }

    monkeypatch.setattr(fake_zero_shot, "metrics_of", metrics)
    text = notes_of(fake_run(tmp_path, ["default"], ["ner"], ["en-fr", "en-zh"]))
    assert "on: NER 3,453–10,000 of en, 1,000 of fr and 1,000 of zh." in text


def test_the_notes_say_that_the_last_epoch_is_tested(tmp_path: Path) -> None:
    settings = {"nli": {"epochs": 3, "select": "last"}, "ner": {"epochs": 3, "select": "best"}}
    workdir = fake_run(tmp_path, ["default"], ["nli", "ner"], more={"settings": settings})
    assert "The last epoch is tested: NLI." in notes_of(workdir)


def test_a_run_that_has_not_begun_has_a_page(tmp_path: Path) -> None:
    text = page_of(fake_run(tmp_path, waiting=[("", 0)]))
    assert "Nothing has been logged yet." in text and "not begun" in text
    assert f"and {len(ROWS) * len(TASKS) * len(PAIRS) - 12} more." in text


def test_a_row_that_the_config_does_not_describe_is_shown(tmp_path: Path) -> None:
    workdir = fake_run(tmp_path, ["sep[a/b]", "default"], ["ner"], ["en-fr"])
    (workdir / "config.json").unlink()
    assert board_of(workdir).rows == ["sep[a/b]", "default"]
    assert "sep[a/b]" in transfer.write(workdir)


def with_orders(workdir: Path, orders: Mapping[str, float]) -> Path:
    """A run whose models have been compared in word order, with these results."""
    path = workdir / "results.json"
    found = results.read_results(path)
    for number, replica in enumerate(found):
        languages = replica.row.split("/")[0].split("-")[1:]
        own = {f"order_{language}": orders[language] for language in languages}
        found[number] = replace(replica, metrics={**replica.metrics, **own})
    results.write_results(path, found)
    return workdir


def test_word_order_is_set_beside_the_scores_and_the_papers(tmp_path: Path) -> None:
    """D&S Table 4: languages that the paper does not have stand alone."""
    orders = {"fr": 0.9, "ru": 0.7, "near": 0.6}
    pairs = [f"en-{language}" for language in orders]
    scores = {"en": 80.0, "fr": 75.0, "ru": 60.0, "near": 65.0}
    workdir = fake_run(tmp_path, ["default"], ["nli", "ner"], pairs, seeds=(0, 1),
                       scores=lambda row, task, language: scores.get(language, 50.0))  # fmt: skip
    page = page_of(with_orders(workdir, orders))
    table = table_of(workdir, "word_order")
    assert list(table) == [
        ("en", "default"), ("en", "English"), ("fr", "default"), ("fr", "French"),
        ("ru", "default"), ("ru", "Russian"), ("near", "default"),
    ]  # fmt: skip
    assert table["fr", "default"]["order"] == "0.9" and table["fr", "default"]["nli"] == "75.5"
    assert table["en", "default"]["order"] == "1" and table["en", "default"]["nli"] == "80.5"
    assert table["ru", "Russian"]["order"] == "0.72" and table["ru", "Russian"]["nli"] == "69"
    assert not table["ru", "Russian"]["ner"]
    found = table_of(workdir, "word_order_correlation")
    ours, paper = found["default", "ours"], found["mBERT", "D&S 2020"]
    x, y = np.array([(orders.get(name, 1.0), value) for name, value in scores.items()]).T
    for which, own in (("without", slice(1, None)), ("with", slice(None))):
        expected = np.corrcoef(x[own], y[own])[0, 1]
        assert float(ours[f"nli_{which}"]) == pytest.approx(expected, abs=1e-5)
    assert [round(float(paper[f"nli_{x}"]), 2) for x in ("without", "with")] == [0.46, 0.64]
    assert (ours["nli_languages"], paper["nli_languages"]) == ("4", "15")
    assert "D&amp;S Table 4" in page and "Kendall" in page


@pytest.mark.parametrize(
    ("orders", "known"),
    [({"fr": 0.9}, []), ({"fr": 0.9, "ru": 0.7}, ["with"]), ({"fr": 1.0, "ru": 1.0}, [])],
)
def test_a_correlation_needs_three_languages_that_differ(
    tmp_path: Path, orders: dict[str, float], known: list[str]
) -> None:
    workdir = fake_run(tmp_path, ["default"], ["nli"], [f"en-{x}" for x in orders])
    assert "not defined (–) over fewer than three languages" in page_of(
        with_orders(workdir, orders)
    )
    line = table_of(workdir, "word_order_correlation")["default", "ours"]
    assert [x for x in ("without", "with") if line[f"nli_{x}"]] == known


def test_without_word_order_there_is_no_table_of_it(tmp_path: Path) -> None:
    assert "Table 4" not in page_of(fake_run(tmp_path, ["default"], ["nli"], ["en-fr"]))
    assert not (tmp_path / "report" / "tables" / "word_order.csv").exists()


def test_a_language_in_several_pairs_has_an_order_in_each(tmp_path: Path) -> None:
    workdir = fake_run(tmp_path, ["default"], ["nli"], ["en-fr", "de-fr-en"])
    transfer.write(with_orders(workdir, {"fr": 0.9, "en": 0.8}))
    found = table_of(workdir, "word_order")
    # Each beside those that were learned from the same one; the paper's models learned English.
    assert [language for language, _ in found] == [
        "en", "en", "en to fr", "en to fr", "de", "de to fr", "de to en",
    ]  # fmt: skip
    compared = table_of(workdir, "word_order_correlation")
    assert [row for row, _ in compared] == ["default (en)", "default (de)", "mBERT"]


def test_layers_that_are_kept_have_a_curve_for_each_kind_of_models(tmp_path: Path) -> None:
    workdir = fake_run(tmp_path, [f"{kind}_{n}" for kind in ("mono", "bi") for n in range(3)],
                       ["ner"], ["en-fr-ru"])  # fmt: skip
    path = workdir / "config.json"
    config = json.loads(path.read_text())
    for name in config["rows"]:
        kind, number = name.split("/")[1].split("_")
        models = {"mono": "alone;first[{}];map", "bi": "default;first[{}]"}[kind]
        config["rows"][name] = models.format(number)
    path.write_text(json.dumps(config))
    lines = transfer.over_layers(board_of(workdir), "en-fr-ru", "ner")
    assert [line.label for line in lines] == ["alone, mapped", "default, no map"]
    for line in lines:
        assert line.curves.keys() == {"fr", "ru"}
        assert list(line.curves["fr"].steps) == [0, 1, 2]
    assert transfer.over_layers(board_of(workdir), "en-fr-ru", "nli") == []

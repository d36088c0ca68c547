"""W&C's findings hold on their own table, and other numbers speak against them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from fake_zero_shot import PAIRS, ROWS, changed, fake_run, printed

from xling_jax.experiments.zero_shot import claims, scores
from xling_jax.experiments.zero_shot.scores import DELTA, LINES, MEAN, read
from xling_jax.gather import gather
from xling_jax.report.claims import HELD, NOT_HELD, NOT_RUN, Decided
from xling_jax.report.frame import Run
from xling_jax.tasks import PAPER

# Where the printed difference is not that of the printed scores' means, rounded.
ROUNDED_BEFORE = {(row, "ner") for row in (
    "wiki_cc", "no_anchors", "extra_anchors", "sep_l1_3", "sep_l1_6", "sep_emb_l1_3",
)} | {("wiki_cc", "parsing")}  # fmt: skip
# What speaks against each claim: a row, a task and its new score in every language.
AGAINST: Mapping[str, Mapping[tuple[str, str], float]] = {
    "domain-costs-entities-most": {("wiki_cc", "parsing"): 40.0},
    "domain-costs-modestly": {("wiki_cc", "nli"): 60.0},
    "anchors-are-not-needed": {("no_anchors", "ner"): 55.0},
    "joint-vocabulary-matters-little": {("default_anchors", "ner"): 55.0},
    "more-anchors-help": {("extra_anchors", "nli"): 68.0},
    "anchors-help-distant-languages-most": {("default_anchors", "nli"): 68.0},
    "separate-embeddings-cost-more-than-anchors": {("sep_emb", "parsing"): 52.0},
    "fewer-shared-layers-are-worse": {("sep_l1_6", "nli"): 67.0},
    "fewer-shared-layers-are-worse-without-embeddings": {("sep_emb_l1_3", "ner"): 64.1},
    "three-separate-layers-still-transfer": {("sep_l1_3", "parsing"): 47.0},
    "six-separate-layers-cost-distant-languages-most": {("sep_l1_6", "ner"): 55.0},
    "transfer-ends-without-embeddings-and-six-layers": {("sep_emb_l1_6", "nli"): 45.0},
    "sharing-matters-most": {("sep_l1_6", "parsing"): 52.0},
    "distant-languages-transfer-less": {("default", "parsing"): 50.0},
}

KEPT, LACKING = ("config.json", "results.json"), "no_anchors/parsing"


def decide(workdir: Path) -> dict[str, Decided]:
    board = read(Run(workdir))
    return {decided.claim.id: decided for decided in claims.decide(board)}


def test_the_papers_differences_follow_from_its_scores() -> None:
    others = set()
    for line in LINES:
        for task in PAPER:
            own, first = (scores.printed(x.row, task) for x in (line, LINES[0]))
            found, delta = own[MEAN].mean - first[MEAN].mean, own[DELTA].mean
            # Each mean may be off by half a tenth, and the printed difference by as much.
            assert abs(found - delta) <= 0.15 + 1e-9, (line.row, task)
            if abs(round(found, 1) - delta) > 1e-9:
                others.add((line.row, task))
    assert others == ROUNDED_BEFORE


def test_every_claim_holds_on_the_papers_numbers(tmp_path: Path) -> None:
    found = decide(fake_run(tmp_path))
    assert list(found) == list(AGAINST)
    for decided in found.values():
        assert decided.outcome == HELD, decided
        claim = decided.claim
        assert claim.source.startswith("W&C, §4.") and claim.statement.endswith(".")
        assert "to fr, ru and zh" in claim.scope


@pytest.mark.parametrize("name", AGAINST)
def test_another_number_speaks_against_a_claim(tmp_path: Path, name: str) -> None:
    decided = decide(fake_run(tmp_path, scores=changed(AGAINST[name])))[name]
    assert decided.outcome == NOT_HELD, decided
    ((row, _),) = AGAINST[name]
    told = decided.numbers.split("not so: ")[1]
    assert f"row {row}" in told or f"over {row}" in told


@pytest.mark.parametrize("name", AGAINST)
def test_a_claim_is_not_run_without_its_rows(tmp_path: Path, name: str) -> None:
    ((row, task),) = AGAINST[name]
    found = decide(fake_run(tmp_path / "waits", waiting=[(f"en-ru/{row}/{task}/", 0)]))[name]
    assert found.outcome == NOT_RUN
    assert found.numbers.startswith("not ended (2 of 3 settings have): row") or (
        found.numbers == f"not ended on every task: row {row}"
    )
    others = [each for each in ROWS if each != row]
    found = decide(fake_run(tmp_path / "absent", others))[name]
    assert found.outcome == NOT_RUN and found.numbers.startswith("not in this run: row")


def test_a_task_that_the_paper_does_not_have_changes_no_verdict(tmp_path: Path) -> None:
    alone = decide(fake_run(tmp_path / "alone"))
    others = {(row, "pos"): 10.0 * number for number, row in enumerate(ROWS)}
    more = decide(fake_run(tmp_path / "more", tasks=[*PAPER, "pos"], scores=changed(others)))
    assert [each[1:] for each in more.values()] == [each[1:] for each in alone.values()]


def test_claims_on_each_task_are_decided_on_those_that_were_run(tmp_path: Path) -> None:
    found = decide(fake_run(tmp_path, tasks=["ner"]))
    held = found["fewer-shared-layers-are-worse"]
    assert (held.outcome, held.claim.scope) == (HELD, "Task ner, transfer to fr, ru and zh")
    missing = found["anchors-are-not-needed"]
    assert missing.outcome == NOT_RUN
    assert missing.numbers == "not in this run: tasks nli and parsing"
    assert found["distant-languages-transfer-less"].outcome == NOT_RUN


def test_a_row_without_one_of_the_tasks_says_so(tmp_path: Path) -> None:
    fake_run(tmp_path)
    described, ended = (json.loads((tmp_path / name).read_text()) for name in KEPT)
    described["groups"] = [x for x in described["groups"] if LACKING not in x[0][0]]
    described["rows"] = {job: x for job, x in described["rows"].items() if LACKING not in job}
    (tmp_path / KEPT[0]).write_text(json.dumps(described))
    (tmp_path / KEPT[1]).write_text(json.dumps([x for x in ended if LACKING not in x["row"]]))
    (tmp_path / "metrics.jsonl").unlink()
    found = decide(tmp_path)["anchors-are-not-needed"]
    assert found.numbers == "not asked for on every task: row no_anchors"


def test_a_task_is_judged_in_the_languages_that_it_is_tested_in(tmp_path: Path) -> None:
    parts = [fake_run(tmp_path / "more", tasks=["nli", "ner"]),
             fake_run(tmp_path / "parsing", tasks=["parsing"], pairs=["en-fr"])]  # fmt: skip
    gather(parts, tmp_path / "all")
    found = decide(tmp_path / "all")
    of_all, of_order = (
        found[name] for name in ("fewer-shared-layers-are-worse", "distant-languages-transfer-less")
    )
    assert (of_all.outcome, of_order.outcome) == (HELD, HELD)
    scope = "Tasks nli and ner, transfer to fr, ru and zh; Task parsing, transfer to fr"
    assert of_all.claim.scope == scope and "default/parsing" in of_all.numbers
    assert of_order.claim.scope == "Task nli, transfer to fr, ru and zh"


def test_a_language_of_two_pairs_counts_twice_in_the_mean_as_in_the_table(tmp_path: Path) -> None:
    board = read(Run(fake_run(tmp_path, ["default"], ["ner"], ["en-fr", "en-fr-ru"])))
    own = claims.of_run(board).rows["default/ner"].metrics
    assert own[claims.OVERALL] == board.mean("default", "ner")


def test_a_language_called_mean_is_judged_by_its_own_scores(tmp_path: Path) -> None:
    folder = fake_run(
        tmp_path, ["default"], ["ner"], ["en-mean", "en-fr"],
        scores=lambda row, task, language: {"mean": 60.0, "fr": 80.0}.get(language, 90.0),
    )  # fmt: skip
    own = claims.of_run(read(Run(folder))).rows["default/ner"].metrics
    assert own["mean"].mean == pytest.approx(60)
    assert own[claims.OVERALL].mean == pytest.approx(70)


@pytest.mark.parametrize(
    ("pairs", "number"),
    [(["en-fr"], 1), (["en-xx", "en-fr"], 1), (["en-near"], 1), (["de-fr", "de-ru"], 0)],
)
def test_distances_must_be_known(tmp_path: Path, pairs: list[str], number: int) -> None:
    found = decide(fake_run(tmp_path, pairs=pairs))
    decided = found["six-separate-layers-cost-distant-languages-most"]
    assert decided.outcome == NOT_RUN and decided.numbers.endswith(f"are needed, not {number}")
    assert found["fewer-shared-layers-are-worse"].outcome != NOT_RUN


def test_embedded_languages_have_an_order(tmp_path: Path) -> None:
    paper = {"near": "fr", "middle": "ru", "far": "zh"}

    def scores(row: str, task: str, language: str) -> float:
        return printed(row, task, paper.get(language, language))

    found = decide(fake_run(tmp_path, pairs=["en-far", "en-near", "en-middle"], scores=scores))
    decided = found["anchors-help-distant-languages-most"]
    assert decided.outcome == HELD
    assert decided.claim.scope.endswith("transfer to near, middle and far")


def test_the_spread_of_the_seeds_is_told(tmp_path: Path) -> None:
    found = decide(fake_run(tmp_path, seeds=(0, 1, 2)))
    decided = found["joint-vocabulary-matters-little"]
    assert "row default 64.7 ±0.8" in decided.numbers and "(3 seeds)" in decided.numbers
    # A difference has the spread of the differences: none, if all seeds are as far apart.
    assert "row wiki_cc/ner 6.3 ±0.0" in found["domain-costs-entities-most"].numbers


def test_fewer_shared_layers_must_be_worse_in_every_language(tmp_path: Path) -> None:
    def scores(row: str, task: str, language: str) -> float:
        return printed(row, task, language) + 20 * ((row, language) == ("sep_l1_3", "zh"))

    decided = decide(fake_run(tmp_path, scores=scores))["fewer-shared-layers-are-worse"]
    assert decided.outcome == NOT_HELD and " in zh " in decided.numbers


def test_seeds_that_diverged_are_told(tmp_path: Path) -> None:
    lost = [("en-fr/sep_l1_6/nli", 1)]
    found = decide(fake_run(tmp_path, seeds=(0, 1), diverged=lost))
    told = "seed 1 of row sep_l1_6/nli diverged"
    assert found["fewer-shared-layers-are-worse"].numbers.endswith(told)
    assert "diverged" not in found["three-separate-layers-still-transfer"].numbers
    found = decide(
        fake_run(tmp_path / "other", seeds=(0, 1), diverged=[("en-fr/no_anchors/ner", 1)])
    )
    assert "seed 1 of row no_anchors diverged" in found["anchors-are-not-needed"].numbers


def test_a_row_that_diverged_with_every_setting_decides_nothing(tmp_path: Path) -> None:
    lost = [(f"{pair}/sep_l1_6/nli", 0) for pair in PAIRS]
    decided = decide(fake_run(tmp_path, diverged=lost))["fewer-shared-layers-are-worse"]
    assert decided.outcome == NOT_RUN
    assert decided.numbers == "diverged with every setting: row sep_l1_6/nli"

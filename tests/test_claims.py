"""The paper's numbers support every claim, others do not, and missing ones decide nothing."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fake_run import add_line, fake_run, replica

from xling_jax.experiments.fake_english import claims, published, report
from xling_jax.experiments.fake_english.claims import CLAIMS
from xling_jax.report.claims import (
    HELD,
    NOT_HELD,
    NOT_RUN,
    UNDECIDED,
    Check,
    Claim,
    Evidence,
    Measure,
    RowEvidence,
    checks_of,
    choices,
    metric,
    surplus,
)
from xling_jax.report.frame import Run, decoded, mean_of, measured, minus
from xling_jax.runs import results

BY_NAME = {claim.id: claim for claim in CLAIMS}
# The printed numbers; where tables repeat a row, the first one counts.
PAPER = Evidence({line.row: RowEvidence(line.cells) for line in reversed(published.LINES)})
BY_TABLES = [claim for claim in CLAIMS if claim.decide(PAPER).outcome != NOT_RUN]
POINTS = (5, 10, 20, 40, 60, 80, 95, 100)


def paper_but(row: str, metric: str, mean: float) -> Evidence:
    """The paper's means with another one in one place, all without a spread."""
    metrics = {n: {m: Measure(v.mean) for m, v in x.metrics.items()} for n, x in PAPER.rows.items()}
    metrics[row][metric] = Measure(mean)
    return Evidence({name: RowEvidence(own) for name, own in metrics.items()})


def outcomes(evidence: Evidence) -> dict[str, str]:
    return {claim.id: claim.decide(evidence).outcome for claim in CLAIMS}


def test_the_papers_numbers_support_every_claim_that_they_can_decide() -> None:
    for claim in BY_TABLES:
        assert claim.decide(PAPER).outcome == HELD, claim
    assert len(BY_TABLES) >= 18 and len(CLAIMS) - len(BY_TABLES) >= 8


def test_claims_are_named_and_worded_for_a_list() -> None:
    assert len(BY_NAME) == len(CLAIMS)
    for claim in CLAIMS:
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", claim.id)
        assert claim.statement.endswith(".") and claim.source.startswith(published.SOURCE)


@pytest.mark.parametrize("claim", BY_TABLES, ids=lambda claim: claim.id)
def test_a_claim_fails_with_any_of_its_checks(claim: Claim) -> None:
    for check in claim.checks:
        row, name = check.left.row, check.left.name
        metric = next(m for m in PAPER.rows[row].metrics if decoded(m).in_words == name)
        worse = 9e4 if check.sign in "<≤" else -9e4
        decided = claim.decide(paper_but(row, metric, worse))
        assert decided.outcome == NOT_HELD and check.in_words() in decided.numbers


def test_checks_are_read_as_they_are_written() -> None:
    bindings = choices("row=1 2; layer=0 deep")
    assert len(bindings) == 4 and bindings[1] == {"row": "1", "layer": "deep"}
    text = "retrieval_{layer}[{row}] ≥ 1/2 × retrieval_{layer}[0] - 0.1"
    text += "; own[{row}, a b] < 3; mu[7] > mu[0]"
    checks = checks_of(text, bindings, {"own": lambda row, more: metric(more, row)})
    assert [check.in_words() for check in checks] == [
        "row 1: retrieval at layer 0 ≥ 0.5 × row 0's - 0.1",
        "row 1: retrieval at the deeper layer ≥ 0.5 × row 0's - 0.1",
        "row 2: retrieval at layer 0 ≥ 0.5 × row 0's - 0.1",
        "row 2: retrieval at the deeper layer ≥ 0.5 × row 0's - 0.1",
        "row 1: a b < 3.00", "row 2: a b < 3.00", "row 7: mu > row 0's",
    ]  # fmt: skip
    (check,) = checks_of("mu[{row}] > mu[0]", [{"row": "a], ≥ {b}"}], {})
    assert check.left.row == "a], ≥ {b}"
    for wrong in ("mu is high", "mu[0] > high", "0.5 < mu[0]", "mu[0] > 2 × 3", "mu[0] > 3 - 1"):
        with pytest.raises(ValueError, match=f"'{re.escape(wrong)}' is no check: write it as"):
            checks_of(wrong, [{}], {})


def test_rows_that_are_all_alike_support_only_what_does_not_tell_them_apart() -> None:
    for row, expected in {
        "0": "original-is-multilingual alignment-is-easy layers-differ the-others-harm-little "
        "fit-is-kept inv-order-fits",
        "3": "layers-differ the-others-harm-little fit-is-kept inv-order-fits inv-order "
        "all-four-for-long",
        "18": "alignment-is-easy the-others-harm-little fit-is-kept inv-order inv-order-fits "
        "all-four-for-long",
    }.items():
        alike = outcomes(Evidence(dict.fromkeys(PAPER.rows, PAPER.rows[row])))
        held = {name for name, outcome in alike.items() if outcome == HELD}
        assert held == set(expected.split()), row


@pytest.mark.parametrize(
    ("name", "row", "metric", "within", "beyond"),
    [
        ("the-others-harm-little", "2", "mu", 0.61, 0.59),
        ("two-modifications", "5", "mu", 0.34, 0.36),
        ("three-modifications", "8", "mu", 0.19, 0.21),
        ("fit-is-kept", "8", "perplexity_train", 11.6, 11.8),
        ("overparam-retrieves", "15", "retrieval_deep", 0.96, 0.94),
        ("overparam-and-lang-pos", "1", "mu", 0.06, 0.05),
        ("inv-order-fits", "9", "perplexity_dev", 317.0, 318.0),
        ("no-parallel", "21", "mu", 0.06, 0.05),
        ("knn-replace", "30", "mu", 0.71, 0.70),
    ],
)
def test_thresholds_are_those_of_the_statements(
    name: str, row: str, metric: str, within: float, beyond: float
) -> None:
    for value, outcome in ((within, HELD), (beyond, NOT_HELD)):
        assert BY_NAME[name].decide(paper_but(row, metric, value)).outcome == outcome


def test_a_claim_is_not_run_without_any_of_its_rows() -> None:
    for claim in CLAIMS:
        for row in claim.rows:
            rest = {name: each for name, each in PAPER.rows.items() if name != row}
            decided = claim.decide(Evidence(rest))
            assert decided.outcome == NOT_RUN and decided.numbers.endswith(f"row {row}")


def stored(folder: Path, scales: Sequence[float], diverged: Sequence[str] = ()) -> Path:
    """A workdir with the paper's numbers, a seed for each scale of mu."""
    ended = []
    for row in published.ORDER:
        line = published.find(published.EXPERIMENT, row)
        for seed, scale in enumerate(scales):
            if line:
                found = {k.replace("_deep", "_3"): v.mean for k, v in line.cells.items()}
                found["mu"] *= scale
                at = 1 if f"{row} {seed}" in diverged else None
                ended.append(replica(row, seed, {} if at else found, diverged=at))
    results.write_results(folder / "results.json", ended)
    return folder


def of_run(workdir: Path) -> Evidence:
    return claims.of_run(Run(workdir))


def test_a_run_is_decided_by_its_means_and_shows_its_spread(tmp_path: Path) -> None:
    known = of_run(stored(tmp_path, (0.9, 1.1)))
    assert known.metric("0", "mu").by_seed == pytest.approx({0: 0.63, 1: 0.77})
    assert all(outcomes(known)[claim.id] == HELD for claim in BY_TABLES)
    numbers = BY_NAME["lang-pos-harms-most"].decide(known).numbers
    assert numbers == "mu: row 1 .30 ±.03, row 2 .66 ±.066, row 4 .68 ±.068 (2 seeds)"
    one = BY_NAME["knn-replace"].decide(of_run(stored(tmp_path, (1.0,))))
    assert one.numbers == "mu: row 30 .74, row 0 .70 (1 seed)"


@pytest.mark.parametrize(
    ("ours", "others", "outcome"),
    [
        # The difference of each pair of seeds has a standard error of 10.
        ((90, 100, 110), (115, 95, 105), UNDECIDED),
        ((115, 95, 105), (90, 100, 110), UNDECIDED),
        ((90, 100, 110), (130, 110, 120), NOT_HELD),
        ((130, 110, 120), (90, 100, 110), HELD),
        ((31, 51, 71), (30, 50, 70), HELD),  # the same in every seed, however they differ
        ((100,), (99,), HELD),
        # Without a pair: the standard error of the mean of three is 5.8.
        ((100, 110, 120), (105,), UNDECIDED),
        ((100, 110, 120), (104,), HELD),
        ((30, math.inf, 50), (41, 41, 41), UNDECIDED),
    ],
)
def test_a_difference_within_its_standard_error_decides_nothing(
    ours: tuple[float, ...], others: tuple[float, ...], outcome: str
) -> None:
    def row(values: tuple[float, ...]) -> RowEvidence:
        mean = statistics.fmean(x for x in values if math.isfinite(x))
        return RowEvidence({"mu": measured(dict(enumerate(values)), mean)})

    known = Evidence({"0": row(ours), "3": row(others), "8": row((0.0,))})
    better = Check(metric("mu", "0"), ">", metric("mu", "3"))
    assert Claim("", "", "", "", (better,)).decide(known).outcome == outcome
    failing = Check(metric("mu", "8"), ">", 1.0)
    assert Claim("", "", "", "", (better, failing)).decide(known).outcome == NOT_HELD


@pytest.mark.parametrize("value", [0.05, 0.1, 0.3, 0.95])
def test_seeds_that_agree_on_the_bound_decide_as_one(value: float) -> None:
    known = Evidence({"0": RowEvidence({"mu": measured(dict.fromkeys((0, 1, 2), value))})})
    for sign, outcome in zip("<≤>≥", (NOT_HELD, HELD, NOT_HELD, HELD), strict=True):
        check = Check(metric("mu", "0"), sign, value)
        assert Claim("", "", "", "", (check,)).decide(known).outcome == outcome


@pytest.mark.parametrize("sign", "<≤>≥")
def test_what_is_no_number_decides_nothing(sign: str) -> None:
    known = Evidence({"0": RowEvidence({"mu": measured({0: math.nan})}),
                      "3": RowEvidence({"mu": measured({0: 0.5})})})  # fmt: skip
    for sides in (("0", "3"), ("3", "0")):
        check = Check(metric("mu", sides[0]), sign, metric("mu", sides[1]))
        decided = Claim("", "", "", "", (check,)).decide(known)
        assert decided.outcome == UNDECIDED and "row 0 undefined" in decided.numbers


# With the same seeds, and without, and where the other side never gets there.
@pytest.mark.parametrize("others", [(60.0, 61.0), (60.0,), (math.inf, math.inf), (math.inf,)])
@pytest.mark.parametrize(
    ("ours", "mean", "outcome"),
    [
        ((9.0, math.inf), 40.0, UNDECIDED),
        ((9.0, math.inf), math.inf, UNDECIDED),
        ((math.inf, math.inf), math.inf, NOT_HELD),
    ],
)
def test_what_some_seeds_never_reach_is_undecided_whatever_the_mean_does(
    ours: tuple[float, ...], mean: float, outcome: str, others: tuple[float, ...]
) -> None:
    known = Evidence({"30": RowEvidence({"mu": measured(dict(enumerate(ours)), mean)}),
                      "0": RowEvidence({"mu": measured(dict(enumerate(others)))})})  # fmt: skip
    earlier = Check(metric("mu", "30"), "<", metric("mu", "0"))
    assert Claim("", "", "", "", (earlier,)).decide(known).outcome == outcome


@pytest.mark.parametrize(
    ("ours", "others"),
    [
        ({0: 0.30, 1: 0.70, 2: 0.51}, {3: 0.30, 4: 0.70, 5: 0.50}),
        ({0: 0.51, 1: 0.30, 2: 0.70}, {0: 0.50, 4: 0.70, 5: 0.30}),
        # Both means differ by .16, and the seeds that both rows have by .01 the other way.
        ({0: 0.50, 1: 0.70}, {0: 0.51, 1: 0.71, 2: 0.10}),
    ],
)
def test_rows_of_different_seeds_have_the_errors_of_both(
    ours: dict[int, float], others: dict[int, float]
) -> None:
    known = Evidence({"0": RowEvidence({"mu": measured(ours)}),
                      "3": RowEvidence({"mu": measured(others)})})  # fmt: skip
    first, second = metric("mu", "0"), metric("mu", "3")
    gain = surplus("gain", first, second, "0")
    for check in (Check(first, ">", second), Check(gain, ">", 0.0)):
        assert Claim("", "", "", "", (check,)).decide(known).outcome == UNDECIDED


def test_means_over_different_seeds_are_compared_by_those_that_both_have() -> None:
    def row(shift: float, *spreads: float) -> RowEvidence:
        of_pair = {seed: 0.5 + shift + spread for seed, spread in enumerate(spreads)}
        return RowEvidence({"mu": mean_of([measured(of_pair), measured({0: 0.3 + shift})])})

    spreads = 0.1, -0.1, 0.0
    alike = Evidence({"0": row(0.01, *spreads), "3": row(0.0, *spreads)})
    opposite = Evidence({"0": row(0.03, *spreads), "3": row(0.0, *spreads[1::-1], 0.0)})
    check = Check(metric("mu", "0"), ">", metric("mu", "3"))
    decided = [Claim("", "", "", "", (check,)).decide(known) for known in (alike, opposite)]
    assert [each.outcome for each in decided] == [HELD, UNDECIDED]
    gain = minus(*(alike.metric(name, "mu") for name in "03")).times(2)
    assert gain.mean == pytest.approx(0.02) and gain.squared_error == pytest.approx(0, abs=1e-12)


def test_diverged_seeds_are_left_out_and_named(tmp_path: Path) -> None:
    known = of_run(stored(tmp_path, (0.9, 1.0), ("30 0", "3 0", "3 1")))
    decided = BY_NAME["knn-replace"].decide(known)
    told = "mu: row 30 .74, row 0 .665 ±.035 (1 to 2 seeds); seed 0 of row 30 diverged"
    assert (decided.outcome, decided.numbers) == (HELD, told)
    decided = BY_NAME["inv-order"].decide(known)
    assert (decided.outcome, decided.numbers) == (NOT_RUN, "diverged with every seed: row 3")


@pytest.mark.parametrize(("of_pair", "outcome"), [(0.01, HELD), (0.06, NOT_HELD), (None, NOT_RUN)])
def test_of_several_languages_inverted_order_is_about_the_inverted_one(
    tmp_path: Path, of_pair: float | None, outcome: str
) -> None:
    config = {"corpora": {"languages": ["en", "fake", "fake2"]}}
    described = {"experiment": "fake_english", "config": config}
    (tmp_path / "config.json").write_text(json.dumps(described))
    found = {"mu": 0.2, "mu_en-fake2": 0.6}
    found |= {} if of_pair is None else {"mu_en-fake": of_pair}
    ended = [replica(row, 0, found) for row in ("0", "3", "9")]
    results.write_results(tmp_path / "results.json", ended)
    known = of_run(tmp_path)
    assert BY_NAME["inv-order"].decide(known).outcome == outcome
    assert known.metric("0", "mu").mean == 0.2  # of rows without it, over all pairs
    notes = {row: " ".join(report.texts(Run(tmp_path), [row])["Notes"]) for row in ("0", "3")}
    assert "inverts fake alone" in notes["3"] and "inverts" not in notes["0"]


def test_a_run_that_still_goes_decides_nothing(tmp_path: Path) -> None:
    original = BY_NAME["original-is-multilingual"]
    known = of_run(fake_run(tmp_path / "begun", share=0.4))
    assert set(outcomes(known).values()) == {NOT_RUN}
    assert original.decide(known).numbers == "not ended (0 of 2 seeds have): row 0"
    workdir = fake_run(tmp_path / "ended")
    assert original.decide(of_run(workdir)).outcome == HELD
    config = json.loads((workdir / "config.json").read_text())
    config["groups"].append([["0", 43]])
    (workdir / "config.json").write_text(json.dumps(config))
    assert original.decide(of_run(workdir)).numbers == "not ended (2 of 3 seeds have): row 0"


def test_the_claims_are_about_one_experiment(tmp_path: Path) -> None:
    stored(tmp_path, (1.0,))
    ended = results.read_results(tmp_path / "results.json")
    ended = [replace(replica, experiment="bilingual") for replica in ended]
    results.write_results(tmp_path / "results.json", ended)
    assert claims.of(Run(tmp_path)) == []


def test_a_number_that_overflowed_decides_nothing(tmp_path: Path) -> None:
    results.write_results(
        tmp_path / "results.json",
        [replica(row, 0, {"mu": 0.0, "perplexity_train": np.inf}) for row in ("0", "17")],
    )
    decided = BY_NAME["all-four"].decide(of_run(tmp_path))
    assert (decided.outcome, decided.numbers) == (NOT_RUN, "no finite train perplexity: row 17")


Given = Mapping[str, Mapping[str, Sequence[float]]]  # row, metric, values at `POINTS`


def trained(folder: Path, by_row: Given, parts: Mapping[str, float] | None = None) -> Evidence:
    """A run of rows with the given curves, two seeds about each mean; some for a part of it."""
    ended = [replica("18", seed, {"mu": 0.0, "perplexity_train": 4000.0}) for seed in (0, 1)]
    for row, curves in by_row.items():
        for seed in (0, 1):
            steps = [round(step * (parts or {}).get(row, 1)) for step in POINTS]
            for n, step in enumerate(steps):
                found = {k: v[n] * (0.99 + 0.02 * seed) for k, v in curves.items()}
                at = {"row": row, "seed": seed, "step": step}
                add_line(folder, kind="evaluation", **at, metrics=found)
            ended.append(replica(row, seed, found, steps[-1]))
    results.write_results(folder / "results.json", ended)
    return of_run(folder)


EARLY = (0.1, 0.3, 0.5, 0.6, 0.62, 0.64, 0.66, 0.66)
LATE = (0.0, 0.0, 0.05, 0.1, 0.2, 0.5, 0.6, 0.66)
FALLING = (700, 500, 350, 300, 280, 260, 250, 249)
RISING = (700, 372, 254, 274, 302, 310, 320, 330)
QUICK = (100, 40, 20, 14, 12, 11, 10, 10)
SLOW = (3000, 2500, 1500, 700, 300, 100, 20, 10)
NOTHING = (0.0,) * 8


@pytest.mark.parametrize(
    ("name", "for_it", "against"),
    [
        ("longer-is-more", {"0": {"mu": LATE}}, {"0": {"mu": EARLY[::-1]}}),
        ("multilinguality-is-late",
         {"0": {"mu": LATE, "perplexity_train": QUICK}},
         {"0": {"mu": EARLY, "perplexity_train": SLOW}}),
        ("small-before-overfitting",
         {"0": {"mu": LATE, "perplexity_dev": FALLING}},
         {"0": {"mu": LATE, "perplexity_dev": RISING}}),
        ("overparam-when-overfitting",
         {"15": {"mu": LATE, "perplexity_dev": RISING}},
         {"15": {"mu": EARLY, "perplexity_dev": RISING}}),
        ("small-is-earlier",
         {"0": {"mu": EARLY}, "15": {"mu": LATE}}, {"0": {"mu": LATE}, "15": {"mu": EARLY}}),
        ("knn-replace-is-earlier",
         {"0": {"mu": LATE}, "30": {"mu": EARLY}}, {"0": {"mu": EARLY}, "30": {"mu": NOTHING}}),
    ],
)  # fmt: skip
def test_curves_decide_both_ways(tmp_path: Path, name: str, for_it: Given, against: Given) -> None:
    flat = {row: {**curves, "mu": NOTHING} for row, curves in for_it.items()}
    cases = (for_it, HELD), (against, NOT_HELD), (flat, NOT_HELD)
    for n, (given, outcome) in enumerate(cases):
        (tmp_path / str(n)).mkdir()
        decided = BY_NAME[name].decide(trained(tmp_path / str(n), given))
        assert decided.outcome == outcome and "(2 seeds)" in decided.numbers, decided


def test_curves_are_read_seed_by_seed(tmp_path: Path) -> None:
    """Both seeds have most of their mu at their lowest dev perplexity, but the mean of their curves
    is lowest where one of them still has little."""
    given = {
        0: {"mu": (0.1, 0.5, 0.6, 0.7, 0.8, 0.8, 0.8, 0.8),
            "perplexity_dev": (300, 200, 400, 600, 800, 900, 900, 900)},
        1: {"mu": (0.0, 0.05, 0.2, 0.4, 0.5, 0.6, 0.6, 0.6),
            "perplexity_dev": (300, 280, 270, 260, 265, 270, 270, 270)},
    }  # fmt: skip
    for seed, curves in given.items():
        for n, step in enumerate(POINTS):
            found = {name: float(values[n]) for name, values in curves.items()}
            at = {"row": "0", "seed": seed, "step": step}
            add_line(tmp_path, kind="evaluation", **at, metrics=found)
    ended = [replica("0", seed, {"mu": of["mu"][-1]}, POINTS[-1]) for seed, of in given.items()]
    results.write_results(tmp_path / "results.json", ended)
    decided = BY_NAME["small-before-overfitting"].decide(of_run(tmp_path))
    assert decided.outcome == HELD and "row 0 .646 ±.021 (2 seeds)" in decided.numbers, decided


def test_a_level_is_reached_on_straight_lines_between_evaluations(tmp_path: Path) -> None:
    known = trained(tmp_path, {"0": {"mu": LATE}, "15": {"mu": (0.6,) * 8}, "30": {"mu": NOTHING}})
    numbers = BY_NAME["small-is-earlier"].decide(known).numbers
    # Half of .6 lies between .2 at 60 and .5 at 80, and halfway up to the first 5.
    assert "updates until half of the final mu of row 15: row 0 67 ±0; " in numbers
    assert "updates until half of its final mu: row 15 2 ±0 (2 seeds)" in numbers
    numbers = BY_NAME["knn-replace-is-earlier"].decide(known).numbers
    assert "updates until half of the final mu of row 0: row 30 never" in numbers


def test_rows_that_trained_for_different_times_are_compared_by_updates(tmp_path: Path) -> None:
    """Row 15 reaches half of its mu late in its training, but after fewer updates."""
    given = {"0": {"mu": EARLY}, "15": {"mu": LATE}}
    decided = BY_NAME["small-is-earlier"].decide(trained(tmp_path, given, {"15": 0.1}))
    assert decided.outcome == NOT_HELD, decided


def test_mu_is_0_before_the_first_update(tmp_path: Path) -> None:
    """Of a curve that begins late, half of the first value is reached half-way to it."""
    results.write_results(tmp_path / "results.json", [replica("0", 0, {"mu": 0.6}, 100)])
    for step, mu in ((40, 0.2), (60, 0.4), (80, 0.5), (100, 0.6)):
        add_line(tmp_path, kind="evaluation", row="0", seed=0, step=step, metrics={"mu": mu})
    assert BY_NAME["longer-is-more"].decide(of_run(tmp_path)).outcome == HELD


def test_a_curve_of_few_evaluations_decides_nothing(tmp_path: Path) -> None:
    results.write_results(tmp_path / "results.json", [replica("0", 0, {"mu": 0.5}, 100)])
    for step in (5, 50, 100):
        at = {"row": "0", "seed": 0, "step": step}
        add_line(tmp_path, kind="evaluation", **at, metrics={"mu": 0.01 * step})
    decided = BY_NAME["longer-is-more"].decide(of_run(tmp_path))
    assert decided.outcome == NOT_RUN
    assert decided.numbers == "no curve of mu with 4 evaluations: row 0"


def with_positions(
    folder: Path, row: str, alike: int, size: int = 128, offset: int | None = None
) -> Evidence:
    """A run of one row; the first `alike` positions are similar in both languages."""
    random = np.random.default_rng(0)
    first, second = random.normal(size=(2, size, 64))
    second[:alike] = first[:alike] + 0.3 * random.normal(size=(alike, 64))
    results.write_results(folder / "results.json", [replica(row, 0, {"mu": 0.3})])
    arrays = results.Arrays(
        np.zeros((2, 4)), np.array([0, 1]), np.array(["a", "::a"]), None,
        np.concatenate([first, second]), size if offset is None else offset, (),
    )  # fmt: skip
    results.write_arrays(folder / "arrays" / f"row{row}_seed0.npz", arrays)
    return of_run(folder)


@pytest.mark.parametrize(
    ("name", "row", "alike", "other"),
    [
        ("positions-match", "1", 80, 0),
        ("late-positions-do-not", "1", 80, 128),
        ("inverted-positions-do-not", "9", 0, 80),
    ],
)
def test_positions_decide_both_ways(
    tmp_path: Path, name: str, row: str, alike: int, other: int
) -> None:
    decided = BY_NAME[name].decide(with_positions(tmp_path, row, alike))
    assert decided.outcome == HELD and decided.numbers.endswith("(1 seed)"), decided
    assert BY_NAME[name].decide(with_positions(tmp_path, row, other)).outcome == NOT_HELD


def test_positions_that_are_not_there_decide_nothing(tmp_path: Path) -> None:
    claim = BY_NAME["positions-match"]
    for known in (
        with_positions(tmp_path, "1", 8, size=16),
        with_positions(tmp_path, "1", 8, offset=0),
        with_positions(tmp_path, "1", 8, size=20, offset=128),
    ):
        decided = claim.decide(known)
        assert decided.outcome == NOT_RUN and "positions for each language" in decided.numbers
    path = tmp_path / "arrays" / "row1_seed0.npz"
    path.write_bytes(b"broken")
    assert "row1_seed0.npz: not an npz file" in claim.decide(of_run(tmp_path)).numbers
    path.unlink()
    assert claim.decide(of_run(tmp_path)).numbers == "no embeddings stored: row 1"

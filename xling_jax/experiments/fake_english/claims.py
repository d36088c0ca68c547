"""What Dufter & Schütze 2020 find on Fake-English, as claims.

Each statement says what is tested, so that a reader can recompute the verdict from a table or a
figure; where the text has no threshold ("drastically", "almost"), it is ours. Mu is the mean of
retrieval and translation at both layers. Curves count mu as 0 before the first update.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from xling_jax.experiments.fake_english import published
from xling_jax.experiments.fake_english.report_embeddings import position_similarities
from xling_jax.report import cells, rows
from xling_jax.report.claims import (
    ON_CURVES,
    ON_POSITIONS,
    Check,
    Claim,
    Curves,
    Decided,
    Evidence,
    Measure,
    Missing,
    Quantity,
    RowEvidence,
    in_words,
    measured,
    metric,
)
from xling_jax.report.rows import Curve, Run
from xling_jax.runs.results import array_files, read_arrays

EVALUATIONS = 4  # a curve with fewer decides nothing
NONE = 0.05  # a mu up to this is "almost no multilinguality"


def _on_curves(
    name: str, row: str, metrics: Sequence[str], number: Callable[[Evidence, Curves], float],
    *others: str,
) -> Quantity:  # fmt: skip
    """A number of a row's mean curves; its spread is that of the same number of each seed's."""

    def usable(curves: Curves) -> bool:
        return all(m in curves and len(curves[m].steps) >= EVALUATIONS for m in metrics)

    def read(evidence: Evidence) -> Measure:
        found = evidence.usable(row)[0]
        if not usable(found.curves):
            wanted = " and ".join(map(in_words, metrics))
            raise Missing(f"no curve of {wanted} with {EVALUATIONS} evaluations: row {row}")
        seeds = {s: number(evidence, c) for s, c in found.seed_curves.items() if usable(c)}
        return measured(number(evidence, found.curves), seeds)

    return Quantity(name, row, read, ON_CURVES, others)


def _reached(curve: Curve, target: float) -> float:
    """The step at which straight lines from 0 through the evaluations first reach a value."""
    steps, values = [0, *curve.steps], [0.0, *curve.mean]
    for n in range(1, len(steps)):
        if values[n] >= target > values[n - 1]:
            part = (target - values[n - 1]) / (values[n] - values[n - 1])
            return steps[n - 1] + part * (steps[n] - steps[n - 1])
    return math.inf if target > 0 else 0.0


def half_way(row: str, of: str = "") -> Quantity:
    """The share of training at which a row's mu reaches half of its final mu, or of row `of`'s."""

    def number(evidence: Evidence, curves: Curves) -> float:
        mu = curves["mu"]
        final = evidence.metric(of, "mu").mean if of else mu.mean[-1]
        return _reached(mu, final / 2) / mu.steps[-1]

    whose = f"the final mu of row {of}" if of else "its final mu"
    others = (of,) if of else ()
    return _on_curves(f"share of training until half of {whose}", row, ("mu",), number, *others)


def mu_after(share: float, row: str) -> Quantity:
    """Mu after a share of training, on a straight line between evaluations."""

    def number(_: Evidence, curves: Curves) -> float:
        mu = curves["mu"]
        return float(np.interp(share * mu.steps[-1], mu.steps, mu.mean))

    return _on_curves(f"mu after {100 * share:g} % of training", row, ("mu",), number)


def mu_at_best_dev(row: str) -> Quantity:
    """The part of its final mu that a row has at the evaluation with the lowest dev perplexity."""

    def number(_: Evidence, curves: Curves) -> float:
        dev, mu = curves["perplexity_dev"], curves["mu"]
        best = float(np.interp(dev.steps[int(np.argmin(dev.mean))], mu.steps, mu.mean))
        return best / mu.mean[-1] if mu.mean[-1] > 0 else math.nan

    name = "part of its final mu at its lowest dev perplexity"
    return _on_curves(name, row, ("mu", "perplexity_dev"), number)


def fit_at_half_way(row: str, untrained: str) -> Quantity:
    """The part of the fall of log train perplexity that is over when mu is half of its last.

    The fall is from the untrained row's perplexity to the row's last.
    """

    def number(evidence: Evidence, curves: Curves) -> float:
        mu, fit = curves["mu"], curves["perplexity_train"]
        start = math.log(evidence.metric(untrained, "perplexity_train").mean)
        logs = [start, *np.log(fit.mean)]
        now = float(np.interp(_reached(mu, mu.mean[-1] / 2), [0, *fit.steps], logs))
        return (start - now) / (start - logs[-1]) if start > logs[-1] else math.nan

    name = "part of the fall of log train perplexity before half of its final mu"
    return _on_curves(name, row, ("mu", "perplexity_train"), number, untrained)


def matching_positions(first: int, last: int, row: str) -> Quantity:
    """The share of the first language's positions i in a range whose most similar one, among all
    of the second language's, is i - 1, i or i + 1."""

    def read(evidence: Evidence) -> Measure:
        seed, path = evidence.arrays.get(row, (-1, None))
        if path is None or seed in evidence.usable(row)[0].diverged:
            raise Missing(f"no embeddings stored: row {row}")
        try:
            arrays = read_arrays(path, evidence.identity)
        except ValueError as error:
            raise Missing(str(error)) from error
        size = arrays.position_offset
        if size <= last or len(arrays.position_embeddings) < 2 * size:
            raise Missing(f"no {last + 1} positions for each language: row {row}")
        cosines = position_similarities(arrays)[first : last + 1, size : 2 * size]
        near = np.abs(cosines.argmax(axis=1) - np.arange(first, last + 1)) <= 1
        return measured(float(near.mean()), {seed: float(near.mean())})

    return Quantity(f"share of positions {first} to {last} that match", row, read, ON_POSITIONS)


def _claim(name: str, source: str, scope: str, statement: str, *checks: Check) -> Claim:
    return Claim(name, f"{published.SOURCE}, {source}", scope, statement, checks)


mu = partial(metric, "mu")
train, dev = partial(metric, "perplexity_train"), partial(metric, "perplexity_dev")
LAYERS = ("0", "deep")

# fmt: off
CLAIMS = (
    _claim("original-is-multilingual", "§3.1, Table 1", "Row 0, after training",
        "The original model is multilingual: mu of row 0 is at least .5.",
        Check(mu("0"), "≥", 0.5)),
    _claim("alignment-is-easy", "§2.2.1 and §3.1, Table 1", "Row 0, both layers, after training",
        "Word alignment is easy with shared positions: F1 of row 0 is at least .95 at both layers.",
        *(Check(metric(f"alignment_f1_{n}", "0"), "≥", 0.95) for n in LAYERS)),
    _claim("layers-differ", "§3.1, Table 1", "Row 0, both layers, after training",
        "Retrieval of row 0 works better at the deeper layer than at layer 0, and word translation "
        "better at layer 0.",
        Check(metric("retrieval_deep", "0"), ">", metric("retrieval_0", "0")),
        Check(metric("translation_0", "0"), ">", metric("translation_deep", "0"))),
    _claim("untrained-is-poor", "§3.1, Table 1", "Rows 18, 19, both layers, before training",
        "Untrained models are poor, but shared positions align words: mu of rows 18 and 19 is at "
        "most .05, and F1 at both layers at least .8 in row 18, at most .2 in row 19 (lang-pos).",
        *(Check(mu(row), "≤", NONE) for row in ("18", "19")),
        *(Check(metric(f"alignment_f1_{n}", "18"), "≥", 0.8) for n in LAYERS),
        *(Check(metric(f"alignment_f1_{n}", "19"), "≤", 0.2) for n in LAYERS)),
    _claim("each-modification-harms", "§3.1, Table 1", "Rows 0, 1, 2, 4, after training",
        "Each of lang-pos (1), shift-special (2) and no-random (4) alone lowers mu below row 0's.",
        *(Check(mu(row), "<", mu("0")) for row in ("1", "2", "4"))),
    _claim("lang-pos-harms-most", "§3.1, Table 1", "Rows 1, 2, 4, after training",
        "Of the three modifications alone, lang-pos harms most: mu of row 1 is below 2's and 4's.",
        *(Check(mu("1"), "<", mu(row)) for row in ("2", "4"))),
    _claim("the-others-harm-little", "§3.1, Table 1", "Rows 0, 2, 4, after training",
        "shift-special (2) or no-random (4) alone lowers mu by at most .1 from row 0's.",
        *(Check(mu(row), "≥", mu("0"), plus=-0.1) for row in ("2", "4"))),
    _claim("two-modifications", "§3.1, Table 1", "Rows 0, 5, 6, 7, after training",
        "With two modifications multilinguality stays high only without lang-pos: mu of row 7 is "
        "at least half of row 0's, mu of rows 5 and 6 less than half.",
        Check(mu("7"), "≥", mu("0"), 0.5),
        *(Check(mu(row), "<", mu("0"), 0.5) for row in ("5", "6"))),
    _claim("three-modifications", "§3.1, Table 1, Figure 1", "Rows 0, 5, 6, 7, 8, after training",
        "All three modifications (8) lower mu drastically: below a third of row 0's, and below "
        "that of any two of them (5, 6, 7).",
        Check(mu("8"), "<", mu("0"), 1 / 3),
        *(Check(mu("8"), "<", mu(row)) for row in ("5", "6", "7"))),
    _claim("fit-is-kept", "§3.1, Table 1", "Rows 0, 1, 2, 4 to 8, after training",
        "The modifications do not harm the fit: train and dev perplexities of rows 1, 2 and 4 to 8 "
        "are at most 1.3 times row 0's.",
        *(Check(p(row), "≤", p("0"), 1.3) for p in (train, dev) for row in "1245678")),
    _claim("overparam-lowers-mu", "§3.1, Table 1", "Rows 0, 15, after training",
        "The overparameterised model is less multilingual: mu of row 15 is below row 0's.",
        Check(mu("15"), "<", mu("0"))),
    _claim("overparam-retrieves", "§3.1, Table 1", "Rows 0, 15, both layers, after training",
        "The overparameterised model (15) translates words worse than row 0 at both layers, and "
        "retrieves better: above row 0 at layer 0 and, as the paper's are equal there, at most .02 "
        "below it at the deeper layer.",
        *(Check(metric(name, "15"), "<", metric(name, "0"))
          for name in ("translation_0", "translation_deep")),
        Check(metric("retrieval_0", "15"), ">", metric("retrieval_0", "0")),
        Check(metric("retrieval_deep", "15"), "≥", metric("retrieval_deep", "0"), plus=-0.02)),
    _claim("overparam-overfits", "§3.4, Table 1", "Rows 0, 15, after training",
        "The overparameterised model overfits: train perplexity of row 15 is below row 0's, dev "
        "perplexity above.",
        Check(train("15"), "<", train("0")), Check(dev("15"), ">", dev("0"))),
    _claim("overparam-and-lang-pos", "§3.1, Table 1", "Rows 1, 15, 16, after training",
        "lang-pos with overparam (16) leaves a mu of at most .05, though each alone (1, 15) leaves "
        "more than that.",
        Check(mu("16"), "≤", NONE), *(Check(mu(row), ">", NONE) for row in ("1", "15"))),
    _claim("all-four", "§3.1, Table 1, Figure 1", "Rows 0, 17, after training",
        "The three modifications with overparam leave no multilinguality in a model that fits "
        "well: mu of row 17 is at most .05, its train perplexity below row 0's.",
        Check(mu("17"), "≤", NONE), Check(train("17"), "<", train("0"))),
    _claim("all-four-for-long", "B.1, Table 10", "Row 17-250, after 250 epochs",
        "Long training does not make that model multilingual: mu of row 17-250 is at most .05.",
        Check(mu("17-250"), "≤", NONE)),
    _claim("inv-order", "§3.2, Table 1, Figure 1", "Rows 3, 9, after training",
        "Inverted word order breaks multilinguality, with the three modifications (9) or without "
        "(3): mu is at most .05.",
        *(Check(mu(row), "≤", NONE) for row in ("3", "9"))),
    _claim("inv-order-fits", "§3.2, Table 1", "Rows 0, 3, 8, 9, after training",
        "Inverted word order hardly changes the fit: train and dev perplexities of row 3 are at "
        "most 1.25 times row 0's, those of row 9 at most 1.25 times row 8's.",
        *(Check(p(row), "≤", p(other), 1.25)
          for p in (train, dev) for row, other in (("3", "0"), ("9", "8")))),
    _claim("no-parallel", "§3.3, Table 2", "Rows 0, 21, after training",
        "Text that is not parallel lowers mu, but not to nothing: row 21 is below row 0 and above "
        ".05.",
        Check(mu("21"), "<", mu("0")), Check(mu("21"), ">", NONE)),
    _claim("no-parallel-and-lang-pos", "§3.3, Table 2", "Rows 21, 21b, after training",
        "lang-pos lowers mu on text that is not parallel too: row 21b is below row 21.",
        Check(mu("21b"), "<", mu("21"))),
    _claim("no-parallel-fits-worse", "§3.3, Table 2", "Rows 0, 21, 21b, after training",
        "Without parallel text models fit and generalise worse: train and dev perplexities of rows "
        "21 and 21b are above row 0's.",
        *(Check(p(row), ">", p("0")) for p in (train, dev) for row in ("21", "21b"))),
    _claim("knn-replace", "§4, Table 1", "Rows 0, 30, after training",
        "knn-replace outperforms the original model: mu of row 30 is above row 0's.",
        Check(mu("30"), ">", mu("0"))),
    _claim("knn-replace-retrieves", "Table 1", "Rows 0, 30, layer 0, after training",
        "With knn-replace retrieval at layer 0 is better: row 30 is above row 0.",
        Check(metric("retrieval_0", "30"), ">", metric("retrieval_0", "0"))),
    _claim("longer-is-more", "Figure 6", "Row 0, during training",
        "The longer a model trains, the more multilingual it gets: mu of row 0 is higher after "
        "40 % of the training than after 20 %, and at the end than after 40 %.",
        Check(mu_after(0.2, "0"), "<", mu_after(0.4, "0")),
        Check(mu_after(0.4, "0"), "<", mu_after(1.0, "0"))),
    _claim("multilinguality-is-late", "§3.4, Figure 6", "Rows 0 and 18, during training",
        "Multilinguality comes late, when the fit is almost flat: row 0 ends with a mu above .05, "
        "and when half of it is reached, log train perplexity has made at least 80 % of its way "
        "from the untrained model's (18) to its last.",
        Check(mu("0"), ">", NONE), Check(fit_at_half_way("0", "18"), "≥", 0.8)),
    _claim("small-before-overfitting", "§3.4, Figure 6", "Row 0, during training",
        "The small model becomes multilingual while dev perplexity still falls: row 0 ends with a "
        "mu above .05, and has at least half of it at its lowest dev perplexity.",
        Check(mu("0"), ">", NONE), Check(mu_at_best_dev("0"), "≥", 0.5)),
    _claim("overparam-when-overfitting", "§3.4, Figure 6", "Row 15, during training",
        "Most of the overparameterised model's multilinguality comes once it overfits: row 15 ends "
        "with a mu above .05, and has less than half of it at its lowest dev perplexity.",
        Check(mu("15"), ">", NONE), Check(mu_at_best_dev("15"), "<", 0.5)),
    _claim("small-is-earlier", "§3.4, Figure 6", "Rows 0 and 15, during training",
        "The small model becomes multilingual earlier: rows 0 and 15 end with a mu above .05, and "
        "row 0 reaches half of its own after a smaller share of the training than row 15.",
        *(Check(mu(row), ">", NONE) for row in ("0", "15")),
        Check(half_way("0"), "<", half_way("15"))),
    _claim("knn-replace-is-earlier", "§4, Figure 7", "Rows 0 and 30, during training",
        "With knn-replace multilinguality comes earlier: row 0 ends with a mu above .05, and row "
        "30 reaches half of that after a smaller share of the training than row 0.",
        Check(mu("0"), ">", NONE), Check(half_way("30", of="0"), "<", half_way("0"))),
    _claim("positions-match", "§3.2, Figures 5 and 8", "Row 1, one seed, after training",
        "Each language's own positions become alike: for at least half of row 1's English "
        "positions 1 to 16, the most similar of all Fake-English positions is the same one or one "
        "beside it (they match).",
        Check(matching_positions(1, 16, "1"), "≥", 0.5)),
    _claim("late-positions-do-not", "§3.2, Figures 5 and 8", "Row 1, one seed, after training",
        "Late positions, which sentences rarely reach, stay apart: of row 1's English positions "
        "90 to 127, at most a fifth match.",
        Check(matching_positions(90, 127, "1"), "≤", 0.2)),
    _claim("inverted-positions-do-not", "§3.2, Figures 5 and 8", "Row 9, one seed, after training",
        "With inverted word order there is no diagonal: of row 9's English positions 1 to 16, at "
        "most a fifth match.",
        Check(matching_positions(1, 16, "9"), "≤", 0.2)),
)
# fmt: on


def decide(evidence: Evidence) -> list[Decided]:
    """Every claim's verdict, always in the same order."""
    return [claim.decide(evidence) for claim in CLAIMS]


def of(run: Run) -> list[Decided]:
    """Every claim with its verdict on a run; none for a run of another experiment."""
    return decide(of_run(run)) if run.experiment == published.EXPERIMENT else []


def of_paper() -> Evidence:
    """The printed numbers; five seeds where the table prints standard deviations."""
    found = {}
    for row in published.ORDER:
        if line := published.find(published.EXPERIMENT, row):
            with_sd = any(value.sd is not None for value in line.metrics.values())
            seeds = len(published.SEEDS) if with_sd else None
            values = {name: Measure(*value, seeds) for name, value in line.metrics.items()}
            found[row] = RowEvidence(_generic(values))
    return Evidence(found, elsewhere="in none of the paper's tables", printed=True)


def of_run(run: Run) -> Evidence:
    """A run's rows that have ended; one with a seed still to come decides nothing."""
    if run.experiment != published.EXPERIMENT:
        return Evidence({}, elsewhere=f"not a run of {published.EXPERIMENT}")
    found, unusable = {}, {}
    for name in run.row_names():
        planned = {seed for row, seed in run.replicas_planned() if row == name}
        ended = {replica.seed for replica in run.replicas if replica.row == name}
        row = rows.read_row(run, name)
        if planned - ended or not ended:
            unusable[name] = f"not ended ({len(ended)} of {len(planned)} seeds have)"
        elif not row.seeds:
            unusable[name] = "diverged with every seed"
        else:
            found[name] = _row_evidence(run, row)
    arrays = array_files(run.workdir / "arrays")
    return Evidence(found, unusable, arrays=arrays, identity=run.identity)


def _row_evidence(run: Run, row: rows.Row) -> RowEvidence:
    good = {r.seed: r.metrics for r in run.replicas if r.row == row.row and r.seed in row.seeds}
    metrics = {
        name: measured(summary.mean, {s: m[name] for s, m in good.items() if name in m})
        for name, summary in row.metrics.items()
    }
    records = run.metrics.evaluations
    curves = {s: rows.curves(records, row.row, {*row.diverged, *good} - {s}) for s in good}
    mean = rows.curves(records, row.row, row.diverged)
    by_seed = {seed: _generic(each) for seed, each in curves.items()}
    return RowEvidence(_generic(metrics), _generic(mean), by_seed, tuple(sorted(row.diverged)))


def _generic(values: Mapping[str, Any]) -> dict[str, Any]:
    """Names with `deep` in place of the deeper layer's number."""
    end = re.compile(f"_{rows.deep_layer(values)}$")
    return {end.sub(f"_{cells.DEEP}", name): value for name, value in values.items()}

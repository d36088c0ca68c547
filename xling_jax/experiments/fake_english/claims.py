"""What Dufter & Schütze 2020 find on Fake-English, as claims.

Each statement in `claims.csv` says what is tested, so that a reader can recompute the verdict from
a table or a figure; where the text has no threshold ("drastically", "almost"), it is ours. Mu is
the mean of retrieval and translation at two layers. Curves count mu as 0 before the first update.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from xling_jax.experiments.fake_english import published
from xling_jax.experiments.fake_english.figures import position_similarities
from xling_jax.report import claims
from xling_jax.report.claims import Curves, Decided, Evidence, Missing, Quantity, RowEvidence
from xling_jax.report.frame import Curve, Measure, Run, decoded, measured, named_deep
from xling_jax.report.table import Format
from xling_jax.runs.results import array_files, read_arrays

EVALUATIONS = 4  # a curve with fewer decides nothing


def _on_curves(
    name: str, row: str, metrics: Sequence[str], number: Callable[[Evidence, Curves], float],
    *others: str, shown: Format = claims.score,
) -> Quantity:  # fmt: skip
    """A number read from each seed's curves of a row, or from its only curves where seeds are not
    known."""

    def usable(curves: Curves) -> bool:
        return all(m in curves and len(curves[m].steps) >= EVALUATIONS for m in metrics)

    def read(evidence: Evidence) -> Measure:
        found = evidence.usable(row)[0]
        if not usable(found.curves):
            wanted = " and ".join(decoded(metric).in_words for metric in metrics)
            raise Missing(f"no curve of {wanted} with {EVALUATIONS} evaluations: row {row}")
        seeds = {s: number(evidence, c) for s, c in found.seed_curves.items() if usable(c)}
        return measured(seeds) if seeds else measured({}, number(evidence, found.curves))

    return Quantity(name, row, read, others, shown)


def _mu_at(curves: Curves, step: float) -> float:
    """Mu at a step, interpolated linearly between evaluations."""
    return float(np.interp(step, [0, *curves["mu"].steps], [0.0, *curves["mu"].mean]))


def _reached(curve: Curve, target: float) -> float:
    """The step at which a curve, interpolated linearly from 0 at step 0, first reaches a value;
    infinity if it never does."""
    steps, values = [0, *curve.steps], [0.0, *curve.mean]
    for n in range(1, len(steps)):
        if values[n] >= target > values[n - 1]:
            part = (target - values[n - 1]) / (values[n] - values[n - 1])
            return steps[n - 1] + part * (steps[n] - steps[n - 1])
    return math.inf if target > 0 else 0.0


def _updates(number: float) -> str:
    return f"{number:,.0f}" if math.isfinite(number) else claims.score(number)


def half_way(row: str, of: str = "") -> Quantity:
    """The updates after which a row's mu reaches half of its final mu, or of row `of`'s."""

    def number(evidence: Evidence, curves: Curves) -> float:
        mu = curves["mu"]
        final = evidence.metric(of, "mu").mean if of else mu.mean[-1]
        return _reached(mu, final / 2)

    whose = f"the final mu of row {of}" if of else "its final mu"
    name = f"updates until half of {whose}"
    return _on_curves(name, row, ("mu",), number, *filter(None, [of]), shown=_updates)


def mu_after(row: str, part: str) -> Quantity:
    """Mu after a share of training."""
    share = float(part)
    return _on_curves(f"mu after {100 * share:g} % of training", row, ("mu",),
                      lambda _, curves: _mu_at(curves, share * curves["mu"].steps[-1]))  # fmt: skip


def mu_at_best_dev(row: str) -> Quantity:
    """The part of its final mu that a row has at the evaluation with the lowest dev perplexity."""

    def number(_: Evidence, curves: Curves) -> float:
        dev, final = curves["perplexity_dev"], curves["mu"].mean[-1]
        best = _mu_at(curves, dev.steps[int(np.argmin(dev.mean))])
        return best / final if final > 0 else math.nan

    name = "part of its final mu at its lowest dev perplexity"
    return _on_curves(name, row, ("mu", "perplexity_dev"), number)


def fit_at_half_way(row: str, untrained: str) -> Quantity:
    """The part of the fall in log train perplexity that is over when mu reaches half of its final
    value. The fall is from the untrained row's perplexity to the row's own at the end."""

    def number(evidence: Evidence, curves: Curves) -> float:
        mu, fit = curves["mu"], curves["perplexity_train"]
        start = math.log(evidence.metric(untrained, "perplexity_train").mean)
        logs = [start, *np.log(fit.mean)]
        now = float(np.interp(_reached(mu, mu.mean[-1] / 2), [0, *fit.steps], logs))
        return (start - now) / (start - logs[-1]) if start > logs[-1] else math.nan

    name = "part of the fall of log train perplexity before half of its final mu"
    return _on_curves(name, row, ("mu", "perplexity_train"), number, untrained)


def matching_positions(row: str, start: str, end: str) -> Quantity:
    """The share of the first language's positions i, from start to end inclusive, for which the
    most similar of all the second language's positions is i - 1, i or i + 1."""
    first, last = int(start), int(end)

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
        return measured({seed: float(near.mean())})

    return Quantity(f"share of positions {first} to {last} that match", row, read)


_QUANTITIES = (half_way, mu_after, mu_at_best_dev, fit_at_half_way, matching_positions)
CLAIMS = claims.load(__file__, {each.__name__: each for each in _QUANTITIES})


def of(run: Run) -> list[Decided]:
    """Every claim with its verdict on a run; none for a run of another experiment."""
    if run.experiment != published.EXPERIMENT:
        return []
    evidence = of_run(run)
    return [claim.decide(evidence) for claim in CLAIMS]


def of_run(run: Run) -> Evidence:
    """The evidence of a run: its rows that have ended with every planned seed."""
    found, unusable = {}, {}
    languages = run.names("corpora", "languages")
    for name, row in run.rows.items():
        planned = run.seeds_planned(name)
        ended = {seed for of, seed in run.ended if of == name}
        if planned - ended or not ended:
            unusable[name] = f"not ended ({len(ended)} of {len(planned)} seeds have)"
        elif not row.seeds:
            unusable[name] = "diverged with every seed"
        else:
            seeds = {
                seed: named_deep(run.curves(name, seed=seed), run.layers) for seed in row.seeds
            }
            mean = named_deep(run.curves(name), run.layers)
            lost = tuple(sorted(row.diverged))
            metrics = named_deep(row.metrics, run.layers)
            parts = {part.strip() for part in row.description.split(";")}
            if len(languages) > 2 and parts & {"inv-order", f"inv-order[{languages[1]}]"}:
                # The pairs left out of mu here share one order, or lack the first language.
                metrics.pop("mu", None)
                if pair := metrics.get(f"mu_{'-'.join(languages[:2])}"):
                    metrics["mu"] = pair
            found[name] = RowEvidence(metrics, mean, seeds, lost)
    arrays = array_files(run.workdir / "arrays")
    return Evidence(found, unusable, arrays=arrays, identity=run.identity)

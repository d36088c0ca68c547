"""What Wu, Conneau et al. 2020 find in §5, as claims on the rows that a run has.

The paper shows these measures in figures and prints no table of them, so the claims are its
sentences; where they give no threshold ("much", "slightly"), it is ours. The middle layer is half
of the highest one that was measured; a "half" is the layers below or above it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import fmean

from xling_jax.experiments.similarity.rows import (
    BILINGUAL,
    MONOLINGUAL,
    Pair,
    best,
)
from xling_jax.report import claims as checks
from xling_jax.report.claims import (
    Check,
    Claim,
    Decided,
    Evidence,
    Missing,
    Quantity,
    RowEvidence,
    above,
)
from xling_jax.report.frame import Measure, by_layer, decoded, measured
from xling_jax.report.prose import listed, plural

_FILE = Path(__file__).with_name("claims.csv")
# Languages by their distance from English: those of W&C Figure 7, and the embedded ones.
FROM = "en"
BY_DISTANCE = ("fr", "de", "ru", "zh"), ("near", "far")

Group = tuple[Pair, ...]
Numbers = Mapping[int, float]  # by layer


def mean_cka(row: str) -> Quantity:
    """CKA, mean over layers."""
    return checks.metric("cka", row, "mean CKA")


def gap(first: str, second: str) -> Quantity:
    """How much the mean CKA of a bilingual model is above that of monolingual ones."""
    name = "mean CKA above that of monolingual models"
    return above(name, mean_cka(first), mean_cka(second), first)


def _stored(name: str, words: str) -> Callable[[str], Quantity]:
    """A metric as it is stored, under a name in words."""
    return lambda row: checks.metric(name, row, words)


def _over_layers(
    row: str, name: str, metric: tuple[str, str], read: Callable[[Numbers], float],
    shown: Callable[[float], str] = checks.score, has_halves: bool = True,
) -> Quantity:  # fmt: skip
    """A number that is read from a metric of all layers of a row, of both halves if need be."""

    def measure(evidence: Evidence) -> Measure:
        layers = by_layer(evidence.usable(row)[0].metrics, metric[0], part=metric[1])
        if not layers:
            raise Missing(f"no {name}: row {row}")
        means = {layer: each.mean for layer, each in layers.items()}
        if has_halves and not all(_halves(means)):
            raise Missing(f"no layers both below and above the middle: row {row}")
        seeds = sorted({seed for each in layers.values() for seed in each.by_seed})
        by_seed = {seed: read({n: each.by_seed.get(seed, math.nan) for n, each in layers.items()})
                   for seed in seeds}  # fmt: skip
        return measured(by_seed, read(means))

    return Quantity(name, row, measure, shown=shown)


def _middle_layer(values: Numbers) -> float:
    """Half of the highest layer that was measured."""
    return max(values, default=0) / 2


def _halves(values: Numbers) -> tuple[list[float], list[float]]:
    """The values of the layers below and above the middle; the middle layer is in neither."""
    middle = _middle_layer(values)
    lower = [value for layer, value in values.items() if layer < middle]
    return lower, [value for layer, value in values.items() if layer > middle]


def lower(row: str, what: str, start: str, end: str = "") -> Quantity:
    """The mean of a metric, `what` in words, over the lower half of the layers."""
    name = f"mean {what} of the lower half"
    return _over_layers(row, name, (start, end), lambda values: fmean(_halves(values)[0]))


def upper(row: str, what: str, start: str, end: str = "") -> Quantity:
    """The mean of a metric over the upper half of the layers."""
    name = f"mean {what} of the upper half"
    return _over_layers(row, name, (start, end), lambda values: fmean(_halves(values)[1]))


def mean(row: str, what: str, start: str) -> Quantity:
    """The mean over layers."""
    name = f"mean {what}"
    return _over_layers(row, name, (start, ""), lambda v: fmean(v.values()), has_halves=False)


def highest(row: str, what: str, start: str) -> Quantity:
    """The layer with the highest value of a metric."""

    def place(values: Numbers) -> float:
        found = best(values)
        return found[0] if found else math.nan

    return _over_layers(row, f"layer with the highest {what}", (start, ""), place, _as_layer)


def middle(row: str, start: str) -> Quantity:
    """The middle of the layers of which a metric is known."""
    return _over_layers(row, "middle layer", (start, ""), _middle_layer, _as_layer)


def _as_layer(value: float) -> str:
    return f"L{value:g}"


QUANTITIES: Mapping[str, Callable[..., Quantity]] = {
    "mean_cka": mean_cka, "gap": gap, "lower": lower, "upper": upper, "mean": mean,
    "highest": highest, "middle": middle,
    "correlation": _stored("pearson", "correlation"),
    "embeddings": _stored("words_p1", "P@1 of embeddings"),
    "static": _stored("static_p1", "P@1 of static vectors"),
}  # fmt: skip


def decide(pairs: Sequence[Pair], languages: Sequence[str]) -> list[Decided]:
    """Every claim's verdict on the rows of a run, always in the same order.

    Args:
      pairs: the rows.
      languages: of the run, the one that all others are compared with first.
    """
    evidence = Evidence(
        {pair.row: RowEvidence(pair.metrics) for pair in pairs if pair.has_ended},
        {pair.row: "not ended" for pair in pairs if not pair.has_ended},
    )
    return [_claim(line, pairs, languages).decide(evidence) for line in checks.read(_FILE)]


def _groups(kinds: str, pairs: Sequence[Pair], languages: Sequence[str]) -> list[Group]:
    """The rows that a claim compares, for every language that has all of them.

    Args:
      kinds: of models; with a bar between them each is a group of its own. `translated`: the
        monolingual ones of other languages than the first. `distances`: the bilingual and the
        monolingual ones of the languages whose distance is known, from near to far.
    """
    if kinds == "translated":
        return _groups(MONOLINGUAL, pairs, languages[1:])
    if kinds == "distances":
        both = {group[0].language: group
                for group in _groups(f"{BILINGUAL} {MONOLINGUAL}", pairs, languages)}  # fmt: skip
        if languages[:1] != [FROM]:
            return []
        orders = [[both[name] for name in (FROM, *order) if name in both] for order in BY_DISTANCE]
        return max(orders, key=len)
    rows = {(pair.kind, pair.language): pair for pair in pairs if pair.kind}
    found = []
    for own in kinds.split("|"):
        each = [[rows.get((kind, name)) for kind in own.split()] for name in languages]
        found += [tuple(pair for pair in group if pair) for group in each if None not in group]
    return found


def _claim(line: Mapping[str, str], pairs: Sequence[Pair], languages: Sequence[str]) -> Claim:
    """A claim on those groups of rows that have been measured, or may still be."""
    what, groups = line["scope"], _groups(line["rows"], pairs, list(languages))
    found = [g for g in groups if all(not p.has_ended or _has(p, m)
                                      for p in g for m in line["needs"].split())]  # fmt: skip
    left_out = [group for group in groups if group not in found]
    least = 2 if line["rows"] == "distances" else 1
    scope = f"{what}, text of {_languages(found)}" if found else what
    if found and left_out:
        scope += f" (not measured: {_languages(left_out)})"
    missing, made = "", tuple[Check, ...]()
    if len(found) < least:
        missing = _missing(what, groups, left_out, least)
    else:
        bindings = [{"row": group[0].row, **{pair.kind: pair.row for pair in group}}
                    for group in found]  # fmt: skip
        if least > 1:
            bindings = [near | {f"farther_{kind}": row for kind, row in far.items()}
                        for near, far in pairwise(bindings)]  # fmt: skip
        made = checks.checks_of(line["checks"], bindings, QUANTITIES)
    return Claim(line["id"], line["source"], scope, line["statement"], made, missing)


def _has(pair: Pair, metric: str) -> bool:
    if "_L" in metric:
        at = decoded(metric.replace("_L", "_0"))
        return bool(pair.layers(at.name, at.part))
    return metric in pair.metrics


def _languages(groups: Sequence[Group]) -> str:
    return listed(dict.fromkeys(group[0].language for group in groups))


def _missing(what: str, groups: Sequence[Group], left_out: Sequence[Group], least: int) -> str:
    """Why there are too few groups."""
    if left_out:
        rows = dict.fromkeys(pair.row for group in left_out for pair in group)
        return f"not measured: {plural('row', list(rows))}"
    if least > 1:
        return f"{least} languages whose order by distance is known are needed, not {len(groups)}"
    return f"not in this run: {what[0].lower()}{what[1:]}"

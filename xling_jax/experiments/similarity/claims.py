"""What Wu, Conneau et al. 2020 find in §5, as claims on the rows that a run has.

The paper shows these measures in figures and prints no table of them, so the claims are its
sentences; where they give no threshold ("much", "slightly"), it is ours. The middle layer is half
of the highest one that was measured; a "half" is the layers below or above it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from statistics import fmean
from typing import NamedTuple

from xling_jax.experiments.similarity.rows import BILINGUAL, MONOLINGUAL, Pair, best
from xling_jax.report import claims
from xling_jax.report.claims import Decided, Evidence, Filled, Missing, Quantity, RowEvidence
from xling_jax.report.frame import Measure, by_layer, decoded, measured
from xling_jax.report.prose import listed, plural
from xling_jax.report.table import Format

# Languages by their distance from English: those of W&C Figure 7, and the embedded ones.
FROM = "en"
BY_DISTANCE = ("fr", "de", "ru", "zh"), ("near", "middle", "far")

Group = tuple[Pair, ...]
Numbers = Mapping[int, float]  # by layer


def _stored(name: str, words: str) -> Callable[[str], Quantity]:
    """A metric as it is stored, under a name in words."""
    return lambda row: claims.metric(name, row, words)


def _gap(first: str, second: str) -> Quantity:
    """How much the mean CKA of a bilingual model is above that of monolingual ones."""
    name, cka = "mean CKA above that of monolingual models", _stored("cka", "mean CKA")
    return claims.surplus(name, cka(first), cka(second), first)


class OverLayers(NamedTuple):
    """A number read from each seed's values of a metric by layer: its name, with {} for the
    metric's, how it is read and shown, and whether it needs layers both below and above the
    middle."""

    words: str
    read: Callable[[Numbers], float]
    shown: Format = claims.score
    has_halves: bool = True

    def of(self, row: str, what: str, start: str, end: str = "") -> Quantity:
        """The quantity for a row's metric, stored as `start`_LAYER, or `start`_LAYER_`end` for the
        part `end`; `what` is the metric's name in words."""
        name = self.words.format(what)

        def read(evidence: Evidence) -> Measure:
            layers = by_layer(evidence.usable(row)[0].metrics, start, part=end)
            if not layers:
                raise Missing(f"no {name}: row {row}")
            means = {layer: each.mean for layer, each in layers.items()}
            if self.has_halves and not all(_halves(means)):
                raise Missing(f"no layers both below and above the middle: row {row}")
            by_seed = {
                seed: self.read({n: x.by_seed.get(seed, math.nan) for n, x in layers.items()})
                for seed in sorted({seed for each in layers.values() for seed in each.by_seed})
            }
            return measured(by_seed) if by_seed else measured({}, self.read(means))

        return Quantity(name, row, read, shown=self.shown)


def _halves(values: Numbers) -> tuple[list[float], list[float]]:
    """The values of the layers below and above the middle; the middle layer is in neither."""
    middle = max(values) / 2
    lower = [value for layer, value in values.items() if layer < middle]
    return lower, [value for layer, value in values.items() if layer > middle]


_LAYER: Format = "{:.4g}".format
_OVER_LAYERS = {
    "lower": OverLayers("mean {} of the lower half", lambda values: fmean(_halves(values)[0])),
    "upper": OverLayers("mean {} of the upper half", lambda values: fmean(_halves(values)[1])),
    "mean": OverLayers("mean {}", lambda values: fmean(values.values()), has_halves=False),
    "top": OverLayers("highest {}", lambda values: max(values.values()), has_halves=False),
    "highest": OverLayers("layer with the highest {}", best, _LAYER),
    "middle": OverLayers("middle layer", lambda values: max(values) / 2, _LAYER),
}
QUANTITIES: Mapping[str, Callable[..., Quantity]] = {
    "mean_cka": _stored("cka", "mean CKA"),
    "gap": _gap,
    "correlation": _stored("pearson", "correlation"),
    "embeddings": _stored("words_p1", "P@1 of embeddings"),
    "static": _stored("static_p1", "P@1 of static vectors"),
    "static_in_context": _stored("context_static_p1", "P@1 of static vectors"),
    **{name: each.of for name, each in _OVER_LAYERS.items()},
}


def decide(pairs: Sequence[Pair], languages: Sequence[str]) -> list[Decided]:
    """Every claim's verdict on the rows of a run, always in the same order.

    Args:
      pairs: the rows.
      languages: of the run; the first is the one that all others are compared with.
    """
    evidence = Evidence(
        {pair.row: RowEvidence(pair.metrics) for pair in pairs if pair.has_ended},
        {pair.row: "not ended" for pair in pairs if not pair.has_ended},
    )
    every = claims.load(__file__, QUANTITIES, partial(_filled, pairs, languages))
    return [claim.decide(evidence) for claim in every]


def _groups(kinds: str, pairs: Sequence[Pair], languages: Sequence[str]) -> list[Group]:
    """The rows that a claim compares, for every language that has all of them.

    Args:
      kinds: of models, all in one group, or with a bar between them each in a group of its own;
        or `translated`: the monolingual ones of other languages than the first; or `distances`: the
        bilingual and monolingual ones of languages whose distance is known, from near to far.
    """
    if kinds == "translated":
        return _groups(MONOLINGUAL, pairs, languages[1:])
    if kinds == "distances":
        both = {group[0].language: group
                for group in _groups(f"{BILINGUAL} {MONOLINGUAL}", pairs, languages)}  # fmt: skip
        orders = [[both[name] for name in (FROM, *order) if name in both] for order in BY_DISTANCE]
        return max(orders, key=len) if languages[:1] == [FROM] else []
    rows = {(pair.kind, pair.language): pair for pair in pairs if pair.kind}
    found = []
    for own in kinds.split("|"):
        each = [[rows.get((kind, name)) for kind in own.split()] for name in languages]
        found += [tuple(pair for pair in group if pair) for group in each if None not in group]
    return found


def _filled(pairs: Sequence[Pair], languages: Sequence[str], line: Mapping[str, str]) -> Filled:
    """A claim on those groups of rows that have been measured, or may still be."""
    what, needs = line["scope"], line["needs"].split()
    groups = _groups(line["rows"], pairs, list(languages))
    found = [g for g in groups if all(not p.has_ended or _has(p, m) for p in g for m in needs)]
    left_out = [group for group in groups if group not in found]
    scope = f"{what}, text of {_languages(found)}" if found else what
    if found and left_out:
        scope += f" (not measured: {_languages(left_out)})"
    by_distance = line["rows"] == "distances"
    if len(found) < 1 + by_distance:
        missing = f"not in this run: {what[0].lower()}{what[1:]}"
        if by_distance:
            missing = f"2 languages whose order by distance is known are needed, not {len(groups)}"
        if left_out:
            rows = dict.fromkeys(pair.row for group in left_out for pair in group)
            missing = f"not measured: {plural('row', list(rows))}"
        return Filled(scope, missing=missing)
    bindings = [{"row": group[0].row, **{pair.kind: pair.row for pair in group}}
                for group in found]  # fmt: skip
    if by_distance:
        bindings = [near | {f"farther_{kind}": row for kind, row in far.items()}
                    for near, far in pairwise(bindings)]  # fmt: skip
    return Filled(scope, [bindings])


def _has(pair: Pair, metric: str) -> bool:
    at = decoded(metric.replace("_L", "_0"))
    return bool(pair.layers(at.name, at.part)) if "_L" in metric else metric in pair.metrics


def _languages(groups: Sequence[Group]) -> str:
    return listed(dict.fromkeys(group[0].language for group in groups))

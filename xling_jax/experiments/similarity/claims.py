"""What Wu, Conneau et al. 2020 find in §5, as claims on the rows that a run has.

The paper shows these measures in figures and prints no table of them, so the claims are its
sentences; where they give no threshold ("much", "slightly"), it is ours. The middle layer is half
of the highest one that was measured; a "half" is the layers below or above it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from xling_jax.experiments.similarity.quantities import (
    gap,
    half_mean,
    highest_is_low,
    mean,
    mean_cka,
    metric,
)
from xling_jax.experiments.similarity.report_pairs import BILINGUAL, MONOLINGUAL, RANDOM, Pair
from xling_jax.report.claims import Check, Claim, Decided, Evidence, RowEvidence, measured
from xling_jax.report.formats import listed

SOURCE = "W&C"
CORRELATED = 0.9
MUCH, TIMES = 0.1, 2.0  # that a map must add to precision, and multiply it by
AS_GOOD = 0.02  # that embeddings may be below static vectors
# Languages by their distance from English: those of W&C Figure 7, and the embedded ones.
FROM = "en"
BY_DISTANCE = ("fr", "de", "ru", "zh"), ("near", "far")

Group = tuple[Pair, ...]


def decide(pairs: Sequence[Pair], languages: Sequence[str]) -> list[Decided]:
    """Every claim's verdict on the rows of a run, always in the same order.

    Args:
      pairs: the rows.
      languages: of the run, the one that all others are compared with first.
    """
    evidence = Evidence(
        {p.row: RowEvidence({k: measured(v, {s: x[k] for s, x in p.by_seed.items() if k in x})
                             for k, v in p.metrics.items()})
         for p in pairs if p.has_ended},
        {p.row: "not ended" for p in pairs if not p.has_ended},
    )  # fmt: skip
    return [claim.decide(evidence) for claim in claims(pairs, languages)]


def _claim(
    name: str,
    source: str,
    what: str,
    statement: str,
    groups: Sequence[Group],
    metrics: Sequence[str],
    checks: Callable[[Sequence[Group]], Iterable[Check]],
    least: int = 1,
) -> Claim:
    """A claim on those groups of rows that have been measured, or may still be.

    Args:
      name, source, statement: see `Claim`.
      what: the models that it is about.
      groups: rows that are compared with each other.
      metrics: what is needed; it is the name of a metric, or of one for each layer.
      checks: makes the checks, for groups.
      least: how many groups it needs.
    """
    found = [g for g in groups if all(not p.has_ended or _has(p, m) for p in g for m in metrics)]
    left_out = [g for g in groups if g not in found]
    scope = f"{what}, text of {_languages(found)}" if found else what
    if found and left_out:
        scope += f" (not measured: {_languages(left_out)})"
    missing = ""
    if len(found) < least:
        missing = _missing(what, groups, left_out, least)
    made = () if missing else tuple(checks(found))
    return Claim(name, f"{SOURCE}, {source}", scope, statement, made, missing)


def _has(pair: Pair, metric: str) -> bool:
    if "_L" in metric:
        return bool(pair.layers(*metric.split("_L")))
    return metric in pair.metrics


def _languages(groups: Sequence[Group]) -> str:
    return listed(list(dict.fromkeys(group[0].language for group in groups)))


def _missing(what: str, groups: Sequence[Group], left_out: Sequence[Group], least: int) -> str:
    """Why there are too few groups."""
    if left_out:
        rows = dict.fromkeys(pair.row for group in left_out for pair in group)
        return f"not measured: row{'s' if len(rows) > 1 else ''} {', '.join(rows)}"
    if least > 1:
        return f"{least} languages whose order by distance is known are needed, not {len(groups)}"
    return f"not in this run: {what[0].lower()}{what[1:]}"


def _known_order(both: Sequence[Group], languages: Sequence[str]) -> list[Group]:
    """The groups from near to far, where that is known."""
    first = next(iter(languages), "")
    if first != FROM:
        return []
    by_language = {group[0].language: group for group in both}
    orders = [
        [by_language[name] for name in (first, *order) if name in by_language]
        for order in BY_DISTANCE
    ]
    return max(orders, key=len)


def claims(pairs: Sequence[Pair], languages: Sequence[str]) -> list[Claim]:
    """The paper's claims on the rows of a run."""
    rows = {(pair.kind, pair.language): pair for pair in pairs if pair.kind}

    def groups(*kinds: str) -> list[Group]:
        """The rows of these kinds, for every language that has all of them."""
        each = [tuple(rows.get((kind, name)) for kind in kinds) for name in languages]
        return [tuple(p for p in group if p) for group in each if None not in group]

    both = groups(BILINGUAL, MONOLINGUAL)
    alone = groups(MONOLINGUAL)
    translated = [group for group in alone if group[0].language not in languages[:1]]
    # fmt: off
    return [
        _claim("bilingual-is-more-alike", "§5.2, Figure 7", "Bilingual and monolingual models",
            "A bilingual model's two languages are at least as alike as two monolingual models: "
            "mean CKA is not lower.",
            both, ["cka"],
            lambda found: [Check(mean_cka(a), "≥", mean_cka(b)) for a, b in found]),
        _claim("more-alike-than-random", "§5.2, Figure 7", "Monolingual models, random encoders",
            "Random encoders are a lower bound: two monolingual models have a higher mean CKA "
            "than one beside a random encoder.",
            groups(MONOLINGUAL, RANDOM), ["cka"],
            lambda found: [Check(mean_cka(a), ">", mean_cka(b)) for a, b in found]),
        _claim("lower-layers-are-alike", "§5.2, Figure 7", "Bilingual and monolingual models",
            "The first few layers are the most alike: the layer with the highest CKA is not above "
            "the middle, and mean CKA is higher in the lower half than in the upper.",
            [*groups(BILINGUAL), *alone], ["cka_L"],
            lambda found: [c for (p,) in found for c in (
                highest_is_low(p, "CKA", "cka"),
                Check(half_mean(p, 0, "CKA", "cka"), ">", half_mean(p, 1, "CKA", "cka")))]),
        _claim("higher-layers-translate-words", "§5.1.1, Figure 4b", "Monolingual models",
            "Mean states in context from higher layers translate words better: mean P@1 is higher "
            "in the upper half of the layers than in the lower.",
            translated, ["context_L_p1"],
            lambda found: [Check(half_mean(p, 1, "P@1", "context", "_p1"), ">",
                                 half_mean(p, 0, "P@1", "context", "_p1")) for (p,) in found]),
        _claim("similarity-tells-retrieval", "§5.2, Figures 6 and 7", "Monolingual models",
            "CKA is highly correlated over layers with sentence retrieval after a map: Pearson's "
            "correlation is above .9.",
            translated, ["pearson"],
            lambda found: [Check(metric(p, "correlation", "pearson"), ">", CORRELATED)
                           for (p,) in found]),
        _claim("gap-shrinks-with-distance", "§5.2, Figure 7", "Bilingual and monolingual models",
            "The more distant the languages, the smaller the gap between mean CKA of bilingual and "
            "of monolingual models.",
            _known_order(both, languages), ["cka"],
            lambda found: [Check(gap(*a), ">", gap(*b))
                           for a, b in zip(found[:-1], found[1:], strict=True)],
            least=2),
        _claim("maps-align", "§5.1.3 and §5.1.4, Figure 6", "Monolingual models",
            "An orthogonal map aligns monolingual models: with it sentence retrieval, mean P@1 "
            "over layers, is at least .1 higher than without and at least twice as high.",
            translated, ["sentences_L", "unmapped_L"],
            lambda found: [Check(mean(p, "P@1 with a map", "sentences"), "≥",
                                 mean(p, "P@1 without", "unmapped"), factor, plus)
                           for (p,) in found for factor, plus in ((1.0, MUCH), (TIMES, 0.0))]),
        _claim("lower-layers-retrieve", "§5.1.3, Figure 6", "Monolingual models",
            "Sentence retrieval after a map is best at a lower layer: the layer with the highest "
            "P@1 is not above the middle.",
            translated, ["sentences_L"],
            lambda found: [highest_is_low(p, "P@1", "sentences") for (p,) in found]),
        _claim("embeddings-match-static-vectors", "§5.1.1, Figure 4a", "Monolingual models",
            "Embeddings of single-piece words translate about as well as static vectors of the "
            "same words, or better: P@1 is at most .02 below.",
            translated, ["words_p1", "static_p1"],
            lambda found: [Check(metric(p, "P@1 of embeddings", "words_p1"), "≥",
                                 metric(p, "P@1 of static vectors", "static_p1"), plus=-AS_GOOD)
                           for (p,) in found]),
    ]
    # fmt: on

"""The rows of a run of `similarity`: pairs of models, the language they were compared on, and what
was measured of each layer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xling_jax.report.frame import Measure, Run, by_layer

BILINGUAL, MONOLINGUAL, RANDOM = KINDS = ("bilingual", "monolingual", "random")
OTHER_SEED = "other_seed"
_LANGUAGE = re.compile(r"@\s*(\S+)\s*$")


@dataclass(frozen=True)
class Pair:
    """A row: two models that read text of the first language and its translation.

    Attributes:
      kind: one of `KINDS`, by the row's name; empty for a row of another name.
      language: of the translation; empty if the description names none.
      label: the two languages, or the name of a row of no kind.
      metrics: means over the seeds that have ended.
      has_ended: whether all seeds have ended.
    """

    row: str
    description: str
    kind: str
    language: str
    label: str
    metrics: Mapping[str, Measure]
    has_ended: bool

    def layers(self, name: str, part: str = "") -> dict[int, Measure]:
        """A metric, or a part of it, at every layer."""
        return by_layer(self.metrics, name, part=part)


def best(values: Mapping[int, float]) -> int:
    """The layer with the highest value, the lowest of several."""
    return max(values, key=lambda layer: (values[layer], -layer))


def languages(run: Run) -> list[str]:
    """The languages that the config names, in its order, then any others that rows name."""
    found = [*run.names("languages"), *(_language(run.description(row)) for row in run.row_names)]
    return [name for name in dict.fromkeys(found) if name]


def _language(description: str) -> str:
    match = _LANGUAGE.search(description)
    return match[1] if match else ""


def pairs(run: Run) -> list[Pair]:
    """Every row, ended or not, in the config's order."""
    first = next(iter(languages(run)), "")
    seen: set[tuple[str, str]] = set()
    found = []
    for name, row in run.rows.items():
        language = _language(row.description)
        named = {f"{kind}_{language}": kind for kind in KINDS if language}
        if language and language == first:
            named[OTHER_SEED] = MONOLINGUAL
        kind = named.get(name, "")
        if (kind, language) in seen:
            kind = ""
        seen.add((kind, language))
        # Two models of one language, or text of it and its paraphrases: en′ in the paper.
        label = f"{first}–{language}" + ("′" if language == first else "")
        planned = {(name, seed) for seed in run.seeds_planned(name)}
        found.append(Pair(name, row.description, kind, language, label if kind else name,
                          row.metrics, bool(planned) and planned <= run.ended))  # fmt: skip
    return found


def by_kind(every: Sequence[Pair], order: Sequence[str]) -> dict[str, list[Pair]]:
    """The pairs of each kind that has any, sorted by language; those of no kind come last."""
    found = {}
    for kind in (*KINDS, ""):
        if own := [pair for pair in every if pair.kind == kind]:
            found[kind] = sorted(own, key=lambda pair: order.index(pair.language)) if kind else own
    return found

"""The rows of a run of `similarity`: pairs of models, the language they were compared on, and what
was measured of each layer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xling_jax.report.rows import Run

BILINGUAL, MONOLINGUAL, RANDOM = KINDS = ("bilingual", "monolingual", "random")
OTHER_SEED = "other_seed"
_LANGUAGE = re.compile(r"@\s*(\S+)\s*$")


@dataclass(frozen=True)
class Pair:
    """A row: two models that read text of the first language and its translation.

    kind: one of `KINDS`, told by the row's name; empty for a row of another name. language: of the
    translation; empty where the description names none. label: the two languages, or the name of
    a row of no kind. metrics: means over seeds, none of a row that has not ended. by_seed: those
    of each seed.
    """

    row: str
    description: str
    kind: str
    language: str
    label: str
    metrics: Mapping[str, float]
    has_ended: bool
    by_seed: Mapping[int, Mapping[str, float]] = field(default_factory=dict)

    def layers(self, start: str, end: str = "") -> dict[int, float]:
        """A metric of every layer, see `layers_of`."""
        return layers_of(self.metrics, start, end)

    @property
    def message(self) -> str:
        """Why there are no numbers."""
        return "not measured" if self.has_ended else "not begun"


def layers_of(metrics: Mapping[str, float], start: str, end: str = "") -> dict[int, float]:
    """A metric of every layer L, among others as `start_L` + `end`, in the order of the layers."""
    name = re.compile(rf"{re.escape(start)}_(\d+){re.escape(end)}")
    found = {int(m[1]): v for k, v in metrics.items() if (m := name.fullmatch(k))}
    return dict(sorted(found.items()))


def languages(run: Run) -> list[str]:
    """The languages that the config names, then those of rows, the first one first."""
    nested = run.config.get("config")
    named = nested.get("languages") if isinstance(nested, dict) else None
    found = [str(name) for name in named] if isinstance(named, list | tuple) else []
    found += [_language(run.description(row)) for row in run.row_names()]
    return [name for name in dict.fromkeys(found) if name]


def _language(description: str) -> str:
    match = _LANGUAGE.search(description)
    return match[1] if match else ""


def read(run: Run) -> list[Pair]:
    """Every row, ended or not, in the config's order."""
    first = next(iter(languages(run)), "")
    ended = {replica.row for replica in run.replicas}
    seen: set[tuple[str, str]] = set()
    found = []
    for name in run.row_names():
        row = run.row(name)
        language = _language(row.description)
        kind = _kind(name, language, first)
        # Two models of one language, or text of it and its paraphrases: en′ in the paper.
        label = f"{first}–{language}" + ("′" if language == first else "")
        if (kind, language) in seen:
            kind = ""
        seen.add((kind, language))
        metrics = {metric: summary.mean for metric, summary in row.metrics.items()}
        by_seed = {r.seed: r.metrics for r in run.replicas if r.row == name}
        found.append(
            Pair(
                name, row.description, kind, language, label if kind else name,
                metrics, name in ended, by_seed,
            )
        )  # fmt: skip
    return found


def _kind(row: str, language: str, first: str) -> str:
    if not language:
        return ""
    if row == OTHER_SEED and language == first:
        return MONOLINGUAL
    return next((kind for kind in KINDS if row == f"{kind}_{language}"), "")


def by_kind(pairs: Sequence[Pair], order: Sequence[str]) -> dict[str, list[Pair]]:
    """The pairs of each kind that has any, sorted by language; those of no kind come last."""
    found = {}
    for kind in (*KINDS, ""):
        if own := [pair for pair in pairs if pair.kind == kind]:
            found[kind] = sorted(own, key=lambda pair: order.index(pair.language)) if kind else own
    return found


def best(values: Mapping[int, float]) -> tuple[int, float] | None:
    """The layer with the highest value, the lowest of several, and the value; None without any."""
    return max(values.items(), key=lambda item: (item[1], -item[0])) if values else None


def halves(values: Mapping[int, float]) -> tuple[list[float], list[float]] | None:
    """The values of layers below the middle, that is half of the highest layer, and above it.

    The middle layer, if there is one, is in neither. None where a half has no layer.
    """
    middle = middle_layer(values)
    lower = [value for layer, value in values.items() if layer < middle]
    upper = [value for layer, value in values.items() if layer > middle]
    return (lower, upper) if lower and upper else None


def middle_layer(values: Mapping[int, float]) -> float:
    """Half of the highest layer that was measured."""
    return max(values, default=0) / 2

"""What the metrics of a bilingual run are about: languages, tasks, layers, candidates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from xling_jax.report.rows import Curve, Run, Summary

TASKS = {
    "retrieval": "sentence retrieval",
    "mapped": "sentence retrieval after a map",
    "cka": "CKA of translations",
    "words": "word translation",
}
PERPLEXITY = "perplexity_dev"
_LAYERED = re.compile(rf"({'|'.join(TASKS)})_(?!candidates_|cut_)(.+)_(\d+)")
_CANDIDATES = re.compile(r"(retrieval|words)_candidates_(.+)")


def corpora(run: Run) -> Mapping[str, object]:
    """The config's section on texts; empty if there is none."""
    nested = run.config.get("config")
    section = nested.get("corpora") if isinstance(nested, dict) else None
    return section if isinstance(section, dict) else {}


def languages(run: Run) -> list[str]:
    """The languages that the config names and those that were evaluated, in that order."""
    named = corpora(run).get("languages")
    found = [str(name) for name in named] if isinstance(named, list | tuple) else []
    start = f"{PERPLEXITY}_"
    for row in map(run.row, run.row_names()):
        found += [n.removeprefix(start) for n in row.metrics if n.startswith(start)]
    return list(dict.fromkeys(found))


def by_layer(metrics: Mapping[str, Summary]) -> dict[str, dict[str, Curve]]:
    """For each other language, the scores of a row over layers: `{language: {task: curve}}`."""
    points: dict[str, dict[str, dict[int, Summary]]] = {}
    for name, value in metrics.items():
        if match := _LAYERED.fullmatch(name):
            task, language, layer = match.groups()
            points.setdefault(language, {}).setdefault(task, {})[int(layer)] = value
    return {
        language: {task: _curve(values) for task, values in by_task.items()}
        for language, by_task in points.items()
    }


def _curve(values: Mapping[int, Summary]) -> Curve:
    layers = sorted(values)
    sums = [values[layer] for layer in layers]
    return Curve(layers, [s.mean for s in sums], [s.sd for s in sums])


def layers(run: Run) -> list[int]:
    """The layers whose vectors were compared."""
    rows = map(run.row, run.row_names())
    curves = [c for row in rows for tasks in by_layer(row.metrics).values() for c in tasks.values()]
    return sorted({int(layer) for curve in curves for layer in curve.steps})


def candidates(run: Run, task: str) -> dict[str, list[int]]:
    """Among how many texts of each other language a task was done; several if rows differ."""
    found: dict[str, set[int]] = {}
    for row in map(run.row, run.row_names()):
        for name, value in row.metrics.items():
            match = _CANDIDATES.fullmatch(name)
            if match and match[1] == task:
                found.setdefault(match[2], set()).add(round(value.mean))
    return {language: sorted(numbers) for language, numbers in found.items()}


def spread(numbers: Iterable[int]) -> str:
    """Numbers by their least and their greatest: "1,000", "480–512"."""
    least, *_, greatest = [*sorted(numbers)] * 2
    return f"{least:,}" if least == greatest else f"{least:,}–{greatest:,}"

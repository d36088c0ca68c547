"""The report of a bilingual run: perplexity, fertility, translations found, anchors of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from xling_jax.corpora.sources import SYNTHETIC
from xling_jax.evaluators.registry import DICTIONARY, EVALUATORS, SENTENCES, names
from xling_jax.report import figures, frame, page, table
from xling_jax.report.figures import Line, Score
from xling_jax.report.frame import Curve, Measure, Run, by_language
from xling_jax.report.gallery import Card, Gallery
from xling_jax.report.prose import also_diverged, grouped, listed, plural, spread
from xling_jax.report.table import Column, Table

TASKS = {name: EVALUATORS[name].title for name in names(SENTENCES, DICTIONARY)}
PERPLEXITY = "perplexity_dev"
SCORES = (
    Score("retrieval", TASKS["retrieval"], figures.COLOURS[0]),
    Score("words", TASKS["words"], figures.COLOURS[5]),
)


def write(workdir: Path) -> str:
    """Writes the report of a run, ended or not; returns the table as text."""
    run = Run(workdir)
    said, gallery = _texts_of(run), Gallery(workdir / "report" / "figures")
    shown, texts = result(run, said["Notes"]), said.get("Texts", [])
    sections: dict[str, list[Any]] = {
        "Overview": [page.Figures(said["Overview"], _overview(run, gallery))],
        "Results": [shown, shown.notes, page.all_metrics(run)],
        "By layer": [page.Figures(said["By layer"], _by_layer(run, gallery))],
        "Training": [page.Figures(said["Training"], _training(run, gallery))],
        "What was run": page.settings(run, run.field("vocabulary"), without_texts=" ".join(texts)),
    }
    state = " ".join([page.progress(run), *said.get("Setting", ()), *texts])
    return page.write(run, state, sections, [shown])


def result(run: Run, notes: Sequence[str]) -> Table:
    """A line for each row, planned or run, in the config's order: means over seeds."""
    columns = [
        Column(name, f"{PERPLEXITY}_{name}", _perplexity, "held-out perplexity", f"ppl {name}")
        for name in languages(run)
    ]
    columns += [
        Column.of(f"fertility_{name}", "fertility", name, f"fert. {name}")
        for name in languages(run)
    ]
    columns += map(Column.of, TASKS)
    columns.append(Column.of("anchors", "anchors", "pieces", "anchors"))
    columns.append(Column.of("anchor_tokens", "anchors", "tokens", "their tokens"))
    lines = []
    for row in run.rows.values():
        line = table.row_line(run, row)
        lines.append(replace(line, seeds=line.seeds + also_diverged(len(row.diverged))))
    caption = "held-out perplexity, fertility, translations found, anchors"
    return Table("table1", "Rows", caption, columns, lines).those_present(notes)


def _perplexity(value: float) -> str:
    return f"{value:.2f}" if value < 99.995 else table.perplexity(value)


def languages(run: Run) -> list[str]:
    """The languages that the config names and those that were evaluated, in that order."""
    found = [name for row in run.rows.values() for name in by_language(row.metrics, PERPLEXITY)]
    return list(dict.fromkeys([*run.names("corpora", "languages"), *found]))


def curves_by_layer(metrics: Mapping[str, Measure]) -> dict[str, dict[str, Curve]]:
    """For each other language, the scores of a row over layers: `{language: {task: curve}}`."""
    found: dict[str, dict[str, Curve]] = {}
    for task, language in dict.fromkeys((m.name, m.language) for m in map(frame.decoded, metrics)):
        values = frame.by_layer(metrics, task, language)
        if task in TASKS and language and values:
            found.setdefault(language, {})[task] = frame.curve_of(values)
    return found


def _overview(run: Run, gallery: Gallery) -> list[Card]:
    shown = figures.entries(run, [score.name for score in SCORES])
    if not any(entry.ours for entry in shown):
        return []
    alt, below = "Every row: sentence retrieval and word translation", "score, mean over layers"
    return gallery.card("rows", alt, figures.bars, shown, SCORES, below, wide=True)


def over_layers(run: Run) -> dict[str, list[Line]]:
    """For each other language, in the config's order, the scores of every row over layers."""
    found = grouped((language, Line(row.name, number, by_task))
                    for number, row in enumerate(run.rows.values())
                    for language, by_task in curves_by_layer(row.metrics).items())  # fmt: skip
    order = [*languages(run), *sorted(found)]
    return {language: found[language] for language in dict.fromkeys(order) if language in found}


def _by_layer(run: Run, gallery: Gallery) -> list[Card]:
    cards = []
    for language, lines in over_layers(run).items():
        shown = [title for task, title in TASKS.items() if any(task in x.curves for x in lines)]
        alt = f"{listed(shown)} by layer: {language}"
        alt = alt[:1].upper() + alt[1:]
        cards += gallery.curves(f"layers_{language}", alt, lines, TASKS, "layer")
    return cards


def _training(run: Run, gallery: Gallery) -> list[Card]:
    shown = TASKS | {f"{PERPLEXITY}_{name}": f"held-out perplexity, {name}"
                     for name in languages(run)}  # fmt: skip
    lines = figures.over_training(run, "{}", shown)
    return gallery.curves("training", "Every row over training", lines, shown, "training step")


def _texts_of(run: Run) -> dict[str, list[str]]:
    """Everything there is to say about the rows of a run, and the figures."""
    rows, named = list(run.rows.values()), languages(run)
    cut = {name: max(values) for name, values in _by_language(run, "retrieval_cut").items()}
    scored, older, unselected = [], [], []
    for row in run.row_names:
        ended = [r for r in run.replicas if r.row == row and r.diverged_at is None]
        selected = [r for r in ended if PERPLEXITY in r.metrics]
        if steps := {r.scored_at for r in selected if r.scored_at is not None}:
            total = run.steps_of(row)
            at = listed(f"{step:,}" for step in sorted(steps))
            scored.append(f"{at}{f' of {total:,}' if total else ''} ({row})")
        if any(r.scored_at is None for r in ended):
            older.append(row)
        elif len(selected) < len(ended):
            unselected.append(row)
    seeds, scale = sorted({seed for _, seed in run.planned}), run.config.get("scale")
    setting = (seeds and plural("seed", seeds), scale and f"scale {scale}",
               named and plural("language", named))  # fmt: skip
    lines = over_layers(run)
    others = {task: [name for name, own in lines.items() if any(task in x.curves for x in own)]
              for task in TASKS}  # fmt: skip
    curves = [curve for own in lines.values() for line in own for curve in line.curves.values()]
    measured = [name for row in rows for name in row.metrics]
    every_row = [x.strip() for x in str(run.field("every_row") or "").split(";") if x.strip()]
    return page.said(
        __file__,
        rows,
        measured,
        measured=set(measured),
        has_fertility=bool(_by_language(run, "fertility")),
        first=next(iter(named), ""),
        others=others,
        layers=sorted({int(layer) for curve in curves for layer in curve.steps}),
        among=partial(_among, run),
        cut=[f"{100 * share:.0f} % ({name})" for name, share in cut.items() if share],
        scored=scored,
        scale=scale,
        older=older,
        unselected=unselected,
        every_row=every_row,
        is_online="extra-anchors-online" in ";".join([*every_row, *(x.description for x in rows)]),
        setting=list(filter(None, setting)),
        **_sources(run),
    )


def _by_language(run: Run, name: str) -> dict[str, list[float]]:
    """For each language, a metric's values in all rows that have it."""
    return grouped((language, value.mean) for row in run.rows.values()
                   for language, value in by_language(row.metrics, name).items())  # fmt: skip


def _among(run: Run, task: str, things: str) -> str:
    """Among how many texts of each other language, in words, with a range if rows differ; empty if
    that is not stored. No chance is given for words, since the number of their translations
    is not stored."""
    found = {name: {round(value) for value in values}
             for name, values in _by_language(run, f"{task}_candidates").items()}  # fmt: skip
    if not found:
        return ""
    chance = fmean(1 / min(numbers) for numbers in found.values())
    each = [f"{spread(numbers)} {things} of {name}" for name, numbers in found.items()]
    if len(set(map(frozenset, found.values()))) == 1:
        each = [f"{spread(next(iter(found.values())))} {things}"]
    return f"among {listed(each)}" + f" (chance: about {chance:.2g})" * (task != "words")


def _sources(run: Run) -> dict[str, Any]:
    """Where the training text is from, and how much of it there is, if that is stored."""
    by_language: dict[str, list[str]] = {}
    for text in run.texts:
        if text.get("field", "train") in ("train", "other") and text.get("source"):
            source = str(text["source"])
            name = source if source.startswith("tfds:") else Path(source).name
            sizes = [f"{text[what]:,} {what}" for what in ("sentences", "words")
                     if isinstance(text.get(what), int)]  # fmt: skip
            shown = f"{name} ({', '.join(sizes)})" if sizes else name
            by_language.setdefault(str(text.get("language", "")), []).append(shown)
    own = [run.field("corpora", name, "train") for name in run.names("corpora", "languages")]
    parts = ("train", "dev", "test")
    return {
        "trained": [f"{name}: {', '.join(found)}" for name, found in by_language.items()],
        "is_embedded": bool(own) and all(train == SYNTHETIC for train in own),
        "sizes": {part: run.setting("corpora", f"{part}_sentences") for part in parts},
    }

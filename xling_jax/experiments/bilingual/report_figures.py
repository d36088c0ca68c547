"""Figures of a bilingual run: its rows set beside each other, over layers and over training."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from xling_jax.experiments.bilingual.report_metrics import PERPLEXITY, TASKS, by_layer, languages
from xling_jax.experiments.fake_english.report_comparisons import Line, Score
from xling_jax.experiments.fake_english.report_overview import Entry, row_label
from xling_jax.report.cells import diverged_at
from xling_jax.report.figures import COLOURS
from xling_jax.report.rows import Row, Run, curves

SCORES = (
    Score("retrieval", TASKS["retrieval"], COLOURS[0]),
    Score("words", TASKS["words"], COLOURS[5]),
)


def entries(run: Run) -> list[Entry]:
    """The scores of every row that has any, and the rows that diverged, in order."""
    found = []
    for row in map(run.row, run.row_names()):
        ours = {n: (s.mean, s.sd) for n, *_ in SCORES if (s := row.metrics.get(n))}
        if ours or (row.diverged and not row.metrics):
            message = "" if ours else diverged_at(row.diverged)
            found.append(Entry(_label(row), ours, {}, message))
    return found if any(entry.ours for entry in found) else []


def _label(row: Row) -> str:
    """A row's label, with the step of one that still trains."""
    is_running = row.metrics and set(row.seeds) & set(row.running)
    return row_label(row) + (f"\nso far: step {row.step:,}" if is_running else "")


def over_layers(run: Run) -> dict[str, list[Line]]:
    """For each other language, the scores of every row over layers."""
    found: dict[str, list[Line]] = {}
    for number, name in enumerate(run.row_names()):
        for language, by_task in by_layer(run.row(name).metrics).items():
            found.setdefault(language, []).append(Line(name, number, by_task))
    return {language: found[language] for language in sorted(found, key=_place(run))}


def _place(run: Run) -> Callable[[str], tuple[int, str]]:
    """What sorts languages as the config does."""
    order = languages(run)
    return lambda name: (order.index(name) if name in order else len(order), name)


def over_training(run: Run) -> list[Line]:
    """The mean scores and the held-out perplexities of every row over training steps."""
    wanted = {*TASKS, *(f"{PERPLEXITY}_{name}" for name in languages(run))}
    found = []
    for number, name in enumerate(run.row_names()):
        own = curves(run.metrics.evaluations, name, run.seeds_diverged(name))
        if shown := {metric: curve for metric, curve in own.items() if metric in wanted}:
            found.append(Line(name, number, shown))
    return found


def panels(lines: Sequence[Line], order: Iterable[str]) -> dict[str, str]:
    """The metrics that any line has, in an order, with their titles."""
    present = {metric for line in lines for metric in line.curves}
    return {
        name: TASKS.get(name) or f"held-out perplexity, {name.removeprefix(f'{PERPLEXITY}_')}"
        for name in order
        if name in present
    }

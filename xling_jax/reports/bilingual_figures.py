"""Figures of a bilingual run: its rows set beside each other, over layers and over training."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from xling_jax.reports.bilingual_metrics import PERPLEXITY, TASKS, by_layer, languages
from xling_jax.reports.cells import diverged_at
from xling_jax.reports.figures import (
    COLOURS,
    draw_line,
    house_style,
    line_style,
    new_figure,
    perplexity_axis,
    round_limits,
    score_axis,
)
from xling_jax.reports.overview import Entry, row_label, score_bars, stripes
from xling_jax.reports.rows import Curve, Row, Run, curves

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SCORES = (("retrieval", COLOURS[0]), ("words", COLOURS[5]))
_LABEL = 28
_WIDTHS = {1: 4.2, 2: 7.4, 3: 8.6}  # inches, by the number of panels side by side


class Line(NamedTuple):
    """One row: its name, its number among the rows, which decides its colour, and its curves."""

    label: str
    number: int
    curves: Mapping[str, Curve]


def entries(run: Run) -> list[Entry]:
    """The final scores of every row that has any, and the rows that diverged, in order."""
    found = []
    for row in map(run.row, run.row_names()):
        ours = {n: (s.mean, s.sd) for n, _ in _SCORES if (s := row.metrics.get(n))}
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


def bars(shown: Sequence[Entry]) -> Figure:
    """A line a row, in order: bars for the two scores, means over layers and languages."""
    from matplotlib.patches import Patch

    top = _top(sum(pair) for entry in shown for pair in entry.ours.values())
    with house_style():
        figure = new_figure(8.6, 1.1 + 0.4 * len(shown))
        axes = figure.subplots()
        stripes(axes, len(shown))
        score_bars(axes, shown, _SCORES, top)
        axes.set_xlabel("score, mean over layers")
        present = [pair for pair in _SCORES if any(pair[0] in entry.ours for entry in shown)]
        handles = [Patch(color=colour, label=TASKS[name]) for name, colour in present]
        figure.legend(handles=handles, ncols=2, loc="outside upper center")
        return figure


def _top(values: Iterable[float]) -> float:
    """Where an axis of scores ends: 1, or a round number below it that none of them exceeds."""
    limits = round_limits(values)
    return min(1.0, limits[1]) if limits else 1.0


def side_by_side(lines: Sequence[Line], shown: Mapping[str, str], below: str) -> Figure:
    """A panel for each metric, a line a row: the mean over seeds, and its sd as a band.

    Args:
      lines: the rows.
      shown: the panels' metrics, with their titles. All scores have one axis.
      below: what the curves run over.
    """
    scores = [c for line in lines for name, c in line.curves.items() if name in TASKS]
    top = _top(m + s for curve in scores for m, s in zip(curve.mean, curve.sd, strict=True))
    columns = 2 if len(shown) in (2, 4) else min(3, len(shown))
    rows = -(-len(shown) // columns)
    labels = {line.label: textwrap.fill(line.label, _LABEL) for line in lines}
    named = -(-len(lines) // (columns + 1)) * max(text.count("\n") + 1 for text in labels.values())
    with house_style():
        figure = new_figure(_WIDTHS[columns], 2.6 * rows + 0.3 + 0.17 * named)
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for panel, (name, title) in zip(axes, shown.items(), strict=False):
            _panel(panel, lines, name, top)
            panel.set_title(title, loc="left")
            panel.set_xlabel(below)
        for panel in axes[len(shown) :]:
            panel.axis("off")
        handles = {
            label: line
            for panel in axes
            for line, label in zip(*panel.get_legend_handles_labels(), strict=True)
        }
        texts = [labels[label] for label in handles]
        figure.legend(
            handles.values(), texts, ncols=columns + 1, loc="outside lower center", handlelength=3
        )
        return figure


def _panel(axes: Axes, lines: Sequence[Line], name: str, top: float) -> None:
    """One metric of every row that has it."""
    from matplotlib.ticker import MaxNLocator

    found = [line for line in lines if name in line.curves]
    for line in found:
        draw_line(axes, line.curves[name], line.label, *line_style(line.number))
    if name in TASKS:
        score_axis(axes, top)
    else:
        perplexity_axis(axes, round_limits(v for line in found for v in line.curves[name].mean))
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))

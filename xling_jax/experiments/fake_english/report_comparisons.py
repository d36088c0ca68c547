"""Figures that set rows beside each other: as bars, over training (D&S Figures 6 and 7) or
layers, and over the values that a search tried (C.3).
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from xling_jax.experiments.fake_english import published
from xling_jax.experiments.fake_english.report_overview import Entry, score_bars, stripes
from xling_jax.experiments.fake_english.report_search import CRITERIA, Trial
from xling_jax.report.figures import (
    COLOURS,
    draw_line,
    house_style,
    line_style,
    new_figure,
    perplexity_axis,
    round_limits,
    score_axis,
)
from xling_jax.report.rows import Curve, Run, curves, deep_layer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TOLD_APART = ("0", "15", "30", "21", "17")
MOST_ROWS = 6
FEWEST_TRIALS = 3
_NAMES = {published.LEARNING_RATE: "learning rate", published.EPOCHS: "epochs"}
_LABEL = 28
_WIDTHS = {1: 4.2, 2: 7.4, 3: 8.6}  # inches, by the number of panels side by side


class Line(NamedTuple):
    """One row: its name, its number among the rows, which decides its colour, and its curves."""

    label: str
    number: int
    curves: Mapping[str, Curve]


class Score(NamedTuple):
    """A score of bars: its name, what it is called, its colour."""

    name: str
    title: str
    colour: str


def compared_rows(run: Run) -> dict[str, dict[str, Curve]]:
    """The curves of the rows to overlay, over percent of their own training.

    Those that D&S's Figures 6 and 7 show or that §3 tells apart, if the run has two of them,
    otherwise its first ones; no row if only one has a curve.
    """
    found = {}
    for row in run.row_names():
        total = run.steps_of(row)
        by_name = curves(run.metrics.evaluations, row, run.seeds_diverged(row))
        if total and by_name:
            found[row] = {
                name: Curve([100 * step / total for step in c.steps], c.mean, c.sd)
                for name, c in by_name.items()
            }
    chosen = [row for row in TOLD_APART if row in found]
    chosen = chosen if len(chosen) > 1 else list(found)[:MOST_ROWS]
    return {row: found[row] for row in chosen} if len(chosen) > 1 else {}


def over_training(by_row: Mapping[str, Mapping[str, Curve]], names: Mapping[str, str]) -> Figure:
    """Scores above and perplexities below, a line a row; `names` are the rows' names."""
    deep = deep_layer(name for by_name in by_row.values() for name in by_name)
    scores = [("mu", "mu"), (f"retrieval_{deep}", f"retrieval, layer {deep}")]
    scores.append((f"translation_{deep}", f"translation, layer {deep}"))
    fits = [("perplexity_train", "train perplexity"), ("perplexity_dev", "dev perplexity")]
    both = [by_name[name] for by_name in by_row.values() for name, _ in fits if name in by_name]
    limits = round_limits(value for curve in both for value in curve.mean)
    with house_style():
        figure = new_figure(8.6, 5.2)
        axes = figure.subplots(2, 3, sharex=True).ravel()
        for panel, (name, title) in zip(axes, [*scores, *fits], strict=False):
            for n, (row, by_name) in enumerate(by_row.items()):
                if name in by_name:
                    draw_line(panel, by_name[name], names[row], COLOURS[n])
            panel.set_title(title, loc="left")
            panel.set_xlim(0, 102)
            if title.endswith("perplexity"):
                perplexity_axis(panel, limits)
            else:
                score_axis(panel)
        axes[2].tick_params(labelbottom=True)
        for panel in axes[3:5]:
            panel.set_xlabel("% of training")
        axes[5].axis("off")
        handles = {
            label: line
            for panel in axes
            for line, label in zip(*panel.get_legend_handles_labels(), strict=True)
        }
        labels = [textwrap.fill(name, 30, break_on_hyphens=False) for name in handles]
        axes[5].legend(handles.values(), labels, loc="upper left", labelspacing=0.8)
        return figure


def has_figure(trials: Sequence[Trial]) -> bool:
    """Whether enough values were tried, and any of them evaluated, for a figure."""
    return len(trials) >= FEWEST_TRIALS and any(trial.row.metrics for trial in trials)


def over_values(name: str, trials: Sequence[Trial]) -> Figure:
    """Perplexities (log) above and mu below, over the values of a hyperparameter (log)."""
    with house_style():
        figure = new_figure(4.2, 4.6)
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        for metric, colour in zip(CRITERIA, COLOURS[2:4], strict=True):
            _points(above, trials, metric, metric.removeprefix("perplexity_"), colour)
        _points(below, trials, "mu", "mu", "black")
        found = [
            trial.row.metrics[m].mean
            for trial in trials
            for m in CRITERIA
            if m in trial.row.metrics
        ]
        perplexity_axis(above, round_limits(found))
        above.set_ylabel("perplexity")
        score_axis(below)
        below.set_ylabel("mu")
        below.set_xscale("log")
        _value_axis(below, [trial.value for trial in trials])
        below.set_xlabel(_NAMES[name])
        _diverged(above, [trial.value for trial in trials if trial.row.diverged])
        for axes in (above, below):
            axes.axvline(published.CHOSEN[name], color="#777777", lw=1, ls=":", zorder=0)
        above.plot([], [], color="#777777", lw=1, ls=":", label=f"{published.SOURCE} chose")
        figure.legend(*above.get_legend_handles_labels(), ncols=4, loc="outside upper center")
        return figure


def _points(axes: Axes, trials: Sequence[Trial], metric: str, label: str, colour: str) -> None:
    known = [(t.value, t.row.metrics[metric]) for t in trials if metric in t.row.metrics]
    axes.errorbar(
        [value for value, _ in known], [s.mean for _, s in known], [s.sd for _, s in known],
        marker="o", ms=4, lw=1.2, elinewidth=0.9, capsize=2, color=colour, label=label,
    )  # fmt: skip


def _diverged(axes: Axes, values: Sequence[float]) -> None:
    """A cross at the upper edge for every value at which a seed diverged."""
    if values:
        axes.plot(
            values, [0.96] * len(values), "x", color="#b3261e", ms=6, label="seeds diverged",
            transform=axes.get_xaxis_transform(),
        )  # fmt: skip


def _value_axis(axes: Axes, values: Sequence[float]) -> None:
    """A mark at every value that was tried, as it is written."""
    from matplotlib.ticker import NullLocator

    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(values, [_written(value) for value in values], fontsize=7.5, rotation=45)


def _written(value: float) -> str:
    """A value as the configs write it: 20, 2e-3."""
    digits, exponent = f"{value:.3e}".split("e")
    return f"{value:g}" if value >= 1 else f"{float(digits):g}e{int(exponent)}"


def bars(shown: Sequence[Entry], scores: Sequence[Score], below: str) -> Figure:
    """A line a row, in order: a bar for each of a few scores.

    Args:
      shown: the rows.
      scores: what the bars are of.
      below: what the axis says.
    """
    from matplotlib.patches import Patch

    top = _top(sum(pair) for entry in shown for pair in entry.ours.values())
    with house_style():
        figure = new_figure(8.6, 1.1 + 0.4 * len(shown))
        axes = figure.subplots()
        stripes(axes, len(shown))
        score_bars(axes, shown, [(score.name, score.colour) for score in scores], top)
        axes.set_xlabel(below)
        present = [s for s in scores if any(s.name in entry.ours for entry in shown)]
        handles = [Patch(color=score.colour, label=score.title) for score in present]
        figure.legend(handles=handles, ncols=2, loc="outside upper center")
        return figure


def _top(values: Iterable[float]) -> float:
    """Where an axis of scores ends: 1, or a round number below it that none of them exceeds."""
    limits = round_limits(values)
    return min(1.0, limits[1]) if limits else 1.0


def _is_score(name: str) -> bool:
    return not name.startswith("perplexity")


def side_by_side(lines: Sequence[Line], shown: Mapping[str, str], below: str) -> Figure:
    """A panel for each metric, a line a row: the mean over seeds, and its sd as a band.

    Args:
      lines: the rows.
      shown: the panels' metrics, with their titles. All that are no perplexities have one axis.
      below: what the curves run over.
    """
    scores = [c for line in lines for name, c in line.curves.items() if _is_score(name)]
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
    if _is_score(name):
        score_axis(axes, top)
    else:
        perplexity_axis(axes, round_limits(v for line in found for v in line.curves[name].mean))
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))

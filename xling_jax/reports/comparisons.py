"""Figures that set rows beside each other: over training (D&S Figures 6 and 7) and over the values
that a search tried (C.3).
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from xling_jax.reports import papers
from xling_jax.reports.figures import (
    COLOURS,
    draw_line,
    house_style,
    new_figure,
    perplexity_axis,
    round_limits,
    score_axis,
)
from xling_jax.reports.rows import Curve, Run, curves, deep_layer
from xling_jax.reports.search import CRITERIA, Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TOLD_APART = ("0", "15", "30", "21", "17")
MOST_ROWS = 6
FEWEST_TRIALS = 3
_NAMES = {papers.LEARNING_RATE: "learning rate", papers.EPOCHS: "epochs"}


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
            axes.axvline(papers.CHOSEN[name], color="#777777", lw=1, ls=":", zorder=0)
        above.plot([], [], color="#777777", lw=1, ls=":", label=f"{papers.SOURCE} chose")
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

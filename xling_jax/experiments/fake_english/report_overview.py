"""D&S Figure 1 for every row of a run: how multilingual each is, and how good a language model."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from xling_jax.experiments.fake_english import published
from xling_jax.report.cells import diverged_at
from xling_jax.report.figures import (
    COLOURS,
    GRID,
    house_style,
    new_figure,
    perplexity_axis,
    round_limits,
)
from xling_jax.report.rows import Row, Run, deep_layer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SCORES = (("retrieval", COLOURS[0]), ("translation", COLOURS[5]), ("mu", "#333333"))
_PERPLEXITY = "perplexity_train"
_HEIGHT = 0.25
_LABEL, _LABEL_LINES = 32, 3


class Entry(NamedTuple):
    """One row: `ours` and `paper` map retrieval, translation, mu and perplexity_train to mean and
    standard deviation; `message` says why there is none.
    """

    label: str
    ours: Mapping[str, tuple[float, float]]
    paper: Mapping[str, tuple[float, float]]
    message: str


def entries(run: Run) -> list[Entry]:
    """What there is to show of every row that was evaluated or diverged."""
    found = []
    for name in run.row_names():
        row = run.row(name)
        ours = _deeper({n: (s.mean, s.sd) for n, s in row.metrics.items()})
        if ours or row.diverged:
            paper = published.find(run.experiment, name)
            printed = paper.metrics if paper else {}
            paper_values = _deeper({n: (v.mean, v.sd or 0.0) for n, v in printed.items()})
            message = "" if ours else diverged_at(row.diverged)
            found.append(Entry(row_label(row), ours, paper_values, message))
    return found


def _deeper(metrics: Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """The scores of the deeper layer under their plain names."""
    deep = deep_layer(metrics)
    names = {"retrieval": f"retrieval_{deep}", "translation": f"translation_{deep}"}
    names |= {name: name for name in ("mu", _PERPLEXITY)}
    return {key: metrics[name] for key, name in names.items() if name in metrics}


def row_label(row: Row) -> str:
    """A row's name and what it changes, on a few short lines."""
    description = "" if row.description == row.row else row.description.replace(";", "; ")
    text = f"{row.row}: {description}" if description else row.row
    lines = textwrap.wrap(text, _LABEL, break_on_hyphens=False)
    if len(lines) > _LABEL_LINES:
        lines = [*lines[: _LABEL_LINES - 1], lines[_LABEL_LINES - 1][: _LABEL - 1] + "…"]
    return "\n".join(lines)


def overview(shown: Sequence[Entry], layer: int | None) -> Figure:
    """A line a row: bars for the scores at the deeper layer, and beside them the perplexity."""
    with house_style():
        figure = new_figure(8.6, 1.25 + 0.4 * len(shown))
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 1))
        for axes in (left, right):
            stripes(axes, len(shown))
        score_bars(left, shown, _SCORES)
        _perplexities(right, shown)
        left.set_xlabel("score" + (f" (retrieval and translation: layer {layer})" if layer else ""))
        right.tick_params(axis="y", length=0)
        _legend(figure, any(entry.paper for entry in shown))
        return figure


def score_bars(
    axes: Axes, shown: Sequence[Entry], scores: Sequence[tuple[str, str]], top: float = 1.0
) -> None:
    """Bars for each of a few scores, given with their colours, from 0 to `top`; a line a row."""
    for n, (name, colour) in enumerate(scores):
        _bars(axes, shown, name, colour, (n - (len(scores) - 1) / 2) * _HEIGHT)
    for n, entry in enumerate(shown):
        axes.text(0.01 * top, n, entry.message, va="center", fontsize=8, color="#555555")
    axes.set_yticks(range(len(shown)), [entry.label for entry in shown], fontsize=7.5)
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.set_xlim(0, 1.02 * top)
    axes.grid(axis="x", color=GRID, lw=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)


def stripes(axes: Axes, number: int) -> None:
    """A grey band behind every other row."""
    for n in range(1, number, 2):
        axes.axhspan(n - 0.5, n + 0.5, color="#f4f4f4", lw=0, zorder=0)


def _bars(axes: Axes, shown: Sequence[Entry], name: str, colour: str, place: float) -> None:
    """One score of every row, with whiskers, and the paper's value as a hollow diamond."""
    ours = [(n + place, *entry.ours[name]) for n, entry in enumerate(shown) if name in entry.ours]
    if ours:
        y, mean, sd = np.array(ours).T
        axes.barh(y, mean, 0.9 * _HEIGHT, color=colour, zorder=2)
        _whiskers(axes, y, mean, sd)
    paper = [
        (n + place, entry.paper[name][0]) for n, entry in enumerate(shown) if name in entry.paper
    ]
    _hollow(axes, paper, "white", 13)


def _whiskers(axes: Axes, y: np.ndarray, mean: np.ndarray, sd: np.ndarray) -> None:
    """Standard deviations, of those that are not zero."""
    some = sd > 0
    if some.any():
        axes.errorbar(
            mean[some], y[some], xerr=sd[some],
            fmt="none", ecolor="#D55E00", elinewidth=0.9, capsize=1.5, zorder=3,
        )  # fmt: skip


def _hollow(axes: Axes, paper: Sequence[tuple[float, float]], face: str, size: float) -> None:
    """The paper's values; a face in white can be seen on a dark bar."""
    if paper:
        y, x = np.array(paper).T
        axes.scatter(
            x, y, s=size, marker="D", facecolors=face, edgecolors="black", lw=0.8, zorder=4,
            clip_on=False,
        )  # fmt: skip


def _perplexities(axes: Axes, shown: Sequence[Entry]) -> None:
    known = [(n, *e.ours[_PERPLEXITY]) for n, e in enumerate(shown) if _PERPLEXITY in e.ours]
    if known:
        y, mean, sd = np.array(known).T
        axes.scatter(mean, y, s=12, color=COLOURS[2], zorder=3)
        _whiskers(axes, y, mean, sd)
    paper = [(n, e.paper[_PERPLEXITY][0]) for n, e in enumerate(shown) if _PERPLEXITY in e.paper]
    _hollow(axes, paper, "none", 36)
    both = [entry.ours for entry in shown] + [entry.paper for entry in shown]
    values = [found[_PERPLEXITY][0] for found in both if _PERPLEXITY in found]
    perplexity_axis(axes, round_limits(values), "x")
    axes.set_xlabel("train perplexity")
    axes.set_axisbelow(True)


def _legend(figure: Figure, has_paper: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Patch | Line2D] = [Patch(color=colour, label=name) for name, colour in _SCORES]
    handles.append(Line2D([], [], marker="o", ls="", color=COLOURS[2], ms=4, label="perplexity"))
    if has_paper:
        handles.append(
            Line2D([], [], marker="D", ls="", ms=4, mfc="white", mec="black", label="the paper's")
        )
    figure.legend(handles=handles, ncols=5, loc="outside upper center")

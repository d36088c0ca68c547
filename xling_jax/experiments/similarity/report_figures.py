"""Figures of a run of `similarity`: W&C Figures 4, 6 and 7 with the rows that a run has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from xling_jax.experiments.fake_english.report_comparisons import Line, Score
from xling_jax.experiments.fake_english.report_overview import Entry
from xling_jax.experiments.similarity.report_pairs import Pair
from xling_jax.report.cells import ABSENT, score
from xling_jax.report.figures import COLOURS, house_style, new_figure
from xling_jax.report.formats import cut
from xling_jax.report.rows import Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SCORES = (
    Score("words", "embeddings of single-piece words", COLOURS[0]),
    Score("static", "static vectors of the same words", COLOURS[5]),
)
OTHERS = "other rows"
_GAP = 0.25  # between blocks and above the averages, in cells
_CELL, _CELL_HEIGHT = 0.56, 0.3  # inches
_LONG = 8  # labels with more characters are turned
_LABEL = 26


class Column(NamedTuple):
    """A column of the heat table: a pair's label, its values by layer, and their mean."""

    label: str
    layers: Mapping[int, float]
    mean: float | None


def blocks(by_kind: Mapping[str, Sequence[Pair]]) -> dict[str, list[Column]]:
    """CKA of every pair of each kind; empty if none was measured."""
    found = {
        kind or OTHERS: [Column(p.label, p.layers("cka"), p.metrics.get("cka")) for p in pairs]
        for kind, pairs in by_kind.items()
    }
    return found if any(c.layers for columns in found.values() for c in columns) else {}


def _edges(sizes: Sequence[int]) -> list[float]:
    """Where cells begin and end that lie in blocks of these sizes with gaps between."""
    found, place = [0.0], 0.0
    for number, size in enumerate(sizes):
        if number:
            place += _GAP
            found.append(place)
        for _ in range(size):
            place += 1
            found.append(place)
    return found


def _grid(columns: Sequence[Column], layers: Sequence[int]) -> np.ndarray:
    """The values `[layers + 1, columns]`, the means last; NaN where there is none."""
    by_column = [[*(c.layers.get(n) for n in layers), c.mean] for c in columns]
    return np.array(by_column, float).T


def heat(shown: Mapping[str, Sequence[Column]]) -> Figure:
    """W&C Figure 7: layers and their mean over pairs of models, a block for each kind of pair."""
    columns = [column for own in shown.values() for column in own]
    layers = sorted({layer for column in columns for layer in column.layers})
    sizes = [len(own) for own in shown.values()]
    x, y = _edges(sizes), _edges([len(layers), 1])
    values = _grid(columns, layers)
    starts = np.cumsum(sizes[:-1], dtype=int)
    # The gaps are columns and a row of their own, without values.
    spaced = np.insert(np.insert(values, starts, np.nan, axis=1), len(layers), np.nan, axis=0)
    labels = [cut(column.label, _LABEL) for column in columns]
    turned = max(map(len, labels)) > _LONG
    below = 0.45 + (0.05 * max(map(len, labels)) if turned else 0)
    with house_style():
        width, height = 0.9 + _CELL * x[-1], 0.4 + _CELL_HEIGHT * y[-1] + below
        figure = new_figure(max(4.2, width), height)
        axes = figure.subplots()
        axes.pcolormesh(
            x, y, np.ma.masked_invalid(spaced), cmap="Blues", vmin=0, vmax=1,
            edgecolors="white", lw=0.8,
        )  # fmt: skip
        places = [place + 0.5 for place, keep in zip(x, _is_cell(x), strict=False) if keep]
        rows = [place + 0.5 for place, keep in zip(y, _is_cell(y), strict=False) if keep]
        _numbers(axes, values, places, rows)
        for start, (kind, own) in zip([0, *starts], shown.items(), strict=True):
            middle = (places[start] + places[start + len(own) - 1]) / 2
            axes.text(middle, -0.2, kind, ha="center", va="bottom", fontweight="bold")
        axes.set_xticks(places, labels, fontsize=8)
        if turned:
            for label in axes.get_xticklabels():
                label.set(rotation=35, ha="right", rotation_mode="anchor")
        axes.set_yticks(rows, [*(f"L{layer}" for layer in layers), "mean"], fontsize=8)
        axes.set_ylim(y[-1], 0)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        return figure


def _is_cell(edges: Sequence[float]) -> list[bool]:
    """Which of the spaces between edges are cells, not gaps."""
    return [bool(size > 0.5) for size in np.diff(edges)]


def _numbers(
    axes: Axes, values: np.ndarray, places: Sequence[float], rows: Sequence[float]
) -> None:
    """Writes every value into its cell, a dash where there is none."""
    for row, own in zip(rows, values, strict=True):
        for place, value in zip(places, own, strict=True):
            colour = "white" if value > 0.7 else "#222222"
            text = ABSENT if np.isnan(value) else score(float(value))
            axes.text(place, row, text, ha="center", va="center", color=colour, fontsize=8)


def lines(
    by_kind: Mapping[str, Sequence[Pair]], measures: Mapping[str, tuple[str, str]]
) -> list[Line]:
    """Curves over layers, `Line.curves` by kind of pair: a line for each pair and measure.

    Args:
      by_kind: the pairs.
      measures: start and end of metrics' names, by what is said of a line after its pair. Those
        of one pair share a colour.
    """
    labels = list(dict.fromkeys(pair.label for pairs in by_kind.values() for pair in pairs))
    found = []
    for number, (said, (start, end)) in enumerate(measures.items()):
        for place, label in enumerate(labels):
            curves = {
                kind or OTHERS: Curve(list(values), list(values.values()), [0.0] * len(values))
                for kind, pairs in by_kind.items()
                for pair in pairs
                if pair.label == label and (values := pair.layers(start, end))
            }
            if curves:
                colour = place % len(COLOURS) + number * len(COLOURS)
                found.append(Line(f"{label}{said}", colour, curves))
    return found


def panels(shown: Sequence[Line]) -> dict[str, str]:
    """The kinds that any line has a curve of, each its own title."""
    return {kind: kind for line in shown for kind in line.curves}


def entries(pairs: Sequence[Pair]) -> list[Entry]:
    """Word translation of every row that has any."""
    found = []
    for pair in pairs:
        ours = {s.name: (pair.metrics[f"{s.name}_p1"], 0.0) for s in SCORES
                if f"{s.name}_p1" in pair.metrics}  # fmt: skip
        if ours:
            found.append(Entry(cut(pair.row, _LABEL), ours, {}, ""))
    return found

"""The report of a run of `similarity`: Wu, Conneau et al. 2020, §5, Figures 4, 6 and 7."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from xling_jax.evaluators.registry import CUTOFFS
from xling_jax.experiments.similarity import claims, rows
from xling_jax.experiments.similarity.rows import Pair
from xling_jax.report import figures, page, table
from xling_jax.report.claims import Verdicts
from xling_jax.report.figures import Entry, Line, Score
from xling_jax.report.frame import Measure, Run, curve_of, decoded
from xling_jax.report.gallery import Card, Gallery
from xling_jax.report.prose import plural
from xling_jax.report.table import Column, Table, share

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OTHERS = "other rows"
_CELL, _CELL_HEIGHT = 0.56, 0.3  # inches
_TURNED = 8  # labels with more characters are turned
_SCORES = (
    Score("words_p1", "embeddings of single-piece words", figures.COLOURS[0]),
    Score("static_p1", "static vectors of the same words", figures.COLOURS[5]),
)
_SIZES = {
    "learned": "pairs of sentences for CKA and maps",
    "tested": "for retrieval",
    "contexts": "sentences of each language for words in context",
}


def write(workdir: Path) -> str:
    """Writes the report of a run, ended or not; returns the summary and the claims as text."""
    run = Run(workdir)
    found, order = rows.pairs(run), rows.languages(run)
    verdicts = Verdicts(claims.decide(found, order))
    shown, said = summary(run, found), _texts(run, found)
    by_layer = {each.name: each for each in layer_tables(run, found)
                if any(line.cells for line in each.lines)}  # fmt: skip
    gallery = Gallery(workdir / "report" / "figures")
    kinds = rows.by_kind(found, order)
    retrieval = lines(kinds, {"": ("sentences", ""), ", no map": ("unmapped", "")})
    sections: dict[str, list[Any]] = {
        "Results": [shown, shown.notes, page.all_metrics(run)],
        "Claims": [verdicts] if found else [],
    }
    for heading, cards, names in (
        ("Similarity of layers", _heat(kinds, gallery), ["cka"]),
        ("Sentences", _curves(gallery, "sentences", "Sentence retrieval by layer", retrieval),
         ["sentences"]),
        ("Words", _words(found, kinds, gallery), ["words", "words_by_layer"]),
    ):  # fmt: skip
        sections[heading] = [page.Figures(said[heading], cards), *map(by_layer.get, names)]
    sections["What was run"] = page.settings(run)
    table.write(by_layer.values(), workdir / "report" / "tables")
    return page.write(run, _state(run), sections, [shown], verdicts)


def _state(run: Run) -> str:
    """How far the run is, its languages, and how much text is read at most."""
    parts = [page.progress(run)]
    if found := rows.languages(run):
        parts.append(f"{plural('Language', found)}.")
    sizes = [f"{number:,.0f} {what}" for name, what in _SIZES.items()
             if (number := run.setting("sentences", name)) is not None]  # fmt: skip
    return " ".join([*parts, *([f"At most {', '.join(sizes)}."] if sizes else [])])


def _texts(run: Run, found: Sequence[Pair]) -> dict[str, list[str]]:
    """Everything there is to say about rows, the measures that they have, and the figures."""
    return page.said(
        __file__,
        list(run.rows.values()),
        kinds={pair.kind for pair in found},
        has_other_seed=any(pair.row == rows.OTHER_SEED for pair in found),
        measures={name.split("_")[0] for pair in found for name in pair.metrics},
        has_static_in_context=any("context_static_p1" in pair.metrics for pair in found),
        candidates=sorted({f"{number.mean:,.0f}" for pair in found
                           if (number := pair.metrics.get("retrieval_candidates"))}),
        cut=_shares(found, "retrieval_cut"),
        repeated=_shares(found, "retrieval_repeated"),
        empty=[pair.row for pair in found if pair.has_ended and not pair.metrics],
    )  # fmt: skip


def _shares(found: Sequence[Pair], metric: str) -> list[str]:
    """The shares of sentences that a metric gives, by row."""
    shares = ((pair.row, pair.metrics.get(metric)) for pair in found)
    return [f"{100 * share.mean:.3g} % ({row})" for row, share in shares if share]


def _line(run: Run, pair: Pair, values: Mapping[str, Measure], description: str = "") -> table.Line:
    line = table.row_line(run, run.rows[pair.row])
    message = line.message or ("" if values else table.NOT_MEASURED)
    return replace(line, description=description or line.description, cells=values, message=message)


def summary(run: Run, found: Sequence[Pair]) -> Table:
    """A line for each row: mean CKA, retrieval and translation at their best layers, and the
    correlation."""
    depths = {max(layers) for pair in found if (layers := pair.layers("cka"))}
    last = f"L{depths.pop()}" if len(depths) == 1 else "last"
    columns = table.columns(__file__, "similarity", last=last)
    lines = [_line(run, pair, _summarised(pair)) for pair in found]
    made = Table("similarity", "Pairs of models", "means and best layers", columns, lines)
    return made.those_present(_texts(run, found)["Notes"])


def _summarised(pair: Pair) -> dict[str, Measure]:
    stored = (
        "cka",
        "cka_0",
        "words_p1",
        "words_covered",
        "static_p1",
        "context_static_p1",
        "pearson",
    )
    values = _some(pair, stored)
    if layers := pair.layers("cka"):
        values["cka_last"] = layers[max(layers)]
    for name, end in (("sentences", ""), ("unmapped", ""), ("context", "p1")):
        if own := pair.layers(name, end):
            layer = rows.best({n: each.mean for n, each in own.items()})
            values |= {f"{name}_best_layer": Measure(layer), f"{name}_best": own[layer]}
    if covered := pair.layers("context", "covered"):
        values["context_covered"] = covered[max(covered)]
    return values


def layer_tables(run: Run, found: Sequence[Pair]) -> list[Table]:
    """Tables of CKA, sentence retrieval, single-piece words and words in context (W&C Figures 7, 6,
    4a and 4b)."""
    cka = [_line(run, pair, _cka(pair)) for pair in found]
    maps = {"with a map": ("sentences", ""), "without a map": ("unmapped", "")}
    retrieval = _measures(run, found, maps)
    context = _measures(run, found, {f"P@{k}": ("context", f"p{k}") for k in CUTOFFS})
    columns = table.columns(__file__, "words")
    names = [column.metric for column in columns]
    words = [_line(run, pair, _some(pair, names)) for pair in found]
    what, mean = "Word translation", Column("mean", "mean", share)
    return [
        Table("cka", "CKA", "by layer", [*_columns(cka), mean], cka),
        Table("sentences", "Sentence retrieval", "P@1 by layer, mean of both directions",
              _columns(retrieval), retrieval),
        Table("words", what, "words that are one piece", columns, words).those_present(),
        Table("words_by_layer", what, "words in context, by layer", _columns(context), context),
    ]  # fmt: skip


def _some(pair: Pair, names: Iterable[str]) -> dict[str, Measure]:
    return {name: pair.metrics[name] for name in names if name in pair.metrics}


def _over_layers(pair: Pair, start: str, end: str) -> dict[int, Measure]:
    """A measure at every layer; one that has no layers is the same at all of them."""
    if value := pair.metrics.get(f"{start}_{end}"):
        every = {layer for name in pair.metrics if isinstance(layer := decoded(name).layer, int)}
        return dict.fromkeys(sorted(every), value)
    return pair.layers(start, end)


def _by_layer(pair: Pair, start: str, end: str = "") -> dict[str, Measure]:
    return {table.layer(layer): value for layer, value in pair.layers(start, end).items()}


def _cka(pair: Pair) -> dict[str, Measure]:
    """CKA by `L0`, `L1`, … and their `mean`."""
    mean = {"mean": pair.metrics["cka"]} if "cka" in pair.metrics else {}
    return _by_layer(pair, "cka") | mean


def _layers(every: Iterable[Mapping[str, Any]]) -> list[str]:
    """The layers that have a value anywhere, in order."""
    return sorted({n for each in every for n in each} - {"mean"}, key=lambda n: int(n[1:]))


def _columns(lines: Sequence[table.Line]) -> list[Column]:
    """A column for each layer."""
    return [Column(name, name, share) for name in _layers(line.cells for line in lines)]


def _measures(
    run: Run, found: Sequence[Pair], measures: Mapping[str, tuple[str, str]]
) -> list[table.Line]:
    """For each pair, a line for each measure that it has, or one without values.

    `measures` are given by title, as the start and the end of metrics' names.
    """
    lines = []
    for pair in found:
        values = {title: _by_layer(pair, *measure) for title, measure in measures.items()}
        own = [_line(run, pair, each, title) for title, each in values.items() if each]
        lines += own or [_line(run, pair, {})]
    return lines


Cells = tuple[str, Mapping[str, float]]  # of a pair: its label, and the means of `_cka`


def blocks(kinds: Mapping[str, Sequence[Pair]]) -> dict[str, list[Cells]]:
    """CKA of every pair of each kind."""
    return {
        kind or OTHERS: [(p.label, {n: each.mean for n, each in _cka(p).items()}) for p in own]
        for kind, own in kinds.items()
    }


def heat(shown: Mapping[str, Sequence[Cells]]) -> Figure:
    """W&C Figure 7: layers and their mean over pairs of models, a block for each kind of pair."""
    every = [cells for own in shown.values() for cells in own]
    layers = _layers(values for _, values in every)
    longest = max(len(part) for label, _ in every for part in figures.wrapped(label).split("\n"))
    turned: dict[str, Any] = (
        {"rotation": 60, "ha": "right", "rotation_mode": "anchor"} if longest > _TURNED else {}
    )
    with figures.house_style():
        height = 1.1 + _CELL_HEIGHT * len(layers) + 0.06 * longest * bool(turned)
        figure = figures.new_figure(
            max(4.2, 0.9 + _CELL * (len(every) + 0.25 * len(shown))), height
        )
        grid = figure.subplots(
            2, len(shown), squeeze=False, sharex="col", sharey="row",
            width_ratios=[len(own) for own in shown.values()],
            height_ratios=(max(len(layers), 1), 1),
        )  # fmt: skip
        for (kind, own), column in zip(shown.items(), grid.T, strict=True):
            column[0].set_title(kind, fontweight="bold")
            labels = [figures.wrapped(label) for label, _ in own]
            for axes, names in zip(column, (layers, ["mean"]), strict=True):
                values = np.array([[found.get(n, np.nan) for _, found in own] for n in names])
                values = values.reshape(len(names), len(own))
                figures.cells(axes, values, labels, names, **turned)
        return figure


def _heat(kinds: Mapping[str, Sequence[Pair]], gallery: Gallery) -> list[Card]:
    shown = blocks(kinds)
    every = [values for own in shown.values() for _, values in own]
    wide = len(every) > 6
    return gallery.card("cka", "CKA of every layer", heat, shown, wide=wide) if any(every) else []


def lines(
    kinds: Mapping[str, Sequence[Pair]], measures: Mapping[str, tuple[str, str]]
) -> list[Line]:
    """Curves over layers, `Line.curves` by kind of pair: a line for each pair and measure.

    Args:
      kinds: the pairs.
      measures: start and end of metrics' names, by what follows the pair in a line's label. Lines
        of one pair share a colour.
    """
    labels = list(dict.fromkeys(pair.label for own in kinds.values() for pair in own))
    colours, found = len(figures.COLOURS), []
    for number, (said, (start, end)) in enumerate(measures.items()):
        for place, label in enumerate(labels):
            curves = {
                kind or OTHERS: curve_of(values)
                for kind, own in kinds.items()
                for pair in own
                if pair.label == label and (values := _over_layers(pair, start, end))
            }
            if curves:
                turn, colour = divmod(place, colours)
                style = colour + colours * (turn * len(measures) + number)
                found.append(Line(f"{label}{said}", style, curves))
    return found


def _curves(gallery: Gallery, name: str, alt: str, found: Sequence[Line]) -> list[Card]:
    kinds = {kind: kind for line in found for kind in line.curves}
    return gallery.curves(name, alt, found, kinds, "layer")


def _words(
    found: Sequence[Pair], kinds: Mapping[str, Sequence[Pair]], gallery: Gallery
) -> list[Card]:
    scores = [score.name for score in _SCORES]
    entries = [Entry(figures.wrapped(pair.row), own) for pair in found
               if (own := _some(pair, scores))]  # fmt: skip
    alt, cards = "Translation of words that are one piece", list[Card]()
    if entries:
        cards += gallery.card("words", alt, figures.bars, entries, _SCORES, "P@1", wide=True)
    alt = "Translation of words in context by layer"
    measures = {"": ("context", "p1"), ", static": ("context_static", "p1")}
    return cards + _curves(gallery, "words_by_layer", alt, lines(kinds, measures))

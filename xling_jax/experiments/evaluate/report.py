"""The report of a run of `evaluate`: models ranked, and their languages pair by pair."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from xling_jax.evaluators.registry import EVALUATORS, OF_ENCODERS
from xling_jax.files import write_beside
from xling_jax.report import figures, page, table
from xling_jax.report.figures import Line
from xling_jax.report.frame import (
    Measure,
    Metric,
    Row,
    Run,
    by_language,
    by_layer,
    curve_of,
    decoded,
    minus,
)
from xling_jax.report.gallery import Card, Gallery
from xling_jax.report.table import Column, Table, share

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# What models are ranked by: the first of these that all have.
RANKED_BY = ("retrieval", "mrr", "csls", "centred", "mapped", "cka", "words", "translation",
             "alignment_f1")  # fmt: skip
_CURVES = {
    "retrieval": "retrieval", "centred": "centred", "csls": "CSLS", "mapped": "after a map",
    "cka": "CKA", "words": "words", "alignment_f1": "alignment F1",
}  # fmt: skip
_CURVES |= {
    name: each.heading or each.title
    for name, each in EVALUATORS.items()
    if name in OF_ENCODERS and each.layers and name not in ("mrr", "translation", *_CURVES)
}
_MAPS = {"retrieval": "Sentence retrieval", "cka": "CKA"}
_CELL = 0.42  # inches
_ACROSS = 5  # layers of a figure side by side


def write(workdir: Path) -> str:
    """Writes the report of a run, ended or not; returns the tables of models and pairs as text."""
    run = Run(workdir)
    by, ranked = _ranked(run)
    models, pairs = _models(run, ranked), _pairs(ranked)
    said, gallery = _texts(run, by, ranked), Gallery(workdir / "report" / "figures")
    spread = "sd" if _has_seeds(run) else "half_interval"
    models, pairs = (replace(each, spread=spread) for each in (models, pairs))
    layers = [_layers(ranked, metric, title) for metric, title in _CURVES.items()]
    layers = [replace(each, spread=spread) for each in layers if each.lines]
    shown = models.those_present(said["Notes"]), pairs.those_present()
    cards = {
        "Layers": _curves(gallery, ranked),
        "Pairs of languages": _maps(gallery, ranked, run) + _pair_curves(gallery, ranked),
        "How near languages are": _trees(gallery, ranked, run),
    }
    drawn = {heading: page.Figures(said[heading], own) for heading, own in cards.items()}
    sections: dict[str, Sequence[Any]] = {
        "Models": [shown[0], shown[0].notes],
        "Layers": [drawn["Layers"], *layers],
        "Pairs of languages": [drawn["Pairs of languages"], shown[1]],
        "How near languages are": [drawn["How near languages are"]],
        "What was run": page.settings(run),
    }
    table.write(layers, workdir / "report" / "tables")
    _write_all(run)
    return page.write(run, page.progress(run), sections, shown)


@dataclass(frozen=True)
class Model:
    """A row with its numbers, and the layer at which it is best; None if it is not ranked.

    numbers: by name, with their spread over seeds or, where no row has several, half the width of
    their intervals.
    """

    row: Row
    layer: int | None
    numbers: Mapping[str, Measure]

    @property
    def name(self) -> str:
        return self.row.name

    @property
    def pairs(self) -> list[str]:
        """The pairs of languages that it has numbers of."""
        found = (decoded(name).language for name in self.numbers)
        return list(dict.fromkeys(name for name in found if "-" in name))


def _ranked(run: Run) -> tuple[str, list[Model]]:
    """The metric by which models are ranked, "" if none, and the models, the best one first."""
    rows = [row for row in run.rows.values() if row.metrics]
    by = next((x for x in RANKED_BY if all(by_layer(row.metrics, x) for row in rows)), "")
    found = []
    for row in rows:
        layers = by_layer(row.metrics, by)
        best = max(layers, key=lambda layer: (layers[layer].mean, -layer), default=None)
        numbers = row.metrics if _has_seeds(run) else _with_intervals(row.metrics)
        found.append((layers[best].mean if best is not None else 0, Model(row, best, numbers)))
    return by, [model for _, model in sorted(found, key=lambda each: -each[0])]


def _has_seeds(run: Run) -> bool:
    """Whether ± is the spread over seeds, and not half the width of an interval."""
    return any(len(row.seeds) > 1 for row in run.rows.values())


def _with_intervals(metrics: Mapping[str, Measure]) -> dict[str, Measure]:
    found = dict(metrics)
    for name, measure in metrics.items():
        low, high = (metrics.get(f"{name}_{end}") for end in ("low", "high"))
        if low and high:
            found[name] = replace(measure, sd=(high.mean - low.mean) / 2)
    return found


def _cells(model: Model, pair: str = "") -> dict[str, Measure]:
    """A model's numbers at its best layer: those of a pair, or the means over all pairs."""
    found = {"layer": Measure(model.layer)} if model.layer is not None else {}
    for name in OF_ENCODERS:
        layer = model.layer if EVALUATORS[name].layers else ""
        key = str(Metric(name, pair, layer)) if layer is not None else ""
        if key in model.numbers:
            found[name] = model.numbers[key]
    if {"centred", "retrieval"} <= set(found):
        found["gain"] = replace(minus(found["centred"], found["retrieval"]), sd=None)
    return found


def _columns() -> list[Column]:
    """The columns of `tables.csv`, and of everything else that is measured of encoders."""
    own = table.columns(__file__, "models")
    known = {column.metric for column in own}
    return own + [Column.of(name) for name in OF_ENCODERS if name not in known]


def _models(run: Run, ranked: Sequence[Model]) -> Table:
    """A line for each model, the best one first; those that are not evaluated yet follow."""
    lines = [replace(table.row_line(run, each.row), cells=_cells(each)) for each in ranked]
    lines += [table.row_line(run, row) for row in run.rows.values() if not row.metrics]
    caption = "means over pairs of languages at the best layer"
    return Table("models", "Models", caption, _columns(), lines)


def _pairs(ranked: Sequence[Model]) -> Table:
    lines = [
        table.Line(model.name, pair, _cells(model, pair))
        for model in ranked
        for pair in model.pairs
    ]
    columns = [column for column in _columns() if column.metric != "layer"]
    return Table("pairs", "Pairs of languages", "at the model's best layer", columns, lines)


def _layers(ranked: Sequence[Model], metric: str, title: str) -> Table:
    lines = []
    for model in ranked:
        if cells := {f"L{n}": own for n, own in by_layer(model.numbers, metric).items()}:
            lines.append(table.Line(model.name, model.row.description, cells))
    names = sorted({name for line in lines for name in line.cells}, key=lambda name: int(name[1:]))
    columns = [Column(name, name, share) for name in names]
    heading = title[0].upper() + title[1:]
    return Table(f"layers_{metric}", heading, "by layer, means over pairs", columns, lines)


def _texts(run: Run, by: str, ranked: Sequence[Model]) -> dict[str, list[str]]:
    measured = [name for model in ranked for name in model.numbers]
    return page.said(
        __file__,
        list(run.rows.values()),
        measured,
        measures={decoded(name).name for name in measured},
        layer_from=EVALUATORS[by].title if by else "",
        has_seeds=_has_seeds(run),
        has_intervals=any(name.endswith("_low") for name in measured),
        masked_every=f"{run.setting('perplexity', 'masked_every') or 0:.0f}",
        coverage=_coverage(ranked),
        candidates=sorted({f"{number.mean:,.0f}" for model in ranked
                           if (number := model.row.metrics.get("retrieval_candidates"))}),
        cut=_shares(ranked, "retrieval_cut"),
        repeated=_shares(ranked, "retrieval_repeated"),
    )  # fmt: skip


def _coverage(ranked: Sequence[Model]) -> list[str]:
    """How many words of the dictionary of each pair are measured, by model."""
    found = []
    for model in ranked:
        for pair in model.pairs:
            names = [str(Metric("words", pair, part=x)) for x in ("covered", "words", "alike")]
            if {*names} <= {*model.numbers}:
                covered, total, alike = (f"{model.numbers[name].mean:,.0f}" for name in names)
                found.append(f"{covered} of {total} ({model.name}, {pair}), {alike} spelled alike")
    return found


def _shares(models: Sequence[Model], metric: str) -> list[str]:
    """The shares of sentences that a metric gives, by model and language, without zeros."""
    found = []
    for model in models:
        shares = by_language(model.row.metrics, metric)
        found += [f"{100 * share.mean:.3g} % ({model.name}, {language})"
                  for language, share in shares.items() if share.mean]  # fmt: skip
    return found


def _lines(models: Sequence[tuple[str, Model, str]]) -> list[Line]:
    """A line for each (label, model, pair)."""
    found = []
    for number, (label, model, pair) in enumerate(models):
        curves = {name: curve_of(values) for name in _CURVES
                  if (values := by_layer(model.numbers, name, pair))}  # fmt: skip
        if curves:
            found.append(Line(label, number, curves))
    return found


def _curves(gallery: Gallery, ranked: Sequence[Model]) -> list[Card]:
    lines = _lines([(model.name, model, "") for model in ranked])
    return gallery.curves("layers", "Scores by layer", lines, _CURVES, "layer")


def _pair_curves(gallery: Gallery, ranked: Sequence[Model]) -> list[Card]:
    """A figure for each model with several pairs."""
    cards = list[Card]()
    for model in ranked:
        if len(model.pairs) > 1:
            lines = _lines([(pair, model, pair) for pair in model.pairs])
            alt = f"{model.name}: scores of pairs by layer"
            cards += gallery.curves(f"pairs_{model.name}", alt, lines, _CURVES, "layer")
    return cards


def _matrix(model: Model, metric: str, layer: int, names: Sequence[str]) -> np.ndarray:
    """A metric of all pairs [n, n], NaN where there is none; for retrieval, rows are the languages
    of the queries."""
    found = np.full((len(names), len(names)), np.nan)
    for (i, first), (j, second) in itertools.combinations(enumerate(names), 2):
        for place, part in (((i, j), "forward"), ((j, i), "backward")):
            part = part if metric == "retrieval" else ""
            name = str(Metric(metric, f"{first}-{second}", layer, part))
            if name in model.numbers:
                found[place] = model.numbers[name].mean
    return found


def heat(
    title: str, names: Sequence[str], by_layer: Mapping[int, Sequence[Sequence[float]]]
) -> Figure:
    """Languages by languages, a panel for each layer."""
    across = min(_ACROSS, len(by_layer))
    down = -(-len(by_layer) // across)
    side = _CELL * len(names)
    with figures.house_style():
        figure = figures.new_figure(across * (side + 0.5) + 0.4, down * (side + 0.6) + 0.4)
        panels = figure.subplots(down, across, squeeze=False, sharex=True, sharey=True).ravel()
        for axes, (layer, rows) in zip(panels, by_layer.items(), strict=False):
            figures.cells(axes, np.array(rows, float), names, names, size=7, absent="")
            axes.set_title(f"L{layer}")
        for axes in panels[len(by_layer) :]:
            axes.axis("off")
        for axes in panels[len(by_layer) - across : len(by_layer)]:
            axes.tick_params(labelbottom=True)
        figure.suptitle(title, x=0.02, ha="left", fontsize="medium")
        return figure


def _maps(gallery: Gallery, ranked: Sequence[Model], run: Run) -> list[Card]:
    names = run.names("languages")
    cards = list[Card]()
    for model, (metric, title) in itertools.product(
        ranked if len(names) > 2 else (), _MAPS.items()
    ):
        layers = by_layer(model.numbers, metric)
        values = {layer: _matrix(model, metric, layer, names).tolist() for layer in layers}
        if values:
            heading = f"{model.name}: {title}"
            cards += gallery.card(
                f"{metric}_{model.name}", heading, heat, heading, names, values, wide=True
            )
    return cards


def tree(title: str, names: Sequence[str], similarity: Sequence[Sequence[float]]) -> Figure:
    """Languages joined by how alike they are, [n, n], the most alike first."""
    from scipy.cluster.hierarchy import dendrogram, linkage
    from scipy.spatial.distance import squareform

    apart = 1 - np.array(similarity, float)
    np.fill_diagonal(apart, 0)
    with figures.house_style():
        figure = figures.new_figure(4.2, 0.9 + 0.3 * len(names))
        axes = figure.subplots()
        dendrogram(
            linkage(squareform(apart, checks=False), "average"), labels=list(names), ax=axes,
            orientation="right", color_threshold=0, above_threshold_color=figures.COLOURS[0],
        )  # fmt: skip
        axes.set_xlim(axes.get_xlim()[::-1])
        axes.yaxis.tick_right()
        axes.spines[["left", "top"]].set_visible(False)
        axes.set_xlabel("1 - CKA")
        axes.set_title(title, loc="left")
        return figure


def _trees(gallery: Gallery, ranked: Sequence[Model], run: Run) -> list[Card]:
    names = run.names("languages")
    cards = list[Card]()
    for model in ranked if len(names) > 2 else ():
        similarity = _matrix(model, "cka", model.layer or 0, names)
        if not np.isnan(similarity[np.triu_indices(len(names), 1)]).any():
            title = f"{model.name}, L{model.layer or 0}"
            inputs = title, names, similarity.tolist()
            cards += gallery.card(f"tree_{model.name}", title, tree, *inputs)
    return cards


def _write_all(run: Run) -> None:
    """Every number of every row and seed, a line each: `tables/scores.csv`."""
    frame = run.results.rename(columns={"language": "languages"})
    columns = ["row", "seed", "metric", "languages", "layer", "part", "value"]
    text = frame.to_csv(columns=columns, index=False, float_format="%.6g", lineterminator="\n")
    write_beside(run.workdir / "report" / "tables" / "scores.csv", text)

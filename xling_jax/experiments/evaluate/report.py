"""The report of a run of `evaluate`: models ranked, and their languages pair by pair."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from xling_jax.evaluators.registry import OF_ENCODERS
from xling_jax.files import write_beside
from xling_jax.report import figures, page, table
from xling_jax.report.figures import Card, Gallery, Line
from xling_jax.report.frame import Curve, Measure, Metric, Row, Run, by_layer, decoded, minus
from xling_jax.report.prose import written
from xling_jax.report.table import Column, Table, score, share

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RANKED_BY = ("retrieval", "cka", "words", "alignment_f1")  # the first of them that there is
_CURVES = {
    "retrieval": "retrieval", "centred": "centred", "csls": "CSLS", "mapped": "after a map",
    "cka": "CKA", "words": "words", "alignment_f1": "alignment F1",
}  # fmt: skip
_MAPS = {"retrieval": "Sentence retrieval", "cka": "CKA"}
_CELL = 0.42  # inches
_ACROSS = 5  # layers of a figure side by side


def write(workdir: Path) -> str:
    """Writes the report of a run, ended or not; returns the tables of models and pairs as text."""
    run = Run(workdir)
    rows = [row for row in run.rows.values() if row.metrics]
    ranked = sorted(rows, key=lambda row: -_best(row)[1])
    models, pairs = _models(run, ranked), _pairs(ranked)
    said, gallery = _texts(run, ranked), Gallery(workdir / "report" / "figures")
    layers = [_layers(ranked, metric, title) for metric, title in _CURVES.items()]
    layers = [each for each in layers if each.lines]
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


def _best(row: Row) -> tuple[int, float, str]:
    """The layer at which a row does best on the average, how well, and by which metric."""
    for name in RANKED_BY:
        if found := by_layer(row.metrics, name):
            layer = max(found, key=lambda layer: (found[layer].mean, -layer))
            return layer, found[layer].mean, name
    return 0, float("nan"), ""


def _measure(row: Row, name: str, pair: str = "", layer: int | str = "") -> Measure | None:
    """A number with its spread over seeds or, of a single seed, half the width of its interval."""
    found = row.metrics.get(str(Metric(name, pair, layer)))
    limits = [row.metrics.get(str(Metric(name, pair, layer, end))) for end in ("low", "high")]
    if found is None or found.sd is not None or None in limits:
        return found
    low, high = (limit.mean for limit in limits if limit)
    return replace(found, sd=(high - low) / 2)


def _cells(row: Row, pair: str = "") -> dict[str, Measure]:
    """Everything at the row's best layer, of a pair or of the mean over all."""
    layer, _, by = _best(row)
    found = {"layer": Measure(layer)} if by else {}
    for name in OF_ENCODERS:
        at = "" if name in ("mu", "pseudo_perplexity") else layer
        if measure := _measure(row, name, pair, at):
            found[name] = measure
    if {"centred", "retrieval"} <= set(found):
        found["gain"] = replace(minus(found["centred"], found["retrieval"]), sd=None)
    return found


def _models(run: Run, ranked: Sequence[Row]) -> Table:
    """A line a model, the best one first; those that are not evaluated yet follow."""
    waiting = [row for row in run.rows.values() if not row.metrics]
    lines = [replace(table.row_line(run, row), cells=_cells(row)) for row in (*ranked, *waiting)]
    columns = table.columns(__file__, "models")
    return Table(
        "models", "Models", "means over pairs of languages at the best layer", columns, lines
    )


def _pairs(ranked: Sequence[Row]) -> Table:
    lines = [
        table.Line(row.name, pair, _cells(row, pair)) for row in ranked for pair in _names(row)
    ]
    columns = [column for column in table.columns(__file__, "models") if column.metric != "layer"]
    return Table("pairs", "Pairs of languages", "at the model's best layer", columns, lines)


def _names(row: Row) -> list[str]:
    """The pairs that a row has numbers of."""
    found = (decoded(name).language for name in row.metrics)
    return list(dict.fromkeys(name for name in found if "-" in name))


def _layers(ranked: Sequence[Row], metric: str, title: str) -> Table:
    lines = []
    for row in ranked:
        found = by_layer(row.metrics, metric)
        cells = {f"L{layer}": _measure(row, metric, layer=layer) for layer in found}
        if cells:
            known = {name: own for name, own in cells.items() if own}
            lines.append(table.Line(row.name, row.description, known))
    names = sorted({name for line in lines for name in line.cells}, key=lambda name: int(name[1:]))
    columns = [Column(name, name, share) for name in names]
    heading = title[0].upper() + title[1:]
    return Table(f"layers_{metric}", heading, "by layer, means over pairs", columns, lines)


def _texts(run: Run, ranked: Sequence[Row]) -> dict[str, list[str]]:
    measures = {decoded(name).name for row in ranked for name in row.metrics}
    by = next((each for row in ranked if (each := _best(row)[2])), "")
    return written(
        __file__,
        measures=measures,
        layer_from={"retrieval": "retrieval", "cka": "CKA", "words": "word translation",
                    "alignment_f1": "alignment"}.get(by, ""),
        has_seeds=any(len(row.seeds) > 1 for row in ranked),
        has_intervals=any(name.endswith("_low") for row in ranked for name in row.metrics),
        masked_every=f"{run.setting('perplexity', 'masked_every') or 0:.0f}",
    )  # fmt: skip


def _curve(row: Row, metric: str, pair: str = "") -> Curve | None:
    layers = by_layer(row.metrics, metric, pair)
    found = [_measure(row, metric, pair, layer) for layer in layers]
    known = [each for each in found if each]
    if not known:
        return None
    return Curve(list(layers), [each.mean for each in known], [each.sd or 0.0 for each in known])


def _lines(rows: Sequence[tuple[str, Row, str]]) -> list[Line]:
    """A line for each (label, row, pair)."""
    found = []
    for number, (label, row, pair) in enumerate(rows):
        curves = {name: curve for name in _CURVES if (curve := _curve(row, name, pair))}
        if curves:
            found.append(Line(label, number, curves))
    return found


def _curves(gallery: Gallery, ranked: Sequence[Row]) -> list[Card]:
    lines = _lines([(row.name, row, "") for row in ranked])
    return gallery.curves("layers", "Scores by layer", lines, _CURVES, "layer")


def _pair_curves(gallery: Gallery, ranked: Sequence[Row]) -> list[Card]:
    """A figure for each model with several pairs."""
    cards = list[Card]()
    for row in ranked:
        if len(_names(row)) > 1:
            lines = _lines([(pair, row, pair) for pair in _names(row)])
            alt = f"{row.name}: scores of pairs by layer"
            cards += gallery.curves(f"pairs_{row.name}", alt, lines, _CURVES, "layer")
    return cards


def _matrix(row: Row, metric: str, layer: int, names: Sequence[str]) -> np.ndarray:
    """Numbers of all pairs [n, n], NaN where there is none; of retrieval, who asks is the row."""
    found = np.full((len(names), len(names)), np.nan)
    for (i, first), (j, second) in itertools.combinations(enumerate(names), 2):
        for place, part in (((i, j), "forward"), ((j, i), "backward")):
            part = part if metric == "retrieval" else ""
            name = str(Metric(metric, f"{first}-{second}", layer, part))
            if name in row.metrics:
                found[place] = row.metrics[name].mean
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
            values = np.array(rows, float)
            axes.pcolormesh(np.ma.masked_invalid(values), cmap="Blues", vmin=0, vmax=1,
                            edgecolors="white", lw=0.8)  # fmt: skip
            for (y, x), value in np.ndenumerate(values):
                if not np.isnan(value):
                    axes.text(x + 0.5, y + 0.5, score(float(value)), ha="center", va="center",
                              fontsize=7, color="white" if value > 0.7 else "#222222")  # fmt: skip
            axes.set_title(f"L{layer}")
            axes.set_xticks(np.arange(len(names)) + 0.5, names)
            axes.set_yticks(np.arange(len(names)) + 0.5, names)
            axes.set_ylim(len(names), 0)
            axes.tick_params(length=0)
            axes.spines[:].set_visible(False)
        for axes in panels[len(by_layer) :]:
            axes.axis("off")
        figure.suptitle(title, x=0.02, ha="left", fontsize="medium")
        return figure


def _maps(gallery: Gallery, ranked: Sequence[Row], run: Run) -> list[Card]:
    names = run.names("languages")
    cards = list[Card]()
    for row, (metric, title) in itertools.product(ranked if len(names) > 2 else (), _MAPS.items()):
        layers = by_layer(row.metrics, metric)
        values = {layer: _matrix(row, metric, layer, names).tolist() for layer in layers}
        if values:
            heading = f"{row.name}: {title}"
            cards += gallery.card(
                f"{metric}_{row.name}", heading, heat, heading, names, values, wide=True
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


def _trees(gallery: Gallery, ranked: Sequence[Row], run: Run) -> list[Card]:
    names = run.names("languages")
    cards = list[Card]()
    for row in ranked if len(names) > 2 else ():
        layer, *_ = _best(row)
        similarity = _matrix(row, "cka", layer, names)
        if not np.isnan(similarity[np.triu_indices(len(names), 1)]).any():
            title = f"{row.name}, L{layer}"
            cards += gallery.card(
                f"tree_{row.name}", title, tree, title, names, similarity.tolist()
            )
    return cards


def _write_all(run: Run) -> None:
    """Every number of every row and seed, a line each: `tables/scores.csv`."""
    header = "row,seed,metric,languages,layer,part,value"
    lines = [
        f"{replica.row},{replica.seed},{said.name},{said.language},{said.layer},{said.part},{value:.6g}"
        for replica in run.replicas
        for name, value in replica.metrics.items()
        for said in (decoded(name),)
    ]
    path = run.workdir / "report" / "tables" / "scores.csv"
    write_beside(path, "\n".join([header, *lines]) + "\n")

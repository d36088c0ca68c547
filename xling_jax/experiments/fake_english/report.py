"""The report of a run of D&S's rows: the paper's tables with our lines, the claims, the figures.

A report has each of the paper's tables, and one for the search of C.3, if the run trained a row of
that table's own; one more table has whatever else was trained.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from xling_jax.corpora.sources import SYNTHETIC
from xling_jax.evaluators.registry import DEEP, EVALUATORS, PIECES, SENTENCES, TOKENS, names
from xling_jax.experiments.fake_english import claims, published
from xling_jax.experiments.fake_english import figures as embeddings
from xling_jax.experiments.fake_english.published import Layout
from xling_jax.files import short_hash, write_beside
from xling_jax.report import figures, frame, page, prose, table
from xling_jax.report.claims import Verdicts
from xling_jax.report.figures import Line, Score
from xling_jax.report.frame import Curve, Run
from xling_jax.report.gallery import Card, Gallery
from xling_jax.report.table import ABSENT, Column, Table
from xling_jax.runs.results import array_files

# The rows that D&S's Figures 6 and 7 show, and two more that §3 contrasts with row 0.
TOLD_APART = ("0", "15", "30", "21", "17")
MOST_ROWS = 6
FEWEST_TRIALS = 3
_SEARCH = published.LAYOUTS[-1]
_OTHERS, _WHOLE = Layout("Other rows"), Layout("Results")
_SCORES = (
    Score(f"retrieval_{DEEP}", "retrieval", figures.COLOURS[0]),
    Score(f"translation_{DEEP}", "translation", figures.COLOURS[5]),
    Score("mu", "mu", "#333333"),
)
_MEASURED = names(SENTENCES, PIECES, TOKENS)  # at layers
_PRINTED = [
    name for name in dict.fromkeys(frame.decoded(each).name for each in published.METRICS)
    if name in _MEASURED
]  # fmt: skip
# The lines of a row's own curves: the metric and a number for colour and dashes. The deeper layer's
# lines are solid and layer 0's dashed; those of metrics that are not the paper's, dotted or
# dash-dotted.
_CURVES = {
    "mu": 3,
    **{
        f"{name}_{layer}": dashes + number + 9 * (name not in _PRINTED)
        for number, name in enumerate(_MEASURED)
        for layer, dashes in ((DEEP, 0), ("0", 6))
    },
}
_FITS = published.CRITERIA


def write(workdir: Path) -> str:
    """Writes the report of a run, ended or not; returns tables, claims and notes as text."""
    run = Run(workdir, published.ORDER)
    gallery = Gallery(workdir / "report" / "figures")
    shown, whole, said = tables(run), whole_table(run), texts(run)
    verdicts = Verdicts(claims.of(run))
    write_beside(workdir / "report" / "tables" / "results.csv", table.to_csv(whole))
    first = page.Figures(said["Overview"], overview(run, gallery))
    sections: dict[str, list[Any]] = {
        "Overview": [first or "Nothing to draw yet."],
        "Results": [*shown, list(whole.notes if shown else ()), page.all_metrics(run)],
        "Claims": [verdicts] if verdicts.decided else [],
        "Search": [page.Figures(said["Search"], _searched(run, gallery))],
        "Training": [page.Figures(said["Training"], training(run, gallery))],
    }
    for heading, name, draw in (
        ("Token embeddings", "tokens", embeddings.token_embeddings),
        ("Position similarities", "positions", embeddings.position_similarity),
    ):
        cards, errors = _stored(run, gallery, name, draw)
        sections[heading] = [page.Figures(said[heading], cards), *errors]
    sections["What was run"] = page.settings(run, run.config.get("vocabulary"))
    text = page.write(run, page.progress(run), sections, shown, verdicts)
    notes = [textwrap.fill(note, table.WIDTH, subsequent_indent="  ") for note in whole.notes]
    return "\n".join([*filter(None, [text]), *notes, ""])


def tables(run: Run) -> list[Table]:
    """The tables of a run, finished or not; rows that are in none of the paper's are
    "Other rows"."""
    trained = run.row_names
    if run.experiment != published.EXPERIMENT:
        return [_table(run, _WHOLE, trained)] if trained else []
    rest = [name for name in trained if name not in published.ORDER]
    tried = [name for name in rest if published.tried(run.description(name))]
    found = []
    for layout in published.LAYOUTS:
        more = tried if layout is _SEARCH else []
        names = [name for name in trained if name in layout.rows] + more
        if set(names) & {*layout.rows[layout.shared :], *more}:
            names = _by_value(run, names) if layout is _SEARCH else names
            found.append(_table(run, layout, names))
    others = [name for name in rest if name not in tried]
    return [*found, _table(run, _OTHERS, others)] if others else found


def whole_table(run: Run) -> Table:
    """Every row of a run once, and beneath it the line of every table that prints it; with columns
    for each language and pair of languages."""
    found = _table(run, _WHOLE, run.row_names)
    metrics = {name: frame.decoded(name) for line in found.lines for name in line.cells}
    own = [Column.of(name) for name, each in metrics.items() if each.language and not each.part]
    return replace(found, columns=[*found.columns, *own])


def _by_value(run: Run, names: Sequence[str]) -> list[str]:
    """The rows of the search: the original, then those of other learning rates, then of other
    epochs, by ascending value."""
    sets = [trial.row.name for own in published.trials(run).values() for trial in own]
    others = [name for name in names if not (
        name in published.SEARCH_ROWS or published.tried(run.description(name)))]  # fmt: skip
    return list(dict.fromkeys([*others, *(name for name in sets if name in names), *names]))


def _table(run: Run, layout: Layout, names: Sequence[str]) -> Table:
    best = published.best(run) if layout in (_SEARCH, _WHOLE) else {}
    layouts: Sequence[Layout] = published.LAYOUTS if layout is _WHOLE else (layout,)
    if run.experiment != published.EXPERIMENT:
        layouts = ()
    lines = []
    for name in names:
        row = run.rows[name]
        among = row.metrics.get("retrieval_candidates")
        lines.append(
            replace(
                table.row_line(run, row),
                cells=frame.named_deep(row.metrics, run.layers),
                candidates=f"{among.mean:.0f}" if among else ABSENT,
                best=best.get(name, frozenset()),
                more={"table": "", "deep_layer": frame.deep_layer(row.metrics, run.layers) or ""},
            )
        )
        lines += [each.lines[name] for each in layouts if name in each.lines]
    columns = _columns(run, lines)
    notes = texts(run, names, lines)["Notes"]
    file = layout.title.lower().replace(" ", "")
    return Table(file, layout.title, layout.caption, columns, lines, notes, is_stacked=True)


def _layers(lines: Sequence[table.Line]) -> list[int]:
    """The deeper layers of our lines."""
    layers = {line.more["deep_layer"] for line in lines if line.ours}
    return sorted(layer for layer in layers if layer)


def _columns(run: Run, lines: Sequence[table.Line]) -> list[Column]:
    """Columns for what any line has, and in the paper's own experiment for all that it prints."""
    layers, known = _layers(lines), {name for line in lines for name in line.cells}
    if run.experiment == published.EXPERIMENT:
        known |= {*published.METRICS}
    deep = f"layer {' or '.join(map(str, layers))}" if layers else "deeper layer"
    deep += f" of {run.layers:.0f}" if layers and run.layers else ""
    columns = [Column("mu", "mu")]
    for group, layer in (("layer 0", "0"), (deep, DEEP)):
        columns += [
            Column.of(f"{name}_{layer}", group, *EVALUATORS[name].paper, show=table.score)
            for name in dict.fromkeys([*_PRINTED, *_MEASURED])
            if f"{name}_{layer}" in known
        ]  # fmt: skip
    return columns + [Column.of(name, "perplexity") for name in _FITS if name in known]


def texts(
    run: Run, names: Sequence[str] = (), lines: Sequence[table.Line] = ()
) -> dict[str, list[str]]:
    """Everything there is to say about some rows of a run, their lines in a table, and figures."""
    is_made = run.field("corpora", "train") == SYNTHETIC
    first = run.texts[0] if run.texts else {}  # the training text
    is_the_papers = run.experiment == published.EXPERIMENT
    described = [run.rows[name].description for name in names]
    are_large = ["overparam" in text for text in described]
    sections = ("overparam.",) * (not any(are_large))
    own, usual = (run.field(name, "epochs") for name in ("overparam", "training"))
    are_mixed = any(are_large) and not all(are_large)
    changed = [f"{name} is {ours:g} and not {theirs:g}"
               for name, theirs in published.SETTING.items()
               if not name.startswith(sections)
               and (ours := run.field(*name.split("."))) not in (None, theirs)]  # fmt: skip
    epochs = published.SETTING["training.epochs"]
    if any(are_large) and own and own != epochs:
        changed.append(f"overparam.epochs is {own:g} and not {epochs:g}")
    ours = {line.candidates for line in lines if line.ours}
    return page.said(
        __file__,
        [run.rows[name] for name in names],
        (name for line in lines for name in line.cells),
        paper=published,
        has_best=any(line.best for line in lines),
        has_train=any("perplexity_train" in line.cells for line in lines if line.ours),
        cut=max(
            (x.mean for row in run.rows.values() if (x := row.metrics.get("retrieval_cut"))),
            default=0,
        ),
        scale=run.config.get("scale", "paper"),
        changed=changed if is_the_papers else [],
        is_papers_text=first.get("sentences") == published.TRAINING_SENTENCES and not is_made,
        layers=_layers(lines),
        depth=run.layers,
        among=ours - {ABSENT, str(published.CANDIDATES)},
        printed=list(dict.fromkeys(line.row for line in lines if not line.ours)),
        languages=run.names("corpora", "languages"),
        is_inverted=any("inv-order" in text for text in described),
        is_the_papers=is_the_papers,
        epochs=[own, usual] if are_mixed and own and usual and own != usual else [],
    )


def overview(run: Run, gallery: Gallery) -> list[Card]:
    """D&S Figure 1: the scores and a perplexity of every row."""
    printed = {
        row: {name: x for name, x in line.cells.items()
              if row not in published.REPLACED or name not in _FITS}
        for row in run.row_names
        if (line := published.find(run.experiment, row))
    }  # fmt: skip
    known = {name for row in run.rows.values() for name in row.metrics}
    fit = next((name for name in _FITS if name in known), _FITS[0])
    shown = figures.entries(run, [*(score.name for score in _SCORES), fit], printed)
    layer = frame.deep_layer(known, run.layers)
    where = f"layer {layer}"
    if printed and layer != published.DEEP_LAYER:
        where = f"our {where}, the paper's {published.DEEP_LAYER}"
    below = "score" + (f" (retrieval and translation: {where})" if layer else "")
    inputs = shown, _SCORES, below, fit, 1.0
    alt = f"Every row: scores and {' '.join(reversed(fit.split('_')))}"
    return gallery.card("overview", alt, figures.bars, *inputs, wide=True) if shown else []


def _searched(run: Run, gallery: Gallery) -> list[Card]:
    cards = []
    for name, own in published.trials(run).items():
        if len(own) >= FEWEST_TRIALS and any(trial.row.metrics for trial in own):
            alt = f"Perplexities and mu over {name.replace('-', ' ')}"
            cards += gallery.card(f"search_{name}", alt, embeddings.over_values, name, own)
    return cards


def compared_rows(run: Run) -> list[Line]:
    """The curves of the rows to overlay, over percent of their own training.

    For Fake-English those of `TOLD_APART`, if at least two of them have curves, otherwise the first
    `MOST_ROWS`; none if only one row has a curve.
    """
    found = {}
    for number, row in enumerate(run.row_names):
        by_name = frame.named_deep(run.curves(row), run.layers)
        if (total := run.steps_of(row)) and by_name:
            shares = {
                name: Curve([100 * step / total for step in c.steps], c.mean, c.sd)
                for name, c in by_name.items()
            }
            found[row] = Line(prose.with_description(row, run.description(row)), number, shares)
    told_apart = TOLD_APART if run.experiment == published.EXPERIMENT else ()
    chosen = [row for row in told_apart if row in found]
    chosen = chosen if len(chosen) > 1 else list(found)[:MOST_ROWS]
    return [found[row] for row in chosen] if len(chosen) > 1 else []


def training(run: Run, gallery: Gallery) -> list[Card]:
    """Some rows overlaid, D&S Figure 6 for each row, and the losses; the perplexities of those
    figures share one axis."""
    deep = frame.deep_layer(run.evaluations["name"], run.layers)
    shown = {
        "mu": "mu",
        f"retrieval_{DEEP}": f"retrieval, layer {deep}",
        f"translation_{DEEP}": f"translation, layer {deep}",
        **{name: EVALUATORS[name].title for name in _FITS},
    }
    lines = compared_rows(run)
    alt = f"Rows {', '.join(line.label.split(':')[0] for line in lines)} over training"
    cards = gallery.curves("training", alt, lines, shown, "% of training")
    by_row = {
        row: frame.named_deep(run.curves(row), run.layers)
        for row in run.row_names
        if run.steps_of(row) != 0
    }
    fits = [own[name] for own in by_row.values() for name in _FITS if name in own]
    limits = figures.round_limits(value for curve in fits for value in curve.mean)
    for row, own in by_row.items():
        lines = [Line(_label(name, deep), number, {"score": own[name]})
                 for name, number in _CURVES.items() if name in own]  # fmt: skip
        lines += [Line(EVALUATORS[name].title, 4 + n, {"perplexity": own[name]})
                  for n, name in enumerate(_FITS) if name in own]  # fmt: skip
        if lines:
            shown = {"score": "score", "perplexity": "perplexity"}
            alt = f"Row {row}: scores and perplexities over training"
            cards += gallery.card(f"curves_row{row}", alt, figures.side_by_side, lines, shown,
                                  "training step", 1, _title(run, row), 1.0, limits)  # fmt: skip
    lines = [Line(f"row {row}", number, {"loss": figures.thinned(loss)})
             for number, row in enumerate(run.row_names) if (loss := run.loss(row))]  # fmt: skip
    alt, shown = "Training loss of every row", {"loss": "training loss"}
    return cards + gallery.curves("training_loss", alt, lines, shown, "training step")


def _label(name: str, deep: int | None) -> str:
    metric = frame.decoded(name)
    where = {0: ", layer 0", DEEP: f", layer {deep}"}.get(metric.layer, "")
    return metric.name.removesuffix("_f1") + where


def _title(run: Run, row: str, end: str = "") -> str:
    text = f"Row {prose.with_description(row, run.description(row))}{end}"
    return textwrap.fill(text, 48, break_on_hyphens=False)


def _stored(
    run: Run, gallery: Gallery, name: str, draw: Callable[..., Any]
) -> tuple[list[Card], list[str]]:
    """A card for each row that stored arrays, and the errors of arrays that cannot be read."""
    files = array_files(run.workdir / "arrays")
    languages = list(dict.fromkeys(str(t["language"]) for t in run.texts if t.get("language")))
    cards, errors = list[Card](), list[str]()
    for row in (row for row in run.row_names if row in files):
        seed, path = files[row]
        title = _title(run, row, f" (seed\u00a0{seed})")
        alt = f"Row {row}, seed {seed}: {name.rstrip('s')} embeddings"
        try:
            # A scatter of thousands of points and an image are smaller as png.
            cards += gallery.card(
                f"{name}_row{row}", alt, draw, path, run.identity, title, languages,
                key=[short_hash(path.read_bytes()), title, languages], kind="png",
            )  # fmt: skip
        except ValueError as error:
            errors.append(str(error))
    return cards, errors

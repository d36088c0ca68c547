"""A run's figures, drawn where they are not yet, and set into cards for the page."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from xling_jax.experiments.fake_english import (
    report_comparisons,
    report_embeddings,
    report_overview,
    report_search,
)
from xling_jax.report import figures
from xling_jax.report.cards import NO_MATPLOTLIB, card, quiet, section
from xling_jax.report.drawn import Drawn, digest
from xling_jax.report.rows import Curve, Run, curves, deep_layer
from xling_jax.runs.results import Arrays, array_files, read_arrays

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OVERVIEW = (
    "D&S Figure 1 for every row: means over seeds, whiskers of one standard deviation, hollow "
    "diamonds for the paper's figures."
)
TRAINING = (
    "Mean over seeds, one standard deviation shaded. Seeds that diverged are left out. Rows are "
    "set beside each other as in D&S Figures 6 and 7; then each row by itself, over its own number "
    "of steps."
)
SEARCH = "What D&S chose by perplexity (appendix C.3): every value tried, all else as in row 0."
TOKENS = (
    "Layer 0 (token embeddings) on their first two principal components: all pieces above, "
    "frequent words below, each joined to its counterpart in the other language. One seed a row."
)
POSITIONS = (
    "Cosine similarities of all position embeddings, for rows where every language has its own. "
    "A diagonal in the off-diagonal blocks means that the languages' positions are alike. Late "
    "positions are rarely trained. Colours run from the 1st to the 99.5th percentile off the "
    "diagonal."
)


def draw(run: Run, folder: Path) -> dict[str, str]:
    """Draws and saves what is new among the figures that the run has data for.

    Returns the sections' HTML by heading; one without a figure is empty.
    """
    if find_spec("matplotlib") is None:
        return {"Figures": quiet(NO_MATPLOTLIB)}
    drawn = Drawn(folder)
    names = _languages(run)

    def tokens(arrays: Arrays, title: str) -> Figure:
        return report_embeddings.token_embeddings(arrays, title, names)

    def positions(arrays: Arrays, title: str) -> Figure | None:
        if arrays.position_offset == 0:
            return None
        return report_embeddings.position_similarity(arrays, title, names)

    training = [*_together(run, drawn), *_curves(run, drawn), *_loss(run, drawn)]
    return {
        "Overview": section(OVERVIEW, _overview(run, drawn)) or quiet("Nothing to draw yet."),
        "Search": section(SEARCH, _search(run, drawn)),
        "Training": section(TRAINING, training),
        "Token embeddings": section(TOKENS, _stored(run, drawn, "tokens", tokens)),
        "Position similarities": section(POSITIONS, _stored(run, drawn, "positions", positions)),
    }


def _languages(run: Run) -> list[str]:
    """The languages in the order the texts name them."""
    return list(dict.fromkeys(str(t["language"]) for t in run.texts if t.get("language")))


def _title(run: Run, row: str, end: str = "") -> str:
    description = run.description(row).replace(";", "; ")
    described = bool(description) and description != row
    text = f"Row {row}: {description}" if described else f"Row {row}"
    return textwrap.fill(text + end, 48, break_on_hyphens=False)


def _overview(run: Run, drawn: Drawn) -> list[str]:
    entries = report_overview.entries(run)
    if not entries:
        return []
    layer = deep_layer(name for row in run.row_names() for name in run.row(row).metrics)
    paths = drawn.figure(
        "overview", [entries, layer], lambda: report_overview.overview(entries, layer)
    )
    return [card(paths, "Every row: scores and train perplexity", wide=True)] if paths else []


def _search(run: Run, drawn: Drawn) -> list[str]:
    cards = []
    for name, trials in report_search.series(run).items():
        if not report_comparisons.has_figure(trials):
            continue
        numbers = [(t.value, t.row.metrics, t.row.diverged) for t in trials]
        figure = partial(report_comparisons.over_values, name, trials)
        if paths := drawn.figure(f"search_{name}", numbers, figure):
            cards.append(card(paths, f"Perplexities and mu over {name.replace('-', ' ')}"))
    return cards


def _together(run: Run, drawn: Drawn) -> list[str]:
    by_row = report_comparisons.compared_rows(run)
    if not by_row:
        return []
    names = {row: f"{row}: {run.description(row)}".replace(";", "; ") for row in by_row}
    figure = partial(report_comparisons.over_training, by_row, names)
    paths = drawn.figure("training", [by_row, names], figure)
    alt = f"Rows {', '.join(by_row)} over training"
    return [card(paths, alt, wide=True)] if paths else []


def _curves(run: Run, drawn: Drawn) -> list[str]:
    by_row = {}
    for row in run.row_names():
        found = curves(run.metrics.evaluations, row, run.seeds_diverged(row))
        if found and run.steps_of(row) != 0:
            by_row[row] = found
    limits = figures.round_limits(
        value
        for found in by_row.values()
        for name in ("perplexity_train", "perplexity_dev")
        for value in (found[name].mean if name in found else ())
    )
    cards = []
    for row, found in by_row.items():
        last = max(curve.steps[-1] for curve in found.values())
        inputs = (found, _title(run, row), run.steps_of(row) or last, limits)
        paths = drawn.figure(f"curves_row{row}", inputs, partial(figures.learning_curves, *inputs))
        if paths:
            cards.append(card(paths, f"Row {row}: scores and perplexities over training"))
    return cards


def _loss(run: Run, drawn: Drawn) -> list[str]:
    by_row: dict[str, Curve] = {}
    for row in run.row_names():
        found = curves(run.metrics.training, row, run.seeds_diverged(row))
        if "loss" in found:
            by_row[row] = figures.thinned(found["loss"])
    if not by_row:
        return []
    paths = drawn.figure("training_loss", by_row, partial(figures.training_loss, by_row))
    return [card(paths, "Training loss of every row")] if paths else []


def _stored(
    run: Run, drawn: Drawn, name: str, drawing: Callable[[Arrays, str], Figure | None]
) -> list[str]:
    """A card for each row that stored arrays; one that cannot be read says so in its place."""
    files = array_files(run.workdir / "arrays")
    cards = []
    for row in run.row_names():
        if row not in files:
            continue
        seed, path = files[row]
        title = _title(run, row, f" (seed\u00a0{seed})")
        numbers = [digest(path.read_bytes()), title, _languages(run)]

        def figure(path: Path = path, title: str = title) -> Figure | None:
            return drawing(read_arrays(path, run.identity), title)

        try:
            paths = drawn.figure(f"{name}_row{row}", numbers, figure)
        except ValueError as error:
            cards.append(quiet(str(error)))
            continue
        if paths:
            # A scatter of thousands of points and an image are smaller as png.
            alt = f"Row {row}, seed {seed}: {name.rstrip('s')} embeddings"
            cards.append(card(paths, alt, "png"))
    return cards

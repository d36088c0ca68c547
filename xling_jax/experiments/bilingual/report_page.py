"""The report of a bilingual run: its rows in a table and in figures, on one HTML page."""

from __future__ import annotations

from functools import partial
from html import escape
from importlib.util import find_spec
from pathlib import Path

from xling_jax.experiments.bilingual import report_figures, report_notes
from xling_jax.experiments.bilingual.report_metrics import PERPLEXITY, TASKS, languages
from xling_jax.experiments.fake_english import report_comparisons
from xling_jax.report import document
from xling_jax.report.cards import NO_MATPLOTLIB, card, quiet, section
from xling_jax.report.cells import Table
from xling_jax.report.drawn import Drawn
from xling_jax.report.formats import listed
from xling_jax.report.markup import bullets, results
from xling_jax.report.rows import Run
from xling_jax.report.state import in_training

BARS = (
    "The rows in order: means over layers, languages and seeds, whiskers of one standard "
    "deviation. What is left out has not been evaluated, or has one language alone."
)
LAYERS = (
    "Layer 0 is what the embeddings give. Mean over seeds, one standard deviation shaded; of a row "
    "that still trains, the last evaluation. Rows have the same colours in every figure."
)
TRAINING = (
    "The scores are means over layers and languages. Mean over seeds, one standard deviation "
    "shaded; seeds that diverged are left out. Perplexities of rows with different vocabularies "
    "cannot be compared."
)
_TEXT_FIELDS = ("source", "language", "field", "sha256")


def write(run: Run, table: Table) -> Path:
    """Writes `report/report.html` and `report/figures/` of a run, ended or not; returns the page.

    Only figures whose numbers changed are drawn anew.
    """
    report = run.workdir / "report"
    figures = draw(run, report / "figures")
    nested = run.config.get("config")
    vocabulary = nested.get("vocabulary") if isinstance(nested, dict) else None
    without = report_notes.embedded(run) or "The config names no texts."
    sections = {
        "Overview": figures.pop("Overview", ""),
        "Results": results(table) + bullets(table.notes) + document.all_metrics(run),
        **figures,
        "What was run": document.settings(run, vocabulary, _TEXT_FIELDS, without),
    }
    return document.write(report / "report.html", run, _state(run), sections)


def _state(run: Run) -> str:
    """How far the run is, and of what; beneath it the replicas in training."""
    text = f"{report_notes.sentence(run)} {report_notes.setting(run)}".strip()
    return f'<p class="state">{escape(text)}</p>\n{in_training(run)}'


def draw(run: Run, folder: Path) -> dict[str, str]:
    """Draws and saves what is new among the figures that the run has data for.

    Returns the sections' HTML by heading; one without a figure is empty.
    """
    if find_spec("matplotlib") is None:
        return {"Figures": quiet(NO_MATPLOTLIB)}
    drawn = Drawn(folder)
    return {
        "Overview": section(BARS, _bars(run, drawn)),
        "By layer": section(LAYERS, _by_layer(run, drawn)),
        "Training": section(TRAINING, _training(run, drawn)),
    }


def _bars(run: Run, drawn: Drawn) -> list[str]:
    shown = report_figures.entries(run)
    if not shown:
        return []
    figure = partial(
        report_comparisons.bars, shown, report_figures.SCORES, "score, mean over layers"
    )
    paths = drawn.figure("rows", shown, figure)
    alt = "Every row: sentence retrieval and word translation"
    return [card(paths, alt, wide=True)] if paths else []


def _by_layer(run: Run, drawn: Drawn) -> list[str]:
    cards = []
    for language, lines in report_figures.over_layers(run).items():
        shown = report_figures.panels(lines, TASKS)
        figure = partial(report_comparisons.side_by_side, lines, shown, "layer")
        if paths := drawn.figure(f"layers_{language}", [lines, shown], figure):
            titles = listed(list(shown.values()))
            alt = f"{titles[:1].upper()}{titles[1:]} by layer: {language}"
            cards.append(card(paths, alt, wide=len(shown) > 1))
    return cards


def _training(run: Run, drawn: Drawn) -> list[str]:
    lines = report_figures.over_training(run)
    if not lines:
        return []
    order = [*TASKS, *(f"{PERPLEXITY}_{name}" for name in languages(run))]
    shown = report_figures.panels(lines, order)
    figure = partial(report_comparisons.side_by_side, lines, shown, "training step")
    paths = drawn.figure("training", [lines, shown], figure)
    return [card(paths, "Every row over training", wide=len(shown) > 1)] if paths else []

"""The report of a run of `similarity` as one HTML page with its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from html import escape
from importlib.util import find_spec
from pathlib import Path

from xling_jax.experiments.fake_english import report_comparisons
from xling_jax.experiments.fake_english.report_comparisons import Line
from xling_jax.experiments.similarity import report_figures, report_notes
from xling_jax.experiments.similarity.report_pairs import Pair, by_kind, languages
from xling_jax.report import document, verdicts
from xling_jax.report.cards import NO_MATPLOTLIB, card, quiet, section
from xling_jax.report.cells import Table
from xling_jax.report.claims import Decided
from xling_jax.report.drawn import Drawn
from xling_jax.report.markup import bullets, grid
from xling_jax.report.printed import own_cells
from xling_jax.report.rows import Run

SIMILARITY = (
    "W&C Figure 7: CKA of every layer and their mean; the colours run from 0 to 1 in every run. A "
    "dash stands for what was not measured."
)
SENTENCES = (
    "W&C Figure 6: P@1 over layers, mean of both directions; dashed without a map. Languages have "
    "the same colours in all panels."
)
WORDS = (
    "W&C Figure 4: above P@1 of words that are one piece (4a), below of words in context over "
    "layers (4b). The two have different words to choose from, so their heights cannot be compared."
)
_TEXT_FIELDS = ("source", "language", "field", "sha256")
_NO_MAP = ", no map"


def write(
    run: Run, pairs: Sequence[Pair], tables: Mapping[str, Table], decided: Sequence[Decided]
) -> Path:
    """Writes `report/report.html` and `report/figures/` of a run, ended or not; returns the page.

    Only figures whose numbers changed are drawn anew.

    Args:
      run: the run.
      pairs: its rows.
      tables: those with numbers, and the summary, by name.
      decided: the claims.
    """
    report = run.workdir / "report"
    figures = draw(pairs, languages(run), report / "figures")
    summary = tables["similarity"]
    sections = {
        "Results": _table(summary) + bullets(summary.notes) + document.all_metrics(run),
        "Claims": verdicts.to_html(decided) if pairs else "",
        "Figures": "" if find_spec("matplotlib") else quiet(NO_MATPLOTLIB),
    }
    for heading, names in (
        ("Similarity of layers", ["cka"]),
        ("Sentences", ["sentences"]),
        ("Words", ["words", "words_by_layer"]),
    ):
        below = "".join(_table(tables[name]) for name in names if name in tables)
        sections[heading] = figures.get(heading, "") + below
    sections["What was run"] = document.settings(run, None, _TEXT_FIELDS)
    state = f'<p class="state">{escape(report_notes.state(run))}</p>\n'
    return document.write(report / "report.html", run, state, sections)


def _table(table: Table) -> str:
    rows = [[line.row, line.description, *own_cells(table, line)] for line in table.lines]
    header = ["row", "what", *(column.title for column in table.columns)]
    return f"<h3>{escape(table.heading)}</h3>\n{grid(header, rows, names=2)}"


def draw(pairs: Sequence[Pair], order: Sequence[str], folder: Path) -> dict[str, str]:
    """Draws and saves what is new among the figures that the rows have data for.

    Args:
      pairs: the rows.
      order: of their languages.
      folder: of the figures.

    Returns:
      The sections' HTML by heading; one without a figure is empty.
    """
    if find_spec("matplotlib") is None:
        return {}
    drawn, kinds = Drawn(folder), by_kind(pairs, order)
    measures = {"": ("sentences", ""), _NO_MAP: ("unmapped", "")}
    sentences = report_figures.lines(kinds, measures)
    context = report_figures.lines(kinds, {"": ("context", "_p1")})
    words = [
        *_bars(pairs, drawn),
        *_curves(drawn, "words_by_layer", "Translation of words in context by layer", context),
    ]
    return {
        "Similarity of layers": section(SIMILARITY, _heat(kinds, drawn)),
        "Sentences": section(
            SENTENCES, _curves(drawn, "sentences", "Sentence retrieval by layer", sentences)
        ),
        "Words": section(WORDS, words),
    }


def _heat(kinds: Mapping[str, Sequence[Pair]], drawn: Drawn) -> list[str]:
    shown = report_figures.blocks(kinds)
    if not shown:
        return []
    paths = drawn.figure("cka", shown, partial(report_figures.heat, shown))
    number = sum(map(len, shown.values()))
    return [card(paths, "CKA of every layer", wide=number > 6)] if paths else []


def _curves(drawn: Drawn, name: str, alt: str, lines: Sequence[Line]) -> list[str]:
    if not lines:
        return []
    shown = report_figures.panels(lines)
    figure = partial(report_comparisons.side_by_side, lines, shown, "layer")
    paths = drawn.figure(name, [lines, shown], figure)
    return [card(paths, alt, wide=len(shown) > 1)] if paths else []


def _bars(pairs: Sequence[Pair], drawn: Drawn) -> list[str]:
    shown = report_figures.entries(pairs)
    if not shown:
        return []
    figure = partial(report_comparisons.bars, shown, report_figures.SCORES, "P@1")
    paths = drawn.figure("words", shown, figure)
    return [card(paths, "Translation of words that are one piece", wide=True)] if paths else []

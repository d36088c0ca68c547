"""The table of a bilingual run: rows, held-out perplexity, translations found, anchors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from xling_jax.experiments.bilingual import report_notes, report_page
from xling_jax.experiments.bilingual.report_metrics import PERPLEXITY, languages
from xling_jax.experiments.fake_english.report_tables import our_line
from xling_jax.report.cells import Column, Line, Table, perplexity, share, whole
from xling_jax.report.printed import own_terminal, write_own
from xling_jax.report.rows import Row, Run, read_run


def _perplexity(value: float) -> str:
    return f"{value:.2f}" if value < 99.995 else perplexity(value)


def _columns(run: Run, rows: Sequence[Row]) -> list[Column]:
    """The metrics that any row has, in the order of the table; what to expect while none has."""
    columns = [
        Column("held-out perplexity", name, f"ppl {name}", f"{PERPLEXITY}_{name}", _perplexity)
        for name in languages(run)
    ]
    found = "translations found"
    columns += [
        Column(found, "sentences", "sentences", "retrieval", share),
        Column(found, "after a map", "mapped", "mapped", share),
        Column("similarity", "CKA", "CKA", "cka", share),
        Column(found, "words", "words", "words", share),
        Column("anchors", "pieces", "anchors", "anchors", whole),
        Column("anchors", "tokens", "their tokens", "anchor_tokens", share),
    ]
    names = {name for row in rows for name in row.metrics}
    return [column for column in columns if column.metric in names or not names]


def _line(run: Run, row: Row) -> Line:
    """A row's line, which says how many of its seeds are in the means."""
    planned = {seed for name, seed in run.replicas_planned() if name == row.row}
    number = len(row.seeds)
    seeds = str(number) if number == len(planned) else f"{number}/{len(planned)}"
    if row.diverged:
        seeds += f" ({len(row.diverged)} diverged)"
    if set(row.seeds) & set(row.running):
        seeds += " (in training)"
    return replace(our_line(run, row), candidates="", seeds=seeds)


def table(run: Run) -> Table:
    """A line for each row, planned or run, in the config's order: means over seeds."""
    rows = [run.row(name) for name in run.row_names()]
    return Table(
        "table1",
        "Rows",
        "held-out perplexity, translations found, anchors",
        _columns(run, rows),
        [_line(run, row) for row in rows],
        report_notes.about(run, rows),
    )


def write(workdir: Path) -> str:
    """Writes `report/report.html`, `tables/` and `figures/` of a run; returns the table as text.

    Raises `ValueError` naming file and line where a stored result cannot be read.
    """
    run = read_run(workdir)
    shown = table(run)
    write_own([shown], workdir / "report" / "tables")
    report_page.write(run, shown)
    return own_terminal(shown)

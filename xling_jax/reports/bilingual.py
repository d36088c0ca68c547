"""The table of a bilingual run: rows, held-out perplexity, translations found, anchors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from xling_jax.files import write_beside
from xling_jax.reports import bilingual_notes, bilingual_page
from xling_jax.reports.bilingual_metrics import PERPLEXITY, languages
from xling_jax.reports.cells import Cell, Column, Line, Table, formatted, perplexity
from xling_jax.reports.formats import csv_text, latex, latex_text, markdown, markdown_text, plain
from xling_jax.reports.printed import latex_number
from xling_jax.reports.rows import Row, Run, read_run
from xling_jax.reports.tables import our_line


def _share(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def _perplexity(value: float) -> str:
    return f"{value:.2f}" if value < 99.995 else perplexity(value)


def _number(value: float) -> str:
    return f"{value:.0f}"


def _columns(run: Run, rows: Sequence[Row]) -> list[Column]:
    """The metrics that any row has, in the order of the table; what to expect while none has."""
    columns = [
        Column("held-out perplexity", name, f"ppl {name}", f"{PERPLEXITY}_{name}", _perplexity)
        for name in languages(run)
    ]
    found = "translations found"
    columns += [
        Column(found, "sentences", "sentences", "retrieval", _share),
        Column(found, "words", "words", "words", _share),
        Column("anchors", "pieces", "anchors", "anchors", _number),
        Column("anchors", "tokens", "their tokens", "anchor_tokens", _share),
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
        bilingual_notes.about(run, rows),
    )


def _text(column: Column, cell: Cell | None) -> str:
    mean, sd = formatted(column, cell)
    return f"{mean}±{sd}" if sd else mean


def _header(shown: Table) -> list[str]:
    return ["row", "what", *(column.short for column in shown.columns), "seeds"]


def _cells(shown: Table, line: Line) -> list[str]:
    """A line's numbers, or in the first one's place what there is instead."""
    if line.message:
        return [line.message, *[""] * (len(shown.columns) - 1)]
    return [_text(column, line.cells.get(column.metric)) for column in shown.columns]


def to_markdown(shown: Table) -> str:
    """The table alone."""
    rows = [
        [markdown_text(line.row), markdown_text(line.description), *_cells(shown, line), line.seeds]
        for line in shown.lines
    ]
    return markdown(list(map(markdown_text, _header(shown))), rows, names=2)


def to_csv(shown: Table) -> str:
    """Six digits, a column each for means and standard deviations; `diverged` has `seed@step`."""
    names = [name for c in shown.columns for name in (c.metric, f"{c.metric}_sd")]
    rows = []
    for line in shown.lines:
        cells = [line.cells.get(column.metric) for column in shown.columns]
        pairs = [(cell.mean, cell.sd) if cell else (None, None) for cell in cells]
        numbers = ["" if x is None else f"{x:.6g}" for pair in pairs for x in pair]
        diverged = " ".join(f"{seed}@{step}" for seed, step in sorted(line.diverged.items()))
        rows.append([line.row, line.description, *numbers, line.seeds, diverged])
    return csv_text(["row", "description", *names, "seeds", "diverged"], rows)


def to_latex(shown: Table) -> str:
    """A `tabular`; the notes follow as comments."""
    rows = []
    for line in shown.lines:
        numbers = [latex_number(column, line) for column in shown.columns]
        if line.message:
            numbers = [rf"\multicolumn{{{len(numbers)}}}{{l}}{{{latex_text(line.message)}}}"]
        names = [latex_text(name) for name in (line.row, line.description)]
        rows.append([*names, *numbers, latex_text(line.seeds)])
    head = [" & ".join(map(latex_text, _header(shown))) + r" \\"]
    text = latex(shown.heading, "ll" + "r" * (len(shown.columns) + 1), head, rows)
    return text + "".join(f"% {plain(note)}\n" for note in shown.notes)


def to_terminal(shown: Table) -> str:
    """Aligned columns; what stands in the place of numbers goes across them."""
    head = _header(shown)
    cells = [_cells(shown, line) for line in shown.lines]
    numbers = [own for own, line in zip(cells, shown.lines, strict=True) if not line.message]
    widths = [max(map(len, column)) for column in zip(head[2:-1], *numbers, strict=True)]
    lines = [(head[0], head[1], _spread(head[2:-1], widths), head[-1])]
    for own, line in zip(cells, shown.lines, strict=True):
        text = line.message or _spread(own, widths)
        lines.append((line.row, line.description, text, line.seeds))
    wide = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(line, wide, strict=True)).rstrip()
        for line in lines
    )


def _spread(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))


def write(workdir: Path) -> str:
    """Writes `report/report.html`, `tables/` and `figures/` of a run; returns the table as text.

    Raises `ValueError` naming file and line where a stored result cannot be read.
    """
    run = read_run(workdir)
    shown = table(run)
    folder = workdir / "report" / "tables"
    write_beside(folder / f"{shown.name}.md", to_markdown(shown))
    write_beside(folder / f"{shown.name}.csv", to_csv(shown))
    write_beside(folder / f"{shown.name}.tex", to_latex(shown))
    bilingual_page.write(run, shown)
    return to_terminal(shown)

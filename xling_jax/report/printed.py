"""A result table for the terminal, as Markdown, as CSV and as LaTeX.

The CSV keeps six digits; everything else has the digits of the paper. The functions `own_…` are for
a table without lines of a paper: row, description, numbers, and seeds if its lines say how many.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from xling_jax.files import write_beside
from xling_jax.report.cells import ABSENT, Cell, Column, Line, Table, formatted
from xling_jax.report.formats import (
    csv_text,
    cut,
    latex,
    latex_text,
    markdown,
    markdown_text,
    plain,
)

WIDTH = 120
_GREEK = {"mu": r"$\mu$", "align. F1": r"align. $F_1$"}


def _aligned(column: Column, lines: Sequence[Line]) -> list[str]:
    """A column's cells of equal width, the means' ends beneath each other."""
    pairs = [formatted(column, line.cells.get(column.metric)) for line in lines]
    best = [(cell := line.cells.get(column.metric)) is not None and cell.best for line in lines]
    ends = [
        ("*" if marked else "") + (f"±{sd}" if sd else "")
        for marked, (_, sd) in zip(best, pairs, strict=True)
    ]
    left = max((len(mean) for mean, _ in pairs), default=0)
    right = max(map(len, ends), default=0)
    return [f"{mean:>{left}}{end:<{right}}" for (mean, _), end in zip(pairs, ends, strict=True)]


def _spread(cells: Sequence[str], widths: Sequence[int], groups: Sequence[str]) -> str:
    """Cells at their widths: one space inside a group, three between groups."""
    text = ""
    for n, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        gap = "" if not n else " " if groups[n] == groups[n - 1] else "   "
        text += gap + f"{cell:^{width}}"
    return text


def _terminal_table(table: Table) -> list[str]:
    """Aligned columns: a row's description, our line, the paper's."""
    titles = [column.short for column in table.columns] + ["cand.", "seeds"]
    groups = [column.group for column in table.columns] + ["", ""]
    columns = [_aligned(column, table.lines) for column in table.columns]
    columns += [[line.candidates for line in table.lines], [line.seeds for line in table.lines]]
    widths = [max(map(len, (t, *cells))) for t, cells in zip(titles, columns, strict=True)]
    spans = [list(span) for _, span in groupby(range(len(groups)), key=groups.__getitem__)]
    sizes = [sum(widths[n] for n in span) + len(span) - 1 for span in spans]
    heads = [f"{groups[s[0]]:^{size}}" for s, size in zip(spans, sizes, strict=True)]
    indent = " " * (max(len(line.source) for line in table.lines) + 4)
    output = [table.heading, indent + "   ".join(heads), indent + _spread(titles, widths, groups)]
    for n, line in enumerate(table.lines):
        if line.ours:
            output.append(cut(f"{plain(line.row):<3} {plain(line.description)}", WIDTH))
        texts = _spread([column[n] for column in columns], widths, groups)
        if line.message:
            end = len(_spread(titles[:-2], widths[:-2], groups[:-2]))
            texts = f"{line.message:<{end}}" + texts[end:]
        output.append(f"  {line.source:<{len(indent) - 2}}" + texts)
    return [*output, ""]


def to_terminal(tables: Sequence[Table], notes: Sequence[str], more: Sequence[str]) -> str:
    """Tables within 120 characters, beneath them more lines, and the notes of all tables."""
    output = [line for table in tables for line in _terminal_table(table)]
    output += more
    output += [textwrap.fill(note, WIDTH, subsequent_indent="  ") for note in notes]
    return "\n".join(line.rstrip() for line in output) + "\n"


def _names(line: Line) -> list[str]:
    """Row, description and source: the last is said of the paper's lines alone."""
    return [line.row, line.description, ""] if line.ours else ["", "", line.source]


def to_markdown(table: Table) -> str:
    """Heading, table and notes."""
    titles = [f"{c.title} ({c.group})" if c.group else c.title for c in table.columns]
    rows = []
    for line in table.lines:
        numbers = [_markdown_number(c, line) for c in table.columns]
        if line.message:
            numbers = [line.message] + [""] * (len(table.columns) - 1)
        names = [markdown_text(name) for name in _names(line)]
        rows.append([*names, *numbers, line.candidates, line.seeds])
    header = ["ID", "description", "", *titles, "candidates", "seeds"]
    notes = "".join(f"* {markdown_text(note)}\n" for note in table.notes)
    heading = markdown_text(table.heading)
    return f"### {heading}\n\n{markdown(header, rows, names=3)}\n{notes}"


def _markdown_number(column: Column, line: Line) -> str:
    cell = line.cells.get(column.metric)
    mean, sd = formatted(column, cell)
    mean = f"**{mean}**" if cell and cell.best else mean
    return f"{mean} ±{sd}" if sd else mean


def to_csv(table: Table) -> str:
    """One line a line of the table, a column each for means and standard deviations.

    `diverged` has `seed@step` for every seed that did, `best` the metrics in which the row is the
    search's choice.
    """
    names = [name for c in table.columns for name in (c.metric, f"{c.metric}_sd")]
    start = ["row", "description", "source", "table", "deep_layer"]
    rows = []
    for line in table.lines:
        numbers: list[str] = []
        for column in table.columns:
            cell = line.cells.get(column.metric)
            values = (cell.mean, cell.sd) if cell else (None, None)
            numbers += ["" if value is None else f"{value:.6g}" for value in values]
        first = [line.row, line.description, line.source, line.table or "", line.layer or ""]
        last = [
            "" if line.candidates == ABSENT else line.candidates,
            line.seeds,
            " ".join(f"{seed}@{step}" for seed, step in sorted(line.diverged.items())),
            " ".join(sorted(name for name, cell in line.cells.items() if cell.best)),
        ]
        rows.append([*map(str, first), *numbers, *last])
    return csv_text([*start, *names, "candidates", "seeds", "diverged", "best"], rows)


def to_latex(table: Table) -> str:
    """A `tabular` with the groups above the columns; the notes follow as comments."""
    groups = [("", 3), *((g, len(list(s))) for g, s in groupby(c.group for c in table.columns))]
    above, rules, place = [], "", 1
    for group, size in [*groups, ("", 2)]:
        above.append(
            rf"\multicolumn{{{size}}}{{c}}{{{latex_text(group)}}}" if group else "& " * (size - 1)
        )
        rules += rf"\cmidrule(lr){{{place}-{place + size - 1}}}" if group else ""
        place += size
    titles = [_GREEK.get(c.title, latex_text(c.title)) for c in table.columns]
    below = " & ".join(["ID", "description", "", *titles, "candidates", "seeds"])
    rows = []
    for line in table.lines:
        numbers = [latex_number(c, line) for c in table.columns]
        if line.message:
            numbers = [rf"\multicolumn{{{len(numbers)}}}{{l}}{{{latex_text(line.message)}}}"]
        names = [latex_text(name) for name in _names(line)]
        ends = [latex_text(text) for text in (line.candidates, line.seeds)]
        rows.append([*names, *numbers, *ends])
    head = [" & ".join(above) + r" \\", rules, below + r" \\"]
    text = latex(table.heading, "lll" + "r" * (len(table.columns) + 2), head, rows)
    return text + "".join(f"% {plain(note)}\n" for note in table.notes)


def latex_number(column: Column, line: Line) -> str:
    """A line's number in a column: the mean, and its standard deviation below the line."""
    cell = line.cells.get(column.metric)
    mean, sd = formatted(column, cell)
    mean = rf"\textbf{{{mean}}}" if cell and cell.best else latex_text(mean)
    return f"{mean}$_{{{sd}}}$" if sd else mean


def _has_seeds(table: Table) -> bool:
    return all(line.seeds for line in table.lines)


def _own_header(table: Table) -> list[str]:
    end = ["seeds"] if _has_seeds(table) else []
    return ["row", "what", *(column.short for column in table.columns), *end]


def own_cells(table: Table, line: Line) -> list[str]:
    """A line's numbers, or in the first one's place what there is instead."""
    if line.message:
        return [line.message, *[""] * (len(table.columns) - 1)]
    return [_own_number(column, line.cells.get(column.metric)) for column in table.columns]


def _own_number(column: Column, cell: Cell | None) -> str:
    mean, sd = formatted(column, cell)
    return f"{mean}±{sd}" if sd else mean


def _end(table: Table, line: Line) -> list[str]:
    return [line.seeds] if _has_seeds(table) else []


def own_markdown(table: Table) -> str:
    """The table alone."""
    rows = []
    for line in table.lines:
        names = [markdown_text(name) for name in (line.row, line.description)]
        rows.append([*names, *own_cells(table, line), *_end(table, line)])
    return markdown(list(map(markdown_text, _own_header(table))), rows, names=2)


def own_csv(table: Table) -> str:
    """Six digits; with seeds, a column each for means and standard deviations, and `diverged`
    has `seed@step`.
    """
    has_seeds = _has_seeds(table)
    names = [column.metric for column in table.columns]
    header = ["row", "description", *names]
    if has_seeds:
        both = [each for name in names for each in (name, f"{name}_sd")]
        header = ["row", "description", *both, "seeds", "diverged"]
    rows = []
    for line in table.lines:
        cells = [line.cells.get(name) for name in names]
        pairs = [(cell.mean, cell.sd) if cell else (None, None) for cell in cells]
        values = [x for pair in pairs for x in pair[: 1 + has_seeds]]
        row = [line.row, line.description, *("" if x is None else f"{x:.6g}" for x in values)]
        if has_seeds:
            diverged = (f"{seed}@{step}" for seed, step in sorted(line.diverged.items()))
            row += [line.seeds, " ".join(diverged)]
        rows.append(row)
    return csv_text(header, rows)


def own_latex(table: Table) -> str:
    """A `tabular`; the notes follow as comments."""
    rows = []
    for line in table.lines:
        numbers = [latex_number(column, line) for column in table.columns]
        if line.message:
            numbers = [rf"\multicolumn{{{len(numbers)}}}{{l}}{{{latex_text(line.message)}}}"]
        names = [latex_text(name) for name in (line.row, line.description)]
        rows.append([*names, *numbers, *map(latex_text, _end(table, line))])
    header = _own_header(table)
    head = [" & ".join(map(latex_text, header)) + r" \\"]
    text = latex(table.heading, "ll" + "r" * (len(header) - 2), head, rows)
    return text + "".join(f"% {plain(note)}\n" for note in table.notes)


def write_own(tables: Iterable[Table], folder: Path) -> None:
    """Writes tables as Markdown, CSV and LaTeX."""
    for table in tables:
        write_beside(folder / f"{table.name}.md", own_markdown(table))
        write_beside(folder / f"{table.name}.csv", own_csv(table))
        write_beside(folder / f"{table.name}.tex", own_latex(table))


def own_terminal(table: Table) -> str:
    """Aligned columns; what stands in the place of numbers goes across them."""
    header, number = _own_header(table), len(table.columns)
    titles, end = header[2 : 2 + number], header[2 + number :]
    cells = [own_cells(table, line) for line in table.lines]
    numbers = [own for own, line in zip(cells, table.lines, strict=True) if not line.message]
    widths = [max(map(len, column)) for column in zip(titles, *numbers, strict=True)]
    lines = [(*header[:2], _own_spread(titles, widths), *end)]
    for own, line in zip(cells, table.lines, strict=True):
        text = line.message or _own_spread(own, widths)
        lines.append((line.row, line.description, text, *_end(table, line)))
    wide = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(line, wide, strict=True)).rstrip()
        for line in lines
    )


def _own_spread(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True))

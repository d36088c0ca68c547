"""The result table, laid out as D&S Table 1: our line, and beneath it the paper's.

One `Table` is built from a run and printed for the terminal, as Markdown, CSV or HTML. Numbers
look as in the paper (.70, 1.00, perplexities as integers); the CSV keeps six digits.
"""

from __future__ import annotations

import csv
import io
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from xling_jax.reports import papers
from xling_jax.reports.rows import Row, Run, deep_layer, read_row, read_run

WIDTH = 120
DEEP = "deep"
ABSENT = "–"


class Column(NamedTuple):
    """A column of numbers: `metric` is a metric's name, with `deep` for the deeper layer."""

    group: str
    title: str
    short: str
    metric: str


class Cell(NamedTuple):
    """A mean, and its standard deviation where more than one seed gave one."""

    mean: float
    sd: float | None


@dataclass(frozen=True)
class Line:
    """One line: `source` is "ours" or the paper's; `seeds` is "4/5" where not all 5 are in."""

    source: str
    row: str
    description: str
    cells: Mapping[str, Cell]
    layer: int | None
    candidates: str
    seeds: str

    @property
    def ours(self) -> bool:
        """Whether this is our line, not the paper's."""
        return self.source == "ours"


@dataclass(frozen=True)
class Table:
    """Columns, lines in the order of rows, and what a reader must know to read them."""

    columns: Sequence[Column]
    lines: Sequence[Line]
    notes: Sequence[str]


def score(value: float) -> str:
    """A score as the papers print it: .70, 1.00, -.05."""
    sign, digits = "-" if value < 0 else "", f"{abs(value):.2f}"
    return ".00" if digits == "0.00" else sign + digits.removeprefix("0")


def perplexity(value: float) -> str:
    """A perplexity: an integer, from 100,000 with an exponent."""
    return f"{value:.0f}" if value < 99_999.5 else f"{value:.1e}".replace("e+0", "e")


def formatted(column: Column, cell: Cell | None) -> tuple[str, str]:
    """Mean and standard deviation as text; an absent one is a dash, an absent sd empty."""
    if cell is None:
        return ABSENT, ""
    if not column.metric.startswith("perplexity"):
        return score(cell.mean), "" if cell.sd is None else score(cell.sd)
    if cell.sd is None:
        return perplexity(cell.mean), ""
    return perplexity(cell.mean), f"{cell.sd:.1f}" if cell.sd < 100 else perplexity(cell.sd)


def build(run: Run) -> Table:
    """The table of a run, finished or not; a row the paper does not have has our line alone."""
    rows = [read_row(run, name) for name in run.row_names()]
    lines = []
    for row in rows:
        lines.append(_our_line(row))
        if paper := papers.find(run.experiment, row.row):
            lines.append(_paper_line(paper))
    layers = sorted({line.layer for line in lines if line.ours and line.layer})
    return Table(_columns(layers, run.layers), lines, _notes(run, rows, lines, layers))


def _columns(layers: Sequence[int], depth: int | None) -> list[Column]:
    deep = f"layer {' or '.join(map(str, layers))}" if layers else "deeper layer"
    deep += f" of {depth}" if layers and depth else ""
    columns = [Column("", "mu", "mu", "mu")]
    for group, layer in (("layer 0", "0"), (deep, DEEP)):
        columns.append(Column(group, "align. F1", "F1", f"alignment_f1_{layer}"))
        columns.append(Column(group, "retrieval", "retr.", f"retrieval_{layer}"))
        columns.append(Column(group, "translation", "transl.", f"translation_{layer}"))
    columns.append(Column("perplexity", "train", "train", "perplexity_train"))
    columns.append(Column("perplexity", "dev", "dev", "perplexity_dev"))
    return columns


def _generic(names: Iterable[str], layer: int | None) -> dict[str, str]:
    """Metric names by their name with `deep` in place of the deeper layer's number."""
    ending = f"_{layer}"
    return {n.removesuffix(ending) + f"_{DEEP}" if n.endswith(ending) else n: n for n in names}


def _our_line(row: Row) -> Line:
    layer = deep_layer(row.metrics)
    cells = {}
    for key, name in _generic(row.metrics, layer).items():
        value = row.metrics[name]
        cells[key] = Cell(value.mean, value.sd if value.number > 1 else None)
    candidates = row.metrics.get("retrieval_candidates")
    all_seeds = len({*row.seeds, *row.running, *row.diverged})
    seeds = str(all_seeds) if len(row.seeds) == all_seeds else f"{len(row.seeds)}/{all_seeds}"
    shown = f"{candidates.mean:.0f}" if candidates else ABSENT
    return Line("ours", row.row, row.description, cells, layer, shown, seeds)


def _paper_line(paper: papers.PaperRow) -> Line:
    layer = papers.DEEP_LAYER
    names = _generic(paper.metrics, layer)
    cells = {key: Cell(*paper.metrics[name]) for key, name in names.items()}
    seeds = str(len(papers.SEEDS)) if paper.table == 1 else ABSENT
    shown = str(papers.CANDIDATES)
    return Line(papers.SOURCE, paper.row, paper.description, cells, layer, shown, seeds)


def _notes(run: Run, rows: Sequence[Row], lines: Sequence[Line], layers: list[int]) -> list[str]:
    notes = ["mu is the mean of retrieval and translation at both layers."]
    if any(len(row.seeds) > 1 for row in rows):
        notes.append(
            "The second number of a cell is the standard deviation over seeds, of the population "
            "(ddof=0); D&S do not say which theirs is."
        )
    if any(not line.ours for line in lines):
        notes += _comparison(run, lines, layers)
    for row in rows:
        if row.diverged:
            where = ", ".join(f"seed {s} at step {n}" for s, n in sorted(row.diverged.items()))
            notes.append(f"Row {row.row}: {where} diverged and is in no mean.")
        if row.running and row.seeds and not set(row.seeds) & set(row.running):
            seeds = ", ".join(map(str, row.running))
            notes.append(f"Row {row.row}: still training, and not in the means: seeds {seeds}.")
    so_far: dict[int, list[str]] = {}
    for row in rows:
        if row.step is not None and set(row.seeds) & set(row.running):
            so_far.setdefault(row.step, []).append(row.row)
    for step, of in so_far.items():
        notes.append(f"{_rows(of)} still in training: the figures are those of step {step:,}.")
    return notes


def _rows(names: Sequence[str]) -> str:
    return f"Row{'s' if len(names) > 1 else ''} {', '.join(names)}"


def _comparison(run: Run, lines: Sequence[Line], layers: list[int]) -> list[str]:
    """What keeps our figures from being the paper's."""
    notes = [f"{papers.SOURCE}: {papers.TITLE}, Tables 1 (means over 5 seeds) and 2."]
    differences = []
    if run.config.get("scale", "paper") != "paper":
        differences.append(f"the scale is {run.config['scale']!r}")
    if not any(text.get("sentences") == papers.TRAINING_SENTENCES for text in run.texts):
        differences.append(
            f"the training text is not known to be the paper's ({papers.TRAINING_SENTENCES:,} "
            "sentences of the Easy-to-Read Bible)"
        )
    if differences:
        notes.append(
            f"Not the paper's setting: {' and '.join(differences)}. Compare the shape (which rows "
            "are high, which low), not the values."
        )
    if layers and layers != [papers.DEEP_LAYER]:
        ours = f"{' or '.join(map(str, layers))}{f' of {run.layers}' if run.layers else ''}"
        notes.append(
            f"Where we have layer {ours}, {papers.SOURCE} has layer {papers.DEEP_LAYER} of "
            f"{papers.LAYERS}."
        )
    ours_among = {line.candidates for line in lines if line.ours and line.candidates != ABSENT}
    if ours_among - {str(papers.CANDIDATES)}:
        notes.append(
            f"Retrieval among fewer candidates than the paper's {papers.CANDIDATES:,} gives higher "
            "figures; see the column of candidates."
        )
    remarks: dict[str, list[str]] = {}
    for line in lines:
        if not line.ours and line.row in papers.REMARKS:
            remarks.setdefault(papers.REMARKS[line.row], []).append(line.row)
    return notes + [f"{_rows(of)}: {text}" for text, of in remarks.items()]


def _aligned(column: Column, lines: Sequence[Line]) -> list[str]:
    """A column's cells of equal width, the means' ends beneath each other."""
    pairs = [formatted(column, line.cells.get(column.metric)) for line in lines]
    sds = [f"±{sd}" if sd else "" for _, sd in pairs]
    left = max((len(mean) for mean, _ in pairs), default=0)
    right = max(map(len, sds), default=0)
    return [f"{mean:>{left}}{sd:<{right}}" for (mean, _), sd in zip(pairs, sds, strict=True)]


def _spread(cells: Sequence[str], widths: Sequence[int], groups: Sequence[str]) -> str:
    """Cells at their widths: one space inside a group, three between groups."""
    text = ""
    for n, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        gap = "" if not n else " " if groups[n] == groups[n - 1] else "   "
        text += gap + f"{cell:^{width}}"
    return text


def to_terminal(table: Table) -> str:
    """Aligned columns within 120 characters: a row's description, our line, the paper's."""
    titles = [column.short for column in table.columns] + ["cand.", "seeds"]
    groups = [column.group for column in table.columns] + ["", ""]
    columns = [_aligned(column, table.lines) for column in table.columns]
    columns += [[line.candidates for line in table.lines], [line.seeds for line in table.lines]]
    widths = [max(map(len, (t, *cells))) for t, cells in zip(titles, columns, strict=True)]
    spans = [list(span) for _, span in groupby(range(len(groups)), key=groups.__getitem__)]
    sizes = [sum(widths[n] for n in span) + len(span) - 1 for span in spans]
    heads = [f"{groups[s[0]]:^{size}}" for s, size in zip(spans, sizes, strict=True)]
    indent = " " * (len(papers.SOURCE) + 4)
    output = [indent + "   ".join(heads), indent + _spread(titles, widths, groups)]
    for n, line in enumerate(table.lines):
        if line.ours:
            heading = f"{line.row:<3} {' '.join(line.description.split())}"
            output.append(heading if len(heading) <= WIDTH else heading[: WIDTH - 1] + "…")
        cells = [column[n] for column in columns]
        output.append(f"  {line.source:<{len(indent) - 2}}" + _spread(cells, widths, groups))
    notes = [textwrap.fill(note, WIDTH, subsequent_indent="  ") for note in table.notes]
    return "\n".join(line.rstrip() for line in [*output, "", *notes]) + "\n"


def terminal(workdir: Path) -> str:
    """The table of a workdir as text for the terminal."""
    return to_terminal(build(read_run(workdir)))


def _markdown_row(cells: Iterable[str]) -> str:
    safe = (" ".join(escape(c, quote=False).split()).replace("|", "\\|") for c in cells)
    return "| " + " | ".join(safe) + " |"


def to_markdown(table: Table) -> str:
    """A Markdown table and its notes."""
    titles = [f"{c.title} ({c.group})" if c.group else c.title for c in table.columns]
    titles += ["candidates", "seeds"]
    output = [_markdown_row(["ID", "description", "", *titles])]
    output.append("|---|---|---" + "|---:" * len(titles) + "|")
    for line in table.lines:
        names = [line.row, line.description, ""] if line.ours else ["", "", line.source]
        pairs = (formatted(c, line.cells.get(c.metric)) for c in table.columns)
        numbers = [f"{mean} ±{sd}" if sd else mean for mean, sd in pairs]
        output.append(_markdown_row([*names, *numbers, line.candidates, line.seeds]))
    return "\n".join([*output, "", *(f"* {escape(n, quote=False)}" for n in table.notes)]) + "\n"


def to_csv(table: Table) -> str:
    """One line a line of the table, a column each for means and standard deviations."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    names = [name for c in table.columns for name in (c.metric, f"{c.metric}_sd")]
    writer.writerow(["row", "description", "source", "deep_layer", *names, "candidates", "seeds"])
    for line in table.lines:
        numbers: list[str] = []
        for column in table.columns:
            cell = line.cells.get(column.metric) or (None, None)
            numbers += ["" if value is None else f"{value:.6g}" for value in cell]
        candidates = "" if line.candidates == ABSENT else line.candidates
        start = [line.row, line.description, line.source, line.layer or ""]
        writer.writerow([*start, *numbers, candidates, line.seeds])
    return file.getvalue()

"""Result tables, for the terminal and as Markdown, CSV and LaTeX; everything is escaped.

The CSV keeps six significant digits, all other formats as many as the papers print.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pandas as pd

from xling_jax.evaluators.registry import EVALUATORS
from xling_jax.files import write_beside
from xling_jax.report.frame import Measure, Row, Run, decoded
from xling_jax.report.prose import cut, diverged_at, plain

ABSENT, OURS = "–", "ours"
NOT_MEASURED = "not measured"
WIDTH = 120  # of the terminal
_LONG = 12  # characters from which on a name has a wider column
_LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "–": "--", "±": r"$\pm$",
    "≥": r"$\ge$", "≤": r"$\le$", "×": r"$\times$", "−": "$-$", "μ": r"$\mu$", "Δ": r"$\Delta$",
    "’": "'",
    # At the start of a line, LaTeX would take these as arguments of the line end before.
    "[": "{[}", "*": "{*}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}  # fmt: skip
_GREEK = {"mu": r"$\mu$", "align. F1": r"align. $F_1$"}
Format = Callable[[float], str]

whole: Format = "{:.0f}".format  # a number of things: 1000
ratio: Format = "{:.2f}".format  # pieces a word: 1.05
layer: Format = "L{:.0f}".format  # L8
percent: Format = "{:.1f}".format  # 73.6


def share(value: float, digits: int = 3) -> str:
    """A score with three digits after the point: .712, 1.000, -.050; never -.000."""
    return re.sub(r"^(-?)0\.", r"\1.", f"{value:z.{digits}f}")


def score(value: float) -> str:
    """A score as the papers print it: .70, 1.00, -.05; never -.00."""
    return share(value, 2)


def difference(value: float) -> str:
    """A difference in percentage points: -1.4, +0.1, 0.0."""
    text = f"{value:+.1f}"
    return "0.0" if text[1:] == "0.0" else text


def perplexity(value: float) -> str:
    """A perplexity: an integer, from 100,000 with an exponent."""
    return f"{value:.0f}" if value < 99_999.5 else f"{value:.1e}".replace("e+0", "e")


def perplexity_sd(value: float) -> str:
    """The standard deviation of perplexities, with a digit after the point if it is small."""
    return f"{value:.1f}" if value < 100 else perplexity(value)


# By the names that the registry and `tables.csv` have for them.
FORMATS: dict[str, Format] = {
    "score": score, "share": share, "perplexity": perplexity, "whole": whole, "layer": layer,
    "decimal": percent, "ratio": ratio,
}  # fmt: skip


class Column(NamedTuple):
    """A column of numbers: its metric, how it is written, and `short`, a title for the terminal."""

    title: str
    metric: str
    show: Format = score
    group: str = ""
    short: str = ""

    @classmethod
    def of(
        cls, name: str, group: str = "", title: str = "", short: str = "",
        show: Format | None = None,
    ) -> Column:  # fmt: skip
        """The column of a metric; what is not given is taken from the registry."""
        found = EVALUATORS[decoded(name).name]
        titles = (title, short) if title else (found.heading, found.short)
        return cls(titles[0], name, show or FORMATS[found.format], group or found.group, titles[1])

    def texts(self, line: Line) -> tuple[str, str]:
        """Mean and standard deviation; an absent mean is a dash, an absent sd is empty."""
        found = line.cells.get(self.metric)
        if found is None:
            return ABSENT, ""
        show_sd = perplexity_sd if self.show is perplexity else self.show
        return self.show(found.mean), "" if found.sd is None else show_sd(found.sd)


def columns(module: str, name: str, **values: str) -> list[Column]:
    """The columns of a table in `tables.csv` beside a module's file; titles may hold values."""
    lines = pd.read_csv(Path(module).with_name("tables.csv"), dtype=str, keep_default_na=False)
    return [
        Column(title.format_map(values), metric, FORMATS[format], short=short.format_map(values))
        for table, title, metric, format, short in lines.itertuples(index=False)
        if table == name
    ]


@dataclass(frozen=True)
class Line:
    """One line of a table.

    Attributes:
      cells: the numbers by metric.
      source: "ours" or the paper's name.
      seeds: how many seeds, as "4/5" if one of 5 is missing.
      candidates: how many candidates a translation was looked for among.
      message: shown in place of numbers.
      diverged: the last good step of seeds that diverged.
      best: the metrics by which a search would choose this line.
      more: further columns of the CSV.
    """

    row: str
    description: str
    cells: Mapping[str, Measure] = field(default_factory=dict)
    source: str = OURS
    seeds: str = ""
    candidates: str = ""
    message: str = ""
    diverged: Mapping[int, int] = field(default_factory=dict)
    best: frozenset[str] = frozenset()
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ours(self) -> bool:
        """Whether the line is about our models."""
        return self.source == OURS

    @property
    def names(self) -> tuple[str, str]:
        """The row, and its description unless that is the row's name; for a line that is not ours,
        its source."""
        described = "" if self.description == self.row else self.description
        return self.row, described if self.ours else self.source

    def kinds(self, is_first: bool) -> list[tuple[str, str]]:
        """The names with their CSS classes, for the page, where a line that is not ours names its
        row only if it `is_first` of it."""
        row, description = (name.replace(";", "; ") for name in self.names)
        row = row if self.ours or is_first else ""
        return [(kind_of(row), row), ("name", description)]


def published(module: str, source: str, name: str = "published.csv") -> tuple[Line, ...]:
    """The lines of a paper's tables, from a CSV file beside a module's file. Its columns are row,
    description, table (the table's number, kept in `more`), then perhaps seeds, and for each metric
    its name and perhaps `NAME_sd`."""
    frame = pd.read_csv(Path(module).with_name(name), dtype={"row": str})
    names = [name for name in frame.columns[3:] if name != "seeds" and not name.endswith("_sd")]
    found = []
    for line in frame.astype(object).to_dict("records"):
        present = {name: value for name, value in line.items() if not pd.isna(value)}
        seeds = int(present["seeds"]) if "seeds" in present else None
        cells = {name: Measure(present[name], present.get(f"{name}_sd"), seeds)
                 for name in names if name in present}  # fmt: skip
        found.append(Line(line["row"], line["description"], cells, source,
                          str(seeds or ABSENT), more={"table": line["table"]}))  # fmt: skip
    return tuple(found)


@dataclass(frozen=True)
class Table:
    """Columns, lines in the order of rows, and what a reader must know to read them.

    Attributes:
      name: of its files.
      is_stacked: whether descriptions stand above their lines on the terminal.
      spread: what the CSV calls the numbers after ±.
    """

    name: str
    title: str
    caption: str
    columns: Sequence[Column]
    lines: Sequence[Line]
    notes: Sequence[str] = ()
    is_stacked: bool = False
    spread: str = "sd"
    kind: ClassVar = "table"

    @property
    def heading(self) -> str:
        """Title and caption in one line."""
        return f"{self.title}: {self.caption}" if self.caption else self.title

    @property
    def groups(self) -> list[tuple[str, list[Column]]]:
        """Neighbouring columns with the same heading above them."""
        return [(name, list(own)) for name, own in groupby(self.columns, lambda c: c.group)]

    @property
    def ends(self) -> list[str]:
        """The columns after the numbers: candidates and seeds, if any line has them."""
        names = ("candidates", "seeds")
        return [name for name in names if any(getattr(line, name) for line in self.lines)]

    def those_present(self, notes: Sequence[str] = ()) -> Table:
        """The table with notes, and with the columns in which some line has a number; if there is
        no number at all, with all columns."""
        names = {name for line in self.lines for name in line.cells}
        columns = [column for column in self.columns if column.metric in names or not names]
        return replace(self, columns=columns, notes=notes)

    def rows(
        self, escape: Callable[[str], str], number: Callable[[str, str, bool], str], span: str
    ) -> Iterator[list[str]]:
        """The cells of every line in a format.

        Args:
          escape: writes a text in the format.
          number: writes a number in the format, from its mean, its standard deviation, and whether
            it is the best one.
          span: a template for the cell of a message, with `text` and the `number` of cells that it
            takes the place of.
        """
        for line in self.lines:
            cells = [number(*c.texts(line), c.metric in line.best) for c in self.columns]
            if line.message:
                cells = [span.format(number=len(cells), text=escape(line.message))]
            ends = [escape(getattr(line, name)) for name in self.ends]
            yield [*map(escape, line.names), *cells, *ends]


def seeds_in(number: int, planned: int) -> str:
    """How many of the planned seeds are in a line's means, as "5" or "4/5"."""
    return str(number) if number >= planned else f"{number}/{planned}"


def row_line(run: Run, row: Row) -> Line:
    """The line of a row of a run: its means, or why it has none, how many seeds are in them, and
    whether these are still in training."""
    seeds = seeds_in(len(row.seeds), len(run.seeds_planned(row.name)))
    seeds += " (in training)" * row.is_so_far
    message = ""
    if not row.metrics:
        message = diverged_at(row.diverged) if row.diverged else "not begun"
        message = "not evaluated yet" if row.running else message
        message = NOT_MEASURED if row.seeds else message
    return Line(row.name, row.description, row.metrics, seeds=seeds, message=message,
                diverged=row.diverged)  # fmt: skip


def kind_of(name: str) -> str:
    """The CSS class of a cell that holds a name."""
    return "name" if len(name) < _LONG else "name long"


def _aligned(column: Column, lines: Sequence[Line]) -> list[str]:
    """A title and the cells beneath it, of equal width, the means aligned to the right."""
    cells = []
    for line in lines:
        mean, sd = column.texts(line)
        cells.append((mean, "*" * (column.metric in line.best) + f"±{sd}" * bool(sd)))
    left, right = (max(map(len, texts), default=0) for texts in zip(*cells, strict=True))
    texts = [f"{mean:>{left}}{end:<{right}}" for mean, end in cells]
    title = column.short or column.title
    return [f"{text:^{max(len(title), left + right)}}" for text in (title, *texts)]


def to_terminal(table: Table) -> str:
    """Aligned columns beneath the heading; a message in place of numbers goes across columns.

    Between columns is one space, or two if they have no group, and between groups are three.
    """
    lines, groups = table.lines, []
    for group, columns in table.groups if lines else ():
        cells = zip(*(_aligned(column, lines) for column in columns), strict=True)
        texts = [(" " if group else "  ").join(row) for row in cells]
        width = max(len(group) * table.is_stacked, len(texts[0]))
        groups.append([f"{text:^{width}}" for text in (group, *texts)])
    numbers = ["   ".join(row) for row in zip(*groups, strict=True)] or ["", ""]
    above, title, *numbers = numbers
    numbers = [line.message or text for line, text in zip(lines, numbers, strict=True)]
    if table.is_stacked:
        grid = [["", *(f"  {line.source}" for line in lines)]]
    else:
        grid = [["row", *(plain(line.row) for line in lines)],
                ["what", *(plain(line.names[1]) for line in lines)]]  # fmt: skip
    grid.append([title, *numbers])
    for name in table.ends:
        short = "cand." if name == "candidates" else name
        grid.append([short, *(getattr(line, name) for line in lines)])
    wide = [max(map(len, column)) for column in grid]
    head, *texts = ["  ".join(map(str.ljust, row, wide)) for row in zip(*grid, strict=True)]
    output = [table.heading, " " * (wide[0] + 2) + above if table.is_stacked else None, head]
    for line, text in zip(lines, texts, strict=True):
        is_own = line.ours and table.is_stacked
        described = f"{plain(line.row):<3} {plain(line.names[1])}"
        output += [cut(described, WIDTH) if is_own else None, text]
    return "".join(f"{line.rstrip()}\n" for line in output if line is not None)


def markdown_text(text: str) -> str:
    """A text, escaped so that Markdown shows it unchanged inside a table or a list."""
    return re.sub(r"([\\`*_|\[\]])", r"\\\1", escape(plain(text), quote=False))


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]], names: int) -> str:
    """A Markdown table of cells in Markdown; all but the first `names` columns are numbers."""
    rule = "|" + "---|" * names + "---:|" * (len(header) - names)
    lines = ["| " + " | ".join(row) + " |" for row in (header, *rows)]
    return "\n".join([lines[0], rule, *lines[1:]]) + "\n"


def to_markdown(table: Table) -> str:
    """Heading, table and notes in Markdown."""

    def number(mean: str, sd: str, is_best: bool) -> str:
        return (f"**{mean}**" if is_best else mean) + (f" ±{sd}" if sd else "")

    titles = [f"{c.title} ({c.group})" if c.group else c.title for c in table.columns]
    header = ["row", "description", *map(markdown_text, titles), *table.ends]
    rows = table.rows(markdown_text, number, "{text}" + " | " * (len(titles) - 1))
    notes = "".join(f"* {markdown_text(note)}\n" for note in table.notes)
    heading = markdown_text(table.heading)
    return f"### {heading}\n\n{markdown(header, rows, names=2)}" + (f"\n{notes}" if notes else "")


def to_csv(table: Table) -> str:
    """A column for the means of each metric and, if there are seeds or any spread is known, one for
    their spread.

    `diverged` has `seed@step` for every seed that diverged, `best` the metrics by which a search
    would choose the line.
    """
    has_seeds, rows = "seeds" in table.ends, []
    every = (found for line in table.lines for found in line.cells.values())
    has_spread = has_seeds or any(found.sd is not None for found in every)
    for line in table.lines:
        row: dict[str, object] = {"row": line.row, "description": line.description}
        row |= {"source": line.source, **line.more}
        for name in (column.metric for column in table.columns):
            found = line.cells.get(name)
            row[name] = found and f"{found.mean:.6g}"
            if has_spread:
                spread = None if found is None or found.sd is None else f"{found.sd:.6g}"
                row[f"{name}_{table.spread}"] = spread
        row |= {name: getattr(line, name).removeprefix(ABSENT) for name in table.ends}
        if has_seeds:
            row["diverged"] = " ".join(f"{s}@{step}" for s, step in sorted(line.diverged.items()))
        if line.more:
            row["best"] = " ".join(sorted(line.best))
        rows.append(row)
    header = None if rows else ["row", "description", *(c.metric for c in table.columns)]
    return pd.DataFrame(rows, columns=header).to_csv(index=False, lineterminator="\n")


def latex_text(text: str) -> str:
    """A text, escaped so that LaTeX sets it unchanged."""
    return "".join(_LATEX.get(sign, sign) for sign in plain(text))


def latex(title: str, columns: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A `tabular` with the rules of booktabs, from cells in LaTeX.

    Args:
      title: for a comment above the table.
      columns: the alignment of the columns, as `llrr`.
      head: the lines above the middle rule, with their line ends.
      rows: the cells.
    """
    lines = [
        f"% {plain(title)}. Needs \\usepackage{{booktabs}}.",
        rf"\begin{{tabular}}{{{columns}}}", r"\toprule", *head, r"\midrule",
        *(" & ".join(row) + r" \\" for row in rows), r"\bottomrule", r"\end{tabular}",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def to_latex(table: Table) -> str:
    """A `tabular` with the groups' names above the columns; the notes follow as comments."""

    def number(mean: str, sd: str, is_best: bool) -> str:
        mean = rf"\textbf{{{mean}}}" if is_best else latex_text(mean)
        return f"{mean}$_{{{sd}}}$" if sd else mean

    above, rules, place = ["", ""], "", 3
    for group, own in table.groups:
        last = place + len(own) - 1
        rules += rf"\cmidrule(lr){{{place}-{last}}}" if group else ""
        title = rf"\multicolumn{{{len(own)}}}{{c}}{{{latex_text(group)}}}"
        above += [title] if group else [""] * len(own)
        place = last + 1
    titles = [_GREEK.get(column.title, latex_text(column.title)) for column in table.columns]
    head = [" & ".join(["row", "description", *titles, *table.ends]) + r" \\"]
    if rules:
        head = [" & ".join(above + [""] * len(table.ends)) + r" \\", rules, *head]
    rows = table.rows(latex_text, number, r"\multicolumn{{{number}}}{{l}}{{{text}}}")
    columns = "ll" + "r" * (len(table.columns) + len(table.ends))
    text = latex(table.heading, columns, head, rows)
    return text + "".join(f"% {plain(note)}\n" for note in table.notes)


def write(tables: Iterable[Table], folder: Path) -> None:
    """Writes tables as Markdown, CSV and LaTeX."""
    formats = {"md": to_markdown, "csv": to_csv, "tex": to_latex}
    for table in tables:
        for kind, written in formats.items():
            write_beside(folder / f"{table.name}.{kind}", written(table))

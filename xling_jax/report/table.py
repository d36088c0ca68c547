"""Result tables, for the terminal and as Markdown, CSV and LaTeX; everything is escaped.

The CSV keeps six digits; everything else has the digits of the papers.
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
_LONG = 12  # from so many characters a name has a wider column
_LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "–": "--", "±": r"$\pm$",
    "≥": r"$\ge$", "≤": r"$\le$", "×": r"$\times$", "−": "$-$", "μ": r"$\mu$", "Δ": r"$\Delta$",
    "’": "'",
    # After a line's end, LaTeX would take these as belonging to it.
    "[": "{[}", "*": "{*}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}  # fmt: skip
_GREEK = {"mu": r"$\mu$", "align. F1": r"align. $F_1$"}
Format = Callable[[float], str]

whole: Format = "{:.0f}".format  # a number of things: 1000
layer: Format = "L{:.0f}".format  # L8
percent: Format = "{:.1f}".format  # 73.6


def share(value: float, digits: str = ".3f") -> str:
    """A score with three digits: .712, 1.000, -.050."""
    return re.sub(r"^(-?)0\.", r"\1.", format(value, digits))


def score(value: float) -> str:
    """A score as the papers print it: .70, 1.00, -.05; never -.00."""
    return share(value, "z.2f")


def difference(value: float) -> str:
    """A difference in percent: -1.4, +0.1, 0.0."""
    text = f"{value:+.1f}"
    return "0.0" if text[1:] == "0.0" else text


def perplexity(value: float) -> str:
    """A perplexity: an integer, from 100,000 with an exponent."""
    return f"{value:.0f}" if value < 99_999.5 else f"{value:.1e}".replace("e+0", "e")


def perplexity_sd(value: float) -> str:
    """The standard deviation of perplexities, small ones with a digit behind the point."""
    return f"{value:.1f}" if value < 100 else perplexity(value)


# As the registry and files of tables name them.
FORMATS: dict[str, Format] = {
    "score": score, "share": share, "perplexity": perplexity, "whole": whole, "layer": layer,
    "decimal": percent,
}  # fmt: skip


class Column(NamedTuple):
    """A column of numbers: the metric, how it is written, and `short`, the terminal's title."""

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
        """The column of a metric, with what the registry says of it where nothing else is said."""
        found = EVALUATORS[decoded(name).name]
        titles = (title, short) if title else (found.heading, found.short)
        return cls(titles[0], name, show or FORMATS[found.format], group or found.group, titles[1])

    def texts(self, line: Line) -> tuple[str, str]:
        """Mean and standard deviation; an absent one is a dash, an absent sd empty."""
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

    source: "ours" or the paper's. cells: by metric. best: the metrics in which it is what a search
    would choose. seeds: as "4/5" where not all 5 are in. message: in the place of numbers.
    diverged: the last good step, by seed. more: what else the CSV says.
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
        """Whether it is of our models."""
        return self.source == OURS

    @property
    def names(self) -> tuple[str, str]:
        """What the line is, without a description that is the row's own name; of a line that is
        not ours, whose."""
        described = "" if self.description == self.row else self.description
        return self.row, described if self.ours else self.source

    @property
    def kinds(self) -> list[tuple[str, str]]:
        """The names, for the page, with their classes; ours are not repeated beneath them."""
        if not self.ours:
            return [("name", ""), ("name", self.source)]
        row, description = (name.replace(";", "; ") for name in self.names)
        return [(kind_of(row), row), ("name", description)]


def published(module: str, source: str, name: str = "published.csv") -> tuple[Line, ...]:
    """A paper's tables, from a file beside a module's, whose columns are row, description, table
    (its number, in `more`), perhaps seeds, and for each metric its name and perhaps `NAME_sd`."""
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

    name: among files. is_stacked: whether descriptions stand above their lines on the terminal.
    spread: what the CSV calls the numbers behind ±.
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
        """Title and caption in one."""
        return f"{self.title}: {self.caption}" if self.caption else self.title

    @property
    def groups(self) -> list[tuple[str, list[Column]]]:
        """Neighbouring columns with the same heading above them."""
        return [(name, list(own)) for name, own in groupby(self.columns, lambda c: c.group)]

    @property
    def ends(self) -> list[str]:
        """What stands behind the numbers: the candidates and the seeds, where lines have them."""
        names = ("candidates", "seeds")
        return [name for name in names if any(getattr(line, name) for line in self.lines)]

    def those_present(self, notes: Sequence[str] = ()) -> Table:
        """The same with those columns that any line has a number for, all while none has, and
        with notes."""
        names = {name for line in self.lines for name in line.cells}
        columns = [column for column in self.columns if column.metric in names or not names]
        return replace(self, columns=columns, notes=notes)

    def rows(
        self, escape: Callable[[str], str], number: Callable[[str, str, bool], str], span: str
    ) -> Iterator[list[str]]:
        """The cells of every line in a format.

        Args:
          escape: makes a text the format's.
          number: makes mean, standard deviation and whether it is the best one the format's.
          span: a message in place of that many numbers; filled with `number` and `text`.
        """
        for line in self.lines:
            cells = [number(*c.texts(line), c.metric in line.best) for c in self.columns]
            if line.message:
                cells = [span.format(number=len(cells), text=escape(line.message))]
            ends = [escape(getattr(line, name)) for name in self.ends]
            yield [*map(escape, line.names), *cells, *ends]


def seeds_in(number: int, planned: int) -> str:
    """How many of a line's seeds are in its means."""
    return str(number) if number >= planned else f"{number}/{planned}"


def row_line(run: Run, row: Row) -> Line:
    """A row of a run, with its means or why it has none, and how many of its seeds are in them."""
    seeds = seeds_in(len(row.seeds), len(run.seeds_planned(row.name)))
    message = ""
    if not row.metrics:
        message = diverged_at(row.diverged) if row.diverged else "not begun"
        message = "not evaluated yet" if row.running else message
        message = NOT_MEASURED if row.seeds else message
    return Line(row.name, row.description, row.metrics, seeds=seeds, message=message,
                diverged=row.diverged)  # fmt: skip


def kind_of(name: str) -> str:
    """The class of a cell with a name."""
    return "name" if len(name) < _LONG else "name long"


def _aligned(column: Column, lines: Sequence[Line]) -> list[str]:
    """A title and the cells beneath it of equal width, the means' ends beneath each other."""
    cells = []
    for line in lines:
        mean, sd = column.texts(line)
        cells.append((mean, "*" * (column.metric in line.best) + f"±{sd}" * bool(sd)))
    left, right = (max(map(len, texts), default=0) for texts in zip(*cells, strict=True))
    texts = [f"{mean:>{left}}{end:<{right}}" for mean, end in cells]
    title = column.short or column.title
    return [f"{text:^{max(len(title), left + right)}}" for text in (title, *texts)]


def to_terminal(table: Table) -> str:
    """Aligned columns beneath the heading; what stands in place of numbers goes across them.

    Between columns is a space, or two if they have no groups, and three between groups.
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
    """A text as Markdown shows it unchanged inside a table or a list."""
    return re.sub(r"([\\`*_|\[\]])", r"\\\1", escape(plain(text), quote=False))


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]], names: int) -> str:
    """A Markdown table of cells that are Markdown already; the first `names` columns are text."""
    rule = "|" + "---|" * names + "---:|" * (len(header) - names)
    lines = ["| " + " | ".join(row) + " |" for row in (header, *rows)]
    return "\n".join([lines[0], rule, *lines[1:]]) + "\n"


def to_markdown(table: Table) -> str:
    """Heading, table and notes."""

    def number(mean: str, sd: str, is_best: bool) -> str:
        return (f"**{mean}**" if is_best else mean) + (f" ±{sd}" if sd else "")

    titles = [f"{c.title} ({c.group})" if c.group else c.title for c in table.columns]
    header = ["row", "description", *map(markdown_text, titles), *table.ends]
    rows = table.rows(markdown_text, number, "{text}" + " | " * (len(titles) - 1))
    notes = "".join(f"* {markdown_text(note)}\n" for note in table.notes)
    heading = markdown_text(table.heading)
    return f"### {heading}\n\n{markdown(header, rows, names=2)}" + (f"\n{notes}" if notes else "")


def to_csv(table: Table) -> str:
    """A column each for means and, with seeds or where any is known, for their spread.

    `diverged` has `seed@step` for every seed that did, `best` the metrics in which the row is the
    search's choice.
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
        if "candidates" in table.ends:
            row["candidates"] = "" if line.candidates == ABSENT else line.candidates
        if has_seeds:
            row["seeds"] = line.seeds
            row["diverged"] = " ".join(f"{s}@{step}" for s, step in sorted(line.diverged.items()))
        if line.more:
            row["best"] = " ".join(sorted(line.best))
        rows.append(row)
    header = None if rows else ["row", "description", *(c.metric for c in table.columns)]
    return pd.DataFrame(rows, columns=header).to_csv(index=False, lineterminator="\n")


def latex_text(text: str) -> str:
    """A text as LaTeX sets it unchanged."""
    return "".join(_LATEX.get(sign, sign) for sign in plain(text))


def latex(title: str, columns: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A `tabular` in the manner of booktabs, of cells that are LaTeX already.

    Args:
      title: what the table is, for a comment above it.
      columns: the alignment of the columns, as `llrr`.
      head: the lines above the rule, each ended if it needs to be.
      rows: the cells.
    """
    lines = [
        f"% {plain(title)}. Needs \\usepackage{{booktabs}}.",
        rf"\begin{{tabular}}{{{columns}}}", r"\toprule", *head, r"\midrule",
        *(" & ".join(row) + r" \\" for row in rows), r"\bottomrule", r"\end{tabular}",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def to_latex(table: Table) -> str:
    """A `tabular` with the groups above the columns; the notes follow as comments."""

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

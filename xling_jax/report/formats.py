"""Grids of text as Markdown, CSV and LaTeX, everything escaped."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from html import escape

_LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "–": "--", "±": r"$\pm$",
    "≥": r"$\ge$", "≤": r"$\le$", "×": r"$\times$", "−": "$-$", "μ": r"$\mu$", "’": "'",
    # After a line's end, LaTeX would take these as belonging to it.
    "[": "{[}", "*": "{*}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}  # fmt: skip


def plain(text: str) -> str:
    """A text on one line."""
    return " ".join(text.split())


def listed(names: Sequence[str]) -> str:
    """Names in words: "a", "a and b", "a, b and c"."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def cut(text: str, width: int) -> str:
    """A text of at most `width` characters."""
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"


def markdown_text(text: str) -> str:
    """A text as Markdown shows it unchanged inside a table or a list."""
    return re.sub(r"([\\`*_|\[\]])", r"\\\1", escape(plain(text), quote=False))


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]], names: int) -> str:
    """A Markdown table of cells that are Markdown already; the first `names` columns are text."""
    rule = "|" + "---|" * names + "---:|" * (len(header) - names)
    lines = ["| " + " | ".join(row) + " |" for row in (header, *rows)]
    return "\n".join([lines[0], rule, *lines[1:]]) + "\n"


def csv_text(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A CSV file with a header."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([header, *rows])
    return file.getvalue()


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
    body = [" & ".join(row) + r" \\" for row in rows]
    lines = [
        f"% {plain(title)}. Needs \\usepackage{{booktabs}}.",
        rf"\begin{{tabular}}{{{columns}}}", r"\toprule", *head, r"\midrule", *body,
        r"\bottomrule", r"\end{tabular}",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def rows_in_words(names: Sequence[str], row: str = "Row") -> str:
    """Rows in words: "Row 0", "Rows 0, 1"."""
    return f"{row}{'s' if len(names) > 1 else ''} {', '.join(names)}"

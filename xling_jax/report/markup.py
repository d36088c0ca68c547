"""Tables as HTML, each in a box that scrolls by itself. Everything is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import groupby
from typing import Any

from xling_jax.report.cells import Column, Line, Table, formatted

_LONG = 12  # from so many characters a name has a wider column


def grid(header: Sequence[str], rows: Iterable[Sequence[Any]], names: int = 1) -> str:
    """A plain table; the first `names` columns are text, and the first stays in sight."""

    def cell(tag: str, content: str, is_name: bool) -> str:
        kind = f' class="{_kind(content)}"' if is_name else ""
        return f"<{tag}{kind}>{escape(content)}</{tag}>"

    def cells(tag: str, row: Sequence[Any]) -> str:
        return "".join(cell(tag, str(content), n < names) for n, content in enumerate(row))

    body = "".join(f"<tr>{cells('td', row)}</tr>\n" for row in rows)
    head = f"<thead><tr>{cells('th', header)}</tr></thead>" if header else ""
    return f'<div class="scroll"><table class="fixed">{head}<tbody>{body}</tbody></table></div>\n'


def _kind(name: str) -> str:
    """The class of a cell with a name."""
    return "name" if len(name) < _LONG else "name long"


def bullets(notes: Iterable[str]) -> str:
    """A list of sentences."""
    return f"<ul>{''.join(f'<li>{escape(note)}</li>' for note in notes)}</ul>\n"


def results(table: Table) -> str:
    """A result table under its title, the paper's lines beneath ours."""
    body = ""
    for line in table.lines:
        start = "".join(f'<td class="{kind}">{escape(name)}</td>' for kind, name in _names(line))
        end = f"<td>{escape(line.candidates)}</td>" if table.has_candidates else ""
        end += f"<td>{escape(line.seeds)}</td>"
        kind = "ours" if line.ours else "paper"
        body += f'<tr class="{kind}">{start}{_numbers(table.columns, line)}{end}</tr>\n'
    return (
        f"<h3>{escape(table.heading)}</h3>\n"
        f'<div class="scroll"><table class="results">{_header(table)}'
        f"<tbody>\n{body}</tbody></table></div>\n"
    )


def _names(line: Line) -> list[tuple[str, str]]:
    """A line's first two cells and their classes; a description that is the row's own is not
    repeated.
    """
    if not line.ours:
        return [("name", ""), ("name", line.source)]
    row, description = (text.replace(";", "; ") for text in (line.row, line.description))
    return [(_kind(row), row), ("name", "" if description == row else description)]


def _numbers(columns: Sequence[Column], line: Line) -> str:
    """A line's cells, or one cell that says why there are none."""
    if line.message:
        kind = "message bad" if line.diverged else "message"
        return f'<td class="{kind}" colspan="{len(columns)}">{escape(line.message)}</td>'
    text = ""
    for column in columns:
        cell = line.cells.get(column.metric)
        mean, sd = formatted(column, cell)
        mean = f'<span class="best">{mean}</span>' if cell and cell.best else mean
        text += f"<td>{mean}<sub>{sd}</sub></td>"
    return text


def _header(table: Table) -> str:
    """Two header rows: the groups, and beneath them their columns."""
    top, below = "", ""
    for group, span in groupby(table.columns, key=lambda column: column.group):
        titles = [column.title for column in span]
        if group:
            top += f'<th colspan="{len(titles)}" class="group">{escape(group)}</th>'
            below += "".join(f"<th>{escape(title)}</th>" for title in titles)
        else:
            top += "".join(f'<th rowspan="2">{escape(title)}</th>' for title in titles)
    first = '<th rowspan="2" class="name">ID</th><th rowspan="2" class="name">description</th>'
    last = '<th rowspan="2">candidates</th>' if table.has_candidates else ""
    last += '<th rowspan="2">seeds</th>'
    return f"<thead><tr>{first}{top}{last}</tr><tr>{below}</tr></thead>"

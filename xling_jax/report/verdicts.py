"""What became of the papers' claims in a run: on the page, as tables, and on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby
from pathlib import Path

from xling_jax.files import write_beside
from xling_jax.report import claims
from xling_jax.report.claims import Decided
from xling_jax.report.formats import csv_text, cut, latex, latex_text, markdown, markdown_text

_HEADER = ("claim", "outcome", "statement", "numbers", "source", "where it is meant to hold")
_RULE = (
    "Undecided is what differs by less than the standard error of the difference over seeds; what "
    "one seed shows is taken as it is."
)
_NUMBERS = 52  # characters at most on the terminal
_TITLE = "Claims"


def _cells(decided: Decided) -> list[str]:
    claim = decided.claim
    start = [claim.id, decided.outcome, claim.statement, decided.numbers]
    return [*start, claim.source, claim.scope]


def _was_run(decided: Decided) -> bool:
    return decided.outcome != claims.NOT_RUN


def _counts(decided: Sequence[Decided]) -> str:
    """How many have which outcome, as "3 held, 1 not held, 9 not run"."""
    outcomes = [each.outcome for each in decided]
    order = (claims.HELD, claims.NOT_HELD, claims.UNDECIDED, claims.NOT_RUN)
    return ", ".join(f"{outcomes.count(name)} {name}" for name in order if name in outcomes)


def to_terminal(decided: Sequence[Decided], width: int) -> list[str]:
    """A line for each claim that was run, and how many were not; none if none was."""
    run = [each for each in decided if _was_run(each)]
    if not run:
        return []
    lines = ["What became of the paper's claims"]
    for each in run:
        outcome = each.outcome.upper() if each.outcome == claims.NOT_HELD else each.outcome
        numbers = cut(each.numbers, _NUMBERS)
        statement = cut(each.claim.statement, width - len(numbers) - 14)
        lines.append(f"  {outcome:<9} {statement}  {numbers}")
    if missing := len(decided) - len(run):
        lines.append(f"  {missing} more {'were' if missing > 1 else 'was'} not run.")
    return [*lines, ""]


def to_html(decided: Sequence[Decided]) -> str:
    """Those that were run in a table, those that were not folded away."""
    if not decided:
        return ""
    text = f'<p class="quiet">{escape(_counts(decided))}. {escape(_RULE)}</p>\n'
    for was_run, group in groupby(sorted(decided, key=lambda e: not _was_run(e)), key=_was_run):
        table = _table(list(group))
        missing = f"<details><summary>Not run</summary>{table}</details>\n"
        text += table if was_run else missing
    return text


def _table(decided: Sequence[Decided]) -> str:
    """Source and scope stand beneath the statement."""
    head = "".join(f"<th>{escape(title)}</th>" for title in _HEADER[:4])
    body = ""
    for each in decided:
        kind = each.outcome.replace(" ", "-")
        *cells, source, scope = (escape(text) for text in _cells(each))
        cells[1] = f'<span class="{kind}">{cells[1]}</span>'
        cells[2] += f"<br><small>{source}. {scope}.</small>"
        body += "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>\n"
    return (
        f'<div class="scroll"><table class="claims"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>\n"
    )


def write(decided: Sequence[Decided], folder: Path) -> None:
    """Writes the claims as Markdown, CSV and LaTeX, if there are any."""
    if not decided:
        return
    rows = [_cells(each) for each in decided]
    safe = [[markdown_text(text) for text in row] for row in rows]
    text = f"### {_TITLE}\n\n{_RULE}\n\n{markdown(_HEADER, safe, names=len(_HEADER))}"
    write_beside(folder / "claims.md", text)
    write_beside(folder / "claims.csv", csv_text(_HEADER, rows))
    write_beside(folder / "claims.tex", _latex(rows))


def _latex(rows: Sequence[Sequence[str]]) -> str:
    """Claim, outcome, statement and numbers; the rest is in the other files."""
    head = [" & ".join(_HEADER[:4]) + r" \\"]
    cells = [[latex_text(text) for text in row[:4]] for row in rows]
    return latex(_TITLE, r"llp{0.4\linewidth}p{0.3\linewidth}", head, cells)

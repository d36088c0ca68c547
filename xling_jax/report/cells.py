"""What a result table is made of, and how its numbers look: as in the paper (.70, 1.00, 217)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

DEEP = "deep"
ABSENT = "–"
OURS = "ours"


class Column(NamedTuple):
    """A column of numbers: `metric` is a metric's name, with `deep` for the deeper layer.

    `shown` writes its numbers, where that is not as in the papers.
    """

    group: str
    title: str
    short: str
    metric: str
    shown: Callable[[float], str] | None = None


class Cell(NamedTuple):
    """A mean, and its standard deviation where more than one seed gave one.

    `best` marks the value that a search would choose.
    """

    mean: float
    sd: float | None = None
    best: bool = False


@dataclass(frozen=True)
class Line:
    """One line of a table.

    `source` is "ours" or the paper's, `table` the number of the paper's table; `seeds` is "4/5"
    where not all 5 are in. A line without numbers has a `message` in their place. `diverged` maps
    a seed to its last good step.
    """

    source: str
    row: str
    description: str
    cells: Mapping[str, Cell]
    layer: int | None
    candidates: str
    seeds: str
    table: int | None = None
    message: str = ""
    diverged: Mapping[int, int] = field(default_factory=dict)

    @property
    def ours(self) -> bool:
        """Whether this is our line, not the paper's."""
        return self.source == OURS


@dataclass(frozen=True)
class Table:
    """Columns, lines in the order of rows, and what a reader must know to read them.

    `name` is the table's name among files.
    """

    name: str
    title: str
    caption: str
    columns: Sequence[Column]
    lines: Sequence[Line]
    notes: Sequence[str]

    @property
    def heading(self) -> str:
        """Title and caption in one."""
        return f"{self.title}: {self.caption}" if self.caption else self.title

    @property
    def has_candidates(self) -> bool:
        """Whether any line says among how many candidates translations were looked for."""
        return any(line.candidates for line in self.lines)


def score(value: float) -> str:
    """A score as the papers print it: .70, 1.00, -.05."""
    sign, digits = "-" if value < 0 else "", f"{abs(value):.2f}"
    return ".00" if digits == "0.00" else sign + digits.removeprefix("0")


def share(value: float) -> str:
    """A score with three digits: .712, 1.000, -.050."""
    return re.sub(r"^(-?)0\.", r"\1.", f"{value:.3f}")


def whole(value: float) -> str:
    """A number of things: 1000."""
    return f"{value:.0f}"


def perplexity(value: float) -> str:
    """A perplexity: an integer, from 100,000 with an exponent."""
    return f"{value:.0f}" if value < 99_999.5 else f"{value:.1e}".replace("e+0", "e")


def formatted(column: Column, cell: Cell | None) -> tuple[str, str]:
    """Mean and standard deviation as text; an absent one is a dash, an absent sd empty."""
    if cell is None:
        return ABSENT, ""
    if column.shown:
        return column.shown(cell.mean), "" if cell.sd is None else column.shown(cell.sd)
    if not column.metric.startswith("perplexity"):
        return score(cell.mean), "" if cell.sd is None else score(cell.sd)
    if cell.sd is None:
        return perplexity(cell.mean), ""
    return perplexity(cell.mean), f"{cell.sd:.1f}" if cell.sd < 100 else perplexity(cell.sd)


def diverged_at(steps: Mapping[int, int]) -> str:
    """Where every seed of a row diverged, as "diverged at step 1,200–1,400"."""
    first, last = min(steps.values()), max(steps.values())
    return f"diverged at step {first:,}" + (f"–{last:,}" if last > first else "")

"""The papers' findings as statements that a run, or a paper's own numbers, can decide.

A `Claim` says in words what is tested and holds the checks that test just that. A check compares
a `Quantity` with another or with a constant; quantities are read from `Evidence`, that is a run
or the printed tables. Means over seeds decide, if they differ by more than their standard error.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from xling_jax.records import UNKNOWN, Identity
from xling_jax.report import cells
from xling_jax.report.rows import Curve

# Outcomes; undecided: a difference within its standard error over seeds; not run: something that
# the claim needs is not there.
HELD, NOT_HELD, UNDECIDED, NOT_RUN = "held", "not held", "undecided", "not run"
# What a claim is decided on; the paper prints numbers for the tables alone.
ON_TABLES, ON_CURVES, ON_POSITIONS = "tables", "curves", "position embeddings"

_SIGNS = {"<": operator.lt, "≤": operator.le, ">": operator.gt, "≥": operator.ge}
Curves = Mapping[str, Curve]


class Missing(Exception):
    """The evidence lacks what a claim needs; the message says what."""


@dataclass(frozen=True)
class Measure:
    """A mean over `number` seeds, their sd (ddof=0; None for one) and values, as far as known."""

    mean: float
    sd: float | None = None
    number: int | None = None
    by_seed: Mapping[int, float] = field(default_factory=dict)

    @property
    def squared_error(self) -> float:
        """The square of the mean's standard error: 0 of one seed, or of a number without an sd;
        infinite if a seed's value is not finite."""
        if self.sd is None:
            return math.inf if len(self.by_seed) > 1 else 0.0
        return self.sd**2 / (self.number - 1) if self.number and self.number > 1 else 0.0

    def times(self, factor: float) -> Measure:
        """The same in another unit."""
        by_seed = {seed: factor * value for seed, value in self.by_seed.items()}
        sd = None if self.sd is None else abs(factor) * self.sd
        return Measure(factor * self.mean, sd, self.number, by_seed)


def measured(mean: float, by_seed: Mapping[int, float]) -> Measure:
    """A mean with the spread of its seeds; no spread where a seed's value is not finite."""
    values = list(by_seed.values())
    spread = len(values) > 1 and all(map(math.isfinite, values))
    return Measure(mean, float(np.std(values)) if spread else None, len(values), by_seed)


def minus(first: Measure, second: Measure) -> Measure:
    """A difference, with the spread of it over seeds that both have."""
    seeds = [seed for seed in first.by_seed if seed in second.by_seed]
    by_seed = {seed: first.by_seed[seed] - second.by_seed[seed] for seed in seeds}
    mean = first.mean - second.mean
    return measured(mean, by_seed) if by_seed else Measure(mean)


@dataclass(frozen=True)
class RowEvidence:
    """A row that has ended, without the seeds that diverged: mean curves, and each seed's.

    Metrics and curves have `deep` in their names for the deeper layer's number.
    """

    metrics: Mapping[str, Measure]
    curves: Curves = field(default_factory=dict)
    seed_curves: Mapping[int, Curves] = field(default_factory=dict)
    diverged: tuple[int, ...] = ()


@dataclass(frozen=True)
class Evidence:
    """What is known of rows; `unusable` says why one cannot be used, `elsewhere` why all others.

    `arrays` maps a row to a seed and its file, of the experiment `identity`. `printed` marks a
    paper's tables.
    """

    rows: Mapping[str, RowEvidence]
    unusable: Mapping[str, str] = field(default_factory=dict)
    elsewhere: str = "not in this run"
    arrays: Mapping[str, tuple[int, Path]] = field(default_factory=dict)
    printed: bool = False
    identity: Identity = UNKNOWN

    def usable(self, *names: str) -> list[RowEvidence]:
        """Rows that have ended; raises `Missing` naming those that have not, and why."""
        wrong = {n: self.unusable.get(n, self.elsewhere) for n in names if n not in self.rows}
        if wrong:
            of = {why: ", ".join(n for n in wrong if wrong[n] == why) for why in wrong.values()}
            texts = [f"{why}: row{'s' if ',' in row else ''} {row}" for why, row in of.items()]
            raise Missing("; ".join(texts))
        return [self.rows[name] for name in names]

    def metric(self, row: str, metric: str) -> Measure:
        """A row's metric at the end of training; raises `Missing` without a finite one."""
        metrics = self.usable(row)[0].metrics
        if metric not in metrics:
            raise Missing(f"no finite {in_words(metric)}: row {row}")
        return metrics[metric]


def in_words(metric: str) -> str:
    """A metric's name in words: retrieval at layer 0, train perplexity."""
    name, _, end = metric.rpartition("_")
    if name == "perplexity":
        return f"{end} perplexity"
    layer = {"0": " at layer 0", cells.DEEP: " at the deeper layer"}
    return name.replace("_f1", " F1") + layer[end] if end in layer else metric


def score(value: float) -> str:
    """A score or a share with three digits, the third left out if it is 0: .314, .70."""
    if not math.isfinite(value):
        return "never" if value > 0 else "undefined"
    return re.sub(r"^(-?)0\.", r"\1.", f"{value:.3f}".removesuffix("0"))


def _perplexity(value: float) -> str:
    return f"{value:.3g}" if value < 100 else cells.perplexity(value)


@dataclass(frozen=True)
class Quantity:
    """A number of a row, how it is read and shown; `others` are rows it takes something from."""

    name: str
    row: str
    read: Callable[[Evidence], Measure]
    basis: str = ON_TABLES
    others: tuple[str, ...] = ()
    shown: Callable[[float], str] = score


def metric(name: str, row: str) -> Quantity:
    """A metric of a row at the end of training, `deep` in its name for the deeper layer."""
    shown = _perplexity if name.startswith("perplexity") else score
    return Quantity(in_words(name), row, lambda known: known.metric(row, name), shown=shown)


@dataclass(frozen=True)
class Check:
    """`left sign factor * right + plus`, on means; a constant on the right is taken as it is."""

    left: Quantity
    sign: str
    right: Quantity | float
    factor: float = 1.0
    plus: float = 0.0

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """The one or two quantities compared."""
        return (self.left, self.right) if isinstance(self.right, Quantity) else (self.left,)

    def compare(self, evidence: Evidence) -> tuple[bool, bool]:
        """Whether it holds, and whether the sides differ by less than the standard error of that
        difference: of the differences between the same seeds, where both sides have several, and
        else of both means. One seed has none, so what it shows is taken as it is."""
        left = self.left.read(evidence)
        bound, squared = self.right, left.squared_error
        if isinstance(bound, Quantity):
            right = bound.read(evidence).times(self.factor)
            by_seed = minus(left, right)
            is_paired = len(by_seed.by_seed) > 1
            squared = by_seed.squared_error if is_paired else squared + right.squared_error
            bound = right.mean + self.plus
        return _SIGNS[self.sign](left.mean, bound), abs(left.mean - bound) < math.sqrt(squared)

    def in_words(self) -> str:
        """The check as a formula: row 7: mu ≥ 0.5 × row 0's."""
        start = f"row {self.left.row}: {self.left.name} {self.sign} "
        if not isinstance(self.right, Quantity):
            return start + self.left.shown(self.right)
        factor = f"{self.factor:.3g} × " if self.factor != 1 else ""
        name = "" if self.right.name == self.left.name else f" {self.right.name}"
        plus = f" {'+' if self.plus > 0 else '-'} {abs(self.plus):g}" if self.plus else ""
        return f"{start}{factor}row {self.right.row}'s{name}{plus}"


@dataclass(frozen=True)
class Claim:
    """A finding: it holds if all of its checks do, and does not if one clearly fails; between, it
    is undecided. `scope` says where it is meant to hold, `missing` why a run has nothing for it."""

    id: str
    source: str
    scope: str
    statement: str
    checks: tuple[Check, ...]
    missing: str = ""

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """What is compared, each once, in the order of the checks."""
        found = [quantity for check in self.checks for quantity in check.quantities]
        return tuple({(quantity.name, quantity.row): quantity for quantity in found}.values())

    @property
    def rows(self) -> tuple[str, ...]:
        """Every row that is needed, in the order of the checks."""
        needed = (row for each in self.quantities for row in (each.row, *each.others))
        return tuple(dict.fromkeys(needed))

    @property
    def basis(self) -> str:
        """Tables, if they have all that is needed."""
        return next((each.basis for each in self.quantities if each.basis != ON_TABLES), ON_TABLES)

    def decide(self, evidence: Evidence) -> Decided:
        """The verdict, with the numbers that decide it."""
        if self.missing:
            return Decided(self, NOT_RUN, self.missing)
        if evidence.printed and self.basis != ON_TABLES:
            return Decided(self, NOT_RUN, "the paper prints no numbers for this")
        try:
            found = evidence.usable(*self.rows)
            parts = self._numbers(evidence)
            compared = [(check.in_words(), *check.compare(evidence)) for check in self.checks]
        except Missing as missing:
            return Decided(self, NOT_RUN, str(missing))
        close = [check for check, _, near in compared if near]
        failed = [check for check, held, near in compared if not held and not near]
        outcome = NOT_HELD if failed else UNDECIDED if close else HELD
        parts += [f"not so: {', '.join(failed)}"] if failed else []
        parts += [f"within the standard error: {', '.join(close)}"] if close else []
        for row, of in zip(self.rows, found, strict=True):
            parts += [f"seed {seed} of row {row} diverged" for seed in of.diverged]
        return Decided(self, outcome, "; ".join(parts))

    def _numbers(self, evidence: Evidence) -> list[str]:
        """Each name once, with its rows: `mu: row 1 .314 ±.05, row 2 .64 ±.02 (3 seeds)`."""
        by_name: dict[str, dict[str, str]] = {}
        numbers = set()
        for each in self.quantities:
            found = each.read(evidence)
            spread = "" if found.sd is None else f" ±{each.shown(found.sd)}"
            text = f"row {each.row} {each.shown(found.mean)}{spread}"
            by_name.setdefault(each.name, {})[each.row] = text
            numbers.add(found.number or 0)
        lists = {n: ", ".join(of[r] for r in self.rows if r in of) for n, of in by_name.items()}
        parts = [f"{name}: {texts}" for name, texts in lists.items()]
        if all(numbers):
            seeds = " to ".join(map(str, sorted({min(numbers), max(numbers)})))
            parts[-1] += f" ({seeds} seed{'s' if seeds != '1' else ''})"
        return parts


@dataclass(frozen=True)
class Decided:
    """A claim's verdict; `numbers` are those that decide it, or what is missing."""

    claim: Claim
    outcome: str
    numbers: str

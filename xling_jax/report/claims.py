"""The papers' findings as statements that a run, or a paper's own numbers, can decide.

A `Claim` says in words what is tested and holds the checks that test just that. A check compares
a `Quantity` with another or with a constant; quantities are read from `Evidence`, that is a run
or the printed tables. Means over seeds decide, if they differ by more than their standard error.

Claims are data: a CSV file has one in each line. Its checks are written like `mu[7] ≥ 0.5 × mu[0]`,
`mu[2] ≥ mu[0] - 0.1` or `mu_at_best_dev[{row}] < 0.5`, and separated by "; ". A quantity is a
metric, or one that the experiment defines, with its row and any other arguments in brackets. Names
in braces take several values, see `choices`.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import ClassVar, NamedTuple

import pandas as pd

from xling_jax.files import write_beside
from xling_jax.records import UNKNOWN, Identity
from xling_jax.report import table
from xling_jax.report.frame import Curve, Measure, decoded, minus
from xling_jax.report.prose import cut, grouped, plural

# Outcomes. Undecided: a difference is within its standard error over seeds. Not run: something that
# the claim needs is missing.
HELD, NOT_HELD, UNDECIDED, NOT_RUN = "held", "not held", "undecided", "not run"
_SIGNS = {"<": operator.lt, "≤": operator.le, ">": operator.gt, "≥": operator.ge}
_CHECK = re.compile(
    r"(?P<left>.+?\[.+?\]) (?P<sign>[<≤>≥]) (?:(?P<constant>[\d.]+)|"
    r"(?:(?P<factor>[\d./]+) × )?(?P<right>.+?\[.+?\])(?: (?P<plus>[+-] [\d.]+))?)"
)
_HEADER = ["claim", "outcome", "statement", "numbers", "source", "where it is meant to hold"]
_RULE = (
    "Undecided is what differs by less than the standard error of the difference over seeds; what "
    "one seed shows is taken as it is."
)
_NUMBERS = 52  # characters at most on the terminal
Curves = Mapping[str, Curve]


class Missing(Exception):
    """The evidence lacks what a claim needs; the message says what."""


@dataclass(frozen=True)
class RowEvidence:
    """A row that has ended, without the seeds that diverged: metrics, mean curves and each seed's
    curves."""

    metrics: Mapping[str, Measure]
    curves: Curves = field(default_factory=dict)
    seed_curves: Mapping[int, Curves] = field(default_factory=dict)
    diverged: tuple[int, ...] = ()


@dataclass(frozen=True)
class Evidence:
    """What is known of the rows of a run, or of printed tables.

    Attributes:
      rows: the rows that have ended, by name.
      unusable: for other rows of the run, why they cannot be used.
      arrays: for each row, a seed and the file of its arrays, from the experiment `identity`.
    """

    rows: Mapping[str, RowEvidence]
    unusable: Mapping[str, str] = field(default_factory=dict)
    arrays: Mapping[str, tuple[int, Path]] = field(default_factory=dict)
    identity: Identity = UNKNOWN

    def usable(self, *names: str) -> list[RowEvidence]:
        """Rows that have ended; raises `Missing` naming those that have not, and why."""
        wrong = grouped((self.unusable.get(name, "not in this run"), name)
                        for name in names if name not in self.rows)  # fmt: skip
        if wrong:
            raise Missing("; ".join(f"{why}: {plural('row', rows)}" for why, rows in wrong.items()))
        return [self.rows[name] for name in names]

    def metric(self, row: str, metric: str) -> Measure:
        """A row's metric at the end of training; raises `Missing` without a finite one."""
        metrics = self.usable(row)[0].metrics
        if metric not in metrics:
            raise Missing(f"no finite {decoded(metric).in_words}: row {row}")
        return metrics[metric]


def score(value: float) -> str:
    """A score or a share with three digits, without the third if that is 0: .314, .70."""
    if not math.isfinite(value):
        return "never" if value > 0 else "undefined"
    return table.share(value).removesuffix("0")


def _perplexity(value: float) -> str:
    return f"{value:.3g}" if value < 100 else table.perplexity(value)


@dataclass(frozen=True)
class Quantity:
    """A number of a row, with how it is read and shown; `others` are other rows that it needs."""

    name: str
    row: str
    read: Callable[[Evidence], Measure]
    others: tuple[str, ...] = ()
    shown: table.Format = score


def metric(name: str, row: str, words: str = "", shown: table.Format | None = None) -> Quantity:
    """A metric of a row at the end of training; `deep` in its name means the deeper layer."""
    key = decoded(name)
    is_perplexity = key.evaluator and key.evaluator.unit == "perplexity"
    shown = shown or (_perplexity if is_perplexity else score)
    return Quantity(words or key.in_words, row, lambda e: e.metric(row, name), shown=shown)


def surplus(
    name: str, first: Quantity, second: Quantity, row: str, shown: table.Format = score
) -> Quantity:
    """The first of two quantities minus the second, as a quantity of `row`."""
    others = tuple(each.row for each in (first, second) if each.row != row)
    return Quantity(name, row, lambda e: minus(first.read(e), second.read(e)), others, shown)


@dataclass(frozen=True)
class Check:
    """`left sign factor * right + plus`, on means; a constant `right` has no factor and no plus."""

    left: Quantity
    sign: str
    right: Quantity | float
    factor: float = 1.0
    plus: float = 0.0

    def compare(self, evidence: Evidence) -> tuple[bool, bool]:
        """Whether the check holds, and whether its sides differ by less than the standard error of
        their difference. That is the error of the differences seed by seed, if both sides have the
        same seeds, and else of both means. Single seeds have none, so they decide, unless a side
        is not a number."""
        left = self.left.read(evidence)
        sides, bound, squared = [left], self.right, left.squared_error
        if isinstance(bound, Quantity):
            sides.append(right := bound.read(evidence).times(self.factor))
            bound, squared = right.mean + self.plus, minus(left, right).squared_error
        is_open = any(math.isinf(side.squared_error) for side in sides)  # some seeds are infinite
        is_open |= math.isnan(left.mean) or math.isnan(bound)
        is_close = is_open or abs(left.mean - bound) < math.sqrt(squared)
        return _SIGNS[self.sign](left.mean, bound), is_close

    def in_words(self) -> str:
        """The check as a formula, such as "row 7: mu ≥ 0.5 × row 0's"."""
        start = f"row {self.left.row}: {self.left.name} {self.sign} "
        if not isinstance(self.right, Quantity):
            return start + self.left.shown(self.right)
        factor = f"{self.factor:.3g} × " if self.factor != 1 else ""
        name = "" if self.right.name == self.left.name else f" {self.right.name}"
        plus = f" {'+' if self.plus > 0 else '-'} {abs(self.plus):g}" if self.plus else ""
        return f"{start}{factor}row {self.right.row}'s{name}{plus}"


def choices(each: str) -> list[dict[str, str]]:
    """Every combination of values for names in braces, from a text like `row=1 2; layer=0 deep`."""
    values = dict(part.split("=") for part in each.split("; ") if part)
    every = product(*(of.split() for of in values.values()))
    return [dict(zip(values, chosen, strict=True)) for chosen in every]


def _bound(text: str, binding: Mapping[str, str]) -> tuple[str, ...]:
    """The name of a quantity and its arguments in brackets.

    The text is taken apart before values are filled in, so that they may hold any character.
    """
    name, _, arguments = text.removesuffix("]").partition("[")
    return tuple(part.format_map(binding) for part in (name, *arguments.split(", ")))


def checks_of(
    text: str,
    bindings: Sequence[Mapping[str, str]],
    quantities: Mapping[str, Callable[..., Quantity]],
) -> tuple[Check, ...]:
    """The checks that are written in a file, for each combination of values, each check once.

    Args:
      text: the checks.
      bindings: the combinations of values for names in braces.
      quantities: for quantities that are not metrics, functions of their arguments in brackets.
    """
    found: dict[object, Check] = {}
    for check in text.split("; "):
        match = _CHECK.fullmatch(check)
        if match is None:
            raise ValueError(f"{check!r} is no check: write it as NAME[row] ≥ 0.5 × NAME[row]")
        factor = float(Fraction(match["factor"] or 1))
        plus = float((match["plus"] or "0").replace(" ", ""))
        for binding in bindings:
            sides = [_bound(match[side], binding) for side in ("left", "right") if match[side]]
            left, *right = (quantities.get(name, partial(metric, name))(*of) for name, *of in sides)
            bound = right[0] if right else float(match["constant"])
            found[check, *sides] = Check(left, match["sign"], bound, factor, plus)
    return tuple(found.values())


@dataclass(frozen=True)
class Claim:
    """A finding: it holds if all of its checks clearly do, and does not if one clearly fails;
    otherwise it is undecided. `scope` says where it is meant to hold, `missing` why a run cannot
    test it."""

    id: str
    source: str
    scope: str
    statement: str
    checks: tuple[Check, ...]
    missing: str = ""

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """The quantities that are compared, each once, in the order of the checks."""
        sides = [side for check in self.checks for side in (check.left, check.right)]
        found = {(side.name, side.row): side for side in sides if isinstance(side, Quantity)}
        return tuple(found.values())

    @property
    def rows(self) -> tuple[str, ...]:
        """Every row that is needed, in the order of the checks."""
        needed = (row for each in self.quantities for row in (each.row, *each.others))
        return tuple(dict.fromkeys(needed))

    def decide(self, evidence: Evidence) -> Decided:
        """The verdict, with the numbers that decide it."""
        if self.missing:
            return Decided(self, NOT_RUN, self.missing)
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
        """Each name once, with its rows, as `mu: row 1 .314 ±.05, row 2 .64 ±.02 (3 seeds)`."""
        by_name, numbers = dict[str, dict[str, str]](), set[int]()
        for each in self.quantities:
            found = each.read(evidence)
            spread = "" if found.sd is None else f" ±{each.shown(found.sd).removeprefix('+')}"
            text = f"row {each.row} {each.shown(found.mean)}{spread}"
            by_name.setdefault(each.name, {})[each.row] = text
            numbers.add(found.number or 0)
        lists = {n: ", ".join(of[r] for r in self.rows if r in of) for n, of in by_name.items()}
        parts = [f"{name}: {texts}" for name, texts in lists.items()]
        if all(numbers):
            seeds = " to ".join(map(str, sorted({min(numbers), max(numbers)})))
            parts[-1] += f" ({seeds} seed{'s' if seeds != '1' else ''})"
        return parts


class Filled(NamedTuple):
    """What a run fills into a claim: its scope, lists of values for names in braces, and why there
    are none."""

    scope: str
    bindings: Sequence[Sequence[Mapping[str, str]]] = ()
    missing: str = ""


def load(
    module: str, quantities: Mapping[str, Callable[..., Quantity]],
    fill: Callable[[Mapping[str, str]], Filled] | None = None,
) -> list[Claim]:  # fmt: skip
    """The claims of `claims.csv` beside a module's file. The file gives their scopes and values, or
    leaves both to `fill`, which takes a line by the names of its columns."""
    path, found = Path(module).with_name("claims.csv"), []
    for line in pd.read_csv(path, dtype=str, keep_default_na=False).to_dict("records"):
        if fill:
            scope, bindings, missing = fill(line)
        else:
            scope, bindings, missing = Filled(line["scope"], [choices(line["each"])])
        made = (checks_of(line["checks"], each, quantities) for each in bindings)
        found.append(Claim(line["id"], line["source"], scope, line["statement"],
                           tuple(chain.from_iterable(made)), missing))  # fmt: skip
    return found


class Decided(NamedTuple):
    """A claim's verdict; `numbers` are those that decide it, or what is missing."""

    claim: Claim
    outcome: str
    numbers: str


@dataclass(frozen=True)
class Verdicts:
    """The outcomes of claims, for a page and its files."""

    decided: Sequence[Decided]
    kind: ClassVar = "claims"

    @property
    def summary(self) -> str:
        """The numbers of the outcomes, as "3 held, 1 not held, 9 not run", and what they mean."""
        outcomes = [each.outcome for each in self.decided]
        order = (name for name in (HELD, NOT_HELD, UNDECIDED, NOT_RUN) if name in outcomes)
        return f"{', '.join(f'{outcomes.count(name)} {name}' for name in order)}. {_RULE}"

    def to_terminal(self) -> str:
        """A line for each claim that was run, and how many were not; empty if none was."""
        run = [each for each in self.decided if each.outcome != NOT_RUN]
        if not run:
            return ""
        lines = ["What became of the paper's claims"]
        for each in run:
            outcome = each.outcome.upper() if each.outcome == NOT_HELD else each.outcome
            numbers = cut(each.numbers, _NUMBERS)
            statement = cut(each.claim.statement, table.WIDTH - len(numbers) - 14)
            lines.append(f"  {outcome:<9} {statement}  {numbers}")
        if missing := len(self.decided) - len(run):
            lines.append(f"  {missing} more {'were' if missing > 1 else 'was'} not run.")
        return "\n".join(lines) + "\n"

    def write(self, folder: Path) -> None:
        """Writes the claims as Markdown, CSV and LaTeX, if there are any."""
        if not self.decided:
            return
        rows = [(of.id, outcome, of.statement, numbers, of.source, of.scope)
                for of, outcome, numbers in self.decided]  # fmt: skip
        safe = [[table.markdown_text(text) for text in row] for row in rows]
        text = table.markdown(_HEADER, safe, names=len(_HEADER))
        write_beside(folder / "claims.md", f"### Claims\n\n{_RULE}\n\n{text}")
        frame = pd.DataFrame(rows, columns=_HEADER)
        write_beside(folder / "claims.csv", frame.to_csv(index=False, lineterminator="\n"))
        # The other columns are in the other files.
        cells = [[table.latex_text(text) for text in row[:4]] for row in rows]
        head = [" & ".join(_HEADER[:4]) + r" \\"]
        columns = r"llp{0.4\linewidth}p{0.3\linewidth}"
        write_beside(folder / "claims.tex", table.latex("Claims", columns, head, cells))

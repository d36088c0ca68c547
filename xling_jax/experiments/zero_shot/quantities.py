"""The numbers that claims about transfer compare, in percent; rows are named with their task."""

from __future__ import annotations

from collections.abc import Callable

from xling_jax.experiments.zero_shot.report_tables import MEAN, difference, percent
from xling_jax.experiments.zero_shot.scores import DEFAULT
from xling_jax.report.claims import Evidence, Measure, Quantity, minus

AVERAGE = "average"


def above_name(language: str) -> str:
    """The metric that `above` reads."""
    return f"above_{language}"


def _in(language: str) -> str:
    return "" if language == MEAN else f" in {language}"


def _stored(name: str, row: str, metric: str, shown: Callable[[float], str] = percent) -> Quantity:
    return Quantity(name, row, lambda known: known.metric(row, metric), shown=shown)


def _difference(
    name: str, row: str, both: tuple[Quantity, Quantity], shown: Callable[[float], str]
) -> Quantity:
    """What the first of two is above the second; it is told of one of their rows."""

    def read(evidence: Evidence) -> Measure:
        first, second = both
        return minus(first.read(evidence), second.read(evidence))

    others = tuple(each.row for each in both if each.row != row)
    return Quantity(name, row, read, others=others, shown=shown)


def score(task: str, row: str, language: str = MEAN) -> Quantity:
    """The score of a row on a task, the mean over target languages or that of one."""
    return _stored(f"score{_in(language)}", f"{row}/{task}", language)


def average(row: str) -> Quantity:
    """The mean over tasks of the means over target languages."""
    return _stored(AVERAGE, row, AVERAGE)


def above(task: str, row: str, language: str) -> Quantity:
    """How much a row's score in a language is above the better baseline."""
    name = f"points above baselines{_in(language)}"
    return _stored(name, f"{row}/{task}", above_name(language), difference)


def gain(task: str, row: str, since: str, language: str = MEAN) -> Quantity:
    """How much a row's score is above another's."""
    both = score(task, row, language), score(task, since, language)
    return _difference(f"gain{_in(language)} over {since}", both[0].row, both, difference)


def cost(task: str, row: str, language: str = MEAN) -> Quantity:
    """How much the score of row `DEFAULT` is above a row's."""
    both = score(task, DEFAULT, language), score(task, row, language)
    return _difference(f"cost{_in(language)}", both[1].row, both, percent)

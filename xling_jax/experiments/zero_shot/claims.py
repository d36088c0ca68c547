"""What Wu, Conneau et al. 2020 find in §4, as claims on the rows and tasks that a run has.

All of them hold on the paper's own table. Scores are in percent, and a row's score on a task is the
mean over target languages unless a claim names one. Where the paper gives no threshold ("modest",
"reasonably strong", "random"), it is ours. Rows are named with a task, or alone where the tasks
are averaged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise, product
from pathlib import Path

from xling_jax.experiments.similarity.claims import BY_DISTANCE, FROM
from xling_jax.experiments.zero_shot.scores import (
    BASELINES,
    DEFAULT,
    LANGUAGES,
    LINES,
    MEAN,
    Board,
    printed,
    settings_ended,
)
from xling_jax.report import claims as checks
from xling_jax.report.claims import (
    Check,
    Claim,
    Decided,
    Evidence,
    Quantity,
    RowEvidence,
    metric,
)
from xling_jax.report.claims import above as above_other
from xling_jax.report.frame import Measure, mean_of
from xling_jax.report.prose import listed
from xling_jax.report.table import difference, percent
from xling_jax.tasks import PAPER

AVERAGE = "average"
_FILE = Path(__file__).with_name("claims.csv")
# XNLI has as many pairs of each of three labels; the paper prints no baselines of the others.
_CHANCE = {"nli": 100 / 3}


def _in(language: str) -> str:
    return "" if language == MEAN else f" in {language}"


def _as_row(place: str) -> str:
    """The name of TASK/ROW in evidence."""
    return "/".join(reversed(place.split("/", 1)))


def score(place: str, language: str = MEAN) -> Quantity:
    """The score on TASK/ROW, the mean over target languages or that of one."""
    return metric(language, _as_row(place), f"score{_in(language)}", percent)


def average(row: str) -> Quantity:
    """The mean over tasks of the means over target languages."""
    return metric(AVERAGE, row, AVERAGE, percent)


def above(place: str, language: str) -> Quantity:
    """How much the score on TASK/ROW in a language is above the better baseline."""
    name = f"points above baselines{_in(language)}"
    return metric(f"above_{language}", _as_row(place), name, difference)


def gain(place: str, since: str, language: str = MEAN) -> Quantity:
    """How much the score on TASK/ROW is above that of another row."""
    both = score(place, language), score(f"{place.partition('/')[0]}/{since}", language)
    return above_other(f"gain{_in(language)} over {since}", *both, both[0].row, difference)


def cost(place: str, language: str = MEAN) -> Quantity:
    """How much the score of row `DEFAULT` is above that on TASK/ROW."""
    both = score(f"{place.partition('/')[0]}/{DEFAULT}", language), score(place, language)
    return above_other(f"cost{_in(language)}", *both, both[1].row, percent)


QUANTITIES: Mapping[str, Callable[..., Quantity]] = {
    each.__name__: each for each in (score, average, above, gain, cost)
}


def _evidence(
    scores: Mapping[tuple[str, str], Mapping[str, Measure]],
    baselines: Mapping[tuple[str, str], float],
    tasks: Sequence[str],
    unusable: Mapping[str, str],
    printed: bool = False,
) -> Evidence:
    """What is known of rows on tasks, and of rows that have all of them.

    scores are of a row and a task, by target language, baselines of a task and a language;
    `unusable` says why there is none, by `ROW/TASK`.
    """
    found, lacking = {}, dict(unusable)
    for (row, task), own in scores.items():
        over = {
            f"above_{language}": Measure(value.mean - known, value.sd, value.number)
            for language, value in own.items()
            if (known := baselines.get((task, language))) is not None
        }
        found[f"{row}/{task}"] = RowEvidence({**own, **over, MEAN: mean_of(list(own.values()))})
    for row in dict.fromkeys(row for row, _ in scores):
        parts = [found[name] for task in tasks if (name := f"{row}/{task}") in found]
        if len(parts) == len(tasks):
            found[row] = RowEvidence({AVERAGE: mean_of([part.metrics[MEAN] for part in parts])})
    for row in (name.rpartition("/")[0] for name in unusable):
        if row not in found:
            lacking.setdefault(row, "not ended on every task")
    return Evidence(found, lacking, printed=printed)


def of_run(board: Board) -> Evidence:
    """The jobs on the paper's tasks that have ended with all settings, of every pair."""
    tasks = [task for task in board.tasks if task in PAPER]
    scores: dict[tuple[str, str], dict[str, Measure]] = {}
    unusable = {}
    for row, task in product(board.rows, tasks):
        own, found = board.of(row, task), board.scores(row, task, board.targets)
        if not own:
            continue
        if not all(job.has_ended for job in own) or len(own) < len(board.sources):
            unusable[f"{row}/{task}"] = f"not ended ({settings_ended(own)} settings have)"
        elif len(found) < len(board.targets):
            unusable[f"{row}/{task}"] = "diverged with every setting"
        else:
            pairs: dict[str, list[Measure]] = {}  # that test a language
            for (_, language), value in found.items():
                pairs.setdefault(language, []).append(value)
            scores[row, task] = {name: mean_of(values) for name, values in pairs.items()}
    better: dict[tuple[str, str], float] = {}
    for task, which in product(tasks, BASELINES):
        for (_, language), known in board.baselines(task, which).items():
            better[task, language] = max(known, better.get((task, language), 0.0))
    return _evidence(scores, better, tasks, unusable)


def of_paper() -> Evidence:
    """The printed numbers."""
    scores = {
        (line.row, task): {name: printed(line.row, task)[name] for name in LANGUAGES}
        for line, task in product(LINES, PAPER)
    }
    chance = {(task, name): _CHANCE.get(task, 0.0) for task in PAPER for name in LANGUAGES}
    return _evidence(scores, chance, PAPER, {}, printed=True)


def by_distance(sources: Iterable[str], languages: Iterable[str]) -> list[str]:
    """The languages from near to far, as far as their distances from the source are known."""
    if set(sources) != {FROM}:
        return []
    names = set(languages)
    return max(([name for name in order if name in names] for order in BY_DISTANCE), key=len)


def decide(board: Board) -> list[Decided]:
    """Every claim's verdict on a run, always in the same order."""
    languages = list(dict.fromkeys(name for _, name in board.targets))
    order = by_distance((name for _, name in board.sources), languages)
    evidence = of_run(board)
    return [claim.decide(evidence) for claim in claims(board.tasks, languages, order)]


def claims(tasks: Sequence[str], languages: Sequence[str], order: Sequence[str]) -> list[Claim]:
    """The paper's claims on some tasks and target languages; `order` has those languages whose
    distance is known, from near to far."""
    return [_claim(line, tasks, languages, order) for line in checks.read(_FILE)]


def _claim(
    line: Mapping[str, str], tasks: Sequence[str], languages: Sequence[str], order: Sequence[str]
) -> Claim:
    """A claim on those of its tasks that there are.

    One that needs them together has all or none, one that needs distances two languages of a known
    order; it is on them, the others are on the mean over languages.
    """
    own, wanted = [task for task in line["tasks"].split() if task in tasks], line["tasks"].split()
    lacking = [task for task in wanted if task not in tasks]
    by_distance, missing = line["needs"] == "distances", ""
    if lacking and (line["needs"] == "together" or not own):
        missing = f"not in this run: task{'s' if len(lacking) > 1 else ''} {listed(lacking)}"
    elif by_distance and len(order) < 2:
        missing = f"2 languages whose order by distance is known are needed, not {len(order)}"
    named = order if by_distance else languages
    scope = f"Tasks {listed(own)}" if len(own) > 1 else f"Task {(own or wanted)[0]}"
    scope += f", transfer to {listed(named)}" if named else ""
    made: tuple[Check, ...] = ()
    for task in (own if "{task}" in line["checks"] else own[:1]) if not missing else ():
        bindings = [{"task": task, **each} for each in checks.choices(line["each"])]
        if by_distance:
            ends = {"nearest": order[0], "farthest": order[-1]}
            bindings = [{**ends, "nearer": near, "farther": far, **each}
                        for each in bindings for near, far in pairwise(order)]  # fmt: skip
        made += checks.checks_of(line["checks"], bindings, QUANTITIES)
    return Claim(line["id"], line["source"], scope, line["statement"], made, missing)

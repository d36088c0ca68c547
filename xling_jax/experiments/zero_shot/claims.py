"""What Wu, Conneau et al. 2020 find in §4, as claims on the rows and tasks that a run has.

All of them hold on the paper's own table. Scores are in percent, and a row's score on a task is the
mean over target languages unless a claim names one. Where the paper gives no threshold ("modest",
"reasonably strong", "random"), it is ours. So is the exemption of the nearest language from "drops
to random", which its scores in the table contradict. Rows are named with a task, as ROW/TASK, or
alone where the tasks are averaged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise, product

from xling_jax.experiments.similarity.claims import BY_DISTANCE, FROM
from xling_jax.experiments.zero_shot import scores
from xling_jax.experiments.zero_shot.scores import Board, Place
from xling_jax.report import claims
from xling_jax.report.claims import Decided, Evidence, Filled, Quantity, RowEvidence
from xling_jax.report.frame import Measure, mean_of
from xling_jax.report.prose import grouped, listed
from xling_jax.report.table import difference, percent
from xling_jax.tasks import PAPER

AVERAGE = "average"
OVERALL = ""  # in the place of a language


def _in(language: str) -> str:
    return "" if language == OVERALL else f" in {language}"


def score(row: str, language: str = OVERALL) -> Quantity:
    """The score on ROW/TASK, the mean over target languages or that of one."""
    return claims.metric(language, row, f"score{_in(language)}", percent)


def average(row: str) -> Quantity:
    """The mean over tasks of the means over target languages."""
    return claims.metric(AVERAGE, row, AVERAGE, percent)


def above(row: str, language: str) -> Quantity:
    """How much the score on ROW/TASK in a language is above the better baseline."""
    name = f"points above baselines{_in(language)}"
    return claims.metric(f"above_{language}", row, name, difference)


def gain(row: str, since: str, language: str = OVERALL) -> Quantity:
    """How much the score on ROW/TASK is above that of another row."""
    both = score(row, language), score(f"{since}/{row.rpartition('/')[2]}", language)
    return claims.surplus(f"gain{_in(language)} over {since}", *both, row, difference)


def cost(row: str, language: str = OVERALL) -> Quantity:
    """How much the score of row `DEFAULT` is above that on ROW/TASK."""
    both = score(f"{scores.DEFAULT}/{row.rpartition('/')[2]}", language), score(row, language)
    return claims.surplus(f"cost{_in(language)}", *both, row, percent)


QUANTITIES: Mapping[str, Callable[..., Quantity]] = {
    each.__name__: each for each in (score, average, above, gain, cost)
}


def of_run(board: Board) -> Evidence:
    """The evidence of a run: as ROW/TASK, the jobs on the paper's tasks that have ended in every
    pair with all settings; as ROW, the averages of rows that have all of these tasks."""
    tasks = [task for task in board.tasks if task in PAPER]
    found, unusable = dict[str, RowEvidence](), dict[str, str]()
    for row, task in product(board.rows, tasks):
        targets = board.targets_of(task)
        own, reached = board.of(row, task), board.scores(row, task, targets)
        if not own:
            continue
        if not all(job.has_ended for job in own):
            unusable[f"{row}/{task}"] = f"not ended ({scores.settings_ended(own)} settings have)"
        elif len(own) < len({pair for pair, _ in targets}):
            unusable[f"{row}/{task}"] = "not asked for in every pair"
        elif len(reached) < len(targets):
            unusable[f"{row}/{task}"] = "diverged with every setting"
        else:
            lost = {seed for job in own for seed in job.lost_seeds}
            metrics = _by_language(board, task, reached)
            found[f"{row}/{task}"] = RowEvidence(metrics, diverged=tuple(sorted(lost)))
    for row in board.rows:
        parts = [found[name] for task in tasks if (name := f"{row}/{task}") in found]
        lacking = [why for task in tasks if (why := unusable.get(f"{row}/{task}"))]
        if parts and len(parts) == len(tasks):
            lost = {seed for part in parts for seed in part.diverged}
            metrics = {AVERAGE: mean_of([part.metrics[OVERALL] for part in parts])}
            found[row] = RowEvidence(metrics, diverged=tuple(sorted(lost)))
        elif lacking:
            has_ended = not any(why.startswith("not ended") for why in lacking)
            unusable[row] = lacking[0] if has_ended else "not ended on every task"
        elif parts:
            unusable[row] = "not asked for on every task"
    return Evidence(found, unusable)


def _by_language(board: Board, task: str, found: Mapping[Place, Measure]) -> dict[str, Measure]:
    """The score in each target language, a mean over the pairs that test it, and the mean of all,
    as in the table; as `above_LANGUAGE`, how much a score is above the better baseline."""
    pairs = grouped((language, value) for (_, language), value in found.items())
    means = {language: mean_of(values) for language, values in pairs.items()}
    better: dict[str, float] = {}
    for which in scores.BASELINES:
        for (_, language), known in board.baselines(task, which).items():
            better[language] = max(known, better.get(language, 0.0))
    over = {f"above_{language}": value.plus(-better[language])
            for language, value in means.items() if language in better}  # fmt: skip
    return {**means, **over, OVERALL: mean_of(list(found.values()))}


def decide(board: Board) -> list[Decided]:
    """Every claim's verdict on a run, always in the same order.

    A claim that needs its tasks together is decided on all of them or not at all. One that needs
    distances is decided on the languages whose order by distance from the source is known, of which
    it needs two. Any other is decided in every language if its checks name one, and otherwise on
    the mean over languages. A task is judged in the languages that it is tested in.
    """
    are_ordered = {name for _, name in board.sources} == {FROM}

    def languages(task: str, by_distance: bool) -> tuple[str, ...]:
        found = tuple(dict.fromkeys(name for _, name in board.targets_of(task) or board.targets))
        orders = [tuple(name for name in order if name in found) for order in BY_DISTANCE]
        return (max(orders, key=len) if are_ordered else ()) if by_distance else found

    def filled(line: Mapping[str, str]) -> Filled:
        wanted, by_distance = line["tasks"].split(), line["needs"] == "distances"
        own = [task for task in wanted if task in board.tasks]
        named = {task: languages(task, by_distance) for task in own or wanted[:1]}
        most = max(map(len, named.values()))
        if by_distance and most > 1:
            named = {task: names for task, names in named.items() if len(names) > 1}
        parts = []
        for names, tasks in grouped((names, task) for task, names in named.items()).items():
            parts.append(f"Task{'s' if len(tasks) > 1 else ''} {listed(tasks)}")
            parts[-1] += f", transfer to {listed(names)}" if names else ""
        scope = "; ".join(parts)
        lacking = [task for task in wanted if task not in own]
        if lacking and (line["needs"] == "together" or not own):
            what = f"task{'s' if len(lacking) > 1 else ''} {listed(lacking)}"
            return Filled(scope, missing=f"not in this run: {what}")
        if line["needs"] == "together" and not board.are_comparable(own):
            return Filled(scope, missing="not every task is tested in every language")
        if by_distance and most < 2:
            missing = "2 languages whose order by distance is known are needed, not "
            return Filled(scope, missing=f"{missing}{most}")
        bindings = []
        for task, names in named.items() if "{task}" in line["checks"] else [*named.items()][:1]:
            chosen = [{"task": task, **each} for each in claims.choices(line["each"])]
            if by_distance:
                ends = {"nearest": names[0], "farthest": names[-1]}
                chosen = [{**ends, "nearer": near, "farther": far, **each}
                          for each in chosen for near, far in pairwise(names)]  # fmt: skip
            elif "{language}" in line["checks"]:
                chosen = [{"language": name, **each} for each in chosen for name in names]
            bindings.append(chosen)
        return Filled(scope, bindings)

    evidence = of_run(board)
    return [claim.decide(evidence) for claim in claims.load(__file__, QUANTITIES, filled)]

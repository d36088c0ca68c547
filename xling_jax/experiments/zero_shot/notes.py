"""What must be known to read a run of `zero_shot`: scores, baselines, what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

from xling_jax.experiments.zero_shot import scores
from xling_jax.experiments.zero_shot.scores import Board, Place
from xling_jax.report.frame import Run
from xling_jax.report.prose import grouped, listed, plural, spread, written
from xling_jax.tasks import TASKS


def label(place: Place, places: Sequence[Place]) -> str:
    """A language, with its pair where several of the places have it."""
    pair, language = place
    return language if [name for _, name in places].count(language) == 1 else f"{language} ({pair})"


def texts(run: Run, board: Board) -> dict[str, list[str]]:
    """Everything there is to say about the jobs of a run, and the figures."""
    tried = Counter(scores.job_of(name) for name in {name for name, _ in run.planned})
    return written(
        __file__,
        counted=[f"{TASKS[task].title}: {TASKS[task].described(run.field(task) or {})}."
                 for task in board.tasks],
        sizes=[f"{title} {listed(own)}"
               for title, own in _counts(board, "examples_", spread, "of {}")],
        most=max((tried[job.name] for job in board.jobs), default=1),
        best=scores.best_of(run),
        is_partial=any(board.scores(row, task, board.targets) and not board.mean(row, task)
                       for row in board.rows for task in board.tasks),
        is_uneven=not all(map(board.is_even, board.rows)),
        seeds=len({each.seed for job in board.jobs for each in job.chosen}),
        below=_below(board),
        has_paper=any(board.printed(row, task) for row in board.rows for task in board.tasks),
        characters=_characters(board),
        cut=dict(_counts(board, "cut_", lambda numbers: f"{max(numbers):,}", "({})")),
        unwritten=dict(_counts(board, "unwritten_", lambda numbers: f"{max(numbers)} %", "({})",
                               percent=True)),
        unknown=dict(_counts(board, "unknown_", spread, "({})")),
        epochs=list(filter(None, (_epochs(run, board, task) for task in board.tasks))),
        last=[TASKS[task].title for task in board.tasks
              if run.field("settings", task, "select") == "last"],
        missing=_missing(board),
    )  # fmt: skip


def _epochs(run: Run, board: Board, task: str) -> str:
    """The best epochs of the chosen settings of a task, out of how many."""
    chosen = [replica.metrics for job in board.of_task(task) for replica in job.chosen]
    found = [round(metrics["best_epoch"]) for metrics in chosen if "best_epoch" in metrics]
    total = run.field("settings", task, "epochs")
    of = f" of {total}" if total else ""
    return f"{TASKS[task].title} {spread(found)}{of}" if found else ""


def _counts(
    board: Board, start: str, shown: Callable[[list[int]], str], name: str, *, percent: bool = False
) -> list[tuple[str, list[str]]]:
    """For each task that has any, the metrics `start` + LANGUAGE of the chosen settings, which are
    counts or, with `percent`, shares: rounded, without zeros, those of a language as `shown` writes
    them, then the language in the form of `name`."""
    every = []
    for task in board.tasks:
        chosen = [replica.metrics for job in board.of_task(task) for replica in job.chosen]
        found = grouped(
            (own.removeprefix(start), number)
            for metrics in chosen
            for own, value in metrics.items()
            if own.startswith(start) and (number := round(100 * value if percent else value))
        )
        texts = [f"{shown(numbers)} {name.format(language)}" for language, numbers in found.items()]
        every.append((TASKS[task].title, texts))
    return [(title, texts) for title, texts in every if texts]


def _characters(board: Board) -> list[str]:
    """The F1 of entities over a file's characters, by row and language; means over settings."""
    found = []
    for job in board.jobs:
        every = [replica.metrics for replica in job.chosen]
        for language in job.languages:
            values = [x[name] for x in every if (name := f"character_f1_{language}") in x]
            if values:
                named = label((job.pair, language), board.targets)
                found.append(f"{job.row} {100 * fmean(values):.1f} ({named})")
    return found


def _below(board: Board) -> dict[str, list[str]]:
    """Which target scores are not above the majority baseline, by task."""
    found = {}
    for task in board.tasks:
        known = board.baselines(task, scores.MAJORITY)
        found[TASKS[task].title] = [
            f"{row} ({label(place, board.targets)})"
            for row in board.rows
            for place, score in board.scores(row, task, board.targets).items()
            if place in known and score.mean <= known[place]
        ]
    return {title: names for title, names in found.items() if names}


def _missing(board: Board) -> dict[str, list[str]]:
    """What has not begun, is in training or diverged."""
    return {
        "Not begun": [job.name for job in board.jobs if not job.has_begun],
        "In training": [
            f"{job.name} ({len(job.ended)} of {job.planned} settings ended)"
            for job in board.jobs if job.has_begun and not job.has_ended
        ],
        "Diverged, and in no mean": [
            f"{job.name} ({len(job.lost)} of {job.planned} settings; "
            f"{plural('seed', sorted({replica.seed for replica in job.lost}))})"
            for job in board.jobs if job.lost
        ],
    }  # fmt: skip


def state(run: Run, board: Board) -> str:
    """How far the run is, and its tasks, pairs and seeds."""
    jobs = board.jobs
    if not any(job.has_begun for job in jobs):
        text = "Nothing has been logged yet."
    else:
        done = sum(job.has_ended for job in jobs)
        text = (
            f"{'Ended' if done == len(jobs) else 'Not finished'}: {done} of {len(jobs)} rows and "
            f"tasks done, {scores.settings_ended(jobs)} settings."
        )
    named: Mapping[str, Sequence[object]] = {
        "Task": board.tasks,
        "Pair": list(dict.fromkeys(pair for pair, _ in board.sources)),
        "Seed": sorted({seed for _, seed in run.planned}),
    }
    return " ".join([text, *(f"{plural(what, own)}." for what, own in named.items() if own)])

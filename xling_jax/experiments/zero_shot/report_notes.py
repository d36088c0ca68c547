"""What must be known to read a run of `zero_shot`: scores, baselines, what is missing, the
paper."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from xling_jax.experiments.bilingual.report_metrics import spread
from xling_jax.experiments.zero_shot import published, report_order
from xling_jax.experiments.zero_shot.report_tables import TITLES, label
from xling_jax.experiments.zero_shot.scores import (
    DEFAULT,
    MAJORITY,
    Board,
    Job,
    best_of,
    job_of,
    section,
)
from xling_jax.report.formats import listed
from xling_jax.report.rows import Run

_NLI = "NLI: accuracy, the share of pairs of sentences with the right one of three labels."
_NER = (
    "NER: F1 of spans; an entity counts if its first and last word and its type are right, after "
    "tags that begin or go on wrongly are repaired as in the paper (§3.2)."
)
_DELTA = (
    f"Δ: the mean over target languages, of all pairs, above that of row {DEFAULT}. The language "
    "that is learned from is in no mean."
)
_SO_FAR = (
    "Some rows have no score in every target language yet, and so no mean; their Δ is over those "
    f"languages that both they and {DEFAULT} have a score in."
)
_BASELINES = (
    "Baselines are rules that look at the examples to learn from, but not at the text to label. "
    "majority: always the answer that does best there (a label, a tag, or a distance to the head "
    "with a relation); chance: answers drawn as often as they occur there."
)
_SD = (
    "The second number of a cell is the standard deviation over seeds, of the population "
    "(ddof=0). A difference between rows that is not well above it may be chance."
)
_ONE_SEED = (
    "One seed: how much of a difference between rows is chance cannot be told. The option seeds, "
    "as in seeds=0+1+2, trains more, if they were pretrained."
)
_PAPER = (
    f"{published.SOURCE}: {published.TITLE}, Table 1; its means are taken from the printed cells. "
    "Languages, text, labels and the size of the models are others here unless they were chosen "
    "to be the paper's: compare which rows are high and which low, not the values."
)
_MOST = 12  # names that a note lists


def about(run: Run, board: Board) -> list[str]:
    """Everything there is to say about the jobs of a run."""
    found = [_metric(run, task) for task in board.tasks]
    found += [note for note in (_sizes(board), _choice(run, board)) if note]
    found += [_DELTA, *([_SO_FAR] if _is_partial(board) else [])]
    if any(job.chosen for job in board.jobs):
        found += [_BASELINES, *_below(board)]
        seeds = {each.seed for job in board.jobs for each in job.chosen}
        found.append(_SD if len(seeds) > 1 else _ONE_SEED)
    if any(published.find(row) for row in board.rows):
        found.append(_PAPER)
    found += report_order.notes(board)
    return [*found, *_cut(board), *_epochs(run, board), *_missing(board)]


def _is_partial(board: Board) -> bool:
    """Whether any row has a score in some of the target languages alone."""
    numbers = [
        len(board.scores(row, task, board.targets)) for task in board.tasks for row in board.rows
    ]
    return any(0 < number < len(board.targets) for number in numbers)


def _metric(run: Run, task: str) -> str:
    """What a task's score is."""
    if task != "parsing":
        return _NLI if task == "nli" else _NER
    found = section(run, "parsing")
    chosen: Mapping[str, Any] = found if isinstance(found, dict) else {}
    relations = "relations with subtypes" if chosen.get("subtypes") else "universal relations"
    text = f"Parsing: LAS, the share of words with the right head and relation; {relations}"
    if "punctuation" in chosen:
        text += f", punctuation is {'' if chosen['punctuation'] else 'not '}counted"
    return f"{text}."


def _sizes(board: Board) -> str:
    """How many examples each language was tested on, which the results say."""
    told = []
    for task in board.tasks:
        found: dict[str, int] = {}
        for job in board.jobs:
            for replica in job.chosen if job.task == task else ():
                for language in (job.source, *job.targets):
                    number = replica.metrics.get(f"examples_{language}")
                    if number is not None:
                        found[language] = int(number)
        if found:
            told.append(
                f"{TITLES[task]} "
                + listed([f"{number:,} of {name}" for name, number in found.items()])
            )
    return f"Examples tested on: {'; '.join(told)}." if told else ""


def _choice(run: Run, board: Board) -> str:
    """Which of the settings the scores are of."""
    tried = Counter(job_of(name) for name in {name for name, _ in run.replicas_planned()})
    most = max((tried[job.name] for job in board.jobs), default=1)
    number = best_of(run)
    if most < 2:
        what = "the one setting that is tried"
    elif number == 1:
        what = f"the best of at most {most} settings"
    else:
        what = f"the best {number} of at most {most} settings, the mean of them"
    return (
        f"A score is that of {what}, then the mean over seeds. Settings and epochs are chosen by "
        "the first language's examples to choose by."
    )


def _below(board: Board) -> list[str]:
    """Which target scores are not above the majority baseline."""
    notes = []
    for task in board.tasks:
        known = board.baselines(task, MAJORITY)
        found = [
            f"{row} ({label(place, board.targets)})"
            for row in board.rows
            for place, score in board.scores(row, task, board.targets).items()
            if place in known and score.mean <= known[place]
        ]
        if found:
            notes.append(f"{TITLES[task]}, not above the majority baseline: {_some(found)}.")
    return notes


def _some(names: Sequence[str]) -> str:
    """Names in words, of many the first."""
    more = len(names) - _MOST
    return listed(names) if more <= 0 else f"{', '.join(names[:_MOST])} and {more} more"


def _cut(board: Board) -> list[str]:
    """How many pieces did not fit in a model, at most of all rows."""
    notes = []
    for task in board.tasks:
        most: dict[str, float] = {}
        for job in board.jobs:
            for replica in job.chosen if job.task == task else ():
                for name, value in replica.metrics.items():
                    if value and name.startswith("cut_"):
                        most[name[4:]] = max(value, most.get(name[4:], 0.0))
        if most:
            told = [f"{number:,.0f} ({name})" for name, number in most.items()]
            notes.append(f"{TITLES[task]}, pieces that did not fit in the model, at most of a row: "
                         f"{listed(told)}.")  # fmt: skip
    return notes


def _epochs(run: Run, board: Board) -> list[str]:
    """Which epochs are tested: if the best is the last one, models may train too short."""
    settings = section(run, "settings")
    told = []
    for task in board.tasks:
        chosen = [r for job in board.jobs if job.task == task for r in job.chosen]
        found = [round(r.metrics["best_epoch"]) for r in chosen if "best_epoch" in r.metrics]
        total = _field(settings, task, "epochs")
        if found:
            told.append(f"{TITLES[task]} {spread(found)}" + (f" of {total}" if total else ""))
    last = [TITLES[task] for task in board.tasks if _field(settings, task, "select") == "last"]
    return [
        *([f"Best epochs: {listed(told)}."] if told else []),
        *([f"The last epoch is tested: {listed(last)}."] if last else []),
    ]


def _field(settings: object, task: str, name: str) -> object:
    """A field of a task's settings, None if there is none."""
    own = settings.get(task) if isinstance(settings, dict) else None
    return own.get(name) if isinstance(own, dict) else None


def _missing(board: Board) -> list[str]:
    """What has not begun, is in training or diverged."""
    waiting = [job.name for job in board.jobs if not job.has_begun]
    going = [f"{job.name} ({job.ended} of {job.planned} settings ended)"
             for job in board.jobs if job.has_begun and not job.has_ended]  # fmt: skip
    lost = [_diverged(job) for job in board.jobs if job.number_diverged]
    return [
        f"{what}: {_some(names)}."
        for what, names in (
            ("Not begun", waiting),
            ("In training", going),
            ("Diverged, and in no mean", lost),
        )
        if names
    ]


def _diverged(job: Job) -> str:
    seeds = ", ".join(map(str, sorted(job.diverged)))
    number = f"{job.number_diverged} of {job.planned} settings"
    return f"{job.name} ({number}; seed{'s' if len(job.diverged) > 1 else ''} {seeds})"


def state(run: Run, board: Board) -> str:
    """How far the run is, and of what."""
    planned, ended = (sum(numbers) for numbers in zip(*_counts(board), strict=True))
    if not any(job.has_begun for job in board.jobs):
        text = "Nothing has been logged yet."
    else:
        done = sum(job.has_ended for job in board.jobs)
        text = (
            f"{'Ended' if done == len(board.jobs) else 'Not finished'}: {done} of "
            f"{len(board.jobs)} rows and tasks done, {ended} of {planned} settings."
        )
    seeds = {str(seed) for _, seed in sorted(run.replicas_planned())}
    return " ".join([text, *_named("Task", board.tasks), *_named("Pair", _pairs(board)),
                     *_named("Seed", sorted(seeds, key=int))])  # fmt: skip


def _counts(board: Board) -> list[tuple[int, int]]:
    return [(job.planned, job.ended) for job in board.jobs] or [(0, 0)]


def _pairs(board: Board) -> list[str]:
    return [pair for pair, _ in board.sources]


def _named(what: str, names: Iterable[str]) -> list[str]:
    """What there is of one kind, in a sentence; none without any."""
    found = list(dict.fromkeys(names))
    return [f"{what}{'s' if len(found) > 1 else ''} {', '.join(found)}."] if found else []

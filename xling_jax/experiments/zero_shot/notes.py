"""What must be known to read a run of `zero_shot`: scores, baselines, what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import StatisticsError, correlation, fmean

from xling_jax.experiments.zero_shot.scores import (
    DEFAULT,
    DEV,
    MAJORITY,
    SOURCE,
    Board,
    Job,
    Place,
    best_of,
    job_of,
    printed,
)
from xling_jax.report.frame import Run
from xling_jax.report.prose import listed, plural, spread

TITLES = {"nli": "NLI", "ner": "NER", "parsing": "Parsing"}
MEASURES = {"nli": "accuracy", "ner": "span F1", "parsing": "LAS"}
_LEAST = 3  # points of a correlation
_MOST = 12  # names that a note lists
_METRICS = {
    "nli": "NLI: accuracy, the share of pairs of sentences with the right one of three labels.",
    "ner": "NER: F1 of spans; an entity counts if its first and last word and its type are right, "
    "after tags that begin or go on wrongly are repaired as in the paper (§3.2).",
    "parsing": "Parsing: LAS, the share of words with the right head and relation; ",
}
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
    f"{SOURCE}: Wu, Conneau et al. 2020, Table 1; its means are taken from the printed cells. "
    "Languages, text, labels and the size of the models are others here unless they were chosen "
    "to be the paper's: compare which rows are high and which low, not the values."
)


def label(place: Place, places: Sequence[Place]) -> str:
    """A language, with its pair where several of the places have it."""
    pair, language = place
    return language if [name for _, name in places].count(language) == 1 else f"{language} ({pair})"


def about(run: Run, board: Board) -> list[str]:
    """Everything there is to say about the jobs of a run."""
    found = [_METRICS[task] + _parsing(run) * (task == "parsing") for task in board.tasks]
    found += [*_sizes(board), _choice(run, board), _DELTA]
    numbers = [len(board.scores(row, task, board.targets))
               for task in board.tasks for row in board.rows]  # fmt: skip
    if any(0 < number < len(board.targets) for number in numbers):
        found.append(_SO_FAR)
    if any(job.chosen for job in board.jobs):
        found += [_BASELINES, *_below(board)]
        seeds = {each.seed for job in board.jobs for each in job.chosen}
        found.append(_SD if len(seeds) > 1 else _ONE_SEED)
    if any(map(printed, board.rows)):
        found.append(_PAPER)
    return [*found, *_word_order(board), *_cut(board), *_epochs(run, board), *_missing(board)]


def _parsing(run: Run) -> str:
    """Which relations and words are counted."""
    subtypes, punctuation = (run.field("parsing", x) for x in ("subtypes", "punctuation"))
    text = "relations with subtypes" if subtypes else "universal relations"
    if punctuation is not None:
        text += f", punctuation is {'' if punctuation else 'not '}counted"
    return f"{text}."


def _greatest(board: Board, task: str, start: str) -> dict[str, float]:
    """The greatest value of `start` + NAME among the chosen settings of a task, by name."""
    found: dict[str, float] = {}
    for replica in (replica for job in board.of_task(task) for replica in job.chosen):
        for name, value in replica.metrics.items():
            if name.startswith(start):
                own = name.removeprefix(start)
                found[own] = max(value, found.get(own, 0.0))
    return found


def _sizes(board: Board) -> list[str]:
    """How many examples each language was tested on, which the results say."""
    each = []
    for task in board.tasks:
        sizes = _greatest(board, task, "examples_")
        if own := [f"{number:,.0f} of {name}" for name, number in sizes.items() if name != DEV]:
            each.append(f"{TITLES[task]} {listed(own)}")
    return [f"Examples tested on: {'; '.join(each)}."] if each else []


def _choice(run: Run, board: Board) -> str:
    """Which of the settings the scores are of."""
    tried = Counter(job_of(name) for name in {name for name, _ in run.planned})
    most, number = max((tried[job.name] for job in board.jobs), default=1), best_of(run)
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
    found = []
    for task in board.tasks:
        known = board.baselines(task, MAJORITY)
        names = [
            f"{row} ({label(place, board.targets)})"
            for row in board.rows
            for place, score in board.scores(row, task, board.targets).items()
            if place in known and score.mean <= known[place]
        ]
        if names:
            found.append(f"{TITLES[task]}, not above the majority baseline: {_some(names)}.")
    return found


def _some(names: Sequence[str]) -> str:
    """Names in words, of many the first."""
    more = len(names) - _MOST
    return listed(names) if more <= 0 else f"{', '.join(names[:_MOST])} and {more} more"


def _word_order(board: Board) -> list[str]:
    """The word order of languages as each row's models link their words, and its correlation with
    the scores (D&S Appendix B.2)."""
    points = {(row, task): _points(board.of(row, task)) for task in board.tasks
              for row in board.rows}  # fmt: skip
    orders = []
    for row in board.rows:
        own = {name: order for task in board.tasks
               for name, (order, _) in points[row, task][0].items()}  # fmt: skip
        if own:
            listing = listed(f"{name} {order:.2f}" for name, order in own.items())
            orders.append(f"{row}: {listing}")
    if not orders:
        return []
    found = [
        "How alike the order of words is to that of the source language, from 0 to 1 (D&S "
        "Appendix B.2, Kendall's tau), words being linked by each row's own models: "
        f"{'; '.join(orders)}."
    ]
    for task in board.tasks:
        each = []
        for row in board.rows:
            targets, sources = points[row, task]
            if len(targets) >= _LEAST and sources:
                every = [*targets.values(), (1.0, fmean(sources))]
                each.append(f"{row} {_pearson(every[:-1])} ({_pearson(every)})")
        if each:
            found.append(
                f"{TITLES[task]}: Pearson's correlation of word order and score over target "
                f"languages, and with the source language in brackets: {', '.join(each)}."
            )
    return found


def _points(jobs: Sequence[Job]) -> tuple[dict[str, tuple[float, float]], list[float]]:
    """Word order and score of each target language; the scores of the source languages, whose
    order is 1."""
    found: dict[str, tuple[float, float]] = {}
    for job in jobs:
        for language in job.languages[1:]:
            name = f"order_{language}"
            known = [r.metrics[name] for r in job.chosen if name in r.metrics]
            if known and language in job.scores:
                found[language] = fmean(known), job.scores[language].mean
    return found, [j.scores[j.languages[0]].mean for j in jobs if j.languages[0] in j.scores]


def _pearson(points: Sequence[tuple[float, float]]) -> str:
    try:
        return f"{correlation(*zip(*points, strict=True)):.2f}"
    except StatisticsError:  # one of the two does not vary
        return "not defined"


def _cut(board: Board) -> list[str]:
    """How many pieces did not fit in a model, at most of all rows."""
    found = []
    for task in board.tasks:
        most = {name: value for name, value in _greatest(board, task, "cut_").items() if value}
        if most:
            each = listed(f"{number:,.0f} ({name})" for name, number in most.items())
            what = "pieces that did not fit in the model, at most of a row"
            found.append(f"{TITLES[task]}, {what}: {each}.")
    return found


def _epochs(run: Run, board: Board) -> list[str]:
    """Which epochs are tested: if the best is the last one, models may train too short."""
    each, last = [], []
    for task in board.tasks:
        chosen = [replica.metrics for job in board.of_task(task) for replica in job.chosen]
        found = [round(metrics["best_epoch"]) for metrics in chosen if "best_epoch" in metrics]
        total = run.field("settings", task, "epochs")
        if found:
            each.append(f"{TITLES[task]} {spread(found)}" + (f" of {total}" if total else ""))
        if run.field("settings", task, "select") == "last":
            last.append(TITLES[task])
    return [
        *([f"Best epochs: {listed(each)}."] if each else []),
        *([f"The last epoch is tested: {listed(last)}."] if last else []),
    ]


def _missing(board: Board) -> list[str]:
    """What has not begun, is in training or diverged."""
    going = [f"{job.name} ({len(job.ended)} of {job.planned} settings ended)"
             for job in board.jobs if job.has_begun and not job.has_ended]  # fmt: skip
    lost = [
        f"{job.name} ({len(job.lost)} of {job.planned} settings; "
        f"{plural('seed', sorted({replica.seed for replica in job.lost}))})"
        for job in board.jobs if job.lost
    ]  # fmt: skip
    every: Mapping[str, Sequence[str]] = {
        "Not begun": [job.name for job in board.jobs if not job.has_begun],
        "In training": going,
        "Diverged, and in no mean": lost,
    }
    return [f"{what}: {_some(names)}." for what, names in every.items() if names]


def state(run: Run, board: Board) -> str:
    """How far the run is, and of what."""
    jobs = board.jobs
    if not any(job.has_begun for job in jobs):
        text = "Nothing has been logged yet."
    else:
        done = sum(job.has_ended for job in jobs)
        ended, planned = sum(len(job.ended) for job in jobs), sum(job.planned for job in jobs)
        text = (
            f"{'Ended' if done == len(jobs) else 'Not finished'}: {done} of {len(jobs)} rows and "
            f"tasks done, {ended} of {planned} settings."
        )
    named: Mapping[str, Sequence[object]] = {
        "Task": board.tasks,
        "Pair": list(dict.fromkeys(pair for pair, _ in board.sources)),
        "Seed": sorted({seed for _, seed in run.planned}),
    }
    return " ".join([text, *(f"{plural(what, own)}." for what, own in named.items() if own)])

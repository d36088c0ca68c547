"""What the rows of a `zero_shot` run reach on each task, in percent as W&C print it.

A *job* is a pretrained row of a pair of languages that learns a task; several settings of it are
tried, with each seed. The score of a job in a language is that of the settings that are best on
the first language's examples to choose by (W&C §3.2: the mean of the best two), mean over seeds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from statistics import fmean

from xling_jax.experiments.similarity.claims import FROM
from xling_jax.experiments.zero_shot.fields import DEV, divided
from xling_jax.report import table
from xling_jax.report.frame import Measure, Run, mean_of, measured, minus
from xling_jax.report.prose import grouped
from xling_jax.runs.results import Replica
from xling_jax.tasks import TASKS

DEFAULT = "default"
MEAN, DELTA = "mean", "delta"  # over target languages; above row `DEFAULT`
MAJORITY = "majority"
BASELINES = (MAJORITY, "chance")
_BEST = 2  # where the config does not say it

# W&C 2020 ("Emerging Cross-lingual Structure in Pretrained Language Models", ACL), Table 1: models
# of English and one other language, fine-tuned on English and tested on the other, in percent. The
# differences were taken before rounding: seven are not those of the printed means, by a tenth at
# most, six of NER (Wiki-CC, No anchors, Extra anchors, Sep L1-3, Sep L1-6, Sep Emb + L1-3) and one
# of parsing (Wiki-CC).
SOURCE = "W&C 2020"
LINES = table.published(__file__, SOURCE)
LANGUAGES = ("fr", "ru", "zh")

Place = tuple[str, str]  # a pair, and one of its languages


def printed(row: str, task: str) -> dict[str, Measure]:
    """The paper's scores of a row on a task by language, their `MEAN`, which it does not print, and
    `DELTA`, the difference to row `DEFAULT`; empty if the paper has none."""
    column, found = TASKS[task].column, [line.cells for line in LINES if line.row == row]
    if not column or not found:
        return {}
    scores = {name: found[0][f"{column}_{name}"] for name in LANGUAGES}
    return {**scores, MEAN: mean_of(list(scores.values())), DELTA: found[0][f"{column}_{DELTA}"]}


def job_of(name: str) -> str:
    """The job of a setting: PAIR/ROW/TASK of PAIR/ROW/TASK/BATCH/RATE/RATE."""
    return name.rsplit("/", 3)[0]


def best_of(run: Run) -> int:
    """How many of the settings are averaged."""
    return run.field("best") or _BEST


@dataclass(frozen=True)
class Job:
    """What a row of a pair has reached on a task.

    Attributes:
      planned: the number of settings, counted once for each seed.
      ended: those that have ended, diverged or not.
      has_begun: whether anything was logged.
      chosen: the best settings of each seed.
      scores: by language, and `DEV`, in percent.
    """

    pair: str
    row: str
    task: str
    description: str
    planned: int
    ended: Sequence[Replica]
    has_begun: bool
    chosen: Sequence[Replica]
    scores: Mapping[str, Measure]

    @property
    def name(self) -> str:
        return f"{self.pair}/{self.row}/{self.task}"

    @property
    def languages(self) -> list[str]:
        """The languages tested; the first is the one that is learned from."""
        return self.pair.split("-")

    @property
    def lost(self) -> list[Replica]:
        return [replica for replica in self.ended if replica.diverged_at is not None]

    @property
    def lost_seeds(self) -> dict[int, int]:
        """Seeds that diverged with every setting, with the last good step."""
        good = {replica.seed for replica in self.chosen}
        return {each.seed: each.diverged_at or 0 for each in self.lost if each.seed not in good}

    @property
    def has_ended(self) -> bool:
        return 0 < self.planned <= len(self.ended)


def settings_ended(jobs: Sequence[Job]) -> str:
    """How many settings of some jobs have ended, as "2 of 3"."""
    return f"{sum(len(job.ended) for job in jobs)} of {sum(job.planned for job in jobs)}"


class Board:
    """All jobs of a run, in the order of their rows.

    Attributes:
      sources: each pair with the language that is learned from.
      targets: each pair with each of its other languages.
    """

    def __init__(self, jobs: Sequence[Job]):
        self.jobs = jobs
        self.rows = list(dict.fromkeys(job.row for job in jobs))
        self.tasks = list(dict.fromkeys(job.task for job in jobs))
        self.sources = list(dict.fromkeys((job.pair, job.languages[0]) for job in jobs))
        others = ((job.pair, name) for job in jobs for name in job.languages[1:])
        self.targets = list(dict.fromkeys(others))

    def of(self, row: str, task: str) -> list[Job]:
        return [job for job in self.of_task(task) if job.row == row]

    def of_task(self, task: str) -> list[Job]:
        return [job for job in self.jobs if job.task == task]

    def targets_of(self, task: str) -> list[Place]:
        """The targets that a task is tested in; not every pair needs to have the task."""
        pairs = {job.pair for job in self.of_task(task)}
        return [place for place in self.targets if place[0] in pairs]

    def are_comparable(self, tasks: Sequence[str]) -> bool:
        """Whether tasks are tested in the same languages, so that they can be averaged."""
        return len({tuple(self.targets_of(task)) for task in tasks}) <= 1

    def scores(self, row: str, task: str, places: Iterable[Place]) -> dict[Place, Measure]:
        """A row's scores on a task in these places, as far as they are known."""
        known = {(job.pair, name): value for job in self.of(row, task)
                 for name, value in job.scores.items()}  # fmt: skip
        return {place: known[place] for place in places if place in known}

    def printed(self, row: str, task: str) -> Mapping[str, Measure]:
        """The paper's scores, as `printed`; none where another language is learned from."""
        is_the_papers = {name for _, name in self.sources} <= {FROM}
        return printed(row, task) if is_the_papers else {}

    def mean(self, row: str, task: str) -> Measure | None:
        """The mean over target languages; None unless all of the task's have a score."""
        targets = self.targets_of(task)
        found = self.scores(row, task, targets)
        return mean_of(list(found.values())) if 0 < len(found) == len(targets) else None

    def compared(self, row: str, task: str) -> list[Place]:
        """The target languages in which both a row and `DEFAULT` have a score."""
        own, other = (self.scores(name, task, self.targets) for name in (row, DEFAULT))
        return [place for place in own if place in other]

    def delta(self, row: str, task: str) -> Measure | None:
        """The mean above that of row `DEFAULT`, over target languages that both have."""
        if not (shared := self.compared(row, task)):
            return None
        both = (self.scores(name, task, shared).values() for name in (row, DEFAULT))
        return minus(*(mean_of(list(scores)) for scores in both))

    def is_even(self, row: str) -> bool:
        """Whether a row's differences are over the same languages in every task, so that they can
        be averaged."""
        return len({tuple(self.compared(row, task)) for task in self.tasks}) <= 1

    def baselines(self, task: str, which: str) -> dict[Place, float]:
        """A baseline of every pair and language, as far as known, in percent."""
        return {
            (job.pair, language): 100 * replica.metrics[f"{which}_{language}"]
            for job in reversed(self.of_task(task))
            for replica in reversed(job.chosen)
            for language in job.languages
            if f"{which}_{language}" in replica.metrics
        }


def read(run: Run) -> Board:
    """Every job, planned or seen, begun or not."""
    planned = grouped((job_of(name), (name, seed)) for name, seed in run.planned)
    ended = grouped((job_of(replica.row), replica) for replica in run.replicas)
    logged = {(r.row, r.seed) for own in run.records.values() for r in own}
    found = []
    for name in dict.fromkeys([*run.config.get("rows", ()), *ended, *sorted(planned)]):
        pair, row, task = divided(name)
        if not row or task not in TASKS or "-" not in pair:
            continue
        own, replicas = set(planned.get(name, ())), ended.get(name, [])
        described = run.description(name) or next((r.description for r in replicas), "")
        chosen = _chosen(replicas, f"{TASKS[task].metric}_{DEV}", best_of(run))
        scores = _scores(chosen, f"{TASKS[task].metric}_")
        has_begun = bool(replicas or own & logged)
        found.append(Job(pair, row, task, described, len(own), replicas, has_begun, chosen, scores))
    return Board(sorted(found, key=lambda job: run.place(job.row)))


def _chosen(ended: Sequence[Replica], dev: str, best: int) -> list[Replica]:
    """For each seed, the `best` settings by their scores on the examples to choose by; of equal
    ones those that come first by name, in whatever order they ended."""
    good = [r for r in ended if r.diverged_at is None and dev in r.metrics]
    good.sort(key=lambda replica: (replica.seed, -replica.metrics[dev], replica.row))
    by_seed = groupby(good, key=lambda replica: replica.seed)
    return [replica for _, own in by_seed for replica in islice(own, best)]


def _scores(chosen: Sequence[Replica], start: str) -> dict[str, Measure]:
    """The main score of every language: the mean over the settings, then over seeds."""
    values: dict[str, dict[int, list[float]]] = {}
    for replica in chosen:
        for name, value in replica.metrics.items():
            if name.startswith(start):
                of_seeds = values.setdefault(name.removeprefix(start), {})
                of_seeds.setdefault(replica.seed, []).append(100 * value)
    return {language: measured({seed: fmean(each) for seed, each in own.items()})
            for language, own in values.items()}  # fmt: skip

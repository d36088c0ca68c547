"""What the rows of a `transfer` run reach on each task, in percent as W&C print it.

A *job* is a pretrained row of a pair of languages that learns a task; several settings of it are
tried, with each seed. The score of a job in a language is that of the settings that are best on
the first language's examples to choose by (W&C §3.2: the mean of the best two), mean over seeds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Any

from xling_jax.report.claims import Measure, measured, minus
from xling_jax.report.rows import Run
from xling_jax.runs.results import Replica
from xling_jax.tasks.ner_task import NamedEntities
from xling_jax.tasks.nli import NaturalLanguageInference
from xling_jax.tasks.parsing_task import DependencyParsing

_TASKS = (NaturalLanguageInference, NamedEntities, DependencyParsing)
METRICS = {task.name: task.metric for task in _TASKS}  # a task's main score
DEFAULT = "default"
DEV = "dev"
MAJORITY = "majority"
BASELINES = (MAJORITY, "chance")
_BEST = 2  # where the config does not say it

Place = tuple[str, str]  # a pair, and one of its languages


def job_of(name: str) -> str:
    """The job of a setting: PAIR/ROW/TASK of PAIR/ROW/TASK/BATCH/RATE/RATE."""
    return name.rsplit("/", 3)[0]


def section(run: Run, name: str) -> Any:
    """A field or section of the nested config; None if there is none."""
    nested = run.config.get("config")
    return nested.get(name) if isinstance(nested, dict) else None


def best_of(run: Run) -> int:
    """How many of the settings are averaged."""
    best = section(run, "best")
    return best if isinstance(best, int) and best > 0 else _BEST


@dataclass(frozen=True)
class Job:
    """What a row of a pair has reached on a task.

    description: of the row. planned, ended: how many settings there are, over seeds, and how many
    of them have ended, diverged or not. has_begun: whether anything was logged. diverged: of a
    seed the last step at which a setting did. chosen: the best settings of each seed. scores: by
    language, and `DEV`, in percent.
    """

    pair: str
    row: str
    task: str
    description: str
    planned: int
    ended: int
    has_begun: bool
    diverged: Mapping[int, int]
    number_diverged: int
    chosen: Sequence[Replica]
    scores: Mapping[str, Measure]

    @property
    def name(self) -> str:
        """As the config has it."""
        return f"{self.pair}/{self.row}/{self.task}"

    @property
    def source(self) -> str:
        """The language that is learned from."""
        return self.pair.split("-")[0]

    @property
    def targets(self) -> list[str]:
        """The languages that are not."""
        return self.pair.split("-")[1:]

    @property
    def has_ended(self) -> bool:
        """Whether every setting has."""
        return 0 < self.planned <= self.ended

    def baseline(self, which: str, language: str) -> float | None:
        """One of `BASELINES` in percent, where it is known."""
        found = [r.metrics.get(f"{which}_{language}") for r in self.chosen]
        return next((100 * value for value in found if value is not None), None)


@dataclass(frozen=True)
class Board:
    """All jobs of a run, in the config's order."""

    jobs: Sequence[Job]

    @property
    def rows(self) -> list[str]:
        """Pretrained rows."""
        return list(dict.fromkeys(job.row for job in self.jobs))

    @property
    def tasks(self) -> list[str]:
        """Tasks."""
        return list(dict.fromkeys(job.task for job in self.jobs))

    @property
    def sources(self) -> list[Place]:
        """Each pair with the language that is learned from."""
        return list(dict.fromkeys((job.pair, job.source) for job in self.jobs))

    @property
    def targets(self) -> list[Place]:
        """Each pair with the languages that are not learned from."""
        found = ((job.pair, name) for job in self.jobs for name in job.targets)
        return list(dict.fromkeys(found))

    @cached_property
    def _by_row(self) -> dict[tuple[str, str], list[Job]]:
        found: dict[tuple[str, str], list[Job]] = {}
        for job in self.jobs:
            found.setdefault((job.row, job.task), []).append(job)
        return found

    def of(self, row: str, task: str) -> list[Job]:
        """The jobs of a row and a task, one a pair."""
        return self._by_row.get((row, task), [])

    def scores(self, row: str, task: str, places: Iterable[Place]) -> dict[Place, Measure]:
        """Those scores that are known."""
        by_pair = {job.pair: job.scores for job in self.of(row, task)}
        return {
            (pair, language): by_pair[pair][language]
            for pair, language in places
            if language in by_pair.get(pair, {})
        }

    def mean(self, row: str, task: str) -> Measure | None:
        """The mean over target languages; None unless all of them have a score."""
        found = self.scores(row, task, self.targets)
        return mean_of(list(found.values())) if 0 < len(found) == len(self.targets) else None

    def delta(self, row: str, task: str) -> Measure | None:
        """The mean above that of row `DEFAULT`, over target languages that both have."""
        both = [self.scores(name, task, self.targets) for name in (row, DEFAULT)]
        shared = [place for place in both[0] if place in both[1]]
        if not shared:
            return None
        ours, others = (mean_of([scores[place] for place in shared]) for scores in both)
        return minus(ours, others)

    def baselines(self, task: str, which: str) -> dict[Place, float]:
        """A baseline of every pair and language, as far as known."""
        found: dict[Place, float] = {}
        for job in self.jobs:
            for language in (job.source, *job.targets):
                value = job.baseline(which, language)
                if job.task == task and value is not None:
                    found.setdefault((job.pair, language), value)
        return found


def mean_of(measures: Sequence[Measure]) -> Measure:
    """The mean of at least one number, with the spread of it over seeds that all have."""
    seeds = set.intersection(*(set(each.by_seed) for each in measures))
    by_seed = {seed: fmean(each.by_seed[seed] for each in measures) for seed in sorted(seeds)}
    mean = fmean(each.mean for each in measures)
    return measured(mean, by_seed) if by_seed else Measure(mean)


def read(run: Run) -> Board:
    """Every job, planned or seen, begun or not."""
    planned: dict[str, set[tuple[str, int]]] = {}
    for name, seed in run.replicas_planned():
        planned.setdefault(job_of(name), set()).add((name, seed))
    ended: dict[str, list[Replica]] = {}
    for replica in run.replicas:
        ended.setdefault(job_of(replica.row), []).append(replica)
    named = run.config.get("rows")
    names = [str(name) for name in named] if isinstance(named, dict) else []
    best, found = best_of(run), []
    for name in dict.fromkeys([*names, *ended, *sorted(planned)]):
        parts = _parts(name)
        if parts:
            own = planned.get(name, set())
            has_begun = name in ended or any(s in run.seeds_logged(row) for row, s in own)
            replicas = ended.get(name, [])
            described = run.description(name) or next((r.description for r in replicas), "")
            found.append(_job(parts, described, len(own), has_begun, replicas, best))
    return Board(found)


def _parts(name: str) -> tuple[str, str, str] | None:
    """Pair, row and task; None for what is no job."""
    pair, _, rest = name.partition("/")
    row, _, task = rest.rpartition("/")
    return (pair, row, task) if row and task in METRICS and "-" in pair else None


def _job(
    parts: tuple[str, str, str], description: str, planned: int, has_begun: bool,
    ended: Sequence[Replica], best: int,
) -> Job:  # fmt: skip
    """A job with its settings that have ended."""
    pair, row, task = parts
    diverged = [r for r in ended if r.diverged_at is not None]
    steps: dict[int, int] = {}
    for replica in diverged:
        steps[replica.seed] = max(steps.get(replica.seed, 0), replica.diverged_at or 0)
    chosen = _chosen(ended, METRICS[task], best)
    return Job(
        pair, row, task, description, planned, len(ended), has_begun, steps, len(diverged),
        chosen, _scores(chosen, METRICS[task]),
    )  # fmt: skip


def _chosen(ended: Sequence[Replica], metric: str, best: int) -> list[Replica]:
    """Of each seed the settings with the highest scores on the examples to choose by."""
    name = f"{metric}_{DEV}"
    good = [r for r in ended if r.diverged_at is None and name in r.metrics]
    found = []
    for seed in sorted({replica.seed for replica in good}):
        own = [replica for replica in good if replica.seed == seed]
        found += sorted(own, key=lambda replica: -replica.metrics[name])[:best]
    return found


def _scores(chosen: Sequence[Replica], metric: str) -> dict[str, Measure]:
    """The main score of every language: the mean over the settings, then over seeds."""
    values: dict[str, dict[int, list[float]]] = {}
    for replica in chosen:
        for name, value in replica.metrics.items():
            if name.startswith(f"{metric}_"):
                language = name.removeprefix(f"{metric}_")
                values.setdefault(language, {}).setdefault(replica.seed, []).append(100 * value)
    found = {}
    for language, own in values.items():
        by_seed = {seed: fmean(each) for seed, each in own.items()}
        found[language] = measured(fmean(by_seed.values()), by_seed)
    return found

"""What the rows of a `zero_shot` run reach on each task, in percent as W&C print it.

A *job* is a pretrained row of a pair of languages that learns a task; several settings of it are
tried, with each seed. The score of a job in a language is that of the settings that are best on
the first language's examples to choose by (W&C §3.2: the mean of the best two), mean over seeds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean

from xling_jax.report import published
from xling_jax.report.frame import Measure, Run, mean_of, measured, minus
from xling_jax.report.published import Printed
from xling_jax.runs.results import Replica
from xling_jax.tasks import TASKS

DEFAULT = "default"
DEV = "dev"
MAJORITY = "majority"
BASELINES = (MAJORITY, "chance")
_BEST = 2  # where the config does not say it

# W&C 2020 ("Emerging Cross-lingual Structure in Pretrained Language Models", ACL), Table 1: models
# of English and one other language, fine-tuned on English and tested on the other, in percent. The
# differences were taken before rounding: seven are not those of the printed means, by a tenth at
# most, six of NER (Wiki-CC, No anchors, Extra anchors, Sep L1-3, Sep L1-6, Sep Emb + L1-3) and one
# of parsing (Wiki-CC).
SOURCE = "W&C 2020"
LINES = published.read(Path(__file__).with_name("published.csv"))
LANGUAGES = ("fr", "ru", "zh")

Place = tuple[str, str]  # a pair, and one of its languages


def printed(row: str) -> Printed | None:
    """The printed line of a row, or None."""
    return next((line for line in LINES if line.row == row), None)


def printed_scores(line: Printed, task: str) -> dict[str, Measure]:
    """What the paper prints for a task, by language; nothing of others than its own."""
    column = TASKS[task].column
    return {name: line.metrics[f"{column}_{name}"] for name in LANGUAGES if column}


def job_of(name: str) -> str:
    """The job of a setting: PAIR/ROW/TASK of PAIR/ROW/TASK/BATCH/RATE/RATE."""
    return name.rsplit("/", 3)[0]


def best_of(run: Run) -> int:
    """How many of the settings are averaged."""
    best = run.field("best")
    return best if isinstance(best, int) and best > 0 else _BEST


@dataclass(frozen=True)
class Job:
    """What a row of a pair has reached on a task.

    description: of the row. planned: the settings there are, over seeds. ended: those that have
    ended, diverged or not. has_begun: whether anything was logged. chosen: the best settings of
    each seed. scores: by language, and `DEV`, in percent.
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
        """As the config has it."""
        return f"{self.pair}/{self.row}/{self.task}"

    @property
    def languages(self) -> list[str]:
        """Those that are tested, the one that is learned from first."""
        return self.pair.split("-")

    @property
    def lost(self) -> list[Replica]:
        """The settings that diverged."""
        return [replica for replica in self.ended if replica.diverged_at is not None]

    @property
    def has_ended(self) -> bool:
        """Whether every setting has."""
        return 0 < self.planned <= len(self.ended)


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
        return list(dict.fromkeys((job.pair, job.languages[0]) for job in self.jobs))

    @property
    def targets(self) -> list[Place]:
        """Each pair with the languages that are not learned from."""
        found = ((job.pair, name) for job in self.jobs for name in job.languages[1:])
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

    def of_task(self, task: str) -> list[Job]:
        """The jobs of a task."""
        return [job for job in self.jobs if job.task == task]

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
        own, other = (self.scores(name, task, self.targets) for name in (row, DEFAULT))
        shared = [place for place in own if place in other]
        if not shared:
            return None
        return minus(*(mean_of([of[place] for place in shared]) for of in (own, other)))

    def baselines(self, task: str, which: str) -> dict[Place, float]:
        """A baseline of every pair and language, as far as known, in percent."""
        found: dict[Place, float] = {}
        for job in self.of_task(task):
            for replica in job.chosen:
                for language in job.languages:
                    value = replica.metrics.get(f"{which}_{language}")
                    if value is not None:
                        found.setdefault((job.pair, language), 100 * value)
        return found


def read(run: Run) -> Board:
    """Every job, planned or seen, begun or not."""
    planned: dict[str, set[tuple[str, int]]] = {}
    for name, seed in run.planned:
        planned.setdefault(job_of(name), set()).add((name, seed))
    ended: dict[str, list[Replica]] = {}
    for replica in run.replicas:
        ended.setdefault(job_of(replica.row), []).append(replica)
    logged = {(r.row, r.seed) for own in run.records.values() for r in own}
    best, found = best_of(run), []
    for name in dict.fromkeys([*run.config.get("rows", ()), *ended, *sorted(planned)]):
        pair, _, rest = name.partition("/")
        row, _, task = rest.rpartition("/")
        if not row or task not in TASKS or "-" not in pair:
            continue
        own, replicas = planned.get(name, set()), ended.get(name, [])
        described = run.description(name) or next((r.description for r in replicas), "")
        chosen = _chosen(replicas, TASKS[task].metric, best)
        found.append(
            Job(pair, row, task, described, len(own), replicas, bool(replicas or own & logged),
                chosen, _scores(chosen, TASKS[task].metric))
        )  # fmt: skip
    return Board(found)


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
    return {
        language: measured({seed: fmean(each) for seed, each in own.items()})
        for language, own in values.items()
    }

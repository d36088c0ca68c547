"""Figures of a run of `zero_shot`: the rows' scores on each task, and their scores over epochs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from xling_jax.experiments.fake_english.report_comparisons import Line, Score
from xling_jax.experiments.fake_english.report_overview import Entry
from xling_jax.experiments.zero_shot import published
from xling_jax.experiments.zero_shot.report_tables import label
from xling_jax.experiments.zero_shot.scores import DEV, METRICS, Board, Job, Place, job_of
from xling_jax.report.figures import COLOURS
from xling_jax.report.formats import cut
from xling_jax.report.rows import Curve, Run, curves
from xling_jax.runs.results import Record

TO_CHOOSE_BY = "to choose by"
_LABEL = 26
_MOST = 4  # bars of a row that have room


def blocks(board: Board) -> list[list[Place]]:
    """The target languages, in as many parts as figures are needed."""
    places = board.targets
    return [places[start : start + _MOST] for start in range(0, len(places), _MOST)]


def scores(board: Board, places: Sequence[Place]) -> list[Score]:
    """A bar for each language, in its colour."""
    names = [label(place, board.targets) for place in places]
    return [Score(name, name, COLOURS[n % len(COLOURS)]) for n, name in enumerate(names)]


def entries(board: Board, task: str, places: Sequence[Place]) -> list[Entry]:
    """The scores of every row that has any, as shares, and the paper's."""
    found = []
    for row in board.rows:
        own = board.scores(row, task, places)
        ours = {
            label(place, board.targets): (value.mean / 100, (value.sd or 0.0) / 100)
            for place, value in own.items()
        }
        if ours:
            found.append(Entry(cut(row, _LABEL), ours, _printed(row, task, ours), ""))
    return found


def _printed(row: str, task: str, shown: Mapping[str, object]) -> dict[str, tuple[float, float]]:
    """The paper's scores of languages that are shown."""
    line = published.find(row)
    by_language = zip(published.LANGUAGES, line.scores[task], strict=True) if line else ()
    return {name: (value / 100, 0.0) for name, value in by_language if name in shown}


def by_job(run: Run) -> dict[str, list[Record]]:
    """The evaluations of each job by epoch, but for settings that diverged."""
    lost = {(r.row, r.seed) for r in run.replicas if r.diverged_at is not None}
    found: dict[str, list[Record]] = {}
    for record in run.metrics.evaluations:
        if (record.row, record.seed) not in lost and record.epoch is not None:
            name = job_of(record.row)
            # Batches of different sizes have different numbers of steps in an epoch.
            own = replace(record, row=name, step=round(record.epoch))
            found.setdefault(name, []).append(own)
    return found


def over_epochs(
    board: Board, records: Mapping[str, Sequence[Record]], pair: str, task: str
) -> list[Line]:
    """The scores of every row of a pair over epochs: means over seeds and settings."""
    found = []
    for number, row in enumerate(board.rows):
        for job in board.of(row, task):
            if job.pair == pair and (own := _curves(job, records.get(job.name, []))):
                found.append(Line(cut(row, _LABEL), number, own))
    return found


def _curves(job: Job, records: Sequence[Record]) -> dict[str, Curve]:
    """The main score's curve in each language."""
    start = f"{METRICS[job.task]}_"
    return {
        name.removeprefix(start): curve
        for name, curve in curves(records, job.name).items()
        if name.startswith(start)
    }


def panels(lines: Sequence[Line], pair: str) -> dict[str, str]:
    """The languages that any line has a curve of, with their titles."""
    source, *targets = pair.split("-")
    present = {name for line in lines for name in line.curves}
    titles = {DEV: f"{source}, {TO_CHOOSE_BY}", source: source}
    titles |= {name: name for name in targets}
    return {name: title for name, title in titles.items() if name in present}

"""The report of a run of `zero_shot`: Wu, Conneau et al. 2020, Table 1 and §4."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd

from xling_jax.experiments.zero_shot import claims, notes, scores, word_order
from xling_jax.experiments.zero_shot.notes import label
from xling_jax.experiments.zero_shot.scores import DELTA, DEV, MEAN, Board, Job, Place
from xling_jax.report import page, table
from xling_jax.report.claims import Verdicts
from xling_jax.report.figures import Entry, Line, wrapped
from xling_jax.report.frame import Measure, Run, curve_of, curves, mean_of
from xling_jax.report.gallery import Card, Gallery
from xling_jax.report.prose import also_diverged, diverged_at
from xling_jax.report.table import ABSENT, Column, Table, difference, percent
from xling_jax.tasks import TASKS

SUMMARY = "table1"
AVERAGE = "average"  # of all tasks' differences
_KEPT = re.compile(r"([^;]+);first\[(\d+)\](;map)?")


def write(workdir: Path) -> str:
    """Writes the report of a run, ended or not; returns the tables and the claims as text."""
    run = Run(workdir)
    board = scores.read(run)
    are_the_papers = any(scores.printed(row, task) for row in board.rows for task in board.tasks)
    verdicts = Verdicts(claims.decide(board) if are_the_papers else ())
    said = notes.texts(run, board)
    shown, ordered = tables(board, said["Notes"]), word_order.tables(board, said["Word order"])
    gallery = Gallery(workdir / "report" / "figures")
    jobs = list(run.config.get("rows", ()))  # the settings that were tried are many
    kept, epochs = _curves(run, board, gallery)
    sections: dict[str, list[Any]] = {
        "Results": [*shown, said["Notes"] if shown else [], *_settings(run, board)],
        "Claims": [verdicts] if are_the_papers else [],
        "Rows": [page.Figures(said["Rows"], _bars(board, gallery))],
        "Word order": [*ordered, said["Word order"] if ordered else []],
        "Layers kept": [page.Figures(said["Layers kept"], kept)],
        "Over epochs": [page.Figures(said["Over epochs"], epochs)],
        "What was run": page.settings(run, rows=jobs),
    }
    return page.write(run, notes.state(run, board), sections, [*shown, *ordered], verdicts)


def tables(board: Board, said: Sequence[str]) -> list[Table]:
    """A table for each task; if there are several, a table of their means comes first."""
    found = [_of_task(board, task, said) for task in board.tasks]
    return [_summary(board, said), *found] if len(found) > 1 else found


def _of_task(board: Board, task: str, said: Sequence[str]) -> Table:
    """A line for each row, the paper's beneath ours; the baselines come last."""
    columns, names = _columns(board, task)
    lines = []
    for row in board.rows:
        own = board.scores(row, task, names)
        cells = {names[place]: value for place, value in own.items()}
        lines.append(_line(row, board.of(row, task), cells | _means(board, row, task)))
        if printed := board.printed(row, task):
            of_places = {_target(name): printed[name] for name in scores.LANGUAGES}
            paper = of_places | {name: printed[name] for name in (MEAN, DELTA)}
            lines.append(table.Line(row, scores.SOURCE, paper, scores.SOURCE, seeds=ABSENT))
    for which in scores.BASELINES:
        if known := board.baselines(task, which):
            cells = {names[place]: Measure(value) for place, value in known.items()}
            targets = board.targets_of(task)
            if all(place in known for place in targets):
                cells[MEAN] = mean_of([Measure(known[place]) for place in targets])
            source = f"{which} baseline"
            lines.append(table.Line(which, "baseline", cells, source, seeds=ABSENT))
    caption = f"{TASKS[task].measure}, percent"
    return Table(f"{SUMMARY}_{task}", TASKS[task].title, caption, columns, lines, said)


def _target(label: str) -> str:
    """The name in files of the column of a target language; the language itself may be called
    `mean`, or like another column."""
    return f"target {label}"


def _columns(board: Board, task: str) -> tuple[list[Column], dict[Place, str]]:
    """The columns of a task's table, and the name of each place's column."""
    targets, sources = board.targets, board.sources
    labels = {place: label(place, targets) for place in targets}
    names = {place: _target(short) for place, short in labels.items()}
    paper = scores.LANGUAGES if any(board.printed(row, task) for row in board.rows) else ()
    group = "target languages"
    columns = [Column(short, _target(short), percent, group)
               for short in dict.fromkeys([*labels.values(), *paper])]  # fmt: skip
    columns += [
        Column("mean", MEAN, percent, group),
        Column("Δ", DELTA, difference, group, DELTA),
    ]
    for place in sources:
        short = label(place, sources)
        names[place] = f"source {short}"
        columns.append(Column(short, names[place], percent, "learned from"))
    return columns, names


def _means(board: Board, row: str, task: str) -> dict[str, Measure]:
    """A row's mean and its difference to `DEFAULT`, if there are any; the difference without its
    spread."""
    mean, delta = board.mean(row, task), board.delta(row, task)
    return ({MEAN: mean} if mean else {}) | ({DELTA: Measure(delta.mean)} if delta else {})


def _summary(board: Board, said: Sequence[str]) -> Table:
    """Mean and difference of every task, and the mean of the differences."""
    columns, lines = list[Column](), []
    for task in board.tasks:
        title, measure = TASKS[task].title, TASKS[task].measure
        columns.append(Column(measure, f"{task}_{MEAN}", percent, title, title))
        columns.append(Column("Δ", f"{task}_{DELTA}", difference, title, DELTA))
    columns.append(Column("Δ", AVERAGE, difference, "all tasks", "all: delta"))
    for row in board.rows:
        jobs = [job for task in board.tasks for job in board.of(row, task)]
        own = _averaged({task: _means(board, row, task) for task in board.tasks})
        if not board.is_even(row):
            own.pop(AVERAGE, None)
        lines.append(_line(row, jobs, own))
        if paper := _averaged({task: board.printed(row, task) for task in board.tasks}):
            lines.append(table.Line(row, scores.SOURCE, paper, scores.SOURCE, seeds=ABSENT))
    return Table(SUMMARY, "All tasks", "means over target languages", columns, lines, said)


def _averaged(by_task: Mapping[str, Mapping[str, Measure]]) -> dict[str, Measure]:
    """Mean and difference of all tasks, and the mean of the differences, where all have one."""
    cells = {f"{task}_{name}": own[name] for task, own in by_task.items()
             for name in (MEAN, DELTA) if name in own}  # fmt: skip
    deltas = [own[DELTA] for own in by_task.values() if DELTA in own]
    average = {AVERAGE: Measure(mean_of(deltas).mean)} if len(deltas) == len(by_task) else {}
    return cells | average


def _line(row: str, jobs: Sequence[Job], cells: Mapping[str, Measure]) -> table.Line:
    """Our line for some jobs, with a message if there are no numbers. It says how many seeds are in
    the means and, while some settings have not ended, how many have."""
    diverged: dict[int, int] = {}
    for replica in (replica for job in jobs for replica in job.lost):
        diverged[replica.seed] = max(replica.diverged_at or 0, diverged.get(replica.seed, 0))
    numbers = [len({replica.seed for replica in job.chosen}) for job in jobs if job.chosen] or [0]
    seeds = " to ".join(map(str, sorted({min(numbers), max(numbers)})))
    if any(len(job.ended) < job.planned for job in jobs):
        seeds += f" ({scores.settings_ended(jobs)} settings ended)"
    seeds += also_diverged(sum(len(job.lost) for job in jobs))
    message = "not measured" if any(job.has_ended for job in jobs) else "not begun"
    message = diverged_at(diverged) if diverged else message
    if any(job.has_begun and not job.has_ended for job in jobs):
        message = "in training"
    described = next((job.description for job in jobs if job.description != row), "")
    return table.Line(row, described or table.OURS, cells, seeds=seeds,
                      message="" if cells else message, diverged=diverged)  # fmt: skip


def _settings(run: Run, board: Board) -> list[Any]:
    """Every metric of every setting that ended, folded away; a star marks those in the scores."""
    parts = list[Any]()
    for task in board.tasks:
        jobs = board.of_task(task)
        chosen = {(each.row, each.seed) for job in jobs for each in job.chosen}
        names = {job.name for job in jobs}
        ended = [replica for replica in run.replicas if scores.job_of(replica.row) in names]
        metrics = list(dict.fromkeys(name for replica in ended for name in replica.metrics))
        lines = []
        for replica in ended:
            star = "*" if (replica.row, replica.seed) in chosen else ""
            values = [replica.metrics.get(name) for name in metrics]
            numbers = [ABSENT if value is None else f"{value:.4g}" for value in values]
            if replica.diverged_at is not None:
                star = f"diverged at step {replica.diverged_at:,}"
            lines.append([replica.row, star, replica.seed, *numbers])
        if lines:
            header = ["setting", "", "seed", *metrics]
            parts.append(page.Grid(header, lines, 2, f"{TASKS[task].title}: every setting"))
    return parts or [page.NO_METRICS]


def _bars(board: Board, gallery: Gallery) -> list[Card]:
    """For every task, the scores of all rows that have any, and the paper's in the same languages,
    as shares."""
    cards, names = list[Card](), {place: label(place, board.targets) for place in board.targets}
    for task in board.tasks:
        entries = []
        for row in board.rows:
            own = board.scores(row, task, board.targets)
            ours = {names[at]: x.times(0.01) for at, x in own.items()}
            paper = {name: x.times(0.01) for name, x in board.printed(row, task).items()
                     if name in ours}  # fmt: skip
            entries.append(Entry(wrapped(row), ours, paper))
        alt, scores = f"Every row: {TASKS[task].title}", {name: name for name in names.values()}
        cards += gallery.bars(f"rows_{task}", alt, entries, scores, TASKS[task].measure)
    return cards


def over_layers(board: Board, pair: str, task: str) -> list[Line]:
    """A line for each kind of models, with a curve for each target language, as shares.

    A kind is the pretrained row whose first layers are kept, with a map between its languages'
    states or without; one with a single number of layers has no line.
    """
    found: dict[str, dict[str, dict[int, Measure]]] = {}
    for job in board.of_task(task):
        match = _KEPT.fullmatch(job.description)
        if match and job.pair == pair:
            kind = f"{match[1]}, {'mapped' if match[3] else 'no map'}"
            for language in job.languages[1:]:
                if language in job.scores:
                    points = found.setdefault(kind, {}).setdefault(language, {})
                    points[int(match[2])] = job.scores[language].times(0.01)
    return [
        Line(kind, number, {language: curve_of(points) for language, points in own.items()})
        for number, (kind, own) in enumerate(found.items())
        if max(map(len, own.values())) > 1
    ]


def by_epoch(run: Run) -> pd.DataFrame:
    """The evaluations of each job by epoch, without settings that diverged.

    Batches of different sizes have different numbers of steps in an epoch.
    """
    lost = [(r.row, r.seed) for r in run.replicas if r.diverged_at is not None]
    frame = run.evaluations.dropna(subset="epoch")
    frame = frame[~pd.MultiIndex.from_frame(frame[["row", "seed"]]).isin(lost)]
    epochs = frame["epoch"].astype(float).round().astype(int)
    return frame.assign(row=frame["row"].map(scores.job_of), step=epochs)


def over_epochs(frame: pd.DataFrame, board: Board, pair: str, task: str) -> list[Line]:
    """The scores of every row of a pair `by_epoch`: means over seeds and settings."""
    found, start = [], f"{TASKS[task].metric}_"
    for number, row in enumerate(board.rows):
        every = curves(frame[frame["row"] == f"{pair}/{row}/{task}"])
        own = {name.removeprefix(start): x for name, x in every.items() if name.startswith(start)}
        if own:
            found.append(Line(row, number, own))
    return found


def _curves(run: Run, board: Board, gallery: Gallery) -> tuple[list[Card], list[Card]]:
    """For every task and pair, the curves over the number of layers kept, and over epochs."""
    kept, epochs, frame = list[Card](), list[Card](), by_epoch(run)
    for task, (pair, source) in product(board.tasks, board.sources):
        title, lines = TASKS[task].title, over_layers(board, pair, task)
        shown = {name: name for line in lines for name in line.curves}
        alt = f"{title} by layers kept, {pair}"
        kept += gallery.curves(f"layers_{task}_{pair}", alt, lines, shown, "layers kept")
        others = {name: name for name in pair.split("-")[1:]}
        shown = {DEV: f"{source}, to choose by", source: source, **others}
        lines, alt = over_epochs(frame, board, pair, task), f"{title} over epochs, {pair}"
        epochs += gallery.curves(f"epochs_{task}_{pair}", alt, lines, shown, "epoch")
    return kept, epochs

"""The tables of a run of `zero_shot`: W&C Table 1, task by task, and its means in one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xling_jax.experiments.zero_shot import published
from xling_jax.experiments.zero_shot.scores import BASELINES, Board, Job, Place
from xling_jax.report.cells import ABSENT, OURS, Cell, Column, Line, Table, diverged_at
from xling_jax.report.claims import Measure

TITLES = {"nli": "NLI", "ner": "NER", "parsing": "Parsing"}
MEASURES = {"nli": "accuracy", "ner": "span F1", "parsing": "LAS"}
SUMMARY = "table1"
MEAN, DELTA, AVERAGE = "mean", "delta", "average"
_BASELINE = "baseline"


def percent(value: float) -> str:
    """A score as the paper prints it: 73.6."""
    return f"{value:.1f}"


def difference(value: float) -> str:
    """A difference as the paper prints it: -1.4, +0.1, 0.0."""
    text = f"{value:+.1f}"
    return "0.0" if text[1:] == "0.0" else text


def build(board: Board, notes: Sequence[str]) -> list[Table]:
    """A table for each task, before them one of the means of all where there are several."""
    found = [_of_task(board, task, notes) for task in board.tasks]
    return [_summary(board, notes), *found] if len(found) > 1 else found


def label(place: Place, places: Sequence[Place]) -> str:
    """A language, with its pair where several of the places have it."""
    pair, language = place
    return language if [name for _, name in places].count(language) == 1 else f"{language} ({pair})"


def _columns(board: Board) -> tuple[list[Column], dict[Place, str]]:
    """The columns of a task's table, and the name of every place's."""
    targets, sources = board.targets, board.sources
    names = {place: label(place, targets) for place in targets}
    shown = [*names.values(), *(name for name in published.LANGUAGES if _is_paper(board))]
    columns = [Column("target languages", n, n, n, percent) for n in dict.fromkeys(shown)]
    columns += [
        Column("target languages", "mean", "mean", MEAN, percent),
        Column("target languages", "Δ", "delta", DELTA, difference),
    ]
    for place in sources:
        names[place] = f"source {label(place, sources)}"
        short = label(place, sources)
        columns.append(Column("learned from", short, short, names[place], percent))
    return columns, names


def _is_paper(board: Board) -> bool:
    """Whether the paper has any of the rows."""
    return any(published.find(row) for row in board.rows)


def _of_task(board: Board, task: str, notes: Sequence[str]) -> Table:
    """A line a row, the paper's beneath ours; below all the baselines."""
    columns, names = _columns(board)
    lines = []
    for row in board.rows:
        own = board.scores(row, task, names)
        cells = {names[place]: _cell(value) for place, value in own.items()}
        lines.append(_line(row, board.of(row, task), cells | _means(board, row, task)))
        if printed := published.find(row):
            scores = printed.scores[task]
            values = dict(zip(published.LANGUAGES, scores, strict=True))
            values |= {MEAN: sum(scores) / len(scores), DELTA: printed.deltas[task]}
            lines.append(_paper_line(row, values))
    for which in BASELINES:
        if known := board.baselines(task, which):
            values = {names[place]: value for place, value in known.items()}
            targets = [known[place] for place in board.targets if place in known]
            if len(targets) == len(board.targets):
                values[MEAN] = sum(targets) / len(targets)
            lines.append(_other_line(which, _BASELINE, f"{which} {_BASELINE}", values))
    title = TITLES[task]
    return Table(f"{SUMMARY}_{task}", title, f"{MEASURES[task]}, percent", columns, lines, notes)


def _means(board: Board, row: str, task: str) -> dict[str, Cell]:
    cells = {}
    if mean := board.mean(row, task):
        cells[MEAN] = _cell(mean)
    if delta := board.delta(row, task):
        cells[DELTA] = Cell(delta.mean)
    return cells


def _cell(value: Measure) -> Cell:
    return Cell(value.mean, value.sd)


def _summary(board: Board, notes: Sequence[str]) -> Table:
    """Mean and difference of every task, and the mean of the differences."""
    columns = []
    for task in board.tasks:
        title = TITLES[task]
        columns += [
            Column(title, MEASURES[task], title, _of(task, MEAN), percent),
            Column(title, "Δ", "delta", _of(task, DELTA), difference),
        ]
    columns.append(Column("all tasks", "Δ", "all: delta", AVERAGE, difference))
    lines = []
    for row in board.rows:
        cells: dict[str, Cell] = {}
        for task in board.tasks:
            own = _means(board, row, task)
            cells |= {_of(task, name): cell for name, cell in own.items()}
        jobs = [job for task in board.tasks for job in board.of(row, task)]
        values = {name: cell.mean for name, cell in cells.items()}
        cells |= {k: Cell(v) for k, v in _average(board.tasks, values).items()}
        lines.append(_line(row, jobs, cells))
        if printed := published.find(row):
            values = {}
            for task in board.tasks:
                scores = printed.scores[task]
                values[_of(task, MEAN)] = sum(scores) / len(scores)
                values[_of(task, DELTA)] = printed.deltas[task]
            lines.append(_paper_line(row, values | _average(board.tasks, values)))
    return Table(SUMMARY, "All tasks", "means over target languages", columns, lines, notes)


def _of(task: str, name: str) -> str:
    return f"{task}_{name}"


def _average(tasks: Sequence[str], values: Mapping[str, float]) -> dict[str, float]:
    """The mean of the tasks' differences, where all have one."""
    found = [values[name] for task in tasks if (name := _of(task, DELTA)) in values]
    return {AVERAGE: sum(found) / len(found)} if len(found) == len(tasks) else {}


def _line(row: str, jobs: Sequence[Job], cells: Mapping[str, Cell]) -> Line:
    """Our line of some jobs, or what there is in the place of numbers."""
    diverged: dict[int, int] = {}
    for job in jobs:
        for seed, step in job.diverged.items():
            diverged[seed] = max(step, diverged.get(seed, 0))
    message = "" if cells else _message(jobs, diverged)
    described = next((job.description for job in jobs if job.description != row), "")
    return Line(
        OURS, row, described or OURS, cells, None, "", _seeds(jobs),
        message=message, diverged=diverged,
    )  # fmt: skip


def _message(jobs: Sequence[Job], diverged: Mapping[int, int]) -> str:
    """Why there are no numbers."""
    if any(job.has_begun and not job.has_ended for job in jobs):
        return "in training"
    if diverged:
        return diverged_at(diverged)
    return "not measured" if any(job.has_ended for job in jobs) else "not begun"


def _seeds(jobs: Sequence[Job]) -> str:
    """How many seeds are in the means, and how many settings ended while some have not."""
    text = str(len({replica.seed for job in jobs for replica in job.chosen}))
    ended, planned = sum(job.ended for job in jobs), sum(job.planned for job in jobs)
    if ended < planned:
        text += f" ({ended} of {planned} settings ended)"
    if lost := sum(job.number_diverged for job in jobs):
        text += f" ({lost} diverged)"
    return text


def _paper_line(row: str, values: Mapping[str, float]) -> Line:
    return _other_line(row, published.SOURCE, published.SOURCE, values)


def _other_line(row: str, what: str, source: str, values: Mapping[str, float]) -> Line:
    """A line that is not from our models."""
    cells = {name: Cell(value) for name, value in values.items()}
    return Line(source, row, what, cells, None, "", ABSENT)

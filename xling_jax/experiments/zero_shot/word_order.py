"""Word order and transfer: Dufter & Schütze 2020, Table 4 and appendix B.2.

The paper's numbers are in `word_order.csv`: Kendall's tau to English, and mBERT's accuracy on XNLI.
Its correlations, .46 and .64 as it prints them, are computed from these as ours are from ours.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from statistics import StatisticsError, correlation

from xling_jax.experiments.zero_shot.notes import label
from xling_jax.experiments.zero_shot.scores import Board, Place
from xling_jax.report import table
from xling_jax.report.frame import Measure, mean_of, measured
from xling_jax.report.table import Column, Line, Table, percent, score, whole
from xling_jax.tasks import TASKS

SOURCE = "D&S 2020"
LINES = {
    line.row: replace(line, more={}) for line in table.published(__file__, SOURCE, "word_order.csv")
}
FIRST = "en"  # the language that the paper's model learns from
LEAST = 3  # points of a correlation
ORDER, WITHOUT, WITH, NUMBER = "order", "without", "with", "languages"
_SAME = Measure(1.0)  # the order of a language and itself

Languages = Mapping[str, Mapping[str, Measure]]  # by language its `ORDER`, and scores by task


def languages(board: Board, row: str) -> tuple[Languages, set[str]]:
    """The word order and the scores of a row in every language, and which of these it learned from:
    their order is 1, their scores are means over pairs. Empty where nothing was measured."""
    orders: dict[Place, dict[int, float]] = {}
    for job in (job for job in board.jobs if job.row == row):
        for replica in job.chosen:
            for name in job.languages[1:]:
                value = replica.metrics.get(f"{ORDER}_{name}", math.nan)
                if math.isfinite(value):
                    orders.setdefault((job.pair, name), {})[replica.seed] = value
    pairs = {pair for pair, _ in orders}
    sources = [place for place in board.sources if place[0] in pairs]
    scores = {task: board.scores(row, task, [*sources, *orders]) for task in board.tasks}
    found: dict[str, dict[str, Measure]] = {}
    for first in dict.fromkeys(language for _, language in sources):
        found[first] = {ORDER: _SAME}
        for task, known in scores.items():
            if every := [known[x] for x in sources if x[1] == first and x in known]:
                found[first][task] = mean_of(every)
    for place, by_seed in orders.items():
        own = {task: known[place] for task, known in scores.items() if place in known}
        found[label(place, list(orders))] = {ORDER: measured(by_seed), **own}
    return found, {language for _, language in sources}


def correlations(of: Languages, first: Collection[str], task: str) -> dict[str, Measure]:
    """Pearson's correlation of word order and scores over languages, `WITHOUT` and `WITH` the
    first, and the `NUMBER` of all of them; none over fewer than `LEAST`, or where one of the two
    does not vary."""
    known = {name: (own[ORDER].mean, own[task].mean) for name, own in of.items() if task in own}
    others = [point for name, point in known.items() if name not in first]
    found = {NUMBER: Measure(len(known))} if known else {}
    for which, points in ((WITHOUT, others), (WITH, list(known.values()))):
        if len(points) >= LEAST:
            try:
                found[which] = Measure(correlation(*zip(*points, strict=True)))
            except StatisticsError:
                continue
    return {f"{task}_{which}": value for which, value in found.items()}


def tables(board: Board, said: Sequence[str]) -> list[Table]:
    """The word order and the scores of languages, the paper's beneath those that it has, and their
    correlations; none where word order was not measured."""
    every = [(row, found) for row in board.rows if (found := languages(board, row))[0]]
    if not every:
        return []
    lines = []
    for language in dict.fromkeys(name for _, (of, _) in every for name in of):
        lines += [Line(language, row, of[language], seeds=str(of[language][ORDER].number or ""))
                  for row, (of, _) in every if language in of]  # fmt: skip
        lines += [LINES[language]] if language in LINES else []
    columns = [Column("Kendall's tau", ORDER, score, short="tau")]
    columns += [Column(TASKS[x].title, x, percent, TASKS[x].measure) for x in board.tasks]
    paper = {name: line.cells for name, line in LINES.items()}
    compared = []
    for row, (of, first), source in [
        *((row, found, table.OURS) for row, found in every),
        ("mBERT", (paper, {FIRST}), SOURCE),
    ]:
        cells = {name: value for task in board.tasks
                 for name, value in correlations(of, first, task).items()}  # fmt: skip
        if cells or source == table.OURS:
            compared.append(Line(row, source, cells, source))
    kinds = (("without", WITHOUT, score), ("with", WITH, score), ("languages", NUMBER, whole))
    own = [Column(title, f"{task}_{which}", show, TASKS[task].title)
           for task in board.tasks for title, which, show in kinds]  # fmt: skip
    return [
        Table("word_order", "D&S Table 4", "order of words and transfer", columns, lines, ()),
        Table("word_order_correlation", "D&S B.2", "Pearson's correlation of order and score, "
              "without and with the language that is learned from", own, compared, said),
    ]  # fmt: skip

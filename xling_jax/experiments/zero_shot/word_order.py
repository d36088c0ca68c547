"""Word order and transfer: Dufter & Schütze 2020, Table 4 and appendix B.2.

The paper's numbers are in `word_order.csv`: Kendall's tau to English, and mBERT's accuracy on XNLI.
The correlations that it prints, .46 and .64, are computed here from these, as ours are from ours.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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


def languages(board: Board, row: str, first: str) -> Languages:
    """The word order and the scores of a row that learned from `first`, in every language that it
    is tested in. The order of `first` is 1, and its scores are means over pairs. Empty if no order
    was measured."""
    orders: dict[Place, dict[int, float]] = {}
    for job in (job for job in board.jobs if (job.row, job.languages[0]) == (row, first)):
        for replica in job.chosen:
            for name in job.languages[1:]:
                value = replica.metrics.get(f"{ORDER}_{name}", math.nan)
                if math.isfinite(value):
                    orders.setdefault((job.pair, name), {})[replica.seed] = value
    if not orders:
        return {}
    sources = list(dict.fromkeys((pair, first) for pair, _ in orders))
    scores = {task: board.scores(row, task, [*sources, *orders]) for task in board.tasks}
    found = {first: {ORDER: _SAME}}
    for task, known in scores.items():
        if every := [known[place] for place in sources if place in known]:
            found[first][task] = mean_of(every)
    for place, by_seed in orders.items():
        own = {task: known[place] for task, known in scores.items() if place in known}
        found[label(place, list(orders))] = {ORDER: measured(by_seed), **own}
    return found


def correlations(of: Languages, first: str, task: str) -> dict[str, Measure]:
    """Pearson's correlation of word order and scores over languages, `WITHOUT` and `WITH` the
    first, and the `NUMBER` of all of them; none over fewer than `LEAST`, or where one of the two
    does not vary."""
    known = {name: (own[ORDER].mean, own[task].mean) for name, own in of.items() if task in own}
    others = [point for name, point in known.items() if name != first]
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
    firsts = list(dict.fromkeys(language for _, language in board.sources))
    every = [(first, row, found) for first in firsts for row in board.rows
             if (found := languages(board, row, first))]  # fmt: skip
    if not every:
        return []
    several = len({first for first, _, _ in every}) > 1
    lines = []
    for first, language in dict.fromkeys((first, name) for first, _, of in every for name in of):
        name = f"{first} to {language}" if several and language != first else language
        lines += [Line(name, row, of[language], seeds=str(of[language][ORDER].number or ""))
                  for own, row, of in every if own == first and language in of]  # fmt: skip
        if first == FIRST and language in LINES:
            lines.append(replace(LINES[language], row=name))
    columns = [Column("Kendall's tau", ORDER, score, short="tau")]
    columns += [Column(TASKS[x].title, x, percent, TASKS[x].measure) for x in board.tasks]
    paper = {name: line.cells for name, line in LINES.items()}
    compared = []
    for row, of, first, source in [
        *((f"{row} ({first})" if several else row, of, first, table.OURS)
          for first, row, of in every),
        ("mBERT", paper, FIRST, SOURCE),
    ]:  # fmt: skip
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

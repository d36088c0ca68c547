"""Does transfer follow word order? (D&S Appendix B.2)"""

from __future__ import annotations

from statistics import StatisticsError, correlation, fmean

from xling_jax.experiments.zero_shot.report_tables import TITLES
from xling_jax.experiments.zero_shot.scores import Board, Job
from xling_jax.report.formats import listed

_LEAST = 3  # points of a correlation


def _points(jobs: list[Job]) -> tuple[dict[str, tuple[float, float]], tuple[float, float] | None]:
    """Word order and score of each target language; of the source language, whose order is 1."""
    found: dict[str, tuple[float, float]] = {}
    sources = []
    for job in jobs:
        for language in job.targets:
            orders = [r.metrics.get(f"order_{language}") for r in job.chosen]
            known = [order for order in orders if order is not None]
            if known and language in job.scores:
                found[language] = fmean(known), job.scores[language].mean
        if job.source in job.scores:
            sources.append(job.scores[job.source].mean)
    return found, (1.0, fmean(sources)) if sources else None


def _pearson(points: list[tuple[float, float]]) -> str:
    try:
        return f"{correlation(*zip(*points, strict=True)):.2f}"
    except StatisticsError:  # one of the two does not vary
        return "not defined"


def notes(board: Board) -> list[str]:
    """The word order of languages as each row's models link their words, and its correlation with
    the scores."""
    found, orders = [], []
    for row in board.rows:
        own: dict[str, float] = {}
        for task in board.tasks:
            own |= {name: order for name, (order, _) in _points(board.of(row, task))[0].items()}
        if own:
            listing = listed([f"{name} {order:.2f}" for name, order in own.items()])
            orders.append(f"{row}: {listing}")
    if not orders:
        return []
    for task in board.tasks:
        told = []
        for row in board.rows:
            points, source = _points(board.of(row, task))
            if len(points) >= _LEAST and source:
                without = _pearson(list(points.values()))
                told.append(f"{row} {without} ({_pearson([*points.values(), source])})")
        if told:
            found.append(
                f"{TITLES[task]}: Pearson's correlation of word order and score over target "
                f"languages, and with the source language in brackets: {', '.join(told)}."
            )
    first = (
        "How alike the order of words is to that of the source language, from 0 to 1 (D&S "
        "Appendix B.2, Kendall's tau), words being linked by each row's own models: "
        f"{'; '.join(orders)}."
    )
    return [first, *found]

"""Scores of new layers on the first N of pretrained models, over N (W&C Figures 5 and 8)."""

from __future__ import annotations

import re

from xling_jax.experiments.fake_english.report_comparisons import Line
from xling_jax.experiments.zero_shot.scores import Board
from xling_jax.report.rows import Curve

_KEPT = re.compile(r"([^;]+);first\[(\d+)\](;map)?")


def over_layers(board: Board, pair: str, task: str) -> list[Line]:
    """A line for each kind of models, with a curve for each target language, as shares.

    A kind is the pretrained row whose first layers are kept, with a map between its languages'
    states or without; one with a single number of layers has no line.
    """
    found: dict[str, dict[str, dict[int, tuple[float, float]]]] = {}
    for job in board.jobs:
        match = _KEPT.fullmatch(job.description)
        if not match or (job.pair, job.task) != (pair, task):
            continue
        kind = f"{match[1]}, {'mapped' if match[3] else 'no map'}"
        for language in job.targets:
            if language in job.scores:
                score = job.scores[language]
                points = found.setdefault(kind, {}).setdefault(language, {})
                points[int(match[2])] = score.mean / 100, (score.sd or 0.0) / 100
    return [
        Line(kind, number, {language: _curve(points) for language, points in own.items()})
        for number, (kind, own) in enumerate(found.items())
        if max(map(len, own.values())) > 1
    ]


def _curve(points: dict[int, tuple[float, float]]) -> Curve:
    layers = sorted(points)
    return Curve(layers, [points[n][0] for n in layers], [points[n][1] for n in layers])

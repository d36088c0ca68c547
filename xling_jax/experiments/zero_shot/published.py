"""The numbers of W&C Table 1, as data.

Source: Wu, Conneau et al. 2020 ("W&C"), "Emerging Cross-lingual Structure in Pretrained Language
Models", ACL 2020, Table 1: models of English and one other language, fine-tuned on English and
tested on the other; percentages, means of the two settings that were best on English (§3.2). Rows
and tasks have the names of our configs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

SOURCE = "W&C 2020"
TITLE = "Wu, Conneau et al. 2020"
TASKS = ("nli", "ner", "parsing")
LANGUAGES = ("fr", "ru", "zh")


class Line(NamedTuple):
    """A row: for each task the score in every language, and the mean's difference to the first
    row's.
    """

    row: str
    title: str
    scores: Mapping[str, tuple[float, ...]]
    deltas: Mapping[str, float]


def _line(row: str, title: str, *numbers: float) -> Line:
    """A row as it is printed: three languages and their difference, for each task."""
    parts = {task: numbers[4 * n : 4 * n + 4] for n, task in enumerate(TASKS)}
    return Line(
        row, title,
        {task: part[:3] for task, part in parts.items()},
        {task: part[3] for task, part in parts.items()},
    )  # fmt: skip


# The differences were taken before rounding: seven are not those of the printed means, by a tenth
# at most, six of NER (Wiki-CC, No anchors, Extra anchors, Sep L1-3, Sep L1-6, Sep Emb + L1-3) and
# one of parsing (Wiki-CC).
# fmt: off
TABLE_1 = (
    _line("default", "Default",
          73.6, 68.7, 68.3, 0.0, 79.8, 60.9, 63.6, 0.0, 73.2, 56.6, 28.8, 0.0),
    _line("wiki_cc", "Wiki-CC",
          74.2, 65.8, 66.5, -1.4, 74.0, 49.6, 61.9, -6.2, 71.3, 54.8, 25.2, -2.5),
    _line("no_anchors", "No anchors",
          72.1, 67.5, 67.7, -1.1, 74.0, 57.9, 65.0, -2.4, 72.3, 56.2, 27.4, -0.9),
    _line("default_anchors", "Default anchors",
          74.0, 68.1, 68.9, 0.1, 76.8, 56.3, 61.2, -3.3, 73.0, 57.0, 28.3, -0.1),
    _line("extra_anchors", "Extra anchors",
          74.0, 69.8, 72.1, 1.8, 76.1, 59.7, 66.8, -0.5, 73.3, 56.9, 29.2, 0.3),
    _line("sep_emb", "Sep Emb",
          72.7, 63.6, 60.8, -4.5, 75.5, 57.5, 59.0, -4.1, 71.7, 54.0, 27.5, -1.8),
    _line("sep_l1_3", "Sep L1-3",
          72.4, 65.0, 63.1, -3.4, 74.0, 53.3, 60.8, -5.3, 69.7, 54.1, 26.4, -2.8),
    _line("sep_l1_6", "Sep L1-6",
          61.9, 43.6, 37.4, -22.6, 61.2, 23.7, 3.1, -38.7, 61.7, 31.6, 12.0, -17.8),
    _line("sep_emb_l1_3", "Sep Emb + L1-3",
          69.2, 61.7, 56.4, -7.8, 73.8, 46.8, 53.5, -10.0, 68.2, 53.6, 23.9, -4.3),
    _line("sep_emb_l1_6", "Sep Emb + L1-6",
          51.6, 35.8, 34.4, -29.6, 56.5, 5.4, 1.0, -47.1, 50.9, 6.4, 1.5, -33.3),
)
# fmt: on


def find(row: str) -> Line | None:
    """The printed line of a row, or None."""
    return next((line for line in TABLE_1 if line.row == row), None)

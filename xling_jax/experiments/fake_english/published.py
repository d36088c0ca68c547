"""The papers' numbers, as data.

Source: Dufter & Schütze 2020 ("D&S"), "Identifying Elements Essential for BERT's
Multilinguality", EMNLP 2020, Tables 1, 2 and 10 and appendix C.3. Their model has 12 layers, so a
metric of the deeper layer ends in `_8`; the names are those of our own `results.json`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

SOURCE = "D&S 2020"
TITLE = "Dufter & Schütze 2020"
LAYERS = 12
DEEP_LAYER = 8
SEEDS = (0, 42, 43, 100, 101)
CANDIDATES = 10_000
TRAINING_SENTENCES = 17_178
DEV_SENTENCES = 10_000
EXPERIMENT = "fake_english"


class Value(NamedTuple):
    """A printed mean and, where the table prints one, its standard deviation over seeds."""

    mean: float
    sd: float | None = None


@dataclass(frozen=True)
class PaperRow:
    """One row of a table: `metrics` maps our metric names to the printed values."""

    table: int
    row: str
    description: str
    metrics: Mapping[str, Value]


METRICS = (
    "alignment_f1_0", "retrieval_0", "translation_0",
    "alignment_f1_8", "retrieval_8", "translation_8",
    "perplexity_train", "perplexity_dev",
)  # fmt: skip


def _with_sd(table: int, row: str, description: str, mu: float, *numbers: float) -> PaperRow:
    """A row of Table 1 or 10: mu without, the eight other columns with a standard deviation."""
    pairs = zip(numbers[0::2], numbers[1::2], strict=True)
    metrics = {name: Value(*pair) for name, pair in zip(METRICS, pairs, strict=True)}
    return PaperRow(table, row, description, {"mu": Value(mu), **metrics})


def _without_sd(table: int, row: str, description: str, mu: float, *numbers: float) -> PaperRow:
    """A row of Table 2: nine columns, no standard deviations."""
    metrics = {name: Value(number) for name, number in zip(METRICS, numbers, strict=True)}
    return PaperRow(table, row, description, {"mu": Value(mu), **metrics})


# fmt: off
TABLE_1 = (
    _with_sd(1, "0", "original", .70,
             1.00, .00, .16, .02, .88, .02, 1.00, .00, .97, .01, .79, .03, 9, 0.2, 217, 7.8),
    _with_sd(1, "1", "lang-pos", .30,
             .87, .05, .33, .13, .40, .09, .89, .05, .39, .15, .09, .05, 9, 0.1, 216, 9.0),
    _with_sd(1, "2", "shift-special", .66,
             1.00, .00, .15, .02, .88, .01, 1.00, .00, .97, .02, .63, .13, 9, 0.1, 227, 17.9),
    _with_sd(1, "4", "no-random", .68,
             1.00, .00, .19, .03, .87, .02, 1.00, .00, .85, .07, .82, .04, 9, 0.6, 273, 7.7),
    _with_sd(1, "5", "lang-pos;shift-special", .20,
             .62, .19, .22, .19, .27, .20, .72, .22, .27, .21, .05, .04, 10, 0.5, 205, 7.6),
    _with_sd(1, "6", "lang-pos;no-random", .30,
             .91, .04, .29, .10, .36, .12, .89, .05, .32, .15, .25, .12, 10, 0.4, 271, 8.6),
    _with_sd(1, "7", "shift-special;no-random", .68,
             1.00, .00, .21, .03, .85, .01, 1.00, .00, .89, .06, .79, .04, 8, 0.3, 259, 15.6),
    _with_sd(1, "8", "lang-pos;shift-special;no-random", .12,
             .46, .26, .09, .09, .18, .22, .54, .31, .11, .11, .11, .13, 10, 0.6, 254, 15.9),
    _with_sd(1, "15", "overparam", .58,
             1.00, .00, .27, .03, .63, .05, 1.00, .00, .97, .01, .47, .06, 2, 0.1, 261, 4.5),
    _with_sd(1, "16", "lang-pos;overparam", .01,
             .25, .10, .01, .00, .01, .00, .37, .13, .01, .00, .00, .00, 3, 0.0, 254, 4.9),
    _with_sd(1, "17", "lang-pos;shift-special;no-random;overparam", .00,
             .05, .02, .00, .00, .00, .00, .05, .04, .00, .00, .00, .00, 1, 0.0, 307, 7.7),
    _with_sd(1, "3", "inv-order", .01,
             .02, .00, .00, .00, .01, .00, .02, .00, .01, .01, .00, .00, 11, 0.3, 209, 14.4),
    _with_sd(1, "9", "lang-pos;inv-order;shift-special;no-random", .00,
             .04, .01, .00, .00, .00, .00, .03, .01, .00, .00, .00, .00, 10, 0.4, 270, 20.1),
    _with_sd(1, "18", "untrained", .00,
             .97, .01, .00, .00, .00, .00, .96, .01, .00, .00, .00, .00, 3484, 44.1, 4128, 42.7),
    _with_sd(1, "19", "untrained;lang-pos", .00,
             .02, .00, .00, .00, .00, .00, .02, .00, .00, .00, .00, .00, 3488, 41.4, 4133, 50.3),
    _with_sd(1, "30", "knn-replace", .74,
             1.00, .00, .31, .08, .88, .00, 1.00, .00, .97, .01, .81, .01, 11, 0.3, 225, 12.4),
)
TABLE_2 = (
    _without_sd(2, "0", "original", .70, 1.00, .16, .88, 1.00, .97, .79, 9, 217),
    _without_sd(2, "21", "no-parallel", .25, .98, .06, .28, .98, .50, .15, 14, 383),
    _without_sd(2, "21b", "lang-pos;no-parallel", .07, .60, .10, .07, .73, .11, .02, 16, 456),
)
# The published table also repeats row 0.
TABLE_10 = (
    _with_sd(10, "17", "lang-pos;shift-special;no-random;overparam", .00,
             .05, .02, .00, .00, .00, .00, .05, .04, .00, .00, .00, .00, 2, 0.02, 270, 20.1),
    _with_sd(10, "17-250", "lang-pos;shift-special;no-random;overparam;epochs[2.5x]", .00,
             .06, .02, .00, .00, .00, .00, .06, .05, .00, .00, .00, .00, 1, 0.0, 1111, 30.7),
)
# fmt: on

# The search of appendix C.3 (criterion: perplexity), of which the paper prints no figures: what was
# tried, by the modification that sets it, and what was chosen.
LEARNING_RATE, EPOCHS = "learning-rate", "epochs"
TRIED = {
    LEARNING_RATE: {
        "lr1e-4": "1e-4", "lr2e-4": "2e-4", "lr1e-3": "1e-3",
        "lr2e-3": "2e-3", "lr1e-2": "1e-2", "lr2e-2": "2e-2",
    },
    EPOCHS: {"ep10": "10", "ep20": "20", "ep50": "50", "ep100": "100", "ep200": "200"},
}  # fmt: skip
CHOSEN = {LEARNING_RATE: 2e-3, EPOCHS: 100.0}
SEARCH = {row: f"{name}[{value}]" for name, by in TRIED.items() for row, value in by.items()}


class Layout(NamedTuple):
    """A table of the paper: what it shows, its rows in order, and the printed ones.

    A run has the table if it has one of its `own` rows; the others are shared with another table.
    """

    title: str
    caption: str
    rows: tuple[str, ...]
    own: tuple[str, ...]
    printed: tuple[PaperRow, ...] = ()

    @property
    def name(self) -> str:
        """The title as part of a file's name."""
        return self.title.lower().replace(" ", "")

    def find(self, row: str) -> PaperRow | None:
        """The printed line of a row in this table."""
        return next((line for line in self.printed if line.row == row), None)


_FIRST, _SECOND = (tuple(line.row for line in table) for table in (TABLE_1, TABLE_2))
LAYOUTS = (
    Layout("Table 1", "Architecture, word order, model size", _FIRST, _FIRST, TABLE_1),
    Layout("Table 2", "Parallel and non-parallel text", _SECOND, _SECOND[1:], TABLE_2),
    Layout(
        "Table 10", "The largest model trained for long", ("17", "17-250"), ("17-250",), TABLE_10
    ),
    Layout("Search", "Learning rates and epochs, by perplexity", ("0", *SEARCH), tuple(SEARCH)),
)
ORDER = tuple(dict.fromkeys(row for layout in LAYOUTS for row in layout.rows))

_UNSEEN = "The train perplexity covers every sentence in both languages, half of them unseen."
_WARM = "D&S made two warm-up updates before they evaluated untrained models; ours made none."

# What must be known before our number and the printed one are compared.
REMARKS = {
    "17": "For the same 100 epochs D&S print perplexities of 1 (train) and 307 (dev) in Table 1, "
    "and of 2 and 270 in Table 10 (270 is also what Table 1 has for row 9).",
    "18": _WARM,
    "19": _WARM,
    "21": _UNSEEN,
    "21b": _UNSEEN,
    "30": "D&S measured these perplexities under knn-replace, ours are under [MASK]: "
    "they cannot be compared.",
}


def tried(description: str) -> tuple[str, float] | None:
    """What a row that differs in one hyperparameter alone tries, as `("epochs", 20.0)`, or None."""
    match = re.fullmatch(rf"({LEARNING_RATE}|{EPOCHS})\[(.+)\]", description.strip())
    try:
        return (match[1], float(match[2])) if match else None
    except ValueError:
        return None


def find(experiment: str, row: str) -> PaperRow | None:
    """The paper's line for a row of an experiment, or None.

    Where tables repeat a row, the first of Tables 1, 2 and 10 counts.
    """
    if experiment != EXPERIMENT:
        return None
    return next((line for layout in LAYOUTS if (line := layout.find(row))), None)

"""The papers' numbers, as data.

Source: Dufter & Schütze 2020 ("D&S"), "Identifying Elements Essential for BERT's
Multilinguality", EMNLP 2020, Tables 1 and 2. Their model has 12 layers, so a metric of the
deeper layer ends in `_8`; the names are those of our own `results.json`.
"""

from __future__ import annotations

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


def _table_1(row: str, description: str, mu: float, *numbers: float) -> PaperRow:
    """A row of Table 1: mu without, the eight other columns each with a standard deviation."""
    pairs = zip(numbers[0::2], numbers[1::2], strict=True)
    metrics = {name: Value(*pair) for name, pair in zip(METRICS, pairs, strict=True)}
    return PaperRow(1, row, description, {"mu": Value(mu), **metrics})


def _table_2(row: str, description: str, mu: float, *numbers: float) -> PaperRow:
    """A row of Table 2: nine columns, no standard deviations."""
    metrics = {name: Value(number) for name, number in zip(METRICS, numbers, strict=True)}
    return PaperRow(2, row, description, {"mu": Value(mu), **metrics})


# fmt: off
TABLE_1 = (
    _table_1("0", "original", .70,
             1.00, .00, .16, .02, .88, .02, 1.00, .00, .97, .01, .79, .03, 9, 0.2, 217, 7.8),
    _table_1("1", "lang-pos", .30,
             .87, .05, .33, .13, .40, .09, .89, .05, .39, .15, .09, .05, 9, 0.1, 216, 9.0),
    _table_1("2", "shift-special", .66,
             1.00, .00, .15, .02, .88, .01, 1.00, .00, .97, .02, .63, .13, 9, 0.1, 227, 17.9),
    _table_1("4", "no-random", .68,
             1.00, .00, .19, .03, .87, .02, 1.00, .00, .85, .07, .82, .04, 9, 0.6, 273, 7.7),
    _table_1("5", "lang-pos;shift-special", .20,
             .62, .19, .22, .19, .27, .20, .72, .22, .27, .21, .05, .04, 10, 0.5, 205, 7.6),
    _table_1("6", "lang-pos;no-random", .30,
             .91, .04, .29, .10, .36, .12, .89, .05, .32, .15, .25, .12, 10, 0.4, 271, 8.6),
    _table_1("7", "shift-special;no-random", .68,
             1.00, .00, .21, .03, .85, .01, 1.00, .00, .89, .06, .79, .04, 8, 0.3, 259, 15.6),
    _table_1("8", "lang-pos;shift-special;no-random", .12,
             .46, .26, .09, .09, .18, .22, .54, .31, .11, .11, .11, .13, 10, 0.6, 254, 15.9),
    _table_1("15", "overparam", .58,
             1.00, .00, .27, .03, .63, .05, 1.00, .00, .97, .01, .47, .06, 2, 0.1, 261, 4.5),
    _table_1("16", "lang-pos;overparam", .01,
             .25, .10, .01, .00, .01, .00, .37, .13, .01, .00, .00, .00, 3, 0.0, 254, 4.9),
    _table_1("17", "lang-pos;shift-special;no-random;overparam", .00,
             .05, .02, .00, .00, .00, .00, .05, .04, .00, .00, .00, .00, 1, 0.0, 307, 7.7),
    _table_1("3", "inv-order", .01,
             .02, .00, .00, .00, .01, .00, .02, .00, .01, .01, .00, .00, 11, 0.3, 209, 14.4),
    _table_1("9", "lang-pos;inv-order;shift-special;no-random", .00,
             .04, .01, .00, .00, .00, .00, .03, .01, .00, .00, .00, .00, 10, 0.4, 270, 20.1),
    _table_1("18", "untrained", .00,
             .97, .01, .00, .00, .00, .00, .96, .01, .00, .00, .00, .00, 3484, 44.1, 4128, 42.7),
    _table_1("19", "untrained;lang-pos", .00,
             .02, .00, .00, .00, .00, .00, .02, .00, .00, .00, .00, .00, 3488, 41.4, 4133, 50.3),
    _table_1("30", "knn-replace", .74,
             1.00, .00, .31, .08, .88, .00, 1.00, .00, .97, .01, .81, .01, 11, 0.3, 225, 12.4),
)
TABLE_2 = (
    _table_2("0", "original", .70, 1.00, .16, .88, 1.00, .97, .79, 9, 217),
    _table_2("21", "no-parallel", .25, .98, .06, .28, .98, .50, .15, 14, 383),
    _table_2("21b", "lang-pos;no-parallel", .07, .60, .10, .07, .73, .11, .02, 16, 456),
)
# fmt: on

# Table 2 repeats row 0 with fewer columns, so Table 1 goes last and wins.
_ROWS = {line.row: line for line in (*TABLE_2, *TABLE_1)}
ORDER = tuple(dict.fromkeys(line.row for line in (*TABLE_1, *TABLE_2)))

# What must be known before our number and the printed one are compared.
REMARKS = {
    "18": "D&S made two warm-up updates before they evaluated untrained models; ours made none.",
    "19": "D&S made two warm-up updates before they evaluated untrained models; ours made none.",
    "21": "The train perplexity covers every sentence in both languages, half of them unseen.",
    "21b": "The train perplexity covers every sentence in both languages, half of them unseen.",
    "30": "D&S measured these perplexities under knn-replace, ours are under [MASK]: "
    "they cannot be compared.",
}


def find(experiment: str, row: str) -> PaperRow | None:
    """The paper's line for a row of an experiment, Table 1 before Table 2, or None."""
    return _ROWS.get(row) if experiment == EXPERIMENT else None

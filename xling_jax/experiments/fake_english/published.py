"""The tables of Dufter & Schütze 2020 ("D&S"), and what it takes to set ours beside them.

Source: "Identifying Elements Essential for BERT's Multilinguality", EMNLP 2020, Tables 1, 2 and 10
(`published.csv`) and appendix C.3. Their model has 12 layers, of which layer 8 is the deeper one
that is evaluated: `deep` in the names of metrics.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from xling_jax.evaluators.registry import EVALUATORS
from xling_jax.report import table
from xling_jax.report.frame import Row, Run
from xling_jax.report.table import Line

SOURCE = "D&S 2020"
TITLE = "Dufter & Schütze 2020"
LAYERS = 12
DEEP_LAYER = 8
CANDIDATES = 10_000
TRAINING_SENTENCES = 17_178
EXPERIMENT = "fake_english"
# Of the small model (§2.1, Table 9) and the overparameterised one (§2.3), by the config's fields.
SETTING = {
    "vocabulary.size": 2048, "batches.sentences": 256, "batches.max_length": 128,
    "models.layers": LAYERS, "models.hidden": 64, "models.intermediate": 256, "models.heads": 1,
    "models.dropout": 0.1, "training.epochs": 100, "training.learning_rate": 2e-3,
    "training.warmup_steps": 50, "training.weight_decay": 0.01, "training.epsilon": 1e-6,
    "training.clip": 1.0, "training.masking_rate": 0.15, "overparam.hidden": 768,
    "overparam.intermediate": 3072, "overparam.heads": 12, "overparam.learning_rate": 1e-4,
}  # fmt: skip
LINES = tuple(
    replace(line, candidates=str(CANDIDATES), more={**line.more, "deep_layer": DEEP_LAYER})
    for line in table.published(__file__, SOURCE)
)
METRICS = tuple(LINES[0].cells)
REPLACED = ("30",)  # rows whose perplexities were measured under knn-replace, and ours under [MASK]

# The search of appendix C.3, of which the paper prints no results: the values tried, by the
# modification that sets them, those chosen, and the metrics that decided.
LEARNING_RATE, EPOCHS = "learning-rate", "epochs"
TRIED = {
    LEARNING_RATE: {
        "lr1e-4": "1e-4", "lr2e-4": "2e-4", "lr1e-3": "1e-3",
        "lr2e-3": "2e-3", "lr1e-2": "1e-2", "lr2e-2": "2e-2",
    },
    EPOCHS: {"ep10": "10", "ep20": "20", "ep50": "50", "ep100": "100", "ep200": "200"},
}  # fmt: skip
CHOSEN = {LEARNING_RATE: 2e-3, EPOCHS: 100.0}
SEARCH_ROWS = {row: f"{name}[{value}]" for name, by in TRIED.items() for row, value in by.items()}
CRITERIA = ("perplexity_train", "perplexity_dev")


class Layout(NamedTuple):
    """A table of the paper: what it shows, its rows in order, and the lines printed of them.

    A run has the table if it has one of its rows other than the first `shared`, which are in other
    tables too.
    """

    title: str
    caption: str = ""
    rows: Sequence[str] = ()
    shared: int = 0
    lines: Mapping[str, Line] = {}


def _layout(number: int, caption: str, shared: int = 0) -> Layout:
    lines = {line.row: line for line in LINES if line.more["table"] == number}
    return Layout(f"Table {number}", caption, tuple(lines), shared, lines)


LAYOUTS = (
    _layout(1, "Architecture, word order, model size"),
    _layout(2, "Parallel and non-parallel text", 1),
    _layout(10, "The largest model trained for long", 1),  # the published one repeats row 0 too
    Layout("Search", "Learning rates and epochs, by perplexity", ("0", *SEARCH_ROWS), 1),
)
ORDER = tuple(dict.fromkeys(row for layout in LAYOUTS for row in layout.rows))


def find(experiment: str, row: str) -> Line | None:
    """The paper's line for a row of an experiment, in the first table that has it, or None."""
    lines = LINES if experiment == EXPERIMENT else ()
    return next((line for line in lines if line.row == row), None)


def tried(description: str) -> tuple[str, float] | None:
    """The hyperparameter and value of a row that differs in nothing else, such as
    `("epochs", 20.0)`, or None."""
    match = re.fullmatch(rf"({LEARNING_RATE}|{EPOCHS})\[(.+)\]", description.strip())
    try:
        return (match[1], float(match[2])) if match else None
    except ValueError:
        return None


class Trial(NamedTuple):
    """A value that was tried, and the row that tried it."""

    value: float
    row: Row


def trials(run: Run) -> dict[str, list[Trial]]:
    """The trials of each hyperparameter that has any, in the order of their values.

    The original row is one of them, at the config's own value, unless another row tries that.
    """
    rows, found = run.rows.values(), {}
    every = [(tried(row.description or SEARCH_ROWS.get(row.name, "")), row) for row in rows]
    for name, field in {LEARNING_RATE: "learning_rate", EPOCHS: "epochs"}.items():
        own = [Trial(what[1], row) for what, row in every if what and what[0] == name]
        usual = run.setting("training", field)
        if own and usual is not None and usual not in {trial.value for trial in own}:
            own += [Trial(usual, row) for row in rows if row.description == "original"]
        if own:
            found[name] = sorted(own, key=lambda trial: trial.value)
    return found


def best(run: Run) -> dict[str, frozenset[str]]:
    """For each row that is the best of a search, the metrics in which it is.

    Only rows whose seeds have all ended are compared, and only if there are at least two of them.
    """
    marks: dict[str, frozenset[str]] = {}
    left = {row for row, _ in run.planned - run.ended}
    for own in trials(run).values():
        for metric in CRITERIA:
            known = [t.row for t in own if t.row.name not in left and metric in t.row.metrics]
            if len(known) > 1:
                better = max if EVALUATORS[metric].more_is_better else min
                best = better(known, key=lambda row: row.metrics[metric].mean)
                marks[best.name] = marks.get(best.name, frozenset()) | {metric}
    return marks

"""The search of D&S C.3: which rows try which learning rate or number of epochs, and the best."""

from __future__ import annotations

from typing import NamedTuple

from xling_jax.evaluators.registry import EVALUATORS
from xling_jax.experiments.fake_english import published
from xling_jax.report.frame import Row, Run

CRITERIA = ("perplexity_train", "perplexity_dev")
_ORIGINAL = "original"
_FIELDS = {published.LEARNING_RATE: "learning_rate", published.EPOCHS: "epochs"}


class Trial(NamedTuple):
    """A value that was tried, and the row that tried it."""

    value: float
    row: Row


def is_trial(row: str, description: str) -> bool:
    """Whether a row belongs to the search: one of the paper's, or one that sets the same alone."""
    return row in published.SEARCH or published.tried(description) is not None


def series(run: Run) -> dict[str, list[Trial]]:
    """The trials of each hyperparameter that has any, in the order of their values.

    The original row is one of them, at the config's own value, unless another row tries that.
    """
    rows, found = run.rows.values(), {}
    for name, setting in _FIELDS.items():
        tried = [(published.tried(row.description or published.SEARCH.get(row.name, "")), row)
                 for row in rows]  # fmt: skip
        trials = [Trial(what[1], row) for what, row in tried if what and what[0] == name]
        own = run.setting("training", setting)
        if trials and own is not None and own not in {trial.value for trial in trials}:
            trials += [Trial(own, row) for row in rows if row.description == _ORIGINAL]
        if trials:
            found[name] = sorted(trials, key=lambda trial: trial.value)
    return found


def best(run: Run) -> dict[str, frozenset[str]]:
    """The metrics in which a row is the best of the values tried, by row.

    Only rows that have ended are compared, and at least two of them.
    """
    marks: dict[str, frozenset[str]] = {}
    for trials in series(run).values():
        for metric in CRITERIA:
            known = [t.row for t in trials if not t.row.running and metric in t.row.metrics]
            if len(known) > 1:
                better = max if EVALUATORS[metric].more_is_better else min
                best = better(known, key=lambda row: row.metrics[metric].mean)
                marks[best.name] = marks.get(best.name, frozenset()) | {metric}
    return marks

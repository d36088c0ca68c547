"""What a reader must know before reading a result table, in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xling_jax.experiments.fake_english import published
from xling_jax.report.cells import ABSENT, Line
from xling_jax.report.formats import rows_in_words
from xling_jax.report.rows import Row, Run

_MEAN = "mu is the mean of retrieval and translation at both layers."
_SD = (
    "The second number of a cell is the standard deviation over seeds, of the population "
    "(ddof=0); D&S do not say which theirs is."
)
_BEST = (
    "Marked: the lowest perplexity among the learning rates, and among the numbers of epochs, of "
    "rows that have ended. The paper chose by perplexity and prints no figures of its search."
)
_TABLES = "Tables 1 and 10 (means over 5 seeds) and 2"


def about(run: Run, rows: Sequence[Row], lines: Sequence[Line]) -> list[str]:
    """Everything there is to say about some rows of a run and the lines they became."""
    notes = [_MEAN]
    if any(len(row.seeds) > 1 for row in rows):
        notes.append(_SD)
    if any(not line.ours for line in lines):
        notes += _comparison(run, lines)
    if any(cell.best for line in lines for cell in line.cells.values()):
        notes.append(_BEST)
    return [*notes, *progress(rows)]


def layers(lines: Iterable[Line]) -> list[int]:
    """The deeper layers of our lines."""
    return sorted({line.layer for line in lines if line.ours and line.layer})


def progress(rows: Sequence[Row]) -> list[str]:
    """Which seeds diverged, and which rows still train."""
    notes = []
    for row in rows:
        if row.diverged:
            are = "are" if len(row.diverged) > 1 else "is"
            notes.append(f"Row {row.row}: {_where(row)} diverged and {are} in no mean.")
        if row.running and row.seeds and not set(row.seeds) & set(row.running):
            seeds = ", ".join(map(str, row.running))
            notes.append(f"Row {row.row}: still training, and not in the means: seeds {seeds}.")
    so_far: dict[int, list[str]] = {}
    for row in rows:
        if row.step is not None and set(row.seeds) & set(row.running):
            so_far.setdefault(row.step, []).append(row.row)
    for step, of in so_far.items():
        notes.append(
            f"{rows_in_words(of)} still in training: the figures are those of step {step:,}."
        )
    return notes


def _where(row: Row) -> str:
    """Which seeds diverged at which steps."""
    by_step: dict[int, list[int]] = {}
    for seed, step in sorted(row.diverged.items()):
        by_step.setdefault(step, []).append(seed)
    return ", ".join(
        f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))} at step {step:,}"
        for step, seeds in by_step.items()
    )


def _comparison(run: Run, lines: Sequence[Line]) -> list[str]:
    """What keeps our figures from being the paper's."""
    notes = [f"{published.SOURCE}: {published.TITLE}, {_TABLES}."]
    differences = []
    if run.config.get("scale", "paper") != "paper":
        differences.append(f"the scale is {run.config['scale']!r}")
    if not any(text.get("sentences") == published.TRAINING_SENTENCES for text in run.texts):
        differences.append(
            f"the training text is not known to be the paper's ({published.TRAINING_SENTENCES:,} "
            "sentences of the Easy-to-Read Bible)"
        )
    if differences:
        notes.append(
            f"Not the paper's setting: {' and '.join(differences)}. Compare the shape (which rows "
            "are high, which low), not the values."
        )
    deep = layers(lines)
    if deep and deep != [published.DEEP_LAYER]:
        ours = f"{' or '.join(map(str, deep))}{f' of {run.layers}' if run.layers else ''}"
        notes.append(
            f"Where we have layer {ours}, {published.SOURCE} has layer {published.DEEP_LAYER} of "
            f"{published.LAYERS}."
        )
    ours_among = {line.candidates for line in lines if line.ours and line.candidates != ABSENT}
    if ours_among - {str(published.CANDIDATES)}:
        notes.append(
            f"Retrieval among fewer candidates than the paper's {published.CANDIDATES:,} gives "
            "higher figures; see the column of candidates."
        )
    remarks: dict[str, dict[str, None]] = {}
    for line in lines:
        if not line.ours and line.row in published.REMARKS:
            remarks.setdefault(published.REMARKS[line.row], {})[line.row] = None
    return notes + [f"{rows_in_words(list(of))}: {text}" for text, of in remarks.items()]

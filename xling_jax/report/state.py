"""How far a run is: a sentence, and the last line of every replica that has not ended."""

from __future__ import annotations

from html import escape

from xling_jax.report.cells import ABSENT
from xling_jax.report.markup import grid
from xling_jax.report.rows import Run
from xling_jax.runs.results import Record

FOLDED = 12  # a table of more replicas than this is folded away


def sentence(run: Run) -> str:
    """One sentence: how far the run is."""
    records = (*run.metrics.training, *run.metrics.evaluations)
    ended = {(r.row, r.seed) for r in run.replicas}
    diverged = sum(r.diverged_at is not None for r in run.replicas)
    aside = f", {diverged} of them diverged" if diverged else ""
    running = [r for r in records if (r.row, r.seed) not in ended]
    if not running and not ended:
        return "Nothing has been logged yet."
    if not running:
        missing = len(run.replicas_planned()) - len(ended)
        waiting = f"; {missing} have not begun" if missing else ""
        have = "replicas have" if len(ended) > 1 else "replica has"
        return f"{len(ended)} {have} ended{aside}{waiting}."
    known = len(run.replicas_planned())
    last = max(running, key=lambda record: record.step)
    total = run.steps_of(last.row)
    of = f" of {total:,}" if total else ""
    text = f"Not finished: at step {last.step:,}{of}; {len(ended)} of {known} replicas have ended"
    evaluated = "" if run.metrics.evaluations else " Nothing has been evaluated yet."
    return f"{text}{aside}.{evaluated}"


def state(run: Run) -> str:
    """The sentence and the replicas in training, as HTML."""
    return f'<p class="state">{escape(sentence(run))}</p>\n{in_training(run)}'


def in_training(run: Run) -> str:
    """The last line of every replica that has not ended, as HTML; empty if there is none."""
    ended = {(r.row, r.seed) for r in run.replicas}
    last: dict[tuple[str, int], Record] = {}
    for record in run.metrics.training:
        if (record.row, record.seed) not in ended:
            last[record.row, record.seed] = record
    if not last:
        return ""
    lines = []
    for record in last.values():
        shown = [record.values.get(n) for n in ("epoch", "loss", "tokens_per_second")]
        texts = [ABSENT if v is None else f"{v:,.4g}" for v in shown[:2]]
        texts.append(ABSENT if shown[2] is None else f"{shown[2]:,.0f}")
        lines.append((record.row, record.seed, f"{record.step:,}", *texts))
    table = grid(("row", "seed", "step", "epoch", "loss", "tokens/s"), lines)
    if len(lines) <= FOLDED:
        return table
    summary = f"The {len(lines)} replicas in training"
    return f"<details><summary>{summary}</summary>{table}</details>\n"

"""The report of a run of `zero_shot` as one HTML page with its figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from html import escape
from importlib.util import find_spec
from pathlib import Path

from xling_jax.experiments.fake_english import report_comparisons
from xling_jax.experiments.fake_english.report_comparisons import Line
from xling_jax.experiments.zero_shot import report_figures, report_layers, report_notes
from xling_jax.experiments.zero_shot.report_tables import MEASURES, TITLES
from xling_jax.experiments.zero_shot.scores import Board, job_of
from xling_jax.report import document, verdicts
from xling_jax.report.cards import NO_MATPLOTLIB, card, quiet, section
from xling_jax.report.cells import ABSENT, Table
from xling_jax.report.claims import Decided
from xling_jax.report.drawn import Drawn
from xling_jax.report.markup import bullets, grid, results
from xling_jax.report.rows import Run
from xling_jax.report.state import in_training
from xling_jax.runs.results import Metrics

BARS = (
    "W&C Figure 3: scores in the target languages, whiskers of one standard deviation over seeds. "
    "Diamonds are the paper's numbers, where a language is one of its own."
)
EPOCHS = (
    "Mean over settings and seeds, one standard deviation shaded; what diverged is left out. Rows "
    "have the same colours in every figure."
)
LAYERS = (
    "W&C Figures 5 and 8: new layers on the first layers of pretrained models, by how many of them "
    "are kept; the states of other languages are mapped to those of the first, or not."
)
_TEXT_FIELDS = ("source", "language", "field", "sha256")


def write(run: Run, board: Board, tables: Sequence[Table], decided: Sequence[Decided]) -> Path:
    """Writes `report/report.html` and `report/figures/` of a run, ended or not; returns the page.

    Only figures whose numbers changed are drawn anew.

    Args:
      run: the run.
      board: its jobs.
      tables: of all tasks, and of each.
      decided: the claims.
    """
    report = run.workdir / "report"
    notes = tables[0].notes if tables else ()
    # The settings that were tried are many; the page names the jobs alone.
    planned = replace(run, replicas=(), metrics=Metrics([], []))
    sections = {
        "Results": "".join(map(results, tables)) + bullets(notes) + _settings(run, board),
        "Claims": verdicts.to_html(decided) if board.jobs else "",
        **draw(run, board, report / "figures"),
        "What was run": document.settings(planned, None, _TEXT_FIELDS),
    }
    state = f'<p class="state">{escape(report_notes.state(run, board))}</p>\n{in_training(run)}'
    return document.write(report / "report.html", run, state, sections)


def _settings(run: Run, board: Board) -> str:
    """Every metric of every setting that ended, folded away; a star marks those in the scores."""
    text = ""
    for task in board.tasks:
        jobs = [job for job in board.jobs if job.task == task]
        chosen = {(each.row, each.seed) for job in jobs for each in job.chosen}
        names = {job.name for job in jobs}
        ended = [replica for replica in run.replicas if job_of(replica.row) in names]
        metrics = list(dict.fromkeys(name for replica in ended for name in replica.metrics))
        lines = []
        for replica in ended:
            star = "*" if (replica.row, replica.seed) in chosen else ""
            values = [replica.metrics.get(name) for name in metrics]
            numbers = [ABSENT if value is None else f"{value:.4g}" for value in values]
            if replica.diverged_at is not None:
                star = f"diverged at step {replica.diverged_at:,}"
            lines.append([replica.row, star, replica.seed, *numbers])
        if lines:
            table = grid(["setting", "", "seed", *metrics], lines, names=2)
            text += f"<details><summary>{TITLES[task]}: every setting</summary>{table}</details>\n"
    return text or quiet("No metrics yet.")


def draw(run: Run, board: Board, folder: Path) -> dict[str, str]:
    """Draws and saves what is new among the figures that the run has data for.

    Returns the sections' HTML by heading; one without a figure is empty.
    """
    if find_spec("matplotlib") is None:
        return {"Figures": quiet(NO_MATPLOTLIB)}
    drawn = Drawn(folder)
    return {
        "Rows": section(BARS, _bars(board, drawn)),
        "Layers kept": section(LAYERS, _over_layers(board, drawn)),
        "Over epochs": section(EPOCHS, _over_epochs(run, board, drawn)),
    }


def _bars(board: Board, drawn: Drawn) -> list[str]:
    cards = []
    for task in board.tasks:
        for number, places in enumerate(report_figures.blocks(board)):
            shown = report_figures.entries(board, task, places)
            scores = report_figures.scores(board, places)
            if not shown:
                continue
            figure = partial(report_comparisons.bars, shown, scores, MEASURES[task])
            name = f"rows_{task}" + (f"_{number + 1}" if number else "")
            if paths := drawn.figure(name, [shown, scores], figure):
                cards.append(card(paths, f"Every row: {TITLES[task]}", wide=True))
    return cards


def _over_layers(board: Board, drawn: Drawn) -> list[str]:
    def of(pair: str, task: str) -> tuple[list[Line], dict[str, str]]:
        lines = report_layers.over_layers(board, pair, task)
        return lines, {name: name for line in lines for name in line.curves}

    return _curves(board, drawn, "layers", "layers kept", "by layers kept", of)


def _over_epochs(run: Run, board: Board, drawn: Drawn) -> list[str]:
    records = report_figures.by_job(run)

    def of(pair: str, task: str) -> tuple[list[Line], dict[str, str]]:
        lines = report_figures.over_epochs(board, records, pair, task)
        return lines, report_figures.panels(lines, pair)

    return _curves(board, drawn, "epochs", "epoch", "over epochs", of)


def _curves(
    board: Board,
    drawn: Drawn,
    name: str,
    below: str,
    title: str,
    of: Callable[[str, str], tuple[list[Line], dict[str, str]]],
) -> list[str]:
    """A card for each task and pair that has curves.

    Args:
      board, drawn: the jobs, and what draws.
      name: of the figures. below: what the curves run over. title: the same in a title.
      of: the lines of a pair and a task, and the panels with their titles.
    """
    cards = []
    for task in board.tasks:
        for pair, _ in board.sources:
            lines, shown = of(pair, task)
            if not shown:
                continue
            figure = partial(report_comparisons.side_by_side, lines, shown, below)
            if paths := drawn.figure(f"{name}_{task}_{pair}", [lines, shown], figure):
                alt = f"{TITLES[task]} {title}, {pair}"
                cards.append(card(paths, alt, wide=len(shown) > 1))
    return cards

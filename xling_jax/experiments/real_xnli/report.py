"""The report of a run of `real_xnli`: Dufter & Schütze 2020, Table 3."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from xling_jax.corpora.sources import SYNTHETIC
from xling_jax.experiments.real_xnli import claims
from xling_jax.experiments.zero_shot import scores
from xling_jax.experiments.zero_shot.scores import BASELINES, Board
from xling_jax.files import plain_name
from xling_jax.report import page
from xling_jax.report.claims import Decided, Evidence, RowEvidence, Verdicts
from xling_jax.report.frame import Measure, Run, read_run
from xling_jax.report.prose import diverged_at
from xling_jax.report.table import ABSENT, Column, Line, Table
from xling_jax.runs import results

TRANSFER = "transfer"  # the folder of the fine-tuning's workdir
TASK = "nli"


def write(workdir: Path) -> str:
    """Writes `report/report.html` and `tables/` of a run, ended or not.

    Returns the table and the claims as text. Raises `ValueError` naming file and line where a
    stored result cannot be read.
    """
    run, tuned = read_run(workdir), board(workdir)
    shown, verdicts = result(run, tuned), Verdicts(decide(run, tuned))
    sections: dict[str, list[Any]] = {
        "Results": [shown, shown.notes, page.all_metrics(run)],
        "Claims": [verdicts],
        "What was run": page.settings(run, run.config.get("vocabulary")),
    }
    return page.write(run, page.progress(run), sections, [shown], verdicts)


def board(workdir: Path) -> Board:
    """What was fine-tuned so far of a run."""
    folder = workdir / TRANSFER
    if not (folder / results.CONFIG).exists():
        return Board(())
    return scores.read(read_run(folder))


def languages(run: Run) -> list[str]:
    """Of the run, that which is learned from first."""
    return run.names("corpora", "languages")


def _printed_as(run: Run) -> list[str]:
    """Our languages for the paper's: themselves, or for embedded ones by their places."""
    names = languages(run)
    is_embedded = any(run.field("corpora", name, "train") == SYNTHETIC for name in names)
    return names if is_embedded else list(claims.LANGUAGES)


def result(run: Run, tuned: Board) -> Table:
    """A line a row, and the paper's beneath it."""
    names = languages(run)
    columns = [Column.of(f"perplexity_dev_{name}", "perplexity", name, f"ppl {name}")
               for name in names]  # fmt: skip
    columns += [Column(name, name, group="accuracy") for name in names]
    printed, lines = {line.row: line for line in claims.LINES}, []
    for name, row in run.rows.items():
        cells = {**row.metrics, **_accuracies(tuned, name)}
        message = "" if cells else diverged_at(row.diverged) if row.diverged else "not begun"
        lines.append(Line(name, row.description, cells, seeds=str(len(row.seeds)),
                          message=message, diverged=row.diverged))  # fmt: skip
        if line := printed.get(name):
            places = dict(zip(_printed_as(run), line.cells.values(), strict=False))
            cells = {name: places[name] for name in names if name in places}
            lines.append(replace(line, description=claims.SOURCE, cells=cells, more={}))
    for which in BASELINES:
        known = {place[1]: value for place, value in tuned.baselines(TASK, which).items()}
        if known:
            cells = {language: Measure(value / 100) for language, value in known.items()}
            lines.append(Line("baseline", which, cells, which, seeds=ABSENT))
    notes = [
        "Perplexity of held-out text where every selected token is masked; accuracy after "
        f"fine-tuning on {names[0] if names else 'the first language'} alone.",
    ]
    both = zip(_printed_as(run), claims.LANGUAGES.values(), strict=False)
    if stand := [f"{language} under {name}" for name, language in both if name in names]:
        notes.append(f"The paper's numbers stand where ours do: {', '.join(stand)}.")
    return Table("table3", "Table 3", "Inference, zero-shot", columns, lines, notes)


def _accuracies(tuned: Board, row: str) -> dict[str, Measure]:
    """What the models of a row reach, by language, as a share."""
    job = next(iter(tuned.of(plain_name(row), TASK)), None)
    return {name: value.times(0.01) for name, value in (job.scores if job else {}).items()}


def decide(run: Run, tuned: Board) -> list[Decided]:
    """Every claim's verdict on the rows that were fine-tuned."""
    names = languages(run)
    found, unusable = dict[str, RowEvidence](), dict[str, str]()
    for row in run.row_names:
        accuracies = _accuracies(tuned, row)
        ended = all(job.has_ended for job in tuned.of(plain_name(row), TASK))
        if ended and accuracies and set(names) <= set(accuracies):
            roles = zip(claims.ROLES, names, strict=False)
            found[row] = RowEvidence({role: accuracies[language] for role, language in roles})
        else:
            unusable[row] = "not fine-tuned"
    return [claim.decide(Evidence(found, unusable)) for claim in claims.CLAIMS]

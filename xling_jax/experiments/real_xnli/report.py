"""The report of a run of `real_xnli`: Dufter & Schütze 2020, Table 3."""

from __future__ import annotations

from pathlib import Path

from xling_jax.corpora.sources import SYNTHETIC
from xling_jax.experiments.real_xnli import claims
from xling_jax.experiments.real_xnli.claims import CLAIMS, FIRST, SECOND, THIRD
from xling_jax.experiments.zero_shot import scores
from xling_jax.experiments.zero_shot.scores import BASELINES, Board, Job
from xling_jax.files import plain_name
from xling_jax.report import document, verdicts
from xling_jax.report.cells import ABSENT, OURS, Cell, Column, Line, Table, diverged_at
from xling_jax.report.claims import Decided, Evidence, Measure, RowEvidence
from xling_jax.report.markup import bullets, grid
from xling_jax.report.printed import WIDTH, own_cells, own_terminal, write_own
from xling_jax.report.rows import Run, read_run
from xling_jax.report.state import state
from xling_jax.runs import results

TRANSFER = "transfer"  # the folder of the fine-tuning's workdir
TASK = "nli"
_ROLES = (FIRST, SECOND, THIRD)


def write(workdir: Path) -> str:
    """Writes `report/report.html` and `tables/` of a run, ended or not.

    Returns the table and the claims as text. Raises `ValueError` naming file and line where a
    stored result cannot be read.
    """
    run, tuned = read_run(workdir), board(workdir)
    table, decided = build(run, tuned), decide(run, tuned)
    folder = run.workdir / "report" / "tables"
    write_own([table], folder)
    verdicts.write(decided, folder)
    header = ["row", "what", *(column.title for column in table.columns), "seeds"]
    lines = [[line.row, line.description, *own_cells(table, line), line.seeds]
             for line in table.lines]  # fmt: skip
    sections = {
        "Results": grid(header, lines, names=2) + bullets(table.notes) + document.all_metrics(run),
        "Claims": verdicts.to_html(decided),
        "What was run": document.settings(run, run.config.get("vocabulary")),
    }
    document.write(run.workdir / "report" / "report.html", run, state(run), sections)
    listed = "\n".join(verdicts.to_terminal(decided, WIDTH))
    return f"{table.heading}\n{own_terminal(table)}\n\n{listed}".rstrip()


def board(workdir: Path) -> Board:
    """What was fine-tuned so far of a run."""
    folder = workdir / TRANSFER
    if not (folder / results.CONFIG).exists():
        return Board(())
    return scores.read(read_run(folder))


def languages(run: Run) -> list[str]:
    """Of the run, that which is learned from first."""
    found = scores.section(run, "corpora")
    return list(found.get("languages", ())) if isinstance(found, dict) else []


def _printed_as(run: Run) -> list[str]:
    """Our languages for the paper's: themselves, or for embedded ones by their places."""
    corpora = scores.section(run, "corpora") or {}
    names = languages(run)
    is_embedded = any((corpora.get(name) or {}).get("train") == SYNTHETIC for name in names)
    return names if is_embedded else list(claims.LANGUAGES)


def build(run: Run, board: Board) -> Table:
    """A line a row, and the paper's beneath it."""
    names = languages(run)
    columns = [Column("perplexity", f"perplexity {n}", f"ppl {n}", f"perplexity_dev_{n}")
               for n in names]  # fmt: skip
    columns += [Column("accuracy", f"accuracy {n}", n, n) for n in names]
    lines = []
    for name in run.row_names():
        lines.append(_line(run, name, _job(board, name)))
        if printed := claims.find(name):
            scores = dict(zip(_printed_as(run), printed.scores, strict=False))
            cells = {name: Cell(*scores[name]) for name in names if name in scores}
            lines.append(Line(claims.SOURCE, name, claims.SOURCE, cells, None, "",
                              str(claims.SEEDS)))  # fmt: skip
    for which in BASELINES:
        known = {place[1]: value for place, value in board.baselines(TASK, which).items()}
        if known:
            cells = {language: Cell(value / 100) for language, value in known.items()}
            lines.append(Line(which, "baseline", which, cells, None, "", ABSENT))
    notes = [
        "Perplexity of held-out text where every selected token is masked; accuracy after "
        f"fine-tuning on {names[0] if names else 'the first language'} alone.",
    ]
    both = zip(_printed_as(run), claims.LANGUAGES.values(), strict=False)
    if places := [f"{language} under {name}" for name, language in both if name in names]:
        notes.append(f"The paper's numbers stand where ours do: {', '.join(places)}.")
    return Table("table3", "Table 3", "Inference, zero-shot", columns, lines, notes)


def _job(board: Board, row: str) -> Job | None:
    return next(iter(board.of(plain_name(row), TASK)), None)


def _accuracies(job: Job | None) -> dict[str, Measure]:
    """By language, as a share."""
    return {
        language: Measure(
            value.mean / 100,
            None if value.sd is None else value.sd / 100,
            value.number,
            {seed: own / 100 for seed, own in value.by_seed.items()},
        )
        for language, value in (job.scores if job else {}).items()
    }


def _line(run: Run, name: str, job: Job | None) -> Line:
    row = run.row(name)
    cells = {metric: Cell(value.mean, value.sd if value.number > 1 else None)
             for metric, value in row.metrics.items()}  # fmt: skip
    cells |= {language: Cell(x.mean, x.sd) for language, x in _accuracies(job).items()}
    message = "" if cells else diverged_at(row.diverged) if row.diverged else "not begun"
    return Line(OURS, name, row.description, cells, None, "", str(len(row.seeds)),
                message=message, diverged=row.diverged)  # fmt: skip


def decide(run: Run, board: Board) -> list[Decided]:
    """Every claim's verdict on the rows that were fine-tuned."""
    names, found, unusable = languages(run), {}, {}
    for row in run.row_names():
        job = _job(board, row)
        scores = _accuracies(job)
        if job is None or not job.has_ended or not set(names) <= set(scores):
            unusable[row] = "not fine-tuned"
            continue
        roles = zip(_ROLES, names, strict=False)
        found[row] = RowEvidence({role: scores[language] for role, language in roles})
    evidence = Evidence(found, unusable)
    return [claim.decide(evidence) for claim in CLAIMS]

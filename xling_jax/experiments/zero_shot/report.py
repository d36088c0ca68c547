"""The report of a run of `zero_shot`: Wu, Conneau et al. 2020, Table 1 and §4."""

from __future__ import annotations

from pathlib import Path

from xling_jax.experiments.zero_shot import claims, report_notes, report_page, report_tables, scores
from xling_jax.report import verdicts
from xling_jax.report.printed import WIDTH, own_terminal, write_own
from xling_jax.report.rows import read_run


def write(workdir: Path) -> str:
    """Writes `report/report.html`, `tables/` and `figures/` of a run, ended or not.

    Returns the tables and the claims as text. Raises `ValueError` naming file and line where a
    stored result cannot be read.
    """
    run = read_run(workdir)
    board = scores.read(run)
    decided = claims.decide(board)
    tables = report_tables.build(board, report_notes.about(run, board))
    folder = run.workdir / "report" / "tables"
    write_own(tables, folder)
    verdicts.write(decided, folder)
    report_page.write(run, board, tables, decided)
    parts = [f"{table.heading}\n{own_terminal(table)}" for table in tables]
    if listed := verdicts.to_terminal(decided, WIDTH):
        parts.append("\n".join(listed))
    return "\n\n".join(parts).rstrip()

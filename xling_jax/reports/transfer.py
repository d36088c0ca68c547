"""The report of a run of `transfer`: Wu, Conneau et al. 2020, Table 1 and §4."""

from __future__ import annotations

from pathlib import Path

from xling_jax.reports import (
    transfer_claims,
    transfer_notes,
    transfer_page,
    transfer_scores,
    transfer_tables,
    verdicts,
)
from xling_jax.reports.printed import WIDTH, own_terminal, write_own
from xling_jax.reports.rows import read_run


def write(workdir: Path) -> str:
    """Writes `report/report.html`, `tables/` and `figures/` of a run, ended or not.

    Returns the tables and the claims as text. Raises `ValueError` naming file and line where a
    stored result cannot be read.
    """
    run = read_run(workdir)
    board = transfer_scores.read(run)
    decided = transfer_claims.decide(board)
    tables = transfer_tables.build(board, transfer_notes.about(run, board))
    folder = run.workdir / "report" / "tables"
    write_own(tables, folder)
    verdicts.write(decided, folder)
    transfer_page.write(run, board, tables, decided)
    parts = [f"{table.heading}\n{own_terminal(table)}" for table in tables]
    if claims := verdicts.to_terminal(decided, WIDTH):
        parts.append("\n".join(claims))
    return "\n\n".join(parts).rstrip()

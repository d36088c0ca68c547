"""The report of a run of `similarity`: Wu, Conneau et al. 2020, §5, Figures 4, 6 and 7."""

from __future__ import annotations

from pathlib import Path

from xling_jax.experiments.similarity import (
    claims,
    report_notes,
    report_page,
    report_pairs,
    report_tables,
)
from xling_jax.report import verdicts
from xling_jax.report.printed import WIDTH, own_terminal, write_own
from xling_jax.report.rows import read_run


def write(workdir: Path) -> str:
    """Writes `report/report.html`, `tables/` and `figures/` of a run, ended or not.

    Returns the summary and the claims as text. Raises `ValueError` naming file and line where a
    stored result cannot be read.
    """
    run = read_run(workdir)
    pairs = report_pairs.read(run)
    decided = claims.decide(pairs, report_pairs.languages(run))
    summary = report_tables.summary(pairs, report_notes.about(pairs))
    tables = {summary.name: summary}
    for build in (
        report_tables.cka,
        report_tables.sentences,
        report_tables.words,
        report_tables.context,
    ):
        if report_tables.has_numbers(table := build(pairs)):
            tables[table.name] = table
    folder = run.workdir / "report" / "tables"
    write_own(tables.values(), folder)
    verdicts.write(decided, folder)
    report_page.write(run, pairs, tables, decided)
    listed = verdicts.to_terminal(decided, WIDTH)
    return "\n".join([own_terminal(summary), *([""] if listed else []), *listed]).rstrip()

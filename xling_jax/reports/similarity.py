"""The report of a run of `similarity`: Wu, Conneau et al. 2020, §5, Figures 4, 6 and 7."""

from __future__ import annotations

from pathlib import Path

from xling_jax.reports import (
    similarity_claims,
    similarity_notes,
    similarity_page,
    similarity_pairs,
    similarity_tables,
    verdicts,
)
from xling_jax.reports.printed import WIDTH, own_terminal, write_own
from xling_jax.reports.rows import read_run


def write(workdir: Path) -> str:
    """Writes `report/report.html`, `tables/` and `figures/` of a run, ended or not.

    Returns the summary and the claims as text. Raises `ValueError` naming file and line where a
    stored result cannot be read.
    """
    run = read_run(workdir)
    pairs = similarity_pairs.read(run)
    decided = similarity_claims.decide(pairs, similarity_pairs.languages(run))
    summary = similarity_tables.summary(pairs, similarity_notes.about(pairs))
    tables = {summary.name: summary}
    for build in (
        similarity_tables.cka,
        similarity_tables.sentences,
        similarity_tables.words,
        similarity_tables.context,
    ):
        if similarity_tables.has_numbers(table := build(pairs)):
            tables[table.name] = table
    folder = run.workdir / "report" / "tables"
    write_own(tables.values(), folder)
    verdicts.write(decided, folder)
    similarity_page.write(run, pairs, tables, decided)
    claims = verdicts.to_terminal(decided, WIDTH)
    return "\n".join([own_terminal(summary), *([""] if claims else []), *claims]).rstrip()

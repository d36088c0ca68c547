"""The report of a run: one HTML page that needs no other file, and the tables beside it."""

from __future__ import annotations

from pathlib import Path

from xling_jax.experiments.fake_english import claims, published, report_gallery, report_tables
from xling_jax.report import document, verdicts
from xling_jax.report.markup import bullets, results
from xling_jax.report.rows import Run, read_run
from xling_jax.report.state import state

_ORDER = (
    "Overview", "Results", "Claims", "Figures", "Search", "Training", "Token embeddings",
    "Position similarities", "What was run",
)  # fmt: skip


def write(workdir: Path) -> Path:
    """Writes `report/report.html`, `report/tables/` and `report/figures/` of a run, ended or not.

    Only figures whose numbers changed are drawn anew. Returns the page's path. Raises `ValueError`
    naming file and line where a stored result cannot be read; arrays that cannot are named on the
    page.
    """
    run = read_run(Path(workdir), published.ORDER)
    report = run.workdir / "report"
    decided = claims.of(run)
    report_tables.write(run, report / "tables")
    verdicts.write(decided, report / "tables")
    sections = {
        **report_gallery.draw(run, report / "figures"),
        "Results": _results(run),
        "Claims": verdicts.to_html(decided),
        "What was run": document.settings(run, run.config.get("vocabulary")),
    }
    ordered = {name: sections[name] for name in _ORDER if name in sections}
    return document.write(report / "report.html", run, state(run), ordered)


def report(workdir: Path) -> str:
    """Writes the report of a run, and returns its tables as text."""
    write(workdir)
    return report_tables.terminal(workdir)


def _results(run: Run) -> str:
    """The tables, and beneath them what must be known to read them."""
    found = "".join(results(table) for table in report_tables.build(run))
    notes = bullets(report_tables.whole(run).notes) if found else ""
    return found + notes + document.all_metrics(run)

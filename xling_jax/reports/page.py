"""The report of a run: one HTML page that needs no other file, and the tables beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

from xling_jax.files import write_beside
from xling_jax.reports import gallery, notes, tables, verdicts
from xling_jax.reports.cells import ABSENT
from xling_jax.reports.markup import bullets, grid, results
from xling_jax.reports.rows import Run, read_run
from xling_jax.reports.state import state
from xling_jax.reports.style import CSS

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
    run = read_run(Path(workdir))
    report = run.workdir / "report"
    decided = verdicts.of(run)
    tables.write(run, report / "tables")
    verdicts.write(decided, report / "tables")
    sections = {
        **gallery.draw(run, report / "figures"),
        "Results": _results(run),
        "Claims": verdicts.to_html(decided),
        "What was run": _settings(run),
    }
    order = [name for name in _ORDER if sections.get(name)]
    title = f"{run.experiment or 'A run'}: report"
    body = "".join(_section(n, name, sections[name]) for n, name in enumerate(order))
    links = "".join(f'<a href="#s{n}">{escape(name)}</a> ' for n, name in enumerate(order))
    return write_beside(
        report / "report.html",
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{CSS}</style></head>\n<body><main>\n"
        f"<h1>{escape(title)}</h1>\n{state(run)}<nav>{links}</nav>\n{body}</main></body></html>\n",
    )


def _section(number: int, heading: str, text: str) -> str:
    return f'<section id="s{number}"><h2>{escape(heading)}</h2>\n{text}</section>\n'


def _results(run: Run) -> str:
    """The tables, and beneath them what must be known to read them."""
    found = "".join(results(table) for table in tables.build(run))
    notes = bullets(tables.whole(run).notes) if found else ""
    return found + notes + _all_metrics(run)


def _all_metrics(run: Run) -> str:
    """Every metric of every row, folded away: p@5, the directions, and whatever else there is."""
    rows = [row for name in run.row_names() if (row := run.row(name)).metrics]
    names = dict.fromkeys(name for row in rows for name in row.metrics)
    lines = []
    for name in sorted(names):
        cells = [row.metrics.get(name) for row in rows]
        texts = [ABSENT if c is None else f"{c.mean:.4g} ± {c.sd:.2g}" for c in cells]
        lines.append((name, *texts))
    if not lines:
        return '<p class="quiet">No metrics yet.</p>\n'
    table = grid(("metric", *(f"row {row.row}" for row in rows)), lines)
    return f"<details><summary>All metrics</summary>{table}</details>\n"


def _flat(config: Any, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(config, Mapping) and config:
        for key, value in config.items():
            yield from _flat(value, f"{name}.{key}" if name else str(key))
    else:
        yield name, str(config)


def _settings(run: Run) -> str:
    """The experiment, its texts, and the whole config folded away."""
    config = run.config
    versions = config.get("versions")
    facts = [(name, config.get(name, ABSENT)) for name in ("experiment", "scale")]
    facts += [("rows", ", ".join(run.row_names()) or ABSENT), ("steps", _steps(run))]
    facts += list(_flat(config.get("vocabulary") or ABSENT, "vocabulary"))
    facts.append(("fingerprint", config.get("fingerprint", ABSENT)))
    pairs = versions.items() if isinstance(versions, dict) else ()
    facts.append(("versions", ", ".join(f"{k} {v}" for k, v in pairs) or ABSENT))
    text = "".join(
        f'<tr><td class="name">{escape(str(k))}</td><td class="name">{escape(str(v))}</td></tr>'
        for k, v in facts
    )
    text = f'<div class="scroll"><table>{text}</table></div>\n'
    fields = ("source", "language", "sentences", "words", "sha256")
    if run.texts:
        lines = [[_count(t.get(field, ABSENT)) for field in fields] for t in run.texts]
        text += "<h3>Texts</h3>" + grid(fields, lines, names=2)
    else:
        text += '<p class="quiet">The config names no texts.</p>'
    if nested := config.get("config"):
        text += "<details><summary>The whole config</summary>"
        text += grid((), _flat(nested), names=2) + "</details>\n"
    return text


def _steps(run: Run) -> str:
    """The updates of a replica, and which rows make another number of them."""
    by_number: dict[int, list[str]] = {}
    for row in run.row_names():
        if (steps := run.steps_of(row)) is not None:
            by_number.setdefault(steps, []).append(row)
    if not by_number:
        return ABSENT
    usual = max(by_number, key=lambda steps: len(by_number[steps]))
    others = [f"{n:,} ({notes.in_words(of, 'row')})" for n, of in by_number.items() if n != usual]
    return "; ".join([f"{usual:,}", *others])


def _count(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)

"""The report of a run: one HTML page that needs no other file, and the tables beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from xling_jax.files import write_beside
from xling_jax.reports import gallery, tables
from xling_jax.reports.results import Record
from xling_jax.reports.rows import Run, read_row, read_run

CSS = """
:root { color-scheme: light dark; --back: #fff; --ink: #1c1e21; --muted: #62676e; --line: #d9dce0;
  --band: #f3f5f7; }
@media (prefers-color-scheme: dark) { :root { --back: #15171a; --ink: #e6e8ea; --muted: #9aa1a9;
  --line: #363b41; --band: #1e2125; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink);
  font: 16px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
main { max-width: 84rem; margin: 0 auto; padding: 1rem 1rem 3rem; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: .5rem 0; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; padding-bottom: .2rem;
  border-bottom: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1.2rem 0 .2rem; }
p, li { max-width: 46rem; } ul { padding-left: 1.2rem; }
li, figcaption, .quiet { font-size: .85rem; color: var(--muted); }
.state { padding: .5rem .8rem; background: var(--band); border-left: 4px solid #0072B2; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .5rem; text-align: right; vertical-align: baseline; }
th { font-weight: 600; border-bottom: 1px solid var(--line); vertical-align: bottom; }
th.group { text-align: center; border-left: 1.2rem solid var(--back); }
.name { text-align: left; overflow-wrap: break-word; }
.results th:first-child, .results td:first-child, .fixed td:first-child { position: sticky;
  left: 0; background: var(--back); }
.results tbody .name + .name { min-width: 7.5rem; }
tr.ours > td { border-top: 1px solid var(--line); font-weight: 600; }
.results th, .results td { white-space: nowrap; }
.results td.name { white-space: normal; }
.results small { display: inline-block; min-width: 1.7em; text-align: left; }
tr.ours small { font-weight: 400; color: var(--muted); }
tr.paper > td { color: var(--muted); }
code { font-size: .8rem; overflow-wrap: anywhere; }
.figures { display: grid; gap: 1rem; align-items: start;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 23rem), 1fr)); }
figure { margin: 0; padding: .6rem; background: #fff; border: 1px solid var(--line);
  border-radius: 6px; }
figure img { display: block; width: 100%; max-width: 34rem; height: auto; margin: 0 auto; }
figcaption { color: #555; margin-top: .3rem; } figcaption a { color: #0b5a8f; }
summary { cursor: pointer; margin: .8rem 0; }
"""


def write(workdir: Path) -> Path:
    """Writes `report/report.html`, `report/tables/` and `report/figures/` of a run, ended or not.

    Returns the page's path. Raises `ValueError` naming file and line where a stored result cannot
    be read; arrays that cannot are named on the page.
    """
    run = read_run(Path(workdir))
    table = tables.build(run)
    report = run.workdir / "report"
    write_beside(report / "tables" / "results.md", tables.to_markdown(table))
    write_beside(report / "tables" / "results.csv", tables.to_csv(table))
    title = f"{run.experiment or 'A run'}: report"
    sections = [
        ("What was run", _settings(run)),
        ("Results", _results(table) + _all_metrics(run)),
        *gallery.draw(run, report / "figures"),
    ]
    body = "".join(f"<section><h2>{escape(h)}</h2>\n{text}</section>\n" for h, text in sections)
    return write_beside(
        report / "report.html",
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{CSS}</style></head>\n<body><main>\n"
        f"<h1>{escape(title)}</h1>\n{_state(run)}{body}</main></body></html>\n",
    )


def _grid(header: Sequence[str], rows: Iterable[Sequence[Any]], names: int = 1) -> str:
    """A table in a scrolling box; the first `names` columns are text. Everything is escaped."""

    def cells(tag: str, row: Sequence[Any]) -> str:
        kinds = [' class="name"' if n < names else "" for n in range(len(row))]
        return "".join(
            f"<{tag}{k}>{escape(str(c))}</{tag}>" for k, c in zip(kinds, row, strict=True)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>\n" for row in rows)
    head = f"<thead><tr>{cells('th', header)}</tr></thead>" if header else ""
    return f'<div class="scroll"><table class="fixed">{head}<tbody>{body}</tbody></table></div>\n'


def state(run: Run) -> str:
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
        return f"{len(ended)} replicas have ended{aside}{waiting}."
    known = len(run.replicas_planned())
    last = max(r.step for r in running)
    of = f" of {run.steps:,}" if run.steps else ""
    text = f"Not finished: at step {last:,}{of}; {len(ended)} of {known} replicas have ended"
    evaluated = "" if run.metrics.evaluations else " Nothing has been evaluated yet."
    return f"{text}{aside}.{evaluated}"


def _state(run: Run) -> str:
    """The sentence, and the last training line of every replica that has not ended."""
    ended = {(r.row, r.seed) for r in run.replicas}
    last: dict[tuple[str, int], Record] = {}
    for record in run.metrics.training:
        if (record.row, record.seed) not in ended:
            last[record.row, record.seed] = record
    text = f'<p class="state">{escape(state(run))}</p>\n'
    if not last:
        return text
    lines = []
    for record in last.values():
        shown = [record.values.get(n) for n in ("epoch", "loss", "tokens_per_second")]
        texts = [tables.ABSENT if v is None else f"{v:,.4g}" for v in shown[:2]]
        texts.append(tables.ABSENT if shown[2] is None else f"{shown[2]:,.0f}")
        lines.append((record.row, record.seed, f"{record.step:,}", *texts))
    return text + _grid(("row", "seed", "step", "epoch", "loss", "tokens/s"), lines)


def _flat(config: Any, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(config, Mapping) and config:
        for key, value in config.items():
            yield from _flat(value, f"{name}.{key}" if name else str(key))
    else:
        yield name, str(config)


def _settings(run: Run) -> str:
    config = run.config
    versions = config.get("versions")
    facts = [(name, config.get(name, tables.ABSENT)) for name in ("experiment", "scale")]
    facts += [
        ("rows", ", ".join(run.row_names()) or tables.ABSENT),
        ("steps", run.steps or tables.ABSENT),
    ]
    facts += list(_flat(config.get("vocabulary") or tables.ABSENT, "vocabulary"))
    facts.append(("fingerprint", config.get("fingerprint", tables.ABSENT)))
    pairs = versions.items() if isinstance(versions, dict) else ()
    facts.append(("versions", ", ".join(f"{k} {v}" for k, v in pairs) or tables.ABSENT))
    text = "".join(
        f'<tr><td class="name">{escape(str(k))}</td><td class="name">{escape(str(v))}</td></tr>'
        for k, v in facts
    )
    text = f'<div class="scroll"><table>{text}</table></div>\n'
    fields = ("source", "language", "sentences", "words", "sha256")
    if run.texts:
        lines = [[_count(t.get(field, tables.ABSENT)) for field in fields] for t in run.texts]
        text += "<h3>Texts</h3>" + _grid(fields, lines, names=2)
    else:
        text += '<p class="quiet">The config names no texts.</p>'
    if nested := config.get("config"):
        text += "<details><summary>The whole config</summary>"
        text += _grid((), _flat(nested), names=2) + "</details>\n"
    return text


def _count(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _results_header(columns: Sequence[tables.Column]) -> str:
    """Two header rows: the groups, and beneath them their columns."""
    top, below = "", ""
    for group, span in groupby(columns, key=lambda column: column.group):
        titles = [column.title for column in span]
        if group:
            top += f'<th colspan="{len(titles)}" class="group">{escape(group)}</th>'
            below += "".join(f"<th>{escape(title)}</th>" for title in titles)
        else:
            top += "".join(f'<th rowspan="2">{escape(title)}</th>' for title in titles)
    first = '<th rowspan="2" class="name">ID</th><th rowspan="2" class="name">description</th>'
    last = '<th rowspan="2">candidates</th><th rowspan="2">seeds</th>'
    return f"<thead><tr>{first}{top}{last}</tr><tr>{below}</tr></thead>"


def _results(table: tables.Table) -> str:
    """The result table, the paper's lines beneath ours, and its notes."""
    body = ""
    for line in table.lines:
        cells = ""
        for column in table.columns:
            mean, sd = tables.formatted(column, line.cells.get(column.metric))
            cells += f"<td>{mean} <small>{sd}</small></td>"
        cells += f"<td>{escape(line.candidates)}</td><td>{escape(line.seeds)}</td>"
        names = (line.row, line.description.replace(";", "; ")) if line.ours else ("", line.source)
        start = "".join(f'<td class="name">{escape(name)}</td>' for name in names)
        body += f'<tr class="{"ours" if line.ours else "paper"}">{start}{cells}</tr>\n'
    notes = "".join(f"<li>{escape(note)}</li>" for note in table.notes)
    return (
        f'<div class="scroll"><table class="results">{_results_header(table.columns)}'
        f"<tbody>\n{body}</tbody></table></div>\n<ul>{notes}</ul>\n"
    )


def _all_metrics(run: Run) -> str:
    """Every metric of every row, folded away: p@5, the directions, and whatever else there is."""
    rows = [row for name in run.row_names() if (row := read_row(run, name)).metrics]
    names = dict.fromkeys(name for row in rows for name in row.metrics)
    lines = []
    for name in sorted(names):
        cells = [row.metrics.get(name) for row in rows]
        texts = [tables.ABSENT if c is None else f"{c.mean:.4g} ± {c.sd:.2g}" for c in cells]
        lines.append((name, *texts))
    if not lines:
        return '<p class="quiet">No metrics yet.</p>\n'
    grid = _grid(("metric", *(f"row {row.row}" for row in rows)), lines)
    return f"<details><summary>All metrics</summary>{grid}</details>\n"

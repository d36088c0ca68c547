"""A run's report as one HTML page that needs no other file; the template escapes everything.

A page has sections, and a section has parts: a text, a list of notes, a `Table`, a `Grid`,
`Verdicts` or `Figures`. `page.html.j2` says how each kind looks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from xling_jax.files import write_beside
from xling_jax.report import figures, table
from xling_jax.report.claims import Verdicts
from xling_jax.report.frame import Measure, Row, Run, explained
from xling_jax.report.gallery import Card
from xling_jax.report.prose import grouped, plural, written
from xling_jax.report.table import ABSENT, Table, kind_of
from xling_jax.runs.results import Record

FOLDED = 12  # replicas in training, above which their table is folded away
NO_METRICS = "No metrics yet."
NO_MATPLOTLIB = "matplotlib is not installed, so there are none."
_TEXT_FIELDS = ("source", "language", "field", "sentences", "words", "sha256")


@dataclass(frozen=True)
class Grid:
    """A plain table; the first `names` columns are text. With a summary it is folded away."""

    header: Sequence[str]
    rows: Sequence[Sequence[Any]]
    names: int = 1
    summary: str = ""
    title: str = ""
    kind: ClassVar = "grid"


@dataclass(frozen=True)
class Figures:
    """Cards with figures, under an explanation."""

    explanation: Sequence[str]
    cards: Sequence[Card]
    kind: ClassVar = "figures"

    def __bool__(self) -> bool:
        return bool(self.cards)


@cache
def _template() -> Template:
    loader = FileSystemLoader(Path(__file__).parent)
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["kind_of"] = kind_of
    return environment.get_template("page.html.j2")


def write(
    run: Run, state: str, sections: Mapping[str, Sequence[Any]], tables: Sequence[Table],
    claims: Verdicts | None = None,
) -> str:  # fmt: skip
    """Writes `report/report.html` and the files of tables and claims; returns tables and claims as
    text for the terminal.

    `state` says how far the run is. `sections` has each section's parts by its heading; empty
    parts, and sections without any part, are left out.
    """
    folder, claims = run.workdir / "report", claims or Verdicts(())
    table.write(tables, folder / "tables")
    claims.write(folder / "tables")
    drawn = {heading: list(filter(None, parts)) for heading, parts in sections.items()}
    if not figures.can_draw():
        drawn["Figures"] = [NO_MATPLOTLIB]
    text = _template().render(
        title=f"{run.experiment or 'A run'}: report",
        state=state,
        running=in_training(run),
        sections={heading: parts for heading, parts in drawn.items() if parts},
    )
    write_beside(folder / "report.html", text)
    return "\n".join(filter(None, [*map(table.to_terminal, tables), claims.to_terminal()]))


def progress(run: Run) -> str:
    """How far a run is: rows and replicas done, and the row in training."""
    planned, ended, names = run.planned, run.ended, run.row_names
    records = [record for own in run.records.values() for record in own]
    if not records and not ended:
        return "Nothing has been logged yet" + (f": 0 of {len(names)} rows done." if names else ".")
    left = {row for row, _ in planned - ended}
    done = sum(name not in left for name in names)
    text = f"{'Not finished' if left else 'Ended'}: {done} of {len(names)} rows done"
    running = [record for record in records if (record.row, record.seed) not in ended]
    if running:
        last = max(running, key=lambda record: record.step)
        total = run.steps_of(last.row)
        text += f", row {last.row} at step {last.step:,}{f' of {total:,}' if total else ''}"
    text += f"; {len(ended)} of {len(planned)} replicas have ended"
    diverged = sum(replica.diverged_at is not None for replica in run.replicas)
    text += f", {diverged} of them diverged." if diverged else "."
    is_new = running and not run.metrics.evaluations and not ended
    return text + (" Nothing has been evaluated yet." if is_new else "")


def row_notes(rows: Sequence[Row]) -> list[str]:
    """Notes on seeds that diverged or lack a number, and on rows that are still in training."""
    notes = []
    for row in rows:
        if row.diverged:
            by_step = grouped((step, seed) for seed, step in sorted(row.diverged.items()))
            where = [f"{plural('seed', seeds)} at step {step:,}" for step, seeds in by_step.items()]
            are = "are" if len(row.diverged) > 1 else "is"
            notes.append(f"Row {row.name}: {', '.join(where)} diverged and {are} in no mean.")
        of = len(row.seeds)
        lacking = [name for name, found in row.metrics.items() if (found.number or of) < of]
        if lacking:
            names = ", ".join(lacking[:3]) + ", …" * (len(lacking) > 3)
            notes.append(f"Row {row.name}: some of its {of} seeds lack a finite {names}; the mean "
                         "is of the others.")  # fmt: skip
        if row.running and row.seeds and not row.is_so_far:
            seeds = ", ".join(map(str, row.running))
            notes.append(f"Row {row.name}: still training, and not in the means: seeds {seeds}.")
    so_far = grouped((row.step, row.name) for row in rows if row.is_so_far)
    return notes + [f"{plural('Row', of)} still in training: the figures are those of step "
                    f"{step:,}." for step, of in so_far.items()]  # fmt: skip


def said(
    module: str, rows: Sequence[Row], names: Iterable[str] = (), **values: Any
) -> dict[str, list[str]]:
    """The lines of the template beside a module's file by heading, with the registry's notes on
    some metrics and the notes on rows."""
    seeds = max((len(row.seeds) for row in rows), default=0)
    found = written(module, notes=explained(names), seeds=seeds, **values)
    return found | {"Notes": [*found["Notes"], *row_notes(rows)]}


def in_training(run: Run) -> Grid | None:
    """The latest training numbers of every replica that has not ended; None if there are none."""
    last: dict[tuple[str, int], Record] = {}
    for record in run.metrics.training:
        if (record.row, record.seed) not in run.ended:
            last[record.row, record.seed] = record
    rows = []
    for record in last.values():
        values = [record.values.get(name) for name in ("epoch", "loss", "tokens_per_second")]
        texts = [ABSENT if v is None else f"{v:,.4g}" for v in values[:2]]
        texts.append(ABSENT if values[2] is None else f"{values[2]:,.0f}")
        rows.append((record.row, record.seed, f"{record.step:,}", *texts))
    summary = f"The {len(rows)} replicas in training" if len(rows) > FOLDED else ""
    header = ("row", "seed", "step", "epoch", "loss", "tokens/s")
    return Grid(header, rows, summary=summary) if rows else None


def _number(found: Measure | None) -> str:
    """A mean, with its sd over seeds if there is one."""
    if found is None:
        return ABSENT
    return f"{found.mean:.4g}" + ("" if found.sd is None else f" ± {found.sd:.2g}")


def all_metrics(run: Run) -> Grid | str:
    """Every metric of every row, p@5 and single directions included, folded away."""
    rows = [row for row in run.rows.values() if row.metrics]
    lines = []
    for name in sorted({name for row in rows for name in row.metrics}):
        lines.append((name, *(_number(row.metrics.get(name)) for row in rows)))
    header = ("metric", *(f"row {row.name}" for row in rows))
    return Grid(header, lines, summary="All metrics") if lines else NO_METRICS


def flat(config: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """The fields of nested sections, each with its whole name and its value as text."""
    if isinstance(config, Mapping) and config:
        for key, value in config.items():
            yield from flat(value, f"{name}.{key}" if name else str(key))
    else:
        yield name, str(config)


def settings(
    run: Run,
    vocabulary: Any = None,
    rows: Sequence[str] | None = None,
    without_texts: str = "",
) -> list[Any]:
    """The experiment, its texts, and the whole config folded away. `rows` are the rows to name, by
    default all; `without_texts` is shown if the config names no texts."""
    config, rows = run.config, run.row_names if rows is None else rows
    facts = [(name, str(config.get(name, ABSENT))) for name in ("experiment", "scale")]
    facts += [("rows", ", ".join(rows) or ABSENT), ("steps", _steps(run, rows))]
    facts += flat(vocabulary or ABSENT, "vocabulary")
    facts.append(("fingerprint", str(config.get("fingerprint", ABSENT))))
    for name, versions in [("versions", config.get("versions", {}))] + [
        ("later versions", later) for later in config.get("later_versions", ())
    ]:
        facts.append((name, ", ".join(f"{k} {v}" for k, v in versions.items()) or ABSENT))
    parts: list[Any] = [Grid((), facts, names=2)]
    fields = [name for name in _TEXT_FIELDS if any(name in text for text in run.texts)]
    every = ([text.get(name, ABSENT) for name in fields] for text in run.texts)
    lines = [[f"{x:,}" if isinstance(x, int) else str(x) for x in texts] for texts in every]
    if lines:
        parts.append(Grid(fields, lines, names=2, title="Texts"))
    else:
        parts.append(without_texts or "The config names no texts.")
    if nested := config.get("config"):
        parts.append(Grid((), list(flat(nested)), names=2, summary="The whole config"))
    return parts


def _steps(run: Run, rows: Sequence[str]) -> str:
    """The number of updates that most rows make, and the numbers of the other rows."""
    by_number = grouped((steps, row) for row in rows
                        if (steps := run.steps_of(row)) is not None)  # fmt: skip
    if not by_number:
        return ABSENT
    usual = max(by_number, key=lambda steps: len(by_number[steps]))
    others = [f"{n:,} ({plural('row', of)})" for n, of in by_number.items() if n != usual]
    return "; ".join([f"{usual:,}", *others])

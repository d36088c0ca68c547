"""The result tables, laid out as those of D&S: our line, and beneath it the paper's.

A run has each of the paper's tables of which it trained a row, the search of C.3, and one more for
whatever else it trained.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from xling_jax.experiments.fake_english import claims, published, report_notes, report_search
from xling_jax.files import write_beside
from xling_jax.report import printed, verdicts
from xling_jax.report.cells import ABSENT, DEEP, OURS, Cell, Column, Line, Table, diverged_at
from xling_jax.report.rows import Row, Run, deep_layer, read_run

_SEARCH = published.LAYOUTS[-1]
_OTHERS = published.Layout("Other rows", "", (), ())
_WHOLE = published.Layout("Results", "", (), ())


def build(run: Run) -> list[Table]:
    """The tables of a run, finished or not; a row that no table has is among "Other rows"."""
    trained = run.row_names()
    if run.experiment != published.EXPERIMENT:
        return [_table(run, _WHOLE, trained)] if trained else []
    rest = [name for name in trained if name not in published.ORDER]
    tried = [name for name in rest if report_search.is_trial(name, run.description(name))]
    tables = []
    for layout in published.LAYOUTS:
        more = tried if layout is _SEARCH else []
        names = [name for name in trained if name in layout.rows] + more
        if set(names) & {*layout.own, *more}:
            names = _by_value(run, names) if layout is _SEARCH else names
            tables.append(_table(run, layout, names))
    others = [name for name in rest if name not in tried]
    return [*tables, _table(run, _OTHERS, others)] if others else tables


def whole(run: Run) -> Table:
    """Every row of a run once, and beneath it the lines of every table that prints it."""
    return _table(run, _WHOLE, run.row_names())


def _by_value(run: Run, names: Sequence[str]) -> list[str]:
    """The rows of the search: the original, then learning rates, then epochs, ascending."""
    sets = [trial.row.row for trials in report_search.series(run).values() for trial in trials]
    others = [name for name in names if not report_search.is_trial(name, run.description(name))]
    return list(dict.fromkeys([*others, *(name for name in sets if name in names), *names]))


def _table(run: Run, layout: published.Layout, names: Sequence[str]) -> Table:
    rows = [run.row(name) for name in names]
    best = report_search.best(run) if layout in (_SEARCH, _WHOLE) else {}
    lines = []
    for row in rows:
        lines.append(_marked(our_line(run, row), best.get(row.row, ())))
        lines += [_paper_line(line) for line in _printed(run, layout, row.row)]
    columns = _columns(report_notes.layers(lines), run.layers)
    return Table(
        layout.name,
        layout.title,
        layout.caption,
        columns,
        lines,
        report_notes.about(run, rows, lines),
    )


def _printed(run: Run, layout: published.Layout, row: str) -> list[published.PaperRow]:
    """The paper's lines that belong beneath ours: the table's own, or every one of the whole."""
    if run.experiment != published.EXPERIMENT:
        return []
    layouts = published.LAYOUTS if layout is _WHOLE else (layout,)
    return [line for layout in layouts if (line := layout.find(row))]


def _columns(layers: Sequence[int], depth: int | None) -> list[Column]:
    deep = f"layer {' or '.join(map(str, layers))}" if layers else "deeper layer"
    deep += f" of {depth}" if layers and depth else ""
    columns = [Column("", "mu", "mu", "mu")]
    for group, layer in (("layer 0", "0"), (deep, DEEP)):
        columns.append(Column(group, "align. F1", "F1", f"alignment_f1_{layer}"))
        columns.append(Column(group, "retrieval", "retr.", f"retrieval_{layer}"))
        columns.append(Column(group, "translation", "transl.", f"translation_{layer}"))
    columns.append(Column("perplexity", "train", "train", "perplexity_train"))
    columns.append(Column("perplexity", "dev", "dev", "perplexity_dev"))
    return columns


def _generic(names: Iterable[str], layer: int | None) -> dict[str, str]:
    """Metric names by their name with `deep` in place of the deeper layer's number."""
    ending = f"_{layer}"
    return {n.removesuffix(ending) + f"_{DEEP}" if n.endswith(ending) else n: n for n in names}


def our_line(run: Run, row: Row) -> Line:
    """A row of a run as a line of a table."""
    layer = deep_layer(row.metrics)
    cells = {}
    for key, name in _generic(row.metrics, layer).items():
        value = row.metrics[name]
        cells[key] = Cell(value.mean, value.sd if value.number > 1 else None)
    candidates = row.metrics.get("retrieval_candidates")
    seen = {*row.seeds, *row.running, *row.diverged}
    seeds = str(len(seen)) if len(row.seeds) == len(seen) else f"{len(row.seeds)}/{len(seen)}"
    shown = f"{candidates.mean:.0f}" if candidates else ABSENT
    message = "" if row.metrics else _message(row)
    return Line(
        OURS, row.row, row.description, cells, layer, shown, seeds,
        message=message, diverged=row.diverged,
    )  # fmt: skip


def _message(row: Row) -> str:
    """Why a row has no numbers."""
    if row.running:
        return "not evaluated yet"
    return diverged_at(row.diverged) if row.diverged else "not begun"


def _marked(line: Line, best: Iterable[str]) -> Line:
    cells = {name: cell._replace(best=name in best) for name, cell in line.cells.items()}
    return replace(line, cells=cells)


def _paper_line(paper: published.PaperRow) -> Line:
    layer = published.DEEP_LAYER
    cells = {key: Cell(*paper.metrics[n]) for key, n in _generic(paper.metrics, layer).items()}
    seeds = str(len(published.SEEDS)) if paper.metrics["retrieval_0"].sd is not None else ABSENT
    shown = str(published.CANDIDATES)
    return Line(
        published.SOURCE,
        paper.row,
        paper.description,
        cells,
        layer,
        shown,
        seeds,
        table=paper.table,
    )


def terminal(workdir: Path) -> str:
    """The tables of a workdir, their notes and what became of the claims, for the terminal."""
    run = read_run(workdir, published.ORDER)
    decided = verdicts.to_terminal(claims.of(run), printed.WIDTH)
    return printed.to_terminal(build(run), whole(run).notes, decided)


def write(run: Run, folder: Path) -> None:
    """Writes every table as Markdown, CSV and LaTeX, and `results.csv`, the whole in one."""
    for table in build(run):
        write_beside(folder / f"{table.name}.md", printed.to_markdown(table))
        write_beside(folder / f"{table.name}.csv", printed.to_csv(table))
        write_beside(folder / f"{table.name}.tex", printed.to_latex(table))
    write_beside(folder / "results.csv", printed.to_csv(whole(run)))

"""The tables of a run of `similarity`: a summary, and what was measured of each layer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from xling_jax.experiments.similarity.report_pairs import Pair, best
from xling_jax.report.cells import OURS, Cell, Column, Line, Table, share, whole

WITH_MAP, WITHOUT_MAP = "with a map", "without a map"
_CUTOFFS = (1, 5, 10)


def _layer(value: float) -> str:
    return f"L{value:.0f}"


def _line(pair: Pair, description: str, values: Mapping[str, float], is_measured: bool) -> Line:
    cells = {name: Cell(value) for name, value in values.items()}
    message = "" if is_measured else pair.message
    return Line(OURS, pair.row, description, cells, None, "", "", message=message)


def _columns(columns: Iterable[Column], lines: Sequence[Line]) -> list[Column]:
    """Those that any line has a number for; all of them while none has."""
    found = list(columns)
    names = {name for line in lines for name in line.cells}
    return [column for column in found if column.metric in names] if names else found


def summary(pairs: Sequence[Pair], notes: Sequence[str]) -> Table:
    """A line a row: mean CKA, the best layers' retrieval and translation, and the correlation."""
    lines = []
    for pair in pairs:
        values = _summarised(pair)
        lines.append(_line(pair, pair.description, values, bool(values)))
    depths = {max(layers) for pair in pairs if (layers := pair.layers("cka"))}
    last = f"L{depths.pop()}" if len(depths) == 1 else "last"
    columns = [
        Column("", "CKA, mean", "CKA", "cka", share),
        Column("", "CKA, L0", "L0", "cka_0", share),
        Column("", f"CKA, {last}", last, "cka_last", share),
    ]
    for title, short, name in (
        ("sentences", "sentences", "sentences"),
        ("without a map", "no map", "unmapped"),
    ):
        columns.append(Column("", title, short, f"{name}_best", share))
        columns.append(Column("", "at", "at", f"{name}_best_layer", _layer))
    columns += [
        Column("", "words", "words", "words_p1", share),
        Column("", "static", "static", "static_p1", share),
        Column("", "in context", "context", "context_best", share),
        Column("", "at", "at", "context_best_layer", _layer),
        Column("", "Pearson", "Pearson", "pearson", share),
    ]
    caption = "means and best layers"
    return Table("similarity", "Pairs of models", caption, _columns(columns, lines), lines, notes)


def _summarised(pair: Pair) -> dict[str, float]:
    names = ("cka", "cka_0", "words_p1", "static_p1", "pearson")
    values = {name: pair.metrics[name] for name in names if name in pair.metrics}
    if layers := pair.layers("cka"):
        values["cka_last"] = layers[max(layers)]
    for name, end in (("sentences", ""), ("unmapped", ""), ("context", "_p1")):
        if highest := best(pair.layers(name, end)):
            values[f"{name}_best_layer"], values[f"{name}_best"] = highest
    return values


def _layer_columns(lines: Sequence[Line]) -> list[Column]:
    names = {name for line in lines for name in line.cells if name.startswith("L")}
    ordered = sorted(names, key=lambda name: int(name[1:]))
    return [Column("", name, name, name, share) for name in ordered]


def _by_layer(pair: Pair, description: str, start: str, end: str = "") -> Line:
    values = pair.layers(start, end)
    cells = {f"L{layer}": value for layer, value in values.items()}
    return _line(pair, description, cells, bool(values))


def cka(pairs: Sequence[Pair]) -> Table:
    """CKA of each layer and their mean, a line a row (W&C Figure 7)."""
    lines = []
    for pair in pairs:
        line = _by_layer(pair, pair.description, "cka")
        if "cka" in pair.metrics:
            line = _line(pair, pair.description, _with_mean(line, pair.metrics["cka"]), True)
        lines.append(line)
    columns = [*_layer_columns(lines), Column("", "mean", "mean", "mean", share)]
    return Table("cka", "CKA", "by layer", columns, lines, ())


def _with_mean(line: Line, mean: float) -> dict[str, float]:
    return {name: cell.mean for name, cell in line.cells.items()} | {"mean": mean}


def _measures(pairs: Sequence[Pair], measures: Sequence[tuple[str, str, str]]) -> list[Line]:
    """A line for each measure that a pair has, given as (title, start, end); one without any."""
    lines = []
    for pair in pairs:
        own = [_by_layer(pair, *measure) for measure in measures]
        own = [line for line in own if line.cells]
        lines += own or [_line(pair, pair.description, {}, False)]
    return lines


def sentences(pairs: Sequence[Pair]) -> Table:
    """Sentence retrieval of each layer, with and without a map (W&C Figure 6)."""
    measures = [(WITH_MAP, "sentences", ""), (WITHOUT_MAP, "unmapped", "")]
    lines = _measures(pairs, measures)
    caption = "P@1 by layer, mean of both directions"
    return Table("sentences", "Sentence retrieval", caption, _layer_columns(lines), lines, ())


def words(pairs: Sequence[Pair]) -> Table:
    """Translation of single-piece words by embeddings and static vectors (W&C Figure 4a)."""
    columns = []
    for name, title in (("words", "embeddings"), ("static", "static")):
        columns += [Column("", f"{title}, P@{k}", f"{title} P@{k}", f"{name}_p{k}", share)
                    for k in _CUTOFFS]  # fmt: skip
        columns += [Column("", f"{title}, {way}", f"{title} {way}", f"{name}_{way}_p1", share)
                    for way in ("forward", "backward")]  # fmt: skip
    columns += [
        Column("", "words in the dictionary", "in dictionary", "words_words", whole),
        Column("", "tested words", "tested", "words_covered", whole),
        Column("", "first candidates", "first", "words_first", whole),
        Column("", "second candidates", "second", "words_second", whole),
    ]
    lines = []
    for pair in pairs:
        values = {c.metric: pair.metrics[c.metric] for c in columns if c.metric in pair.metrics}
        lines.append(_line(pair, pair.description, values, bool(values)))
    caption = "words that are one piece"
    return Table("words", "Word translation", caption, _columns(columns, lines), lines, ())


def context(pairs: Sequence[Pair]) -> Table:
    """Translation of words by their mean states of each layer (W&C Figure 4b)."""
    lines = _measures(pairs, [(f"P@{k}", "context", f"_p{k}") for k in _CUTOFFS])
    caption = "words in context, by layer"
    return Table("words_by_layer", "Word translation", caption, _layer_columns(lines), lines, ())


def has_numbers(table: Table) -> bool:
    """Whether anything in it was measured."""
    return any(line.cells for line in table.lines)

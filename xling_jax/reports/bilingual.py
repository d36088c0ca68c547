"""The table of a bilingual run: rows, held-out perplexity, translations found, anchors."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from xling_jax.files import write_beside
from xling_jax.reports import results
from xling_jax.reports.results import Replica

Column = tuple[str, Callable[[float], str]]


def _share(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def _columns(replicas: Sequence[Replica]) -> dict[str, Column]:
    """Metrics that any replica has, with their titles, in the order of the table."""
    names = dict.fromkeys(name for replica in replicas for name in replica.metrics)
    found: dict[str, Column] = {}
    for name in names:
        if name.startswith("perplexity_dev_"):
            found[name] = (f"ppl {name.removeprefix('perplexity_dev_')}", lambda x: f"{x:.4g}")
    for name, title in (("retrieval", "sentences"), ("words", "words")):
        if name in names:
            found[name] = (title, _share)
    found["anchors"] = ("anchors", lambda x: f"{x:.0f}")
    found["anchor_tokens"] = ("their tokens", _share)
    return found


def _cell(values: Sequence[float], shown: Callable[[float], str]) -> str:
    if not values:
        return "-"
    text = shown(float(np.mean(values)))
    return f"{text}±{shown(float(np.std(values)))}" if len(values) > 1 else text


def table(replicas: Sequence[Replica]) -> list[list[str]]:
    """A line of titles, and one for each row: means over seeds, with their sd if there are some."""
    columns = _columns(replicas)
    lines = [["row", "what", *(title for title, _ in columns.values()), "seeds"]]
    for name in dict.fromkeys(replica.row for replica in replicas):
        own = [replica for replica in replicas if replica.row == name]
        alive = [replica for replica in own if replica.diverged_at is None]
        cells = [
            _cell([r.metrics[metric] for r in alive if metric in r.metrics], shown)
            for metric, (_, shown) in columns.items()
        ]
        diverged = f" ({len(own) - len(alive)} diverged)" if len(alive) < len(own) else ""
        lines.append([name, own[0].description, *cells, f"{len(own)}{diverged}"])
    return lines


def write(workdir: Path) -> str:
    """Writes `report/tables/table1.md` and `.csv`; returns the table for a terminal."""
    lines = table(results.read_results(workdir / "results.json"))
    folder = workdir / "report" / "tables"
    marks = [":---"] * 2 + ["---:"] * (len(lines[0]) - 2)
    markdown = ["| " + " | ".join(cells) + " |" for cells in [lines[0], marks, *lines[1:]]]
    write_beside(folder / "table1.md", "\n".join(markdown) + "\n")
    quoted = [[f'"{cell}"' if "," in cell else cell for cell in cells] for cells in lines]
    write_beside(folder / "table1.csv", "\n".join(map(",".join, quoted)) + "\n")
    widths = [max(len(cells[k]) for cells in lines) for k in range(len(lines[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if k < 2 else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ).rstrip()
        for cells in lines
    )

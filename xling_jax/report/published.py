"""The papers' tables, each a CSV file beside the experiment that reproduces it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from xling_jax.report.frame import Measure


@dataclass(frozen=True)
class Printed:
    """One line of a table; `table` is its number in the paper."""

    row: str
    description: str
    table: int
    metrics: Mapping[str, Measure]


def read(path: Path) -> tuple[Printed, ...]:
    """The lines of a file with the columns row, description, table and, for each metric, its name
    and perhaps `NAME_sd`; an sd is over as many seeds as the column `seeds` says.
    """
    frame = pd.read_csv(path, dtype={"row": str, "description": str})
    names = [name for name in frame.columns[3:] if name != "seeds" and not name.endswith("_sd")]
    found = []
    for line in frame.to_dict("records"):
        present = {name: value for name, value in line.items() if not pd.isna(value)}
        seeds = int(present["seeds"]) if "seeds" in present else None
        metrics = {
            name: Measure(present[name], present.get(f"{name}_sd"), seeds)
            for name in names
            if name in present
        }
        found.append(Printed(line["row"], line["description"], line["table"], metrics))
    return tuple(found)

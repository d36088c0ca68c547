"""Which replicas a Fake-English experiment has, and which of them share a program."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import ml_collections

from xling_jax.batches import setting


@dataclasses.dataclass(frozen=True)
class Cell:
    """A row of the table and a seed: what becomes a replica."""

    row: str
    description: str
    seed: int
    modifications: setting.Modifications


def cells(config: ml_collections.ConfigDict) -> list[Cell]:
    """The replicas that the config asks for.

    `config.row` names rows of `config.rows` joined by `+`, or is itself a description.

    Raises:
      ValueError: an unknown row or modification.
    """
    languages = config.corpora.languages
    wanted = []
    for row in config.row.split("+"):
        if row not in config.rows and row not in setting.MODIFICATIONS and ";" not in row:
            raise ValueError(
                f"row={row!r} is unknown: choose from {', '.join(config.rows)}, or give "
                f"modifications joined by ';' ({', '.join(setting.MODIFICATIONS)})"
            )
        description = config.rows.get(row, row)
        modifications = setting.parse(description, languages)
        wanted += [Cell(row, description, seed, modifications) for seed in config.seeds]
    if len({(cell.row, cell.seed) for cell in wanted}) < len(wanted):
        raise ValueError(f"row={config.row}, seeds={tuple(config.seeds)}: something is named twice")
    return wanted


def deal(wanted: Sequence[Cell], side_by_side: int) -> list[list[list[Any]]]:
    """Deals replicas out to programs: [[row, seed], …] for each.

    Replicas of one program have the same model size, and are either trained or not.
    """
    kinds: dict[tuple[bool, bool], list[Cell]] = {}
    for cell in wanted:
        kind = ("overparam" in cell.modifications, "untrained" in cell.modifications)
        kinds.setdefault(kind, []).append(cell)
    return [
        [[cell.row, cell.seed] for cell in alike[start : start + side_by_side]]
        for alike in kinds.values()
        for start in range(0, len(alike), side_by_side)
    ]

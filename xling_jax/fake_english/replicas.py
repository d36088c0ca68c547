"""Which replicas a Fake-English experiment has, and which of them share a program."""

import dataclasses
import itertools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import ml_collections

from xling_jax.batches import setting

Groups = list[list[list[Any]]]  # for each program [[row, seed], …]


@dataclasses.dataclass(frozen=True)
class Cell:
    """A row of the table and a seed: what becomes a replica."""

    row: str
    description: str
    seed: int
    modifications: setting.Modifications


def cells(config: ml_collections.ConfigDict) -> list[Cell]:
    """The replicas that the config asks for.

    `config.row` names rows of `config.rows`, or sets of rows of `config.sets`, joined by `+`; or
    it is itself a description.

    Raises:
      ValueError: an unknown row or modification.
    """
    languages = config.corpora.languages
    wrong = [seed for seed in config.seeds if not 0 <= seed < 2**32]
    if wrong or not config.seeds:
        raise ValueError(f"seeds={tuple(config.seeds)}: choose numbers from 0 to 2^32 - 1")
    wanted = []
    named = [config.sets.get(name, (name,)) for name in config.row.split("+")]
    for row in itertools.chain(*named):
        description = config.rows.get(row, row)
        try:
            modifications = setting.parse(description, languages)
        except ValueError as error:
            raise ValueError(
                f"row={row!r}: {error}; or a row: {', '.join(config.rows)}; or a set of rows: "
                f"{', '.join(config.sets)}"
            ) from error
        wanted += [Cell(row, description, seed, modifications) for seed in config.seeds]
    names = [f"row {cell.row} seed {cell.seed}" for cell in wanted]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(
            f"row={config.row}, seeds={tuple(config.seeds)}: {', '.join(twice)} named twice"
        )
    return wanted


def deal(
    wanted: Sequence[Cell],
    kind: Callable[[Cell], Hashable],
    at_most: Callable[[Sequence[Cell]], int],
    side_by_side: Callable[[int, int], int],
) -> Groups:
    """Deals replicas out to programs.

    Args:
      wanted: the replicas.
      kind: what replicas of one program have in common.
      at_most: how many of some replicas of one kind can be trained at once.
      side_by_side: of (so many replicas, so many at most), how many to train at once.
    """
    kinds: dict[Hashable, list[Cell]] = {}
    for cell in wanted:
        kinds.setdefault(kind(cell), []).append(cell)
    groups: Groups = []
    for alike in kinds.values():
        limit = at_most(alike)
        while alike:
            taken = side_by_side(len(alike), limit)
            groups.append([[cell.row, cell.seed] for cell in alike[:taken]])
            alike = alike[taken:]
    return groups

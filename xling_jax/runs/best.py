"""Which state of a replica is the best so far, written down beside what is kept of it."""

import dataclasses
import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import AliasChoices, Field, TypeAdapter

from xling_jax import processes, records
from xling_jax.files import read_json, write_beside
from xling_jax.records import UNKNOWN, Count, Identity

RECORD = "best.json"


@dataclasses.dataclass(frozen=True)
class Record:
    """The step of the best state, and its value, of which less is better.

    vocabulary: a hash of its pieces and their ids. heads: the model's, which its parameters do not
    tell; 0 in older runs.
    """

    step: Count
    value: Annotated[float, Field(validation_alias=AliasChoices("value", "perplexity_dev"))]
    vocabulary: str = ""
    heads: Count = 0
    fingerprint: str = ""

    def write(self, folder: Path) -> None:
        """Says that what is in the folder is whole."""
        content = json.dumps(records.sealed(dataclasses.asdict(self)))
        write_beside(folder / RECORD, content + "\n")


_RECORD = TypeAdapter(Record)


def read(folder: Path, identity: Identity = UNKNOWN) -> Record | None:
    """The record of a folder, None without one; ValueError if it is damaged, or of another
    experiment."""
    path = folder / RECORD
    if not os.path.lexists(path):
        return None
    return records.known(_RECORD, read_json(path), str(path), identity)


def are_better(
    folders: Sequence[Path], values: Sequence[float], step: int, identity: Identity = UNKNOWN
) -> list[bool]:
    """Whether the states of a step, with these values, are better than all before in their folders.

    A step that was offered before a run was cut off, and comes again, changes nothing.
    """

    def one(folder: Path, value: float) -> bool:
        known = read(folder, identity)
        return math.isfinite(value) and (known is None or value < known.value or step < known.step)

    return processes.of_first(lambda: list(map(one, folders, values)))

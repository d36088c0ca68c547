"""The best state of a replica so far: a record beside its stored parameters."""

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
    """The step of the best state, and its value; lower is better.

    Attributes:
      vocabulary: a hash of the pieces and their ids.
      heads: the model's attention heads, which its parameters do not tell; 0 in older runs.
    """

    step: Count
    value: Annotated[float, Field(validation_alias=AliasChoices("value", "perplexity_dev"))]
    vocabulary: str = ""
    heads: Count = 0
    fingerprint: str = ""

    def write(self, folder: Path) -> None:
        """Writes the record, whose presence says that the folder is complete."""
        content = json.dumps(records.sealed(dataclasses.asdict(self)))
        write_beside(folder / RECORD, content + "\n")


_RECORD = TypeAdapter(Record)


def discard(folder: Path) -> None:
    """Removes the record of a folder, before another state takes the place of its own."""
    (folder / RECORD).unlink(missing_ok=True)


def read(folder: Path, identity: Identity = UNKNOWN) -> Record | None:
    """The record of a folder, None if it has none; ValueError if it is damaged or of another
    experiment."""
    path = folder / RECORD
    if not os.path.lexists(path):
        return None
    return records.known(_RECORD, read_json(path), str(path), identity)


def are_better(
    folders: Sequence[Path], values: Sequence[float], step: int, identity: Identity = UNKNOWN
) -> list[bool]:
    """Whether the states of a step, with these values, are better than all earlier ones in their
    folders. A value that is not finite never is.

    A run that was cut off may repeat steps, and where arithmetic is not the same, with other
    numbers: a record of the same or a later step gives way to the repeated ones.
    """

    def one(folder: Path, value: float) -> bool:
        known = read(folder, identity)
        return math.isfinite(value) and (known is None or value < known.value or step <= known.step)

    return processes.of_first(lambda: list(map(one, folders, values)))

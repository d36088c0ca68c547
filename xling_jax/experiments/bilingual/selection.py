"""The checkpoint that is best on the first language's held-out text (W&C §3.1), and runs that
begin with the parameters of one."""

import dataclasses
import json
import math
import os
from collections.abc import Sequence
from pathlib import Path

import jax
from pydantic import TypeAdapter

from xling_jax import devices, processes, records
from xling_jax.files import read_json, write_beside
from xling_jax.models import partition
from xling_jax.records import UNKNOWN, Count, Identity
from xling_jax.training.checkpoints import Checkpoints, read_parameters
from xling_jax.training.step import State

RECORD = "best.json"


@dataclasses.dataclass(frozen=True)
class _Record:
    """Which checkpoint is the best one."""

    step: Count
    perplexity_dev: float
    vocabulary: str
    fingerprint: str = ""


_RECORD = TypeAdapter(_Record)


class Best:
    """Keeps each replica's state at its lowest held-out perplexity, apart from the latest."""

    def __init__(
        self,
        folder: Path,
        replicas: Sequence[tuple[str, int]],
        vocabulary: str,
        identity: Identity = UNKNOWN,
    ):
        """Opens the folder, with one named by the seed for each replica (a row and a seed) in it;
        `vocabulary` is a hash of the pieces and their ids."""
        self._vocabulary, self._identity = vocabulary, identity
        self._folders = [folder / f"seed{seed}" for _, seed in replicas]
        self._checkpoints = [
            Checkpoints(own, 1, identity, [replica])
            for own, replica in zip(self._folders, replicas, strict=True)
        ]

    def offer(self, step: int, state: State, perplexities: list[float]) -> None:
        """Saves the states of the replicas that have never been better.

        A step that was offered before a run was cut off, and comes again, changes nothing.
        """
        near: State | None = None
        for number, (folder, checkpoints, value, best) in enumerate(
            zip(self._folders, self._checkpoints, perplexities, self.read(), strict=True)
        ):
            if not math.isfinite(value) or best and not value < best[1] and best[0] <= step:
                continue
            checkpoints.drop_later(step)  # of a run that was put back to an earlier checkpoint
            near = devices.fetch(state) if near is None else near
            own = jax.tree.map(lambda x, n=number: x[n], near)
            checkpoints.save(step, own)
            checkpoints.wait()
            record = _Record(step, value, self._vocabulary, self._identity.fingerprint)
            content = json.dumps(records.sealed(dataclasses.asdict(record)))
            write_beside(folder / RECORD, content + "\n")

    def read(self) -> list:
        """The step and perplexity of each replica's best, None without one."""
        return processes.of_first(lambda: [read(own, self._identity) for own in self._folders])

    def parameters(self) -> list:
        """The parameters of each replica's best checkpoint, None where it has none."""
        return [
            read_parameters(folder, best[0]) if best else None
            for folder, best in zip(self._folders, self.read(), strict=True)
        ]

    def close(self) -> None:
        for checkpoints in self._checkpoints:
            checkpoints.close()


def _record(folder: Path, identity: Identity = UNKNOWN) -> _Record:
    path = folder / RECORD
    return records.known(_RECORD, read_json(path), str(path), identity)


def read(folder: Path, identity: Identity = UNKNOWN) -> tuple[int, float] | None:
    """The step and the perplexity of a replica's best checkpoint, None without one; ValueError if
    its record is damaged, or of another experiment."""
    if not os.path.lexists(folder / RECORD):
        return None
    record = _record(folder, identity)
    return record.step, record.perplexity_dev


def best_folder(folder: str) -> Path:
    """The folder of a best checkpoint; FileNotFoundError if there is none."""
    path = Path(folder).expanduser()
    if not (path / RECORD).exists():
        raise FileNotFoundError(
            f"training.start_from={folder}: there is no {RECORD}. Name a folder of a best "
            "checkpoint, such as WORKDIR/checkpoints/rowdefault_seeds0/best/seed0"
        )
    return path


def start_from(folder: str, vocabulary: str, patterns: Sequence[str], languages: int, like):
    """The parameters of another run's best checkpoint, under this run's partition.

    What is separate now and was shared there starts from the shared values (see
    `partition.convert`).

    Args:
      folder: such as WORKDIR/checkpoints/rowdefault_seeds0/best/seed0.
      vocabulary, patterns, languages, like: of this run: the hash of its pieces and their ids, its
        partition, the number of its languages, its initial parameters.

    Raises:
      FileNotFoundError: there is no such checkpoint.
      ValueError: it is of other pieces, another model, or damaged.
    """
    path = best_folder(folder)
    record = _record(path)
    if record.vocabulary != vocabulary:
        raise ValueError(
            f"training.start_from={folder}: that run has other pieces; give this one the same "
            "text, vocabulary and languages"
        )
    params = partition.convert(read_parameters(path, record.step), patterns, languages)
    shapes = [jax.tree.map(lambda x: x.shape, tree) for tree in (params, like)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"training.start_from={folder}: that model is of another size")
    return params

"""The checkpoint that is best on the first language's held-out text (W&C §3.1), and runs that
begin with the parameters of one."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import jax
import numpy as np

from xling_jax import devices, processes
from xling_jax.models import partition
from xling_jax.records import UNKNOWN, Identity
from xling_jax.runs import best
from xling_jax.runs.best import RECORD, Record
from xling_jax.training.checkpoints import Checkpoints, read_parameters
from xling_jax.training.step import State


class Best:
    """Keeps each replica's state at its lowest held-out perplexity, apart from the latest."""

    def __init__(
        self,
        folder: Path,
        replicas: Sequence[tuple[str, int]],
        vocabulary: str,
        heads: int,
        identity: Identity = UNKNOWN,
    ):
        """Opens the folder and, in it, one named `seed…` for each replica (a row and a seed);
        `vocabulary` is a hash of the pieces and their ids, `heads` the model's number of heads."""
        self._vocabulary, self._heads, self._identity = vocabulary, heads, identity
        self._folders = [folder / f"seed{seed}" for _, seed in replicas]
        self._checkpoints = [
            Checkpoints(own, 1, identity, [replica])
            for own, replica in zip(self._folders, replicas, strict=True)
        ]

    def offer(self, step: int, state: State, perplexities: list[float]) -> None:
        """Saves the states of the replicas whose perplexity is their lowest so far."""
        near: State | None = None
        are_better = best.are_better(self._folders, perplexities, step, self._identity)
        for number in np.flatnonzero(are_better):
            folder, checkpoints = self._folders[number], self._checkpoints[number]
            processes.by_all(partial(best.discard, folder) if processes.is_first() else None)
            checkpoints.drop_later(step - 1)  # of a run that was put back, and repeats this step
            near = devices.fetch(state) if near is None else near
            own = jax.tree.map(lambda x, n=number: x[n], near)
            checkpoints.save(step, own)
            checkpoints.wait()
            fingerprint = self._identity.fingerprint
            record = Record(step, perplexities[number], self._vocabulary, self._heads, fingerprint)
            record.write(folder)

    def read(self) -> list:
        """The step and perplexity of each replica's best, None without one."""

        def one(folder: Path) -> tuple[int, float] | None:
            found = best.read(folder, self._identity)
            return (found.step, found.value) if found else None

        return processes.of_first(lambda: [one(folder) for folder in self._folders])

    def parameters(self) -> list:
        """The parameters of each replica's best checkpoint, None where it has none."""
        return [
            read_parameters(folder, known[0]) if known else None
            for folder, known in zip(self._folders, self.read(), strict=True)
        ]

    def close(self) -> None:
        for checkpoints in self._checkpoints:
            checkpoints.close()


def best_folder(folder: str) -> Path:
    """The folder of a best checkpoint; FileNotFoundError if there is none."""
    path = Path(folder).expanduser()
    if not (path / RECORD).exists():
        raise FileNotFoundError(
            f"training.start_from={folder}: there is no {RECORD}. Name a folder of a best "
            "checkpoint, such as WORKDIR/checkpoints/rowdefault_seeds0/best/seed0"
        )
    return path


def start_from(
    folder: str, vocabulary: str, patterns: Sequence[str], languages: int, heads: int, like
):
    """The parameters of another run's best checkpoint, under this run's partition: what is separate
    now and was shared there starts from the shared values (see `partition.convert`).

    Args:
      folder: of the other run's checkpoint.
      vocabulary: the hash of this run's pieces and their ids.
      patterns: this run's partition.
      languages, heads: their numbers in this run.
      like: this run's initial parameters.

    Raises:
      FileNotFoundError: there is no such checkpoint.
      ValueError: it has other pieces, is of another model, or is damaged.
    """
    path = best_folder(folder)
    record = best.read(path)
    assert record is not None
    if record.vocabulary != vocabulary:
        raise ValueError(
            f"training.start_from={folder}: that run has other pieces; give this one the same "
            "text, vocabulary and languages"
        )
    params = partition.convert(read_parameters(path, record.step), patterns, languages)
    shapes = [jax.tree.map(lambda x: x.shape, tree) for tree in (params, like)]
    if record.heads not in (0, heads):
        raise ValueError(
            f"training.start_from={folder}: that model has {record.heads} heads, not {heads}: set "
            f"models.heads={record.heads}"
        )
    if shapes[0] != shapes[1]:
        raise ValueError(f"training.start_from={folder}: that model is of another size")
    return params

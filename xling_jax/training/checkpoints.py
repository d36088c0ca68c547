"""Checkpoints of everything that training changes; the only module that uses Orbax."""

import dataclasses
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp
from pydantic import TypeAdapter

from xling_jax import processes, records
from xling_jax.files import read_json, sha256, write_beside
from xling_jax.records import UNKNOWN, Count, Identity
from xling_jax.training.metrics import finite
from xling_jax.training.step import State

KEPT = 2  # newest checkpoints
# Seconds of wall-clock time that a save may take: the machine may be suspended during one.
LONGEST_SAVE = 7 * 24 * 60 * 60
RECORD = "record.json"  # in the folder of each checkpoint
STATE = "default"  # beside it, Orbax's folder of the state
_MANIFEST = "manifest.ocdbt"  # in that folder; without it the state cannot be read
_UNFINISHED = ".orbax-checkpoint-tmp"  # follows the step in the name of an unfinished folder


@dataclasses.dataclass(frozen=True)
class _Record:
    """What `RECORD` says about a checkpoint.

    Attributes:
      replicas: row and seed of each.
      files: the hash of each file of the state.
      evaluations: the steps at which the replicas were evaluated, and the metrics of each replica;
        null stands for numbers that were not finite.
    """

    fingerprint: str
    replicas: list[tuple[str, Count]]
    files: dict[str, str]
    evaluations: list[tuple[Count, list[dict[str, float | None]]]] = dataclasses.field(
        default_factory=list
    )


_RECORD = TypeAdapter(_Record)


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """The metrics of each replica after a step."""

    step: int
    metrics: list[dict[str, float]]


def _hashes(folder: Path) -> dict[str, str]:
    every = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): sha256(path) for path in every}


def _require_unchanged(folder: Path) -> _Record | None:
    """A checkpoint's record (older ones have none); ValueError if it or a file of the state is not
    as it was written."""
    path = folder / RECORD
    if not path.exists():
        return None
    content = read_json(path)
    records.require_unchanged(content, str(path))
    record = records.typed(_RECORD, content, str(path))
    hashes = _hashes(folder / STATE)
    for name, digest in record.files.items():
        if hashes.get(name) != digest:
            raise ValueError(f"{STATE}/{name} is not what was written")
    return record


class Checkpoints:
    """The checkpoints of a group of replicas, by step.

    A checkpoint is written in the background under another name, with a hash of each file, and
    renamed when it is complete: an incomplete one is never read as a checkpoint.
    """

    def __init__(
        self,
        folder: Path,
        kept: int = KEPT,
        identity: Identity = UNKNOWN,
        replicas: Sequence[tuple[str, int]] = (),
    ):
        """Opens or makes the folder, and removes checkpoints that a killed run left unfinished.

        Args:
          kept: how many of the newest checkpoints are kept.
          identity: of the experiment; stored, and compared when a checkpoint is restored.
          replicas: row and seed of each; stored and compared likewise.
        """
        self._folder = folder.resolve()
        self._folder.mkdir(parents=True, exist_ok=True)
        self._identity, self._replicas = identity, list(replicas)
        self._evaluations: list[Any] = []  # for the record of the save that is under way
        self._manager = ocp.CheckpointManager(
            self._folder,
            options=ocp.CheckpointManagerOptions(
                max_to_keep=kept,
                cleanup_tmp_directories=True,
                single_host_load_and_broadcast=True,
                async_options=ocp.options.AsyncOptions(
                    timeout_secs=LONGEST_SAVE, post_finalization_callback=self._seal
                ),
            ),
        )

    def _seal(self) -> None:
        """Writes the record of the checkpoint whose state is written but not yet renamed.

        ValueError if Orbax did not put the processes' parts together, which it only logs.
        """
        for folder in self._folder.glob(f"*{_UNFINISHED}"):
            if not (folder / STATE / _MANIFEST).exists():
                raise ValueError(f"{folder / STATE}: Orbax did not write {_MANIFEST}")
            record: dict[str, Any] = {
                "fingerprint": self._identity.fingerprint,
                "replicas": self._replicas,
                "files": _hashes(folder / STATE),
                "evaluations": self._evaluations,
            }
            write_beside(folder / RECORD, json.dumps(records.sealed(record), indent=1) + "\n")

    def latest(self) -> int | None:
        """The step of the newest checkpoint; None without one."""
        return self._manager.latest_step()

    def describe(self) -> str:
        self.wait()
        step = self.latest()
        return "none was saved" if step is None else str(self._folder / str(step))

    def save(self, step: int, state: State, evaluations: Sequence[Evaluation] = ()) -> None:
        """Starts to save the state and the evaluations so far, after any earlier save is complete.
        Does nothing if the step has a checkpoint; ValueError if there are later ones."""
        if step in self._manager.all_steps():
            return
        self.wait()
        self._evaluations = [[each.step, list(map(finite, each.metrics))] for each in evaluations]
        with processes.together():
            is_saved = self._manager.save(step, args=ocp.args.StandardSave(vars(state)))
        if not is_saved:
            raise ValueError(f"{self._folder} has checkpoints of later steps than {step}")

    def drop_later(self, step: int) -> None:
        with processes.together():
            for later in self._manager.all_steps():
                if later > step:
                    self._manager.delete(later)

    def wait(self) -> None:
        """Returns when the save under way, if any, is complete."""
        with processes.together():
            self._manager.wait_until_finished()

    def restore(self, like: State) -> State:
        """The newest checkpoint, placed on the devices as `like` is; ValueError if it is damaged,
        changed, or of another model, experiment or other replicas."""
        step = self.latest()
        assert step is not None
        if wrong := processes.of_first(lambda: self._wrong(step)):
            raise ValueError(wrong)
        abstract = jax.tree.map(
            lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding), vars(like)
        )
        try:
            tree = self._manager.restore(step, args=ocp.args.StandardRestore(abstract))
        except Exception as error:  # the library raises many kinds
            processes.end_if_abandoned(error)
            raise ValueError(self._unreadable(step, error)) from error
        return State(**tree)

    def evaluations(self) -> list[Evaluation]:
        """The evaluations up to the newest checkpoint; call `restore` first, which checks it."""
        path = self._folder / str(self.latest()) / RECORD

        def found() -> Any:
            return read_json(path).get("evaluations", []) if path.exists() else []

        def numbers(values: dict[str, float | None]) -> dict[str, float]:
            return {name: math.nan if x is None else x for name, x in values.items()}

        return [
            Evaluation(step, list(map(numbers, metrics)))
            for step, metrics in processes.of_first(found)
        ]

    def _wrong(self, step: int) -> str:
        """What is wrong with a checkpoint, found before it is restored; "" if nothing is."""
        folder = self._folder / str(step)
        try:
            record = _require_unchanged(folder)
        except (ValueError, OSError) as error:
            return self._unreadable(step, error)
        if record is None and self._identity.is_sealed:
            return self._unreadable(step, ValueError(f"{RECORD} is not there"))
        if record is None:
            return ""
        try:
            self._identity.require(record.fingerprint, f"checkpoint {folder}")
        except ValueError as error:
            return str(error)
        if record.replicas != self._replicas:
            return (
                f"checkpoint {folder} is of other replicas {record.replicas} than {self._replicas}:"
                " put back the config.json that it was stored with, or choose another --workdir"
            )
        return ""

    def _unreadable(self, step: int, error: Exception) -> str:
        """The message that a checkpoint cannot be read, with the way out."""
        others = [s for s in self._manager.all_steps() if s != step]
        way_out = "remove that folder to "
        way_out += f"resume from step {max(others)}" if others else "start again"
        reason = "".join(str(error).strip().splitlines()[:1])[:200]
        return (
            f"checkpoint {self._folder / str(step)} cannot be read "
            f"({type(error).__name__}: {reason}). It is damaged or of another model: {way_out}"
        )

    def close(self) -> None:
        self.wait()
        self._manager.close()


def read(folder: Path, step: int) -> dict:
    """A checkpoint in a folder as NumPy arrays, whatever devices and processes wrote it; ValueError
    if it is missing, changed, or cannot be read."""
    handler = ocp.StandardCheckpointHandler()
    try:
        _require_unchanged(folder / str(step))
        with ocp.CheckpointManager(folder.resolve(), item_handlers=handler) as manager:
            found = manager.item_metadata(step)
            tree = getattr(found, "tree", found)
            like = jax.tree.map(lambda x: np.empty(x.shape, x.dtype), tree)
            return manager.restore(step, args=ocp.args.StandardRestore(like))
    except Exception as error:  # the library raises many kinds
        processes.end_if_abandoned(error)
        raise ValueError(
            f"checkpoint {folder / str(step)} cannot be read ({type(error).__name__}: "
            f"{' '.join(str(error).split())[:200]}): it is not there, or damaged"
        ) from error


def read_parameters(folder: Path, step: int):
    """The parameters of a checkpoint; see `read`."""
    return read(folder, step)["params"]

"""Checkpoints of everything that training changes; all that the project uses of Orbax."""

import dataclasses
from pathlib import Path

import jax
import numpy as np
import orbax.checkpoint as ocp

from xling_jax import processes
from xling_jax.training.step import State

KEPT = 2  # newest checkpoints


def _to_tree(state: State) -> dict:
    return {field.name: getattr(state, field.name) for field in dataclasses.fields(state)}


class Checkpoints:
    """The checkpoints of a group of replicas, by step; a torn one is never taken for whole.

    A checkpoint is written beside its place in the background, and renamed when it is complete.
    """

    def __init__(self, folder: Path, kept: int = KEPT):
        """Opens the folder, made if need be; what a killed run left unfinished is removed.

        Args:
          folder: of the checkpoints.
          kept: how many of the newest stay.
        """
        self._folder = folder.resolve()
        self._folder.mkdir(parents=True, exist_ok=True)
        self._manager = ocp.CheckpointManager(
            self._folder,
            options=ocp.CheckpointManagerOptions(
                max_to_keep=kept, cleanup_tmp_directories=True, single_host_load_and_broadcast=True
            ),
        )

    def latest(self) -> int | None:
        """The step of the newest checkpoint, None without one."""
        return self._manager.latest_step()

    def describe(self) -> str:
        """Where the newest checkpoint is, in words."""
        self.wait()
        step = self.latest()
        return "none was saved" if step is None else str(self._folder / str(step))

    def save(self, step: int, state: State) -> None:
        """Starts to save the state; at most one save is under way at a time."""
        if step in self._manager.all_steps():
            return
        with processes.together():
            is_saved = self._manager.save(step, args=ocp.args.StandardSave(_to_tree(state)))
        if not is_saved:
            raise ValueError(f"{self._folder} has checkpoints of later steps than {step}")

    def drop_later(self, step: int) -> None:
        """Deletes the checkpoints of steps after `step`."""
        with processes.together():
            for later in self._manager.all_steps():
                if later > step:
                    self._manager.delete(later)

    def wait(self) -> None:
        """Returns when the save under way, if any, is complete."""
        with processes.together():
            self._manager.wait_until_finished()

    def restore(self, like: State) -> State:
        """The newest checkpoint, placed on the devices as `like` is.

        Raises:
          ValueError: it cannot be read: torn, or of another model.
        """
        step = self.latest()
        abstract = jax.tree.map(
            lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=x.sharding), _to_tree(like)
        )
        try:
            tree = self._manager.restore(step, args=ocp.args.StandardRestore(abstract))
        except Exception as error:  # the library raises many kinds
            processes.end_if_abandoned(error)
            others = [s for s in self._manager.all_steps() if s != step]
            way_out = (
                f"remove that folder to resume from step {max(others)}"
                if others
                else "remove that folder to start again"
            )
            reason = str(error).strip().splitlines()[0][:200] if str(error).strip() else ""
            raise ValueError(
                f"checkpoint {self._folder / str(step)} cannot be read "
                f"({type(error).__name__}: {reason}). It is damaged or of another model: {way_out}"
            ) from error
        return State(**tree)

    def close(self) -> None:
        """Waits for the save under way and releases the folder."""
        self.wait()
        self._manager.close()


def read(folder: Path, step: int) -> dict:
    """A checkpoint in a folder as numpy arrays, whatever devices and processes wrote it.

    Raises:
      ValueError: it is not there, or cannot be read.
    """
    handler = ocp.StandardCheckpointHandler()
    try:
        with ocp.CheckpointManager(folder.resolve(), item_handlers=handler) as manager:
            found = manager.item_metadata(step)
            tree = getattr(found, "tree", found)
            like = jax.tree.map(lambda x: np.empty(x.shape, x.dtype), tree)
            return manager.restore(step, args=ocp.args.StandardRestore(like))
    except Exception as error:  # the library raises many kinds
        processes.end_if_abandoned(error)
        raise ValueError(
            f"checkpoint {folder / str(step)} cannot be read ({type(error).__name__}): it is "
            "not there, or damaged"
        ) from error


def read_parameters(folder: Path, step: int):
    """The parameters of a checkpoint, see `read`."""
    return read(folder, step)["params"]

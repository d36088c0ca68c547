"""The checkpoint that is best on the first language's held-out text (W&C §3.1)."""

import json
from pathlib import Path

import jax

from xling_jax.files import write_beside
from xling_jax.training.checkpoints import Checkpoints
from xling_jax.training.step import State

RECORD = "best.json"


class Best:
    """Keeps each replica's state at its lowest held-out perplexity, apart from the latest."""

    def __init__(self, folder: Path, seeds: list[int]):
        """Opens the folder, with one for each replica in it."""
        self._folders = [folder / f"seed{seed}" for seed in seeds]
        self._checkpoints = [Checkpoints(own, kept=1) for own in self._folders]

    def offer(self, step: int, state: State, perplexities: list[float]) -> None:
        """Saves the states of the replicas that have never been better.

        A step that was offered before a run was cut off, and comes again, changes nothing.
        """
        for number, (folder, checkpoints, value) in enumerate(
            zip(self._folders, self._checkpoints, perplexities, strict=True)
        ):
            best = read(folder)
            if best is not None and not value < best[1] and best[0] <= step:
                continue
            own = jax.tree.map(lambda x, n=number: x[n], state)
            checkpoints.save(step, own)
            checkpoints.wait()
            write_beside(
                folder / RECORD, json.dumps({"step": step, "perplexity_dev": value}) + "\n"
            )

    def found(self) -> list[dict[str, float]]:
        """`best_step` and `best_perplexity` of each replica."""
        records = [read(folder) for folder in self._folders]
        return [
            {} if found is None else {"best_step": found[0], "best_perplexity": found[1]}
            for found in records
        ]

    def close(self) -> None:
        """Releases the folders."""
        for checkpoints in self._checkpoints:
            checkpoints.close()


def read(folder: Path) -> tuple[int, float] | None:
    """The step and the perplexity of a replica's best checkpoint, None without one."""
    path = folder / RECORD
    if not path.exists():
        return None
    try:
        record = json.loads(path.read_text("utf-8"))
        return int(record["step"]), float(record["perplexity_dev"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is damaged ({error}): remove its folder") from error

"""What a run reports while it goes on: lines of JSON in a file, lines of text on the terminal."""

import dataclasses
import importlib.util
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from xling_jax import processes, records
from xling_jax.files import parse_json, plain_name, write_beside
from xling_jax.records import UNKNOWN, Identity, finite


def say(message: str) -> None:
    """Prints a line of progress to stderr at once; of several processes only the first does."""
    if processes.is_first():
        print(f"[{time.strftime('%H:%M:%S')}] {message}", file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """A number of seconds in the form 1:02:03, or 2:03."""
    minutes, seconds = divmod(round(max(0.0, seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


class MetricsFile:
    """`metrics.jsonl`, to which objects are appended, one per line; if asked for, their numbers are
    written as scalars for TensorBoard too."""

    def __init__(self, path: Path, identity: Identity = UNKNOWN, scalars: Path | None = None):
        """Opens nothing yet: the file is made with its first line.

        Args:
          path: of the file.
          identity: of the experiment, written in each line.
          scalars: the folder of the scalars; None writes none.

        Raises:
          ValueError: the package that writes scalars is missing.
        """
        self._path, self._identity, self._scalars = path, identity, scalars
        self._writers: dict[str, Any] = {}
        if scalars and importlib.util.find_spec("tensorboardX") is None:
            raise ValueError("log.tensorboard: to write scalars, pip install tensorboardX")

    def write(self, **entry: Any) -> None:
        """Appends an object, in the first process only; numbers that are not finite become null."""
        if not processes.is_first():
            return
        line = records.sealed(finite(entry) | {"fingerprint": self._identity.fingerprint})
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line, allow_nan=False) + "\n")
        if self._scalars and "step" in entry:
            self._add_scalars(self._scalars / f"row{plain_name(entry['row'])}_seed{entry['seed']}",
                              **entry)  # fmt: skip

    def _add_scalars(self, folder: Path, kind: str, step: int, **entry: Any) -> None:
        """Writes the numbers of an evaluation or a call. The first time, it drops what an
        interrupted run wrote for later steps, and for this one if it is a call's."""
        from tensorboardX import SummaryWriter  # imported late: few runs need it

        if folder.name not in self._writers:
            first = step + (kind == "evaluation")  # an evaluation may follow a call that is kept
            self._writers[folder.name] = SummaryWriter(str(folder), purge_step=first, flush_secs=10)
        writer = self._writers[folder.name]
        for name, value in entry.get("metrics", entry).items():
            if isinstance(value, int | float) and name not in ("row", "seed"):
                writer.add_scalar(f"{kind}/{name}", value, step)

    def keep(self, is_kept: Callable[[dict[str, Any]], bool]) -> None:
        """Keeps only the lines that `is_kept` accepts, so that a resumed run can write the others
        again. A last line that a kill cut off is dropped too; ValueError if another line cannot be
        read."""
        if not processes.is_first() or not self._path.exists():
            return
        *lines, _ = self._path.read_bytes().split(b"\n")
        kept = []
        for number, line in enumerate(lines, 1):
            if line.strip() and is_kept(parse_json(line, f"{self._path}, line {number}")):
                kept.append(line + b"\n")
        write_beside(self._path, b"".join(kept))


@dataclasses.dataclass
class Progress:
    """Speed and time left of one group's training.

    Attributes:
      start, total: the steps where this process begins and where training ends.
      evaluations: how many there are to do from `start` on.
      training, evaluating: seconds spent so far.
      evaluated: evaluations done so far.
    """

    start: int
    total: int
    evaluations: int
    training: float = 0.0
    evaluating: float = 0.0
    evaluated: int = 0

    def left(self, step: int) -> float:
        """Seconds to the end, from the speed so far."""
        a_step = self.training / max(1, step - self.start)
        an_evaluation = self.evaluating / max(1, self.evaluated)
        to_come = self.evaluations - self.evaluated
        return (self.total - step) * a_step + to_come * an_evaluation

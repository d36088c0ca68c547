"""A folder of figures that knows what each was drawn from, so that none is drawn twice.

A page is written again after every group of replicas; most of its figures are then the same.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xling_jax.files import write_beside
from xling_jax.report.figures import file_name, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_RECORD = "drawn.json"


def digest(content: bytes) -> str:
    """What stands for a content."""
    return hashlib.sha256(content).hexdigest()[:32]


@cache
def _drawer() -> str:
    """What stands for everything but the numbers that a figure depends on: the programs."""
    sources = [path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))]
    versions = [version(name) for name in ("matplotlib", "numpy", "pillow")]
    return digest(b"".join(sources) + " ".join(versions).encode())


class Drawn:
    """The figures in a folder, and what they were drawn from."""

    def __init__(self, folder: Path) -> None:
        """Reads the folder's record; one that is missing or damaged means that all is drawn."""
        self._folder = folder
        try:
            record = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            record = {}
        self._record: dict[str, Any] = record if isinstance(record, dict) else {}

    def figure(
        self, name: str, numbers: Any, draw: Callable[[], Figure | None]
    ) -> tuple[Path, Path] | None:
        """The svg and the png of a figure, drawn if the folder does not have them as they must be.

        Args:
          name: the files' name.
          numbers: all that the figure depends on, as JSON can hold it.
          draw: makes the figure, or None where there is nothing to show, which is noted too.
        """
        name = file_name(name)
        wanted = digest((_drawer() + json.dumps(numbers, sort_keys=True)).encode())
        known = self._record.get(name)
        if isinstance(known, dict) and known.get("from") == wanted:
            files = known.get("files")
            if files == {}:
                return None
            if files == self._files(name):
                return self._paths(name)
        figure = draw()
        if figure is not None:
            save(figure, self._folder, name)
        files = self._files(name) if figure is not None else {}
        self._record[name] = {"from": wanted, "files": files}
        write_beside(self._folder / _RECORD, json.dumps(self._record, indent=1, sort_keys=True))
        return self._paths(name) if figure is not None else None

    def _paths(self, name: str) -> tuple[Path, Path]:
        return self._folder / f"{name}.svg", self._folder / f"{name}.png"

    def _files(self, name: str) -> dict[str, str] | None:
        """What the folder has under a name; None if a file is missing."""
        try:
            return {path.name: digest(path.read_bytes()) for path in self._paths(name)}
        except OSError:
            return None

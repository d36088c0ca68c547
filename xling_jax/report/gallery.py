"""The figures of a page, as they are kept.

A page is written again after every group of replicas. Most of its figures are then unchanged, and a
`Gallery` does not draw those again.
"""

from __future__ import annotations

import base64
import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from xling_jax.files import plain_name, short_hash, write_beside
from xling_jax.report import figures
from xling_jax.report.figures import COLOURS, STYLES, Entry, Line, Score
from xling_jax.report.prose import grouped

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_RECORD = "drawn.json"
_MOST = 4  # bars of a row that have room


class Card(NamedTuple):
    """A figure on a page, as a data URL, so that the page needs no other file.

    A wide one has the whole width of the page, and scrolls in its box if that is too narrow.
    """

    alt: str
    address: str
    files: tuple[str, ...]
    wide: bool


@cache
def _programs(module: str) -> str:
    """A hash of everything that a figure depends on besides its numbers."""
    sources = b"".join(Path(each).read_bytes() for each in (figures.__file__, module))
    versions = " ".join(map(version, ("matplotlib", "numpy", "pillow")))
    return short_hash(sources + versions.encode())


class Gallery:
    """The figures in a folder, with a record of what each was drawn from."""

    def __init__(self, folder: Path) -> None:
        """Reads the folder's record; if it is missing or damaged, all figures are drawn anew."""
        self._folder = folder
        self._taken = set[str]()
        self._record: dict[str, str] = {}
        with suppress(OSError, ValueError, TypeError):
            self._record.update(json.loads((folder / _RECORD).read_text(encoding="utf-8")))

    def card(
        self, name: str, alt: str, draw: Callable[..., Figure | None], *inputs: Any,
        key: Any = None, kind: str = "svg", wide: bool = False,
    ) -> list[Card]:  # fmt: skip
        """One card with a figure, which is drawn unless the folder has it up to date; no card if
        there is nothing to draw, or matplotlib is not installed.

        Args:
          name: what its files are called; if another figure of the page has that name, a hash of
            this one is added.
          draw: makes the figure from the inputs; returns None if there is nothing to show.
          key: everything that the figure depends on, in JSON's types; by default the inputs.
          kind: which file the page holds, svg or png.
        """
        if not figures.can_draw():
            return []
        plain = plain_name(name)
        is_taken = (
            plain.lower() in self._taken
        )  # a;b and a_b, or a and A where case does not matter
        name = f"{plain}-{short_hash(name.encode())}" if is_taken else plain
        self._taken.add(name.lower())
        paths = {end: self._folder / f"{name}.{end}" for end in ("svg", "png")}
        numbers = json.dumps(inputs if key is None else key, sort_keys=True, default=vars)
        source = (_programs(inspect.getfile(draw)) + numbers).encode()
        if self._record.get(name) != _stamp(source, paths.values()):
            if (figure := draw(*inputs)) is not None:
                figures.save(figure, self._folder, name)
            else:
                for path in paths.values():
                    path.unlink(missing_ok=True)
            self._record[name] = _stamp(source, paths.values())
            record = json.dumps(self._record, indent=1, sort_keys=True)
            write_beside(self._folder / _RECORD, record)
        if not paths[kind].exists():
            return []
        mime = {"svg": "image/svg+xml", "png": "image/png"}[kind]
        data = base64.b64encode(paths[kind].read_bytes()).decode()
        files = tuple(path.name for path in paths.values())
        return [Card(alt, f"data:{mime};base64,{data}", files, wide)]

    def bars(
        self, name: str, alt: str, shown: Sequence[Entry], scores: Mapping[str, str], below: str,
        top: float | None = None,
    ) -> list[Card]:  # fmt: skip
        """Cards with `figures.bars` for the rows that have any of the scores, which are given with
        their titles; many scores have several figures: NAME, NAME-2, …"""
        cards, titled = list[Card](), list(scores.items())
        for start in range(0, len(titled), _MOST):
            pairs = zip(titled[start : start + _MOST], COLOURS, strict=False)
            kinds = [Score(*each, colour) for each, colour in pairs]
            rows = [entry for entry in shown if any(kind.name in entry.ours for kind in kinds)]
            if rows:
                part = _part(name, start // _MOST)
                cards += self.card(part, alt, figures.bars, rows, kinds, below, "", top, wide=True)
        return cards

    def curves(
        self, name: str, alt: str, lines: Sequence[Line], shown: Mapping[str, str], below: str
    ) -> list[Card]:
        """Cards with lines `figures.side_by_side`, for those of the metrics that any line has; more
        lines than there are colours and dashes have several figures: NAME, NAME-2, …"""
        cards = list[Card]()
        for number, own in grouped((line.number // STYLES, line) for line in lines).items():
            present = {metric for line in own for metric in line.curves}
            panels = {metric: title for metric, title in shown.items() if metric in present}
            if panels:
                part, wide = _part(name, number), len(panels) > 1
                cards += self.card(part, alt, figures.side_by_side, own, panels, below, wide=wide)
        return cards


def _part(name: str, number: int) -> str:
    """The name of a part of a figure, by the part's number from 0: NAME, NAME-2, …"""
    return f"{name}-{number + 1}" if number else name  # names of models may end in _2


def _stamp(source: bytes, paths: Iterable[Path]) -> str:
    """A hash of a figure's files and of all that they were drawn from."""
    return short_hash(source + b"".join(path.read_bytes() for path in paths if path.exists()))

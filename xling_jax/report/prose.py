"""Names and numbers in sentences, and the sentences of a report, from a template of the experiment.

In a template each line is a sentence or a note, under headings that begin with `##`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from jinja2 import Environment, StrictUndefined, Template

_MOST = 12  # names that a note lists
K = TypeVar("K")
V = TypeVar("V")


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Values by key, both in the order in which they first come."""
    found: dict[K, list[V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def plain(text: str) -> str:
    """A text on one line."""
    return " ".join(text.split())


def cut(text: str, width: int) -> str:
    """A text, shortened to at most `width` characters."""
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"


def with_description(row: str, description: str) -> str:
    """A row's name, followed by its description if that is another text."""
    return row if description in ("", row) else f"{row}: {description.replace(';', '; ')}"


def listed(names: Iterable[str]) -> str:
    """Names in words: "a", "a and b", "a, b and c"."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def plural(what: str, names: Sequence[object]) -> str:
    """Names after the word for them: "row 0", "rows 0, 1"."""
    return f"{what}{'s' if len(names) > 1 else ''} {', '.join(map(str, names))}"


def spread(numbers: Iterable[int]) -> str:
    """The smallest and the greatest of some numbers: "1,000", "480–512"."""
    least, *_, greatest = [*sorted(numbers)] * 2
    return f"{least:,}" if least == greatest else f"{least:,}–{greatest:,}"


def diverged_at(steps: Mapping[int, int]) -> str:
    """The steps at which a row's seeds diverged, as "diverged at step 1,200–1,400"."""
    return f"diverged at step {spread(steps.values())}"


def also_diverged(number: int) -> str:
    """The words after a number of seeds or settings, if others diverged."""
    return f" ({number} diverged)" if number else ""


def some(names: Sequence[str]) -> str:
    """Names in words, only the first ones if they are many."""
    more = len(names) - _MOST
    return listed(names) if more <= 0 else f"{', '.join(names[:_MOST])} and {more} more"


@cache
def _template(path: Path) -> Template:
    environment = Environment(  # for plain text, which the formats of a report escape
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        finalize=lambda value: plain(value) if isinstance(value, str) else value,
    )  # fmt: skip
    environment.filters |= {"listed": listed, "plural": plural, "spread": spread, "some": some}
    return environment.from_string(path.read_text(encoding="utf-8"))


def written(module: str, **values: Any) -> dict[str, list[str]]:
    """The lines of `report.txt.j2` beside a module's file, filled with values, by heading."""
    found: dict[str, list[str]] = {}
    heading = ""
    text = _template(Path(module).with_name("report.txt.j2")).render(values)
    for line in filter(None, map(str.strip, text.split("\n"))):
        if line.startswith("## "):
            heading = line[3:]
        else:
            found.setdefault(heading, []).append(line)
    return found

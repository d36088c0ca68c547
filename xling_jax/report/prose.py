"""Names and numbers in sentences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


def plain(text: str) -> str:
    """A text on one line."""
    return " ".join(text.split())


def cut(text: str, width: int) -> str:
    """A text of at most `width` characters."""
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"


def listed(names: Iterable[str]) -> str:
    """Names in words: "a", "a and b", "a, b and c"."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def plural(what: str, names: Sequence[object]) -> str:
    """Names behind what they are: "row 0", "rows 0, 1"."""
    return f"{what}{'s' if len(names) > 1 else ''} {', '.join(map(str, names))}"


def spread(numbers: Iterable[int]) -> str:
    """Numbers by their least and their greatest: "1,000", "480–512"."""
    least, *_, greatest = [*sorted(numbers)] * 2
    return f"{least:,}" if least == greatest else f"{least:,}–{greatest:,}"


def diverged_at(steps: Mapping[int, int]) -> str:
    """Where every seed of a row diverged, as "diverged at step 1,200–1,400"."""
    return f"diverged at step {spread(steps.values())}"

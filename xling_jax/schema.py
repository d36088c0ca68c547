"""What the fields of a config may be: each with its type, range or choices, and its meaning.

A `Section` names its fields; fields under names of the user's own (languages, pairs, rows) stand
under `EACH`. Imports nothing of ours, so that every module may say what its fields are.
"""

from __future__ import annotations

import dataclasses
import difflib
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from typing import Any

EACH = "*"
MOST = 10**9  # of a number of things that has no limit of its own
SEEDS = 2**32  # JAX's keys are made of 32 bits
SMALLEST, LARGEST = 1.2e-38, 3.4e38  # above 0, that float32 holds in full precision


@dataclasses.dataclass(frozen=True)
class Field:
    """What one field may be.

    meaning: what it decides, with its unit. form: what it has to be, in words. accepts: whether a
    value is that.
    """

    meaning: str
    form: str
    accepts: Callable[[Any], bool]


Section = Mapping[str, "Field | Section"]


def whole(meaning: str, least: int = 1, most: int = MOST) -> Field:
    """A whole number within a range, its ends included."""

    def accepts(value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most

    return Field(meaning, f"a whole number from {least:,} to {most:,}", accepts)


def seed(meaning: str) -> Field:
    """A seed of random numbers."""
    return dataclasses.replace(
        whole(meaning, 0, SEEDS - 1), form="a whole number from 0 to 2^32 - 1"
    )


def number(meaning: str, least: float, most: float, *, above: bool = False) -> Field:
    """A number within a range, its ends included; with `above` it is a little above the least."""

    def accepts(value: Any) -> bool:
        if not isinstance(value, int | float) or isinstance(value, bool):
            return False
        return (max(least, SMALLEST) <= value if above else least <= value) and value <= most

    start = f"above {least:g}" if above else f"from {least:g}"
    return Field(meaning, f"a number {start} to {most:,g}", accepts)


def share(meaning: str) -> Field:
    """A share of a whole."""
    return number(meaning, 0, 1)


def flag(meaning: str) -> Field:
    """True or False."""
    return Field(meaning, "True or False", lambda value: isinstance(value, bool))


def choice(meaning: str, *choices: str) -> Field:
    """One of some words."""
    named = " or ".join(filter(None, [", ".join(map(repr, choices[:-1])), repr(choices[-1])]))
    return Field(meaning, named, lambda value: isinstance(value, str) and value in choices)


def text(meaning: str, form: str = "text", *, is_needed: bool = False) -> Field:
    """A line of text: a file, a folder, a name; it may be empty unless it is needed."""

    def accepts(value: Any) -> bool:
        if not isinstance(value, str) or (is_needed and not value.strip()):
            return False
        return not any(unicodedata.category(character) == "Cc" for character in value)

    return Field(meaning, form + ("" if is_needed else ", or nothing"), accepts)


def several(
    meaning: str, of: Field, least: int = 0, most: int = MOST, *, apart: bool = False
) -> Field:
    """A tuple of values that are each what `of` says.

    Args:
      meaning: of all.
      of: of each.
      least, most: how many there may be.
      apart: whether no two may be the same.
    """

    def accepts(value: Any) -> bool:
        if not isinstance(value, list | tuple) or not least <= len(value) <= most:
            return False
        return all(map(of.accepts, value)) and not (apart and len(set(value)) < len(value))

    some = "any number" if least < 1 else str(least) if least == most else f"{least} or more"
    each = ", each once" if apart else ""
    return Field(meaning, f"a tuple of {some}{each}: {of.form}", accepts)


def each_of(meaning: str, *parts: Field) -> Field:
    """A tuple of as many values as there are parts, each what its part says."""

    def accepts(value: Any) -> bool:
        return (
            isinstance(value, list | tuple)
            and len(value) == len(parts)
            and all(part.accepts(x) for part, x in zip(parts, value, strict=True))
        )

    return Field(meaning, f"a tuple: {' and '.join(part.form for part in parts)}", accepts)


def check(values: Any, section: Section, path: str = "") -> None:
    """Raises ValueError, naming the field and what it may be, unless all values fit a section.

    Args:
      values: nested, as a config holds them.
      section: what they may be.
      path: of the section in the config, for errors.
    """
    if not isinstance(values, Mapping):
        raise ValueError(f"{path}={_shown(values)}: fields belong there: {', '.join(section)}")
    for name, field in section.items():
        if name == EACH:
            continue
        if name not in values:
            way_out = f"give {field.form}" if isinstance(field, Field) else "it has fields"
            raise ValueError(f"{_joined(path, name)} is missing from the config: {way_out}")
    for name, value in values.items():
        own = _joined(path, str(name))
        if name not in section and EACH not in section:
            near = difflib.get_close_matches(str(name), section, 1)
            hint = f"did you mean {_joined(path, near[0])}?" if near else "leave it out"
            raise ValueError(f"{own}: there is no such field; {hint}")
        field = section.get(name) or section[EACH]
        if not isinstance(field, Field):
            check(value, field, own)
        elif not field.accepts(value):
            raise ValueError(f"{own}={_shown(value)}: give {field.form}")


def listed(
    section: Section, known: dict[int, str], path: str = ""
) -> Iterator[tuple[str, Field | str]]:
    """Every field of a section with its whole name, in the order of the section.

    In the place of a section that was listed before stands the name that it had then.

    Args:
      section: the fields.
      known: the sections listed before, by identity; this one's are added.
      path: of the section, from the root that `known` names sections by.
    """
    for name, field in section.items():
        own = _joined(path, name)
        if isinstance(field, Field):
            yield own, field
        elif id(field) in known:
            yield own, known[id(field)]
        else:
            known[id(field)] = own
            yield from listed(field, known, own)


def described(
    values: Mapping[str, Any], section: Section, path: str = ""
) -> Iterator[tuple[str, Any, Field]]:
    """Every field of checked values: its whole name, its value, and what it may be."""
    for name, value in values.items():
        own, field = _joined(path, name), section.get(name) or section[EACH]
        if isinstance(field, Field):
            yield own, value, field
        else:
            yield from described(value, field, own)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _shown(value: Any) -> str:
    """A value in an error, cut where it is long."""
    if isinstance(value, Mapping):
        return "(fields)"
    written = repr(value)
    return written if len(written) <= 80 else f"{written[:77]}…"

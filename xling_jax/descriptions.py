"""Descriptions of rows: parts joined by `;`, each a name that may have an argument in brackets, and
the numbers in them."""

import dataclasses
import re
from collections.abc import Collection, Mapping

from xling_jax import numerals, schema

MOST_EPOCHS = 10**6  # of training, in rows as in fields
_PART = re.compile(r"([^\[\]]+)(?:\[(.*)\])?")


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of a description: its text, name and argument, "" if it has none."""

    text: str
    name: str
    argument: str


def parts(
    description: str,
    known: Mapping[str, str],
    needed: Collection[str] = (),
    optional: Collection[str] = (),
) -> list[Part]:
    """Reads a description such as `lang-pos;inv-order[fake]`: parts joined by `;`.

    Args:
      known: the names that there are, and what each means.
      needed, optional: the names that must and that may have an argument; others have none.

    Raises:
      ValueError: a part is empty, unknown or there twice, lacks an argument, or has one where none
        is possible.
    """
    found: list[Part] = []
    for text in (text.strip() for text in description.split(";")):
        if not text:
            raise ValueError("a part is empty: join parts by one ; each")
        match = _PART.fullmatch(text)
        if not match or match[1] not in known:
            raise ValueError(f"unknown modification {text!r}: choose from {', '.join(known)}")
        part = Part(text, match[1], match[2] or "")
        if part.name in needed and not part.argument:
            raise ValueError(f"{text!r} needs an argument in brackets: {known[part.name]}")
        if match[2] is not None and part.name not in needed and part.name not in optional:
            raise ValueError(f"{text!r}: {part.name} has no argument")
        if part.name in optional and match[2] == "":
            raise ValueError(f"{text!r}: write an argument in the brackets, or leave them out")
        if part in found:
            raise ValueError(f"{text!r} is there twice")
        found.append(part)
    return found


def only_once(found: Collection[Part], *names: str) -> None:
    """Raises ValueError if two parts have the same name, of these `names`."""
    for name in names:
        if len(own := [part.text for part in found if part.name == name]) > 1:
            raise ValueError(f"{name} is given twice: {' and '.join(own)}")


def positive(text: str) -> float:
    """A number above 0 that float32 holds; ValueError for anything else."""
    try:
        value = numerals.decimal(text)
    except ValueError:
        value = 0.0
    if text.startswith("+") or not schema.SMALLEST <= value <= schema.LARGEST:
        raise ValueError("give a number above 0, such as 3, 2.5 or 1e-4")
    return value

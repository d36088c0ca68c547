"""Fields of configs: the type, range or choices, and meaning of each.

A `Section` has fields by name; fields whose names the user chooses (languages, pairs, rows) are
under `EACH`. Imports nothing of ours, so that every module can define fields.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import functools
import operator
import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import pydantic
from pydantic import AfterValidator, Strict, TypeAdapter, ValidationError

EACH = "*"
MOST = 10**9  # the limit of whole numbers that have no other
SMALLEST, LARGEST = 1.2e-38, 3.4e38  # positive numbers that float32 holds in full precision
SOURCE = "tfds:NAME[/CONFIG][:SPLIT][#FIELD]"
TEXTS = {  # kinds of text by their names in a table, in words
    "text": "text",
    "name": "a name",
    "row": "a row's name",
    "description": "a description",
    "source": f"a text file, or {SOURCE}",
    "files": f"files joined by +, or {SOURCE}",
    "file": "a file",
    "folder": "a folder",
    "dictionary": "a dictionary",
    "vectors": "a .vec file",
}
# No control characters and, unless the text may be empty, a visible one.
_LINE, _VISIBLE = r"^[^\p{Cc}]*$", r"^[^\p{Cc}]*[^\p{Cc}\s][^\p{Cc}]*$"


@dataclasses.dataclass(frozen=True)
class Field:
    """One field: its meaning, with its unit, and its type for pydantic."""

    meaning: str
    kind: Any

    @functools.cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.kind)

    @functools.cached_property
    def form(self) -> str:
        """What a value has to be, in words."""
        return _in_words(self._adapter.json_schema())

    def accepts(self, value: Any) -> bool:
        with contextlib.suppress(ValidationError):
            self._adapter.validate_python(value)
            return True
        return False


Section = Mapping[str, "Field | Section"]


def _in_words(kind: Mapping[str, Any]) -> str:
    match kind:
        case {"description": said}:
            return said
        case {"const": only}:
            return repr(only)
        case {"enum": [*others, last]}:
            return f"{', '.join(map(repr, others))} or {last!r}"
        case {"type": "boolean"}:
            return "True or False"
        case {"type": "integer", "minimum": least, "maximum": most}:
            return f"a whole number from {least:,} to {most:,}"
        case {"type": "number", "minimum": least, "maximum": most}:
            start = "above 0, up" if least == SMALLEST else f"from {least:g}"
            return f"a number {start} to {most:,g}"
        case {"prefixItems": parts}:
            return f"a tuple: {' and '.join(map(_in_words, parts))}"
        case {"items": of}:
            least, most = kind.get("minItems", 0), kind.get("maxItems")
            some = (
                "any length" if least < 1 else str(least) if least == most else f"{least} or more"
            )
            each = ", each once" if "uniqueItems" in kind else ""
            return f"a tuple of {some}{each}: {_in_words(of)}"
    raise ValueError(f"no words for {kind}")


def whole(meaning: str, least: int = 1, most: int = MOST) -> Field:
    """A whole number within a range, its ends included."""
    return Field(meaning, Annotated[int, Strict(), pydantic.Field(ge=least, le=most)])


def seed(meaning: str) -> Field:
    """A seed of random numbers, of 32 bits, as JAX's keys take them."""
    return whole(meaning, 0, 2**32 - 1)


def number(meaning: str, least: float, most: float) -> Field:
    """A number within a range, its ends included."""
    return Field(meaning, Annotated[float, Strict(), pydantic.Field(ge=least, le=most)])


def flag(meaning: str) -> Field:
    """True or False."""
    return Field(meaning, Annotated[bool, Strict()])


def choice(meaning: str, *choices: str) -> Field:
    """One of some words."""
    return Field(meaning, Literal[choices])


def _apart(values: tuple) -> tuple:
    if len(set(values)) < len(values):
        raise ValueError("something is named twice")
    return values


def several(
    meaning: str, of: Field, least: int = 0, most: int | None = None, *, apart: bool = False
) -> Field:
    """A tuple of `least` to `most` values of the kind of `of`; all different if `apart`."""
    limits = pydantic.Field(min_length=least, max_length=most)
    kind: Any = Annotated[tuple[of.kind, ...], limits]  # type: ignore[name-defined]
    once = AfterValidator(_apart), pydantic.Field(json_schema_extra={"uniqueItems": True})
    return Field(meaning, Annotated[kind, *once] if apart else kind)


def each_of(meaning: str, *parts: Field) -> Field:
    """A tuple of one value for each part, of the part's kind."""
    return Field(meaning, tuple[tuple(part.kind for part in parts)])  # type: ignore[misc]


def table(lines: str, known: Mapping[str, Any] = {}) -> dict[str, Any]:
    """The section that lines describe, each with a name, a type and a meaning, separated by two
    blanks or more.

    A name may contain a section's, as in `skip_gram.window`. A type is a range of whole numbers
    `1..9` (`1..`: up to `MOST`) or of numbers `0.0..0.9` (`>0.0..1.0`: above 0), `seed`, `share`,
    `flag`, a choice of words such as `bpe|unigram`, or a name in `TEXTS`, followed by `?` if the
    text may be empty. After it, `*`, `+`, `{2}` or `{2,}` make a tuple of any number of values, of
    one or more, of two, or of two or more, and then `!` says that no value is there twice.

    `=models` stands for the section or field of that name in `known`, and `=models.dropout` for a
    field in it. After a name that ends in a dot, or is a dot, the fields of a section are put among
    the others. An indented line continues the one above.
    """
    found: dict[str, Any] = {}
    for line in re.sub(r"\n +", " " * 2, textwrap.dedent(lines).strip()).splitlines():
        name, kind, *meaning = re.split(" {2,}", line, maxsplit=2)
        *above, last = name.removeprefix(".").split(".")
        section = found
        for part in above:
            section = section.setdefault(part, {})
        if not kind.startswith("="):
            section[last] = _field(kind, " ".join(meaning[0].split()))
            continue
        given = functools.reduce(operator.getitem, kind[1:].split("."), known)
        section.update({last: given} if last else given)
    return found


def tables(path: Path) -> dict[str, Any]:
    """The sections of a file by name; in the file each is a `table` below its name in brackets,
    and may refer to those above it."""
    found: dict[str, Any] = {}
    for part in path.read_text("utf-8").split("\n\n"):
        name, lines = part.split("\n", 1)
        found[name.strip("[]")] = table(lines, found)
    return found


def _field(kind: str, meaning: str) -> Field:
    match = re.fullmatch(r"(.+?)(?:([*+])|\{(\d+)(,?)\})?(!)?", kind)
    assert match, kind
    base, many, count, is_least, once = match.groups()
    if many or count:
        least = int(count or many == "+")
        most = int(count) if count and not is_least else None
        return several(meaning, _field(base, ""), least, most, apart=bool(once))
    if base == "share":
        return number(meaning, 0, 1)
    if limits := re.fullmatch(r"(>?)(\d+\.\d+)\.\.([\d.e]+)", base):
        return number(meaning, SMALLEST if limits[1] else float(limits[2]), float(limits[3]))
    if limits := re.fullmatch(r"(\d+)\.\.(\d*)", base):
        return whole(meaning, int(limits[1]), int(limits[2] or MOST))
    if simple := {"seed": seed, "flag": flag}.get(base):
        return simple(meaning)
    if "|" in base:
        return choice(meaning, *base.split("|"))
    said, pattern = TEXTS[base.removesuffix("?")], _VISIBLE
    if base.endswith("?"):
        said, pattern = f"{said}, or nothing", _LINE
    form = pydantic.Field(pattern=pattern, description=said)
    return Field(meaning, Annotated[str, Strict(), form])


def check(values: Any, section: Section, path: str = "") -> None:
    """Raises ValueError, naming the field and what it may be, unless all values, nested as in a
    config, fit a section; `path` is the section's place in the config."""
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
    """Every field of a section with its whole name, in the section's order.

    In place of a section that was listed before, there is the name that it had then. `known` has
    these names by the sections' identities, and gets those of the sections that are listed now.
    `path` is the section's own name, from the same root.
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
    """Every field of checked values: its whole name, its value, and the field."""
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

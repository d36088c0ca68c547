"""What the fields of a config may be: each with its type, range or choices, and its meaning.

A `Section` names its fields; fields under names of the user's own (languages, pairs, rows) stand
under `EACH`. Imports nothing of ours, so that every module may say what its fields are.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import functools
import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import pydantic
from pydantic import AfterValidator, Strict, TypeAdapter, ValidationError

EACH = "*"
MOST = 10**9  # of a number of things that has no limit of its own
SMALLEST, LARGEST = 1.2e-38, 3.4e38  # above 0, that float32 holds in full precision
SOURCE = "tfds:NAME[/CONFIG][:SPLIT][#FIELD]"
TEXTS = {  # what a line of text may be, by its name in a table
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
# No control characters, and unless it may be empty one that can be seen.
_LINE, _VISIBLE = r"^[^\p{Cc}]*$", r"^[^\p{Cc}]*[^\p{Cc}\s][^\p{Cc}]*$"


@dataclasses.dataclass(frozen=True)
class Field:
    """What one field may be: its meaning, with its unit, and its type for pydantic."""

    meaning: str
    kind: Any

    @functools.cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.kind)

    @functools.cached_property
    def form(self) -> str:
        """What it has to be, in words."""
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
        case {"enum": [*others, last]}:
            return f"{', '.join(map(repr, others))} or {last!r}"
        case {"type": "boolean"}:
            return "True or False"
        case {"type": "integer", "minimum": least, "maximum": most}:
            return f"a whole number from {least:,} to {most:,}"
        case {"type": "number", "minimum": least, "maximum": most}:
            start = "above 0" if least == SMALLEST else f"from {least:g}"
            return f"a number {start} to {most:,g}"
        case {"prefixItems": parts}:
            return f"a tuple: {' and '.join(map(_in_words, parts))}"
        case {"items": of}:
            least, most = kind.get("minItems", 0), kind.get("maxItems")
            some = (
                "any number" if least < 1 else str(least) if least == most else f"{least} or more"
            )
            each = ", each once" if "uniqueItems" in kind else ""
            return f"a tuple of {some}{each}: {_in_words(of)}"
    raise ValueError(f"no words for {kind}")


def whole(meaning: str, least: int = 1, most: int = MOST) -> Field:
    """A whole number within a range, its ends included."""
    return Field(meaning, Annotated[int, Strict(), pydantic.Field(ge=least, le=most)])


def seed(meaning: str) -> Field:
    """A seed of random numbers; JAX's keys are made of 32 bits."""
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


def text(meaning: str, form: str = "text", *, is_needed: bool = False) -> Field:
    """A line of text: a file, a folder, a name; it may be empty unless it is needed."""
    said = form + ("" if is_needed else ", or nothing")
    pattern = pydantic.Field(pattern=_VISIBLE if is_needed else _LINE, description=said)
    return Field(meaning, Annotated[str, Strict(), pattern])


def _apart(values: tuple) -> tuple:
    if len(set(values)) < len(values):
        raise ValueError("something is named twice")
    return values


def several(
    meaning: str, of: Field, least: int = 0, most: int | None = None, *, apart: bool = False
) -> Field:
    """A tuple of `least` to `most` values that are each what `of` says; if `apart`, each once."""
    limits = pydantic.Field(min_length=least, max_length=most)
    kind: Any = Annotated[tuple[of.kind, ...], limits]  # type: ignore[name-defined]
    once = AfterValidator(_apart), pydantic.Field(json_schema_extra={"uniqueItems": True})
    return Field(meaning, Annotated[kind, *once] if apart else kind)


def each_of(meaning: str, *parts: Field) -> Field:
    """A tuple of as many values as there are parts, each what its part says."""
    return Field(meaning, tuple[tuple(part.kind for part in parts)])  # type: ignore[misc]


def table(lines: str) -> dict[str, Any]:
    """The section that lines of a name, a type and a meaning describe, two blanks between them.

    A name may have a section's before it, as `skip_gram.window`. A type is `1..9` or `0.0..0.9`
    (`>0.0..1.0`: above 0), `seed`, `share`, `flag`, words as `bpe|unigram`, or a name of `TEXTS`,
    followed by `?` where the text may be empty. `*`, `+` or `{2}` behind it make a tuple of any
    number, of one or more, or of two, and `!` says that each stands there once.
    """
    found: dict[str, Any] = {}
    for line in re.sub(r"\n +", " " * 2, textwrap.dedent(lines).strip()).splitlines():
        name, kind, meaning = re.split(" {2,}", line, maxsplit=2)
        *above, last = name.split(".")
        section = found
        for part in above:
            section = section.setdefault(part, {})
        section[last] = _field(kind, " ".join(meaning.split()))
    return found


def _field(kind: str, meaning: str) -> Field:
    match = re.fullmatch(r"(.+?)(?:([*+])|\{(\d+)\})?(!)?", kind)
    assert match, kind
    base, many, count, once = match.groups()
    if many or count:
        least = int(count or many == "+")
        most = int(count) if count else None
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
    return text(meaning, TEXTS[base.removesuffix("?")], is_needed=not base.endswith("?"))


def check(values: Any, section: Section, path: str = "") -> None:
    """Raises ValueError, naming the field and what it may be, unless all values, nested as a config
    holds them, fit a section; `path` is where the section stands in the config."""
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

    In the place of a section that was listed before stands the name that it had then: `known` has
    these by identity, and this one's are added. `path` is the section's, from the same root.
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

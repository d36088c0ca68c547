"""The fields of a JSON object in a model's folder, each read as what it must be."""

import math
import reprlib
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from xling_jax.files import read_json

LARGEST = 2**31 - 1  # of whole numbers: ids are int32
SHORTEST = 3  # positions: a piece and the two tokens around it
SIZES = (
    "vocabulary_size",
    "layers",
    "hidden",
    "intermediate",
    "heads",
    "positions",
    "token_types",
)
RANGES: dict[str, dict[str, float]] = {
    "dropout": {"at_least": 0, "below": 1},
    "norm_epsilon": {"above": 1e-38, "below": 1},  # float32 has nothing between this and 0
    "initial_sd": {"at_least": 0, "below": 100},
}
CHOICES = {"dtype": ("float32", "bfloat16"), "head": ("bert", "linear")}


class Fields:
    """A JSON object whose fields are read by type.

    A field that is missing has its default, or is refused where there is none. Every method raises
    a ValueError that names the file, the field and what it should be; true and false are no
    numbers.
    """

    def __init__(self, path: Path, value: Any, prefix: str = ""):
        """Takes the value; `prefix` stands before the names of its fields in errors."""
        self.path, self._prefix = path, prefix
        if not isinstance(value, dict):
            name = f"{prefix.removesuffix('.')}=" if prefix else ""
            raise ValueError(f"{path}: {name}{reprlib.repr(value)}: write an object, {{…}}")
        self._values: dict[str, Any] = value
        self._asked: set[str] = set()

    @classmethod
    def read(cls, path: Path) -> "Fields":
        """The object that a file holds; see `files.read_json`."""
        return cls(path, read_json(path))

    def __contains__(self, name: str) -> bool:
        """Whether a field is there and not null."""
        return self._values.get(name) is not None

    def names(self) -> Iterable[str]:
        """Those of all fields."""
        return self._values.keys()

    def get(self, name: str, default: Any = None) -> Any:
        """A field of any type."""
        self._asked.add(name)
        return self._values.get(name, default)

    def error(self, name: str, way_out: str) -> ValueError:
        """What is wrong with a field."""
        if name not in self._values:
            return ValueError(f"{self.path}: {self._prefix}{name} is missing: {way_out}")
        value = reprlib.repr(self._values[name])
        return ValueError(f"{self.path}: {self._prefix}{name}={value}: {way_out}")

    def integer(
        self, name: str, default: int | None = None, at_least: int = 0, at_most: int = LARGEST
    ) -> int:
        """A whole number in a range, both ends included."""
        value = self.get(name, default)
        if type(value) is not int or not at_least <= value <= at_most:
            raise self.error(name, f"write a whole number from {at_least} to {at_most}")
        return value

    def number(
        self,
        name: str,
        default: float | None = None,
        at_least: float = -math.inf,
        above: float = -math.inf,
        below: float = math.inf,
    ) -> float:
        """A finite number in a range."""
        value = self.get(name, default)
        # Whole numbers of any length compare with floats without an overflow.
        if type(value) not in (int, float) or not (
            at_least <= value and above < value < below and abs(value) <= sys.float_info.max
        ):
            limits = {"at least": at_least, "above": above, "below": below}
            said = " and ".join(f"{a} {b}" for a, b in limits.items() if math.isfinite(b))
            raise self.error(name, f"write a finite number {said}".rstrip())
        return float(value)

    def boolean(self, name: str, default: bool | None = None) -> bool:
        """True or false."""
        value = self.get(name, default)
        if type(value) is not bool:
            raise self.error(name, "write true or false")
        return value

    def text(self, name: str, default: str | None = None, choices: Iterable[str] = ()) -> str:
        """A string that is not empty, one of the choices if there are any."""
        value, allowed = self.get(name, default), tuple(choices)
        if type(value) is not str or not value or (allowed and value not in allowed):
            known = f"one of {', '.join(map(repr, allowed))}" if allowed else "a string"
            raise self.error(name, f"write {known}")
        return value

    def integers(
        self, name: str, length: int, default: list[int] | None = None, at_most: int = LARGEST
    ) -> list[int]:
        """A list of so many whole numbers from 0 on."""
        value = self.get(name, default)
        if (
            type(value) is not list
            or len(value) != length
            or any(type(each) is not int or not 0 <= each <= at_most for each in value)
        ):
            raise self.error(name, f"write {length} whole numbers from 0 to {at_most}")
        return value

    def texts(self, name: str) -> list[str]:
        """A list of strings."""
        value = self.get(name)
        if type(value) is not list or not all(type(each) is str for each in value):
            raise self.error(name, "write a list of strings")
        return value

    def object(self, name: str, default: Mapping[str, Any] | None = None) -> "Fields":
        """Fields of its own; null is as if the field were missing."""
        if name not in self and default is not None:
            return Fields(self.path, dict(default), f"{self._prefix}{name}.")
        if name not in self:
            raise self.error(name, "write an object, {…}")
        return Fields(self.path, self.get(name), f"{self._prefix}{name}.")

    def require_no_others(self) -> None:
        """Refuses fields that nobody asked for."""
        for name in self._values:
            if name not in self._asked:
                raise self.error(name, "no such field is known; take it out")


def bert_field(fields: Fields, ours: str, name: str, default: Any = None) -> Any:
    """The field of this name, which holds the field `ours` of a `BertConfig`."""
    if ours in SIZES:
        return fields.integer(name, default, SHORTEST if ours == "positions" else 1)
    if ours == "remat":
        return fields.boolean(name, default)
    if ours in CHOICES:
        return fields.text(name, default, CHOICES[ours])
    return fields.number(name, default, **RANGES[ours])

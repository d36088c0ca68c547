"""How every reader of examples, words, links and vectors opens its file and names a line of it."""

import os
import re
from collections.abc import Iterator

from xling_jax.corpora import sources

_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_COUNT = re.compile(r"\d{1,9}", re.ASCII)

Numbered = Iterator[tuple[int, str]]


def numbered(path: str | os.PathLike[str]) -> Numbered:
    """The lines of a text file with their numbers, from 1; see `sources.lines` for errors."""
    return enumerate(sources.lines(sources.Chunk(os.fspath(path))), 1)


def wrong(path: str | os.PathLike[str], line: int, problem: object) -> ValueError:
    """The error of a line, counted from 1."""
    return ValueError(f"{path}, line {line}: {problem}")


def number(text: str) -> float:
    """A plain decimal number: digits, point, exponent; float() reads "1_0", "nan" and "١" too.

    Raises:
      ValueError: it is none.
    """
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{text!r} is no number")
    return float(text)


def count(text: str) -> int:
    """A number in ASCII digits, nine at most.

    Raises:
      ValueError: it is none.
    """
    if not _COUNT.fullmatch(text):
        raise ValueError(f"{text!r} is no whole number of 0 or more")
    return int(text)

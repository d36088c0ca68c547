"""Links between the words of sentences and their translations, from files."""

import dataclasses
import itertools
import os

from xling_jax import numerals
from xling_jax.corpora import sources, text

Links = list[tuple[int, int]]


@dataclasses.dataclass(frozen=True)
class GoldLinks:
    """The links of a sentence, (word, word) from 0: those that a good alignment has to have, and
    others that it may have."""

    sure: Links
    possible: Links = dataclasses.field(default_factory=list)


def require_plain_blanks(sentence: str) -> None:
    """ValueError if what links count as a word, between plain blanks, is none or several here,
    where other blanks, such as U+00A0, and control characters stand between words too."""
    for word in filter(None, sentence.replace("\t", " ").rstrip().split(" ")):
        if (number := len(text.clean(word).split())) != 1:
            raise ValueError(
                f"{word!r} would be read as {number} words, and links count the words between "
                "plain blanks: put another character in the place of what stands between words"
            )


def require_lines(source: str, number: int | None = None) -> None:
    """`require_plain_blanks` of a text's lines, or its first ones; ValueError names the line."""
    lines = itertools.islice(sources.lines(sources.Chunk(source)), number)
    for place, line in enumerate(lines, 1):
        try:
            require_plain_blanks(line)
        except ValueError as error:
            raise sources.wrong(source, place, error) from error


def read(path: str | os.PathLike[str]) -> list[GoldLinks]:
    """Reads a line of links for each pair of sentences, as fast_align and others write them,
    `0-0 1-2`; `1p2` is a possible link.

    Raises:
      FileNotFoundError, ValueError: as `sources.lines`; or what is no link, whose line is named.
    """
    found: list[GoldLinks] = []
    for number, line in sources.numbered(path):
        links = GoldLinks([])
        for part in line.split():
            is_possible = "p" in part
            first, _, second = part.partition("p" if is_possible else "-")
            try:
                link = numerals.whole(first), numerals.whole(second)
            except ValueError as error:
                message = f"{part!r} is no link such as 0-1, or 0p1 for a possible one"
                raise sources.wrong(path, number, message) from error
            (links.possible if is_possible else links.sure).append(link)
        found.append(links)
    if not line:
        found.pop()  # what is behind the last line's end
    return found

"""Links between the words of sentences and their translations, from files."""

import dataclasses
import itertools
import os

from xling_jax import numerals
from xling_jax.corpora import sources, text

Links = list[tuple[int, int]]


@dataclasses.dataclass(frozen=True)
class GoldLinks:
    """The links of a pair of sentences, (word of the first, word of the second) from 0: sure ones,
    which a good alignment must have, and possible ones, which it may have."""

    sure: Links
    possible: Links = dataclasses.field(default_factory=list)

    def require_words(self, first: int, second: int) -> None:
        """Raises ValueError if a link joins words that the sentences, of so many words, lack."""
        for link in (*self.sure, *self.possible):
            if not (0 <= link[0] < first and 0 <= link[1] < second):
                raise ValueError(
                    f"the link {link[0]}-{link[1]} joins sentences of {first} and {second} words: "
                    "words are counted from 0, as they stand between blanks"
                )


def require_plain_blanks(sentence: str) -> None:
    """Raises ValueError if words are not the same for links and here. Links count words between
    plain blanks; here other blanks, such as U+00A0, and control characters separate words too."""
    for word in filter(None, sentence.replace("\t", " ").rstrip().split(" ")):
        if (number := len(text.clean(word).split())) != 1:
            raise ValueError(
                f"{word!r} would be read as {number} words, but links count the words between "
                "plain blanks: replace its blanks and control characters by visible characters"
            )


def require_lines(source: str, number: int | None = None) -> None:
    """Applies `require_plain_blanks` to the lines of a text, or the first `number`; the error names
    the line."""
    lines = itertools.islice(sources.lines(sources.Chunk(source)), number)
    for place, line in enumerate(lines, 1):
        try:
            require_plain_blanks(line)
        except ValueError as error:
            raise sources.wrong(source, place, error) from error


def read(path: str | os.PathLike[str]) -> list[GoldLinks]:
    """Reads the links of one pair of sentences per line, as fast_align and others write them:
    `0-0 1-2`; `1p2` is a possible link.

    Raises:
      FileNotFoundError, ValueError: as `sources.lines`; or something is not a link (the error names
        the line).
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
        found.pop()  # the empty line after the last line's end
    return found

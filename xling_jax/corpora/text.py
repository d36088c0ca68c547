"""Text by language: sentences from files and TFDS, parallel texts, a record of what was read."""

import dataclasses
import hashlib
import itertools
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from xling_jax.corpora import sources

_CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_BYTE_ORDER_MARK = "\ufeff"
_LINE_END = re.compile(r"\r\n|\r|\n")
# Runs of combining marks and punctuation; only one this long can have too many marks in a row.
_MARKS = re.compile(r"[^\w\s\x00-\u02ff]{31,}")
_MOST_MARKS = 30
_JOINER = "\u034f"  # U+034F, the combining grapheme joiner

Split = Callable[[str], Iterable[str]]  # a line to its sentences, see `corpora.splitting`


def no_text(source: str) -> ValueError:
    """The error of a text without a sentence."""
    return ValueError(f"{source} has no text: it is empty or holds only blank lines")


def too_few(wanted: int, source: str, number: int) -> ValueError:
    """The error of a text with fewer sentences than are wanted."""
    return ValueError(
        f"{wanted} sentences are wanted, but {source} has {number}: lower the number, take all "
        "with 0, or give more text"
    )


@dataclasses.dataclass(frozen=True)
class Text:
    """The sentences of one language, and where they came from.

    sentences: non-empty lines, see `clean`. source: as given to `read`.
    """

    language: str
    sentences: list[str]
    source: str

    def __post_init__(self) -> None:
        if not self.sentences:
            raise no_text(self.source)

    @property
    def sha256(self) -> str:
        """A hash of the sentences joined by newlines, in UTF-8."""
        return hashlib.sha256("\n".join(self.sentences).encode("utf-8")).hexdigest()


def read(
    source: str, language: str, *, split: Split | None = None, limit: int | None = None
) -> Text:
    """Reads the sentences of a text, without blank lines.

    Args:
      source: see `sources.Source`; a file has one sentence or verse per line.
      language: its name.
      split: cuts every line into sentences.
      limit: how many sentences to read, counted after the cut; by default all.

    Raises:
      FileNotFoundError, ValueError: as `sources.lines`; or there is no text, or fewer sentences
        than `limit`.
    """
    sentences = list(itertools.islice(stream([source], split), limit))
    if limit is not None and sentences and limit > len(sentences):
        raise too_few(limit, source, len(sentences))
    return Text(language, sentences, source)


def read_parallel(first: str, second: str, languages: tuple[str, str]) -> tuple[Text, Text]:
    """Reads two texts whose lines translate each other, without those that are blank in both.
    FileNotFoundError, ValueError: as `read`; or a line has text in only one of them."""
    given = first, second
    sides: tuple[list[str], list[str]] = ([], [])
    lines = [sources.lines(sources.Chunk(source)) for source in given]
    for number, pair in enumerate(itertools.zip_longest(*lines, fillvalue=""), 1):
        cleaned = [clean(line) for line in pair]
        if any(cleaned) and not all(cleaned):
            blank = 0 if cleaned[1] else 1
            is_over = not pair[blank] and next(lines[blank], None) is None
            problem = (
                f" ends after {number - 1} lines, and {given[1 - blank]} has text in line {number}"
                if is_over
                else f", line {number}: no text, and {given[1 - blank]} has text in that line"
            )
            raise ValueError(
                f"{given[blank]}{problem}: parallel texts translate each other line by line"
            )
        if all(cleaned):
            for side, line in zip(sides, cleaned, strict=True):
                side.append(line)
    return Text(languages[0], sides[0], first), Text(languages[1], sides[1], second)


def from_sentences(sentences: Iterable[str], language: str, source: str) -> Text:
    """Makes a text of sentences in memory, cleaned as in `read`."""
    return Text(language, list(sentences_of(sentences)), source)


def stream(given: Sequence[sources.Source], split: Split | None = None) -> Iterator[str]:
    """The sentences of sources, one source after the other, as in `read`, in bounded memory."""
    for source in given:
        yield from sentences_of(sources.lines(sources.Chunk(source)), split)


def sentences_of(lines: Iterable[str], split: Split | None = None) -> Iterator[str]:
    """The lines, cleaned and without blank ones; if `split` is given, the sentences that it cuts
    them into."""
    if split is None:
        yield from filter(None, map(clean, lines))
        return
    for line in lines:
        # An example of a dataset may be a document of several paragraphs.
        for paragraph in _LINE_END.split(line):
            yield from split(clean(paragraph))


def clean(line: str) -> str:
    """Composes characters (Unicode NFC), turns each run of blanks and control characters into one
    blank, and removes blanks at the ends and byte-order marks.

    Where more than 30 combining marks follow each other, a joiner is put after every 30, as in
    Unicode's Stream-Safe Text Format (UAX #15, section 13), because the time of composing grows
    with the square of their number.
    """
    line = _CONTROL_CHARACTERS.sub(" ", line).replace(_BYTE_ORDER_MARK, "")
    line = _MARKS.sub(_safe, line)
    return " ".join(unicodedata.normalize("NFC", line).split())


def manifest(texts: Iterable[Text]) -> list[dict[str, Any]]:
    """What was read, for config.json; words are separated by blanks."""
    return [
        {
            "source": text.source,
            "language": text.language,
            "sentences": len(text.sentences),
            "words": sum(len(sentence.split()) for sentence in text.sentences),
            "sha256": text.sha256,
        }
        for text in texts
    ]


def _safe(match: re.Match[str]) -> str:
    found: list[str] = []
    marks = 0
    for character in match[0]:
        classes = [unicodedata.combining(x) for x in unicodedata.normalize("NFD", character)]
        if not classes[0]:
            marks = 0
        elif marks + len(classes) > _MOST_MARKS:
            found.append(_JOINER)
            marks = 0
        marks += sum(map(bool, classes))
        found.append(character)
    return "".join(found)

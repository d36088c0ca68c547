"""Text by language: sentences from files and TFDS, parallel texts, what was read."""

import dataclasses
import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from xling_jax.corpora import sources

_CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_BYTE_ORDER_MARK = "\ufeff"
_LINE_END = re.compile(r"\r\n|\r|\n")
# Any quote closes when it stands between the mark and a blank: German closes with “ and «.
_SENTENCE_END = re.compile(r"""[.!?;:]["'“”‘’«»‹›)\]}]*(?=\s|$)|[。！？；][”’」』》〉）】]*""")


@dataclasses.dataclass(frozen=True)
class Text:
    """The sentences of one language, and where they came from.

    Attributes:
      language: the name that the data has everywhere else.
      sentences: non-empty lines in Unicode NFC, without control characters, blanks joined.
      source: as given to `read`.
      sha256: of the sentences joined by a newline, in UTF-8.
    """

    language: str
    sentences: list[str]
    source: str
    sha256: str


def read(
    source: str, language: str, *, split_sentences: bool = False, limit: int | None = None
) -> Text:
    """Reads a text.

    Blank lines are skipped, so two files are parallel only where both have text in every line.

    Args:
      source: a UTF-8 file with a sentence or verse a line, also compressed (.gz, .bz2, .xz), or
        "tfds:NAME[/CONFIG][:SPLIT][#FIELD]", whose examples are the lines (see `corpora.tfds`).
      language: its name.
      split_sentences: cut every line into sentences, see `split_sentences`.
      limit: keep the first `limit` sentences (counted after the cut).

    Raises:
      FileNotFoundError: there is no such file.
      ValueError: a folder, no text, invalid UTF-8, fewer sentences than `limit`, or a TFDS name
        that cannot be read.
    """
    sentences = list(stream([source], split_sentences=split_sentences))
    if limit is not None:
        if limit < 1:
            raise ValueError(f"limit={limit}: ask for at least one sentence, or leave limit out")
        if sentences and limit > len(sentences):
            raise ValueError(
                f"limit={limit}, but {source} has {len(sentences)} sentences: "
                "lower the limit, leave it out to take all, or give more text"
            )
        sentences = sentences[:limit]
    return _text(sentences, language, source)


def from_sentences(sentences: Iterable[str], language: str, source: str) -> Text:
    """Makes a text of sentences in memory, cleaned as in `read`; ValueError if none is left."""
    return _text(list(sentences_of(sentences)), language, source)


def stream(given: Sequence[sources.Source], *, split_sentences: bool = False) -> Iterator[str]:
    """The sentences of sources, one source after the other, as in `read`, in bounded memory."""
    for source in given:
        yield from sentences_of(sources.lines(sources.Chunk(source)), split_sentences)


def sentences_of(lines: Iterable[str], split_sentences: bool = False) -> Iterator[str]:
    """The lines cleaned, cut into sentences if asked to, and without the blank ones."""
    for line in map(clean, _cut(lines) if split_sentences else lines):
        if line:
            yield line


def clean(line: str) -> str:
    """Composes characters (Unicode NFC), and makes control characters and blanks one blank."""
    line = _CONTROL_CHARACTERS.sub(" ", line).replace(_BYTE_ORDER_MARK, "")
    return " ".join(unicodedata.normalize("NFC", line).split())


def split_sentences(line: str) -> list[str]:
    """Cuts a line after . ! ? ; : where a blank or the line's end follows, and after 。！？；.

    The mark and any closing quotes and brackets stay with their sentence; "3.5" and "a:b" stay
    whole. Abbreviations are not known: "Mr. Smith" becomes two.
    """
    ends = [match.end() for match in _SENTENCE_END.finditer(line)]
    pieces = (line[a:b].strip() for a, b in zip([0, *ends], [*ends, None], strict=True))
    return [piece for piece in pieces if piece]


def require_parallel(first: Text, second: Text) -> None:
    """Raises ValueError unless both texts have the same number of sentences."""
    if len(first.sentences) != len(second.sentences):
        raise ValueError(
            f"{first.source} ({first.language}) has {len(first.sentences)} sentences and "
            f"{second.source} ({second.language}) has {len(second.sentences)}: parallel texts "
            "need the same number. Look for a blank line in one of them, and read both without "
            "split_sentences, which cuts languages differently"
        )


def manifest(texts: Iterable[Text]) -> list[dict[str, Any]]:
    """What was read, for config.json: source, language, sentences, words (by blanks), sha256."""
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


def _cut(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        # An example of a dataset may be a document of several paragraphs.
        for paragraph in _LINE_END.split(line):
            yield from split_sentences(paragraph)


def _text(sentences: list[str], language: str, source: str) -> Text:
    if not sentences:
        raise ValueError(f"{source} has no text: it is empty or holds only blank lines")
    digest = hashlib.sha256("\n".join(sentences).encode("utf-8")).hexdigest()
    return Text(language=language, sentences=sentences, source=source, sha256=digest)

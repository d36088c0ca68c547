"""Text by language: sentences from files and TFDS, parallel texts, what was read."""

import dataclasses
import hashlib
import pathlib
import re
import unicodedata
from collections.abc import Iterable
from typing import Any

from xling_jax.corpora import tfds

_CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_BYTE_ORDER_MARK = "\ufeff"
_LINE_END = re.compile(r"\r\n|\r|\n")
# Any quote closes when it stands between the mark and a blank: German closes with “ and «.
_SENTENCE_END = re.compile(r"""[.!?;:]["'“”‘’«»‹›)\]}]*(?=\s|$)""")


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
      source: a UTF-8 file with a sentence or verse a line, or
        "tfds:NAME[/CONFIG][:SPLIT][#FIELD]", whose examples are the lines (see `corpora.tfds`).
      language: its name.
      split_sentences: cut every line into sentences, see `split_sentences`.
      limit: keep the first `limit` sentences (counted after the cut).

    Raises:
      FileNotFoundError: there is no such file.
      ValueError: a folder, no text, invalid UTF-8, fewer sentences than `limit`, or a TFDS name
        that cannot be read.
    """
    lines = tfds.read(source) if source.startswith(tfds.PREFIX) else _read_lines(source)
    sentences = _clean(_cut(lines) if split_sentences else lines)
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
    return _text(_clean(sentences), language, source)


def split_sentences(line: str) -> list[str]:
    """Cuts a line after . ! ? ; : where a blank or the line's end follows.

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


def _read_lines(source: str) -> list[str]:
    path = pathlib.Path(source).expanduser()
    if path.is_dir():
        raise ValueError(f"{source} is a folder: name one file with a sentence a line")
    if not path.exists():
        raise FileNotFoundError(
            f"{source}: no such file (looked for {path.absolute()}). Give a UTF-8 file with a "
            f"sentence a line, or {tfds.FORM}"
        )
    data = path.read_bytes()
    try:
        return _LINE_END.split(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = len(_LINE_END.findall(data[: error.start].decode("latin-1"))) + 1
        raise ValueError(
            f"{source}, line {line}: not valid UTF-8 (byte 0x{data[error.start]:02x}). "
            f"Convert the file first, for example with iconv -f latin1 -t utf-8 {source}"
        ) from error


def _cut(lines: Iterable[str]) -> list[str]:
    # An example of a dataset may be a document of several paragraphs.
    return [
        sentence
        for line in lines
        for paragraph in _LINE_END.split(line)
        for sentence in split_sentences(paragraph)
    ]


def _clean(lines: Iterable[str]) -> list[str]:
    cleaned = []
    for line in lines:
        line = _CONTROL_CHARACTERS.sub(" ", line).replace(_BYTE_ORDER_MARK, "")
        cleaned.append(" ".join(unicodedata.normalize("NFC", line).split()))
    return [line for line in cleaned if line]


def _text(sentences: list[str], language: str, source: str) -> Text:
    if not sentences:
        raise ValueError(f"{source} has no text: it is empty or holds only blank lines")
    digest = hashlib.sha256("\n".join(sentences).encode("utf-8")).hexdigest()
    return Text(language=language, sentences=sentences, source=source, sha256=digest)

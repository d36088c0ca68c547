"""Lines cut into sentences by the rules of their language."""

import dataclasses
import functools
import re
from collections.abc import Iterator
from importlib import metadata
from typing import Any

from xling_jax.corpora.normalize import rules_for

_RULES = 2  # of this module; count up when they change
_CLOSING = r"""["'“”‘’«»‹›)\]}」』〉》）】]*"""
# Marks that are nothing else, whatever stands around them.
_END = re.compile(rf"[。！？।॥]+{_CLOSING}")
_CLAUSE_END = re.compile(rf"[;:]{_CLOSING}(?=\s|$)|；{_CLOSING}")
_MARKS = ".!?。！？।॥"  # No cut stands directly behind: "v.Chr", "Yahoo!News", 『好！』
_NUMBER = re.compile(r"\s*\d")
_OPENING = "\"'“”‘’„«»‹›([{"
_WINDOW = 2**12  # characters looked at at once: sentencex's time grows with their square


@dataclasses.dataclass(frozen=True)
class Splitter:
    """Cuts a line into sentences, which keep all of its characters but blanks at their ends.

    The rules are those of sentencex (Wikimedia): abbreviations, initials, and what stands in quotes
    or brackets do not end a sentence. Moses' list of words that a full stop does not end (Koehn et
    al. 2007, from sacremoses) adds abbreviations, and German ordinals. The danda and the full-width
    marks always end one. D&S took NLTK's Punkt, which is trained on text instead.
    language: its name; see `normalize.rules_for` for the rules that it has. clauses: cut behind ;
    and : and ； too.
    """

    language: str
    clauses: bool = False

    @property
    def identity(self) -> str:
        """What decides the outcome: rules, choices and the versions of the libraries."""
        libraries = [f"{name} {metadata.version(name)}" for name in ("sentencex", "sacremoses")]
        own = [rules_for(self.language), f"clauses={self.clauses}", f"rules {_RULES}"]
        return ", ".join(own + libraries)

    def __call__(self, line: str) -> list[str]:
        """The sentences of a line that `text.clean` cleaned."""
        found = (part for piece in _cut(_END, line) for part in self._sentences(piece))
        if self.clauses:
            found = (clause for part in found for clause in _cut(_CLAUSE_END, part))
        return [sentence for part in found if (sentence := part.strip())]

    def _sentences(self, text: str) -> Iterator[str]:
        code = rules_for(self.language)
        prefixes = _prefixes(code)
        pending: list[str] = []
        is_end, needs_number = False, None  # of what is pending, and of a prefix at its end
        for part, is_whole in _segments(code, text):
            if is_end and (needs_number is None or (needs_number and not _NUMBER.match(part))):
                yield "".join(pending)
                pending = []
            pending.append(part)
            is_end = is_whole and part[-1] not in _MARKS
            word = part.rstrip().rpartition(" ")[2]
            needs_number = prefixes.get(word[:-1].lstrip(_OPENING)) if word[-1:] == "." else None
        yield "".join(pending)


def of_config(corpora: Any, language: str) -> Splitter | None:
    """How a config's section cuts lines, None: not at all; ValueError: clauses alone."""
    if corpora.split_clauses and not corpora.split_sentences:
        raise ValueError(
            "corpora.split_clauses=True cuts sentences further: set corpora.split_sentences=True "
            "too, or leave both out"
        )
    return Splitter(language, corpora.split_clauses) if corpora.split_sentences else None


def _cut(ends: re.Pattern[str], text: str) -> Iterator[str]:
    start = 0
    for match in ends.finditer(text):
        yield text[start : match.end()]
        start = match.end()
    yield text[start:]


def _segments(code: str, text: str) -> Iterator[tuple[str, bool]]:
    """The sentences that sentencex finds, window by window, and whether each ends in its own."""
    import sentencex  # imported late, as sacremoses below: most runs split nothing

    start = 0
    while start < len(text):
        window = text[start : start + _WINDOW]
        found = sentencex.segment(code, window)
        goes_on = start + len(window) < len(text)
        if goes_on and len(found) > 1:
            found, goes_on = found[:-1], False  # the last is found anew, with what follows it
        start += sum(map(len, found))
        for part in found:
            yield part, not goes_on


@functools.cache
def _prefixes(code: str) -> dict[str, bool]:
    """Words that a full stop does not end, and whether only before a number; English by default."""
    from sacremoses.corpus import NonbreakingPrefixes

    lines = NonbreakingPrefixes().words(code)
    return {line.split()[0]: "#NUMERIC_ONLY#" in line for line in lines}

"""Cuts lines into sentences by the rules of their language."""

import dataclasses
import functools
import re
from collections.abc import Iterator
from importlib import metadata
from typing import Any

from xling_jax.corpora.normalize import rules_for

_RULES = 2  # of this module; count up when they change
_CLOSING = r"""["'“”‘’«»‹›)\]}」』〉》）】]*"""
# Marks that always end a sentence, whatever stands around them.
_END = re.compile(rf"[。！？।॥]+{_CLOSING}")
# In these languages “ never closes a quotation, as it does in German.
_OPENING_ALONE = ("zh", "ja")
_END_BEFORE_OPENING = re.compile(_END.pattern.replace("“", "").replace("‘", ""))
_CLAUSE_END = re.compile(rf"[;:]{_CLOSING}(?=\s|$)|；{_CLOSING}")
_MARKS = ".!?。！？।॥"  # no cut directly after them: "v.Chr", "Yahoo!News", 『好！』
_NUMBER = re.compile(r"\s*\d")
_OPENING = "\"'“”‘’„«»‹›([{"
_WINDOW = 2**12  # characters looked at at once: sentencex's time grows with their square


@dataclasses.dataclass(frozen=True)
class Splitter:
    """Cuts a line into sentences, which keep all of its characters but blanks at their ends.

    The rules are those of sentencex (Wikimedia): abbreviations, initials, and anything in quotes or
    brackets do not end a sentence. Moses' list of words after which a full stop ends no sentence
    (Koehn et al. 2007, from sacremoses) adds abbreviations and German ordinals. The danda and the
    full-width marks always end one. D&S used NLTK's Punkt instead, which is trained on text.

    language: its name; for the rules that it has see `normalize.rules_for`. clauses: whether to cut
    after `;`, `:` and `；` too.
    """

    language: str
    clauses: bool = False

    @property
    def identity(self) -> str:
        """Everything that decides the outcome: rules, choices and the versions of the libraries."""
        libraries = [f"{name} {metadata.version(name)}" for name in ("sentencex", "sacremoses")]
        own = [rules_for(self.language), f"clauses={self.clauses}", f"rules {_RULES}"]
        own += ["“ opens"] if self._end is not _END else []
        return ", ".join(own + libraries)

    @property
    def _end(self) -> re.Pattern[str]:
        return _END_BEFORE_OPENING if rules_for(self.language) in _OPENING_ALONE else _END

    def __call__(self, line: str) -> list[str]:
        """The sentences of a line, which `text.clean` must have cleaned."""
        found = (part for piece in _cut(self._end, line) for part in self._sentences(piece))
        if self.clauses:
            found = (clause for part in found for clause in _cut(_CLAUSE_END, part))
        return [sentence for part in found if (sentence := part.strip())]

    def _sentences(self, text: str) -> Iterator[str]:
        code = rules_for(self.language)
        prefixes = _prefixes(code)
        pending: list[str] = []
        # is_end: whether a sentence may end after `pending`. needs_number: None unless `pending`
        # ends with a prefix; then whether that needs a number next.
        is_end, needs_number = False, None
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
    """The splitter that a config's section asks for; None if lines are not to be cut. ValueError if
    clauses are to be cut, but not sentences."""
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
    """The sentences that sentencex finds, window by window, and whether each is complete."""
    import sentencex  # imported late, as sacremoses below: most runs split nothing

    start = 0
    while start < len(text):
        window = text[start : start + _WINDOW]
        found = sentencex.segment(code, window)
        goes_on = start + len(window) < len(text)
        if goes_on and len(found) > 1:
            found, goes_on = found[:-1], False  # the last is cut anew, with the text that follows
        start += sum(map(len, found))
        for part in found:
            yield part, not goes_on


@functools.cache
def _prefixes(code: str) -> dict[str, bool]:
    """Words after which a full stop ends no sentence, and whether that is so only before a number;
    English ones for languages without a list."""
    from sacremoses.corpus import NonbreakingPrefixes

    lines = NonbreakingPrefixes().words(code)
    return {line.split()[0]: "#NUMERIC_ONLY#" in line for line in lines}

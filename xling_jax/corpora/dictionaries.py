"""Bilingual dictionaries: words and their translations, with weights, from files."""

import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from xling_jax import numerals
from xling_jax.corpora import sources
from xling_jax.corpora.text import clean

FEWEST_WRONG = 10  # words in the wrong column before columns count as exchanged; fewer are chance
_LEAST, _MOST = 1e-100, 1e100  # bounds of weights, so that sums and shares are finite and above 0

Translations = tuple[tuple[str, float], ...]


@dataclasses.dataclass(frozen=True)
class Dictionary:
    """Words of one language with their translations into another.

    entries: for each word or phrase, in the order of the file, its translations, each once, with
    weights above 0. Weights compare the translations of one word with each other.
    """

    source_language: str
    target_language: str
    entries: dict[str, Translations]

    @property
    def triples(self) -> Iterator[tuple[str, str, float]]:
        """Every word, translation and weight."""
        for word, translations in self.entries.items():
            for translation, weight in translations:
                yield word, translation, weight

    def reverse(self) -> "Dictionary":
        """The dictionary in the other direction; every pair keeps its weight."""
        triples = ((translation, word, weight) for word, translation, weight in self.triples)
        return _dictionary(triples, self.target_language, self.source_language)

    def map(self, word: Callable[[str], str], translation: Callable[[str], str]) -> "Dictionary":
        """The dictionary with words and translations rewritten, without pairs where one is ""."""
        triples = ((word(x), translation(y), weight) for x, y, weight in self.triples)
        kept = (triple for triple in triples if triple[0] and triple[1])
        return _dictionary(kept, self.source_language, self.target_language)

    def apart_from(self, other: "Dictionary") -> "Dictionary":
        """The pairs of which neither word is in another dictionary of the same languages."""
        translations = {translation for _, translation, _ in other.triples}
        kept = (x for x in self.triples if x[0] not in other.entries and x[1] not in translations)
        return _dictionary(kept, self.source_language, self.target_language)

    def require_direction(self, source_lines: Iterable[str], target_lines: Iterable[str]) -> None:
        """Raises ValueError if text of the two languages shows that the columns are exchanged: of
        the words that only one of the texts has, many, and most, are in the other one's column."""
        words = {word.casefold() for word in self.entries}
        others = {translation.casefold() for _, translation, _ in self.triples}
        known = words | others
        source, target = (
            {word for line in lines for word in line.casefold().split() if word in known}
            for lines in (source_lines, target_lines)
        )
        first, second = source - target, target - source
        right = len(words & first) + len(others & second)
        wrong = len(words & second) + len(others & first)
        if wrong >= FEWEST_WRONG and wrong > 2 * right:
            raise ValueError(
                f"{wrong:,} of its words are in the text of the wrong language alone, {right:,} in "
                f"that of the right one: put the words of {self.source_language} before those of "
                f"{self.target_language}"
            )

    def with_capitals(self) -> "Dictionary":
        """Adds each lower-case word capitalised, with capitalised translations, unless it is an
        entry already: so a lower-case dictionary covers the first words of sentences too."""
        entries = dict(self.entries)
        for word, translations in self.entries.items():
            if word == word.lower():
                capitals = tuple((_capitalised(text), weight) for text, weight in translations)
                entries.setdefault(_capitalised(word), capitals)
        return dataclasses.replace(self, entries=entries)


def read(
    path: str | os.PathLike[str], source_language: str, target_language: str, *, lowercase=False
) -> Dictionary:
    """Reads a dictionary with one pair per line, in UTF-8.

    A line has one of these forms:
      * word, tab, translation (MUSE, PanLex, XLing-Eval), where both may be phrases with blanks;
      * the same, followed by a tab and a weight, such as PanLex's translation quality;
      * word, blanks, translation (MUSE);
      * word, blanks, translation, tab, weight; if one line has this form and one has no tab, or
        most lines have this form, all must have it.

    A pair without a weight has weight 1; the weights of repeated pairs are summed. Blank lines are
    skipped; text is put into Unicode NFC. `lowercase` applies to the words, not to translations:
    MUSE is lower-case already; other dictionaries capitalise words that running text does not.

    FileNotFoundError, ValueError: as `sources.lines`; or there are no pairs, or a line has too few
    or too many columns or a weight that is not from 1e-100 to 1e100; the error names file and line.
    """
    lines = [(number, line) for number, line in sources.numbered(path) if line.strip()]
    if not lines:
        raise ValueError(f"{path} has no pairs: it is empty or holds only blank lines")
    weighted = sum(_is_blanks_then_weight(line) for _, line in lines)
    has_blanks = any("\t" not in line for _, line in lines)
    blanks_then_weight = 2 * weighted > len(lines) or bool(weighted and has_blanks)
    triples = []
    for number, line in lines:
        try:
            word, translation, weight = _parse(line, blanks_then_weight)
        except ValueError as error:
            raise sources.wrong(path, number, error) from error
        triples.append((word.lower() if lowercase else word, translation, weight))
    return _dictionary(triples, source_language, target_language)


def from_pairs(
    pairs: Iterable[tuple[str, str]], source_language: str, target_language: str
) -> Dictionary:
    """Makes a dictionary of pairs in memory; a pair's weight is how often it occurs. ValueError if
    there are none, or one does not hold two strings."""
    triples = []
    for pair in pairs:
        match list(pair) if isinstance(pair, tuple | list | np.ndarray) else pair:
            case [str(word), str(translation)]:
                triples.append((clean(word), clean(translation), 1.0))
            case _:
                raise ValueError(
                    f"{pair!r}: give a word and its translation, such as ('dog', 'Hund')"
                )
    if not triples:
        raise ValueError("there are no pairs: give words and their translations")
    return _dictionary(triples, source_language, target_language)


def common_source(dictionaries: Iterable[Dictionary]) -> str:
    """The source language of dictionaries into different languages; ValueError if they have several
    source languages, or a target language twice."""
    pairs = [(each.source_language, each.target_language) for each in dictionaries]
    sources, targets = {source for source, _ in pairs}, {target for _, target in pairs}
    if len(sources) != 1 or len(targets) < len(pairs):
        raise ValueError(
            f"dictionaries of {', '.join('-'.join(pair) for pair in pairs) or 'no languages'}: "
            "give dictionaries of one source language, one for each target language"
        )
    return sources.pop()


def _dictionary(
    triples: Iterable[tuple[str, str, float]], source_language: str, target_language: str
) -> Dictionary:
    merged: dict[str, dict[str, float]] = {}
    for word, translation, weight in triples:
        weights = merged.setdefault(word, {})
        weights[translation] = weights.get(translation, 0.0) + weight
    entries = {word: tuple(weights.items()) for word, weights in merged.items()}
    return Dictionary(source_language, target_language, entries)


def _is_blanks_then_weight(line: str) -> bool:
    columns = line.split("\t")
    if len(columns) != 2 or len(columns[0].split()) != 2:
        return False
    try:
        float(columns[1])  # accepts wrong weights too, so that none is taken for a translation
    except ValueError:
        return False
    return True


def _parse(line: str, blanks_then_weight: bool) -> tuple[str, str, float]:
    """The word, translation and weight of a line; ValueError says what is wrong with it."""
    columns = line.split("\t")
    if len(columns) == 1 or blanks_then_weight:
        columns[:1] = columns[0].split()
        most, advice = 2 + blanks_then_weight, "; put tabs between them where a phrase has blanks"
    else:
        most, advice = 3, ""
    columns = [clean(column) for column in columns]
    if len(columns) == 1:
        raise ValueError(
            f"one column, {line!r}; give a word and its translation with a tab or a blank between"
        )
    if len(columns) > most:
        raise ValueError(f"{len(columns)} columns, {line!r}; {most} are the most{advice}")
    if not all(columns):
        raise ValueError(f"an empty column, {line!r}; give a word and its translation")
    if blanks_then_weight and len(columns) == 2:
        raise ValueError(
            f"no weight, {line!r}; other lines of this file have two words with a blank between, "
            "and a weight behind a tab: give every line a weight, or put a tab between each word "
            "and its translation"
        )
    weight = 1.0
    if len(columns) == 3:
        try:
            weight = numerals.decimal(columns[2])
        except ValueError:
            weight = 0.0
        if not _LEAST <= weight <= _MOST:
            raise ValueError(
                f"the weight {columns[2]!r} is no positive number from {_LEAST:g} to {_MOST:g}"
            )
    return columns[0], columns[1], weight


def _capitalised(text: str) -> str:
    return text[:1].title() + text[1:]

"""Extra anchors: words of a text replaced by translations (Wu, Conneau et al. 2020 §4.2).

Each word of the dictionary is replaced with probability 0.3, by a translation drawn by its
quality, and at most 15 % of the words of a batch change; here of every block of text by itself,
and so of every batch. All is done on the host, on token ids. For words replaced *once*, `switch`
the text block by block before training; `switch_window` replaces *online*, anew each epoch.
"""

import bisect
import dataclasses
import itertools
import math
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from xling_jax.corpora.dictionaries import Dictionary, common_source
from xling_jax.vocabulary.pieces import SPECIAL_TOKENS, UNK

CODE_SWITCH = 13  # tells these random numbers from others of the same seed
DRAWN_TOGETHER = 512  # places of a stream whose random numbers are made together
JOINERS = ("-", "‐", "'", "’")  # marks inside a word: well-known, aujourd'hui

Encode = Callable[[Sequence[str]], Sequence[np.ndarray]]
Entry = tuple[tuple[bytes, ...], tuple[float, ...]]


def word_starts(names: Sequence[str]) -> np.ndarray:
    """Which ids begin a word, bool [V], by the pieces' names.

    Pieces that begin with "▁" do, and marks, so that "dog" is found in "dog."; hyphens and
    apostrophes inside a word do not. A word after an opening mark, as in "(dog", is found only in
    tokenised text, and words of languages without blanks only in segmented text.
    """

    def is_mark(name: str) -> bool:
        return name not in JOINERS and all(unicodedata.category(x)[0] in "PS" for x in name)

    return np.array([name.startswith("▁") or is_mark(name) for name in names], bool)


@dataclasses.dataclass(frozen=True)
class PieceDictionary:
    """The translations of one language's words as token ids.

    starts: bool [V], which ids begin a word; no special token does. entries: for each word its
    translations, and their probabilities summed up to each. Words and translations are the bytes of
    their int32 ids.
    """

    starts: np.ndarray
    entries: dict[bytes, Entry]

    @classmethod
    def build(
        cls, dictionaries: Sequence[Dictionary], encode: Mapping[str, Encode], starts: np.ndarray
    ) -> "PieceDictionary":
        """Puts dictionaries of one source language into token ids.

        A translation is drawn in proportion to its weight among those into its language; if several
        languages translate a word, their shares are equal. A capitalised word that is no entry
        itself has the translations of its lower-case form, capitalised.

        Args:
          dictionaries: of one source language, each into another language.
          encode: for each language, words to ids of the joint vocabulary, with the leading "▁"
            (`Pieces.encode`, and what then maps the ids).
          starts: bool [V], which ids begin a word, see `word_starts`.

        Raises:
          ValueError: several source languages, a target language twice, a language without an
            encoding, or nothing is left.
        """
        source = common_source(dictionaries)
        if missing := {source, *(x.target_language for x in dictionaries)}.difference(encode):
            raise ValueError(f"encode has no encoding for {', '.join(sorted(missing))}")
        starts = np.array(starts, bool)
        starts[: len(SPECIAL_TOKENS)] = False
        groups: dict[bytes, list[list[tuple[bytes, float]]]] = {}
        phrases = unknown = 0
        for dictionary in dictionaries:
            forms = dictionary.with_capitals().entries
            words = _encoded(forms, encode[source])
            texts = dict.fromkeys(text for pairs in forms.values() for text, _ in pairs)
            translations = _encoded(texts, encode[dictionary.target_language])
            for form, pairs in forms.items():
                word, count = words[form], len(pairs) if form in dictionary.entries else 0
                if word is None:
                    unknown += count
                elif np.flatnonzero(starts[np.frombuffer(word, np.int32)]).tolist() != [0]:
                    phrases += count
                else:
                    group = [(x, weight) for text, weight in pairs if (x := translations[text])]
                    unknown += len(pairs) - len(group) if count else 0
                    groups.setdefault(word, []).append(group)
        entries = {word: _entry(found) for word, found in groups.items() if any(found)}
        if not entries:
            raise ValueError(
                f"dictionaries: no word of {source} is left. {phrases} pairs translate no single "
                f"word by `starts`, and the vocabulary lacks characters of {unknown}"
            )
        return cls(starts, entries)

    @property
    def translation_ids(self) -> np.ndarray:
        """The ids of all translations, in increasing order."""
        translations = b"".join(x for every, _ in self.entries.values() for x in every)
        return np.unique(np.frombuffer(translations, np.int32))


@dataclasses.dataclass(frozen=True)
class Switched:
    """A block of text with words replaced. tokens: int32, the new ids. changed: words replaced.
    words: all of the block's words."""

    tokens: np.ndarray
    changed: int
    words: int


def switch(
    tokens: np.ndarray,
    dictionary: PieceDictionary,
    seed_parts: Sequence[int],
    *,
    probability: float = 0.3,
    most: float = 0.15,
) -> Switched:
    """Replaces words of a block (ids of the joint vocabulary) by translations.

    A word runs from an id that begins one to the next such id, special token (an id below 5) or the
    block's end. A translation that equals the word changes nothing and does not count.

    Args:
      seed_parts: integers from 0 that name the block: (seed, language, epoch, block). The random
        numbers depend on them and the place in the block alone.
      probability: with which each word of the dictionary is chosen.
      most: where more than floor(most * words) are chosen, a random subset of so many is kept.
    """
    tokens = np.ascontiguousarray(tokens, np.int32)
    words, changes = _draw(tokens, dictionary, 0, seed_parts, probability)
    changes = changes.some(_bound(most, len(words)))
    return Switched(changes.apply(tokens), len(changes.starts), len(words))


def switch_window(
    read: Callable[[int, int], np.ndarray],
    start: int,
    length: int,
    dictionary: PieceDictionary,
    seed_parts: Sequence[int],
    *,
    probability: float = 0.3,
    most: float = 0.15,
) -> Switched:
    """Replaces words of a window of a stream by translations, as `switch` does.

    The result has exactly `length` tokens. With longer translations the window's last words are
    left out, and its end may cut a word or translation in two; with shorter ones it runs on into
    the next window's text. What is left of a word that begins before the window stays. Of the words
    that the window shows floor(most * words) change at most.

    A word's random numbers depend on `seed_parts` and its place in the stream alone: windows are
    made in any order and process, and each epoch draws anew. With epoch 0 always, a word has the
    same draw in every window, except behind the stream's end, where places go on counting; only
    where windows are cut differently may `most` keep others.

    Args:
      read: gives int [n] of the stream for (start, n), going on with its beginning at its end.
      start, length: the window's first token, and its size.
      seed_parts: integers from 0 that name the stream: (seed, language, epoch).
    """
    number = length
    while True:
        number += number // 4 + 8  # usually enough for a window that gets shorter
        tokens = np.ascontiguousarray(read(start, number), np.int32)
        if len(tokens) != number:
            raise ValueError(
                f"read({start}, {number}) gave {len(tokens)} tokens: let it go on with the "
                "stream's beginning at its end"
            )
        words, changes = _draw(tokens, dictionary, start, seed_parts, probability)
        # The last word may go on, so it must stand after the window whatever is replaced.
        certain = words[-1] if len(words) else number
        if certain + np.minimum(changes.growth, 0).sum() >= length:
            break
    while True:
        shown = int(np.searchsorted(changes.places_of(words), length))
        changed = int(np.searchsorted(changes.places_of(changes.starts), length))
        surplus = changed - _bound(most, shown)
        if surplus <= 0:
            return Switched(changes.apply(tokens)[:length], changed, shown)
        changes = changes.some(len(changes.starts) - surplus)


@dataclasses.dataclass(frozen=True)
class _Changes:
    """What is replaced, in the order of the text, all [changes].

    starts, ends: a word's first place and the first after it. texts: its translation, as bytes.
    growth: tokens that each adds. priority: uniform, the smallest are kept.
    """

    starts: np.ndarray
    ends: np.ndarray
    texts: np.ndarray
    growth: np.ndarray
    priority: np.ndarray

    def some(self, number: int) -> "_Changes":
        """A random `number` of them, or all."""
        chosen = np.sort(np.argsort(self.priority)[:number])
        return _Changes(*(getattr(self, x.name)[chosen] for x in dataclasses.fields(self)))

    def places_of(self, starts: np.ndarray) -> np.ndarray:
        """Where words that start at `starts` come to stand."""
        moved = np.concatenate([[0], np.cumsum(self.growth)])
        return starts + moved[np.searchsorted(self.starts, starts)]

    def apply(self, tokens: np.ndarray) -> np.ndarray:
        data, parts, done = tokens.tobytes(), [], 0
        starts, ends = self.starts * tokens.itemsize, self.ends * tokens.itemsize
        for start, end, text in zip(starts.tolist(), ends.tolist(), self.texts, strict=True):
            parts += [data[done:start], text]
            done = end
        return np.frombuffer(bytearray().join([*parts, data[done:]]), np.int32)


def _draw(
    tokens: np.ndarray,
    dictionary: PieceDictionary,
    start: int,
    seed_parts: Sequence[int],
    probability: float,
) -> tuple[np.ndarray, _Changes]:
    """The first place of every word, and all changes that are chosen, without a bound."""
    chance, which = _uniform(start, len(tokens), seed_parts).T
    begins = dictionary.starts[tokens]
    borders = np.flatnonzero(begins | (tokens < len(SPECIAL_TOKENS)))
    is_word = begins[borders]
    words, ends = borders[is_word], np.append(borders, len(tokens))[1:][is_word]

    # Before [UNK] stands only a part of a word.
    chosen = (chance[words] < probability) & (np.append(tokens, 0)[ends] != UNK)
    starts, ends = words[chosen], ends[chosen]
    data, size = tokens.tobytes(), tokens.itemsize
    columns = (starts * size).tolist(), (ends * size).tolist(), which[starts].tolist()
    texts = np.array(
        [_translate(data[a:b], dictionary, x) for a, b, x in zip(*columns, strict=True)], object
    )
    found = texts.astype(bool)
    starts, ends, texts = starts[found], ends[found], texts[found]
    growth = np.array([len(text) for text in texts], int) // size - (ends - starts)
    return words, _Changes(starts, ends, texts, growth, chance[starts])


def _translate(word: bytes, dictionary: PieceDictionary, number: float) -> bytes:
    """The translation drawn by a number in [0, 1); nothing where the word stays as it is."""
    if word not in dictionary.entries:
        return b""
    translations, sums = dictionary.entries[word]
    drawn = translations[bisect.bisect_right(sums, number, hi=len(sums) - 1)]
    return b"" if drawn == word else drawn


def _uniform(start: int, number: int, seed_parts: Sequence[int]) -> np.ndarray:
    """Random numbers of the places from `start` on, [number, 2]."""
    first, skip = divmod(start, DRAWN_TOGETHER)
    blocks = [
        np.random.default_rng([CODE_SWITCH, *seed_parts, block]).random((DRAWN_TOGETHER, 2))
        for block in range(first, (start + number) // DRAWN_TOGETHER + 1)
    ]
    return np.concatenate(blocks)[skip : skip + number]


def _bound(most: float, words: int) -> int:
    return math.floor(most * words + 1e-9)  # 0.29 * 100 is less than 29


def _encoded(texts: Iterable[str], encode: Encode) -> dict[str, bytes | None]:
    """The ids of each text as bytes; None where [UNK] is among them, or no id."""
    texts = list(texts)
    every = (np.asarray(ids, np.int32) for ids in encode(texts))
    return {
        text: None if UNK in ids.tolist() or not len(ids) else ids.tobytes()
        for text, ids in zip(texts, every, strict=True)
    }


def _entry(groups: list[list[tuple[bytes, float]]]) -> Entry:
    """Joins a word's translations into each language; all that have some have equal shares."""
    groups = [group for group in groups if group]
    texts = [text for group in groups for text, _ in group]
    shares = [w / sum(x for _, x in group) / len(groups) for group in groups for _, w in group]
    return tuple(texts), tuple(itertools.accumulate(shares))

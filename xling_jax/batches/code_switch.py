"""Extra anchors: words of a text replaced by translations (Wu, Conneau et al. 2020 §4.2).

In the paper each word in the dictionary is replaced with probability 0.3, by a translation drawn
in proportion to its quality, and at most 15 % of the words of a batch change. Here that limit holds
for every block or window of text. Everything happens on the host, on token ids. To replace words
*once*, `switch` the text block by block before training; to replace them *online*, anew each epoch,
use `switch_window`.
"""

import bisect
import dataclasses
import itertools
import math
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from xling_jax.corpora.dictionaries import Dictionary, common_source
from xling_jax.vocabulary.pieces import BLANK, SPECIALS, UNK

CODE_SWITCH = 13  # tells these random numbers from others of the same seed
DRAWN_TOGETHER = 512  # consecutive places whose random numbers are drawn in one call
JOINERS = ("-", "‐", "'", "’")  # marks inside a word: well-known, aujourd'hui

Encode = Callable[[Sequence[str]], Sequence[np.ndarray]]
Entry = tuple[tuple[bytes, ...], tuple[float, ...]]


def word_starts(names: Sequence[str]) -> np.ndarray:
    """Which ids begin a word, bool [V], judged by the pieces' names.

    Pieces that start with `BLANK` begin a word, and so do punctuation marks and symbols, so that
    "dog" is found in "dog."; hyphens and apostrophes inside a word do not. A word after an opening
    mark, as in "(dog", is found only in tokenised text, and words of languages without blanks only
    in segmented text.
    """

    def is_mark(name: str) -> bool:
        return name not in JOINERS and all(unicodedata.category(x)[0] in "PS" for x in name)

    return np.array([name.startswith(BLANK) or is_mark(name) for name in names], bool)


@dataclasses.dataclass(frozen=True)
class PieceDictionary:
    """The translations of one language's words as token ids.

    Attributes:
      starts: bool [V], which ids begin a word; no special token does.
      entries: for each word its translations and their cumulative probabilities. Words and
        translations are the bytes of their int32 ids.
    """

    starts: np.ndarray
    entries: dict[bytes, Entry]

    @classmethod
    def build(
        cls, dictionaries: Sequence[Dictionary], encode: Mapping[str, Encode], starts: np.ndarray
    ) -> "PieceDictionary":
        """Converts dictionaries of one source language to token ids.

        If several languages translate a word, each has an equal share of the probability; within
        a language, translations share it in proportion to their weights. A capitalised word
        without an entry of its own gets the capitalised translations of its lower-case form.

        Args:
          dictionaries: from one source language, each into a different target language.
          encode: for each language, a function from words to ids of the joint vocabulary, with the
            leading `BLANK` (`Pieces.encode`, followed by any mapping of the ids).
          starts: bool [V], which ids begin a word, see `word_starts`.

        Raises:
          ValueError: several source languages, a target language twice, a language missing from
            `encode`, or no entry left.
        """
        source = common_source(dictionaries)
        if missing := {source, *(x.target_language for x in dictionaries)}.difference(encode):
            raise ValueError(f"encode has no encoding for {', '.join(sorted(missing))}")
        starts = np.array(starts, bool)
        starts[:SPECIALS] = False
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
                f"no word of {source} is left: {phrases} pairs translate something other than one "
                f"word, and the vocabulary lacks characters of {unknown}; give a dictionary whose "
                "words occur in the text"
            )
        return cls(starts, entries)

    @property
    def translation_ids(self) -> np.ndarray:
        """The ids of all translations, in increasing order."""
        translations = b"".join(x for every, _ in self.entries.values() for x in every)
        return np.unique(np.frombuffer(translations, np.int32))


@dataclasses.dataclass(frozen=True)
class Switched:
    """A block of text with words replaced.

    tokens: int32, the new ids. changed: number of words replaced. words: number of words in all.
    """

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

    A word runs from an id that begins one up to the next such id, special token (an id below 5) or
    the end of the block. A translation that equals the word changes nothing and does not count.

    Args:
      seed_parts: non-negative integers that identify the block: (seed, language, epoch, block). The
        random numbers depend only on these and on the place in the block.
      probability: the chance of each word in the dictionary to be replaced.
      most: the largest share of words replaced: if more than floor(most * words) are chosen, a
        random subset of that size is kept.
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

    The result has exactly `length` tokens. If translations are longer than the words, the window's
    last words are dropped, and its end may cut a word or translation in two; if they are shorter,
    the window runs on into the text of the next one. The rest of a word that begins before the
    window is left as it is. At most floor(most * words) of the words in the window change.

    A word's random numbers depend only on `seed_parts` and on its place in the stream, so windows
    can be made in any order and by any process, and each epoch draws anew. If the epoch is always
    0, a word has the same draw in every window (except beyond the end of the stream, where places
    count on); but windows cut differently may keep other words because of `most`.

    Args:
      read: returns the n tokens of the stream from `start` on, given (start, n), continuing at its
        beginning when it reaches the end.
      start, length: the window's first token, and its size.
      seed_parts: non-negative integers that identify the stream: (seed, language, epoch).
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
        # The last word read may be incomplete, so it must end up behind the window in any case.
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
    """The replacements in the order of the text, all [changes].

    starts, ends: a word's first place and the first after it. texts: its translation, as bytes.
    growth: how many tokens the translation adds. priority: a random number; the smallest are kept.
    """

    starts: np.ndarray
    ends: np.ndarray
    texts: np.ndarray
    growth: np.ndarray
    priority: np.ndarray

    def some(self, number: int) -> "_Changes":
        """A random `number` of them, or all if there are fewer."""
        chosen = np.sort(np.argsort(self.priority)[:number])
        return _Changes(*(getattr(self, x.name)[chosen] for x in dataclasses.fields(self)))

    def places_of(self, starts: np.ndarray) -> np.ndarray:
        """The places, after all replacements, of words that start at `starts`."""
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
    """The first place of every word, and all replacements chosen, before `most` limits them."""
    chance, which = _uniform(start, len(tokens), seed_parts).T
    begins = dictionary.starts[tokens]
    borders = np.flatnonzero(begins | (tokens < SPECIALS))
    is_word = begins[borders]
    words, ends = borders[is_word], np.append(borders, len(tokens))[1:][is_word]

    # A word that [UNK] follows is only part of one.
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
    """The translation drawn by a number in [0, 1); empty if the word stays as it is."""
    if word not in dictionary.entries:
        return b""
    translations, sums = dictionary.entries[word]
    drawn = translations[bisect.bisect_right(sums, number, hi=len(sums) - 1)]
    return b"" if drawn == word else drawn


def _uniform(start: int, number: int, seed_parts: Sequence[int]) -> np.ndarray:
    """Random numbers for the places from `start` on, [number, 2]."""
    first, skip = divmod(start, DRAWN_TOGETHER)
    blocks = [
        np.random.default_rng([CODE_SWITCH, *seed_parts, block]).random((DRAWN_TOGETHER, 2))
        for block in range(first, (start + number) // DRAWN_TOGETHER + 1)
    ]
    return np.concatenate(blocks)[skip : skip + number]


def _bound(most: float, words: int) -> int:
    return math.floor(most * words + 1e-9)  # in floats, 0.29 * 100 is less than 29


def _encoded(texts: Iterable[str], encode: Encode) -> dict[str, bytes | None]:
    """The ids of each text as bytes; None if they contain [UNK], or there are none."""
    texts = list(texts)
    every = (np.asarray(ids, np.int32) for ids in encode(texts))
    return {
        text: None if UNK in ids.tolist() or not len(ids) else ids.tobytes()
        for text, ids in zip(texts, every, strict=True)
    }


def _entry(groups: list[list[tuple[bytes, float]]]) -> Entry:
    """Joins a word's translations into several languages, giving each language the same share."""
    groups = [group for group in groups if group]
    texts = [text for group in groups for text, _ in group]
    shares = [w / sum(x for _, x in group) / len(groups) for group in groups for _, w in group]
    return tuple(texts), tuple(itertools.accumulate(shares))

"""Labelled sentences, or pairs of them, as rows of tokens.

A sentence too long for the model continues in further rows, cut between words, so that no word is
lost; each row begins and ends with the model's special tokens. A pair has one row, and what does
not fit is cut. A labelled item (a word, or a whole pair) has one place, that of its first token.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

CLASSIFIER, PARSER = "classifier", "parser"
KINDS = {CLASSIFIER: 1, PARSER: 2}  # number of labels of an item: a class; a head and a relation
NONE = -1
MULTIPLE = 8  # row lengths are rounded up to a multiple of this
SHORTEST = 16  # the least T and W of a bucket


@dataclasses.dataclass(frozen=True)
class Encoded:
    """An example as the model reads it.

    Attributes:
      rows: ids, special tokens included.
      types: token types of each row: 1 in the second sentence of a pair if the model tells it
        apart, otherwise 0.
      places: of each labelled item, (row, place in the row).
      cut: how many pieces did not fit.
    """

    rows: list[np.ndarray]
    types: list[np.ndarray]
    places: list[tuple[int, int]]
    cut: int = 0


def sentence(
    pieces: Sequence[np.ndarray], special_ids: tuple[int, int], longest: int, inverted: bool = False
) -> Encoded:
    """Encodes a sentence with a label on each word.

    Args:
      pieces: the ids of each word, in the order of the text.
      special_ids: the ids at the beginning and the end of each row.
      longest: the most places of a row, special ids included; a word without room in it is cut.
      inverted: puts the last word first. The pieces of each word must be reversed already.
    """
    room, cut = longest - 2, 0
    rows: list[list[int]] = [[]]
    places = []
    for word in reversed(pieces) if inverted else pieces:
        kept = (word[-room:] if inverted else word[:room]).tolist()
        cut += len(word) - len(kept)
        if len(rows[-1]) + len(kept) > room:
            rows.append([])
        first = len(kept) - 1 if inverted else 0
        places.append((len(rows) - 1, len(rows[-1]) + 1 + first))
        rows[-1] += kept
    if inverted:
        places.reverse()
    surrounded = [np.array([special_ids[0], *row, special_ids[1]], np.int32) for row in rows]
    return Encoded(surrounded, [np.zeros_like(row) for row in surrounded], places, cut)


def pair(
    first: np.ndarray,
    second: np.ndarray,
    special_ids: tuple[int, int],
    longest: int,
    has_types: bool,
    inverted: bool = False,
) -> Encoded:
    """Encodes two sentences in one row, with the label on its first place.

    The longer one, or the first if they are equally long, loses a piece from its end until both
    fit, with special ids before, between and after them. Of equally long ones XLM's tokenizer in
    `transformers` cuts the second, and the others do so if the first was longer at the outset.

    has_types: whether the model marks the second by its token type. inverted: whether the ids of
    both are reversed, so that each sentence's end comes first.
    """
    sizes, room = [len(first), len(second)], longest - 3
    cut = max(0, sum(sizes) - room)
    for _ in range(cut):
        sizes[sizes[0] < sizes[1]] -= 1
    kept = [
        ids[len(ids) - size :] if inverted else ids[:size]
        for ids, size in zip((first, second), sizes, strict=True)
    ]
    both = [special_ids[0], *kept[0], special_ids[1], *kept[1], special_ids[1]]
    types = np.zeros(len(both), np.int32)
    types[sizes[0] + 2 :] = int(has_types)
    return Encoded([np.array(both, np.int32)], [types], [(0, 0)], cut)


@dataclasses.dataclass(frozen=True)
class Examples:
    """N examples in one array of rows.

    Attributes:
      tokens, types: int32 [rows, T].
      lengths: int32 [rows].
      first, count: int32 [N], an example's first row, and how many it has.
      parts: int32 [rows], a row's number within its example.
      places: int32 [N, W], of the labelled items, counted from the beginning of the example's first
        row; NONE after the last.
      labels: int32 [N, W, kinds].
    """

    tokens: np.ndarray
    types: np.ndarray
    lengths: np.ndarray
    first: np.ndarray
    count: np.ndarray
    parts: np.ndarray
    places: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.first)

    @classmethod
    def of(
        cls,
        encoded: Sequence[Encoded],
        labels: Sequence[np.ndarray],
        shape: tuple[int, int, int] | None = None,
    ) -> "Examples":
        """Puts examples together. labels: int32 [labelled items, kinds] of each. shape: the number
        of rows, T and W; by default as much as the examples need."""
        rows = [row for example in encoded for row in example.rows]
        types = [types for example in encoded for types in example.types]
        longest = max(map(len, rows))
        widest = max(len(example.places) for example in encoded)
        needed = len(rows), -(-longest // MULTIPLE) * MULTIPLE, widest
        total, length, widest = shape or needed
        filling = [np.zeros(0, np.int32)] * (total - len(rows))
        count = np.array([len(example.rows) for example in encoded], np.int32)
        places = np.full((len(encoded), widest), NONE, np.int32)
        known = np.full((len(encoded), widest, labels[0].shape[1]), NONE, np.int32)
        for number, (example, own) in enumerate(zip(encoded, labels, strict=True)):
            flat = [row * length + place for row, place in example.places]
            places[number, : len(flat)] = flat
            known[number, : len(flat)] = own
        return cls(
            _padded(rows + filling, length),
            _padded(types + filling, length),
            np.array([len(row) for row in rows + filling], np.int32),
            np.cumsum(count, dtype=np.int32) - count,
            count,
            np.concatenate([np.arange(n, dtype=np.int32) for n in [*count, len(filling)]]),
            places,
            known,
        )


def _padded(rows: Sequence[np.ndarray], length: int) -> np.ndarray:
    found = np.zeros((len(rows), length), np.int32)
    for row, values in zip(found, rows, strict=True):
        row[: len(values)] = values
    return found


def buckets(encoded: Sequence[Encoded]) -> list[tuple[list[int], tuple[int, int, int]]]:
    """Groups examples of similar size, so that short ones are not padded to the longest. Returns,
    for each bucket, the numbers of its examples and (most rows of an example, T, W) for `Examples`,
    all powers of two."""
    found: dict[tuple[int, int, int], list[int]] = {}
    for number, x in enumerate(encoded):
        sizes = max(map(len, x.rows)), len(x.places)
        length, width = (power_of_two(max(size, SHORTEST)) for size in sizes)
        found.setdefault((power_of_two(len(x.rows)), length, width), []).append(number)
    return [(found[shape], shape) for shape in sorted(found)]


def power_of_two(size: int) -> int:
    """The smallest power of two that is at least `size`; 1 for 0."""
    return 1 << max(size - 1, 0).bit_length()

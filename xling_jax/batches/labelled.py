"""Labelled sentences, or pairs of them, as rows of tokens.

A sentence that is longer than the model goes on in further rows, cut between words, so that every
word is there; each row begins and ends with the model's special tokens. What is labelled has one
place, that of its first piece.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

CLASSIFIER, PARSER = "classifier", "parser"
KINDS = {CLASSIFIER: 1, PARSER: 2}  # of labels that each thing has: a class; a head and a relation
NONE = -1
MULTIPLE = 8  # of which the length of rows is one
SHORTEST = 16  # places of the shortest rows of a bucket


@dataclasses.dataclass(frozen=True)
class Encoded:
    """An example: rows of ids with their special tokens, the place of the first piece of each
    thing that has labels (row, place in the row), and what the model was too short for.

    types: of each row's tokens, 1 in the second sentence of a pair, 0 elsewhere.
    cut: how many pieces are missing.
    """

    rows: list[np.ndarray]
    types: list[np.ndarray]
    places: list[tuple[int, int]]
    cut: int = 0


def sentence(
    pieces: Sequence[np.ndarray], special_ids: tuple[int, int], longest: int, inverted: bool = False
) -> Encoded:
    """A sentence whose words have labels, given the ids of each.

    Special ids stand before and behind a row, which has `longest` places; the end of a word that is
    longer is cut. inverted: the last word stands first; the pieces of each are reversed already.
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
    """Two sentences in one row, of which the first place has the label.

    The longer one loses its end until both, and the special ids before, between and behind them,
    fit. has_types: the model tells the second by its token type. inverted: their ends stand first.
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

    tokens, types: int32 [rows, T]. lengths: int32 [rows]. first, count: int32 [N], which rows an
    example has. parts: int32 [rows], a row's number in its example. places: int32 [N, W], of what
    has labels, counted from the begin of the example's first row; NONE behind the last. labels:
    int32 [N, W, kinds].
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
        """Puts examples together, each with labels int32 [things with labels, kinds]. shape: the
        number of rows, T and W; what the examples need by default."""
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
    """Numbers of examples by the length of their rows, so that short ones are not padded to the
    longest: of each bucket also how many rows an example has at most, and T and W of `Examples`,
    all powers of two."""
    found: dict[tuple[int, int, int], list[int]] = {}
    for number, x in enumerate(encoded):
        sizes = max(map(len, x.rows)), len(x.places)
        length, width = (power_of_two(max(size, SHORTEST)) for size in sizes)
        found.setdefault((power_of_two(len(x.rows)), length, width), []).append(number)
    return [(found[shape], shape) for shape in sorted(found)]


def power_of_two(size: int) -> int:
    """The lowest power of two that is not below a size; 1 of 0."""
    return 1 << max(size - 1, 0).bit_length()

"""Sentences to rows of fixed length, with almost no padding.

A step's sentences are packed, longest first, each into the row that it fits most tightly. Rows
come in blocks of different lengths, because attention costs the square of the row. What does not
fit into a step goes to the next one; nothing is ever dropped. A sampler says in which order each
replica is trained on which sentences.
"""

import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

ROW_MULTIPLE = 8  # the longest row is rounded up to it
SHORTEST_ROW = 4  # [CLS], a piece, [SEP], and room
ORDERS, LAYOUT_TRIALS = 2, 3  # tell these random numbers from others of the same seed
SLACK = 1.125  # sentences a step may hold at the most, in units of the nominal number
ROW_DIVISOR = 8  # the rows of each block divide among so many shards
SIMULATED, SIMULATED_STEPS = 8, 40  # shuffles on which the number of rows is tried, steps of each
ATTEMPTS = 20  # shuffles tried before a plan is given up

Rows = tuple[tuple[int, int], ...]


class DoesNotFit(ValueError):
    """The sentences do not fit into the rows of the steps they were given."""


@dataclasses.dataclass(frozen=True)
class Layout:
    """The shape of a step.

    rows: (number of rows, row length) of each block, in all shards together. What a step holds
    depends on them alone, so any number of shards that divides them computes the same run.
    sentences: nominal number of sentences a step. shards: parts of a step that are computed apart,
    one a device of the data axis. attend_padding: one sentence a row, which owns the padding up to
    the longest of the step (the published behaviour of D&S).
    """

    rows: Rows
    sentences: int
    shards: int = 1
    attend_padding: bool = False

    @property
    def shard_rows(self) -> Rows:
        return tuple((count // self.shards, length) for count, length in self.rows)

    @property
    def shard_places(self) -> int:
        """Places (tokens and padding) of one shard."""
        return sum(count * length for count, length in self.shard_rows)

    @property
    def most_sentences(self) -> int:
        return math.ceil(self.sentences * (1 if self.attend_padding else SLACK))

    def step_shapes(self) -> list[tuple[int, ...]]:
        """The shapes of a `Plan`'s fields for one step; all are int32."""
        slots = (self.most_sentences,)
        return [slots, slots, (self.shards, self.shard_places)]

    def capacities(self) -> np.ndarray:
        return np.concatenate([np.full(count, length) for count, length in self.rows])

    def addresses(self) -> tuple[np.ndarray, np.ndarray]:
        """The shard of every row, and its first place there."""
        shard, first, base = [], [], 0
        for (count, length), (own, _) in zip(self.rows, self.shard_rows, strict=True):
            row = np.arange(count)
            shard.append(row // own)
            first.append(base + row % own * length)
            base += own * length
        return np.concatenate(shard), np.concatenate(first)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Plan:
    """Which sentence stands where, for K steps of B sentence slots and P places in all shards.

    sentence: int32 [K, B], index in the store, in the order of training; -1 for an empty slot.
    start: int32 [K, B], the slot's first place in its shard.
    owner: int32 [K, shards, P / shards], the slot that owns a place; -1 for padding.
    """

    sentence: Any
    start: Any
    owner: Any

    def __len__(self) -> int:
        return len(self.sentence)

    def fill(self) -> float:
        """The share of places that a sentence owns."""
        return float((self.owner >= 0).mean())


def _place(lengths: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Best-fit decreasing: the row of each sentence, -1 where none has room; updates `free`."""
    rows = np.full(len(lengths), -1)
    for sentence in np.argsort(-lengths, kind="stable"):
        room = free - lengths[sentence]
        room[room < 0] = np.iinfo(room.dtype).max
        row = int(room.argmin())
        if free[row] >= lengths[sentence]:
            rows[sentence] = row
            free[row] -= lengths[sentence]
    return rows


def pack(lengths_GxN: np.ndarray, capacity: int) -> tuple[np.ndarray, np.ndarray]:
    """Best-fit decreasing of many small groups at once, each into rows of its own.

    lengths_GxN: places that each of a group's sentences takes, at most `capacity`; 0: none.
    capacity: places of a row. Returns the row of each sentence and its first place there, int64 [G,
    N]. Rows of a group are used from the first on; a sentence of no length has row -1.
    """
    groups, number = lengths_GxN.shape
    every = np.arange(groups)
    free_GxR = np.full((groups, number), capacity)
    row_GxN, begin_GxN = np.full((groups, number), -1), np.zeros((groups, number), int)
    for sentence_G in np.argsort(-lengths_GxN, axis=1, kind="stable").T:
        taken_G = lengths_GxN[every, sentence_G]
        room_GxR = free_GxR - taken_G[:, None]
        row_G = np.where(room_GxR < 0, capacity + 1, room_GxR).argmin(axis=1)
        row_GxN[every, sentence_G] = np.where(taken_G > 0, row_G, -1)
        begin_GxN[every, sentence_G] = np.where(taken_G > 0, capacity - free_GxR[every, row_G], 0)
        free_GxR[every, row_G] -= taken_G
    return row_GxN, begin_GxN


def assign(
    order: np.ndarray, lengths: np.ndarray, layout: Layout
) -> list[list[tuple[np.ndarray, np.ndarray]]]:
    """Deals the sentences of `order` (int [n], as they are trained on) out to ceil(n / sentences)
    steps.

    Returns for each step pairs of sentences and their rows, both int arrays; DoesNotFit if not all
    of them, by their lengths (int [S], of the store), find a place.
    """
    capacity = layout.capacities()
    steps = math.ceil(len(order) / layout.sentences)
    free = [capacity.copy() for _ in range(steps)]
    packed: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in range(steps)]

    def put(step: int, candidates: np.ndarray) -> np.ndarray:
        room = layout.most_sentences - sum(len(held) for held, _ in packed[step])
        taking = lengths[candidates[:room]]
        if layout.attend_padding:
            taking = np.full_like(taking, capacity[0])
        rows = _place(taking, free[step])
        found = rows >= 0
        packed[step].append((candidates[:room][found], rows[found]))
        return np.concatenate([candidates[:room][~found], candidates[room:]])

    waiting, taken = order[:0], 0
    for step in range(steps):
        fresh = order[taken : taken + layout.sentences - len(waiting)]
        taken += len(fresh)
        waiting = put(step, np.concatenate([waiting, fresh]))
    waiting = np.concatenate([waiting, order[taken:]])
    for step in reversed(range(steps)):
        if len(waiting):
            waiting = put(step, waiting)
    if len(waiting):
        raise DoesNotFit(f"{len(waiting)} of {len(order)} sentences found no place")
    return packed


def plan(order: np.ndarray, lengths: np.ndarray, layout: Layout) -> Plan:
    """Packs the sentences of `order` into ceil(n / sentences) steps; arguments as `assign`'s."""
    packed = assign(order, lengths, layout)
    shard_of, first_of = layout.addresses()
    slots = (len(packed), layout.most_sentences)
    sentence, start = np.full(slots, -1, np.int32), np.zeros(slots, np.int32)
    owner = np.full((len(packed), layout.shards, layout.shard_places), -1, np.int32)
    for step, held in enumerate(packed):
        indices, rows = (np.concatenate(part) for part in zip(*held, strict=True))
        taking = lengths[indices]
        if layout.attend_padding:
            taking = np.full_like(taking, taking.max(initial=0))
        next_place = first_of.copy()
        for slot, (row, places) in enumerate(zip(rows, taking, strict=True)):
            place = next_place[row]
            start[step, slot] = place
            owner[step, shard_of[row], place : place + places] = slot
            next_place[row] += places
        sentence[step, : len(indices)] = indices
    return Plan(sentence, start, owner)


def planned(orders: Iterable[np.ndarray], lengths: np.ndarray, layout: Layout) -> Plan:
    """The plan of the first of several shuffles that fits; they differ only in their order."""
    problem = None
    for order in orders:
        try:
            return plan(order, lengths, layout)
        except DoesNotFit as error:
            problem = error
    raise DoesNotFit(f"{problem}: give more rows by a longer or another batches.row_lengths")


def _counts(kinds: list[int], places: float, longer: list[float], divisor: int) -> Rows:
    """Rows of each length for `places` places; longer[i] sentences need more than kinds[i]."""
    rows: list[tuple[int, int]] = []
    for number in reversed(range(len(kinds))):
        length = kinds[number]
        share = min(places, longer[number - 1] * length) if number else places
        count = divisor * max(1, math.ceil(share / length / divisor))
        rows.append((count, length))
        places = max(0.0, places - count * length)
    return tuple(reversed(rows))


def choose_layout(
    lengths: np.ndarray,
    passes: Sequence[np.ndarray],
    sentences: int,
    row_lengths: Sequence[int],
    shards: int = 1,
    attend_padding: bool = False,
    divisor: int = ROW_DIVISOR,
) -> Layout:
    """The layout with the fewest rows into which every tried shuffle of each pass fits.

    Args:
      lengths: int [S], places each sentence takes.
      passes: int [n] each, the sentences of every kind of pass over the text that it must serve.
      sentences, shards, attend_padding: see `Layout`.
      row_lengths: row lengths to use; one of the longest sentence is added where it is missing.
      divisor: of the number of rows of each block; the shards divide it.

    Raises:
      ValueError: a step's sentences cannot be divided among the shards.
    """
    if sentences % shards:
        below = sentences - sentences % shards
        raise ValueError(
            f"batches.sentences={sentences} cannot be divided among {shards} devices: "
            f"choose {below or shards} or {below + shards}, or fewer devices"
        )
    if divisor % shards:
        raise ValueError(
            f"a batch is divided among {shards} devices, but its rows divide among "
            f"1, 2, 4 or {divisor}: train more replicas side by side, or use fewer devices"
        )
    if min(row_lengths) < SHORTEST_ROW:
        raise ValueError(
            f"batches.row_lengths={tuple(row_lengths)}: choose lengths of {SHORTEST_ROW} or more"
        )
    longest = max(int(lengths[order].max()) for order in passes)
    longest = math.ceil(longest / ROW_MULTIPLE) * ROW_MULTIPLE
    if attend_padding:
        return Layout(((sentences, longest),), sentences, shards, attend_padding=True)
    kinds = sorted({length for length in row_lengths if length < longest} | {longest})

    def a_step(order: np.ndarray, values: np.ndarray) -> float:
        return min(sentences, len(order)) / len(order) * float(values[order].sum())

    places = 1.02 * max(a_step(order, lengths) for order in passes)  # some steps take more
    longer = [max(a_step(order, lengths > kind) for order in passes) for kind in kinds]
    random = np.random.default_rng([LAYOUT_TRIALS])
    tried = [
        random.permutation(order)[: SIMULATED_STEPS * sentences]
        for order in passes
        for _ in range(SIMULATED)
    ]
    margin = 1.0
    while True:
        rows = _counts(kinds, places * margin, [number * margin for number in longer], divisor)
        layout = Layout(rows, sentences, shards)
        try:
            for shuffle in tried:
                assign(shuffle, lengths, layout)
            return layout
        except DoesNotFit:
            margin *= 1.01


def own_parts(sentences: int, languages: int) -> np.ndarray:
    """The first part of the first language's sentences, the second of the second's, …. Of parallel
    texts, each language's part tells what no other one does (D&S §2.4)."""
    everything = np.arange(sentences).reshape(languages, -1)
    parts = np.array_split(np.arange(everything.shape[1]), languages)
    return np.concatenate([row[part] for row, part in zip(everything, parts, strict=True)])


@dataclasses.dataclass(frozen=True)
class Sampler:
    """Plans epochs of shuffled sentences of all languages (D&S §2.1: both shuffled together).

    An epoch's plan depends on the seed and the epoch alone, so a run resumes anywhere.

    lengths: int [S], places each sentence takes, language after language. languages: how many.
    parallel: False trains language k on the k-th part of its sentences only, and passes over that
    part `languages` times an epoch, so that an epoch has as many updates (D&S §2.4).
    """

    lengths: np.ndarray
    languages: int
    layout: Layout
    seed: int
    parallel: bool = True

    @property
    def sentences(self) -> np.ndarray:
        """The sentences of one pass, in the order of the store."""
        number = len(self.lengths)
        return np.arange(number) if self.parallel else own_parts(number, self.languages)

    @property
    def steps_per_epoch(self) -> int:
        """Updates an epoch; the same for every replica of an experiment."""
        return math.ceil(len(self.lengths) / self.layout.sentences)

    def plan(self, epoch: int) -> Plan:
        return planned(self._orders(epoch), self.lengths, self.layout)

    def _orders(self, epoch: int) -> Iterator[np.ndarray]:
        sentences = self.sentences
        passes = 1 if self.parallel else self.languages
        for attempt in range(ATTEMPTS):
            random = np.random.default_rng([ORDERS, self.seed, epoch, attempt])
            yield np.concatenate([random.permutation(sentences) for _ in range(passes)])

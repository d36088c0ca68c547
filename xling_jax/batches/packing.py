"""Sentences to rows of fixed length, with almost no padding.

A step's sentences are packed, longest first, each into the row that it fits most tightly. Rows
come in blocks of different lengths, because attention costs the square of the row's length. What
does not fit into a step goes to another one; nothing is ever dropped. A sampler decides which
sentences a replica is trained on, and in which order.
"""

import dataclasses
import heapq
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

ROW_MULTIPLE = 8  # the longest row is rounded up to it
SHORTEST_ROW = 4  # [CLS], a piece, [SEP], and room
ORDERS, LAYOUT_TRIALS = 2, 3  # tell these random numbers from others of the same seed
SLACK = 1.125  # sentences that a step may hold at most, as a multiple of the nominal number
ROW_DIVISOR = 8  # divides the number of rows of each block, so that 1, 2, 4 or 8 shards share them
SIMULATED, SIMULATED_STEPS = 8, 40  # shuffles of each pass that a layout is tried on, their steps
ATTEMPTS = 20  # shuffles tried before a plan is given up

Rows = tuple[tuple[int, int], ...]


class DoesNotFit(ValueError):
    """The sentences do not fit into the rows of their steps."""


@dataclasses.dataclass(frozen=True)
class Layout:
    """The shape of a step.

    Attributes:
      rows: (number of rows, row length) of each block, in all shards together. What a step holds
        does not depend on the shards, so any number that divides the rows computes the same run.
      sentences: nominal number of sentences per step.
      shards: parts of a step computed separately, one per device of the data axis.
      attend_padding: one sentence per row, which also owns the padding, up to the length of the
        step's longest sentence (as in D&S's published code).
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

    sentence: int32 [K, B], the slot's sentence, as an index of the store; -1 for an empty slot.
    start: int32 [K, B], the slot's first place in its shard.
    owner: int32 [K, shards, P / shards], the slot that owns a place; -1 for padding.
    """

    sentence: Any
    start: Any
    owner: Any

    def __len__(self) -> int:
        return len(self.sentence)


def _place(lengths: np.ndarray, free: np.ndarray) -> np.ndarray:
    """Best-fit decreasing: the row of each sentence, or -1 if no row has enough places `free`.
    Of equally tight rows the first is taken."""
    with_room: list[list[int]] = [[] for _ in range(int(free.max(initial=0)) + 1)]  # heaps of rows
    for row, room in enumerate(free.tolist()):
        with_room[room].append(row)
    rooms = sum(1 << room for room, rows in enumerate(with_room) if rows)  # a bit for each
    places, found = lengths.tolist(), [-1] * len(lengths)
    for sentence in np.argsort(-lengths, kind="stable").tolist():
        taken = places[sentence]
        enough = rooms >> taken
        if not enough:
            continue
        left = (enough & -enough).bit_length() - 1
        rows = with_room[taken + left]
        found[sentence] = row = heapq.heappop(rows)
        if not rows:
            rooms ^= 1 << taken + left
        heapq.heappush(with_room[left], row)
        rooms |= 1 << left
    return np.array(found, int)


def pack(lengths_GxN: np.ndarray, capacity: int) -> tuple[np.ndarray, np.ndarray]:
    """Best-fit decreasing of many small groups at once, each into rows of its own.

    lengths_GxN: places that each of a group's sentences takes, at most `capacity`; 0 for no
    sentence. capacity: places per row. Returns the row of each sentence within its group, which
    uses rows from 0 on, and its first place there, both int64 [G, N]; without a sentence, -1 and
    0.
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


def assign(order: np.ndarray, lengths: np.ndarray, layout: Layout) -> tuple[np.ndarray, np.ndarray]:
    """Deals the sentences of `order` (int [n], in the order of training) out to
    K = ceil(n / layout.sentences) steps. lengths: int [S], places that each sentence of the store
    takes.

    Returns `Plan.sentence` and the row of each slot, both int32 [K, B], -1 for an empty slot.
    Raises DoesNotFit unless every sentence finds a place.
    """
    capacity = layout.capacities()
    places = np.broadcast_to(capacity[:1], lengths.shape) if layout.attend_padding else lengths
    steps = math.ceil(len(order) / layout.sentences)
    sentence, row = np.full((2, steps, layout.most_sentences), -1, np.int32)

    def put(step: int, candidates: np.ndarray) -> np.ndarray:
        held = np.count_nonzero(sentence[step] >= 0)
        taken = places[sentence[step, :held]]
        used = np.bincount(row[step, :held], taken, len(capacity)).astype(int)
        tried, later = np.split(candidates, [layout.most_sentences - held])
        rows = _place(places[tried], capacity - used)
        found = rows >= 0
        new = slice(held, held + np.count_nonzero(found))
        sentence[step, new], row[step, new] = tried[found], rows[found]
        return np.concatenate([tried[~found], later])

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
    return sentence, row


def lay_out(
    sentence_KxB: np.ndarray, row_KxB: np.ndarray, lengths: np.ndarray, layout: Layout
) -> Plan:
    """The plan of steps, given what `assign` returns for them."""
    steps, slots = np.nonzero(sentence_KxB >= 0)
    taken_KxB = np.where(sentence_KxB >= 0, lengths[sentence_KxB], 0).astype(int)
    if layout.attend_padding:
        taken_KxB[steps, slots] = taken_KxB.max(axis=1, initial=0)[steps]
    by_row = np.argsort(steps * len(layout.capacities()) + row_KxB[steps, slots], kind="stable")
    steps, slots = steps[by_row], slots[by_row]
    rows, taken = row_KxB[steps, slots], taken_KxB[steps, slots]
    before = np.cumsum(taken) - taken
    is_first = (np.diff(rows, prepend=-1) != 0) | (np.diff(steps, prepend=-1) != 0)
    of_row = before[np.maximum.accumulate(np.where(is_first, np.arange(len(rows)), 0))]
    shard_of, first_of = layout.addresses()
    begin = first_of[rows] + before - of_row

    start = np.zeros(sentence_KxB.shape, np.int32)
    start[steps, slots] = begin
    owner = np.full((len(sentence_KxB), layout.shards, layout.shard_places), -1, np.int32)
    first = (steps * layout.shards + shard_of[rows]) * layout.shard_places + begin
    places = np.repeat(first - before, taken) + np.arange(taken.sum())
    owner.reshape(-1)[places] = np.repeat(slots, taken)
    return Plan(sentence_KxB, start, owner)


def assigned(
    orders: Iterable[np.ndarray], lengths: np.ndarray, layout: Layout
) -> tuple[np.ndarray, np.ndarray]:
    """What `assign` returns for the first of several shuffles of the same sentences that fits;
    DoesNotFit if none does."""
    problem = None
    for order in orders:
        try:
            return assign(order, lengths, layout)
        except DoesNotFit as error:
            problem = error
    raise DoesNotFit(f"{problem}: give more rows by a longer or another batches.row_lengths")


def planned(orders: Iterable[np.ndarray], lengths: np.ndarray, layout: Layout) -> Plan:
    """The plan of the first of several shuffles that fits; see `assigned`."""
    return lay_out(*assigned(orders, lengths, layout), lengths, layout)


def _counts(kinds: list[int], places: float, longer: list[float], divisor: int) -> Rows:
    """The rows of each length that give a step `places` places, where longer[i] of its sentences
    need rows longer than kinds[i]."""
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
    """A layout with few rows into which a number of shuffles of each pass fit.

    Rows are added by about 1 % at a time until all of these shuffles fit.

    Args:
      lengths: int [S], places each sentence takes.
      passes: for each kind of pass over the text, the sentences of one pass, int [n].
      sentences, shards, attend_padding: see `Layout`.
      row_lengths: row lengths to use. Those longer than the longest sentence are not used; its own
        length, rounded up, is added.
      divisor: divides the number of rows of each block; the number of shards divides it.

    Raises:
      ValueError: a step's rows or sentences cannot be divided among the shards, or a row length is
        below SHORTEST_ROW.
    """
    shared = math.gcd(divisor, shards)
    if shared < shards:
        raise ValueError(
            f"the rows of a batch cannot be divided among {shards} devices, only among {shared}: "
            f"train {shards // shared} times as many replicas side by side, as far as "
            "devices.replica_axis_at_most lets them have devices of their own, or use fewer "
            f"devices (1, 2, 4 or {divisor} a batch)"
        )
    if sentences % shards:
        below = sentences - sentences % shards
        raise ValueError(
            f"batches.sentences={sentences} cannot be divided among {shards} devices: "
            f"choose {below or shards} or {below + shards}, or fewer devices"
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
    """Indices of the first language's first part, the second language's second part, and so on: of
    parallel texts, no two languages then have the same sentences (D&S §2.4)."""
    everything = np.arange(sentences).reshape(languages, -1)
    parts = np.array_split(np.arange(everything.shape[1]), languages)
    return np.concatenate([row[part] for row, part in zip(everything, parts, strict=True)])


@dataclasses.dataclass(frozen=True)
class Sampler:
    """Plans epochs in which the sentences of all languages are shuffled together.

    An epoch's plan depends on the seed and the epoch alone, so a run can resume anywhere.

    lengths: int [S], places each sentence takes, language after language. languages: how many.
    parallel: if False, language k is trained only on the k-th part of its sentences, which is
    repeated `languages` times an epoch, so that the number of updates is the same (D&S §2.4).
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
    def _passes(self) -> int:
        return 1 if self.parallel else self.languages

    @property
    def steps_per_epoch(self) -> int:
        """Updates per epoch; the same for every replica of an experiment."""
        return math.ceil(len(self.lengths) / self.layout.sentences)

    @property
    def fill(self) -> float:
        """The share of an epoch's places that hold tokens."""
        tokens = self._passes * float(self.lengths[self.sentences].sum())
        return tokens / (self.steps_per_epoch * self.layout.shards * self.layout.shard_places)

    def assign(self, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        return assigned(self._orders(epoch), self.lengths, self.layout)

    def plan(self, epoch: int) -> Plan:
        return lay_out(*self.assign(epoch), self.lengths, self.layout)

    def _orders(self, epoch: int) -> Iterator[np.ndarray]:
        sentences = self.sentences
        for attempt in range(ATTEMPTS):
            random = np.random.default_rng([ORDERS, self.seed, epoch, attempt])
            yield np.concatenate([random.permutation(sentences) for _ in range(self._passes)])

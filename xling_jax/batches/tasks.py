"""Labelled sentences, or pairs of them, as rows of tokens, and batches of them.

A sentence that is longer than the model goes on in further rows, cut between words, so that every
word is there; each row begins and ends with the model's special tokens. What is labelled has one
place, that of its first piece.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

EXAMPLES = 21  # tells these random numbers from others of the same seed
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


def sentence(pieces: Sequence[np.ndarray], frame: tuple[int, int], longest: int) -> Encoded:
    """A sentence whose words have labels.

    Args:
      pieces: ids of each word.
      frame: the ids before and behind a row.
      longest: places of a row. The end of a word that is longer than a row is cut.
    """
    room, cut = longest - 2, 0
    rows: list[list[int]] = [[]]
    places = []
    for word in pieces:
        kept = word[:room].tolist()
        cut += len(word) - len(kept)
        if len(rows[-1]) + len(kept) > room:
            rows.append([])
        places.append((len(rows) - 1, len(rows[-1]) + 1))
        rows[-1] += kept
    framed = [np.array([frame[0], *row, frame[1]], np.int32) for row in rows]
    return Encoded(framed, [np.zeros_like(row) for row in framed], places, cut)


def pair(
    first: np.ndarray, second: np.ndarray, frame: tuple[int, int], longest: int, has_types: bool
) -> Encoded:
    """Two sentences in one row, of which the first place has the label.

    Args:
      first, second: ids.
      frame: the ids before and behind a sentence; that behind stands between them too.
      longest: places of a row. The longer sentence loses its end until both fit.
      has_types: whether the model tells the second sentence by its token type.
    """
    sizes, room = [len(first), len(second)], longest - 3
    cut = max(0, sum(sizes) - room)
    for _ in range(cut):
        sizes[sizes[0] < sizes[1]] -= 1
    both = [frame[0], *first[: sizes[0]], frame[1], *second[: sizes[1]], frame[1]]
    types = np.zeros(len(both), np.int32)
    types[sizes[0] + 2 :] = int(has_types)
    return Encoded([np.array(both, np.int32)], [types], [(0, 0)], cut)


@dataclasses.dataclass(frozen=True)
class Examples:
    """N examples in one array of rows.

    tokens, types: int32 [rows, T]. lengths: int32 [rows]. first, count: int32 [N], which rows an
    example has. places: int32 [N, W], of what has labels, counted from the begin of the example's
    first row; NONE behind the last. labels: int32 [N, W, kinds].
    """

    tokens: np.ndarray
    types: np.ndarray
    lengths: np.ndarray
    first: np.ndarray
    count: np.ndarray
    places: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.first)

    @classmethod
    def of(
        cls,
        encoded: Sequence[Encoded],
        labels: Sequence[np.ndarray],
        shape: tuple[int, int] | None = None,
    ) -> "Examples":
        """Puts examples together.

        Args:
          encoded: of each example.
          labels: int32 [things with labels, kinds] of each.
          shape: T and W; what the longest examples need by default.

        Raises:
          ValueError: there is none.
        """
        if not encoded:
            raise ValueError("there are no examples")
        rows = [row for example in encoded for row in example.rows]
        lengths = np.array([len(row) for row in rows], np.int32)
        widest = max(len(example.places) for example in encoded)
        length, widest = shape or (-(-int(lengths.max()) // MULTIPLE) * MULTIPLE, widest)
        count = np.array([len(example.rows) for example in encoded], np.int32)
        places = np.full((len(encoded), widest), NONE, np.int32)
        known = np.full((len(encoded), widest, labels[0].shape[1]), NONE, np.int32)
        for number, (example, own) in enumerate(zip(encoded, labels, strict=True)):
            flat = [row * length + place for row, place in example.places]
            places[number, : len(flat)] = flat
            known[number, : len(flat)] = own
        return cls(
            _padded(rows, length),
            _padded([types for example in encoded for types in example.types], length),
            lengths,
            np.cumsum(count, dtype=np.int32) - count,
            count,
            places,
            known,
        )

    def to_device(self) -> "DeviceExamples":
        """The same where a step can gather from it."""
        parts = np.arange(len(self.tokens)) - np.repeat(self.first, self.count)
        fields = (self.tokens, self.types, self.lengths, parts, self.places, self.labels)
        return DeviceExamples(*(jnp.asarray(field, jnp.int32) for field in fields))


def _padded(rows: Sequence[np.ndarray], length: int) -> np.ndarray:
    found = np.zeros((len(rows), length), np.int32)
    for row, values in zip(found, rows, strict=True):
        row[: len(values)] = values
    return found


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class DeviceExamples:
    """`Examples` as arrays on the device; parts [rows]: a row's number in its example."""

    tokens: jax.Array
    types: jax.Array
    lengths: jax.Array
    parts: jax.Array
    places: jax.Array
    labels: jax.Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TaskBatch:
    """B examples in R rows.

    tokens, types: int32 [R, T]. is_token: bool [R, T]. slots: int32 [R], the number of the row's
    example in the whole batch. places: int32 [R, T], in the example. words: int32 [B, W], which
    of the R x T places have labels. is_word: bool [B, W]. labels: int32 [B, W, kinds].
    """

    tokens: jax.Array
    types: jax.Array
    is_token: jax.Array
    slots: jax.Array
    places: jax.Array
    words: jax.Array
    is_word: jax.Array
    labels: jax.Array


def gather(store: DeviceExamples, plan: "TaskPlan") -> TaskBatch:
    """The examples of one shard's step, whose plan has no leading axes."""
    length = store.tokens.shape[1]
    row_R, example_B = jnp.maximum(plan.row, 0), jnp.maximum(plan.example, 0)
    is_row_Rx1 = (plan.row >= 0)[:, None]
    place_T = jnp.arange(length)
    places_BxW = store.places[example_B]
    is_word_BxW = (places_BxW >= 0) & (plan.example >= 0)[:, None]
    return TaskBatch(
        tokens=jnp.where(is_row_Rx1, store.tokens[row_R], 0),
        types=jnp.where(is_row_Rx1, store.types[row_R], 0),
        is_token=is_row_Rx1 & (place_T < store.lengths[row_R][:, None]),
        slots=plan.slot,
        places=store.parts[row_R][:, None] * length + place_T,
        words=jnp.where(is_word_BxW, plan.base[:, None] * length + places_BxW, 0),
        is_word=is_word_BxW,
        labels=jnp.where(is_word_BxW[..., None], store.labels[example_B], NONE),
    )


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TaskPlan:
    """Which examples and rows stand where, in K steps; int32, NONE at filling.

    example: [K, shards, B]. base: [K, shards, B], the place of the example's first row among the
    shard's. row: [K, shards, R], in `Examples`. slot: [K, shards, R], the number of the row's
    example in the whole batch.
    """

    example: Any
    base: Any
    row: Any
    slot: Any


@dataclasses.dataclass(frozen=True)
class TaskLayout:
    """The shape of a step: shards of so many examples in so many rows."""

    shards: int
    examples: int
    rows: int

    def step_shapes(self) -> list[tuple[int, ...]]:
        """The shapes of a `TaskPlan`'s fields for one step."""
        examples, rows = (self.shards, self.examples), (self.shards, self.rows)
        return [examples, examples, rows, rows]


def plan(batches_KxB: np.ndarray, examples: Examples, shards: int, rows: int = 0) -> TaskPlan:
    """Deals the examples of each batch out to shards.

    Args:
      batches_KxB: numbers of examples, NONE at filling.
      examples: that they are.
      shards: how many devices share a batch.
      rows: of each shard; as many as needed by default.

    Raises:
      ValueError: the shards cannot share a batch evenly.
    """
    steps, size = batches_KxB.shape
    if size % shards:
        raise ValueError(
            f"a batch of {size} examples cannot be divided among {shards} devices: choose "
            f"{-(-size // shards) * shards}"
        )
    example = batches_KxB.reshape(steps, shards, size // shards).astype(np.int32)
    counts = np.where(example >= 0, examples.count[example], 0)
    base = np.cumsum(counts, axis=2, dtype=np.int32) - counts
    used = counts.sum(axis=2)
    rows = rows or int(used.max())
    row = np.full((steps, shards, rows), NONE, np.int32)
    slot = np.zeros_like(row)
    numbers = np.arange(size, dtype=np.int32).reshape(shards, -1)
    for step, shard in np.ndindex(steps, shards):
        here, own = example[step, shard], counts[step, shard]
        total = used[step, shard]
        behind = np.arange(total) - np.repeat(base[step, shard], own)
        row[step, shard, :total] = np.repeat(examples.first[here], own) + behind
        slot[step, shard, :total] = np.repeat(numbers[shard], own)
    return TaskPlan(example, base.astype(np.int32), row, slot)


@dataclasses.dataclass(frozen=True)
class TaskSampler:
    """The batches of fine-tuning: examples are taken pass after pass, each in a new order.

    examples: to learn from. batch: examples of a step. shards: devices that share it. seed: of
    the order. epochs: how many. per_epoch: examples of an epoch; all by default.
    """

    examples: Examples
    batch: int
    shards: int
    seed: int
    epochs: int
    per_epoch: int = 0

    @property
    def _taken(self) -> int:
        return self.per_epoch or len(self.examples)

    @property
    def steps_per_epoch(self) -> int:
        """Updates of an epoch; the last may have fewer examples."""
        return -(-self._taken // self.batch)

    def epoch(self, number: int) -> np.ndarray:
        """The batches of an epoch, int64 [steps, batch], NONE at filling."""
        passes, places = np.divmod(
            number * self._taken + np.arange(self._taken), len(self.examples)
        )
        found = np.full(self.steps_per_epoch * self.batch, NONE, np.int64)
        for one in np.unique(passes):
            random = np.random.default_rng([EXAMPLES, self.seed, int(one)])
            order = random.permutation(len(self.examples))
            chosen = np.flatnonzero(passes == one)
            found[chosen] = order[places[chosen]]
        return found.reshape(-1, self.batch)

    @functools.cached_property
    def layout(self) -> TaskLayout:
        """The shape of a step, with room for every step of all epochs."""
        most = 1
        for number in range(self.epochs):
            batches = self.epoch(number).reshape(-1, self.shards, self.batch // self.shards)
            counts = np.where(batches >= 0, self.examples.count[batches], 0)
            most = max(most, int(counts.sum(axis=2).max()))
        return TaskLayout(self.shards, self.batch // self.shards, most)

    def plan(self, start: int, stop: int) -> TaskPlan:
        """The plan of updates start..stop-1, of one epoch."""
        number, first = divmod(start, self.steps_per_epoch)
        batches = self.epoch(number)[first : first + stop - start]
        return plan(batches, self.examples, self.shards, self.layout.rows)


def buckets(
    encoded: Sequence[Encoded], labels: Sequence[np.ndarray]
) -> list[tuple[np.ndarray, Examples]]:
    """Examples by the length of their rows, so that short ones are not padded to the longest.

    Returns:
      The numbers of each bucket's examples, int64 [n], and the examples. Rows are a power of two
      long, and so is the number of what has labels.
    """
    sizes = [(_power(max(map(len, x.rows))), _power(len(x.places))) for x in encoded]
    found = []
    for size in sorted(set(sizes)):
        numbers = [number for number, own in enumerate(sizes) if own == size]
        some = Examples.of([encoded[n] for n in numbers], [labels[n] for n in numbers], size)
        found.append((np.array(numbers), some))
    return found


def _power(size: int) -> int:
    """The lowest power of two, at least `SHORTEST`, that is not below a size."""
    return max(SHORTEST, 1 << (size - 1).bit_length())

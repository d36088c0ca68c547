"""Batches of labelled examples: which examples and rows stand in each step, and what they hold."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from xling_jax.batches import packing
from xling_jax.batches.labelled import NONE, Examples

EXAMPLES = 21  # tells these random numbers from others of the same seed
WORTH = 0.8  # of all places, what two shapes of steps may take at most, to be worth compiling both


jax.tree_util.register_dataclass(Examples)  # not in `labelled`, which imports no JAX


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TaskBatch:
    """B examples in P places of packed rows.

    Attributes:
      tokens, types: int32 [P].
      is_token: bool [P], False for padding.
      positions: int32 [P], in the example's row.
      segments: int32 [P], equal for tokens that attend to each other (within a packed row).
      slots: int32 [P], the number of the token's example in the whole batch.
      places: int32 [P], in the example.
      words: int32 [B, W], which of the P places have labels.
      is_word: bool [B, W], False for padding.
      labels: int32 [B, W, kinds].
    """

    tokens: jax.Array
    types: jax.Array
    is_token: jax.Array
    positions: jax.Array
    segments: jax.Array
    slots: jax.Array
    places: jax.Array
    words: jax.Array
    is_word: jax.Array
    labels: jax.Array


def gather(store: Examples, plan: "TaskPlan") -> TaskBatch:
    """The examples of one shard in one step, given its plan, without the axes K and shards."""
    length = store.tokens.shape[1]
    is_token_P, owner_P = plan.owner >= 0, jnp.maximum(plan.owner, 0)
    row_P = jnp.maximum(plan.row, 0)[owner_P]
    position_P = jnp.where(is_token_P, jnp.arange(owner_P.size) - plan.start[owner_P], 0)
    example_B = jnp.maximum(plan.example, 0)
    places_BxW, width = plan.places, plan.places.shape[-1]
    is_word_BxW = places_BxW >= 0
    first_BxW = plan.start[jnp.where(is_word_BxW, plan.base[:, None] + places_BxW // length, 0)]
    return TaskBatch(
        tokens=jnp.where(is_token_P, store.tokens[row_P, position_P], 0),
        types=jnp.where(is_token_P, store.types[row_P, position_P], 0),
        is_token=is_token_P,
        positions=position_P,
        segments=plan.owner,
        slots=jnp.where(is_token_P, plan.slot[owner_P], NONE),
        places=store.parts[row_P] * length + position_P,
        words=jnp.where(is_word_BxW, first_BxW + places_BxW % length, 0),
        is_word=is_word_BxW,
        labels=jnp.where(is_word_BxW[..., None], store.labels[example_B, :width], NONE),
    )


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TaskPlan:
    """Which examples and rows stand where, in K steps: all int32. A shard has B examples, with N
    rows in P places, and at most W labelled items in an example.

    Attributes:
      example: [K, shards, B], index in `Examples`; NONE for padding.
      places: [K, shards, B, W], as in `Examples`.
      base: [K, shards, B], the number of the example's first row among the shard's N.
      row: [K, shards, N], index of the row in `Examples`; NONE for padding.
      slot: [K, shards, N], the number of the row's example in the whole batch; NONE for padding.
      start: [K, shards, N], the row's first place.
      owner: [K, shards, P], which of the N rows owns a place; NONE for padding.
    """

    example: Any
    places: Any
    base: Any
    row: Any
    slot: Any
    start: Any
    owner: Any


@dataclasses.dataclass(frozen=True)
class TaskLayout:
    """The shape of a step.

    shards: parts of a batch computed separately, one per device. examples: per shard. rows: the
    most that a shard's examples have. packed: rows of `length` places that these are packed into.
    width: the most labelled items of an example.
    """

    shards: int
    examples: int
    rows: int
    packed: int
    width: int
    length: int

    def step_shapes(self) -> list[tuple[int, ...]]:
        """The shapes of a `TaskPlan`'s fields for one step."""
        of_examples, of_rows = (self.examples,), (self.rows,)
        shapes = [of_examples, (self.examples, self.width), of_examples, *[of_rows] * 3]
        return [(self.shards, *shape) for shape in [*shapes, (self.packed * self.length,)]]


def needed(batches_KxB: np.ndarray, examples: Examples, shards: int) -> np.ndarray:
    """`rows`, `packed` and `width` of the smallest layout with room for each batch, [K, 3]; for the
    arguments see `plan`. ValueError: the shards cannot share a batch evenly."""
    example_GxB, _, row_GxN, _, lengths_GxN = _deal(batches_KxB, examples, shards)
    packed_GxN, _ = packing.pack(lengths_GxN, examples.tokens.shape[1])
    width_GxB = np.where(example_GxB >= 0, (examples.places >= 0).sum(axis=1)[example_GxB], 0)
    of_group = (row_GxN >= 0).sum(axis=1), packed_GxN.max(axis=1, initial=0) + 1, width_GxB.max(1)
    return np.stack(of_group, axis=1).reshape(-1, shards, 3).max(axis=1)


def plan(batches_KxB: np.ndarray, examples: Examples, layout: TaskLayout) -> TaskPlan:
    """Deals the examples of each batch out to shards, so that they have about equally many tokens,
    and packs their rows, longest first.

    Args:
      batches_KxB: indices of examples, padded with NONE.
      examples: what these are indices of.
      layout: must have room for all of them, see `needed`.
    """
    example_GxB, *dealt, lengths_GxN = _deal(batches_KxB, examples, layout.shards, layout.rows)
    is_there = (example_GxB >= 0)[..., None]
    places_GxBxW = np.where(is_there, examples.places[example_GxB, : layout.width], NONE)
    packed_GxN, begin_GxN = packing.pack(lengths_GxN, layout.length)
    start_GxN = np.where(lengths_GxN > 0, packed_GxN * layout.length + begin_GxN, 0)
    owner_GxP = np.full((len(start_GxN), layout.packed * layout.length), NONE)
    group, number = np.nonzero(lengths_GxN)
    sizes = lengths_GxN[group, number]
    place = np.repeat(start_GxN[group, number], sizes) + _within(sizes)
    owner_GxP[np.repeat(group, sizes), place] = np.repeat(number, sizes)
    shape = (len(batches_KxB), layout.shards)
    fields = (example_GxB, places_GxBxW, *dealt, start_GxN, owner_GxP)
    return TaskPlan(*(x.reshape(*shape, *x.shape[1:]).astype(np.int32) for x in fields))


def _within(sizes: np.ndarray) -> np.ndarray:
    """Numbers that start again from 0 in each of several stretches of these sizes, concatenated."""
    return np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def _deal(
    batches_KxB: np.ndarray, examples: Examples, shards: int, rows: int = 0
) -> tuple[np.ndarray, ...]:
    """Deals examples out to shards; N is `rows`, or as many rows as a shard needs if that is 0.

    The longest example of a batch goes to the first shard, the next to the second, and so on, back
    and forth.

    Returns `example`, `base`, `row` and `slot` of a `TaskPlan`, with an axis G for K and shards,
    and the places that each row takes, [G, N], 0 for padding.
    """
    size = batches_KxB.shape[1]
    if size % shards:
        raise ValueError(
            f"a batch of {size} examples cannot be divided among {shards} devices: choose "
            f"{-(-size // shards) * shards}"
        )
    places = np.add.reduceat(examples.lengths, examples.first)
    taken_KxB = np.where(batches_KxB >= 0, places[batches_KxB], 0)
    turns = np.arange(size).reshape(-1, shards)
    turns[1::2] = turns[1::2, ::-1].copy()
    slot_KxB = np.argsort(-taken_KxB, axis=1, kind="stable")[:, turns.T.ravel()]
    example_GxB = np.take_along_axis(batches_KxB, slot_KxB, 1).reshape(-1, size // shards)
    count_GxB = np.where(example_GxB >= 0, examples.count[example_GxB], 0)
    base_GxB = np.cumsum(count_GxB, axis=1) - count_GxB
    used_G, count_E = count_GxB.sum(axis=1), count_GxB.ravel()
    part = _within(count_E)
    group = np.repeat(np.arange(len(used_G)), used_G)
    number = np.repeat(base_GxB.ravel(), count_E) + part
    row_GxN = np.full((len(used_G), rows or int(used_G.max())), NONE)
    slot_GxN = row_GxN.copy()
    row_GxN[group, number] = examples.first[np.repeat(example_GxB.ravel(), count_E)] + part
    slot_GxN[group, number] = np.repeat(slot_KxB.ravel(), count_E)
    lengths_GxN = np.where(row_GxN >= 0, examples.lengths[row_GxN], 0)
    return example_GxB, base_GxB, row_GxN, slot_GxN, lengths_GxN


@dataclasses.dataclass(frozen=True)
class TaskSampler:
    """The batches of fine-tuning: examples are taken pass after pass, each in a new order.

    examples: to learn from. batch: examples per step. shards: devices that share a step. seed: of
    the order. epochs: how many. per_epoch: examples per epoch; 0 for all.
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
        """Updates per epoch; the last may have fewer examples."""
        return -(-self._taken // self.batch)

    def epoch(self, number: int) -> np.ndarray:
        """The batches of an epoch: indices of examples, int64 [steps, batch], padded with NONE."""
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
    def _every(self) -> list[np.ndarray]:
        """The batches of all epochs, see `epoch`."""
        return [self.epoch(number) for number in range(self.epochs)]

    @functools.cached_property
    def _needed(self) -> np.ndarray:
        """What each step of all epochs needs, see `needed`, [steps, 3]."""
        return np.concatenate([needed(each, self.examples, self.shards) for each in self._every])

    @functools.cached_property
    def layouts(self) -> tuple[TaskLayout, ...]:
        """The shapes of steps. The last has room for every step of all epochs. Before it stands a
        smaller one for the steps that fit into it, if both leave a part of the places that is worth
        compiling them; its size is the one that leaves most."""
        packed_S = self._needed[:, 1]

        def layout(steps: np.ndarray) -> TaskLayout:
            rows, packed, width = self._needed[steps].max(axis=0).tolist()
            each, length = self.batch // self.shards, self.examples.tokens.shape[1]
            return TaskLayout(self.shards, each, rows, packed, width, length)

        largest = layout(np.arange(len(packed_S)))
        tried, steps = np.unique(packed_S, return_counts=True)
        steps = np.cumsum(steps)
        taken = tried * steps + largest.packed * (len(packed_S) - steps)
        are_small = packed_S <= tried[taken.argmin()]
        if taken.min() > WORTH * largest.packed * len(packed_S):
            return (largest,)
        return layout(are_small), largest

    def layout_of(self, start: int, stop: int) -> TaskLayout:
        """The smallest of `layouts` with room for each of updates start..stop-1."""
        most = self._needed[start:stop, 1].max()
        return next(each for each in self.layouts if each.packed >= most)

    def plan(self, start: int, stop: int) -> TaskPlan:
        """The plan of updates start..stop-1, of one epoch."""
        number, first = divmod(start, self.steps_per_epoch)
        batches = self._every[number][first : first + stop - start]
        return plan(batches, self.examples, self.layout_of(start, stop))

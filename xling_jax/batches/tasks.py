"""Batches of labelled examples: which examples and rows stand in each step, and what they hold."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from xling_jax.batches.labelled import NONE, DeviceExamples, Examples

EXAMPLES = 21  # tells these random numbers from others of the same seed


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

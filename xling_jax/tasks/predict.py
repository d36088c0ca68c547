"""What fine-tuned models predict for the examples of a language."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from xling_jax import devices
from xling_jax.batches import labelled, tasks
from xling_jax.batches.labelled import Encoded
from xling_jax.batches.tasks import TaskPlan
from xling_jax.models import partition, task_heads
from xling_jax.models.task_heads import CLASSIFIER
from xling_jax.tasks.finetune import ENCODER, HEAD, TaskProgram, word_states

EXAMPLES = 64  # of a batch and device, at most
ROUNDED = 8  # packed rows of a batch are a multiple of it: sets of about one length share a program
PAIRS = 2**18  # of words of a batch and device: a parser has scores for each of them


@functools.lru_cache
def _step(program: TaskProgram, mesh: Mesh):
    """The compiled prediction of one batch."""

    def one(params, frozen, store, *fields):
        batch = tasks.gather(store, TaskPlan(*(field[0, 0] for field in fields)))
        encoder = partition.merge(frozen, params[ENCODER])
        states = word_states(program, encoder, batch, store.tokens.shape[1], None)
        head = task_heads.module(program.head)
        found = head.apply({"params": params[HEAD]}, states)
        if program.head.kind == CLASSIFIER:
            found = (found.argmax(-1).astype(jnp.int32),)
        else:
            found = (task_heads.without_filling(found[0], batch.is_word), found[1])
        return tuple(field[None, None] for field in found)

    inputs = (
        [devices.A_REPLICA]
        + [devices.SHARED] * 2
        + [devices.A_SHARD] * len(dataclasses.fields(TaskPlan))
    )
    return jax.jit(devices.per_replica(one, mesh, inputs, devices.A_REPLICA_AND_SHARD))


class Predictor:
    """Predicts for all replicas side by side; batches are of examples of about equal length."""

    def __init__(self, program: TaskProgram, mesh: Mesh, encoded: Sequence[Encoded], frozen: Any):
        """Puts the examples on the devices.

        Args:
          program: that was trained.
          mesh: the devices.
          encoded: the examples.
          frozen: the leaves of the language's encoder that were not trained.
        """
        self._number = len(encoded)
        self._step = _step(program, mesh)
        self._frozen = devices.place(frozen, mesh, devices.SHARED)
        shards = mesh.shape[devices.DATA]
        # Of each batch: the examples, its plan, and of each of its examples where its prediction
        # stands, its number and its width.
        self._batches: list[tuple[Any, list[jax.Array], list[tuple[int, int, int]]]] = []
        kinds = task_heads.KINDS[program.head.kind]
        unknown = [np.zeros((len(x.places), kinds), np.int32) for x in encoded]
        for numbers, examples in labelled.buckets(encoded, unknown):
            each = min(EXAMPLES, max(1, PAIRS // examples.places.shape[1] ** 2))
            size, rows = each * shards, each * int(examples.count.max())
            chosen = np.full(-(-len(numbers) // size) * size, labelled.NONE)
            chosen[: len(numbers)] = np.arange(len(numbers))
            chosen = chosen.reshape(-1, size)
            layout = tasks.layout_of(chosen, examples, shards)
            packed = min(rows, -(-layout.packed // ROUNDED) * ROUNDED)
            layout = dataclasses.replace(layout, rows=rows, packed=packed)
            plan = tasks.plan(chosen, examples, layout)
            store = devices.place(examples.to_device(), mesh, devices.SHARED)
            widths = (examples.places >= 0).sum(axis=1)
            for step in range(len(chosen)):
                fields = [
                    devices.place(field[step : step + 1], mesh, devices.A_SHARD)
                    for field in vars(plan).values()
                ]
                own = plan.example[step].ravel()
                whose = [
                    (place, int(numbers[example]), int(widths[example]))
                    for place, example in enumerate(own.tolist())
                    if example >= 0
                ]
                self._batches.append((store, fields, whose))

    def __call__(self, params) -> list[list[tuple[np.ndarray, ...]]]:
        """The predictions of each replica for each example.

        Args:
          params: of the replicas, [R, …].

        Returns:
          A classifier's: the best class of what has labels, int32 [W]. A parser's: the scores of
          heads, float32 [W, 1 + W], and the best relation to each head, int32 [W, 1 + W].
        """
        replicas = jax.tree.leaves(params)[0].shape[0]
        found: list[list[Any]] = [[None] * self._number for _ in range(replicas)]
        for store, fields, whose in self._batches:
            results = self._step(params, self._frozen, store, *fields)
            # [R, 1, shards, B, W, …] as [R, shards x B, W, …]
            flat = devices.fetch(list(results))
            flat = [x.reshape(replicas, -1, *x.shape[4:]) for x in flat]
            for place, number, width in whose:
                for replica in range(replicas):
                    found[replica][number] = tuple(
                        _cut(field[replica, place], width) for field in flat
                    )
        return found


def _cut(values: np.ndarray, width: int) -> np.ndarray:
    """Without filling: [width], or [width, 1 + width]."""
    return values[:width] if values.ndim == 1 else values[:width, : 1 + width]

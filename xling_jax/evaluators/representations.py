"""From sentences to hidden states and mean vectors, on the device, batch by batch."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np

from xling_jax import devices
from xling_jax.batches import packing
from xling_jax.batches.assembly import Batch, assemble
from xling_jax.batches.packing import Layout, Plan, Rows
from xling_jax.batches.setting import Setting
from xling_jax.batches.store import TokenStore
from xling_jax.models.bert import Bert, BertConfig

ORDERS = 4  # tells these random numbers from others of the same seed
PLAN_SPECS = Plan(devices.SHARED, devices.SHARED, devices.A_SHARD)  # how a plan lies on the mesh


def step_of(plan: Plan, i: jax.Array, first_sentence: jax.Array | int = 0) -> Plan:
    """Step i of a plan as one shard sees it, its sentences counted from `first_sentence` of the
    store."""
    sentence = jnp.where(plan.sentence[i] < 0, -1, plan.sentence[i] + first_sentence)
    return Plan(sentence, plan.start[i], plan.owner[i, 0])


def accumulate(plan: Plan, function: Callable, initial):
    """The sum over a plan's steps of `function(i)`, a tree like `initial`."""

    def body(i, total):
        return jax.tree.map(jnp.add, total, function(i))

    return jax.lax.fori_loop(0, plan.sentence.shape[0], body, initial)


def placed_plan(lengths: np.ndarray, sentences: np.ndarray, layout: Layout, mesh) -> Plan:
    """The plan, on the mesh, of batches of the given sentences (int [n]) of a store that has these
    lengths."""
    orders = (
        np.random.default_rng([ORDERS, a]).permutation(sentences) for a in range(packing.ATTEMPTS)
    )
    return devices.place(packing.planned(orders, lengths, layout), mesh, PLAN_SPECS)


def by_replica(metrics: Mapping[str, np.ndarray]) -> list[dict[str, float]]:
    """The numbers of each replica, from arrays with a replica axis."""
    number = len(next(iter(metrics.values())))
    return [{name: float(values[n]) for name, values in metrics.items()} for n in range(number)]


@dataclasses.dataclass(frozen=True)
class Encoder:
    """A model and the shape of the batches that it is evaluated on.

    Attributes:
      rows: the rows of one shard of a batch.
      axis: the mesh axis that a batch is divided over.
    """

    model: BertConfig
    rows: Rows
    axis: str = devices.DATA

    def states(
        self, params, batch: Batch, tokens_P: jax.Array, layers: Sequence[int]
    ) -> list[jax.Array]:
        """Hidden states [P, D] after each of `layers`, without dropout; `params` are plain."""
        places = batch.positions, batch.segments, batch.token_types
        states = Bert(self.model).apply(
            {"params": params}, tokens_P, *places, rows=self.rows, layers=layers
        )
        return cast(list[jax.Array], states)


def sentence_means(states_P: jax.Array, batch: Batch, plan: Plan, sentences: int) -> jax.Array:
    """The mean vector of each sentence's pieces, at the sentence's number.

    Special tokens do not count (D&S §2.2.1).

    Args:
      states_P: [P, D] of one layer.
      batch, plan: the step; sentences have numbers below `sentences` in the plan.
      sentences: S, the number of all sentences.

    Returns:
      float32 [S, D], zero for the sentences of other steps and shards.
    """
    slots = plan.sentence.shape[0]
    owner_P = jnp.where(batch.is_piece, plan.owner, slots)
    weighted = states_P.astype(jnp.float32)
    total_BxD = jax.ops.segment_sum(weighted, owner_P, slots + 1)[:slots]
    pieces_B = jax.ops.segment_sum(jnp.ones(owner_P.shape), owner_P, slots + 1)[:slots]
    mean_BxD = total_BxD / jnp.maximum(pieces_B, 1.0)[:, None]
    place_B = jnp.where(plan.sentence < 0, sentences, plan.sentence)
    return jnp.zeros((sentences, mean_BxD.shape[1])).at[place_B].add(mean_BxD, mode="drop")


def encode_parallel(
    encoder: Encoder,
    params,
    setting: Setting,
    store: TokenStore,
    plan: Plan,
    n: int,
    languages: Sequence[int],
    layers: Sequence[int],
    compare: Callable | None = None,
):
    """Mean sentence vectors of parallel languages in which translations have equal lengths.

    Args:
      store: n sentences of each language, language after language.
      plan: of n sentences, which have the same places in all languages.
      languages: the numbers of the languages to encode.
      compare: takes the states, a list of [P, D] for each language, and the languages' batches; its
        results are summed over all batches.

    Returns:
      float32 vectors [languages, layers, n, D], and the sums of `compare`, None without it.
    """

    def one(i):
        batches, states, vectors = [], [], []
        for language in languages:
            shifted, step = step_of(plan, i, language * n), step_of(plan, i)
            batch = assemble(store, shifted, setting)
            batches.append(batch)
            states.append(encoder.states(params, batch, batch.tokens, layers))
            vectors.append(jnp.stack([sentence_means(x, batch, step, n) for x in states[-1]]))
        compared = compare(states, batches) if compare else None
        return jnp.stack(vectors), compared

    shapes = jax.eval_shape(one, jnp.int32(0))
    zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
    return jax.tree.map(lambda x: jax.lax.psum(x, encoder.axis), accumulate(plan, one, zeros))

"""Translations found by nearest vectors, in models that may be partitioned by language.

A sentence's vector is the mean of its pieces, and sentences are compared by what the registry has
for them, such as the nearest by cosine (Artetxe & Schwenk 2019, as W&C §5.1.3 use it). A word is
encoded alone between [CLS] and [SEP], and the nearest is found by CSLS (Conneau et al. 2017).
"""

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from xling_jax import devices
from xling_jax.batches import packing
from xling_jax.batches.assembly import assemble
from xling_jax.batches.setting import Setting
from xling_jax.batches.store import TokenStore
from xling_jax.evaluators import registry
from xling_jax.evaluators.comparison import (
    COMPARISONS,
    Numbers,
    Parallel,
    by_layer,
    word_precision,
)
from xling_jax.evaluators.representations import (
    PLAN_SPECS,
    Encoder,
    accumulate,
    by_replica,
    placed_plan,
    sentence_means,
    step_of,
)
from xling_jax.models import partition
from xling_jax.models.bert import BertConfig


def plain_setting(languages: int) -> Setting:
    """The setting of batches in which no language is treated in a way of its own."""
    zero = jnp.int32(0)
    return Setting(
        seed=jnp.uint32(0),
        learning_rate=jnp.float32(0),
        position_offset=zero,
        token_type_step=zero,
        special_shift=zero,
        inverted=jnp.zeros(languages, bool),
        marginals=jnp.zeros(4),
        neighbours=jnp.zeros((1, 1), jnp.int32),
    )


@dataclasses.dataclass(frozen=True)
class Translated:
    """Sentences or words of two languages, to find the translation of each in the other.

    Attributes:
      language: the second language's name, which the metrics' names contain.
      languages: the numbers of both languages in the model.
      texts: ids of n and of m sentences or words.
      gold: for each of n words, the numbers of its translations among the m; None for sentences,
        of which those with the same number translate each other.
    """

    language: str
    languages: tuple[int, int]
    texts: tuple[Sequence[np.ndarray], Sequence[np.ndarray]]
    gold: Sequence[Sequence[int]] | None = None


def _gold_tables(item: Translated) -> list[np.ndarray]:
    """Of each side a table of the numbers of each word's translations, filled up with -1."""
    assert item.gold is not None
    backward: list[list[int]] = [[] for _ in item.texts[1]]
    for number, found in enumerate(item.gold):
        for other in found:
            backward[other].append(number)
    tables = []
    for side in (item.gold, backward):
        table = np.full((len(side), max(map(len, side))), -1, np.int32)
        for row, found in zip(table, side, strict=True):
            row[: len(found)] = found
        tables.append(table)
    return tables


class Translations:
    """Finds translations with replicas side by side, in one compiled program."""

    def __init__(
        self,
        model: BertConfig,
        mesh: Mesh,
        items: Sequence[Translated],
        *,
        names: Sequence[str],
        layers: Sequence[int],
        max_length: int,
        sentences: int,
        row_lengths: Sequence[int],
    ):
        """Plans the batches and puts the texts on the devices.

        Args:
          names: metrics of the registry to measure, those of sentences and of words.
          layers: the layers whose vectors are compared.
          max_length: places of a sentence; longer ones are cut.
          sentences, row_lengths: of a batch; the number of sentences is rounded up to a multiple of
            the shards.
        """
        of = {True: registry.names(registry.DICTIONARY), False: registry.names(registry.SENTENCES)}
        chosen = [[name for name in names if name in of[bool(item.gold)]] for item in items]
        self._layers, self._names = tuple(layers), [own for own in chosen if own]
        self._items = items = [item for item, own in zip(items, chosen, strict=True) if own]
        self._inputs: list = []
        self._encoders: list[Encoder] = []
        self.counts: dict[str, float] = {}
        shards = mesh.shape[devices.DATA]
        for item in items:
            cut = []
            for ids in item.texts:
                text = TokenStore.from_languages([ids], max_length)
                cut.append(text.truncated / len(text))
                order = np.arange(len(text))
                layout = packing.choose_layout(
                    text.lengths,
                    [order],
                    sentences + -sentences % shards,
                    row_lengths,
                    shards,
                    divisor=math.lcm(packing.ROW_DIVISOR, shards),
                )
                self._encoders.append(Encoder(model, layout.shard_rows))
                self._inputs.append(devices.place(text, mesh, devices.SHARED))
                self._inputs.append(placed_plan(text.lengths, order, layout, mesh))
            task = "words" if item.gold else "retrieval"
            self.counts[f"{task}_candidates_{item.language}"] = float(len(item.texts[1]))
            if not item.gold:
                self.counts[f"{task}_cut_{item.language}"] = max(cut)
        self._gold = [_gold_tables(item) if item.gold else None for item in items]
        specs = [devices.A_REPLICA, *[devices.SHARED, PLAN_SPECS] * len(self._encoders)]
        self._evaluate = jax.jit(
            devices.per_replica(self._translations, mesh, specs, devices.A_REPLICA, one_by_one=True)
        )

    def _vectors(self, encoder: Encoder, plain, store, plan) -> jax.Array:
        """The mean vectors of all sentences of a store at each layer, [layers, n, D]."""
        number, setting = store.languages.shape[0], plain_setting(1)

        def one(i):
            step = step_of(plan, i)
            batch = assemble(store, step, setting)
            states = encoder.states(plain, batch, batch.tokens, self._layers)
            return jnp.stack([sentence_means(state, batch, step, number) for state in states])

        shape = (len(self._layers), number, encoder.model.hidden)
        return jax.lax.psum(accumulate(plan, one, jnp.zeros(shape)), encoder.axis)

    def _translations(self, params, *inputs) -> Mapping[str, jax.Array]:
        """Metrics of one replica."""
        metrics: dict[str, jax.Array] = {}
        sides = list(zip(self._encoders, inputs[::2], inputs[1::2], strict=True))
        for number, item in enumerate(self._items):
            vectors = [
                self._vectors(encoder, partition.select(params, language), store, plan)
                for language, (encoder, store, plan) in zip(
                    item.languages, sides[2 * number : 2 * number + 2], strict=True
                )
            ]
            compare = functools.partial(self._compared, number)
            for (name, end), value in by_layer(compare, tuple(vectors), self._layers).items():
                metrics[f"{name}_{item.language}{end}"] = value
        return metrics

    def _compared(self, number: int, vectors: tuple[jax.Array, jax.Array]) -> dict[str, Numbers]:
        """The numbers of every comparison of an item's two sides, [n, D] and [m, D], by its name
        and part."""
        gold, names = self._gold[number], self._names[number]
        if gold is None:
            pair = Parallel(*vectors)
            return {name: COMPARISONS[name](pair) for name in names}
        tables = [jnp.asarray(table) for table in gold]
        return {name: {"": word_precision(vectors, tables)} for name in names}

    def __call__(self, params) -> list[dict[str, float]]:
        """The metrics of each replica, from parameters with a leading replica axis.

        `retrieval_candidates_NAME` and `words_candidates_NAME` are the numbers of sentences and
        words of language NAME among which translations are looked for, `retrieval_cut_NAME` the
        share of sentences that were cut, on the side where more were.
        """
        if not self._items:
            return [{} for _ in jax.tree.leaves(params)[0]]
        found = by_replica(devices.fetch(self._evaluate(params, *self._inputs)))
        return [own | self.counts for own in found]

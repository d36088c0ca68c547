"""The evaluation of Dufter & Schütze 2020 (§2.2): how multilingual a model is, and how good."""

import dataclasses
import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from xling_jax import devices
from xling_jax.batches import packing
from xling_jax.batches.corruption import PieceRange
from xling_jax.batches.store import TokenStore
from xling_jax.evaluators import registry
from xling_jax.evaluators.comparison import COMPARISONS, Parallel, count_links, f1
from xling_jax.evaluators.perplexity import perplexities
from xling_jax.evaluators.representations import (
    Encoder,
    EvaluationPlan,
    by_replica,
    encode_parallel,
    placed_text,
)
from xling_jax.models import partition
from xling_jax.models.bert import BertConfig


def paper_layers(layers: int) -> tuple[int, int]:
    """The two layers that D&S evaluate: 0 and 8 of 12; 0 and round(2L/3) at other depths."""
    return 0, round(2 * layers / 3)


def require_layers(layers: Sequence[int], depth: int) -> None:
    """Raises ValueError unless there are layers, and the model has them all."""
    if not layers or not all(0 <= layer <= depth for layer in layers):
        raise ValueError(f"evaluators.layers={tuple(layers)}: the model has layers 0..{depth}")


@dataclasses.dataclass(frozen=True)
class EncodedTexts:
    """What is evaluated on; in each, n sentences of one language and then their counterparts.

    train, dev: sentences. pieces: every piece of the vocabulary as a sentence.
    """

    train: TokenStore
    dev: TokenStore
    pieces: TokenStore


class Multilinguality:
    """Evaluates replicas side by side, in one compiled program."""

    def __init__(
        self,
        model: BertConfig,
        texts: EncodedTexts,
        pieces: PieceRange,
        mesh: Mesh,
        *,
        names: Sequence[str],
        layers: Sequence[int],
        sentences: int,
        row_lengths: Sequence[int],
        attend_padding: bool = False,
    ):
        """Plans the batches, which are as in training, and puts the texts on the devices.

        Args:
          pieces: the vocabulary's ordinary pieces.
          names: in the registry, what is measured besides perplexity.
          layers: whose vectors are evaluated; the mean over them is mu. ValueError for one that
            the model does not have.
        """
        require_layers(layers, model.layers)
        self._names, self._layers, self._pieces = tuple(names), tuple(layers), pieces
        self._candidates = len(texts.dev) // 2
        self._inputs: list = []
        self._encoders = []
        shards = mesh.shape[devices.DATA]
        for text, is_parallel in [
            (texts.train, False),
            (texts.dev, False),
            (texts.dev, True),
            (texts.pieces, True),
        ]:
            order = np.arange(len(text) // 2 if is_parallel else len(text))
            layout = packing.choose_layout(
                text.lengths, [order], sentences, row_lengths, shards, attend_padding
            )
            self._encoders.append(Encoder(model, layout.shard_rows))
            self._inputs += placed_text(text, order, layout, mesh)
        specs = [devices.A_REPLICA] * 2 + [devices.SHARED, EvaluationPlan.specs()] * 4
        self._evaluate = jax.jit(
            devices.per_replica(self._one, mesh, specs, devices.A_REPLICA, one_by_one=True)
        )

    def _one(self, params, setting, *inputs):
        """Metrics of one replica, and its layer-0 vectors of all pieces [2, V, D]."""
        params = partition.select(params)
        train, dev, parallel, pieces = zip(self._encoders, inputs[::2], inputs[1::2], strict=True)
        metrics = {}
        for name, (encoder, *text) in (("train", train), ("dev", dev)):
            found = perplexities(encoder, params, setting, *text, self._pieces)
            metrics |= {f"perplexity_{name}{end}": value for end, value in found.items()}

        def encoded(encoder, *text, layers, compare=None):
            return encode_parallel(encoder, params, setting, *text, layers, compare)

        links = functools.partial(count_links, rows=parallel[0].rows)
        compare = links if "alignment_f1" in self._names else None
        sentences, counts = encoded(*parallel, layers=self._layers, compare=compare)
        word_layers = tuple(sorted({0, *self._layers}))
        words, _ = encoded(*pieces, layers=word_layers)
        for number, layer in enumerate(self._layers):
            vectors = {
                registry.SENTENCES: Parallel(*sentences[:, number]),
                registry.PIECES: Parallel(*words[:, word_layers.index(layer)]),
            }
            for name in self._names:
                of = registry.EVALUATORS[name].of
                if of == registry.TOKENS:
                    found = {"": f1(counts)[number]}
                else:
                    found = COMPARISONS[name](vectors[of])
                metrics |= {f"{name}_{layer}{end}": value for end, value in found.items()}
        if {"retrieval", "translation"} <= set(self._names):
            parts = [metrics[f"{name}_{layer}"] for name in ("retrieval", "translation")
                     for layer in self._layers]  # fmt: skip
            metrics["mu"] = jnp.mean(jnp.stack(parts))
        return metrics, words[:, 0]

    def __call__(self, params, settings) -> tuple[list[dict[str, float]], np.ndarray]:
        """Evaluates parameters and settings with a leading replica axis.

        Returns:
          The metrics of each replica, and the layer-0 vectors of all pieces [R, 2, V, D].
        """
        metrics, vectors = devices.fetch(self._evaluate(params, settings, *self._inputs))
        candidates = {"retrieval_candidates": self._candidates}
        return [own | candidates for own in by_replica(metrics)], vectors

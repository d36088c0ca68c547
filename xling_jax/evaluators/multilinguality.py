"""The evaluation of Dufter & Schütze 2020 (§2.2): how multilingual a model is, and how good."""

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from xling_jax import devices
from xling_jax.batches import packing
from xling_jax.batches.corruption import PieceRange
from xling_jax.batches.store import TokenStore
from xling_jax.evaluators.perplexity import perplexities
from xling_jax.evaluators.representations import (
    Encoder,
    EvaluationPlan,
    encode_parallel,
    placed_text,
)
from xling_jax.evaluators.sentence_retrieval import precisions
from xling_jax.evaluators.word_alignment import count_links, f1
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
class Texts:
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
        texts: Texts,
        pieces: PieceRange,
        mesh: Mesh,
        *,
        layers: Sequence[int],
        sentences: int,
        row_lengths: Sequence[int],
        attend_padding: bool = False,
    ):
        """Plans the batches and puts the texts on the devices.

        Args:
          model: of the replicas.
          texts: to evaluate on.
          pieces: the vocabulary's ordinary pieces.
          mesh: the replicas'.
          layers: whose vectors are evaluated; the mean over them is mu.
          sentences, row_lengths, attend_padding: of a batch, as in training.

        Raises:
          ValueError: a layer that the model does not have.
        """
        require_layers(layers, model.layers)
        self._layers = tuple(layers)
        self._pieces = pieces
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
        specs = [devices.SHARED, EvaluationPlan.specs()] * len(self._encoders)
        self._evaluate = jax.jit(
            devices.per_replica(
                self._one,
                mesh,
                [devices.A_REPLICA, devices.A_REPLICA, *specs],
                devices.A_REPLICA,
                one_by_one=True,
            )
        )

    def _one(self, params, setting, train, train_plan, dev, dev_plan, pairs, pairs_plan, *words):
        """Metrics of one replica, and its layer-0 vectors of all pieces [2, V, D]."""
        params = partition.select(params)
        train_encoder, dev_encoder, pairs_encoder, words_encoder = self._encoders
        metrics = {}
        for name, encoder, store, plan in [
            ("train", train_encoder, train, train_plan),
            ("dev", dev_encoder, dev, dev_plan),
        ]:
            found = perplexities(encoder, params, setting, store, plan, self._pieces)
            metrics |= {f"perplexity_{name}{suffix}": value for suffix, value in found.items()}

        def compare(*states_and_batches):
            return count_links(*states_and_batches, pairs_encoder.rows)

        sentence_vectors, links = encode_parallel(
            pairs_encoder, params, setting, pairs, pairs_plan, self._layers, compare
        )
        word_layers = tuple(sorted({0, *self._layers}))
        word_vectors, _ = encode_parallel(words_encoder, params, setting, *words, word_layers)
        for number, layer in enumerate(self._layers):
            metrics[f"alignment_f1_{layer}"] = f1(links)[number]
            for task, vectors in [
                ("retrieval", sentence_vectors[:, number]),
                ("translation", word_vectors[:, word_layers.index(layer)]),
            ]:
                found = precisions(vectors)
                metrics |= {f"{task}_{layer}{suffix}": value for suffix, value in found.items()}
        scores = [metrics[f"{t}_{n}"] for t in ("retrieval", "translation") for n in self._layers]
        metrics["mu"] = jnp.mean(jnp.stack(scores))
        return metrics, word_vectors[:, 0]

    def __call__(self, params, settings) -> tuple[list[dict[str, float]], np.ndarray]:
        """Evaluates parameters and settings with a leading replica axis.

        Returns:
          The metrics of each replica, and the layer-0 vectors of all pieces [R, 2, V, D].
        """
        metrics, vectors = devices.fetch(self._evaluate(params, settings, *self._inputs))
        replicas = [
            {name: float(values[replica]) for name, values in metrics.items()}
            | {"retrieval_candidates": self._candidates}
            for replica in range(len(vectors))
        ]
        return replicas, vectors

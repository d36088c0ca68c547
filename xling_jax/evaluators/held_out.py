"""Perplexity on held-out sentences, language by language."""

from collections.abc import Sequence

import jax
import numpy as np
from jax.sharding import Mesh

from xling_jax import devices
from xling_jax.batches import packing
from xling_jax.batches.corruption import PieceRange
from xling_jax.batches.store import TokenStore
from xling_jax.evaluators.perplexity import perplexities
from xling_jax.evaluators.representations import Encoder, EvaluationPlan, placed_plan
from xling_jax.models import partition
from xling_jax.models.bert import BertConfig


class HeldOutPerplexity:
    """Evaluates replicas side by side, in one compiled program."""

    def __init__(
        self,
        model: BertConfig,
        text: TokenStore,
        languages: Sequence[str],
        pieces: PieceRange,
        mesh: Mesh,
        *,
        sentences: int,
        row_lengths: Sequence[int],
        attend_padding: bool = False,
    ):
        """Plans the batches and puts the text on the devices.

        Args:
          model: of the replicas.
          text: sentences of all languages.
          languages: their names.
          pieces: the vocabulary's ordinary pieces.
          mesh: the replicas'.
          sentences, row_lengths, attend_padding: of a batch, as in training.
        """
        self._languages, self._pieces = tuple(languages), pieces
        self._store = devices.place(text.to_device(), mesh, devices.SHARED)
        self._inputs: list[EvaluationPlan] = []
        self._encoders = []
        for number in range(len(languages)):
            own = np.flatnonzero(text.languages == number)
            layout = packing.choose_layout(
                text.lengths,
                [own],
                sentences,
                row_lengths,
                mesh.shape[devices.DATA],
                attend_padding,
            )
            self._encoders.append(Encoder(model, layout.shard_rows))
            self._inputs.append(placed_plan(text, own, layout, mesh))
        specs = [devices.A_REPLICA] * 2 + [devices.SHARED]
        specs += [EvaluationPlan.specs()] * len(languages)  # type: ignore[list-item]
        self._evaluate = jax.jit(
            devices.per_replica(self._one, mesh, specs, devices.A_REPLICA, one_by_one=True)
        )

    def _one(self, params, setting, store, *plans):
        """`perplexity_dev_LANGUAGE` of one replica."""
        params = partition.select(params)
        return {
            f"perplexity_dev_{name}": perplexities(
                encoder, params, setting, store, plan, self._pieces
            )[""]
            for name, encoder, plan in zip(self._languages, self._encoders, plans, strict=True)
        }

    def __call__(self, params, settings) -> tuple[list[dict[str, float]], np.ndarray]:
        """Evaluates parameters and settings with a leading replica axis.

        Returns:
          `perplexity_dev_LANGUAGE` of each replica, and `perplexity_dev`, their geometric mean;
          and no vectors, [R, 0].
        """
        found = devices.fetch(self._evaluate(params, settings, self._store, *self._inputs))
        replicas = len(next(iter(found.values())))
        mean = np.exp(np.mean([np.log(values) for values in found.values()], axis=0))
        every = {**found, "perplexity_dev": mean}
        metrics = [{k: float(v[n]) for k, v in every.items()} for n in range(replicas)]
        return metrics, np.zeros((replicas, 0))

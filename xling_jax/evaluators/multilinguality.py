"""The evaluation of Dufter & Schütze 2020 (§2.2): how multilingual a model is, and how good."""

import dataclasses
import functools
import itertools
from collections.abc import Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh

from xling_jax import devices
from xling_jax.batches import packing
from xling_jax.batches.corruption import PieceRange
from xling_jax.batches.store import TokenStore
from xling_jax.evaluators import registry
from xling_jax.evaluators.comparison import COMPARISONS, Parallel, by_layer, count_links, f1
from xling_jax.evaluators.perplexity import perplexities
from xling_jax.evaluators.representations import (
    PLAN_SPECS,
    Encoder,
    by_replica,
    encode_parallel,
    placed_plan,
)
from xling_jax.models import partition
from xling_jax.models.bert import BertConfig


@dataclasses.dataclass(frozen=True)
class EncodedTexts:
    """The texts that models are evaluated on.

    Attributes:
      languages: names of the languages.
      texts: texts whose perplexity is measured, by the name that it has in `perplexity_NAME`.
      sentences, words: n of each language, language after language, those with the same number
        being translations of each other; None without any.
      is_apart: whether each language has a perplexity of its own, and a text their geometric mean;
        otherwise a text has one perplexity over all languages.
    """

    languages: Sequence[str]
    texts: Mapping[str, TokenStore]
    sentences: TokenStore | None
    words: TokenStore | None
    is_apart: bool = False


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
        """Plans the batches and puts the texts on the devices.

        Args:
          pieces: the vocabulary's ordinary pieces.
          names: metrics of the registry to measure besides perplexity; those that lack their texts
            are left out. alignment_f1 needs translations of equal lengths.
          layers: the layers whose vectors are evaluated; ValueError for one that the model does not
            have. mu is measured if both layers of the paper (`registry.paper_layers`) are there.
          sentences, row_lengths, attend_padding: of the batches, as in training.
        """
        registry.require_layers(layers, model.layers, "evaluators.layers")
        self._layers, self._pieces, self._texts = tuple(layers), pieces, texts
        self._mu_layers = registry.paper_layers(model.layers)
        of = {
            registry.SENTENCES: texts.sentences,
            registry.TOKENS: texts.sentences,
            registry.PIECES: texts.words,
        }
        self._names = [name for name in names if of[registry.EVALUATORS[name].of] is not None]
        number = len(texts.languages)
        self._pairs = list(itertools.combinations(range(number), 2))
        self._inputs: list = []
        self._encoders: list[Encoder] = []
        stores: dict[int, TokenStore] = {}

        def add(text: TokenStore, lengths: np.ndarray, order: np.ndarray) -> None:
            layout = packing.choose_layout(
                lengths, [order], sentences, row_lengths, mesh.shape[devices.DATA], attend_padding
            )
            if id(text) not in stores:
                stores[id(text)] = devices.place(text, mesh, devices.SHARED)
            self._inputs += [stores[id(text)], placed_plan(lengths, order, layout, mesh)]
            self._encoders.append(Encoder(model, layout.shard_rows))

        self._perplexities = []
        for name, text in texts.texts.items():
            orders = {name: np.arange(len(text))}
            if texts.is_apart:
                own = enumerate(texts.languages)
                orders = {f"{name}_{x}": np.flatnonzero(text.languages == k) for k, x in own}
            for metric, order in orders.items():
                self._perplexities.append(f"perplexity_{metric}")
                add(text, text.lengths, order)
        # Translations of equal lengths, as Fake-English has them, stand in the same places.
        self._together: dict[str, list[list[int]]] = {}  # the languages that are encoded together
        for kind in (registry.SENTENCES, registry.PIECES):
            if (parallel := of[kind]) is not None:
                lengths_KxN = parallel.lengths.reshape(number, -1)
                is_alike = (lengths_KxN == lengths_KxN[0]).all()
                every = list(range(number))
                self._together[kind] = [every] if is_alike else [[k] for k in every]
                for group in self._together[kind]:
                    add(parallel, lengths_KxN[group[0]], np.arange(lengths_KxN.shape[1]))
        specs = [*[devices.A_REPLICA] * 2, *[devices.SHARED, PLAN_SPECS] * len(self._encoders)]
        spread = devices.per_replica(
            self._multilinguality, mesh, specs, devices.A_REPLICA, one_by_one=True
        )
        self._evaluate = jax.jit(spread)

    def _multilinguality(self, params, setting, *inputs):
        """Metrics of one replica, and its layer-0 vectors of all words [K, V, D] ([0] if there are
        no words)."""
        params = partition.select(params)
        places = iter(zip(self._encoders, inputs[::2], inputs[1::2], strict=True))
        metrics = {}
        for name in self._perplexities:
            encoder, *text = next(places)
            found = perplexities(encoder, params, setting, *text, self._pieces)
            metrics |= {f"{name}{end}": value for end, value in found.items()}

        def encoded(kind, layers, compare=None):
            """Vectors [languages, layers, n, D], and the sums of `compare`."""
            vectors, compared = [], None
            for group in self._together[kind]:
                encoder, store, plan = next(places)
                n = store.languages.shape[0] // len(self._texts.languages)
                links = functools.partial(compare, encoder.rows) if compare else None
                own, compared = encode_parallel(
                    encoder, params, setting, store, plan, n, group, layers, links
                )
                vectors.append(own)
            return jnp.concatenate(vectors), compared

        vectors, counts, words = {}, None, jnp.zeros((0,))
        if registry.SENTENCES in self._together:
            links = self._links if "alignment_f1" in self._names else None
            vectors[registry.SENTENCES], counts = encoded(registry.SENTENCES, self._layers, links)
        if registry.PIECES in self._together:
            layers = tuple(sorted({0, *self._layers}))
            every, _ = encoded(registry.PIECES, layers)
            words = every[:, 0]
            vectors[registry.PIECES] = every[:, np.searchsorted(layers, self._layers)]
        by_pair = {}
        for kind, vectors_KxLxNxD in vectors.items():
            compare = functools.partial(self._compared, kind)
            by_pair |= by_layer(compare, vectors_KxLxNxD.swapaxes(0, 1), self._layers)
        if counts is not None:
            for layer, found in zip(self._layers, f1(counts).T, strict=True):
                by_pair["alignment_f1", f"_{layer}"] = found
        parts = [by_pair.get((name, f"_{layer}")) for name in ("retrieval", "translation")
                 for layer in self._mu_layers]  # fmt: skip
        if all(part is not None for part in parts):
            by_pair["mu", ""] = jnp.mean(jnp.stack(parts), axis=0)
        return metrics | self._named(by_pair), words

    def _links(self, rows, states, batches):
        """`count_links` of every pair, [pairs, layers, 3]."""
        return jnp.stack([
            count_links(states[x], states[y], batches[x], batches[y], rows) for x, y in self._pairs
        ])  # fmt: skip

    def _compared(self, kind, vectors_KxNxD):
        """The numbers of every comparison of vectors of a kind, by its name and part, [pairs]."""
        names = [name for name in self._names if registry.EVALUATORS[name].of == kind]

        def one(pair_2):
            pair = Parallel(*vectors_KxNxD[pair_2])
            return {name: COMPARISONS[name](pair) for name in names}

        return jax.lax.map(one, jnp.array(self._pairs))

    def _named(self, by_pair):
        """The means over pairs by the metrics' names and, if there are several pairs, the numbers
        of each."""
        metrics = {f"{name}{end}": jnp.mean(found) for (name, end), found in by_pair.items()}
        if len(self._pairs) > 1:
            for number, pair in enumerate(self._pairs):
                languages = "-".join(self._texts.languages[k] for k in pair)
                metrics |= {
                    f"{name}_{languages}{end}": found[number]
                    for (name, end), found in by_pair.items()
                }
        return metrics

    def __call__(self, params, settings) -> tuple[list[dict[str, float]], np.ndarray]:
        """Evaluates parameters and settings with a leading replica axis.

        Returns:
          The metrics of each replica: means over all pairs of languages and, of more than two
          languages, the numbers of each pair, such as `retrieval_en-fake_8`; `retrieval_cut`, the
          share of sentences that were cut, unless it is 0. And the layer-0 vectors of all words,
          [R, K, V, D] ([R, 0] if there are no words).
        """
        metrics, vectors = devices.fetch(self._evaluate(params, settings, *self._inputs))
        texts = self._texts
        for name in texts.texts if texts.is_apart else ():
            own = [np.log(metrics[f"perplexity_{name}_{x}"]) for x in sorted(texts.languages)]
            metrics[f"perplexity_{name}"] = np.exp(np.mean(own, axis=0))
        known = dict[str, float]()
        if texts.sentences is not None:
            known["retrieval_candidates"] = len(texts.sentences) // len(texts.languages)
            if texts.sentences.truncated:
                known["retrieval_cut"] = texts.sentences.truncated / len(texts.sentences)
        return [own | known for own in by_replica(metrics)], vectors

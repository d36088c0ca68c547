"""The order of training: which sentences, in which epoch, for which replica."""

import dataclasses
import math
from collections.abc import Iterator

import numpy as np

from xling_jax.batches import packing

ORDERS = 2  # tells these random numbers from others of the same seed


def own_parts(sentences: int, languages: int) -> np.ndarray:
    """The first part of the first language's sentences, the second of the second's, …. Of parallel
    texts, each language's part tells what no other one does (D&S §2.4)."""
    everything = np.arange(sentences).reshape(languages, -1)
    parts = np.array_split(np.arange(everything.shape[1]), languages)
    return np.concatenate([row[part] for row, part in zip(everything, parts, strict=True)])


@dataclasses.dataclass(frozen=True)
class Sampler:
    """Plans epochs of shuffled sentences of all languages (D&S §2.1: both shuffled together).

    An epoch's plan depends on the seed and the epoch alone, so a run resumes anywhere.

    lengths: int [S], places each sentence takes, language after language. languages: how many.
    parallel: False trains language k on the k-th part of its sentences only, and passes over that
    part `languages` times an epoch, so that an epoch has as many updates (D&S §2.4).
    """

    lengths: np.ndarray
    languages: int
    layout: packing.Layout
    seed: int
    parallel: bool = True

    @property
    def sentences(self) -> np.ndarray:
        """The sentences of one pass, in the order of the store."""
        number = len(self.lengths)
        return np.arange(number) if self.parallel else own_parts(number, self.languages)

    @property
    def steps_per_epoch(self) -> int:
        """Updates an epoch; the same for every replica of an experiment."""
        return math.ceil(len(self.lengths) / self.layout.sentences)

    def plan(self, epoch: int) -> packing.Plan:
        return packing.planned(self._orders(epoch), self.lengths, self.layout)

    def _orders(self, epoch: int) -> Iterator[np.ndarray]:
        sentences = self.sentences
        passes = 1 if self.parallel else self.languages
        for attempt in range(packing.ATTEMPTS):
            random = np.random.default_rng([ORDERS, self.seed, epoch, attempt])
            yield np.concatenate([random.permutation(sentences) for _ in range(passes)])

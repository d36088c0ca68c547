"""Domains: another mixture of topics and other word frequencies, of the same concepts."""

import dataclasses

import numpy as np

from xling_jax.corpora.embedded.concepts import Concept, Concepts
from xling_jax.corpora.embedded.second import SecondConfig


def move(concepts: Concepts, config: SecondConfig, seed: int) -> Concepts:
    """The concepts, spoken of as often as in a second language's domain.

    A kind is then no longer sorted by frequency.

    Args:
      concepts: of the first language.
      config: the second language's knobs.
      seed: of the first language.
    """
    if config.domain == 0:
        return concepts
    rng = np.random.Generator(np.random.PCG64([seed, config.seed, 2]))
    frequency = {
        kind: _mix(shares, _deal(getattr(concepts, kind), shares, rng), config.domain)
        for kind, shares in concepts.frequency.items()
    }
    # The topics' probabilities fall with their number.
    topics = _mix(concepts.topics, concepts.topics[::-1], config.domain)
    return dataclasses.replace(concepts, frequency=frequency, topics=topics)


def _mix(first: np.ndarray, other: np.ndarray, share: float) -> np.ndarray:
    return (1 - share) * first + share * other


def _deal(kind: list[Concept], shares: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Permutes frequencies among concepts of the same category and meaning class."""
    dealt = shares.copy()
    for key in dict.fromkeys((concept.category, concept.meaning) for concept in kind):
        rows = [concept.row for concept in kind if (concept.category, concept.meaning) == key]
        dealt[rows] = shares[rng.permutation(rows)]
    return dealt

"""The random draws that derivations are made of."""

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from xling_jax.corpora.embedded.concepts import Concept, Concepts
from xling_jax.corpora.embedded.config import LanguageConfig
from xling_jax.corpora.embedded.habits import Habits
from xling_jax.corpora.embedded.preferences import Preferences, Sampler, Table

_BLOCK = 4096
_TRIES = 3  # to find a noun on the topic

T = TypeVar("T")


class Draws:
    """Samplers of a language's tables (see `Preferences` and `Habits`), and the present topic."""

    def __init__(
        self,
        config: LanguageConfig,
        concepts: Concepts,
        preferences: Preferences,
        habits: Habits,
        seed: int,
    ) -> None:
        # A last number keeps these draws apart from those that made the language.
        rng = np.random.Generator(np.random.PCG64([config.seed, seed, 1]))
        self._rng = rng
        self._numbers: list[float] = []
        self._off_topic = math.exp(-config.topicality)
        self.verb = Sampler(preferences.verb, rng)
        self.noun = Sampler(preferences.noun, rng)
        self.subject = Sampler(preferences.subject, rng)
        self.object = Sampler(preferences.object, rng)
        self.complement = Sampler(preferences.complement, rng)
        self.adjunct = Sampler(preferences.adjunct, rng)
        self.subject_of = Sampler(preferences.subject_of, rng)
        self.object_of = Sampler(preferences.object_of, rng)
        self.modifier = Sampler(preferences.modifier, rng)
        self.adjective = Sampler(preferences.adjective, rng)
        self.adverb = Sampler(preferences.adverb, rng)
        self.surname = Sampler(preferences.surname, rng)
        self.determiner = {n: Sampler(table, rng) for n, table in habits.determiner.items()}
        self.adposition = Sampler(habits.adposition, rng)
        self.tense = Sampler(habits.tense, rng)
        self._topics = Sampler(Table(concepts.topics[None], range(config.topics)), rng)
        self.topic = self._topics.draw(0)

    def change_topic(self) -> None:
        """Draws another topic, which may be the same."""
        self.topic = self._topics.draw(0)

    def number(self) -> float:
        """A uniform number in [0, 1)."""
        if not self._numbers:
            self._numbers = self._rng.random(_BLOCK).tolist()
        return self._numbers.pop()

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.number() < probability

    def choose(self, items: Sequence[T]) -> T:
        """One of the items, all alike."""
        return items[int(self.number() * len(items))]

    def on_topic(self, sampler: Sampler[Concept], row: int) -> Concept:
        """A concept from the sampler, preferably one on the topic or on none."""
        for _ in range(_TRIES):
            concept = sampler.draw(row)
            if concept.topic in (-1, self.topic) or self.chance(self._off_topic):
                break
        return concept

"""Sentences of an embedded language."""

import functools
import itertools
from collections.abc import Iterator

import numpy as np

from xling_jax.corpora.embedded import (
    concepts,
    domain,
    grammar,
    habits,
    lexicon,
    preferences,
    second_lexicon,
)
from xling_jax.corpora.embedded.config import LanguageConfig
from xling_jax.corpora.embedded.derivation import Constituent
from xling_jax.corpora.embedded.linearization import Linearizer, Word
from xling_jax.corpora.embedded.second import SecondConfig
from xling_jax.corpora.embedded.word_order import word_order

__all__ = ["Language", "LanguageConfig", "draw", "generate"]


class Language:
    """An embedded language: its concepts, their preferences and habits, and its words.

    Attributes:
      config: what it was made of.
      concepts, preferences, habits: what can be said, and how often.
      lexicon: concept to word.
      linearizer: puts derivations into words.
    """

    def __init__(self, config: LanguageConfig, second: SecondConfig | None = None) -> None:
        """Makes the language of `config`, or the second one that is derived from it."""
        self.config = config
        # One stream for each part, so that a knob of one part leaves the others as they are.
        streams = np.random.SeedSequence(config.seed).spawn(4)
        self._rngs = [np.random.Generator(np.random.PCG64(stream)) for stream in streams]
        self.concepts = concepts.draw(config, self._rngs[0])
        self.lexicon = lexicon.draw(self.concepts, self._rngs[3])
        self.linearizer = Linearizer(self.lexicon, self.concepts.function)
        if second is not None:
            self.lexicon = second_lexicon.derive(self.lexicon, self.concepts, second, config.seed)
            self.linearizer = Linearizer(
                self.lexicon,
                self.concepts.function,
                word_order(second),
                articles=second.articles,
                inversion=second.order == "svo" and second.morphology == "english",
                backwards=second.inverted,
            )
            self.concepts = domain.move(self.concepts, second, config.seed)

    # Large tables, which a language that only translates does not need.
    @functools.cached_property
    def preferences(self) -> preferences.Preferences:
        return preferences.draw(self.config, self.concepts, self._rngs[1])

    @functools.cached_property
    def habits(self) -> habits.Habits:
        return habits.draw(self.config, self.concepts, self._rngs[2])

    def deriver(self, seed: int) -> grammar.Deriver:
        """What draws derivations of sentences; ValueError if the seed is below 0."""
        if seed < 0:
            raise ValueError(f"seed={seed}: give a whole number of at least 0")
        return grammar.Deriver(self.config, self.concepts, self.preferences, self.habits, seed)

    def derivations(self, seed: int) -> Iterator[Constituent]:
        """Derivations of sentences without end; ValueError if the seed is below 0."""
        deriver = self.deriver(seed)
        return (deriver.sentence() for _ in itertools.count())

    def words(self, derivation: Constituent) -> list[Word]:
        """The words of a derivation in order, with punctuation, capitalised if the config says."""
        words = self.linearizer.words(derivation)
        if self.config.capitals:
            words = [_capitalise(word) for word in words]
            words[0] = words[0]._replace(form=words[0].form.capitalize())
        return words

    def text(self, derivation: Constituent) -> str:
        """A derivation as a line of text, words and punctuation separated by single spaces."""
        return " ".join([word.form for word in self.words(derivation)])


def generate(config: LanguageConfig, sentences: int, seed: int) -> list[str]:
    """Text of an embedded language; texts of different seeds share the language.

    Args:
      config: the language.
      sentences: how many, at least 1; fewer are a prefix of more.
      seed: of the sentences, at least 0; `config.seed` is that of the language.

    Returns:
      A sentence a line, words and punctuation separated by single spaces.

    Raises:
      ValueError: `sentences` or `seed` is too small.
    """
    language = _language(config)
    return [language.text(d) for d in draw(language, sentences, seed)]


def draw(language: Language, sentences: int, seed: int) -> Iterator[Constituent]:
    """So many derivations of a language; ValueError if `sentences` or `seed` is too small."""
    if sentences < 1:
        raise ValueError(f"sentences={sentences}: ask for at least one")
    return itertools.islice(language.derivations(seed), sentences)


@functools.lru_cache(maxsize=1)
def _language(config: LanguageConfig) -> Language:
    """The last language is kept: training and held-out text are usually asked for in turn."""
    return Language(config)


def _capitalise(word: Word) -> Word:
    is_name = word.constituent.concept.category == "PROPN" or word.form == "i"
    return word._replace(form=word.form.capitalize()) if is_name else word

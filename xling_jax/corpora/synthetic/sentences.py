"""Sentences of an embedded language."""

import functools
import itertools
from collections.abc import Iterator

import numpy as np

from xling_jax.corpora.synthetic import concepts, grammar, habits, lexicon, preferences
from xling_jax.corpora.synthetic.config import LanguageConfig
from xling_jax.corpora.synthetic.derivation import Constituent
from xling_jax.corpora.synthetic.linearization import Linearizer, Word

__all__ = ["Language", "LanguageConfig", "generate"]


class Language:
    """An embedded language: its concepts, their preferences and habits, and its words.

    Attributes:
      config: what it was made of.
      concepts, preferences, habits: what can be said, and how often.
      lexicon: concept to word.
      linearizer: puts derivations into words.
    """

    def __init__(self, config: LanguageConfig) -> None:
        self.config = config
        # One stream for each part, so that a knob of one part leaves the others as they are.
        streams = np.random.SeedSequence(config.seed).spawn(4)
        rngs = [np.random.Generator(np.random.PCG64(stream)) for stream in streams]
        self.concepts = concepts.draw(config, rngs[0])
        self.preferences = preferences.draw(config, self.concepts, rngs[1])
        self.habits = habits.draw(config, self.concepts, rngs[2])
        self.lexicon = lexicon.draw(self.concepts, rngs[3])
        self.linearizer = Linearizer(self.lexicon, self.concepts.function)

    def derivations(self, seed: int) -> Iterator[Constituent]:
        """Derivations of sentences without end; ValueError if the seed is below 0."""
        if seed < 0:
            raise ValueError(f"seed={seed}: give a whole number of at least 0")
        return grammar.derive(self.config, self.concepts, self.preferences, self.habits, seed)

    def text(self, derivation: Constituent) -> str:
        """A derivation as a line of text, words and punctuation separated by single spaces."""
        words = self.linearizer.words(derivation)
        forms = [word.form for word in words]
        if self.config.capitals:
            forms = [_capitalise(word) for word in words]
            forms[0] = forms[0].capitalize()
        return " ".join(forms)


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
    if sentences < 1:
        raise ValueError(f"sentences={sentences}: ask for at least one")
    language = _language(config)
    return [language.text(d) for d in itertools.islice(language.derivations(seed), sentences)]


@functools.lru_cache(maxsize=1)
def _language(config: LanguageConfig) -> Language:
    """The last language is kept: training and held-out text are usually asked for in turn."""
    return Language(config)


def _capitalise(word: Word) -> str:
    is_name = word.constituent.concept.category == "PROPN" or word.form == "i"
    return word.form.capitalize() if is_name else word.form

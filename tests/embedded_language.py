"""An embedded language of 600 words, with its sentences and derivations, for tests."""

import functools
import itertools

from xling_jax.corpora.embedded.config import LanguageConfig
from xling_jax.corpora.embedded.language import Language, generate


@functools.cache
def language(**knobs):
    return Language(LanguageConfig(**{"word_types": 600} | knobs))


@functools.cache
def derivations(count=3000, **knobs):
    return list(itertools.islice(language(**knobs).derivations(1), count))


@functools.cache
def sentences(count=10_000, seed=1, **knobs):
    return generate(LanguageConfig(**{"word_types": 600} | knobs), count, seed)


def words_of(constituent, lang):
    """Words in order, and the place and form of each constituent."""
    words = lang.linearizer.words(constituent)
    place = {id(word.constituent): i for i, word in enumerate(words)}
    return words, place

"""Two embedded languages: translations, texts that are none, and a dictionary."""

import collections
import functools

from xling_jax.corpora.embedded.config import LanguageConfig, SecondConfig
from xling_jax.corpora.embedded.language import Language

_COUNTED = 5000  # sentences that tell the frequency of a word
# Added to a seed, it gives derivations that no usual seed gives.
_SECOND_TEXT = 1 << 32


class Pair:
    """A language and a second one derived from it.

    Its methods raise a ValueError where less than one sentence is asked for or a seed is below 0.

    languages: both; `languages[k].text(derivation)` puts a derivation into either, and
    `languages[0].derivations(seed)` gives those of `parallel`.
    """

    def __init__(self, config: LanguageConfig, second: SecondConfig) -> None:
        self.languages = (Language(config), Language(config, second))

    def parallel(self, sentences: int, seed: int) -> tuple[list[str], list[str]]:
        """Translations: the text `generate(config, sentences, seed)`, and the same in the second. A
        line is the translation of that with the same number; fewer are a prefix of more."""
        first, second = self.languages
        lines = [(first.text(d), second.text(d)) for d in first.derivations(seed, sentences)]
        return [line for line, _ in lines], [line for _, line in lines]

    def texts(
        self, first_sentences: int, second_sentences: int, seed: int
    ) -> tuple[list[str], list[str]]:
        """Text of each language that translates nothing; the second's is of its own domain.

        The first is `generate(config, first_sentences, seed)`, so held-out text needs another seed;
        the second has no sentence in common with any text that `parallel` gives, but by chance.
        """
        first, second = self.languages
        return (
            [first.text(d) for d in first.derivations(seed, first_sentences)],
            [second.text(d) for d in second.derivations(seed + _SECOND_TEXT, second_sentences)],
        )

    @functools.cached_property
    def _entries(self) -> list[tuple[str, str]]:
        first, second = self.languages
        derivations = first.derivations(0, _COUNTED)
        counts = collections.Counter(node.concept.index for d in derivations for node in d.nodes())
        content = sorted(first.concepts.content(), key=lambda concept: -counts[concept.index])
        return [(first.lexicon.form(c), second.lexicon.form(c)) for c in content]

    def dictionary(self) -> list[tuple[str, str]]:
        """The content words, names included, as (first, second) dictionary forms.

        Each concept is there once, from the most to the least frequent in the first language's
        text. A word and its translation are lower-case even if `LanguageConfig.capitals` is 1.
        """
        return list(self._entries)


# The pair of a `LanguageConfig` and a `SecondConfig`, kept for the next call.
pair_of = functools.lru_cache(maxsize=2)(Pair)

"""Two embedded languages: translations, texts that are none, and a dictionary."""

import collections
import functools
from collections.abc import Sequence

from xling_jax.corpora.embedded.config import LanguageConfig
from xling_jax.corpora.embedded.second import FAR, NEAR, SecondConfig
from xling_jax.corpora.embedded.sentences import Language, draw

__all__ = [
    "EMBEDDED",
    "FAR",
    "NEAR",
    "LanguageConfig",
    "Pair",
    "SecondConfig",
    "are_embedded",
    "pair_of",
]

EMBEDDED = {"en": SecondConfig(), "near": NEAR, "far": FAR}  # by the names that configs have

_COUNTED = 5000  # sentences that tell the frequency of a word
# Added to a seed, it gives derivations that no usual seed gives.
_SECOND_TEXT = 1 << 32


def are_embedded(languages: Sequence[str]) -> bool:
    """Whether languages of a config are embedded ones.

    Raises:
      ValueError: some are and some are not, or they do not begin with `en`.
    """
    if set(languages).isdisjoint(EMBEDDED.keys() - {"en"}):
        return False
    if languages[0] != "en" or not set(languages) <= set(EMBEDDED):
        raise ValueError(
            f"{'-'.join(languages)}: the embedded languages are {', '.join(EMBEDDED)}, of "
            "which en comes first"
        )
    return True


class Pair:
    """A language and a second one derived from it.

    Attributes:
      languages: both; `languages[k].text(derivation)` puts a derivation into either, and
        `languages[0].derivations(seed)` gives those of `parallel`.
      config, second: what they were made of.
    """

    def __init__(self, config: LanguageConfig, second: SecondConfig) -> None:
        self.config = config
        self.second = second
        self.languages = (Language(config), Language(config, second))

    def parallel(self, sentences: int, seed: int) -> tuple[list[str], list[str]]:
        """Translations: the text `generate(config, sentences, seed)`, and the same in the second.

        Args:
          sentences: how many, at least 1; fewer are a prefix of more.
          seed: of the sentences, at least 0.

        Returns:
          The lines of both languages; a line is the translation of that with the same number.

        Raises:
          ValueError: `sentences` or `seed` is too small.
        """
        first, second = self.languages
        derivations = draw(first, sentences, seed)
        lines = [(first.text(d), second.text(d)) for d in derivations]
        return [line for line, _ in lines], [line for _, line in lines]

    def texts(
        self, first_sentences: int, second_sentences: int, seed: int
    ) -> tuple[list[str], list[str]]:
        """Text of each language that translates nothing; the second's is of its own domain.

        The first is `generate(config, first_sentences, seed)`, so held-out text needs another
        seed; the second has no sentence in common with any text that `parallel` gives, but by
        chance.

        Args:
          first_sentences, second_sentences: how many, at least 1.
          seed: of the sentences, at least 0.

        Raises:
          ValueError: a number or `seed` is too small.
        """
        if seed < 0:
            raise ValueError(f"seed={seed}: give a whole number of at least 0")
        first, second = self.languages
        return (
            [first.text(d) for d in draw(first, first_sentences, seed)],
            [second.text(d) for d in draw(second, second_sentences, seed + _SECOND_TEXT)],
        )

    @functools.cached_property
    def _entries(self) -> list[tuple[str, str]]:
        first, second = self.languages
        counts = collections.Counter(
            node.concept.index
            for derivation in draw(first, _COUNTED, 0)
            for node in derivation.nodes()
        )
        content = first.concepts.all()[len(first.concepts.function) :]
        content.sort(key=lambda concept: -counts[concept.index])
        return [(first.lexicon.form(c), second.lexicon.form(c)) for c in content]

    def dictionary(self) -> list[tuple[str, str]]:
        """The content words, names included, as (first, second) dictionary forms.

        Each concept is there once, from the most to the least frequent in the first language's
        text. A word and its translation are lower-case even if `config.capitals` is 1.
        """
        return list(self._entries)


@functools.lru_cache(maxsize=2)
def pair_of(config: LanguageConfig, second: SecondConfig) -> Pair:
    """The pair of these languages, kept for the next call."""
    return Pair(config, second)

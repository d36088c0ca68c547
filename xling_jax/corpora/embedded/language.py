"""An embedded language: its sentences in words, with gold trees and names. A pair of them:
translations, texts that do not translate each other, and a dictionary."""

import collections
import functools
import itertools
from collections.abc import Iterator

import numpy as np

from xling_jax.corpora.embedded import concepts, grammar, lexicon, preferences
from xling_jax.corpora.embedded.config import LanguageConfig, SecondConfig
from xling_jax.corpora.embedded.grammar import Constituent
from xling_jax.corpora.embedded.linearization import Linearizer, Word
from xling_jax.corpora.word_links import Links


class Language:
    """An embedded language: its concepts, their preferences, and its words.

    config: what it was made from. concepts, preferences: what can be said, and how often. lexicon:
    the words of concepts. linearizer: puts derivations into words.
    """

    def __init__(self, config: LanguageConfig, second: SecondConfig | None = None) -> None:
        """Makes the language of `config`, or, given `second`, the one derived from it."""
        self.config = config
        # One stream for each part, so that the knobs of one part leave the others as they are.
        streams = np.random.SeedSequence(config.seed).spawn(4)
        self._rngs = [np.random.Generator(np.random.PCG64(stream)) for stream in streams]
        self.concepts = concepts.draw(config, self._rngs[0])
        self.lexicon = lexicon.draw(self.concepts, self._rngs[3])
        if second is not None:
            self.lexicon = lexicon.derive(self.lexicon, self.concepts, second, config.seed)
            self.concepts = self.concepts.in_domain(second, config.seed)
        self.linearizer = Linearizer(self.lexicon, self.concepts.function, second or SecondConfig())

    @functools.cached_property
    def preferences(self) -> preferences.Preferences:
        """Made on first use: the tables are large, and translating does not need them."""
        return preferences.draw(self.config, self.concepts, (self._rngs[1], self._rngs[2]))

    def deriver(self, seed: int) -> grammar.Deriver:
        """A source of derivations of sentences; ValueError if the seed is below 0."""
        if seed < 0:
            raise ValueError(f"seed={seed}: give a whole number of at least 0")
        return grammar.Deriver(self.config, self.concepts, self.preferences, seed)

    def derivations(self, seed: int, sentences: int | None = None) -> Iterator[Constituent]:
        """Derivations of `sentences` sentences, by default without end; ValueError if below 1."""
        if sentences is not None and sentences < 1:
            raise ValueError(f"sentences={sentences}: ask for at least one")
        deriver = self.deriver(seed)
        return (deriver.sentence() for _ in itertools.islice(itertools.count(), sentences))

    def words(self, derivation: Constituent) -> list[Word]:
        """The words of a derivation in order, with punctuation; with capitals if the config says
        so."""
        words = self.linearizer.words(derivation)
        if self.config.capitals:
            words = [
                word._replace(form=word.form.capitalize())
                if not place or word.form == "i" or word.constituent.concept.category == "PROPN"
                else word
                for place, word in enumerate(words)
            ]
        return words

    def text(self, derivation: Constituent) -> str:
        """A derivation as a line of text, words and punctuation separated by single spaces."""
        return " ".join([word.form for word in self.words(derivation)])

    def conllu(self, derivation: Constituent) -> list[str]:
        """A sentence's tree as lines of CoNLL-U, with `# text` before and an empty line after.

        ID, FORM, LEMMA (the dictionary form), UPOS, FEATS, HEAD and DEPREL are filled in; the other
        columns are "_". The features are those of the derivation (see `Constituent`): what an
        auxiliary expresses is a feature of its verb. In inverted and other orders words have the
        same heads as in English.
        """
        words = self.words(derivation)
        place = {id(word.constituent): number for number, word in enumerate(words, 1)}
        lines = ["# text = " + " ".join(word.form for word in words)]
        for number, (form, node, above) in enumerate(words, 1):
            lemma, category = self.lexicon.form(node.concept), node.concept.category
            # The theme is no feature of Universal Dependencies.
            named = sorted(f"{k}={value}" for k, value in node.features.items() if k != "Theme")
            features = "|".join(named) or "_"
            head = place[id(above)] if above else 0
            columns = (number, form, lemma, category, "_", features, head, node.relation, "_", "_")
            lines.append("\t".join(map(str, columns)))
        return [*lines, ""]

    def tagged(self, derivation: Constituent) -> tuple[list[str], list[str]]:
        """The words of a sentence, and for each a tag as in WikiAnn (Pan et al. 2017): O, or B- or
        I- with PER, LOC or ORG. A name is an unbroken span in every order."""
        words, tags = self.words(derivation), []
        last: Constituent | None = None
        for _, node, head in words:
            named = head if node.relation == "flat" else node
            entity = named.entity if named else ""
            tags.append(f"{'I' if named is last else 'B'}-{entity}" if entity else "O")
            last = named
        return [word.form for word in words], tags


def generate(config: LanguageConfig, sentences: int, seed: int) -> list[str]:
    """Sentences of an embedded language, words and punctuation separated by single spaces.

    Fewer `sentences` give a prefix of more. `seed` is that of the sentences; the language does not
    depend on it. ValueError: `sentences` is below 1 or `seed` below 0.
    """
    language = _language(config)
    return [language.text(d) for d in language.derivations(seed, sentences)]


# Keeps the last language, since training and held-out text are usually asked for in turn.
_language = functools.lru_cache(maxsize=1)(Language)

_COUNTED = 5000  # sentences in which words are counted
# Added to a seed, so that derivations differ from those of any usual seed.
_SECOND_TEXT = 1 << 32


class Pair:
    """A language and a second one derived from it.

    Methods raise ValueError if fewer than one sentence is asked for, or a seed is below 0.

    languages: both; `languages[k].text(derivation)` puts a derivation into either of them, and
    `languages[0].derivations(seed)` gives the derivations of `parallel`.
    """

    def __init__(self, config: LanguageConfig, second: SecondConfig) -> None:
        self.languages = (Language(config), Language(config, second))

    def parallel(self, sentences: int, seed: int) -> tuple[list[str], list[str]]:
        """Translations, line by line: the text `generate(config, sentences, seed)`, and the same in
        the second language. Fewer `sentences` give a prefix of more."""
        first, second = self.languages
        lines = [(first.text(d), second.text(d)) for d in first.derivations(seed, sentences)]
        return [line for line, _ in lines], [line for _, line in lines]

    def links(self, sentences: int, seed: int) -> list[Links]:
        """The links of `parallel` between words of the same meaning: (place in the first, place in
        the second). Words that the `Linearizer` adds to the derivation (punctuation, "not", "that",
        "to", auxiliaries other than can, must, may, should) have none, even where both add them."""
        found = []
        for derivation in self.languages[0].derivations(seed, sentences):
            first, second = (language.words(derivation) for language in self.languages)
            place = {id(word.constituent): number for number, word in enumerate(second)}
            found.append(
                [(number, place[id(word.constituent)]) for number, word in enumerate(first)
                 if id(word.constituent) in place]
            )  # fmt: skip
        return found

    def texts(
        self, first_sentences: int, second_sentences: int, seed: int
    ) -> tuple[list[str], list[str]]:
        """Texts of both languages that do not translate each other, the second in its own domain.

        The first is `generate(config, first_sentences, seed)`, so held-out text needs another seed.
        The second has sentences in common with texts of `parallel` only by chance.
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

        Each concept occurs once; they go from the most to the least frequent in text of the first
        language. All words are lower-case, even if `LanguageConfig.capitals` is 1.
        """
        return list(self._entries)


# The pair of a `LanguageConfig` and a `SecondConfig`; keeps the last two.
pair_of = functools.lru_cache(maxsize=2)(Pair)

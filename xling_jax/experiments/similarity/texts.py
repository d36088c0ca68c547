"""The parallel sentences, contexts, dictionaries and vectors that models are compared on."""

import dataclasses
import functools
import itertools

import numpy as np
from ml_collections import ConfigDict

from xling_jax import errors
from xling_jax.corpora.dictionaries import Dictionary
from xling_jax.corpora.sources import SYNTHETIC
from xling_jax.corpora.text import stream
from xling_jax.runs import texts
from xling_jax.runs.texts import Manifest
from xling_jax.vocabulary.static_vectors import CONTEXTS

PARALLEL = ("learned", "tested")
DICTIONARIES = ("dictionary", "test_dictionary")
Sentences = list[tuple[str, str]]


@dataclasses.dataclass(frozen=True)
class LanguageTexts:
    """What is read for one language; None or empty where nothing was given.

    Attributes:
      learned, tested: sentences of the first language with their translations into this one.
      contexts: sentences in which words are met, of both languages.
      train, test: dictionaries from the first language to this one.
      vectors: for each of both languages, a `.vec` file or CONTEXTS.
      trained: vectors by the hash of the text that they were trained on; shared by comparisons.
    """

    learned: Sentences | None
    tested: Sentences | None
    contexts: tuple[list[str], ...] | None
    train: Dictionary | None
    test: Dictionary | None
    vectors: dict[str, str]
    trained: dict[str, dict[str, np.ndarray]]


class TextReader:
    """Reads the texts of the languages of an experiment."""

    def __init__(self, config: ConfigDict):
        """Raises ValueError if nothing is given, or only half of what belongs together, or embedded
        languages without the run that has them."""
        self._trained: dict[str, dict[str, np.ndarray]] = {}
        self._numbers, self.languages = config.sentences, tuple(config.languages)
        self._given = given = texts.Texts(config.texts, "texts", self.languages)
        given.require_both_sides(*PARALLEL)
        for purpose in DICTIONARIES:
            given.dictionary(self.languages[0], purpose)  # ValueError if given
        for name in self.languages:
            if bool(given.given(name, "dictionary")) != bool(given.given(name, "test_dictionary")):
                raise ValueError(
                    f"texts.{name}.dictionary and texts.{name}.test_dictionary: give both, one to "
                    "learn a map from and another to test it on, or none"
                )
        for purpose in ("contexts", "vectors"):
            lacking = [name for name in self.languages if not given.given(name, purpose)]
            if lacking and (have := [name for name in self.languages if name not in lacking]):
                raise ValueError(
                    f"texts.{lacking[0]}.{purpose} is empty, and texts.{have[0]}.{purpose} is not: "
                    "give it for every language or for none"
                )
        for name in self.languages:
            if given.given(name, "vectors") == CONTEXTS and not given.given(name, "contexts"):
                raise ValueError(
                    f"texts.{name}.vectors={CONTEXTS}: give texts.{name}.contexts, the text that "
                    "vectors are trained on, or a .vec file, or leave the vectors empty too"
                )
        every = {given.given(*each) for each in self._wanted()}
        if not any(every):
            raise ValueError(
                "texts: nothing is given to compare models on. Give parallel sentences, "
                f"--config.texts.{self.languages[-1]}.tested_first=… and .tested=…, or dictionaries"
            )
        if SYNTHETIC in every:
            given.embedded = texts.of_run(config.run, self.languages, "pairs+alone")

    def _wanted(self) -> list[tuple[str, str]]:
        sides = [f"{what}{end}" for what in PARALLEL for end in ("", "_first")]
        others = ("contexts", *DICTIONARIES, "vectors")
        return [
            *itertools.product(self.languages, sides),
            *itertools.product(self.languages, others),
        ]

    def manifest(self) -> Manifest:
        """Every file that is given, with a hash of its content, and the fingerprint of the run's
        embedded languages if they are read."""
        found: Manifest = []
        if self._given.embedded:
            digest = self._given.embedded.fingerprint
            found.append({"source": "run", "language": "", "field": "run", "sha256": digest})
        for language, purpose in self._wanted():
            if purpose == "vectors" and self._given.given(language, purpose) == CONTEXTS:
                continue
            found += self._given.manifest(language, [purpose], has_rules=False)
        return found

    @functools.cache  # noqa: B019 - there are few
    def read(self, language: str) -> LanguageTexts:
        """The texts of a language with those of the first; raises what `Texts` raises.

        For the first language itself these are texts of its own, such as back-translations, or, if
        it has none, its sentences from another language's text, each with itself.
        """
        given, is_first = self._given, language == self.languages[0]
        both = () if is_first else (self.languages[0], language)
        contexts = tuple(map(self._contexts, both))
        vectors = {name: file for name in both if (file := given.given(name, "vectors"))}
        known = {purpose: given.dictionary(language, purpose) for purpose in DICTIONARIES}
        for purpose, own in known.items():
            if own is not None and any(contexts):
                with errors.in_field(given.field(language, purpose)):
                    own.require_direction(*contexts)
        return LanguageTexts(
            learned=self._parallel(language, "learned"),
            tested=self._parallel(language, "tested"),
            contexts=contexts if any(contexts) else None,
            train=known["dictionary"],
            test=known["test_dictionary"],
            vectors=vectors,
            trained=self._trained,
        )

    def _parallel(self, language: str, purpose: str) -> Sentences | None:
        found = self._given.parallel(language, purpose, self._numbers[purpose])
        if purpose == "tested" and found and len(found[0]) < 2:
            field = self._given.field(language, purpose)
            raise ValueError(f"{field}: it has one sentence, which is always found: give more")
        if found is None and language == self.languages[0] and not self._has_own():
            others = (self._parallel(name, purpose) for name in self.languages[1:])
            same = next(filter(None, others), None)
            return same and [(sentence, sentence) for sentence, _ in same]
        return found and list(zip(*found, strict=True))

    def _has_own(self) -> bool:
        """Whether the first language has parallel text from files."""
        given = (self._given.given(self.languages[0], purpose) for purpose in PARALLEL)
        return any(source not in ("", SYNTHETIC) for source in given)

    def _contexts(self, language: str) -> list[str]:
        if not self._given.given(language, "contexts"):
            return []
        with errors.in_field(self._given.field(language, "contexts")):
            lines = stream(self._given.sources(language, "contexts"))
            return list(itertools.islice(lines, self._numbers.contexts))

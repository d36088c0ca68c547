"""The parallel sentences, contexts, dictionaries and vectors that models are compared on."""

import dataclasses
import itertools
from typing import Any

import ml_collections

from xling_jax import errors
from xling_jax.corpora import dictionaries, sources
from xling_jax.corpora import text as corpora
from xling_jax.corpora.dictionaries import Dictionary
from xling_jax.experiments.bilingual.texts import TEST_SEED, of_run
from xling_jax.runs import store

LEARNED_SEED = 4  # of the embedded sentences that maps are learned on
PARALLEL = ("learned", "tested")
Sentences = list[tuple[str, str]]


@dataclasses.dataclass(frozen=True)
class Texts:
    """What is read for one language; None or empty where nothing was given.

    learned, tested: sentences of the first language with their translations into this one.
    contexts: of both languages, sentences that words are met in. train, test: dictionaries from
    the first language to this one. vectors: of both, `.vec` files.
    """

    learned: Sentences | None
    tested: Sentences | None
    contexts: tuple[list[str], list[str]] | None
    train: Dictionary | None
    test: Dictionary | None
    vectors: tuple[str, str] | None


def _fields(languages: tuple[str, ...]) -> list[tuple[str, str]]:
    """Every (language, field) that may name a file."""
    pairs = [(name, f"{what}{end}") for name in languages for what in PARALLEL
             for end in ("", "_first")]  # fmt: skip
    return pairs + [
        (name, field)
        for name in languages
        for field in ("contexts", "dictionary", "test_dictionary", "vectors")
    ]


class TextReader:
    """Reads the texts of the languages of an experiment."""

    def __init__(self, config: ml_collections.ConfigDict):
        """Checks that what belongs together is given together.

        Raises:
          ValueError: half of a parallel text, or embedded languages without the run they are of.
        """
        self._config, self._texts = config, config.texts
        self.languages: tuple[str, ...] = tuple(config.languages)
        self._read: dict[str, Texts] = {}
        for name in self.languages:
            for what in PARALLEL:
                own = self._texts[name]
                if bool(own[what]) != bool(own[f"{what}_first"]):
                    raise ValueError(
                        f"texts.{name}.{what} and texts.{name}.{what}_first: give both, line by "
                        "line translations of each other, or none"
                    )
            own = self._texts[name]
            if bool(own.dictionary) != bool(own.test_dictionary):
                raise ValueError(
                    f"texts.{name}.dictionary and texts.{name}.test_dictionary: give both, one to "
                    "learn a map from and another to test it on, or none"
                )
        for field in ("contexts", "vectors"):
            have = [name for name in self.languages if self._texts[name][field]]
            if have and len(have) < len(self.languages):
                lacking = next(name for name in self.languages if name not in have)
                raise ValueError(
                    f"texts.{lacking}.{field} is empty, and texts.{have[0]}.{field} is not: give "
                    "it for every language or for none"
                )
        given = {self._texts[name][field] for name, field in _fields(self.languages)}
        if not any(given):
            raise ValueError(
                "texts: nothing is given to compare models on. Give parallel sentences, "
                f"--config.texts.{self.languages[-1]}.tested_first=… and .tested=…, or dictionaries"
            )
        is_made = sources.SYNTHETIC in given
        self._embedded = of_run(config.run, self.languages) if is_made else None

    def manifest(self) -> list[dict[str, Any]]:
        """Every file that is given, with a hash of its content, and what the run is of whose
        embedded languages are read."""
        found = []
        if self._embedded:
            digest = self._embedded.fingerprint
            found.append({"source": "run", "language": "", "field": "run", "sha256": digest})
        for name, field in _fields(self.languages):
            path = self._texts[name][field]
            if path and path != sources.SYNTHETIC:
                found.append(store.hashed(path, name, field, f"texts.{name}.{field}"))
        return found

    def read(self, language: str) -> Texts:
        """The texts of a language with those of the first.

        The first language itself is read with a text of its own, such as a back-translation, or
        else with the same sentences that another language is read with.

        Raises:
          ValueError, FileNotFoundError: one of them cannot be read; its field is named.
        """
        if language in self._read:
            return self._read[language]
        first = self.languages[0]
        vectors = (self._texts[first].vectors, self._texts[language].vectors)
        is_first = language == first
        self._read[language] = Texts(
            learned=self._parallel(language, "learned", LEARNED_SEED),
            tested=self._parallel(language, "tested", TEST_SEED),
            contexts=None if is_first else self._contexts(first, language),
            train=self._dictionary(language, "dictionary"),
            test=self._dictionary(language, "test_dictionary"),
            vectors=vectors if all(vectors) and not is_first else None,
        )
        return self._read[language]

    def _parallel(self, language: str, what: str, seed: int) -> Sentences | None:
        own, limit = self._texts[language], self._config.sentences[what]
        if language == self.languages[0] and own[what] in ("", sources.SYNTHETIC):
            others = (self._parallel(name, what, seed) for name in self.languages[1:])
            found = next(filter(None, others), None)
            return found and [(sentence, sentence) for sentence, _ in found]
        if not own[what]:
            return None
        if own[what] == sources.SYNTHETIC:
            assert self._embedded is not None
            sides = self._embedded.parallel(language, limit, seed)
        else:
            with errors.in_field(f"texts.{language}.{what}_first, texts.{language}.{what}"):
                first, second = corpora.read_parallel(
                    own[f"{what}_first"], own[what], (self.languages[0], language)
                )
            sides = first.sentences, second.sentences
        return list(zip(*sides, strict=True))[:limit]

    def _contexts(self, *languages: str) -> tuple[list[str], list[str]] | None:
        if not all(self._texts[name].contexts for name in languages):
            return None
        found = []
        for name in languages:
            path, limit = self._texts[name].contexts, self._config.sentences.contexts
            if path == sources.SYNTHETIC:
                assert self._embedded is not None
                given: tuple[sources.Source, ...]
                given = self._embedded.read(name, is_other_domain=False).train
            else:
                given = (path,)
            with errors.in_field(f"texts.{name}.contexts"):
                found.append(list(itertools.islice(corpora.stream(given), limit)))
        return found[0], found[1]

    def _dictionary(self, language: str, field: str) -> Dictionary | None:
        path = self._texts[language][field]
        if not path or language == self.languages[0]:
            return None
        if path == sources.SYNTHETIC:
            assert self._embedded is not None
            found = self._embedded.read(language, is_other_domain=False)
            return found.dictionary if field == "dictionary" else found.test_dictionary
        with errors.in_field(f"texts.{language}.{field}"):
            return dictionaries.read(path, self.languages[0], language, lowercase=True)

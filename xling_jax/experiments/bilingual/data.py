"""The texts of a row as ids: vocabularies, streams, translations to find."""

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ml_collections
import numpy as np

from xling_jax import errors
from xling_jax.batches import code_switch
from xling_jax.batches.code_switch import PieceDictionary
from xling_jax.batches.encoding import Encoding
from xling_jax.batches.prepare import prepare
from xling_jax.batches.token_files import TokenFiles
from xling_jax.batches.windows import PieceTables, StreamStore
from xling_jax.corpora import sources, splitting
from xling_jax.corpora import text as corpora
from xling_jax.corpora.dictionaries import Dictionary
from xling_jax.corpora.normalize import Normalization, Normalizer
from xling_jax.evaluators.translations import Translated
from xling_jax.experiments.bilingual.rows import ONCE, Row
from xling_jax.experiments.bilingual.switching import switch_once
from xling_jax.experiments.bilingual.texts import Reader, Texts
from xling_jax.training.metrics import say
from xling_jax.vocabulary import pieces as vocabulary
from xling_jax.vocabulary import sharing
from xling_jax.vocabulary.pieces import UNK, Pieces


@dataclasses.dataclass(frozen=True)
class Data:
    """A row's text.

    vocabulary: of its languages. files: each language's training text on disk. train: the same in
    memory, None if it does not fit. switch: by language's number, translations of the words to
    replace anew each time. dev: held-out text. items: translations to find. found:
    numbers that say how much the languages have in common.
    """

    vocabulary: sharing.LanguageVocabulary
    files: list[TokenFiles]
    train: StreamStore | None
    tables: PieceTables
    switch: dict[int, PieceDictionary]
    dev: StreamStore
    items: list[Translated]
    found: dict[str, float]

    def description(self) -> dict[str, Any]:
        """What was made of the text, for the next run in the same workdir to compare with."""
        text = [each.manifest["sha256"] for each in self.files]
        return {"vocabulary": self.vocabulary.sha256, "text": text}

    @property
    def sizes(self) -> tuple[int, ...]:
        """Tokens of each language's stream."""
        return self.train.sizes if self.train else tuple(each.total for each in self.files)


class Preparer:
    """Prepares the text of one row after the other; what rows share is made once."""

    def __init__(self, config: ml_collections.ConfigDict, reader: Reader, workdir: Path):
        """Takes the config, its texts and where to keep what is made."""
        self._config, self._reader, self._workdir = config, reader, workdir
        section = config.corpora
        self._normalization = Normalization(section.punctuation, section.tokenize)
        self._samples: dict[tuple, list[str]] = {}  # for vocabularies
        self._mapped: dict[int, Dictionary] = {}  # by the one that `reader` keeps

    def __call__(self, row: Row) -> Data:
        """The data of a row.

        Raises:
          ValueError, FileNotFoundError: a text cannot be used; its field is named.
        """
        texts = {
            name: self._reader.read(row.text_of(name), row.is_other_domain)
            for name in row.languages
        }
        languages = self._vocabulary(row, texts)
        train = [
            self._prepared(row, languages, name, texts[name].train, "train")
            for name in row.languages
        ]
        dev = [
            self._prepared(row, languages, name, texts[name].dev, "dev") for name in row.languages
        ]
        tables = PieceTables.of(languages, row.random_pieces)
        switch = self._dictionaries(row, languages, texts) if row.code_switch else {}
        if row.code_switch == ONCE:
            section, folder = self._config.code_switch, self._workdir / "tokens"
            for k, words in switch.items():
                chances = section.probability, section.most
                train[k] = switch_once(train[k], words, (section.seed, k), *chances, folder, say)
            switch = {}
        total = sum(each.total for each in train)
        streams: StreamStore | None = None
        counts = []
        if total <= self._config.batches.resident_tokens:
            arrays = [each.as_array() for each in train]
            streams = StreamStore(np.concatenate(arrays), tuple(map(len, arrays)), tables)
            counts = [np.bincount(x, minlength=languages.size) for x in arrays]
        else:
            say(f"{total:,} tokens are read from disk, step by step")
            counts = [self._counted(each, languages.size) for each in train]
        return Data(
            vocabulary=languages,
            files=train,
            train=streams,
            tables=tables,
            switch=switch,
            dev=StreamStore(
                np.concatenate([x.as_array() for x in dev]), tuple(x.total for x in dev), tables
            ),
            items=list(self._items(row, languages, texts)),
            found=dict(sharing.anchors(languages, counts)),
        )

    def _normalized(self, name: str, lines: Sequence[str]) -> list[str]:
        normalizer = Normalizer(name, self._normalization)
        return [found for line in lines if (found := normalizer(line))]

    def _as_text(self, dictionary: Dictionary) -> Dictionary:
        """A dictionary whose words are written as in the text."""
        if id(dictionary) not in self._mapped:
            names = dictionary.source_language, dictionary.target_language
            normalizers = [Normalizer(name, self._normalization) for name in names]
            self._mapped[id(dictionary)] = dictionary.map(*normalizers)
        return self._mapped[id(dictionary)]

    def _vocabulary(self, row: Row, texts: dict[str, Texts]) -> sharing.LanguageVocabulary:
        section, corpus = self._config.vocabulary, self._config.corpora

        def sample(name: str) -> list[str]:
            given = texts[name].train
            if (name, given) not in self._samples:
                lines = corpora.stream(given, splitting.of_config(corpus, row.text_of(name)))
                lines = itertools.islice(lines, self._limit(row, name, "train"))
                drawn = vocabulary.sample(lines, section.sentences)
                self._samples[name, given] = self._normalized(row.text_of(name), drawn)
            return self._samples[name, given]

        def train(field: str, sentences: list[str]) -> Pieces:
            try:
                return vocabulary.train(
                    sentences, section[field], self._workdir / "vocabulary", section.model_type
                )
            except ValueError as error:
                raise ValueError(f"vocabulary.{field}: {error}") from error

        samples = [sample(name) for name in row.languages]
        if row.sharing == "joint" and len(samples) > 1:
            made = [train("joint_size", [line for lines in samples for line in lines])]
        else:
            made = [train("own_size", lines) for lines in samples]
        return sharing.make(row.sharing, row.languages, made)

    def _prepared(
        self,
        row: Row,
        languages: sharing.LanguageVocabulary,
        name: str,
        given: Sequence[sources.Source],
        field: str,
    ) -> TokenFiles:
        number, section, text = row.languages.index(name), self._config.corpora, row.text_of(name)
        with errors.in_field(f"corpora.{text}.{field}"):
            return prepare(
                given,
                Encoding(
                    text,
                    self._normalization,
                    languages.pieces[number],
                    splitting.of_config(section, text),
                    languages.ids[number],
                ),
                self._workdir / "tokens",
                limit=self._limit(row, name, field),
                processes=section.processes,
                say=say,
            )

    def _limit(self, row: Row, name: str, field: str) -> int | None:
        """How many sentences of a text to take, None for all."""
        if self._reader.is_synthetic:
            return None
        limit = self._config.corpora[f"{field}_sentences"]
        if field == "train" and row.is_other_domain and name != row.languages[0] and not limit:
            limit = self._reader.other_limit(name)
        return limit or None

    def _dictionaries(
        self, row: Row, languages: sharing.LanguageVocabulary, texts: dict[str, Texts]
    ) -> dict[int, PieceDictionary]:
        """For each language's number, the translations of its words."""
        first = row.languages[0]
        given = {name: texts[name].dictionary for name in row.languages[1:]}
        given = {name: found and self._as_text(found) for name, found in given.items()}
        if missing := [name for name, found in given.items() if found is None]:
            raise ValueError(
                f"corpora.{missing[0]}.dictionary is empty: row {row.name} replaces words by the "
                "translations of a dictionary from the first language to this one"
            )
        encode: dict[str, Callable[..., Any]] = {
            name: (lambda words, k=k: languages.encode(k, list(words)))
            for k, name in enumerate(row.languages)
        }
        names = languages.names()
        by_source = {first: [found for found in given.values() if found]}
        by_source |= {name: [found.reverse()] for name, found in given.items() if found}
        return {
            row.languages.index(name): PieceDictionary.build(
                found, encode, code_switch.word_starts(names[row.languages.index(name)])
            )
            for name, found in by_source.items()
            if found
        }

    @staticmethod
    def _counted(files: TokenFiles, size: int) -> np.ndarray:
        """How often each id occurs."""
        counts = np.zeros(size, np.int64)
        for start in range(0, files.total, 2**22):
            part = files.read(start, min(2**22, files.total - start))
            counts += np.bincount(part, minlength=size)
        return counts

    def _items(self, row: Row, languages: sharing.LanguageVocabulary, texts: dict[str, Texts]):
        """Sentences and words of the first language to find the translations of."""
        for number, name in enumerate(row.languages[1:], 1):
            own = texts[name]
            if own.test is not None:
                limit = self._config.corpora.test_sentences
                sides = [side[:limit] for side in own.test]
                normalizers = [
                    Normalizer(row.languages[k], self._normalization) for k in (0, number)
                ]
                pairs = [
                    (normalizers[0](one), normalizers[1](other))
                    for one, other in zip(*sides, strict=True)
                ]
                kept = [pair for pair in pairs if all(pair)]
                ids = [
                    languages.encode(k, [pair[side] for pair in kept])
                    for side, k in enumerate((0, number))
                ]
                yield Translated(name, (0, number), (ids[0], ids[1]))
            if own.test_dictionary is not None:
                entries = self._as_text(own.test_dictionary).entries.items()
                pairs = [(word, text) for word, found in entries for text, _ in found]
                yield self._words(languages, number, pairs)

    def _words(self, languages, number: int, pairs) -> Translated:
        """Words of a dictionary that the vocabularies have, and which translate which."""
        known: list[dict[str, int]] = [{}, {}]
        ids: list[list[np.ndarray]] = [[], []]
        gold: list[list[int]] = []
        for word, translation in pairs:
            found = [languages.encode(k, [x])[0] for k, x in ((0, word), (number, translation))]
            if any(UNK in x or not len(x) for x in found):
                continue
            places = []
            for side, (text, own) in enumerate(zip((word, translation), found, strict=True)):
                if text not in known[side]:
                    known[side][text] = len(ids[side])
                    ids[side].append(own)
                    if side == 0:
                        gold.append([])
                places.append(known[side][text])
            gold[places[0]].append(places[1])
        name = languages.languages[number]
        if not gold:
            raise ValueError(f"corpora.{name}.test_dictionary: the vocabularies have none of it")
        return Translated(name, (0, number), (ids[0], ids[1]), gold)

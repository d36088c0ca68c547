"""A row's texts as ids: vocabularies, streams, the windows of each step, translations to find."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jax.sharding import Mesh
from ml_collections import ConfigDict

from xling_jax import devices, errors, processes
from xling_jax.batches import code_switch
from xling_jax.batches.code_switch import PieceDictionary, switch_window
from xling_jax.batches.streams import (
    SENTENCE,
    StreamLayout,
    StreamSampler,
    beginnings,
    probabilities,
)
from xling_jax.batches.token_files import TokenFiles
from xling_jax.batches.windows import PieceTables, StreamStore
from xling_jax.corpora.dictionaries import Dictionary
from xling_jax.corpora.normalize import Normalization
from xling_jax.corpora.text import too_few
from xling_jax.evaluators.translations import Translated
from xling_jax.experiments.bilingual.rows import ONCE, Row
from xling_jax.experiments.bilingual.switching import switch_once
from xling_jax.runs.texts import Manifest, Texts, require_known
from xling_jax.training.input_pipeline import InputPipeline, StreamingPipeline
from xling_jax.training.metrics import say
from xling_jax.vocabulary import pieces, sharing
from xling_jax.vocabulary.pieces import UNK, Pieces
from xling_jax.vocabulary.samples import Sample
from xling_jax.vocabulary.sharing import LanguageVocabulary

_BLOCK = 2**22  # tokens counted at once


@dataclasses.dataclass(frozen=True)
class Data:
    """A row's text.

    Attributes:
      files: each language's training text on disk.
      train: the same in memory; None if it exceeds `batches.resident_tokens`.
      switch: by language number, translations of the words that are replaced anew each time.
      dev: held-out text.
      items: translations to find.
      found: how much the languages have in common in `files`, and into how many pieces their words
        are cut, see `sharing.anchors` and `sharing.fertility`.
    """

    vocabulary: LanguageVocabulary
    normalization: Normalization
    files: list[TokenFiles]
    train: StreamStore | None
    tables: PieceTables
    switch: dict[int, PieceDictionary]
    dev: StreamStore
    items: list[Translated]
    found: dict[str, float]

    def description(self) -> dict[str, Any]:
        """Hashes of what was made of the text, for the next run in the workdir to compare with."""
        text = [each.manifest["sha256"] for each in self.files]
        return {"vocabulary": self.vocabulary.sha256, "text": text}

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(each.total for each in self.files)

    def samplers(
        self, config: ConfigDict, seeds: Sequence[int], shards: int
    ) -> list[StreamSampler]:
        """For each seed, what decides the windows of each step, which `shards` devices share;
        ValueError if they cannot share the sequences."""
        batches, epoch = config.batches, config.training.steps_per_epoch
        shape = batches.parts, batches.sequences, batches.length
        layout = StreamLayout.choose(*shape, shards, batches.accumulate)
        draws = tuple(probabilities([x.sentences for x in self.files], batches.alpha).tolist())
        begin: list[np.ndarray] | None = None
        if batches.begin == SENTENCE:
            begin = [beginnings(x.sentence_starts, x.total, layout.window) for x in self.files]
        return [StreamSampler(self.sizes, draws, layout, seed, epoch, begin) for seed in seeds]

    def pipeline(
        self, config: ConfigDict, of: Sequence[StreamSampler], until: int, mesh: Mesh
    ) -> InputPipeline | StreamingPipeline:
        """The input of the steps before `until`: where windows begin in text on the device, or
        their tokens, read on the host."""
        window, section = of[0].layout.window, config.code_switch
        if self.train is not None and not self.switch:
            return InputPipeline(of)

        def read(language: int, start: int, step: int) -> np.ndarray:
            files = self.files[language]
            if language not in self.switch:
                return files.read(start, window)
            return switch_window(
                files.read,
                start,
                window,
                self.switch[language],
                (section.seed, language, step),
                probability=section.probability,
                most=section.most,
            ).tokens

        return StreamingPipeline(of, read, until, devices.own_shards(mesh))


class Preparer:
    """Prepares the text of one row after the other; what rows share is made once. Raises what
    `Texts` raises."""

    def __init__(self, config: ConfigDict, workdir: Path):
        """Raises ValueError if only one side of a parallel text is given, only some languages are
        embedded ones, or a dictionary is for the first language."""
        self._config, self._workdir = config, workdir
        self._texts = Texts.of_corpora(config.corpora)
        self._texts.require_both_sides("test")
        for purpose in ("dictionary", "test_dictionary"):
            self._texts.dictionary(self._texts.languages[0], purpose)

    def manifest(self, rows: Sequence[Row]) -> Manifest:
        """Every source of the rows' texts, with a hash of its content, and of the rules that cut
        sentences or of the embedded languages."""
        found = []
        for name in self._texts.languages:
            if own := [row for row in rows if name in row.languages]:
                domains = {self._is_other(row, name) for row in own}
                purposes = ["dev", "test", "test_first", "test_dictionary"]
                purposes += ["other"] * (True in domains)
                purposes += ["train"] * (False in domains or self._other_is_as_long)
                purposes += ["dictionary"] * any(row.code_switch for row in own)
                found += self._texts.manifest(name, purposes)
        return found

    def __call__(self, row: Row) -> Data:
        for text in map(row.text_of, row.languages[1:]):  # errors come before long work
            self._parallel(text)
            self._dictionary(text, "test_dictionary")
        if row.code_switch:
            self._replacements(row)
        for text in map(row.text_of, row.languages[1:]):
            for purpose in ["test_dictionary"] + ["dictionary"] * bool(row.code_switch):
                self._require_direction(text, purpose, self._is_other(row, text))
        vocabulary = self._vocabulary(row)
        train, dev = (
            [self._files(row, vocabulary, k, purpose) for k in range(len(row.languages))]
            for purpose in ("train", "dev")
        )
        switch = self._switched(row, vocabulary) if row.code_switch else {}
        if row.code_switch == ONCE:
            section, folder = self._config.code_switch, self._workdir / "tokens"
            for k, words in switch.items():
                chances = section.probability, section.most
                seeds = section.seed, k
                with processes.first_before_others():
                    train[k] = switch_once(train[k], words, seeds, *chances, folder)
            switch = {}
        for purpose, every in (("train", train), ("dev", dev)):
            for name, made in zip(row.languages, every, strict=True):
                self._require_window(row, name, purpose, made)
        counts = [_counted(each, vocabulary.size) for each in train]
        held_out = [each.as_array() for each in dev]
        trained = list(map(np.flatnonzero, counts))
        others = [np.flatnonzero(np.bincount(tokens)) for tokens in held_out]
        for k, words in switch.items():
            others[k] = np.union1d(others[k], words.translation_ids)
        tables = PieceTables.of(vocabulary, row.random_pieces, trained, others)
        total = sum(each.total for each in train)
        streams: StreamStore | None = None
        if total <= self._config.batches.resident_tokens:
            streams = StreamStore.of([each.as_array() for each in train], tables)
        else:
            say(f"{total:,} tokens are read from disk, step by step")
        return Data(
            vocabulary=vocabulary,
            normalization=self._texts.normalization,
            files=train,
            train=streams,
            tables=tables,
            switch=switch,
            dev=StreamStore.of(held_out, tables),
            items=list(self._items(row, vocabulary)),
            found={**sharing.anchors(vocabulary, counts), **sharing.fertility(vocabulary, counts)},
        )

    def _is_other(self, row: Row, name: str) -> bool:
        """Whether a row has a language's text of the other domain."""
        return row.is_other_domain and name != self._texts.languages[0]

    @functools.cache  # noqa: B019 - there are few
    def _dictionary(self, language: str, purpose: str) -> Dictionary | None:
        """A dictionary whose words are written as in the text."""
        found = self._texts.dictionary(language, purpose)
        names = self._texts.languages[0], language
        return found and found.map(*map(self._texts.normalizer, names))

    @functools.cache  # noqa: B019
    def _require_direction(self, language: str, purpose: str, is_other: bool) -> None:
        if (found := self._dictionary(language, purpose)) is not None:
            first, other = (
                self._sample(self._texts.languages[0], False),
                self._sample(language, is_other),
            )
            with errors.in_field(self._texts.field(language, purpose)):
                found.require_direction(first.sentences, other.sentences)

    @functools.cache  # noqa: B019
    def _parallel(self, language: str) -> tuple[list[str], list[str]] | None:
        """Test sentences of the first language and their translations; None if not given."""
        return self._texts.parallel(language, "test", self._config.corpora.test_sentences)

    @functools.cache  # noqa: B019
    def _sample(self, language: str, is_other: bool) -> Sample:
        """Training sentences of a language; ValueError if the other domain must have as many as the
        usual text, and has fewer."""
        limit = self._limit(language, "train", is_other)
        number = self._config.vocabulary.sentences
        found = self._texts.sample(
            language, number, self._workdir, limit=limit, is_other_domain=is_other
        )
        if is_other and self._other_is_as_long and 0 < found.total < (limit or 0):
            raise ValueError(
                f"{self._texts.field(language, 'train', is_other)}: {found.total} sentences, and "
                f"{self._texts.field(language, 'train')} has {limit}: give as many, or set "
                f"corpora.train_sentences={found.total}, which holds for all languages"
            )
        return found

    @property
    def _other_is_as_long(self) -> bool:
        """Whether as many sentences of the other domain are taken as the usual text has."""
        return not (self._texts.embedded or self._config.corpora.train_sentences)

    @functools.cache  # noqa: B019
    def _limit(self, language: str, purpose: str, is_other: bool) -> int | None:
        """How many sentences of a text to take, None for all."""
        if is_other and purpose == "train" and self._other_is_as_long:
            return self._sample(language, False).total or None
        return self._texts.limit(purpose)

    def _vocabulary(self, row: Row) -> LanguageVocabulary:
        section, folder = self._config.vocabulary, self._workdir / "vocabulary"

        def train(size: str, texts: str, sentences: list[str]) -> Pieces:
            with errors.in_field(f"vocabulary.{size}, {texts}"):
                return pieces.train(
                    sentences, section[size], cache=folder, model_type=section.model_type
                )

        given = [(text, self._is_other(row, text)) for text in map(row.text_of, row.languages)]
        drawn = [self._sample(*each).sentences for each in given]
        fields = [self._texts.field(text, "train", is_other) for text, is_other in given]
        if row.sharing == "joint" and len(drawn) > 1:
            made = [train("joint_size", ", ".join(fields), list(itertools.chain(*drawn)))]
        else:
            made = [train("own_size", *each) for each in zip(fields, drawn, strict=True)]
        return sharing.make(row.sharing, row.languages, made)

    def _files(
        self, row: Row, vocabulary: LanguageVocabulary, number: int, purpose: str
    ) -> TokenFiles:
        text = row.text_of(row.languages[number])
        is_other = self._is_other(row, text)
        limit = self._limit(text, purpose, is_other)
        made = self._texts.token_files(
            text,
            purpose,
            vocabulary.pieces[number],
            vocabulary.ids[number],
            self._workdir,
            limit=limit,
            is_other_domain=is_other,
        )
        if limit and made.sentences < limit:
            field = self._texts.field(text, purpose, is_other)
            with errors.in_field(f"{field}, corpora.{purpose}_sentences"):
                raise too_few(limit, " + ".join(made.manifest["sources"]), made.sentences)
        return made

    def _require_window(self, row: Row, language: str, purpose: str, made: TokenFiles) -> None:
        """Raises ValueError if a text is shorter than the windows."""
        if made.total < (window := self._config.batches.length - 1):
            text = row.text_of(language)
            field = self._texts.field(text, purpose, self._is_other(row, text))
            raise ValueError(
                f"{field}, corpora.{purpose}_sentences: {made.total} tokens are no window of "
                f"{window}: give more text, or lower batches.length"
            )

    def _replacements(self, row: Row) -> list[Dictionary]:
        """The dictionaries from the first language to each other one; ValueError if one is not
        given."""
        given: list[Dictionary] = []
        for name in row.languages[1:]:
            if (found := self._dictionary(name, "dictionary")) is None:
                raise ValueError(
                    f"{self._texts.field(name, 'dictionary')} is empty: row {row.name} replaces "
                    "words by the translations of a dictionary from the first language to this one"
                )
            given.append(found)
        return given

    def _switched(self, row: Row, vocabulary: LanguageVocabulary) -> dict[int, PieceDictionary]:
        """The translations of each language's words, by its number."""
        given = self._replacements(row)
        encode: dict[str, Callable[..., Any]] = {
            name: (lambda words, k=k: vocabulary.encode(k, list(words)))
            for k, name in enumerate(row.languages)
        }
        fields = [self._texts.field(name, "dictionary") for name in row.languages[1:]]
        others = [([own.reverse()], field) for own, field in zip(given, fields, strict=True)]
        found = {}
        for k, (own, named) in enumerate([(given, ", ".join(fields)), *others]):
            starts = code_switch.word_starts(vocabulary.names(k))
            with errors.in_field(named):
                found[k] = PieceDictionary.build(own, encode, starts)
        return found

    def _items(self, row: Row, vocabulary: LanguageVocabulary) -> Iterator[Translated]:
        """For each other language, the sentences and words whose translations are to be found."""
        for number, name in enumerate(row.languages[1:], 1):
            text = row.text_of(name)
            both = map(self._texts.normalizer, (row.languages[0], text))
            if (sides := self._parallel(text)) is not None:
                written = (map(write, side) for write, side in zip(both, sides, strict=True))
                kept = [pair for pair in zip(*written, strict=True) if all(pair)]
                first, second = (
                    vocabulary.encode(k, [pair[side] for pair in kept])
                    for side, k in enumerate((0, number))
                )
                for purpose, ids in (("test_first", first), ("test", second)):
                    tokens = np.concatenate(ids) if ids else np.zeros(1)
                    require_known(self._texts.field(text, purpose), (tokens == UNK).mean())
                yield Translated(name, (0, number), (first, second))
            if (found := self._dictionary(text, "test_dictionary")) is not None:
                yield _words(vocabulary, number, found)


def _counted(files: TokenFiles, size: int) -> np.ndarray:
    counts = np.zeros(size, np.int64)
    for start in range(0, files.total, _BLOCK):
        part = files.read(start, min(_BLOCK, files.total - start))
        counts += np.bincount(part, minlength=size)
    return counts


def _words(vocabulary: LanguageVocabulary, number: int, dictionary: Dictionary) -> Translated:
    """The words of a dictionary that both vocabularies can write without [UNK], and which of them
    translate which; words with the same pieces are one. ValueError if there are none."""
    known: list[dict[bytes, int]] = [{}, {}]
    ids: list[list[np.ndarray]] = [[], []]
    gold: dict[int, list[int]] = {}
    for word, translation, _ in dictionary.triples:
        pair = word, translation
        found = [vocabulary.encode(k, [x])[0] for k, x in zip((0, number), pair, strict=True)]
        if any(UNK in x or not len(x) for x in found):
            continue
        for own, places, every in zip(found, known, ids, strict=True):
            if own.tobytes() not in places:
                places[own.tobytes()] = len(every)
                every.append(own)
        first, second = (places[own.tobytes()] for own, places in zip(found, known, strict=True))
        gold.setdefault(first, []).append(second)
    name = vocabulary.languages[number]
    if not gold:
        raise ValueError(f"corpora.{name}.test_dictionary: the vocabularies have none of it")
    return Translated(name, (0, number), (ids[0], ids[1]), list(gold.values()))

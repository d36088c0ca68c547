"""The texts of natural languages, each with a vocabulary of its own, as ids."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from ml_collections import ConfigDict

from xling_jax import errors
from xling_jax.batches.corruption import PieceRange
from xling_jax.batches.store import TokenStore
from xling_jax.evaluators.multilinguality import EncodedTexts
from xling_jax.experiments.fake_english.data import Data, Params, Source, export
from xling_jax.models.bert import BertConfig
from xling_jax.runs.texts import Texts
from xling_jax.training.loop import Replica
from xling_jax.vocabulary import pieces
from xling_jax.vocabulary.pieces import UNK, Pieces
from xling_jax.vocabulary.sharing import ShiftedVocabulary

PURPOSES = ("dev", "train")
TO_FIND = ("test", "words")  # translations


def read(config: ConfigDict) -> Source:
    """The texts of all languages, hashed but not prepared yet; raises what `Texts` raises."""
    texts = Texts.of_corpora(config.corpora)
    purposes = PURPOSES + TO_FIND
    manifest = [each for name in texts.languages for each in texts.manifest(name, purposes)]
    return manifest, partial(prepare, config, texts)


def sentences_to_find(config: ConfigDict, texts: Texts) -> list[tuple[str, ...]]:
    """Held-out sentences, each in every language, normalised; none if no such text is given."""
    sides = texts.translations("test", config.corpora.test_sentences) or []
    written = [map(texts.normalizer(name), own)
               for name, own in zip(texts.languages, sides, strict=False)]  # fmt: skip
    return [line for line in zip(*written, strict=True) if all(line)]


def words_to_find(texts: Texts, vocabularies: Sequence[Pieces]) -> list[tuple[str, ...]]:
    """Words of the first language with their heaviest translations into every other one, no word of
    any language twice and none with [UNK]; empty if no dictionaries are given."""
    dictionaries = texts.dictionaries("words") or []
    known: list[set[str]] = [set() for _ in vocabularies]
    found = []
    for word in dictionaries[0].entries if dictionaries else ():
        entries = [own.entries.get(word, ()) for own in dictionaries]
        if not all(entries):
            continue
        best = (max(entry, key=lambda translation: translation[1])[0] for entry in entries)
        every = word, *best
        is_new = not any(x in own for x, own in zip(every, known, strict=True))
        ids = (own.encode([x])[0] for x, own in zip(every, vocabularies, strict=True))
        if is_new and all(len(own) and UNK not in own for own in ids):
            found.append(every)
            for own, x in zip(known, every, strict=True):
                own.add(x)
    return found


def prepare(config: ConfigDict, texts: Texts, workdir: Path) -> Data:
    """Trains the vocabularies and encodes the texts; what is made of them is kept in the
    workdir."""
    section, languages = config.vocabulary, texts.languages
    every = []
    to_check = {each.target_language: each for each in texts.dictionaries("words") or []}
    first: list[str] = []  # a sample of the first language
    for name in languages:
        drawn = texts.sample(name, section.sentences, workdir, limit=texts.limit("train")).sentences
        if name in to_check:
            with errors.in_field(texts.field(name, "words")):
                to_check[name].require_direction(first, drawn)
        elif to_check:
            first = drawn
        with errors.in_field(f"vocabulary.size, corpora.{name}"):
            folder = workdir / "vocabulary"
            every.append(
                pieces.train(drawn, section.size, cache=folder, model_type=section.model_type)
            )
    vocabulary = ShiftedVocabulary(languages, tuple(every))
    max_length = config.batches.max_length

    # Special tokens in the text stay the first language's; the setting shifts them.
    def stored(purpose: str) -> TokenStore:
        files = []
        for number, (name, own) in enumerate(zip(languages, every, strict=True)):
            (ids,) = vocabulary.shifted([np.arange(own.size)], number)
            limit = texts.limit(purpose)
            files.append(texts.token_files(name, purpose, own, ids, workdir, limit=limit))
        return TokenStore.from_files(files, max_length)

    dev, train = map(stored, PURPOSES)
    to_find = {"test": sentences_to_find(config, texts), "words": words_to_find(texts, every)}

    def parallel(lines: list[tuple[str, ...]]) -> TokenStore | None:
        if not lines:
            return None
        sides = zip(every, zip(*lines, strict=True), strict=True)
        ids = [vocabulary.shifted(own.encode(side), k) for k, (own, side) in enumerate(sides)]
        return TokenStore.from_languages(ids, max_length)

    test, words = parallel(to_find["test"]), parallel(to_find["words"])
    evaluated = EncodedTexts(languages, {"dev": dev}, test, words, is_apart=True)

    def keep(folder: Path, replica: Replica, model: BertConfig, params: Params, _: object) -> None:
        export(folder, replica, model, params, vocabulary, texts.normalization, max_length)

    described = []
    for number, name in enumerate(languages):
        places = train.lengths[train.languages == number]
        described.append(
            f"{name}: {len(places):,} sentences of {places.mean():.1f} places to train on, "
            f"{int((dev.languages == number).sum()):,} held out"
        )
    cut = f"{train.truncated:,} of them and {dev.truncated:,} held out"
    described.append(f"cut to batches.max_length: {cut}")
    for (field, said), kind in zip(to_find.items(), ("sentences", "words"), strict=True):
        described.append(
            f"{len(said):,} {kind} in every language to find (corpora.LANGUAGE.{field})"
        )
    piece_range = PieceRange(len(languages), vocabulary.shift)
    return Data(vocabulary, piece_range, train, False, described, evaluated, keep)

"""The texts of natural languages, each with a vocabulary of its own, as ids."""

import itertools
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
from xling_jax.vocabulary import pieces, samples
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


def sentences(config: ConfigDict, texts: Texts, language: str, purpose: str) -> list[str]:
    """The first sentences of a text, as many as the config says, normalised; ValueError, naming the
    field, if there are none."""
    normalize = texts.normalizer(language)
    limit = 0 if texts.embedded else config.corpora[f"{purpose}_sentences"]
    with errors.in_field(texts.field(language, purpose)):
        found = filter(None, map(normalize, texts.stream(language, purpose)))
        if not (taken := list(itertools.islice(found, limit or None))):
            raise ValueError("the text is empty")
    return taken


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


def prepare(config: ConfigDict, texts: Texts, cache: Path) -> Data:
    """Trains the vocabularies and encodes the texts."""
    section, languages = config.vocabulary, texts.languages
    every = []
    to_check = {each.target_language: each for each in texts.dictionaries("words") or []}
    first: list[str] = []  # a sample of the first language
    ids: dict[str, list[list[np.ndarray]]] = {purpose: [] for purpose in PURPOSES}
    for name in languages:
        written = {purpose: sentences(config, texts, name, purpose) for purpose in PURPOSES}
        drawn = samples.draw(written["train"], section.sentences)
        if name in to_check:
            with errors.in_field(texts.field(name, "words")):
                to_check[name].require_direction(first, drawn)
        elif to_check:
            first = drawn
        with errors.in_field(f"vocabulary.size, corpora.{name}"):
            every.append(
                pieces.train(drawn, section.size, cache=cache, model_type=section.model_type)
            )
        for purpose, lines in written.items():
            ids[purpose].append(every[-1].encode(lines))
    vocabulary = ShiftedVocabulary(languages, tuple(every))

    # Special tokens in the text stay the first language's; the setting shifts them.
    def stored(ids: Sequence[Sequence[np.ndarray]]) -> TokenStore:
        shifted = [vocabulary.shifted(own, number) for number, own in enumerate(ids)]
        return TokenStore.from_languages(shifted, config.batches.max_length)

    dev, train = (stored(ids[purpose]) for purpose in PURPOSES)
    to_find = {"test": sentences_to_find(config, texts), "words": words_to_find(texts, every)}

    def parallel(lines: list[tuple[str, ...]]) -> TokenStore | None:
        sides = zip(every, zip(*lines, strict=True), strict=True)
        return stored([own.encode(side) for own, side in sides]) if lines else None

    test, words = parallel(to_find["test"]), parallel(to_find["words"])
    evaluated = EncodedTexts(languages, {"dev": dev}, test, words, is_apart=True)
    max_length = config.batches.max_length

    def keep(workdir: Path, replica: Replica, model: BertConfig, params: Params, _: object) -> None:
        export(workdir, replica, model, params, vocabulary, texts.normalization, max_length)

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

"""The texts of natural languages, each with a vocabulary of its own, as ids."""

import itertools
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from jax.sharding import Mesh
from ml_collections import ConfigDict

from xling_jax import errors
from xling_jax.batches.corruption import PieceRange
from xling_jax.batches.store import TokenStore
from xling_jax.evaluators.perplexity import HeldOutPerplexity
from xling_jax.experiments.fake_english.data import (
    Data,
    Evaluator,
    Params,
    Source,
    batch_options,
    export,
)
from xling_jax.models.bert import BertConfig
from xling_jax.runs.texts import Texts
from xling_jax.training.loop import Replica
from xling_jax.vocabulary import pieces
from xling_jax.vocabulary.sharing import ShiftedVocabulary

PURPOSES = ("dev", "train")


def read(config: ConfigDict) -> Source:
    """The texts of all languages, not yet read; errors as those of `Texts`."""
    texts = Texts.of_corpora(config.corpora)
    manifest = [each for name in texts.languages for each in texts.manifest(name, PURPOSES)]
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


def prepare(config: ConfigDict, texts: Texts, cache: Path) -> Data:
    """Trains the vocabularies and encodes the texts."""
    section, languages = config.vocabulary, texts.languages
    every = []
    ids: dict[str, list[list[np.ndarray]]] = {purpose: [] for purpose in PURPOSES}
    for name in languages:
        written = {purpose: sentences(config, texts, name, purpose) for purpose in PURPOSES}
        drawn = pieces.sample(written["train"], section.sentences)
        with errors.in_field(f"vocabulary.size, corpora.{name}"):
            every.append(pieces.train(drawn, section.size, cache, section.model_type))
        for purpose, lines in written.items():
            ids[purpose].append(every[-1].encode(lines))
    vocabulary = ShiftedVocabulary(languages, tuple(every))
    # Special tokens in the text stay the first language's; the setting shifts them.
    dev, train = (
        TokenStore.from_languages(
            [vocabulary.shifted(own, number) for number, own in enumerate(ids[purpose])],
            config.batches.max_length,
        )
        for purpose in PURPOSES
    )
    piece_range = PieceRange(len(languages), vocabulary.shift)
    options = batch_options(config)

    def evaluator(model: BertConfig, mesh: Mesh, layers: Sequence[int]) -> Evaluator:
        """Nothing is measured at layers."""
        return HeldOutPerplexity(model, dev, languages, piece_range, mesh, **options)

    def keep(workdir: Path, replica: Replica, model: BertConfig, params: Params, _: object) -> None:
        export(workdir, replica, model, params, vocabulary, texts.normalization)

    described = []
    for number, name in enumerate(languages):
        places = train.lengths[train.languages == number]
        described.append(
            f"{name}: {len(places):,} sentences of {places.mean():.1f} places to train on, "
            f"{int((dev.languages == number).sum()):,} held out"
        )
    cut = f"{train.truncated:,} of them and {dev.truncated:,} held out"
    described.append(f"cut to batches.max_length: {cut}")
    return Data(vocabulary, piece_range, train, False, described, evaluator, keep)

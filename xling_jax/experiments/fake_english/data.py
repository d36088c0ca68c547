"""The texts of a D&S experiment as ids, and those of Fake-English."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from ml_collections import ConfigDict

from xling_jax import errors
from xling_jax.batches.corruption import PieceRange
from xling_jax.batches.store import TokenStore
from xling_jax.corpora import text as corpora
from xling_jax.corpora.normalize import Normalization
from xling_jax.corpora.sources import SYNTHETIC
from xling_jax.evaluators.multilinguality import EncodedTexts
from xling_jax.models import stored
from xling_jax.models.bert import BertConfig
from xling_jax.runs import results, store
from xling_jax.runs.texts import Embedded, Texts
from xling_jax.training.loop import Replica
from xling_jax.vocabulary import pieces
from xling_jax.vocabulary.pieces import CLS, SEP, SPECIALS
from xling_jax.vocabulary.sharing import ShiftedVocabulary

TABLES = "positions", "token_types"  # with lang-pos, each language has its own part of these
AS_IT_IS = Normalization(punctuation=False, tokenize="none")
USUAL = {"train": 17_178, "dev": 10_000}  # sentences of the paper's texts (D&S Table 7)

Params = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Data:
    """Texts as ids, and what is made from them.

    Attributes:
      piece_range: the pieces that random replacements are drawn from.
      train: language after language.
      is_parallel: whether sentence i means the same in every language.
      described: a line about each text.
      evaluated: what models are evaluated on.
      keep: writes into a workdir what is kept of a replica, from its model, plain parameters and
        the vectors that its evaluation returned.
    """

    vocabulary: ShiftedVocabulary
    piece_range: PieceRange
    train: TokenStore
    is_parallel: bool
    described: Sequence[str]
    evaluated: EncodedTexts
    keep: Callable[[Path, Replica, BertConfig, Params, np.ndarray], None]


# The manifest of an experiment's texts, and a function that trains the vocabularies and encodes the
# texts, and keeps what it makes in a workdir.
Source = tuple[list[dict[str, Any]], Callable[[Path], Data]]


def read(config: ConfigDict) -> Source:
    """Reads the English texts, which are Fake-English's too. ValueError if only one of them is the
    embedded language's, or both are the same; otherwise raises what `Texts.read` raises."""
    section = config.corpora
    if (section.train == SYNTHETIC) != (section.dev == SYNTHETIC):
        raise ValueError(
            f"corpora.train={section.train} and corpora.dev={section.dev}: give a file or a TFDS "
            "name for both, or leave both to the embedded language"
        )
    embedded = Embedded(section) if section.train == SYNTHETIC else None
    given = Texts(section, "corpora", section.languages[:1], embedded)
    texts = [given.read(given.languages[0], purpose, usual) for purpose, usual in USUAL.items()]
    store.require_apart(given.manifest(given.languages[0], USUAL, has_rules=False))
    return corpora.manifest(texts), partial(_prepare, config, texts)


def _prepare(config: ConfigDict, texts: Sequence[corpora.Text], workdir: Path) -> Data:
    """Trains the vocabulary and encodes both texts; the other languages have the same ids,
    shifted."""
    section, languages = config.vocabulary, tuple(config.corpora.languages)
    with errors.in_field("vocabulary.size, vocabulary.model_type"):
        folder = workdir / "vocabulary"
        own = pieces.train(
            texts[0].sentences, section.size, cache=folder, model_type=section.model_type
        )
    vocabulary = ShiftedVocabulary(languages, (own,) * len(languages), is_fake=True)

    def stored(ids: Sequence[np.ndarray], first: int = SPECIALS) -> TokenStore:
        shifted = [vocabulary.shifted(ids, number, first) for number in range(len(languages))]
        return TokenStore.from_languages(shifted, config.batches.max_length)

    # Special tokens in the text stay the first language's; the setting shifts them.
    ids = [own.encode(text.sentences) for text in texts]
    train, dev = map(stored, ids)
    fit = stored(fit_sample(*ids))
    single = stored([np.array([piece], np.int32) for piece in range(own.size)], first=0)
    evaluated = EncodedTexts(languages, {"train": fit, "dev": dev}, sentences=dev, words=single)
    described = [
        f"{name} text: {text.source}, {len(text.sentences):,} sentences, "
        f"{kept.lengths.mean():.1f} places each, {kept.truncated // len(languages)} cut"
        for name, text, kept in zip(USUAL, texts, (train, dev), strict=True)
    ]
    keep = partial(_keep, vocabulary, train, config.batches.max_length)
    piece_range = PieceRange(len(languages), own.size)
    return Data(vocabulary, piece_range, train, True, described, evaluated, keep)


def fit_sample(train: Sequence[np.ndarray], dev: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The training sentences whose perplexity is measured: as many as are held out, evenly spaced
    over the text, or all if there are fewer."""
    number = min(len(train), len(dev))
    return [train[i] for i in np.linspace(0, len(train) - 1, number).astype(int)]


def _keep(
    vocabulary: ShiftedVocabulary,
    train: TokenStore,
    max_length: int,
    workdir: Path,
    replica: Replica,
    model: BertConfig,
    params: Params,
    vectors: np.ndarray,
) -> None:
    """Writes the languages' models and, for D&S Figures 4 and 8, the position table and `vectors`,
    the layer-0 vectors of all pieces [languages, V, D]."""
    languages = vocabulary.languages
    export(workdir, replica, model, params, vocabulary, AS_IT_IS, max_length)
    results.write_arrays(
        results.arrays_of(workdir, replica.row, replica.seed),
        results.Arrays(
            token_embeddings=np.concatenate(vectors),
            token_languages=np.repeat(np.arange(len(languages)), vocabulary.shift),
            token_names=np.array(vocabulary.names()),
            token_counts=np.bincount(train.tokens, minlength=vocabulary.size),
            position_embeddings=np.asarray(params["embeddings"]["positions"]),
            position_offset=int(replica.setting.position_offset),
            language_names=languages,
        ),
        replica.identity.fingerprint,
    )


def export(
    workdir: Path,
    replica: Replica,
    model: BertConfig,
    params: Params,
    vocabulary: ShiftedVocabulary,
    normalization: Normalization,
    max_length: int,
) -> None:
    """Writes a replica's models, one for each language, from plain parameters, below `models/` of a
    workdir.

    Each has the table of all languages' pieces, so that what fine-tuning learns of a token, special
    ones included, holds for every language that uses it (D&S §5). With lang-pos each has its
    language's positions and token type, moved to where the other models have theirs; with
    shift-special, the language's own special tokens. Only `max_length` positions, to which
    sentences were cut, and one token type are kept: a language was trained with no others, and a
    second token type for the second sentence of a pair would give rows without lang-pos what those
    with it cannot have.
    """
    setting = replica.setting
    shift, offset = int(setting.special_shift), int(setting.position_offset)
    folder = store.models_of(workdir, replica.row, replica.seed)
    params = jax.device_get(params)
    for number, name in enumerate(vocabulary.languages):
        tables = {key: params["embeddings"][key] for key in TABLES}
        start = number * offset
        tables["positions"] = tables["positions"][start : start + max_length]
        own_type = number if offset else 0
        tables["token_types"] = tables["token_types"][own_type : own_type + 1]
        ids = np.arange(vocabulary.shift)
        ids = np.where(ids < SPECIALS, ids + number * shift, ids + number * vocabulary.shift)
        stored.save(
            folder / name,
            stored.StoredModel(
                config=dataclasses.replace(model, positions=max_length, token_types=1),
                params={**params, "embeddings": {**params["embeddings"], **tables}},
                language=name,
                pieces=vocabulary.pieces[number],
                ids=ids.astype(np.int32),
                normalization=normalization,
                special_ids=(CLS + number * shift, SEP + number * shift),
                inverted=bool(np.asarray(setting.inverted)[number]),
                own=frozenset(f"embeddings/{key}" for key in TABLES if offset),
            ),
            like=folder / vocabulary.languages[0] if number and not offset else None,
        )

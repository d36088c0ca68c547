"""The texts of an experiment of D&S, as ids; those of Fake-English."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh
from ml_collections import ConfigDict

from xling_jax import errors
from xling_jax.batches.assembly import SPECIALS
from xling_jax.batches.corruption import PieceRange
from xling_jax.batches.store import TokenStore
from xling_jax.corpora import text as corpora
from xling_jax.corpora.normalize import Normalization
from xling_jax.corpora.sources import SYNTHETIC
from xling_jax.evaluators.multilinguality import EncodedTexts, Multilinguality
from xling_jax.models import stored
from xling_jax.models.bert import BertConfig
from xling_jax.runs import results, store
from xling_jax.runs.texts import Embedded, Texts
from xling_jax.training.loop import Replica
from xling_jax.vocabulary import pieces
from xling_jax.vocabulary.pieces import CLS, SEP
from xling_jax.vocabulary.sharing import ShiftedVocabulary

TABLES = "positions", "token_types"  # of which a language has a part of its own with lang-pos
AS_IT_IS = Normalization(punctuation=False, tokenize="none")
USUAL = {"train": 17_178, "dev": 10_000}  # sentences of the paper's texts (D&S §2.1)

Params = Mapping[str, Any]
# Parameters and settings of replicas to the metrics of each, and vectors of each to be kept [R, …].
Evaluator = Callable[[Any, Any], tuple[list[dict[str, float]], np.ndarray]]


@dataclasses.dataclass(frozen=True)
class Data:
    """Texts as ids.

    piece_range: what random replacements are drawn from. train: language after language.
    is_parallel: whether sentence i, and piece p, says the same in every language. described: a line
    about each text. evaluator: makes what evaluates replicas of a size on a mesh at some layers.
    keep: writes into a workdir what is kept of a replica of a size: plain parameters, and its
    evaluator's vectors.
    """

    vocabulary: ShiftedVocabulary
    piece_range: PieceRange
    train: TokenStore
    is_parallel: bool
    described: Sequence[str]
    evaluator: Callable[[BertConfig, Mesh, Sequence[int]], Evaluator]
    keep: Callable[[Path, Replica, BertConfig, Params, np.ndarray], None]


# The manifest of what an experiment reads, and what trains its vocabularies, kept in a folder, and
# encodes it.
Source = tuple[list[dict[str, Any]], Callable[[Path], Data]]


def batch_options(config: ConfigDict) -> dict[str, Any]:
    """How evaluators lay out batches: as in training."""
    return {x: config.batches[x] for x in ("sentences", "row_lengths", "attend_padding")}


def read(config: ConfigDict) -> Source:
    """The texts of English, which are those of Fake-English too; errors as `Texts.read`."""
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


def _prepare(config: ConfigDict, texts: Sequence[corpora.Text], cache: Path) -> Data:
    """Trains the vocabulary and encodes both texts; the second language shifts the ids."""
    section, languages = config.vocabulary, tuple(config.corpora.languages)
    with errors.in_field("vocabulary.size, vocabulary.model_type"):
        own = pieces.train(
            texts[0].sentences, section.size, cache=cache, model_type=section.model_type
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
    piece_range, options = PieceRange(len(languages), own.size), batch_options(config)

    def evaluator(model: BertConfig, mesh: Mesh, layers: Sequence[int]) -> Evaluator:
        names = config.evaluators.names
        return Multilinguality(
            model, evaluated, piece_range, mesh, names=names, layers=layers, **options
        )

    described = [
        f"{name} text: {text.source}, {len(text.sentences):,} sentences, "
        f"{kept.lengths.mean():.1f} places each, {kept.truncated // len(languages)} cut"
        for name, text, kept in zip(USUAL, texts, (train, dev), strict=True)
    ]
    keep = partial(_keep, vocabulary, train, config.batches.max_length)
    return Data(vocabulary, piece_range, train, True, described, evaluator, keep)


def fit_sample(train: Sequence[np.ndarray], dev: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Training sentences whose perplexity is measured: as many as are held out, from all parts of
    the text, or all where there are fewer."""
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
    """Writes the languages' models, and for D&S Figures 4 and 8 the layer-0 vectors of all pieces
    [languages, V, D] and the position table."""
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
    """Writes the models of a replica, from plain parameters, below `models/` of a workdir.

    All have the whole table of pieces, so that what is learned of one language's tokens and of the
    special tokens is learned for all that use them (D&S §5). A row with lang-pos has other
    positions and another token type in each: a language's part of the tables stands where the
    others have theirs. With shift-special the ids around a sentence are the language's own. There
    are `max_length` positions, to which sentences were cut, and one token type: others were never
    trained, and with a second one for the second sentence of a pair rows without lang-pos would
    have what those with it cannot have.
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

"""The texts of a Fake-English experiment, as ids."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_collections
import numpy as np
from jax.sharding import Mesh

from xling_jax import errors
from xling_jax.batches.assembly import SPECIALS
from xling_jax.batches.corruption import PieceRange
from xling_jax.batches.store import TokenStore
from xling_jax.corpora import splitting
from xling_jax.corpora import text as corpora
from xling_jax.corpora.embedded.config import LanguageConfig
from xling_jax.corpora.embedded.sentences import generate
from xling_jax.corpora.sources import SYNTHETIC
from xling_jax.evaluators.multilinguality import Multilinguality, Texts
from xling_jax.models.bert import BertConfig
from xling_jax.runs import results
from xling_jax.training.loop import Replica
from xling_jax.vocabulary import pieces as vocabulary
from xling_jax.vocabulary.languages import ShiftedVocabulary

PAPER_SENTENCES, PAPER_DEV_SENTENCES = 17_178, 10_000  # of the paper's texts (D&S §2.1)
TRAIN_SEED, DEV_SEED = 1, 2  # seeds of the embedded language's two texts


class FakeEnglish:
    """The two texts of an experiment; see `texts.Source`."""

    def __init__(self, config: ml_collections.ConfigDict):
        """Reads them; errors as `read_texts`'s."""
        self._config, self._texts = config, read_texts(config)

    def manifest(self) -> list[dict[str, Any]]:
        """See `Source`."""
        return corpora.manifest(self._texts)

    def prepare(self, cache: Path) -> "Data":
        """See `Source`."""
        return Data.prepare(self._config, *self._texts, cache)


def read_texts(config: ml_collections.ConfigDict) -> tuple[corpora.Text, corpora.Text]:
    """The training and the held-out text.

    Raises:
      ValueError, FileNotFoundError: one of them cannot be read, or is shorter than asked.
    """
    section = config.corpora
    language = section.languages[0]
    if (section.train == SYNTHETIC) != (section.dev == SYNTHETIC):
        raise ValueError(
            f"corpora.train={section.train} and corpora.dev={section.dev}: give a file or a TFDS "
            "name for both, or leave both to the embedded language"
        )
    if section.train == SYNTHETIC:
        knobs = LanguageConfig(**section.synthetic)
        return tuple(
            corpora.from_sentences(generate(knobs, number, seed), language, f"{SYNTHETIC} {name}")
            for name, number, seed in [
                ("train", section.train_sentences or PAPER_SENTENCES, TRAIN_SEED),
                ("dev", section.dev_sentences or PAPER_DEV_SENTENCES, DEV_SEED),
            ]
        )  # type: ignore[return-value]
    found = []
    for name in ("train", "dev"):
        with errors.in_field(f"corpora.{name}, corpora.{name}_sentences"):
            found.append(
                corpora.read(
                    section[name],
                    language,
                    split=splitting.of_config(section, language),
                    limit=section[f"{name}_sentences"] or None,
                )
            )
    return found[0], found[1]


@dataclasses.dataclass(frozen=True)
class Data:
    """Texts as ids, in English and Fake-English; see `texts.Data`.

    sources: of the training and the held-out text.
    """

    vocabulary: ShiftedVocabulary
    texts: Texts
    piece_range: PieceRange
    sources: tuple[corpora.Text, corpora.Text]

    is_parallel = True

    @property
    def train(self) -> TokenStore:
        """See `texts.Data`."""
        return self.texts.train

    @classmethod
    def prepare(
        cls, config: ml_collections.ConfigDict, train: corpora.Text, dev: corpora.Text, cache: Path
    ) -> "Data":
        """Trains the vocabulary and encodes both texts; the second language shifts the ids."""
        section = config.vocabulary
        try:
            pieces = vocabulary.train(train.sentences, section.size, cache, section.model_type)
        except ValueError as error:
            raise ValueError(f"vocabulary.size, vocabulary.model_type: {error}") from error
        languages = ShiftedVocabulary(pieces, tuple(config.corpora.languages))

        def stored(ids: Sequence[np.ndarray], own_unknown: bool = False) -> TokenStore:
            """Special tokens in the text stay the first language's; the setting shifts them."""
            first = 0 if own_unknown else SPECIALS
            shifted = [languages.shifted(ids, name, first) for name in languages.languages]
            return TokenStore.from_languages(shifted, config.batches.max_length)

        texts = Texts(
            train=stored(pieces.encode(train.sentences)),
            dev=stored(pieces.encode(dev.sentences)),
            pieces=stored(
                [np.array([piece], np.int32) for piece in range(pieces.size)], own_unknown=True
            ),
        )
        piece_range = PieceRange(len(languages.languages), languages.shift)
        return cls(languages, texts, piece_range, (train, dev))

    def evaluator(
        self,
        model: BertConfig,
        mesh: Mesh,
        names: Sequence[str],
        layers: Sequence[int],
        batches: ml_collections.ConfigDict,
    ) -> Multilinguality:
        """See `texts.Data`."""
        return Multilinguality(
            model,
            self.texts,
            self.piece_range,
            mesh,
            names=names,
            layers=layers,
            sentences=batches.sentences,
            row_lengths=batches.row_lengths,
            attend_padding=batches.attend_padding,
        )

    def described(self) -> list[str]:
        """See `texts.Data`."""
        return [
            f"{name} text: {text.source}, {len(text.sentences):,} sentences, "
            f"{store.lengths.mean():.1f} places each, {store.truncated // 2} cut"
            for name, text, store in [
                ("train", self.sources[0], self.texts.train),
                ("dev", self.sources[1], self.texts.dev),
            ]
        ]

    def keep(
        self,
        workdir: Path,
        replica: Replica,
        model: BertConfig,
        params: Mapping[str, Any],
        vectors: np.ndarray,
    ) -> None:
        """The layer-0 vectors of all pieces [2, V, D] and the position table, for D&S Figures 4
        and 8."""
        vocabulary = self.vocabulary
        languages = vocabulary.languages
        results.write_arrays(
            workdir / "arrays" / f"row{replica.row}_seed{replica.seed}.npz",
            results.Arrays(
                token_embeddings=np.concatenate(vectors),
                token_languages=np.repeat(np.arange(len(languages)), vocabulary.shift),
                token_names=np.array(vocabulary.names()),
                token_counts=np.bincount(self.train.tokens, minlength=vocabulary.size),
                position_embeddings=np.asarray(params["embeddings"]["positions"]),
                position_offset=int(replica.setting.position_offset),
                language_names=languages,
            ),
            replica.identity.fingerprint,
        )

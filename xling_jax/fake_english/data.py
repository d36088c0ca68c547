"""The texts of a Fake-English experiment, as ids."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import ml_collections
import numpy as np

from xling_jax import experiment
from xling_jax.batches.assembly import SPECIALS
from xling_jax.batches.corruption import PieceRange
from xling_jax.batches.store import TokenStore
from xling_jax.corpora import text as corpora
from xling_jax.corpora.synthetic.config import LanguageConfig
from xling_jax.corpora.synthetic.sentences import generate
from xling_jax.evaluators.multilinguality import Texts
from xling_jax.vocabulary import pieces as vocabulary
from xling_jax.vocabulary.languages import ShiftedVocabulary

PAPER_SENTENCES, PAPER_DEV_SENTENCES = 17_178, 10_000  # of the paper's texts (D&S §2.1)
SYNTHETIC = "synthetic"  # the source of the embedded language
TRAIN_SEED, DEV_SEED = 1, 2  # seeds of the embedded language's two texts


def read_texts(config: ml_collections.ConfigDict) -> tuple[corpora.Text, corpora.Text]:
    """The training and the held-out text.

    Raises:
      ValueError, FileNotFoundError: one of them cannot be read, or is shorter than asked.
    """
    section = config.corpora
    if len(section.languages) != 2:
        raise ValueError(
            f"corpora.languages={tuple(section.languages)}: name two, of which the second is made"
        )
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
        with experiment.named(f"corpora.{name}, corpora.{name}_sentences"):
            found.append(
                corpora.read(
                    section[name],
                    language,
                    split_sentences=section.split_sentences,
                    limit=section[f"{name}_sentences"] or None,
                )
            )
    return found[0], found[1]


@dataclasses.dataclass(frozen=True)
class Data:
    """Texts as ids, in English and Fake-English."""

    vocabulary: ShiftedVocabulary
    texts: Texts
    piece_range: PieceRange

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
            shifted = [
                [np.where(x < first, x, x + languages.offset(name)) for x in ids]
                for name in languages.languages
            ]
            return TokenStore.from_languages(shifted, config.batches.max_length)

        texts = Texts(
            train=stored(pieces.encode(train.sentences)),
            dev=stored(pieces.encode(dev.sentences)),
            pieces=stored(
                [np.array([piece], np.int32) for piece in range(pieces.size)], own_unknown=True
            ),
        )
        piece_range = PieceRange(len(languages.languages), languages.shift)
        return cls(languages, texts, piece_range)

"""The models whose training is measured, and random text for them."""

import dataclasses
from pathlib import Path

import numpy as np

from xling_jax.models.bert import BertConfig
from xling_jax.vocabulary.pieces import SPECIALS

BASE = {"hidden": 768, "intermediate": 3072, "heads": 12}
TOKENS = 500_000  # of the text, at least
MEAN, LONGEST = 22.5, 128  # places of a sentence, as in the New Testament in Basic English


@dataclasses.dataclass(frozen=True)
class Size:
    """A model, and what it reads in a step.

    Attributes:
      model: its size.
      length: places of a window of a stream; 0: packed sentences instead.
      parts: parts of a batch of windows, each of one language.
      batch: sentences or windows in a step on accelerators.
      cpu_batch: the same on CPUs.
    """

    model: BertConfig
    length: int
    parts: int
    batch: int
    cpu_batch: int


SIZES = {
    # D&S §2.1
    "bert-small": Size(BertConfig(vocabulary_size=4096), 0, 1, 256, 256),
    # W&C §3.1
    "wu-conneau": Size(
        BertConfig(80_000, layers=8, **BASE, positions=256, token_types=1, head="linear"),
        length=256,
        parts=8,
        batch=768,
        cpu_batch=8,
    ),
    # Devlin et al. 2019
    "bert-base": Size(BertConfig(30_522, **BASE), length=128, parts=1, batch=256, cpu_batch=16),
}


def sentence_lengths(number: int, random: np.random.Generator) -> np.ndarray:
    """The places that random sentences take, special tokens included."""
    return np.clip(random.gamma(3.0, MEAN / 3, number).astype(int), 4, LONGEST)


def write(size: Size, path: Path) -> None:
    """Writes random ids in two languages, in the form of `corpus.write`.

    For windows, all sentences have the same length and are read one after the other as a stream.
    """
    random = np.random.default_rng(0)
    shift = size.model.vocabulary_size // 2
    if size.length:
        sentences = TOKENS // size.length + 1
        lengths = np.full(2 * sentences, size.length - 2)
    else:
        sentences = TOKENS // int(MEAN)
        lengths = sentence_lengths(2 * sentences, random) - 2
    languages = np.repeat([0, 1], sentences)
    tokens = random.integers(SPECIALS, shift, lengths.sum())
    tokens += shift * np.repeat(languages, lengths)
    np.savez(
        path,
        tokens=tokens.astype(np.int32),
        offsets=np.append(0, np.cumsum(lengths)).astype(np.int32),
        languages=languages.astype(np.int32),
        shift=shift,
        specials=SPECIALS,
    )

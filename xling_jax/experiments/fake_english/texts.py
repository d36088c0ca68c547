"""What an experiment of D&S needs of its texts, whichever they are."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import ml_collections
import numpy as np
from jax.sharding import Mesh

from xling_jax.batches.corruption import PieceRange
from xling_jax.batches.store import TokenStore
from xling_jax.models.bert import BertConfig
from xling_jax.training.loop import Replica


class Vocabulary(Protocol):
    """Pieces of several languages, of which language k's have the ids from k * shift on."""

    @property
    def languages(self) -> tuple[str, ...]:
        """Their names."""

    @property
    def shift(self) -> int:
        """Ids of a language."""

    @property
    def size(self) -> int:
        """Ids of all."""

    @property
    def sha256(self) -> str:
        """Of the pieces."""

    def names(self) -> list[str]:
        """The name of every id."""

    def ordinary(self, language: str) -> range:
        """The ids of a language that are no special tokens."""


class Evaluator(Protocol):
    """Evaluates replicas side by side."""

    def __call__(self, params: Any, settings: Any) -> tuple[list[dict[str, float]], np.ndarray]:
        """The metrics of each replica, and vectors of each to be kept, [R, …]."""


class Data(Protocol):
    """Texts as ids.

    is_parallel: whether sentence i of every language says the same, and piece p the same as p of
    every other language.
    """

    is_parallel: bool

    @property
    def vocabulary(self) -> Vocabulary:
        """Of all languages."""

    @property
    def train(self) -> TokenStore:
        """To train on, language after language."""

    @property
    def piece_range(self) -> PieceRange:
        """What random replacements are drawn from."""

    def evaluator(
        self,
        model: BertConfig,
        mesh: Mesh,
        names: Sequence[str],
        layers: Sequence[int],
        batches: ml_collections.ConfigDict,
    ) -> Evaluator:
        """What measures replicas of a size, by names and layers, in batches as in training."""

    def described(self) -> list[str]:
        """A line about each text."""

    def keep(
        self,
        workdir: Path,
        replica: Replica,
        model: BertConfig,
        params: Mapping[str, Any],
        vectors: np.ndarray,
    ) -> None:
        """Writes what is kept of a replica: plain parameters, and its evaluator's vectors."""


class Source(Protocol):
    """The texts of an experiment before they are ids."""

    def manifest(self) -> list[dict[str, Any]]:
        """What is read, with hashes.

        Raises:
          ValueError, FileNotFoundError: it cannot be read.
        """

    def prepare(self, cache: Path) -> Data:
        """Trains vocabularies, kept in a folder, and encodes the texts.

        Raises:
          ValueError, FileNotFoundError: one cannot be used; its field is named.
        """

"""Streams on the device: their windows as batches, and the pieces of each language."""

import dataclasses
import hashlib
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from xling_jax.batches.assembly import Batch
from xling_jax.vocabulary.pieces import CLS, MASK, SPECIALS
from xling_jax.vocabulary.sharing import LanguageVocabulary

ANYWHERE, INSIDE = "anywhere", "inside"  # random pieces come from all languages, or the token's own


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class PieceTables:
    """The pieces of K languages, as arrays.

    Attributes:
      pieces: int32 [K, N], the ids that predictions in a language choose among, in increasing
        order, padded by repeating the last.
      sizes: int32 [K], how many there are.
      local: int32 [K, V], the place of each id in the language's row of `pieces`; -1 if none.
      random: int32 [K, M], the ids that random replacements are drawn from, padded likewise.
      random_sizes: int32 [K], how many there are.
    """

    pieces: jax.Array
    sizes: jax.Array
    local: jax.Array
    random: jax.Array
    random_sizes: jax.Array

    @classmethod
    def of(
        cls,
        vocabulary: LanguageVocabulary,
        random_pieces: str,
        trained: Sequence[np.ndarray],
        others: Sequence[np.ndarray],
    ) -> "PieceTables":
        """The tables of a vocabulary.

        Args:
          vocabulary: of K languages.
          random_pieces: ANYWHERE or INSIDE: whether random replacements are drawn from the pieces
            of all languages or only of the same one (see `LanguageVocabulary.own_ids`).
          trained: the ids that occur in each language's training text.
          others: further ids that may have to be predicted in each language; may repeat `trained`.

        Raises:
          ValueError: ANYWHERE, but the languages' ids are separate.
        """
        if vocabulary.way == "separate" and random_pieces == ANYWHERE:
            raise ValueError(
                f"random_pieces={ANYWHERE!r}: languages with token embeddings of their "
                f"own know no pieces of others; choose {INSIDE!r}"
            )
        own = vocabulary.own_ids(trained)
        predicted = [
            np.unique(np.concatenate(every)) for every in zip(own, trained, others, strict=True)
        ]
        local = np.full((len(own), vocabulary.size), -1)
        for row, ids in zip(local, predicted, strict=True):
            row[ids] = np.arange(len(ids))
        all_pieces = np.unique(np.concatenate(vocabulary.ids))
        drawn = [all_pieces] * len(own) if random_pieces == ANYWHERE else own
        pieces, sizes = _table(predicted)
        random, numbers = _table([ids[SPECIALS:] for ids in drawn])
        return cls(*(jnp.asarray(x, jnp.int32) for x in (pieces, sizes, local, random, numbers)))

    @property
    def sha256(self) -> str:
        """A hash of which pieces each language has."""
        content = hashlib.sha256()
        for table in (self.pieces, self.sizes, self.random, self.random_sizes):
            content.update(np.asarray(table).tobytes())
        return content.hexdigest()

    def predicted(self, language: int) -> np.ndarray:
        """The ids that predictions in a language choose among, in increasing order."""
        return np.asarray(self.pieces[language, : self.sizes[language]])

    def draw(self, language: jax.Array, bits: jax.Array) -> jax.Array:
        """Random replacements in a language, int32 ids from uint32 bits."""
        size = self.random_sizes[language].astype(jnp.uint32)
        return self.random[language][(bits % size).astype(jnp.int32)]


def _table(rows: Sequence[np.ndarray]) -> tuple[np.ndarray, list[int]]:
    """The ids as rows of one array, shorter rows padded with their last id, and their lengths."""
    sizes = [len(ids) for ids in rows]
    return np.stack([np.pad(ids, (0, max(sizes) - len(ids)), "edge") for ids in rows]), sizes


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class StreamStore:
    """The streams of K languages, one after the other.

    tokens: int32 [total]. firsts, sizes: int32 [K], where each stream begins, and its length.
    """

    tokens: Any
    firsts: Any
    sizes: Any
    tables: PieceTables

    @classmethod
    def of(cls, streams: Sequence[np.ndarray], tables: PieceTables) -> "StreamStore":
        sizes = np.array([len(stream) for stream in streams], np.int32)
        tokens = np.concatenate(streams).astype(np.int32)
        return cls(tokens, np.cumsum(sizes, dtype=np.int32) - sizes, sizes, tables)

    def read(self, language: jax.Array, start_S: jax.Array, window: int) -> jax.Array:
        """Windows [S, window] of a language's stream; after its end comes its beginning again."""
        place = (start_S[:, None] + jnp.arange(window)) % self.sizes[language]
        return self.tokens[self.firsts[language] + place]


def stream_batch(windows_SxW: jax.Array) -> Batch:
    """The batch whose sequences are [CLS] and a window, flat: S rows of W + 1 places.

    Positions and places count from the sequence's beginning, across sentences; all places of a row
    have one token type and attend to each other. `is_piece` leaves out [UNK].
    """
    count, window = windows_SxW.shape
    cls = jnp.full((count, 1), CLS, jnp.int32)
    tokens_P = jnp.concatenate([cls, windows_SxW], axis=1).reshape(-1)
    place_P = jnp.tile(jnp.arange(window + 1), count)
    zeros_P, all_P = jnp.zeros_like(tokens_P), jnp.ones(tokens_P.shape, bool)
    is_ordinary_P = tokens_P >= SPECIALS
    return Batch(
        tokens=tokens_P,
        positions=place_P,
        token_types=zeros_P,
        segments=None,
        places=place_P,
        mask_ids=jnp.full(tokens_P.shape, MASK, jnp.int32),
        is_token=all_P,
        is_piece=is_ordinary_P,
        is_ordinary=is_ordinary_P,
        mirror=place_P,
    )

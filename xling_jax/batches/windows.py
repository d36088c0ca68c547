"""Streams on the device: their windows as batches, and what each language's pieces are."""

import dataclasses
import hashlib
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from xling_jax.batches.assembly import SPECIALS, Batch
from xling_jax.vocabulary.pieces import CLS, MASK
from xling_jax.vocabulary.sharing import LanguageVocabulary

ANYWHERE, INSIDE = "anywhere", "inside"  # the language, or all, that random pieces are of


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class PieceTables:
    """The pieces of K languages, as values.

    pieces: int32 [K, N], the ids that a prediction in each language can choose among, in increasing
    order, filled up with the last. sizes: int32 [K], how many they are.
    local: int32 [K, V], the place of an id in its language's row of `pieces`; -1 of others.
    random: int32 [K, M], ids that a random replacement is drawn from, filled up likewise.
    random_sizes: int32 [K].
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
          random_pieces: whether random replacements are pieces from ANYWHERE or INSIDE the
            language, see `LanguageVocabulary.own_ids`.
          trained: the ids that occur in each language's training text.
          others: further ids that there may be to predict in each; they may repeat `trained`.

        Raises:
          ValueError: pieces from ANYWHERE where ids are separate.
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
        """The ids that a prediction in a language can choose among, in increasing order."""
        return np.asarray(self.pieces[language, : self.sizes[language]])

    def draw(self, language: jax.Array, bits: jax.Array) -> jax.Array:
        """Random replacements in a language, int32 ids from uint32 bits."""
        size = self.random_sizes[language].astype(jnp.uint32)
        return self.random[language][(bits % size).astype(jnp.int32)]


def _table(rows: Sequence[np.ndarray]) -> tuple[np.ndarray, list[int]]:
    """Ids one below the other, shorter rows filled up with their last, and how many they are."""
    sizes = [len(ids) for ids in rows]
    return np.stack([np.pad(ids, (0, max(sizes) - len(ids)), "edge") for ids in rows]), sizes


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class StreamStore:
    """The streams of K languages, one after the other: int32 [total], and where each begins and how
    many tokens it has, int32 [K]; tables: see `PieceTables`."""

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
        """Windows [S, window] of a language's stream, which runs on at its beginning."""
        place = (start_S[:, None] + jnp.arange(window)) % self.sizes[language]
        return self.tokens[self.firsts[language] + place]


def stream_batch(windows_SxW: jax.Array) -> Batch:
    """The batch of sequences [CLS] and a window, flat: S rows of W + 1 places.

    A place has its position in the sequence, whatever sentence it belongs to; all places are of
    one token type and attend to each other.
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

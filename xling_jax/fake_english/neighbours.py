"""The neighbour tables of an experiment's knn-replace rows (D&S §4)."""

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_collections
import numpy as np

from xling_jax.batches import setting
from xling_jax.batches.assembly import SPECIALS
from xling_jax.batches.sampling import own_parts
from xling_jax.fake_english.data import Data
from xling_jax.fake_english.replicas import Cell
from xling_jax.training.metrics import say
from xling_jax.vocabulary import neighbours, static_vectors

FREQUENT = 50  # occurrences, from which on a piece's vector is expected to be good


@dataclasses.dataclass(frozen=True)
class Neighbours:
    """A table [V, N] for rows that are trained in parallel (True) and for those that are not.

    Only tables that a row needs are there; the one without neighbours serves all other rows.
    shares: how good each table is, see `quality`.
    """

    tables: Mapping[bool, np.ndarray]
    none: np.ndarray
    shares: Mapping[bool, Mapping[str, float]]

    @classmethod
    def prepare(
        cls, config: ml_collections.ConfigDict, data: Data, cells: Sequence[Cell], cache: Path
    ) -> "Neighbours":
        """Trains vectors of each language's pieces on what its rows are trained on, and maps them.

        Raises:
          ValueError, FileNotFoundError: a field of vocabulary.neighbours cannot be used.
        """
        needed = {
            "no-parallel" not in cell.modifications
            for cell in cells
            if cell.modifications.needs_neighbours
        }
        try:
            tables = {
                is_parallel: _table(config, data, is_parallel, cache) for is_parallel in needed
            }
        except (ValueError, FileNotFoundError) as error:
            raise type(error)(f"vocabulary.neighbours: {error}") from error
        shares = {is_parallel: quality(data, table) for is_parallel, table in tables.items()}
        for found in shares.values():
            say(", ".join(f"{name} {value:.3f}" for name, value in found.items()))
        width = next((table.shape[1] for table in tables.values()), 1)
        return cls(tables, neighbours.nothing(data.vocabulary.size, width), shares)

    def of(self, modifications: setting.Modifications) -> np.ndarray:
        """The table of a row, int32 [V, N]."""
        if not modifications.needs_neighbours:
            return self.none
        return self.tables["no-parallel" not in modifications]

    def quality(self, modifications: setting.Modifications) -> Mapping[str, float]:
        """How good a row's table is; empty for a row that uses none."""
        if not modifications.needs_neighbours:
            return {}
        return self.shares["no-parallel" not in modifications]

    def described(self) -> dict[str, Any]:
        """The hash of every table, to tell whether a resumed run has the same."""
        return {
            "parallel" if is_parallel else "no-parallel": hashlib.sha256(
                table.tobytes()
            ).hexdigest()
            for is_parallel, table in sorted(self.tables.items())
        }


def _table(
    config: ml_collections.ConfigDict, data: Data, is_parallel: bool, cache: Path
) -> np.ndarray:
    section, languages = config.vocabulary.neighbours, data.vocabulary.languages
    number, seed, size = section.number, section.seed, data.vocabulary.size
    if not section.vectors:
        store = data.texts.train
        chosen = np.arange(len(store)) if is_parallel else own_parts(len(store), len(languages))
        texts = [
            [store.sentence(int(i)) for i in chosen if store.languages[i] == language]
            for language in range(len(languages))
        ]
        settings = static_vectors.SkipGram(**section.skip_gram)
        say(f"training vectors of {size:,} pieces, and mapping them without supervision")
        return neighbours.cached(cache, texts, settings, size, number, seed)
    if len(section.vectors) != len(languages):
        raise ValueError(
            f"vectors={tuple(section.vectors)}: give a .vec file for each of {languages}"
        )
    names = data.vocabulary.names()
    found = []
    for path, language in zip(section.vectors, languages, strict=True):
        ordinary = data.vocabulary.ordinary(language)
        found.append(static_vectors.read(path, {names[i]: i for i in ordinary}))
    return neighbours.find(found, size, number, seed)


def quality(data: Data, table: np.ndarray) -> dict[str, float]:
    """How many pieces have a neighbour, and how many of these the right one first.

    Fake-English tells which is right: the same piece in the other language. `_frequent` is over
    the pieces that occur at least `FREQUENT` times.
    """
    vocabulary = data.vocabulary
    ids = np.arange(vocabulary.size)
    is_ordinary = ids % vocabulary.shift >= SPECIALS
    has_one = table[:, 0] != neighbours.NO_PIECE
    is_right = table[:, 0] % vocabulary.shift == ids % vocabulary.shift
    counts = np.bincount(data.texts.train.tokens, minlength=vocabulary.size)
    occurs, frequent = is_ordinary & (counts > 0), is_ordinary & (counts >= FREQUENT)
    return {
        "neighbours_known": float(has_one[occurs].mean()),
        "neighbours_right": float(is_right[occurs & has_one].mean()),
        "neighbours_right_frequent": float(is_right[frequent & has_one].mean()),
    }

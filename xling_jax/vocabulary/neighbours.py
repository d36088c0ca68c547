"""The pieces of other languages nearest to each piece, found without a dictionary (D&S §4)."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from xling_jax.linalg import csls, vecmap
from xling_jax.vocabulary.static_vectors import Vectors

NO_PIECE = -1


def nothing(size: int, width: int = 1) -> np.ndarray:
    """A table [size, width] of pieces without neighbours."""
    return np.full((size, width), NO_PIECE, np.int32)


def find(vectors: Sequence[Vectors], size: int, number: int, seed: int) -> np.ndarray:
    """The nearest pieces of every other language, by unsupervised VecMap (Artetxe et al. 2018).

    Nearness is measured by CSLS; D&S do not say by what.

    Args:
      vectors: of each language's pieces, with ids of the joint vocabulary.
      size: of the joint vocabulary.
      number: neighbours in each other language.
      seed: of VecMap's random choices.

    Returns:
      int32 [size, number * (languages - 1)]: ids, language by language, the nearest first; -1
      everywhere for a piece without a vector.

    Raises:
      ValueError: a language has too few vectors.
    """
    languages = len(vectors)
    fewest, needed = min(map(len, vectors)), max(number, vecmap.FEWEST_WORDS)
    if fewest < needed:
        raise ValueError(
            f"number={number} needs vectors of {needed} pieces, and a language has {fewest}: lower "
            "it or skip_gram.min_count, or give more text or larger .vec files"
        )
    table = np.full((size, languages - 1, number), NO_PIECE, np.int32)
    for one in range(languages):
        for other in range(one + 1, languages):
            first, second = vecmap.map_unsupervised(
                jnp.asarray(vectors[one].vectors), jnp.asarray(vectors[other].vectors), seed
            )
            directions = [(one, other, first, second), (other, one, second, first)]
            for source, target, queries, keys in directions:
                _, nearest = csls.top_k(queries, keys, k=number)
                column = target - (target > source)
                table[vectors[source].words, column] = vectors[target].words[np.asarray(nearest)]
    return table.reshape(size, -1)

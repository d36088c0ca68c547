"""The pieces of other languages nearest to each piece, found without a dictionary (D&S §4)."""

import itertools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from xling_jax.linalg import csls, vecmap
from xling_jax.linalg.normalization import unit_center_unit
from xling_jax.vocabulary.static_vectors import Vectors

NO_PIECE = -1


def nothing(size: int, width: int = 1) -> np.ndarray:
    """A table [size, width] of pieces without neighbours."""
    return np.full((size, width), NO_PIECE, np.int32)


def find(
    vectors: Sequence[Vectors], size: int, number: int, seed: int, tries: int = 1
) -> np.ndarray:
    """The nearest pieces of every other language, by unsupervised VecMap (Artetxe et al. 2018).

    Every language is mapped into one space with the first, as in D&S A.3. A map between two others
    is learned from pairs of a piece and the one nearest to its nearest piece of the first language.
    Nearness is measured by CSLS; D&S do not say by what.

    Args:
      vectors: of each language's pieces, with ids of the joint vocabulary.
      size: of the joint vocabulary.
      number: neighbours in each other language.
      seed: of VecMap's random choices.
      tries: how often it is run, see `vecmap.map_unsupervised`.

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
    rows = np.zeros(size, np.int32)  # of the pieces among their language's vectors
    for own in vectors:
        rows[own.words] = np.arange(len(own))

    def compare(one: int, other: int, mapped: tuple[jax.Array, jax.Array]) -> None:
        for source, target, queries, keys in ((one, other, *mapped), (other, one, *mapped[::-1])):
            _, nearest = csls.top_k(queries, keys, k=number)
            column = target - (target > source)
            table[vectors[source].words, column] = vectors[target].words[np.asarray(nearest)]

    def by_way_of_first(source: int, target: int) -> np.ndarray:
        words = vectors[source].words
        found = table[table[words, 0, 0], target - 1, 0]
        return np.stack([rows[words], rows[found]], axis=1)

    each = [jnp.asarray(own.vectors) for own in vectors]
    for other in range(1, languages):
        mapped = vecmap.map_unsupervised(each[0], each[other], seed, tries=tries)
        compare(0, other, mapped)
    for one, other in itertools.combinations(range(1, languages), 2):
        forward, backward = by_way_of_first(one, other), by_way_of_first(other, one)
        pairs_Px2 = jnp.concatenate([forward, backward[:, ::-1]])
        sides = unit_center_unit(each[one]), unit_center_unit(each[other])
        compare(one, other, vecmap.reweighted_map(*sides, pairs_Px2))
    return table.reshape(size, -1)

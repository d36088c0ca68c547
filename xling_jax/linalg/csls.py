"""Nearest neighbours by CSLS, which treats points in sparse and in crowded regions alike."""

import functools

import jax

from xling_jax.linalg.points import points, require_count
from xling_jax.linalg.retrieval import (
    BLOCK,
    grouped,
    grouped_similarities,
    highest,
    map_blocks,
    nearest,
    penalized_ranks,
    unit_length,
)

NEIGHBOURS = 10  # Conneau et al. 2017 §2.3: results hardly depend on it


def top_k(
    queries: jax.Array,
    keys: jax.Array,
    k: int = 1,
    neighbours: int = NEIGHBOURS,
    sources: jax.Array | None = None,
    block: int = BLOCK,
) -> tuple[jax.Array, jax.Array]:
    """The k nearest keys of every query by CSLS (Conneau et al. 2017 §2.3).

    CSLS(q, y) = 2 cos(q, y) - r(q) - r(y), where r(q) is the mean cosine of q with its nearest
    keys, and r(y) that of y with its nearest sources: a key that is near everything gains nothing
    by that.

    Args:
      queries, keys: [n, d] and [m, d], of any length, mapped into the same space.
      neighbours: the number of nearest points in r; if there are fewer, r is over all.
      sources: [s, d], the points that the queries are drawn from; the queries by default.
      block: queries compared with all keys at a time: no n x m matrix is made.

    Returns:
      float32 [n, k], the CSLS, highest first, and int32 [n, k], the keys' row numbers. Among equal
        scores the lower number comes first (scores of equal keys may differ in their last bit). The
        cosine with a zero row is 0.

    Raises:
      ValueError: as in `retrieval.top_k`.
    """
    sources = queries if sources is None else sources
    query_NxD, key_MxD, source_SxD = points(
        one_space=True, queries=queries, keys=keys, sources=sources
    )
    require_count("k", k, len(key_MxD))
    require_count("neighbours", neighbours)
    require_count("block", block)
    return _top_k(query_NxD, key_MxD, source_SxD, k, neighbours, block)


@functools.partial(jax.jit, static_argnames=("k", "neighbours", "block"))
def _top_k(
    query_NxD, key_MxD, source_SxD, k: int, neighbours: int, block: int
) -> tuple[jax.Array, jax.Array]:
    query_NxD, key_MxD, source_SxD = map(unit_length, (query_NxD, key_MxD, source_SxD))
    density_M = nearest(key_MxD, source_SxD, neighbours, block)[0].mean(1)
    keys, densities = grouped(key_MxD), grouped(density_M)

    def best(query_BxD):
        cosines = grouped_similarities(query_BxD, keys)
        density_Bx1 = highest(cosines, min(neighbours, len(key_MxD)))[0].mean(1, keepdims=True)
        score = jax.tree.map(lambda cosine, own: 2 * cosine - own, cosines, densities)
        best_BxK, key_BxK = highest(score, k)
        return best_BxK - density_Bx1, key_BxK

    return map_blocks(best, query_NxD, block)


def counterpart_ranks(
    x: jax.Array, y: jax.Array, neighbours: int = NEIGHBOURS, block: int = BLOCK
) -> tuple[jax.Array, jax.Array]:
    """`retrieval.counterpart_ranks` by CSLS instead of the cosine."""
    x, y = points(one_space=True, counterparts=True, x=x, y=y)
    require_count("neighbours", neighbours)
    require_count("block", block)
    return _counterpart_ranks(x, y, neighbours, block)


@functools.partial(jax.jit, static_argnames=("neighbours", "block"))
def _counterpart_ranks(x_NxD, y_NxD, neighbours: int, block: int) -> tuple[jax.Array, jax.Array]:
    x_NxD, y_NxD = unit_length(x_NxD), unit_length(y_NxD)
    density_x_N = nearest(x_NxD, y_NxD, neighbours, block)[0].mean(1)
    density_y_N = nearest(y_NxD, x_NxD, neighbours, block)[0].mean(1)
    # Without the barrier, optimised programs for CPUs round the penalties of equal points
    # differently, so that they do not compare equal. After the division by 2 it would not help.
    density_x_N, density_y_N = jax.lax.optimization_barrier((density_x_N, density_y_N))
    return penalized_ranks(x_NxD, y_NxD, density_x_N / 2, density_y_N / 2, block)

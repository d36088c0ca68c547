"""Nearest neighbours by CSLS, which is fair to points in sparse and in crowded places."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from xling_jax.alignment.retrieval import BLOCK, similarities, unit_length

NEIGHBOURS = 10  # Conneau et al. 2017 §2.3: results hardly depend on it


def in_blocks(x: Any, block: int) -> Any:
    """Arrays [n, ...] cut to [blocks, block, ...], zeros behind the last row."""
    return jax.tree.map(
        lambda a: jnp.pad(a, ((0, -len(a) % block),) + ((0, 0),) * (a.ndim - 1)).reshape(
            -1, block, *a.shape[1:]
        ),
        x,
    )


def map_blocks(function: Callable, x: Any, block: int) -> Any:
    """`function` of `block` rows of x at a time, its results' rows put together again."""
    n = len(jax.tree.leaves(x)[0])
    results = jax.lax.map(function, in_blocks(x, min(block, n)))
    return jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:])[:n], results)


def nearest_cosines(
    x_NxD: jax.Array, y_MxD: jax.Array, k: int = NEIGHBOURS, block: int = BLOCK
) -> jax.Array:
    """Cosines of each x with its k nearest y, the nearest first.

    Args:
      x_NxD: n points of unit length.
      y_MxD: m points of unit length.
      k: how many; all of them if there are fewer.
      block: rows of x at a time.

    Returns:
      float32 [n, min(k, m)].
    """
    k = min(k, len(y_MxD))
    return map_blocks(lambda x_BxD: jax.lax.top_k(similarities(x_BxD, y_MxD), k)[0], x_NxD, block)


@functools.partial(jax.jit, static_argnames=("k", "neighbours", "block"))
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
    keys, and r(y) that of y with its nearest sources: a key that is near to everything gains
    nothing by it. Works on `block` queries at a time: no n x m matrix is made.

    Args:
      queries: [n, d], of any length.
      keys: [m, d], mapped into the same space.
      k: how many keys for each query.
      neighbours: over how many nearest points r is taken; over all if there are fewer.
      sources: [s, d], the points that the queries are drawn from, default the queries.
      block: queries at a time.

    Returns:
      float32 [n, k], the CSLS, highest first, and int32 [n, k], the keys' row numbers. Of equal
      ones the lower number comes first.

    Raises:
      ValueError: dimensions differ, or there are no k keys or no neighbours.
    """
    sources = queries if sources is None else sources
    if not queries.shape[1:] == keys.shape[1:] == sources.shape[1:]:
        raise ValueError(
            f"queries {queries.shape}, keys {keys.shape} and sources {sources.shape} must be "
            "matrices of points of one space, with as many columns"
        )
    if not 1 <= k <= len(keys):
        raise ValueError(f"k={k}: choose 1 to {len(keys)}, the number of keys")
    if neighbours < 1:
        raise ValueError(f"neighbours={neighbours}: choose at least 1, as {NEIGHBOURS}")
    query_NxD, key_MxD, source_SxD = unit_length(queries), unit_length(keys), unit_length(sources)
    density_M = nearest_cosines(key_MxD, source_SxD, neighbours, block).mean(1)

    def nearest(query_BxD):
        cosine_BxM = similarities(query_BxD, key_MxD)
        density_B = jax.lax.top_k(cosine_BxM, min(neighbours, len(keys)))[0].mean(1)
        return jax.lax.top_k(2 * cosine_BxM - density_B[:, None] - density_M, k)

    scores, indices = map_blocks(nearest, query_NxD, block)
    return scores, indices

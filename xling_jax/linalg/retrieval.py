"""Nearest neighbours by cosine."""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from xling_jax.linalg.points import magnitude, points, require_count

BLOCK = 1024  # queries compared with all keys at a time
FEWEST_GROUPED = 512  # with fewer keys, groups do not pay


def unit_length(x_NxD: jax.Array) -> jax.Array:
    """Rows divided by their Euclidean length; zero rows stay zero, so that their cosines are 0."""
    x_NxD = x_NxD.astype(jnp.float32)
    x_NxD = x_NxD / magnitude(x_NxD, axis=-1)
    length_Nx1 = jnp.linalg.norm(x_NxD, axis=-1, keepdims=True)
    return x_NxD / jnp.where(length_Nx1 == 0, 1.0, length_Nx1)


def similarities(x_NxD: jax.Array, y_MxD: jax.Array) -> jax.Array:
    """Inner products of all pairs of rows, [N, M], in full float32 on every platform."""
    return jnp.matmul(x_NxD, y_MxD.T, precision=jax.lax.Precision.HIGHEST)


def in_blocks(x: Any, block: int) -> Any:
    """Arrays [n, ...] cut into [blocks, block, ...], with zeros after the last row."""
    return jax.tree.map(
        lambda a: jnp.pad(a, ((0, -len(a) % block),) + ((0, 0),) * (a.ndim - 1)).reshape(
            -1, block, *a.shape[1:]
        ),
        x,
    )


def map_blocks(function: Callable, x: Any, block: int) -> Any:
    """Applies `function` to `block` rows of x at a time and joins the rows of its results."""
    n = len(jax.tree.leaves(x)[0])
    results = jax.lax.map(function, in_blocks(x, min(block, n)))
    return jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:])[:n], results)


class Grouped(NamedTuple):
    """The points of many keys, or a query's scores of them, in G groups of W keys.

    The k highest scores are all in the k groups with the highest maxima, so that the other groups
    need not be sorted. A group is a range of keys, and lies along columns, because XLA finds the
    maxima of columns faster than those of rows.

    Attributes:
      groups: [..., W, G, ...], key g · W + w at (w, g).
      rest: [..., R, ...], the keys after the last whole group; all keys if they are few.
    """

    groups: jax.Array
    rest: jax.Array


def grouped(keys_M: jax.Array) -> Grouped:
    """Rows [m, ...] in groups: about ten times as many groups as there are keys in each."""
    m, *others = keys_M.shape
    width, number = 1, 0
    if m >= FEWEST_GROUPED:
        width = 2 ** round(math.log2(m / 10) / 2)
        number = m // width
    whole = keys_M[: number * width].reshape(number, width, *others)
    return Grouped(whole.swapaxes(0, 1), keys_M[number * width :])


def ungrouped(keys: Grouped) -> jax.Array:
    """The rows that `grouped` was given, [m, ...]."""
    groups, rest = keys
    return jnp.concatenate([groups.swapaxes(0, 1).reshape(-1, *rest.shape[1:]), rest])


def highest(scores: Grouped, k: int) -> tuple[jax.Array, jax.Array]:
    """`jax.lax.top_k` of the scores of B queries, [B, m] in groups; for small k several times as
    fast on a CPU. No score may be NaN."""
    score_BxWxG, score_BxR = scores
    batch, width, number = score_BxWxG.shape
    kept = min(k, number)
    # Groups in increasing order, because among equal scores the lower key comes first.
    group_BxK = jnp.sort(jax.lax.top_k(score_BxWxG.max(1), kept)[1], axis=1)
    chosen_BxWxK = jnp.take_along_axis(score_BxWxG, group_BxK[:, None], axis=2)
    chosen_BxC = chosen_BxWxK.swapaxes(1, 2).reshape(batch, kept * width)
    key_BxKxW = group_BxK[:, :, None] * width + jnp.arange(width)
    key_BxR = jnp.broadcast_to(number * width + jnp.arange(score_BxR.shape[1]), score_BxR.shape)
    best_BxK, place_BxK = jax.lax.top_k(jnp.concatenate([chosen_BxC, score_BxR], axis=1), k)
    key_BxC = jnp.concatenate([key_BxKxW.reshape(chosen_BxC.shape), key_BxR], axis=1)
    return best_BxK, jnp.take_along_axis(key_BxC, place_BxK, axis=1).astype(jnp.int32)


def grouped_similarities(x_BxD: jax.Array, keys: Grouped) -> Grouped:
    """`similarities` with keys in groups."""
    groups_WxGxD, rest_RxD = keys
    width, number, size = groups_WxGxD.shape
    flat_BxM = similarities(x_BxD, groups_WxGxD.reshape(width * number, size))
    return Grouped(flat_BxM.reshape(len(x_BxD), width, number), similarities(x_BxD, rest_RxD))


def nearest(
    x_NxD: jax.Array, y_MxD: jax.Array, k: int, block: int = BLOCK
) -> tuple[jax.Array, jax.Array]:
    """The k rows of y that are most similar to each row of x, all of unit length. Returns the
    cosines, highest first, float32 [n, min(k, m)], and the row numbers in y, int32."""
    k, keys = min(k, len(y_MxD)), grouped(y_MxD)
    return map_blocks(lambda x_BxD: highest(grouped_similarities(x_BxD, keys), k), x_NxD, block)


def top_k(
    queries: jax.Array, keys: jax.Array, k: int = 1, block: int = BLOCK
) -> tuple[jax.Array, jax.Array]:
    """The k nearest keys of every query by cosine.

    Args:
      queries, keys: [n, d] and [m, d], of any length.
      block: queries compared with all keys at a time: no n x m matrix is made.

    Returns:
      float32 [n, k], the cosines, highest first, and int32 [n, k], the keys' row numbers. Among
        equal cosines the lower number comes first (cosines of equal keys may differ in their last
        bit). The cosine with a zero row is 0.

    Raises:
      ValueError: the two are not matrices of finite points of one space, or there are fewer than k
        keys.
    """
    queries, keys = points(one_space=True, queries=queries, keys=keys)
    require_count("k", k, len(keys))
    require_count("block", block)
    return _top_k(queries, keys, k, block)


@functools.partial(jax.jit, static_argnames=("k", "block"))
def _top_k(query_NxD, key_MxD, k: int, block: int) -> tuple[jax.Array, jax.Array]:
    return nearest(unit_length(query_NxD), unit_length(key_MxD), k, block)


def counterpart_ranks(
    x: jax.Array, y: jax.Array, block: int = BLOCK
) -> tuple[jax.Array, jax.Array]:
    """The ranks of counterparts: how many points of the other side are nearer, in both directions.

    Row i of x and row i of y are each other's counterparts. A counterpart is among the k nearest if
    its rank is below k. Among equally near points the one with the lower index counts as nearer, as
    in an argmax. Works on `block` rows of x at a time: no n x n matrix is made.

    Returns:
      int32 [n] twice: the rank of y[i] seen from x[i], and that of x[i] seen from y[i]. Inside a
        compiled program, where values are not checked, both are n if x[i] or y[i] has a NaN.

    Raises:
      ValueError: the two are not matrices of finite points, or differ in shape.
    """
    x, y = points(one_space=True, counterparts=True, x=x, y=y)
    require_count("block", block)
    return _counterpart_ranks(x, y, block)


@functools.partial(jax.jit, static_argnames="block")
def _counterpart_ranks(x_NxD, y_NxD, block: int) -> tuple[jax.Array, jax.Array]:
    no_penalty_N = jnp.zeros(len(x_NxD))
    return penalized_ranks(
        unit_length(x_NxD), unit_length(y_NxD), no_penalty_N, no_penalty_N, block
    )


def penalized_ranks(
    x_NxD: jax.Array,
    y_NxD: jax.Array,
    penalty_x_N: jax.Array,
    penalty_y_N: jax.Array,
    block: int = BLOCK,
) -> tuple[jax.Array, jax.Array]:
    """`counterpart_ranks` for points of unit length. Each point has a penalty, which is subtracted
    from its cosines when it is one of those searched."""
    n = len(x_NxD)
    own = jnp.arange(n)
    padded, penalty_x_BxN = in_blocks((x_NxD, penalty_x_N), block)
    starts = jnp.arange(padded.shape[0]) * block

    def diagonal(carry, item):
        x_BxD, start = item
        similarity = similarities(x_BxD, y_NxD)
        return carry, jnp.take_along_axis(
            similarity, jnp.minimum(start + jnp.arange(block), n - 1)[:, None], axis=1
        )[:, 0]

    gold_N = jax.lax.scan(diagonal, 0, (padded, starts))[1].reshape(-1)[:n]
    forward_gold_N, backward_gold_N = gold_N - penalty_y_N, gold_N - penalty_x_N

    def compare(backward_N, item):
        x_BxD, penalty_B, start = item
        row = start + jnp.arange(block)
        similarity = jnp.where((row < n)[:, None], similarities(x_BxD, y_NxD), -jnp.inf)
        gold_B = forward_gold_N[jnp.minimum(row, n - 1)]
        is_own = own[None, :] == row[:, None]  # products of two shapes may round differently
        seen = similarity - penalty_y_N
        tied = seen == gold_B[:, None]
        nearer = (seen > gold_B[:, None]) | (tied & (own[None, :] < row[:, None]))
        forward_B = (nearer & ~is_own).sum(1, dtype=jnp.int32)
        seen = similarity - penalty_B[:, None]
        tied = seen == backward_gold_N[None, :]
        nearer = (seen > backward_gold_N[None, :]) | (tied & (row[:, None] < own[None, :]))
        return backward_N + (nearer & ~is_own).sum(0, dtype=jnp.int32), forward_B

    backward_N, forward = jax.lax.scan(
        compare, jnp.zeros(n, jnp.int32), (padded, penalty_x_BxN, starts)
    )
    is_number = jnp.isfinite(gold_N)
    return (
        jnp.where(is_number, forward.reshape(-1)[:n], n),
        jnp.where(is_number, backward_N, n),
    )

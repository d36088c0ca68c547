"""Nearest neighbours by cosine."""

import functools

import jax
import jax.numpy as jnp

BLOCK = 1024  # queries compared with all keys at a time
SMALLEST_NORM = 1e-12  # below it a vector counts as zero and is similar to nothing


def unit_length(x_NxD: jax.Array) -> jax.Array:
    """Rows divided by their Euclidean length; zero rows stay zero."""
    x_NxD = x_NxD.astype(jnp.float32)
    return x_NxD / jnp.maximum(jnp.linalg.norm(x_NxD, axis=-1, keepdims=True), SMALLEST_NORM)


def similarities(x_NxD: jax.Array, y_MxD: jax.Array) -> jax.Array:
    """Products of all pairs of rows [N, M], in full float32 on every platform."""
    return jnp.matmul(x_NxD, y_MxD.T, precision=jax.lax.Precision.HIGHEST)


@functools.partial(jax.jit, static_argnames="block")
def counterpart_ranks(x_NxD: jax.Array, y_NxD: jax.Array, block: int = BLOCK):
    """How many points of the other side are nearer than the counterpart, in both directions.

    Row i of x and row i of y are each other's counterparts. With rank r the counterpart is among
    the k nearest if r < k. Of equally near points the one with the lower index counts as nearer,
    as an argmax has it. Works on `block` rows of x at a time: no n x n matrix is made.

    Args:
      x_NxD: n points.
      y_NxD: their n counterparts.
      block: rows of x at a time.

    Returns:
      int32 [n] twice: the rank of y[i] seen from x[i], and of x[i] seen from y[i]. A point with
      a NaN ranks behind all others.
    """
    n = x_NxD.shape[0]
    x_NxD, y_NxD = unit_length(x_NxD), unit_length(y_NxD)
    own = jnp.arange(n)
    padded = jnp.pad(x_NxD, ((0, -n % block), (0, 0))).reshape(-1, block, x_NxD.shape[1])
    starts = jnp.arange(padded.shape[0]) * block

    def diagonal(carry, item):
        x_BxD, start = item
        similarity = similarities(x_BxD, y_NxD)
        return carry, jnp.take_along_axis(
            similarity, jnp.minimum(start + jnp.arange(block), n - 1)[:, None], axis=1
        )[:, 0]

    gold_N = jax.lax.scan(diagonal, 0, (padded, starts))[1].reshape(-1)[:n]

    def compare(backward_N, item):
        x_BxD, start = item
        row = start + jnp.arange(block)
        similarity = jnp.where((row < n)[:, None], similarities(x_BxD, y_NxD), -jnp.inf)
        gold_B = gold_N[jnp.minimum(row, n - 1)]
        is_own = own[None, :] == row[:, None]  # products of two shapes may round differently
        tied = similarity == gold_B[:, None]
        nearer = (similarity > gold_B[:, None]) | (tied & (own[None, :] < row[:, None]))
        forward_B = (nearer & ~is_own).sum(1, dtype=jnp.int32)
        tied = similarity == gold_N[None, :]
        nearer = (similarity > gold_N[None, :]) | (tied & (row[:, None] < own[None, :]))
        return backward_N + (nearer & ~is_own).sum(0, dtype=jnp.int32), forward_B

    backward_N, forward = jax.lax.scan(compare, jnp.zeros(n, jnp.int32), (padded, starts))
    is_number = jnp.isfinite(gold_N)
    return (
        jnp.where(is_number, forward.reshape(-1)[:n], n),
        jnp.where(is_number, backward_N, n),
    )

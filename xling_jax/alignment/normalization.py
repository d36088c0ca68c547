"""Points brought to unit length and to mean zero before they are mapped."""

import functools

import jax
import jax.numpy as jnp

from xling_jax.alignment.retrieval import unit_length


def center(x_NxD: jax.Array) -> jax.Array:
    """Rows less their mean, so that every column has mean zero."""
    return x_NxD - x_NxD.mean(axis=0)


@jax.jit
def unit_center_unit(x_NxD: jax.Array) -> jax.Array:
    """Unit length, then centred, then unit length (Artetxe et al. 2018, VecMap, §3.1).

    Args:
      x_NxD: n points.

    Returns:
      float32 [n, d]: points of unit length whose mean is near zero. Zero points stay finite.
    """
    return unit_length(center(unit_length(x_NxD)))


@functools.partial(jax.jit, static_argnames="rounds")
def iterative_normalize(x_NxD: jax.Array, rounds: int = 5) -> jax.Array:
    """Unit length, then centred, repeated until both hold (Zhang et al. 2019 §3).

    Args:
      x_NxD: n points.
      rounds: how often; with the paper's 5 the lengths differ from 1 by little.

    Returns:
      float32 [n, d]: points with mean zero and length near 1. Zero points stay finite.
    """
    x_NxD = x_NxD.astype(jnp.float32)
    for _ in range(rounds):
        x_NxD = center(unit_length(x_NxD))
    return x_NxD

"""Points brought to unit length and to mean zero before they are mapped."""

import functools

import jax
import jax.numpy as jnp

from xling_jax.linalg.points import points, require_count
from xling_jax.linalg.retrieval import unit_length


def center(x_NxD: jax.Array) -> jax.Array:
    """Rows less their mean, so that every column has mean zero; a column of one value is zero."""
    is_constant = (x_NxD == x_NxD[0]).all(axis=0)  # whose mean is rounded, and so is what is left
    return jnp.where(is_constant, 0.0, x_NxD - x_NxD.mean(axis=0))


def unit_center_unit(x: jax.Array) -> jax.Array:
    """Unit length, then centred, then unit length (Artetxe et al. 2018, VecMap, §3.1).

    The mean of the points, [n, d], becomes nearly zero. A point at the mean of all, which has no
    direction, is zero.
    """
    return _unit_center_unit(*points(x=x))


@jax.jit
def _unit_center_unit(x_NxD: jax.Array) -> jax.Array:
    return unit_length(center(unit_length(x_NxD)))


def iterative_normalize(x: jax.Array, rounds: int = 5) -> jax.Array:
    """Unit length, then centred, repeated until both hold (Zhang et al. 2019 §3).

    With the paper's 5 rounds the points, [n, d], have mean zero, and their lengths differ from 1 by
    little. A zero point stays near zero; points that are all equal become zero.
    """
    require_count("rounds", rounds)
    return _iterative_normalize(*points(x=x), rounds)


@functools.partial(jax.jit, static_argnames="rounds")
def _iterative_normalize(x_NxD: jax.Array, rounds: int) -> jax.Array:
    return jax.lax.fori_loop(0, rounds, lambda _, x_NxD: center(unit_length(x_NxD)), x_NxD)

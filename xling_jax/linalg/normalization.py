"""Normalising points to unit length and mean zero before they are mapped."""

import functools

import jax
import jax.numpy as jnp

from xling_jax.linalg.points import points, require_count
from xling_jax.linalg.retrieval import unit_length


def center(x_NxD: jax.Array) -> jax.Array:
    """Subtracts the mean row, so that every column has mean zero; constant columns become zero."""
    is_constant = (x_NxD == x_NxD[0]).all(axis=0)  # exact zeros, in spite of rounding in the mean
    return jnp.where(is_constant, 0.0, x_NxD - x_NxD.mean(axis=0))


def unit_center_unit(x: jax.Array) -> jax.Array:
    """Points [n, d] at unit length, centred, and at unit length again (Artetxe et al. 2018, VecMap,
    §3.1).

    Their mean is nearly zero. A point that was at the mean, and has no direction, is zero.
    """
    return _unit_center_unit(*points(x=x))


@jax.jit
def _unit_center_unit(x_NxD: jax.Array) -> jax.Array:
    return unit_length(center(unit_length(x_NxD)))


def iterative_normalize(x: jax.Array, rounds: int = 5) -> jax.Array:
    """Points [n, d] brought to unit length and then centred, in several rounds (Zhang et al. 2019
    §3).

    After the paper's 5 rounds their mean is zero and their lengths are close to 1, also that of a
    zero point, which the first centring moves. Points that are all equal become zero.
    """
    require_count("rounds", rounds)
    return _iterative_normalize(*points(x=x), rounds)


@functools.partial(jax.jit, static_argnames="rounds")
def _iterative_normalize(x_NxD: jax.Array, rounds: int) -> jax.Array:
    return jax.lax.fori_loop(0, rounds, lambda _, x_NxD: center(unit_length(x_NxD)), x_NxD)

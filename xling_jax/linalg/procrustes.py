"""The rotation between two sets of points, the normalisation before it, and a map by both."""

import dataclasses
import functools

import jax
import jax.numpy as jnp

from xling_jax.linalg.points import magnitude, points, require_count
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
    for _ in range(rounds):
        x_NxD = center(unit_length(x_NxD))
    return x_NxD


def orthogonal_map(source: jax.Array, target: jax.Array) -> jax.Array:
    """The orthogonal W that minimises ‖source W − target‖_F (Schönemann 1966), for points [n, d]
    and their counterparts, row by row.

    W is a rotation, [d, d], with a reflection where that is nearer. Where the points span fewer
    than d dimensions it is one of many that are equally good.
    """
    return _orthogonal_map(*points(one_space=True, counterparts=True, source=source, target=target))


@jax.jit
def _orthogonal_map(source_NxD: jax.Array, target_NxD: jax.Array) -> jax.Array:
    # The best W is the same for points of any size.
    source_NxD, target_NxD = source_NxD / magnitude(source_NxD), target_NxD / magnitude(target_NxD)
    covariance_DxD = jnp.matmul(source_NxD.T, target_NxD, precision=jax.lax.Precision.HIGHEST)
    left_DxD, _, right_DxD = jnp.linalg.svd(covariance_DxD)
    return jnp.matmul(left_DxD, right_DxD, precision=jax.lax.Precision.HIGHEST)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class AffineMap:
    """x → (x - start) W + end. start, end: float32 [d], the mean of what is mapped, and of what it
    is mapped to. rotation: float32 [d, d]."""

    start: jax.Array
    rotation: jax.Array
    end: jax.Array

    @classmethod
    def identity(cls, width: int) -> "AffineMap":
        require_count("width", width)
        return cls(jnp.zeros(width), jnp.eye(width), jnp.zeros(width))

    @classmethod
    def learn(cls, source: jax.Array, target: jax.Array) -> "AffineMap":
        """The map of points to their counterparts, [n, d] both (W&C §5.1.2).

        W is orthogonal and learned after iterative normalisation, as W&C learn all of theirs
        (§5.1). What normalisation does to a state cannot be undone in the other model's space, so a
        state is only moved by the means: states of layer norms are about equally long.
        """
        source, target = points(one_space=True, counterparts=True, source=source, target=target)
        rotation = orthogonal_map(iterative_normalize(source), iterative_normalize(target))
        return cls(source.mean(axis=0), rotation, target.mean(axis=0))

    def apply(self, x: jax.Array) -> jax.Array:
        """The images of points [..., d], in their dtype; ValueError for another width than d."""
        if x.shape[-1:] != self.start.shape:
            raise ValueError(f"x {x.shape}: the map takes points of {len(self.start)} dimensions")
        moved = x.astype(jnp.float32) - self.start
        found = jnp.matmul(moved, self.rotation, precision=jax.lax.Precision.HIGHEST) + self.end
        return found.astype(x.dtype)

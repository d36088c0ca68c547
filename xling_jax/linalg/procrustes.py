"""The rotation between two sets of points, and a map by it and their means."""

import dataclasses

import jax
import jax.numpy as jnp

from xling_jax.linalg.normalization import iterative_normalize
from xling_jax.linalg.points import magnitude, points, require_count


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

"""The rotation between two sets of points, and the map made of it and their means."""

import dataclasses

import jax
import jax.numpy as jnp

from xling_jax.linalg.decomposition import svd
from xling_jax.linalg.normalization import iterative_normalize
from xling_jax.linalg.points import magnitude, points, require_count


def orthogonal_map(source: jax.Array, target: jax.Array) -> jax.Array:
    """The orthogonal W that minimises ‖source W − target‖_F (Schönemann 1966), for points [n, d]
    and their counterparts, row by row.

    W, [d, d], is a rotation, or includes a reflection where that fits better. If the points span
    fewer than d dimensions, it is one of many that fit equally well.
    """
    return _orthogonal_map(*points(one_space=True, counterparts=True, source=source, target=target))


@jax.jit
def _orthogonal_map(source_NxD: jax.Array, target_NxD: jax.Array) -> jax.Array:
    # Scaling the points does not change the best W.
    source_NxD, target_NxD = source_NxD / magnitude(source_NxD), target_NxD / magnitude(target_NxD)
    covariance_DxD = jnp.matmul(source_NxD.T, target_NxD, precision=jax.lax.Precision.HIGHEST)
    left_DxD, _, right_DxD = svd(covariance_DxD)
    return jnp.matmul(left_DxD, right_DxD, precision=jax.lax.Precision.HIGHEST)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class AffineMap:
    """x → (x - start) W + end.

    Attributes:
      start, end: float32 [d], the means of the points that are mapped and of their counterparts.
      rotation: W, float32 [d, d].
    """

    start: jax.Array
    rotation: jax.Array
    end: jax.Array

    @classmethod
    def identity(cls, width: int) -> "AffineMap":
        require_count("width", width)
        return cls(jnp.zeros(width), jnp.eye(width), jnp.zeros(width))

    @classmethod
    def learn(cls, source: jax.Array, target: jax.Array) -> "AffineMap":
        """The map from points to their counterparts, both [n, d] (W&C §5.1.2).

        W is orthogonal and learned after iterative normalisation, like all of W&C's (§5.1). What
        normalisation does to a state cannot be undone in the other model's space, so `apply` does
        not scale states: after a layer norm all are about equally long anyway.
        """
        source, target = points(one_space=True, counterparts=True, source=source, target=target)
        rotation = orthogonal_map(iterative_normalize(source), iterative_normalize(target))
        return cls(source.mean(axis=0), rotation, target.mean(axis=0))

    def apply(self, x: jax.Array) -> jax.Array:
        """The images of points [..., d], in their dtype; ValueError for a width other than d."""
        if x.shape[-1:] != self.start.shape:
            raise ValueError(f"x {x.shape}: the map takes points of {len(self.start)} dimensions")
        moved = x.astype(jnp.float32) - self.start
        found = jnp.matmul(moved, self.rotation, precision=jax.lax.Precision.HIGHEST) + self.end
        return found.astype(x.dtype)

"""A map between the states of two models that keeps where each side's states lie."""

import dataclasses

import jax
import jax.numpy as jnp

from xling_jax.linalg.normalization import iterative_normalize
from xling_jax.linalg.points import points, require_count
from xling_jax.linalg.procrustes import orthogonal_map


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

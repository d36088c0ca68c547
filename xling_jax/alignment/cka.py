"""Similarity of two representations of the same items (Kornblith et al. 2019; W&C §5.4)."""

import dataclasses
import math

import jax
import jax.numpy as jnp

BLOCK = 4096  # rows at a time


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Moments:
    """What linear CKA needs of n pairs of points: means and centred products.

    count: float32, n. mean_x: [d], mean_y: [e]. xx: [d, d], yy: [e, e], xy: [d, e], sums of
    products of deviations from the means. Leading axes, such as layers, are allowed by `vmap`.
    """

    count: jax.Array
    mean_x: jax.Array
    mean_y: jax.Array
    xx: jax.Array
    yy: jax.Array
    xy: jax.Array

    @classmethod
    def nothing(cls, d: int, e: int) -> "Moments":
        """Of no pair, where the points have d and e dimensions."""
        zeros = jnp.zeros
        return cls(zeros(()), zeros(d), zeros(e), zeros((d, d)), zeros((e, e)), zeros((d, e)))

    def add(self, other: "Moments") -> "Moments":
        """Of the pairs of both (Chan et al. 1979), as exact as float32 allows for any number."""
        count = self.count + other.count
        share = other.count / jnp.maximum(count, 1.0)
        weight = self.count * share
        by_x, by_y = other.mean_x - self.mean_x, other.mean_y - self.mean_y
        return Moments(
            count,
            self.mean_x + share * by_x,
            self.mean_y + share * by_y,
            self.xx + other.xx + weight * jnp.outer(by_x, by_x),
            self.yy + other.yy + weight * jnp.outer(by_y, by_y),
            self.xy + other.xy + weight * jnp.outer(by_x, by_y),
        )

    def cka(self) -> jax.Array:
        """Linear CKA, from 0 to 1; 0 if one of the sides does not vary.

        ‖XᵀY‖² / (‖XᵀX‖ ‖YᵀY‖) in Frobenius norms, with centred columns.
        """
        # Scaled first: products of large numbers overflow when they are squared.
        scale_x = jnp.maximum(jnp.abs(self.xx).max(), 1e-30)
        scale_y = jnp.maximum(jnp.abs(self.yy).max(), 1e-30)
        between = self.xy / jnp.sqrt(scale_x) / jnp.sqrt(scale_y)
        within = jnp.linalg.norm(self.xx / scale_x) * jnp.linalg.norm(self.yy / scale_y)
        return jnp.where(within == 0, 0.0, jnp.sum(between**2) / jnp.maximum(within, 1e-30))


def moments(x_NxD: jax.Array, y_NxE: jax.Array, weights_N: jax.Array | None = None) -> Moments:
    """The moments of pairs of rows that fit in memory; a weight of 0 leaves a pair out, 1 counts.

    Raises:
      ValueError: different numbers of rows.
    """
    if x_NxD.ndim != 2 or y_NxE.ndim != 2 or len(x_NxD) != len(y_NxE):
        raise ValueError(
            f"CKA compares the same items: got arrays of {x_NxD.shape} and {y_NxE.shape}"
        )
    weights = jnp.ones(len(x_NxD)) if weights_N is None else weights_N.astype(jnp.float32)
    weights = weights[:, None]
    count = weights.sum()
    sides, means = [], []
    for points in (x_NxD, y_NxE):
        points = jnp.where(weights > 0, points.astype(jnp.float32), 0.0)
        means.append((points * weights).sum(axis=0) / jnp.maximum(count, 1.0))
        sides.append((points - means[-1]) * weights)

    def product(a, b):
        return jnp.matmul(a.T, b, precision=jax.lax.Precision.HIGHEST)

    (x, y), (mean_x, mean_y) = sides, means
    return Moments(count, mean_x, mean_y, product(x, x), product(y, y), product(x, y))


@jax.jit
def linear_cka(x_NxD: jax.Array, y_NxE: jax.Array) -> jax.Array:
    """Linear CKA of two representations of the same n items, by blocks of rows.

    Invariant to orthogonal maps, shifts and isotropic scaling of either side.

    Args:
      x_NxD, y_NxE: a row for each item; dimensions may differ.

    Returns:
      float32, from 0 to 1: 1 for representations equal but for such a map. 0 where one side does
      not vary, NaN where a value is NaN.

    Raises:
      ValueError: different numbers of rows.
    """
    if x_NxD.ndim != 2 or y_NxE.ndim != 2 or len(x_NxD) != len(y_NxE):
        raise ValueError(
            f"CKA compares the same items: got arrays of {x_NxD.shape} and {y_NxE.shape}"
        )
    n = len(x_NxD)
    block = min(BLOCK, max(n, 1))
    blocks = math.ceil(n / block)
    padded = [jnp.pad(z, ((0, blocks * block - n), (0, 0))) for z in (x_NxD, y_NxE)]
    shaped = [z.reshape(blocks, block, -1) for z in padded]

    def one(i, total: Moments) -> Moments:
        weights = (i * block + jnp.arange(block) < n).astype(jnp.float32)
        return total.add(moments(shaped[0][i], shaped[1][i], weights))

    nothing = Moments.nothing(x_NxD.shape[1], y_NxE.shape[1])
    return jax.lax.fori_loop(0, blocks, one, nothing).cka()

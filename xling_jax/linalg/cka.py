"""Similarity of two representations of the same items (Kornblith et al. 2019; W&C §5.2)."""

import dataclasses
import math

import jax
import jax.numpy as jnp

from xling_jax.linalg.normalization import center
from xling_jax.linalg.points import magnitude, points

BLOCK = 4096  # rows at a time
SMALLEST = 2.0**-126  # the smallest normal float32
ROUNDING = 2.0**-23  # of float32, relative


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Moments:
    """What linear CKA needs of n pairs of points: means and centred products.

    Attributes:
      count: float32, n.
      scale_x, scale_y: powers of two that deviations are divided by, so that products of points of
        any size neither overflow nor vanish.
      mean_x, mean_y: [d] and [e].
      xx, yy, xy: [d, d], [e, e] and [d, e], sums of products of deviations from the means, those of
        x divided by scale_x and those of y by scale_y.

    With leading axes, such as layers, use `vmap`.
    """

    count: jax.Array
    scale_x: jax.Array
    scale_y: jax.Array
    mean_x: jax.Array
    mean_y: jax.Array
    xx: jax.Array
    yy: jax.Array
    xy: jax.Array

    @classmethod
    def nothing(cls, d: int, e: int) -> "Moments":
        """The moments of no pairs, for points of d and e dimensions."""
        scale, shapes = jnp.float32(SMALLEST), ((d,), (e,), (d, d), (e, e), (d, e))
        return cls(jnp.float32(0), scale, scale, *(jnp.zeros(x, jnp.float32) for x in shapes))

    def add(self, other: "Moments") -> "Moments":
        """The moments of both sets of pairs together (Chan et al. 1979); adding many keeps
        float32's precision."""
        count = self.count + other.count
        share = other.count / jnp.maximum(count, 1.0)
        weight = self.count * share
        scale_x = jnp.maximum(self.scale_x, other.scale_x)
        scale_y = jnp.maximum(self.scale_y, other.scale_y)
        by_x = other.mean_x / scale_x - self.mean_x / scale_x
        by_y = other.mean_y / scale_y - self.mean_y / scale_y

        def total(name: str, between: jax.Array) -> jax.Array:
            found = weight * between
            for own in (self, other):
                ratios = {"x": own.scale_x / scale_x, "y": own.scale_y / scale_y}
                found += getattr(own, name) * ratios[name[0]] * ratios[name[1]]
            return found

        return Moments(
            count,
            scale_x,
            scale_y,
            self.mean_x + share * scale_x * by_x,
            self.mean_y + share * scale_y * by_y,
            total("xx", jnp.outer(by_x, by_x)),
            total("yy", jnp.outer(by_y, by_y)),
            total("xy", jnp.outer(by_x, by_y)),
        )

    def cka(self) -> jax.Array:
        """Linear CKA, from 0 to 1; 0 if one of the sides does not vary.

        It is ‖XᵀY‖² / (‖XᵀX‖ ‖YᵀY‖) in Frobenius norms, with centred columns. A side does not vary
        if its rows differ by float32's rounding alone: if the root mean square of their distances
        from the mean is at most 2^-23 of the mean's length.
        """

        def is_constant(products, mean, scale):
            limit = self.count * (ROUNDING * mean / scale) ** 2
            return jnp.trace(products) <= limit.sum()

        # Scaled again, by the largest entries: the squares of small products would vanish.
        unit_x, unit_y = (jnp.maximum(jnp.abs(a).max(), SMALLEST) for a in (self.xx, self.yy))
        between = self.xy / jnp.sqrt(unit_x) / jnp.sqrt(unit_y)
        within = jnp.linalg.norm(self.xx / unit_x) * jnp.linalg.norm(self.yy / unit_y)
        is_none = is_constant(self.xx, self.mean_x, self.scale_x)
        is_none |= is_constant(self.yy, self.mean_y, self.scale_y)
        value = jnp.sum(between**2) / jnp.where(is_none, 1.0, within)
        return jnp.where(is_none, 0.0, jnp.minimum(value, 1.0))  # rounding may exceed 1


def moments(x: jax.Array, y: jax.Array) -> Moments:
    """The moments of the pairs of rows of x [n, d] and y [n, e], in one block."""
    x, y = points(counterparts=True, x=x, y=y)
    return _moments(x, y, jnp.ones(len(x), jnp.float32))


@jax.jit
def _moments(x_NxD: jax.Array, y_NxE: jax.Array, counts_N: jax.Array) -> Moments:
    """`moments` without checks; counts is 1 for the first rows and 0 for the padding after them."""
    counts = counts_N[:, None]
    count = counts.sum()
    sides, scales, means = [], [], []
    for points_NxD in (x_NxD, y_NxE):
        scale = magnitude(points_NxD)
        scaled = points_NxD / scale
        # Relative to the first row, so that rows that are all equal deviate by exactly 0.
        start = scaled[0]
        apart = (scaled - start) * counts
        mean = apart.sum(axis=0) / jnp.maximum(count, 1.0)
        sides.append((apart - mean) * counts)
        scales.append(scale)
        means.append((start + mean) * scale)

    def product(a, b):
        return jnp.matmul(a.T, b, precision=jax.lax.Precision.HIGHEST)

    (x, y), (scale_x, scale_y), (mean_x, mean_y) = sides, scales, means
    return Moments(
        count, scale_x, scale_y, mean_x, mean_y, product(x, x), product(y, y), product(x, y)
    )


def linear_cka(x: jax.Array, y: jax.Array) -> jax.Array:
    """Linear CKA of two representations of the same n items, [n, d] and [n, e], by blocks of rows.

    It does not change with orthogonal maps, shifts and isotropic scaling of either side. It goes
    from 0 to 1: 1 for representations that differ only by such a map, 0 if one side does not vary
    (see `Moments.cka`). Inside a compiled program, where values are not checked, a NaN gives NaN.
    """
    return _linear_cka(*points(counterparts=True, x=x, y=y))


@jax.jit
def _linear_cka(x_NxD: jax.Array, y_NxE: jax.Array) -> jax.Array:
    n = len(x_NxD)
    block = min(BLOCK, n)
    blocks = math.ceil(n / block)
    padded = [jnp.pad(z, ((0, blocks * block - n), (0, 0))) for z in (x_NxD, y_NxE)]
    shaped = [z.reshape(blocks, block, -1) for z in padded]

    def one(i, total: Moments) -> Moments:
        counts = (i * block + jnp.arange(block) < n).astype(jnp.float32)
        return total.add(_moments(shaped[0][i], shaped[1][i], counts))

    nothing = Moments.nothing(x_NxD.shape[1], y_NxE.shape[1])
    return jax.lax.fori_loop(0, blocks, one, nothing).cka()


def resampled_cka(x: jax.Array, y: jax.Array, counts: jax.Array) -> jax.Array:
    """Linear CKA of samples of the items, float32 [S]; 0 if all items of a side are equal.

    Args:
      x, y: [n, d] and [n, e]; n x n matrices are made of them.
      counts: [S, n], how often each item is in each of S samples; a sample must have n items.
    """
    return _resampled_cka(*points(counterparts=True, x=x, y=y, counts=counts.T))


@jax.jit
def _resampled_cka(x_NxD: jax.Array, y_NxE: jax.Array, counts_NxS: jax.Array) -> jax.Array:
    n = len(x_NxD)

    def product(a, b):
        return jnp.matmul(a, b, precision=jax.lax.Precision.HIGHEST)

    def gram(x):
        x = center(x)  # by the mean of all items, so that the samples' own means are small
        x = x / magnitude(x)
        x_NxN = product(x, x.T)
        return x_NxN / magnitude(x_NxN)

    def alignment(x_NxN, y_NxN):
        """The inner product of both matrices in each sample, centred by the sample's means, [S]."""
        of_x_NxS, of_y_NxS = product(x_NxN, counts_NxS), product(y_NxN, counts_NxS)
        by_item_NxS = product(x_NxN * y_NxN, counts_NxS) - 2 * of_x_NxS * of_y_NxS / n
        means_S = (counts_NxS * of_x_NxS).sum(0) * (counts_NxS * of_y_NxS).sum(0) / n**2
        return (counts_NxS * by_item_NxS).sum(0) + means_S

    x_NxN, y_NxN = gram(x_NxD), gram(y_NxE)
    within = alignment(x_NxN, x_NxN) * alignment(y_NxN, y_NxN)
    is_none = within <= 0
    value = alignment(x_NxN, y_NxN) / jnp.sqrt(jnp.where(is_none, 1.0, within))
    return jnp.where(is_none, 0.0, jnp.clip(value, 0.0, 1.0))

"""The rotation between two sets of points."""

import jax
import jax.numpy as jnp

from xling_jax.linalg.points import magnitude, points


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

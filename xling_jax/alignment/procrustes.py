"""The rotation between two sets of points."""

import jax
import jax.numpy as jnp


@jax.jit
def orthogonal_map(source_NxD: jax.Array, target_NxD: jax.Array) -> jax.Array:
    """The orthogonal W that minimises ‖source W − target‖_F (Schönemann 1966).

    Args:
      source_NxD: n points.
      target_NxD: their n counterparts, row by row.

    Returns:
      float32 [d, d]: a rotation, with a reflection where that is nearer. Where n < d it is one of
      many that are equally good.

    Raises:
      ValueError: the two are no matrices of the same shape.
    """
    if source_NxD.ndim != 2 or source_NxD.shape != target_NxD.shape:
        raise ValueError(
            f"source {source_NxD.shape} and target {target_NxD.shape}: orthogonal_map compares "
            "row i of one with row i of the other, so give two matrices [n, d] of one shape"
        )
    source_NxD, target_NxD = source_NxD.astype(jnp.float32), target_NxD.astype(jnp.float32)
    covariance_DxD = jnp.matmul(source_NxD.T, target_NxD, precision=jax.lax.Precision.HIGHEST)
    left_DxD, _, right_DxD = jnp.linalg.svd(covariance_DxD)
    return jnp.matmul(left_DxD, right_DxD, precision=jax.lax.Precision.HIGHEST)

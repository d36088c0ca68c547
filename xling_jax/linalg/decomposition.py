"""Singular value decomposition that converges."""

from functools import partial

import jax
import jax.numpy as jnp
from jax.lax.linalg import SvdAlgorithm

Svd = tuple[jax.Array, jax.Array, jax.Array]


def svd(x_NxD: jax.Array) -> Svd:
    """The thin singular value decomposition of a matrix [n, d], r being the smaller of n and d: the
    left vectors [n, r], the singular values [r] and the right vectors [r, d].

    On CPUs LAPACK's divide and conquer, which XLA uses, now and then does not converge, also for
    matrices that are well conditioned; then QR iteration, several times as slow, takes its place.
    All is NaN if the matrix holds a NaN or an infinity.
    """
    return jax.lax.platform_dependent(x_NxD, cpu=_sure, default=_svd)


def _sure(x_NxD: jax.Array) -> Svd:
    found = _svd(x_NxD)
    # Of a matrix that is not finite, QR iteration would find nothing either, and take its time.
    has_failed = jnp.isfinite(x_NxD).all() & ~jnp.isfinite(found[1]).all()
    return jax.lax.cond(has_failed, partial(_svd, x_NxD, SvdAlgorithm.QR), lambda: found)


def _svd(x_NxD: jax.Array, algorithm: SvdAlgorithm = SvdAlgorithm.DEFAULT) -> Svd:
    left, singular, right = jax.lax.linalg.svd(x_NxD, full_matrices=False, algorithm=algorithm)
    return left, singular, right

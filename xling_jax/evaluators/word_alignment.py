"""Word alignment by symmetrised argmax (Jalili Sabet et al. 2020; D&S §2.2.1)."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from xling_jax.batches.assembly import Batch
from xling_jax.batches.packing import Rows
from xling_jax.linalg.retrieval import unit_length
from xling_jax.models.bert import blocks


def count_links(
    states: Sequence[jax.Array],
    counterparts: Sequence[jax.Array],
    batch: Batch,
    counterpart: Batch,
    rows: Rows,
) -> jax.Array:
    """Counts links between sentences and their counterparts in the same places.

    Pieces i and j are linked if each is the other's most similar one (cosine). The true link of
    a piece is the same piece of the other language, wherever an inverted order puts it.

    Args:
      states: [P, D] of each layer, of one language.
      counterparts: the same of the other.
      batch, counterpart: the two batches, laid out alike.
      rows: the blocks of rows of both.

    Returns:
      float32 [layers, 3]: links that are right, links predicted, true links.
    """
    assert batch.segments is not None
    counts = []
    for x_PxD, y_PxD in zip(states, counterparts, strict=True):
        x_PxD, y_PxD = unit_length(x_PxD), unit_length(y_PxD)
        right = predicted = jnp.zeros(())
        for block, (n, t) in blocks(rows):
            own, other, piece, segment, x, y = (
                a[block].reshape(n, t, *a.shape[1:])
                for a in (
                    batch.mirror,
                    counterpart.mirror,
                    batch.is_piece,
                    batch.segments,
                    x_PxD,
                    y_PxD,
                )
            )
            comparable = (segment[:, :, None] == segment[:, None, :]) & (
                piece[:, :, None] & piece[:, None, :]
            )
            similarity = jnp.where(
                comparable, jnp.einsum("nqd,nkd->nqk", x, y, precision="highest"), -jnp.inf
            )
            forward, backward = similarity.argmax(2), similarity.argmax(1)
            mutual = piece & (jnp.take_along_axis(backward, forward, 1) == jnp.arange(t))
            is_right = mutual & (jnp.take_along_axis(other, forward, 1) == own)
            right, predicted = right + is_right.sum(), predicted + mutual.sum()
        counts.append(jnp.stack([right, predicted, batch.is_piece.sum()]))
    return jnp.stack(counts).astype(jnp.float32)


def f1(counts: jax.Array) -> jax.Array:
    """The harmonic mean of precision and recall, [layers], from `count_links`' sums."""
    right, predicted, true = counts[:, 0], counts[:, 1], counts[:, 2]
    return 2 * right / jnp.maximum(predicted + true, 1.0)

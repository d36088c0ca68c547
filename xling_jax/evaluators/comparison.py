"""How alike the vectors of translations are, computed inside a compiled program.

`COMPARISONS` has the functions by the names of their metrics in the registry. Each takes a
`Parallel` and returns numbers by the part of the metric, `""` for the metric itself.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence

import jax
import jax.numpy as jnp

from xling_jax.batches.assembly import Batch
from xling_jax.batches.packing import Rows
from xling_jax.evaluators.registry import CUTOFFS
from xling_jax.linalg import cka, csls
from xling_jax.linalg.normalization import center, iterative_normalize
from xling_jax.linalg.points import points
from xling_jax.linalg.procrustes import orthogonal_map
from xling_jax.linalg.retrieval import counterpart_ranks, unit_length
from xling_jax.models.bert import blocks

Numbers = dict[str, jax.Array]
Ranks = tuple[jax.Array, jax.Array]


@dataclasses.dataclass(frozen=True)
class Parallel:
    """Vectors of n sentences or words of one language, and of their translations."""

    first_NxD: jax.Array
    second_NxD: jax.Array

    @functools.cached_property
    def ranks(self) -> Ranks:
        """See `counterpart_ranks`."""
        return counterpart_ranks(self.first_NxD, self.second_NxD)


def precision(ranks: Ranks) -> Numbers:
    """The share whose counterpart is among the k nearest.

    Returns p@1 as `""`, its two directions as `_forward` and `_backward`, p@k as `_pk`; all but
    the directions are means of both directions.
    """
    forward, backward = ranks
    found = {}
    for k in CUTOFFS:
        both = jnp.mean(forward < k), jnp.mean(backward < k)
        found["" if k == 1 else f"_p{k}"] = (both[0] + both[1]) / 2
        if k == 1:
            found["_forward"], found["_backward"] = both
    return found


def retrieval(pair: Parallel) -> Numbers:
    """See `precision`, by cosine (D&S §2.2.1)."""
    return precision(pair.ranks)


def mean_reciprocal_rank(pair: Parallel) -> Numbers:
    """The mean over both directions of 1 / rank of the counterpart, ranks counted from 1."""
    forward, backward = (jnp.mean(1 / (1 + ranks)) for ranks in pair.ranks)
    return {"": (forward + backward) / 2}


def map_learned_on(pair: Parallel, learned: int) -> Parallel:
    """The pairs from number `learned` on, after an orthogonal map learned on the pairs before them
    (W&C §5.1.3).

    Each side is normalised (Zhang et al. 2019) with all its sentences, so that the same mean is
    subtracted from those that the map is learned on and those that are tested.

    Raises:
      ValueError: no pair to learn from or none to test, or the two sides are not matrices of
        finite points of one shape.
    """
    first_NxD, second_NxD = points(
        one_space=True, counterparts=True, first=pair.first_NxD, second=pair.second_NxD
    )
    if not 1 <= learned < len(first_NxD):
        raise ValueError(f"learned={learned} of {len(first_NxD)} sentences: leave some to test")
    x, y = iterative_normalize(first_NxD), iterative_normalize(second_NxD)
    rotation = orthogonal_map(x[:learned], y[:learned])
    mapped = jnp.matmul(x[learned:], rotation, precision=jax.lax.Precision.HIGHEST)
    return Parallel(mapped, y[learned:])


def map_learned_on_half(pair: Parallel) -> Parallel:
    """The second half of the pairs, after a map learned on the first."""
    return map_learned_on(pair, len(pair.first_NxD) // 2)


def can_learn_on_half(pairs: int) -> bool:
    """Whether each half has two pairs: a single one would always be found."""
    return pairs > 3


def mapped(pair: Parallel) -> Numbers:
    """P@1 of the second half after a map learned on the first; {} if that means nothing."""
    is_enough = can_learn_on_half(len(pair.first_NxD))
    return {"": retrieval(map_learned_on_half(pair))[""]} if is_enough else {}


def centred_ranks(pair: Parallel) -> Ranks:
    """The ranks after each language's mean is subtracted from its vectors, so that what tells the
    languages apart does not count (Libovický et al. 2020)."""
    return Parallel(center(pair.first_NxD), center(pair.second_NxD)).ranks


def csls_ranks(pair: Parallel) -> Ranks:
    """The ranks by CSLS instead of the cosine (Conneau et al. 2017)."""
    return csls.counterpart_ranks(pair.first_NxD, pair.second_NxD)


COMPARISONS: Mapping[str, Callable[[Parallel], Numbers]] = {
    "retrieval": retrieval,
    "mrr": mean_reciprocal_rank,
    "translation": retrieval,
    "mapped": mapped,
    "centred": lambda pair: precision(centred_ranks(pair)),
    "csls": lambda pair: precision(csls_ranks(pair)),
    "cka": lambda pair: {"": cka.linear_cka(pair.first_NxD, pair.second_NxD)},
}


def by_layer(
    compare: Callable[..., Mapping[str, Numbers]], vectors, layers: Sequence[int]
) -> dict[tuple[str, str], jax.Array]:
    """What `compare` finds at each layer, by the metric's name and `_LAYER` with its part.

    A loop, so that comparisons are compiled once, however many layers there are. `vectors`: a tree
    of arrays [layers, ...].
    """
    return {
        (name, f"_{layer}{end}"): value
        for name, parts in jax.lax.map(compare, vectors).items()
        for end, values in parts.items()
        for layer, value in zip(layers, values, strict=True)
    }


def word_precision(vectors: Sequence[jax.Array], gold: Sequence[jax.Array]) -> jax.Array:
    """The share of words with a translation whose nearest word by CSLS is one, as the mean of both
    directions.

    Args:
      vectors: [n, D] and [m, D] of the two languages' words.
      gold: [n, G] and [m, H], the numbers of each word's translations, filled up with -1.
    """
    shares = []
    for (x, y), table in zip([vectors, vectors[::-1]], gold, strict=True):
        _, nearest = csls.top_k(x, y)
        known = (table >= 0).any(axis=1)
        shares.append((table == nearest).any(axis=1).sum() / jnp.maximum(known.sum(), 1))
    return (shares[0] + shares[1]) / 2


def count_links(
    states: Sequence[jax.Array],
    counterparts: Sequence[jax.Array],
    batch: Batch,
    counterpart: Batch,
    rows: Rows,
) -> jax.Array:
    """Counts links between the pieces of sentences and of their translations (D&S §2.2.1).

    Links are those of the symmetrised argmax (Jalili Sabet et al. 2020): pieces i and j are linked
    if each is the other's most similar one by cosine. The true link of a piece is the same piece
    of the other language, wherever an inverted order puts it.

    Args:
      states, counterparts: [P, D] of each layer, of one language and of the other.
      batch, counterpart: the two batches; a sentence and its translation have the same places, in
        blocks of `rows`.

    Returns:
      float32 [layers, 3]: right links, predicted links, true links.
    """
    assert batch.segments is not None
    counts = []
    for x_PxD, y_PxD in zip(states, counterparts, strict=True):
        x_PxD, y_PxD = unit_length(x_PxD), unit_length(y_PxD)
        right = predicted = jnp.zeros(())
        for block, (n, t) in blocks(rows):
            mirrors = batch.mirror, counterpart.mirror
            own, other, piece, segment, x, y = (
                a[block].reshape(n, t, *a.shape[1:])
                for a in (*mirrors, batch.is_piece, batch.segments, x_PxD, y_PxD)
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
    """The harmonic mean of precision and recall, [..., layers], from sums [..., layers, 3] of
    `count_links`."""
    right, predicted, true = jnp.moveaxis(counts, -1, 0)
    return 2 * right / jnp.maximum(predicted + true, 1.0)

"""Maps two sets of word vectors into one space, with a dictionary or without (VecMap).

Written from the papers: Artetxe, Labaka & Agirre 2018, "A robust self-learning method for fully
unsupervised cross-lingual mappings of word embeddings" (ACL; "§" below), and their "Generalizing
and improving bilingual word embedding mappings with a multi-step framework of linear
transformations" (AAAI 2018).
"""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np

from xling_jax.linalg.csls import NEIGHBOURS
from xling_jax.linalg.decomposition import svd
from xling_jax.linalg.normalization import unit_center_unit
from xling_jax.linalg.points import points, require_count
from xling_jax.linalg.procrustes import orthogonal_map
from xling_jax.linalg.retrieval import (
    BLOCK,
    FEWEST_GROUPED,
    Grouped,
    grouped,
    grouped_similarities,
    highest,
    in_blocks,
    nearest,
    similarities,
    ungrouped,
)

CUTOFF = 20_000  # the dictionary is sought among so many most frequent words (§3.3)
INITIAL_CUTOFF = 4_000  # the same for the first dictionary (§3.3)
FIRST_KEEP = 0.1  # the share of the similarities that may be chosen at first (§3.3)
IMPROVEMENT = 1e-6  # smaller gains of the mean best cosine count as none (§3.3)
# Iterations without improvement before more similarities may be chosen, as in the paper (§3.3): it
# takes chance a while to get away from a bad dictionary. If the first one is good, 10 are enough.
PATIENCE = 50
SCORES = 2**22  # compared at a time; more do not fit the caches
FEWEST_WORDS = 20  # fewer have no neighbourhoods to compare
SMALLEST_SINGULAR = 1e-4  # of the largest; below it is float32 noise, which whitening would inflate


def map_unsupervised(
    source: jax.Array, target: jax.Array, seed: int = 0, cutoff: int = CUTOFF, tries: int = 1
) -> tuple[jax.Array, jax.Array]:
    """Maps both languages into one space without any dictionary (Artetxe et al. 2018).

    Rows are words from the most to the least frequent: the dictionary is sought among the first
    ones, and the resulting map applied to all. The same seed gives the same bits on one machine. If
    the vectors are too poor or too different, the result is arbitrary, and nothing indicates it.
    With few words or little text chance decides whether languages meet, so it takes several tries.

    Args:
      source, target: [n, d] and [m, d], vectors of the two languages, at least 20 each.
      seed: of the similarities that are left out at random.
      cutoff: how many words of each language may enter the dictionary, at least 20. Time grows
        with its square; memory is that for the 4,000 words of the first dictionary.
      tries: how often the dictionary is learned, each time with other similarities left out; the
        one is taken whose learning reached the highest mean cosine of nearest neighbours.

    Returns:
      float32 [n, d] and [m, d]: the vectors, normalised and mapped into the common space, to be
        compared by CSLS. Directions that the dictionary's words do not span become zero.
    """
    require_count("cutoff", cutoff)
    require_count("tries", tries)
    if cutoff < FEWEST_WORDS:
        raise ValueError(f"cutoff={cutoff}: choose at least {FEWEST_WORDS} words")
    source_NxD, target_MxD = _normalized(source, target)
    first = min(len(source_NxD), len(target_MxD), cutoff, INITIAL_CUTOFF)
    first_Px2 = first_pairs(source_NxD[:first], target_MxD[:first])
    key = jax.random.key(seed)
    learned = [
        _self_learn(source_NxD[:cutoff], target_MxD[:cutoff], first_Px2, each)
        for each in (key, *jax.random.split(key, tries - 1))
    ]
    pairs_Px2, _ = max(learned, key=lambda found: found[1])
    return reweighted_map(source_NxD, target_MxD, pairs_Px2)


def _normalized(source: jax.Array, target: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Both sides normalised (§3.1); ValueError if they cannot be mapped."""
    sides = points(one_space=True, source=source, target=target)
    for name, x in zip(("source", "target"), sides, strict=True):
        if len(x) < FEWEST_WORDS:
            raise ValueError(f"{name} {x.shape}: give at least {FEWEST_WORDS} rows of vectors")
    return unit_center_unit(sides[0]), unit_center_unit(sides[1])


def _self_learn(source_NxD, target_MxD, pairs_Px2, key: jax.Array) -> tuple[jax.Array, float]:
    """Improves dictionary and rotation in turn until the mean cosine stops growing (§3.3); returns
    the dictionary, int32 [P, 2], and the highest mean cosine."""
    keep, best, best_at = FIRST_KEEP, -np.inf, 0
    for step in itertools.count():
        before_Px2 = pairs_Px2
        pairs_Px2, objective = improve(
            source_NxD, target_MxD, pairs_Px2, jax.random.fold_in(key, step), keep
        )
        if keep == 1.0 and (pairs_Px2 == before_Px2).all():
            break  # no chance is involved: further dictionaries would be the same
        if objective > best + IMPROVEMENT:
            best, best_at = float(objective), step
        elif step - best_at >= PATIENCE:
            if keep == 1.0:
                break
            keep, best_at = min(1.0, 2 * keep), step
    return pairs_Px2, best


@jax.jit
def first_pairs(source_NxD: jax.Array, target_NxD: jax.Array) -> jax.Array:
    """A first dictionary from each word's similarities to the others of its language (§3.2).

    The similarities of a word and of its translation are distributed alike, whichever words they
    belong to. So the rows of each language's similarity matrix are sorted and then compared across
    languages.

    Takes the n most frequent words of both languages, normalised; returns row numbers (i, j), one
    pair for each source word and then one for each target word, int32 [2n, 2].
    """

    def profiles(x_NxD):
        left_NxR, singular_R, _ = svd(x_NxD)
        root_NxN = similarities(left_NxR * singular_R, left_NxR)  # the root of X X^T
        return unit_center_unit(jnp.sort(root_NxN, axis=1))

    return induce(profiles(source_NxD), profiles(target_NxD), jax.random.key(0), 1.0)[0]


@jax.jit
def improve(source_NxD, target_MxD, pairs_Px2, key, keep) -> tuple[jax.Array, jax.Array]:
    """One iteration (§3.3): the best rotation for the dictionary, then the best dictionary for the
    rotation, as `induce` returns it.

    Rotating one side by U V^T gives the same cosines as rotating both, by U and by V.
    """
    rotation_DxD = orthogonal_map(source_NxD[pairs_Px2[:, 0]], target_MxD[pairs_Px2[:, 1]])
    return induce(similarities(source_NxD, rotation_DxD.T), target_MxD, key, keep)


@functools.partial(jax.jit, static_argnames="block")
def induce(
    x_NxD: jax.Array,
    y_MxD: jax.Array,
    key: jax.Array,
    keep: jax.Array | float,
    block: int | None = None,
) -> tuple[jax.Array, jax.Array]:
    """A dictionary of CSLS nearest neighbours in both directions, with random pairs left out.

    In each direction only a random share `keep` of all pairs may be chosen, drawn for this
    direction alone. (§3.3 sets the other similarities to 0; here such pairs are never chosen, even
    if all that remain are below 0. If chance leaves a word no pair, all of its pairs may be chosen;
    this is only checked below `FEWEST_GROUPED` points, because with more, and a share of at least
    `FIRST_KEEP`, some are always left.)

    Args:
      x_NxD, y_MxD: points of unit length.
      block: rows compared with all others at a time, by default as many as make `SCORES` scores
        (all of x, if it has few).

    Returns:
      int32 [n + m, 2], row numbers (i, j): the nearest y of every x, then the nearest x of every y;
      and the mean cosine of all points with their nearest, over both directions and with no pair
      left out, so that it can be compared between shares.
    """
    n, m = len(x_NxD), len(y_MxD)
    near_MxK = nearest(y_MxD, x_NxD, NEIGHBOURS, block or _rows_at_once(n))[0]
    block = min(n, block or (_rows_at_once(m) if n >= FEWEST_GROUPED else n))
    # Each direction leaves out pairs of its own: a wrong pair that both directions keep would
    # confirm itself. A pair's random bits are the product of two random odd words, a hundredth of
    # the work of drawing a word for each pair.
    chance_2xN, chance_2xM = (
        jax.random.bits(jax.random.fold_in(key, side), (2, size), jnp.uint32) | 1
        for side, size in enumerate((n, m))
    )
    left_out = ((1 - jnp.float32(keep)) * 2.0**32).astype(jnp.uint32)
    # A cosine minus half the mean of the nearest has the order of CSLS, and a single subtraction is
    # rounded alike wherever XLA computes it, so that `_highest` finds the maximum again.
    keys, penalty, *chances = map(grouped, (y_MxD, near_MxK.mean(1) / 2, *chance_2xM))
    is_few = m < FEWEST_GROUPED, n == block < FEWEST_GROUPED

    def compare(backward, item):
        x_BxD, chance_Bx2, start = item
        cosines = grouped_similarities(x_BxD, keys)
        near_BxK = highest(cosines, min(NEIGHBOURS, m))[0]

        def like(x_B, of_keys):
            return x_B.reshape(-1, *[1] * of_keys.ndim)

        def kept(way, score, chance):
            is_kept = like(chance_Bx2[:, way], chance) * chance >= left_out
            if is_few[way]:
                is_kept |= ~is_kept.any(1 - way, keepdims=True)
            return jnp.where(is_kept, score, -jnp.inf)

        def forward(cosine, penalty, chance):
            return kept(0, cosine - penalty, chance)

        penalty_B = jnp.where(start + jnp.arange(block) < n, near_BxK.mean(1) / 2, jnp.inf)
        rows = []
        for cosine, chance, (best, row) in zip(cosines, chances[1], backward, strict=True):
            score = kept(1, cosine - like(penalty_B, chance), chance)
            block_best, block_row = _highest(score)
            row = jnp.where(block_best > best, start + block_row, row)
            rows.append((jnp.maximum(best, block_best), row))
        scores = jax.tree.map(forward, cosines, penalty, chances[0])
        # The maximum instead of the first of the nearest: for a slice, XLA would sort whole rows.
        return rows, (highest(scores, 1)[1].squeeze(1), near_BxK.max(1))

    nothing = [(jnp.full_like(x, -jnp.inf), jnp.zeros(x.shape, jnp.int32)) for x in penalty]
    blocks = (*in_blocks((x_NxD, chance_2xN.T), block), jnp.arange(0, n, block, jnp.int32))
    backward, (forward, cosine) = jax.lax.scan(compare, nothing, blocks)
    backward_M = ungrouped(Grouped(*(row for _, row in backward)))
    forward_N, cosine_N = (x.reshape(-1)[:n] for x in (forward, cosine))
    pairs_Px2 = jnp.concatenate(
        [
            jnp.stack([jnp.arange(n), forward_N], axis=1),
            jnp.stack([backward_M, jnp.arange(m)], axis=1),
        ],
        dtype=jnp.int32,
    )
    return pairs_Px2, (cosine_N.mean() + near_MxK.max(1).mean()) / 2


def _highest(scores: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The maximum along the first axis and its first place, faster on a CPU than an argmax."""
    last = len(scores) - 1
    best = scores.max(0)
    place = jnp.arange(last + 1, dtype=jnp.int32).reshape(-1, *[1] * best.ndim)
    return best, jnp.where(scores == best, place, last).min(0)


def _rows_at_once(others: int) -> int:
    """How many rows to compare at a time with so many others."""
    return max(1, min(BLOCK, SCORES // others))


@jax.jit
def reweighted_map(source_NxD, target_MxD, pairs_Px2) -> tuple[jax.Array, jax.Array]:
    """Both languages' vectors in the common space: whitened, rotated, re-weighted and de-whitened
    (§3.4; Artetxe et al. 2018, AAAI, §3) by the pairs of a dictionary."""
    with jax.default_matmul_precision("highest"):
        x_PxD, y_PxD = source_NxD[pairs_Px2[:, 0]], target_MxD[pairs_Px2[:, 1]]
        (whiten_x, colour_x), (whiten_y, colour_y) = _whitening(x_PxD), _whitening(y_PxD)
        covariance_DxD = (x_PxD @ whiten_x).T @ (y_PxD @ whiten_y)
        left_DxD, correlation_D, right_DxD = svd(covariance_DxD)

        def to_common(whiten, rotation, colour):
            return (whiten @ rotation * jnp.sqrt(correlation_D)) @ (rotation.T @ colour @ rotation)

        return (
            source_NxD @ to_common(whiten_x, left_DxD, colour_x),
            target_MxD @ to_common(whiten_y, right_DxD.T, colour_y),
        )


def _whitening(x_PxD: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(X^T X)^(-1/2) and (X^T X)^(1/2), both [d, d], without directions that X does not span."""
    _, singular_R, right_RxD = svd(x_PxD)
    is_there = singular_R > SMALLEST_SINGULAR * singular_R[0]
    power_R = jnp.where(is_there, singular_R, 0.0)
    inverse_R = jnp.where(is_there, 1 / jnp.where(is_there, singular_R, 1.0), 0.0)
    return (right_RxD.T * inverse_R) @ right_RxD, (right_RxD.T * power_R) @ right_RxD

"""MLM masking on the device (Devlin et al. 2019; D&S §2.3, §4)."""

import dataclasses
import math
from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp

from xling_jax.batches import hashing
from xling_jax.batches.assembly import Batch
from xling_jax.vocabulary.pieces import SPECIALS

SELECT, ACT, DRAW = range(3)  # the uses of random bits
MASKING_RATE = 0.15  # share of pieces selected in both papers; perplexity is measured with it too
SPREAD = 6.0  # standard deviations above the mean that there is room for


@dataclasses.dataclass(frozen=True)
class PieceRange:
    """The ids that random replacements are drawn from: the ordinary pieces of all languages. Those
    of language k are k * shift + SPECIALS .. (k + 1) * shift - 1."""

    languages: int
    shift: int

    def draw(self, bits: jax.Array) -> jax.Array:
        ordinary = self.shift - SPECIALS
        drawn = (bits % jnp.uint32(self.languages * ordinary)).astype(jnp.int32)
        return drawn // ordinary * self.shift + SPECIALS + drawn % ordinary


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Corrupted:
    """What the model sees and must predict.

    Attributes:
      tokens: int32 [P], the input.
      selected: int32 [C], places to predict, in increasing order, padded with P.
      targets: int32 [C], the original ids at these places.
      weights: float32 [C], 1 for a selected place, 0 for padding.
    """

    tokens: jax.Array
    selected: jax.Array
    targets: jax.Array
    weights: jax.Array


def most_selected(places: int, rate: float) -> int:
    """Room for selected tokens: the mean for `places` pieces plus six standard deviations. If more
    are selected (about once in 10^9 steps), the last ones are not predicted."""
    spread = SPREAD * math.sqrt(places * rate * (1 - rate))
    return min(places, math.ceil((places * rate + spread) / 16) * 16)


def _neighbours(tokens_P: jax.Array, bits_P: jax.Array, neighbours_VxN: jax.Array) -> jax.Array:
    """A neighbour of each token, int32 [P], drawn uniformly; the token itself if it has none."""
    counts_V = (neighbours_VxN >= 0).sum(axis=1)
    count_P = counts_V[tokens_P]
    drawn_P = (bits_P % jnp.maximum(count_P, 1).astype(jnp.uint32)).astype(jnp.int32)
    return jnp.where(count_P > 0, neighbours_VxN[tokens_P, drawn_P], tokens_P)


def corrupt(
    batch: Batch,
    token_hash_P: jax.Array,
    marginals: jax.Array,
    neighbours_VxN: jax.Array | None,
    draw: Callable[[jax.Array], jax.Array],
    rate: float,
) -> Corrupted:
    """Selects a share `rate` of the ordinary pieces, and masks, keeps or replaces each of them.

    Args:
      batch: the tokens of one shard.
      token_hash_P: uint32 [P], each token's hash of (seed, step, sentence, place).
      marginals: float32 [4], shares (mask, keep, random, neighbour) of the selected pieces; they
        sum to 1. A piece that should become a neighbour but has none is kept.
      neighbours_VxN: int32, the ids of each piece's neighbours, padded with -1; None, to save work,
        if their share is 0.
      draw: random replacements, int32 ids from uint32 bits.
      rate: the share of ordinary pieces selected.
    """
    chex.assert_equal_shape([batch.tokens, batch.mask_ids, batch.is_ordinary, token_hash_P])
    chex.assert_shape(marginals, (4,))
    select, action, piece = (hashing.combine(token_hash_P, use) for use in (SELECT, ACT, DRAW))
    is_selected_P = batch.is_ordinary & (select < jnp.uint32(round(rate * 2**32)))
    uniform_P = (action >> 8).astype(jnp.float32) * 2.0**-24
    mask, keep, _, neighbour = marginals
    cases = [uniform_P < mask, uniform_P < mask + keep]
    changes = [batch.mask_ids, batch.tokens]
    if neighbours_VxN is not None:
        cases.append(uniform_P < mask + keep + neighbour)
        changes.append(_neighbours(batch.tokens, piece, neighbours_VxN))
    changed_P = jnp.select(cases, changes, draw(piece))
    places = batch.tokens.shape[0]
    (selected_C,) = jnp.nonzero(is_selected_P, size=most_selected(places, rate), fill_value=places)
    return Corrupted(
        tokens=jnp.where(is_selected_P, changed_P, batch.tokens),
        selected=selected_C,
        targets=batch.tokens.at[selected_C].get(mode="fill", fill_value=0),
        weights=(selected_C < places).astype(jnp.float32),
    )

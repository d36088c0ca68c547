"""MLM masking on the device (Devlin et al. 2019; D&S §2.3, §4)."""

import dataclasses
import math
from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp

from xling_jax.batches import hashing
from xling_jax.batches.assembly import SPECIALS, Batch

SELECT, ACT, DRAW = range(3)  # the uses of random bits
MASKING_RATE = 0.15  # share of the pieces that both papers select; perplexity is of as many
SPREAD = 6.0  # standard deviations of room for the number selected


@dataclasses.dataclass(frozen=True)
class PieceRange:
    """The ids that a random replacement draws from: the ordinary pieces of every language. Language
    k's are k * shift + SPECIALS .. (k + 1) * shift - 1."""

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

    tokens: int32 [P], the input. selected: int32 [C], places to predict, in order; P where fewer
    were selected. targets: int32 [C], the original ids there. weights: float32 [C], 1 for a
    selected place, 0 for filling.
    """

    tokens: jax.Array
    selected: jax.Array
    targets: jax.Array
    weights: jax.Array


def most_selected(places: int, rate: float) -> int:
    """Room for selected tokens: the mean for `places` pieces and six standard deviations. Beyond it
    (about once in 10^9 steps) the last selected tokens are not predicted."""
    spread = SPREAD * math.sqrt(places * rate * (1 - rate))
    return min(places, math.ceil((places * rate + spread) / 16) * 16)


def _neighbours(tokens_P: jax.Array, bits_P: jax.Array, neighbours_VxN: jax.Array) -> jax.Array:
    """A neighbour of each token, int32 [P], uniform over those it has; itself without any."""
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
    """Selects a share of the pieces, `rate`, and masks, keeps or replaces each.

    token_hash_P: uint32 [P], the hash of (seed, step, sentence, position) of each token. marginals:
    float32 [4], shares (mask, keep, random, neighbour) of the selected tokens, of sum 1. A piece
    that should be replaced by a neighbour and has none is kept. neighbours_VxN: int32, what each
    piece's neighbours are, those it has first; -1 is none. None, if their share is 0, saves the
    work. draw: random replacements, int32 ids from uint32 bits.
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

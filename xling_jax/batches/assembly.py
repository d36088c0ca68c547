"""Gathers a step's tokens on the device, with the ablations applied."""

import dataclasses

import chex
import jax
import jax.numpy as jnp

from xling_jax.batches.packing import Plan
from xling_jax.batches.setting import Setting
from xling_jax.batches.store import TokenStore
from xling_jax.vocabulary.pieces import CLS, MASK, PAD, SEP, SPECIALS


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Batch:
    """The tokens of a step, flat, all [P].

    Attributes:
      tokens: int32, ids.
      positions, token_types: int32, rows of the embedding tables.
      segments: int32, equal for tokens that may attend to each other (within a row); None if all
        may.
      places: int32, the token's place in its sentence; [CLS] has 0.
      mask_ids: int32, the [MASK] of the token's language.
      is_token: bool, False for padding.
      is_piece: bool, a token of the text, neither [CLS] nor [SEP].
      is_ordinary: bool, a piece other than [UNK]; only these are masked.
      mirror: int32, the place that the token has where its sentence is not inverted.
    """

    tokens: jax.Array
    positions: jax.Array
    token_types: jax.Array
    segments: jax.Array | None
    places: jax.Array
    mask_ids: jax.Array
    is_token: jax.Array
    is_piece: jax.Array
    is_ordinary: jax.Array
    mirror: jax.Array


def assemble(store: TokenStore, plan: Plan, setting: Setting) -> Batch:
    """Returns one shard's batch, given the plan of one step. Places that no sentence owns hold the
    first language's [PAD] and are in segment -1."""
    chex.assert_rank([plan.sentence, plan.start, plan.owner], 1)
    chex.assert_equal_shape([plan.sentence, plan.start])
    owner_P = plan.owner
    owned_P = owner_P >= 0
    sentence_B = jnp.maximum(plan.sentence, 0)
    start_B = store.offsets[sentence_B]
    length_B = store.offsets[sentence_B + 1] - start_B + 2
    language_B = store.languages[sentence_B]
    slot_P = jnp.maximum(owner_P, 0)

    place_P = jnp.where(owned_P, jnp.arange(owner_P.shape[0]) - plan.start[slot_P], 0)
    length_P, language_P = length_B[slot_P], language_B[slot_P]
    is_piece_P = owned_P & (place_P > 0) & (place_P < length_P - 1)
    inverted_P = setting.inverted[language_P] & is_piece_P
    mirror_P = jnp.where(inverted_P, length_P - 1 - place_P, place_P)
    piece_P = store.tokens[jnp.where(is_piece_P, start_B[slot_P] + mirror_P - 1, 0)]

    own_special_P = language_P * setting.special_shift
    frame_P = jnp.where(place_P == 0, CLS, jnp.where(place_P == length_P - 1, SEP, PAD))
    ids_P = jnp.where(is_piece_P, piece_P, frame_P)
    tokens_P = jnp.where(ids_P < SPECIALS, ids_P + own_special_P, ids_P)
    return Batch(
        tokens=jnp.where(owned_P, tokens_P, PAD),
        positions=place_P + language_P * setting.position_offset,
        token_types=language_P * setting.token_type_step,
        segments=owner_P,
        places=place_P,
        mask_ids=MASK + own_special_P,
        is_token=owned_P & (place_P < length_P),
        is_piece=is_piece_P,
        is_ordinary=is_piece_P & (piece_P >= SPECIALS),
        mirror=mirror_P,
    )

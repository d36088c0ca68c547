"""Dropout from counter hashes (`batches.hashing`)."""

import dataclasses

import jax
import jax.numpy as jnp

from xling_jax.batches import hashing

EMBEDDINGS, ATTENTION, ATTENTION_OUTPUT, FEED_FORWARD = range(4)  # the uses of dropout
HEAD_STRIDE = 65_537  # more than the places of a row, so that heads never share a counter


def dropout(x: jax.Array, bits: jax.Array, rate: float) -> jax.Array:
    """Returns `x` with a share `rate` (0 <= rate < 1, in steps of 2^-32) of its elements zeroed and
    the rest scaled by 1 / (1 - rate); bits are uint32 and broadcast to x's shape."""
    keep = bits >= jnp.uint32(round(rate * 2**32))
    return jnp.where(keep, x * (1.0 / (1.0 - rate)), jnp.zeros((), x.dtype))


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class DropoutBits:
    """What dropout needs to know of each token.

    Attributes:
      token_M: uint32, the hash of (seed, step, sentence, place).
      place_M: int32, the token's place in its sentence. Both are flat, or rows [n, t].
    """

    token_M: jax.Array
    place_M: jax.Array

    def _salted(self, layer: int, use: int) -> jax.Array:
        return self.token_M ^ hashing.combine(hashing.combine(jnp.uint32(0), layer), use)

    def features(self, features: int, layer: int, use: int) -> jax.Array:
        """Bits [M, features] for one use in one layer, of flat tokens."""
        return hashing.count(self._salted(layer, use)[:, None], jnp.arange(features))

    def of_rows(self, block: slice, shape: tuple[int, int]) -> "DropoutBits":
        """The same for the tokens of a block of rows, in the shape (n, t)."""
        token_NxT, place_NxT = (x[block].reshape(shape) for x in (self.token_M, self.place_M))
        return dataclasses.replace(self, token_M=token_NxT, place_M=place_NxT)

    def pairs(self, heads: int, layer: int) -> jax.Array:
        """Bits [n, heads, t, t] for the attention of rows, see `of_rows`."""
        query_NxT, key_NxT = self._salted(layer, ATTENTION), self.place_M
        head_Hx1x1 = jnp.arange(heads)[:, None, None] * HEAD_STRIDE
        return hashing.count(query_NxT[:, None, :, None], head_Hx1x1 + key_NxT[:, None, None, :])

"""Random bits that depend on what an element is, never on where it is laid out.

A 32-bit counter hash replaces a key-splitting generator: an element's bits are a function of the
seed, the step, its sentence's index in the global batch, its position in that sentence and the
use. Packing, sharding and the number of devices therefore do not change them, and no random
array has to be made or kept.
"""

import jax
import jax.numpy as jnp

GOLDEN = 0x9E3779B9  # 2^32 / golden ratio, odd: successive multiples are spread evenly


def mix(x: jax.Array) -> jax.Array:
    """Returns `x` (uint32, any shape) mixed by a bijection: every input bit affects every output
    bit. The shifts and multipliers are the low-bias ones that C. Wellons found (2018)."""
    x = x ^ (x >> 16)
    x = x * jnp.uint32(0x7FEB352D)
    x = x ^ (x >> 15)
    x = x * jnp.uint32(0x846CA68B)
    return x ^ (x >> 16)


def combine(state: jax.Array, value: jax.Array | int) -> jax.Array:
    """Returns the hash of `state` (uint32) extended by `value` (integers); shapes broadcast."""
    return mix(state ^ mix(jnp.asarray(value).astype(jnp.uint32) + jnp.uint32(GOLDEN)))


def count(state: jax.Array, counter: jax.Array) -> jax.Array:
    """Returns random bits for each pair of a well-mixed state and a small counter; shapes
    broadcast. Half the work of `combine`: for the many elements of one token."""
    return mix(state + counter.astype(jnp.uint32) * jnp.uint32(GOLDEN))


def token_hash(seed: jax.Array, step: jax.Array, slot_P: jax.Array, place_P: jax.Array):
    """Returns uint32 [P], the hash that all random choices for a token start from.

    It depends on the replica's seed, the step, the index of the token's sentence in the global
    batch (`slot_P`), and the token's place in that sentence.
    """
    of_step = combine(jnp.asarray(seed, jnp.uint32), step)
    values_2xP = jnp.stack(jnp.broadcast_arrays(slot_P, place_P))
    # XLA stores what a loop returns; otherwise it would recompute it for each element of a token.
    return jax.lax.fori_loop(
        0,
        len(values_2xP),
        lambda i, state_P: combine(state_P, values_2xP[i]),
        jnp.broadcast_to(of_step, values_2xP.shape[1:]),
    )

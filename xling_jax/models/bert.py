"""The encoder of Devlin et al. 2019, as Dufter & Schütze 2020 (§2.1) use it.

It knows nothing of languages. Tokens come either as an array [N, T] or flat: several blocks of
rows, each block with a row length of its own, one after the other along one axis of M tokens. All
work on single tokens runs over the M tokens at once; only attention looks at rows.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, Literal, get_args

import chex
import flax.linen as nn
import jax
import jax.numpy as jnp
from pydantic import Field, with_config

from xling_jax.batches.packing import Rows
from xling_jax.linalg.retrieval import map_blocks
from xling_jax.models.dropout import (
    ATTENTION_OUTPUT,
    EMBEDDINGS,
    FEED_FORWARD,
    DropoutBits,
    dropout,
)
from xling_jax.models.operations import LayerNorm, flax_dot_general, transposed

Size = Annotated[int, Field(ge=1, le=2**31 - 1)]
NumberType = Literal["float32", "bfloat16", "bfloat16_products"]
# The most attention scores that are kept for the backward pass: 64 MiB in float32. If there are
# more, some rows are done at a time, and their scores are computed again in the backward pass.
SCORES_AT_ONCE = 2**24


@with_config({"extra": "forbid"})  # when it is read from a file
@dataclasses.dataclass(frozen=True)
class BertConfig:
    """The size and constants of a BERT; the defaults are BERT-small (D&S §2.1, Table 9).

    Parameters are float32 whatever `dtype` is. "bfloat16_products" computes in float32, but dense
    layers and logits multiply numbers that are rounded to bfloat16.
    """

    vocabulary_size: Size
    layers: Size = 12
    hidden: Size = 64
    intermediate: Size = 256
    heads: Size = 1
    positions: Annotated[Size, Field(ge=3)] = 512
    token_types: Size = 2
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    norm_epsilon: Annotated[float, Field(ge=1e-38, lt=1)] = 1e-12
    initial_sd: Annotated[float, Field(ge=0, lt=100)] = 0.02
    dtype: NumberType = "float32"
    head: Literal["bert", "linear"] = "bert"  # linear: token embeddings and a bias alone (W&C)
    remat: bool = False  # compute each layer again in the backward pass, to save memory

    def __post_init__(self):
        if self.hidden % self.heads:
            raise ValueError(
                f"models.hidden={self.hidden} is not divisible by models.heads={self.heads}: "
                "choose a multiple"
            )
        # The types are checked only when a config is read from a file.
        if self.dtype not in get_args(NumberType):
            choices = " or ".join(map(repr, get_args(NumberType)))
            raise ValueError(f"models.dtype={self.dtype!r}: choose {choices}")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"models.dropout={self.dropout}: choose a value in [0, 1)")

    @property
    def states_dtype(self) -> jnp.dtype:
        """The number type of hidden states and of the results of dense layers."""
        return jnp.dtype("bfloat16" if self.dtype == "bfloat16" else "float32")

    @property
    def factors_dtype(self) -> jnp.dtype:
        """The number type of the factors that dense layers and logits multiply."""
        return jnp.dtype("float32" if self.dtype == "float32" else "bfloat16")

    def dense(self, features: int, name: str) -> nn.Dense:
        dot_general = partial(flax_dot_general, self.factors_dtype)
        return nn.Dense(features, dtype=self.states_dtype, name=name, dot_general=dot_general)

    def norm(self, name: str) -> LayerNorm:
        return LayerNorm(self.norm_epsilon, self.states_dtype, name=name)


def gelu(x: jax.Array) -> jax.Array:
    """The exact (erf) form."""
    return 0.5 * x * (1.0 + jax.lax.erf(x * (1.0 / math.sqrt(2.0))))


def blocks(rows: Rows) -> list[tuple[slice, tuple[int, int]]]:
    """For each block of rows, the slice of the flat token axis that it covers, and its shape."""
    found, start = [], 0
    for count, length in rows:
        found.append((slice(start, start + count * length), (count, length)))
        start += count * length
    return found


def segment_bias(segments: jax.Array | None, rows: Rows) -> list[jax.Array | None]:
    """The mask that is added to the attention scores of each block of n rows of t tokens, float32
    [n, 1, t, t]: far below 0 between different segments of a row. Without segments it is None, and
    all tokens of a row attend to each other."""
    bias: list[jax.Array | None] = []
    for block, (n, t) in blocks(rows):
        if segments is None:
            bias.append(None)
            continue
        segment = segments.reshape(-1)[block].reshape(n, 1, t)
        same = segment[:, :, :, None] == segment[:, :, None, :]
        bias.append(jnp.where(same, 0.0, -1e9).astype(jnp.float32))
    return bias


def attend(config: BertConfig, layer: int, rows) -> jax.Array:
    """Scaled dot-product attention of some rows.

    Args:
      config, layer: for dropout.
      rows: queries, keys and values, [N, T, H, K] each; the mask, [N, 1, T, T] or None; and the
        rows' `DropoutBits`, or None.

    Returns:
      [N, T, H, K].
    """
    *qkv, bias, bits = rows
    by_head = (part.swapaxes(1, 2) for part in qkv)
    return _attend(config, layer, (*by_head, bias, bits)).swapaxes(1, 2)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _attend(config: BertConfig, layer: int, rows) -> jax.Array:
    """`attend` with the axes of heads and places swapped."""
    return _attend_forward(config, layer, rows)[0]


def _attend_forward(config: BertConfig, layer: int, rows):
    q, k, v, bias, bits = rows
    scores = jnp.einsum("nhqd,nhkd->nhqk", _scaled(q), k).astype(jnp.float32)
    weights = jax.nn.softmax(scores if bias is None else scores + bias)
    context = _dropped(config, layer, weights, bits).astype(v.dtype) @ v
    return context, (rows, weights, context)


def _attend_backward(config: BertConfig, layer: int, saved, gradient):
    """The gradient through softmax needs, for each query, the mean of its weights' gradients under
    the weights. That is the product of context and gradient: K numbers instead of T."""
    (q, k, v, bias, bits), weights, context = saved
    dropped = _dropped(config, layer, weights, bits)
    of_dropped = jnp.einsum("nhqd,nhkd->nhqk", gradient, v).astype(jnp.float32)
    mean = jnp.einsum("nhqd,nhqd->nhq", gradient, context, preferred_element_type=jnp.float32)
    of_scores = (dropped * of_dropped - weights * mean[..., None]).astype(q.dtype)
    of_v = transposed(dropped.astype(v.dtype)) @ gradient
    return ((_scaled(of_scores @ k), transposed(of_scores) @ _scaled(q), of_v, None, None),)


_attend.defvjp(_attend_forward, _attend_backward)


def _scaled(q: jax.Array) -> jax.Array:
    return q * (1.0 / math.sqrt(q.shape[-1]))


def _dropped(config: BertConfig, layer: int, weights: jax.Array, bits: DropoutBits | None):
    if bits is None:
        return weights
    return dropout(weights, bits.pairs(config.heads, layer), config.dropout)


def by_rows(function: Callable[[Any], jax.Array], rows, scores: int) -> jax.Array:
    """Applies a function to rows that have so many attention scores each: to a part of the rows at
    a time if all would have more than `SCORES_AT_ONCE`."""
    n = len(jax.tree.leaves(rows)[0])
    count = math.ceil(n / max(SCORES_AT_ONCE // scores, 1))
    if count == 1:
        return function(rows)
    # A number that divides the rows saves a padded copy of them.
    count = next((c for c in range(count, 2 * count) if n % c == 0), count)
    return map_blocks(jax.checkpoint(function), rows, math.ceil(n / count))


class SelfAttention(nn.Module):
    """Multi-head attention inside segments, over flat tokens."""

    config: BertConfig
    layer: int

    @nn.compact
    def __call__(self, x_MxD, bias, rows: Rows, bits: DropoutBits | None):
        """Returns [M, D]; `bias` holds each block's additive mask [n, 1, t, t], or None."""
        config = self.config
        heads, width = config.heads, config.hidden // config.heads
        qkv_Mx3D = config.dense(3 * config.hidden, "query_key_value")(x_MxD)
        # `split` and not slices: its gradient is one concatenation instead of padded sums.
        sizes = [n * t for n, t in rows]
        parts = [jax.lax.split(part, sizes) for part in jnp.split(qkv_Mx3D, 3, axis=1)]
        contexts = []
        for (block, (n, t)), block_bias, *qkv in zip(blocks(rows), bias, *parts, strict=True):
            own_bits = None if bits is None else bits.of_rows(block, (n, t))
            own = (*(part.reshape(n, t, heads, width) for part in qkv), block_bias, own_bits)
            context = by_rows(partial(attend, config, self.layer), own, heads * t * t)
            contexts.append(context.reshape(n * t, config.hidden))
        return config.dense(config.hidden, "output")(jnp.concatenate(contexts))


class Layer(nn.Module):
    """One post-layernorm transformer layer."""

    config: BertConfig
    layer: int

    @nn.compact
    def __call__(self, x_MxD, bias, rows: Rows, bits: DropoutBits | None):
        """Returns the layer's output, [M, D]."""
        config = self.config

        def drop(x, use):
            if bits is None:
                return x
            return dropout(x, bits.features(config.hidden, self.layer, use), config.dropout)

        attended = SelfAttention(config, self.layer, name="attention")(x_MxD, bias, rows, bits)
        x_MxD = config.norm("attention_norm")(x_MxD + drop(attended, ATTENTION_OUTPUT))
        inner_MxF = gelu(config.dense(config.intermediate, "intermediate")(x_MxD))
        outer_MxD = config.dense(config.hidden, "output")(inner_MxF)
        return config.norm("output_norm")(x_MxD + drop(outer_MxD, FEED_FORWARD))


class Embeddings(nn.Module):
    """The sum of token, position and token-type embeddings, normalised."""

    config: BertConfig

    @nn.compact
    def __call__(self, tokens_M, positions_M, token_types_M, bits: DropoutBits | None):
        """Returns layer 0, [M, D]."""
        config = self.config

        def table(name: str, size: int) -> jax.Array:
            return self.param(name, nn.initializers.zeros, (size, config.hidden))

        x_MxD = (
            table("tokens", config.vocabulary_size)[tokens_M]
            + table("positions", config.positions)[positions_M]
            + table("token_types", config.token_types)[token_types_M]
        )
        x_MxD = config.norm("norm")(x_MxD)
        if bits is not None:
            drop = bits.features(config.hidden, 0, EMBEDDINGS)
            x_MxD = dropout(x_MxD, drop, config.dropout)
        return x_MxD


class Stack(nn.Module):
    """The layers, whose names are their numbers from 0."""

    config: BertConfig

    @nn.compact
    def __call__(self, x_MxD, bias, rows: Rows, bits: DropoutBits | None, depth: int):
        """Returns the input and the states after each of the first `depth` layers."""
        states = [x_MxD]
        rows_of_call = 3  # the place of `rows` among the arguments, the module being 0
        kind = nn.remat(Layer, static_argnums=(rows_of_call,)) if self.config.remat else Layer
        for number in range(depth):
            layer = kind(self.config, number + 1, name=str(number))
            states.append(layer(states[-1], bias, rows, bits))
        return states


class Bert(nn.Module):
    """The encoder. Its parameters are `embeddings` (`tokens`, `positions`, `token_types`, `norm`)
    and `layers` (`0`, `1`, …)."""

    config: BertConfig

    @nn.compact
    def __call__(
        self,
        tokens: jax.Array,
        positions: jax.Array,
        segments: jax.Array | None,
        token_types: jax.Array,
        *,
        rows: Rows | None = None,
        bits: DropoutBits | None = None,
        layers: Sequence[int] | None = None,
    ) -> list[jax.Array]:
        """Returns the hidden states after the given layers.

        Args:
          tokens: int32 ids, [N, T], or flat [M] with `rows`.
          positions, token_types: int32, like tokens: rows of the tables.
          segments: int32, like tokens. Tokens attend to tokens of their row with the same
            segment; None: to all of their row.
          rows: the blocks of rows that flat tokens consist of.
          bits: dropout's bits of each token, flat; None turns dropout off.
          layers: which states to return, 0 being the embeddings; all by default. Layers above the
            highest are not computed.

        Returns:
          A list of [N, T, D] (or flat [M, D]) in the config's `states_dtype`.
        """
        chex.assert_equal_shape([tokens, positions, token_types])
        config = self.config
        shape = tokens.shape
        rows = ((shape[0], shape[1]),) if rows is None else rows
        if layers is None:
            layers = range(config.layers + 1)
        bias = segment_bias(segments, rows)
        if config.dropout == 0:
            bits = None
        x_MxD = Embeddings(config, name="embeddings")(
            tokens.reshape(-1), positions.reshape(-1), token_types.reshape(-1), bits
        )
        states = Stack(config, name="layers")(x_MxD, bias, rows, bits, max(layers))
        return [states[layer].reshape(*shape, config.hidden) for layer in layers]

"""The masked language model's head and loss, and the parameters of an untrained model."""

import math
from typing import cast

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from xling_jax.linalg.retrieval import in_blocks
from xling_jax.models.bert import Bert, BertConfig, gelu
from xling_jax.models.operations import product

INITIAL_VALUES = 1  # tells these random numbers from others of the same seed
# No model is pretrained from this seed or a higher one.
FIRST_UNTRAINED_SEED = 2**32
# The most logits that are kept for the backward pass: 64 MiB in float32. If there are more, they
# are computed for a part of the vocabulary at a time, and again in the backward pass.
LOGITS_AT_ONCE = 2**24
NEVER = -1e30  # the bias of a piece that must not be chosen
UNCHOSEN = -1e4  # the stored bias of pieces that predictions did not choose among; fits float16


def is_candidate(bias_V: np.ndarray) -> np.ndarray:
    """Whether each piece is among those that a stored model's predictions chose from, bool [V]."""
    return bias_V > UNCHOSEN / 2  # bfloat16 rounds UNCHOSEN


class MaskedLanguageHead(nn.Module):
    """BERT's MLM head: dense, GELU, layer norm, then the token embeddings (tied) and a bias. A
    "linear" head has only the last two."""

    config: BertConfig

    @nn.compact
    def __call__(self, hidden_PxD: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Returns what the embeddings are multiplied by, [P, D], and the bias [V]."""
        config = self.config
        x_PxD = hidden_PxD
        if config.head == "bert":
            x_PxD = config.norm("norm")(gelu(config.dense(config.hidden, "dense")(x_PxD)))
        return x_PxD, self.param("bias", nn.initializers.zeros, (config.vocabulary_size,))


def _head(config: BertConfig, params, hidden_PxD: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The result of `MaskedLanguageHead` with the parameters of a whole model."""
    found = MaskedLanguageHead(config).apply({"params": params["mlm"]}, hidden_PxD)
    return cast(tuple[jax.Array, jax.Array], found)


def _logits(config: BertConfig, x_PxD, table_NxD: jax.Array, bias_N: jax.Array) -> jax.Array:
    return product(x_PxD, table_NxD.T, config.factors_dtype, jnp.float32) + bias_N


def masked_language_logits(config: BertConfig, params, hidden_PxD: jax.Array) -> jax.Array:
    """Logits [P, V], float32, at P places; `params` is a whole model's tree."""
    x_PxD, bias_V = _head(config, params, hidden_PxD)
    return _logits(config, x_PxD, params["embeddings"]["tokens"], bias_V)


def cross_entropy(
    config: BertConfig,
    params,
    hidden_PxD: jax.Array,
    target_P: jax.Array,
    ids_N: jax.Array | None = None,
    size: jax.Array | None = None,
) -> jax.Array:
    """The negative log-probability (nats) of P targets, float32 [P].

    Args:
      config, params: a whole model.
      hidden_PxD: last states.
      target_P: int32, each target's place among the pieces to choose from.
      ids_N: the pieces to choose from; None: all.
      size: if given, only the first `size` of these pieces can be chosen.
    """
    x_PxD, bias_V = _head(config, params, hidden_PxD)
    table_VxD = params["embeddings"]["tokens"]
    if ids_N is not None:
        table_VxD, bias_V = table_VxD[ids_N], bias_V[ids_N]
    number = len(bias_V)
    if size is not None:
        bias_V = jnp.where(jnp.arange(number) < size, bias_V, NEVER)
    blocks = math.ceil(len(target_P) * number / LOGITS_AT_ONCE)
    width = math.ceil(number / blocks)

    def one(block):
        first, table_BxD, bias_B = block
        logits_PxB = _logits(config, x_PxD, table_BxD, bias_B)
        place_P = target_P - first
        is_here_P = (place_P >= 0) & (place_P < width)
        found_Px1 = jnp.take_along_axis(logits_PxB, jnp.where(is_here_P, place_P, 0)[:, None], 1)
        return jax.nn.logsumexp(logits_PxB, axis=1), jnp.where(is_here_P, found_Px1[:, 0], 0.0)

    if blocks == 1:
        total_P, found_P = one((0, table_VxD, bias_V))
        return total_P - found_P
    padded_V = jnp.pad(bias_V, (0, -number % width), constant_values=NEVER)
    table, bias = in_blocks((table_VxD, padded_V), width)
    firsts = jnp.arange(len(bias)) * width
    total_BxP, found_BxP = jax.lax.map(jax.checkpoint(one), (firsts, table, bias))
    return jax.nn.logsumexp(total_BxP, axis=0) - found_BxP.sum(axis=0)


def param_shapes(config: BertConfig):
    """The shapes and dtypes of a masked language model's parameters, without drawing them."""

    def initialise():
        one, key = jnp.zeros((1, 1), jnp.int32), jax.random.key(0)
        params = Bert(config).init(key, one, one, one, one)["params"]
        head = MaskedLanguageHead(config).init(key, jnp.zeros((1, config.hidden)))
        return {**params, "mlm": head["params"]}

    return jax.eval_shape(initialise)


def initial_params(config: BertConfig, seed: int, language: int = 0):
    """The parameters of an untrained masked language model: `embeddings`, `layers`, `mlm`.

    Kernels and embeddings are normal with standard deviation `initial_sd` (Devlin et al. 2019),
    biases 0, scales of layer norms 1. Leaves are NumPy arrays, each drawn from the seed, its
    place in the tree and the language.
    """
    own = [language] if language else []
    leaves, tree = jax.tree_util.tree_flatten_with_path(param_shapes(config))
    drawn = []
    for number, (path, leaf) in enumerate(leaves):
        if path[-1].key in ("bias", "scale"):
            drawn.append(np.full(leaf.shape, path[-1].key == "scale", np.float32))
        else:
            random = np.random.default_rng([INITIAL_VALUES, seed, number, *own])
            drawn.append(random.normal(0, config.initial_sd, leaf.shape).astype(np.float32))
    return jax.tree.unflatten(tree, drawn)

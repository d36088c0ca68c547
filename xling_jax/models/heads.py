"""What stands on the encoder."""

from typing import cast

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from xling_jax.models.bert import Bert, BertConfig, gelu

INITIAL_VALUES = 1  # tells these random numbers from others of the same seed


class MaskedLanguageHead(nn.Module):
    """BERT's MLM head: dense, GELU, layer norm, then the token embeddings (tied) and a bias.

    Of a "linear" head only the last two are there.
    """

    config: BertConfig

    @nn.compact
    def __call__(
        self, hidden_PxD: jax.Array, token_embeddings_VxD: jax.Array, chosen: jax.Array | None
    ) -> jax.Array:
        """Returns logits [P, V], float32, for P places; [P, N] of N chosen pieces alone."""
        config = self.config
        x_PxD = hidden_PxD
        if config.head == "bert":
            x_PxD = config.norm("norm")(gelu(config.dense(config.hidden, "dense")(x_PxD)))
        bias_V = self.param("bias", nn.initializers.zeros, (config.vocabulary_size,))
        embeddings = token_embeddings_VxD
        if chosen is not None:
            embeddings, bias_V = embeddings[chosen], bias_V[chosen]
        embeddings = embeddings.astype(x_PxD.dtype)
        logits = jnp.einsum("pd,vd->pv", x_PxD, embeddings, preferred_element_type=jnp.float32)
        return logits + bias_V


def masked_language_logits(
    config: BertConfig, params, hidden_PxD: jax.Array, chosen_N: jax.Array | None = None
) -> jax.Array:
    """Logits [P, V], float32, at P places; `params` is a whole model's tree.

    With `chosen_N`, ids of N pieces, only theirs are computed: [P, N].
    """
    logits = MaskedLanguageHead(config).apply(
        {"params": params["mlm"]}, hidden_PxD, params["embeddings"]["tokens"], chosen_N
    )
    return cast(jax.Array, logits)


def param_shapes(config: BertConfig):
    """The shapes and dtypes of a masked language model's parameters, without drawing them."""

    def initialise():
        one, key = jnp.zeros((1, 1), jnp.int32), jax.random.key(0)
        params = Bert(config).init(key, one, one, one, one)["params"]
        hidden, tokens = jnp.zeros((1, config.hidden)), params["embeddings"]["tokens"]
        head = MaskedLanguageHead(config).init(key, hidden, tokens, None)
        return {**params, "mlm": head["params"]}

    return jax.eval_shape(initialise)


def initial_params(config: BertConfig, seed: int, language: int = 0):
    """The parameters of an untrained masked language model: `embeddings`, `layers`, `mlm`.

    Kernels and embeddings are normal (Devlin et al. 2019), biases 0, scales of layer norms 1;
    numpy arrays, drawn from the seed, the leaf's place in the tree and the language.
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

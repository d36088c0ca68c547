"""What stands on the encoder."""

import flax.linen as nn
import jax
import jax.numpy as jnp

from xling_jax.models.bert import Bert, BertConfig, gelu


class MaskedLanguageHead(nn.Module):
    """BERT's MLM head: dense, GELU, layer norm, then the token embeddings (tied) and a bias."""

    config: BertConfig

    @nn.compact
    def __call__(self, hidden_PxD: jax.Array, token_embeddings_VxD: jax.Array) -> jax.Array:
        """Returns logits [P, V], float32, for P chosen places."""
        config = self.config
        x_PxD = config.norm("norm")(gelu(config.dense(config.hidden, "dense")(hidden_PxD)))
        bias_V = self.param("bias", nn.initializers.zeros, (config.vocabulary_size,))
        embeddings = token_embeddings_VxD.astype(x_PxD.dtype)
        logits = jnp.einsum("pd,vd->pv", x_PxD, embeddings, preferred_element_type=jnp.float32)
        return logits + bias_V


def masked_language_logits(config: BertConfig, params, hidden_PxD: jax.Array) -> jax.Array:
    """Logits [P, V], float32, at P chosen places; `params` is a whole model's tree."""
    return MaskedLanguageHead(config).apply(
        {"params": params["mlm"]}, hidden_PxD, params["embeddings"]["tokens"]
    )


def initial_params(config: BertConfig, seed: int):
    """The parameters of an untrained masked language model: `embeddings`, `layers`, `mlm`."""
    encoder_key, head_key = jax.random.split(jax.random.key(seed))
    one = jnp.zeros((1, 1), jnp.int32)
    params = Bert(config).init(encoder_key, one, one, one, one)["params"]
    head = MaskedLanguageHead(config).init(
        head_key, jnp.zeros((1, config.hidden)), params["embeddings"]["tokens"]
    )
    return {**params, "mlm": head["params"]}

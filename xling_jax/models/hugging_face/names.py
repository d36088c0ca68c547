"""What `transformers` calls the fields and the tensors of the models that are read and written."""

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

Leaf = tuple[str, ...]  # the path of a parameter
POSITIONS: Leaf = ("embeddings", "positions")
TOKEN_TYPES: Leaf = ("embeddings", "token_types")
LEAVES = {"kernel": "weight", "scale": "weight", "bias": "bias"}
OLD_NAMES = {"gamma": "weight", "beta": "bias"}  # of layer norms in early checkpoints


@dataclasses.dataclass(frozen=True)
class Architecture:
    """A masked language model of `transformers`.

    name: of its class.
    kinds: what its config calls `model_type`; the first is written.
    head: of our models that are written as this one.
    sizes: our fields to those that a config must have.
    constants: our fields to others, with what `transformers` takes where a config is silent.
    attention_dropout: the field of the rate in the attention.
    fixed: the only values of fields that our encoder has.
    modules: ours to those of the tensors, `{n}` being a layer; several where ours are joined along
      the last axis.
    bare: how tensors begin that early checkpoints have without the first part of their names.
    tied: tensors that must be copies, to their originals.
    unused: matches tensors that a masked language model does not need.
    """

    name: str
    kinds: tuple[str, ...]
    head: str
    sizes: Mapping[str, str]
    constants: Mapping[str, tuple[str, Any]]
    attention_dropout: str
    fixed: Mapping[str, Any]
    modules: Mapping[str, tuple[str, ...]]
    bare: tuple[str, ...]
    tied: Mapping[str, str]
    unused: re.Pattern[str]

    def tensors(self, leaf: Leaf) -> list[str]:
        """The tensors that make up a parameter."""
        module, kind = (leaf[:-1], LEAVES[leaf[-1]]) if leaf[-1] in LEAVES else (leaf, "weight")
        layer = ""
        if module[0] == "layers":
            layer, module = module[1], module[2:]
        return [f"{name.format(n=layer)}.{kind}" for name in self.modules["/".join(module)]]

    def current(self, name: str) -> str:
        """What a tensor of a checkpoint, early ones included, is called today."""
        if name.startswith(self.bare):
            (embeddings,) = self.tensors(POSITIONS)
            name = f"{embeddings.partition('.')[0]}.{name}"
        module, _, leaf = name.rpartition(".")
        return f"{module}.{OLD_NAMES.get(leaf, leaf)}"


def _bert_modules(base: str, head: str, transform: str, norm: str) -> dict[str, tuple[str, ...]]:
    """The modules of a BERT whose encoder and head have these names."""
    embeddings, layer = f"{base}.embeddings", f"{base}.encoder.layer.{{n}}"
    attention = f"{layer}.attention"
    return {
        "embeddings/tokens": (f"{embeddings}.word_embeddings",),
        "embeddings/positions": (f"{embeddings}.position_embeddings",),
        "embeddings/token_types": (f"{embeddings}.token_type_embeddings",),
        "embeddings/norm": (f"{embeddings}.LayerNorm",),
        "attention/query_key_value": tuple(
            f"{attention}.self.{part}" for part in ("query", "key", "value")
        ),
        "attention/output": (f"{attention}.output.dense",),
        "attention_norm": (f"{attention}.output.LayerNorm",),
        "intermediate": (f"{layer}.intermediate.dense",),
        "output": (f"{layer}.output.dense",),
        "output_norm": (f"{layer}.output.LayerNorm",),
        "mlm/dense": (f"{head}.{transform}",),
        "mlm/norm": (f"{head}.{norm}",),
        "mlm": (head,),
    }


BERT = Architecture(
    name="BertForMaskedLM",
    kinds=("bert",),
    head="bert",
    sizes={
        "vocabulary_size": "vocab_size",
        "layers": "num_hidden_layers",
        "hidden": "hidden_size",
        "intermediate": "intermediate_size",
        "heads": "num_attention_heads",
    },
    constants={
        "positions": ("max_position_embeddings", 512),
        "token_types": ("type_vocab_size", 2),
        "dropout": ("hidden_dropout_prob", 0.1),
        "norm_epsilon": ("layer_norm_eps", 1e-12),
        "initial_sd": ("initializer_range", 0.02),
    },
    attention_dropout="attention_probs_dropout_prob",
    fixed={
        "hidden_act": "gelu",
        "position_embedding_type": "absolute",
        "is_decoder": False,
        "add_cross_attention": False,
        "tie_word_embeddings": True,
    },
    modules=_bert_modules("bert", "cls.predictions", "transform.dense", "transform.LayerNorm"),
    bare=("embeddings.", "encoder.", "pooler."),
    tied={
        "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
    unused=re.compile(r"bert\.pooler\.|cls\.seq_relationship\.|bert\.embeddings\.position_ids$"),
)

# A BERT whose positions are counted from behind the padding's id.
ROBERTA = dataclasses.replace(
    BERT,
    name="XLMRobertaForMaskedLM",
    kinds=("roberta", "xlm-roberta"),
    modules=_bert_modules("roberta", "lm_head", "dense", "layer_norm"),
    tied={
        "lm_head.decoder.weight": "roberta.embeddings.word_embeddings.weight",
        "lm_head.decoder.bias": "lm_head.bias",
    },
    unused=re.compile(r"roberta\.pooler\.|roberta\.embeddings\.position_ids$"),
)

# Lample & Conneau 2019: a row of `lang_embeddings` a language, where there are any. A table of
# sinusoidal positions is stored as one that is learned.
XLM = Architecture(
    name="XLMWithLMHeadModel",
    kinds=("xlm",),
    head="linear",
    sizes={
        "vocabulary_size": "vocab_size",
        "layers": "n_layers",
        "hidden": "emb_dim",
        "heads": "n_heads",
    },
    constants={
        "positions": ("max_position_embeddings", 512),
        "dropout": ("dropout", 0.1),
        "norm_epsilon": ("layer_norm_eps", 1e-12),
        "initial_sd": ("init_std", 0.02),
    },
    attention_dropout="attention_dropout",
    fixed={
        "gelu_activation": True,
        "asm": False,
        "causal": False,
        "is_encoder": True,
        "tie_word_embeddings": True,
    },
    modules={
        "embeddings/tokens": ("transformer.embeddings",),
        "embeddings/positions": ("transformer.position_embeddings",),
        "embeddings/token_types": ("transformer.lang_embeddings",),
        "embeddings/norm": ("transformer.layer_norm_emb",),
        "attention/query_key_value": tuple(
            f"transformer.attentions.{{n}}.{part}_lin" for part in "qkv"
        ),
        "attention/output": ("transformer.attentions.{n}.out_lin",),
        "attention_norm": ("transformer.layer_norm1.{n}",),
        "intermediate": ("transformer.ffns.{n}.lin1",),
        "output": ("transformer.ffns.{n}.lin2",),
        "output_norm": ("transformer.layer_norm2.{n}",),
        "mlm": ("pred_layer.proj",),
    },
    bare=(),
    tied={"pred_layer.proj.weight": "transformer.embeddings.weight"},
    unused=re.compile(r"transformer\.position_ids$"),
)

READ = (BERT, ROBERTA, XLM)
WRITTEN = (BERT, XLM)

"""The names that `transformers` gives to fields and tensors of models, and its `config.json`."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from xling_jax.files import read_json
from xling_jax.models.bert import BertConfig, Size
from xling_jax.records import Count, typed
from xling_jax.vocabulary.pieces import SPECIALS

CONFIG = "config.json"
XLM_INTERMEDIATE = 4  # the intermediate size of an XLM, in hidden sizes
OLD_VOCABULARY = "n_words"  # the name of `vocab_size` in early XLM configs
Leaf = tuple[str, ...]  # the path of a parameter
POSITIONS: Leaf = ("embeddings", "positions")
TOKEN_TYPES: Leaf = ("embeddings", "token_types")
LEAVES = {"kernel": "weight", "scale": "weight", "bias": "bias"}
OLD_NAMES = {"gamma": "weight", "beta": "bias"}  # of layer norms in early checkpoints
SIZES = ("vocabulary_size", "layers", "hidden", "intermediate", "heads")


@dataclasses.dataclass(frozen=True)
class Architecture:
    """A masked language model of `transformers`.

    Attributes:
      name: of its class.
      kinds: the values of `model_type` in its configs; the first is written.
      head: `BertConfig.head` of the models of ours that are written as this one.
      names: from our fields to its own. A config must have the `SIZES`; for others that it lacks,
        `transformers` has the same defaults as `BertConfig`.
      attention_dropout: the field of the dropout rate in the attention.
      fixed: fields of which our encoder supports only these values.
      modules: from our modules to its own, `{n}` being the layer; to several if their tensors,
        joined along the last axis, are one of ours.
      bare: beginnings of names that lack their first part in early checkpoints.
      tied: from tensors that must be copies to their originals.
      unused: matches tensors that a masked language model does not need.
    """

    name: str
    kinds: tuple[str, ...]
    head: str
    names: Mapping[str, str]
    attention_dropout: str
    fixed: Mapping[str, Any]
    modules: Mapping[str, list[str]]
    bare: tuple[str, ...]
    tied: Mapping[str, str]
    unused: re.Pattern[str]

    def tensors(self, leaf: Leaf) -> list[str]:
        module, kind = (leaf[:-1], LEAVES[leaf[-1]]) if leaf[-1] in LEAVES else (leaf, "weight")
        layer = ""
        if module[0] == "layers":
            layer, module = module[1], module[2:]
        return [f"{name.format(n=layer)}.{kind}" for name in self.modules["/".join(module)]]

    def current(self, name: str) -> str:
        """The current name of a tensor in a checkpoint, which may be an early one."""
        if name.startswith(self.bare):
            (embeddings,) = self.tensors(POSITIONS)
            name = f"{embeddings.partition('.')[0]}.{name}"
        module, _, leaf = name.rpartition(".")
        return f"{module}.{OLD_NAMES.get(leaf, leaf)}"


def _modules(table: str, base: str, head: str = "") -> dict[str, list[str]]:
    """Reads a table of our modules and the tensors', in which B, L and H stand for the names of the
    model, a layer and the head."""
    places = {"B": base, "L": f"{base}.encoder.layer.{{n}}", "H": head}
    written = re.sub(r"\b[BLH]\b", lambda place: places[place[0]], table)
    return {ours: theirs for ours, *theirs in map(str.split, written.strip().splitlines())}


_BERT_MODULES = """
embeddings/tokens B.embeddings.word_embeddings
embeddings/positions B.embeddings.position_embeddings
embeddings/token_types B.embeddings.token_type_embeddings
embeddings/norm B.embeddings.LayerNorm
attention/query_key_value L.attention.self.query L.attention.self.key L.attention.self.value
attention/output L.attention.output.dense
attention_norm L.attention.output.LayerNorm
intermediate L.intermediate.dense
output L.output.dense
output_norm L.output.LayerNorm
mlm H
"""
BERT = Architecture(
    name="BertForMaskedLM",
    kinds=("bert",),
    head="bert",
    names={
        "vocabulary_size": "vocab_size",
        "layers": "num_hidden_layers",
        "hidden": "hidden_size",
        "intermediate": "intermediate_size",
        "heads": "num_attention_heads",
        "positions": "max_position_embeddings",
        "token_types": "type_vocab_size",
        "dropout": "hidden_dropout_prob",
        "norm_epsilon": "layer_norm_eps",
        "initial_sd": "initializer_range",
    },
    attention_dropout="attention_probs_dropout_prob",
    fixed={
        "hidden_act": "gelu",
        "position_embedding_type": "absolute",
        "is_decoder": False,
        "add_cross_attention": False,
        "tie_word_embeddings": True,
    },
    modules=_modules(
        _BERT_MODULES + "mlm/dense H.transform.dense\nmlm/norm H.transform.LayerNorm",
        "bert",
        "cls.predictions",
    ),
    bare=("embeddings.", "encoder.", "pooler."),
    tied={
        "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
    unused=re.compile(
        r"bert\.pooler\.|classifier\.|cls\.seq_relationship\.|bert\.embeddings\.position_ids$"
    ),
)

# A BERT in which the first position is the padding's id plus 1.
ROBERTA = dataclasses.replace(
    BERT,
    name="XLMRobertaForMaskedLM",
    kinds=("roberta", "xlm-roberta"),
    modules=_modules(
        _BERT_MODULES + "mlm/dense H.dense\nmlm/norm H.layer_norm", "roberta", "lm_head"
    ),
    tied={
        "lm_head.decoder.weight": "roberta.embeddings.word_embeddings.weight",
        "lm_head.decoder.bias": "lm_head.bias",
    },
    unused=re.compile(r"roberta\.pooler\.|classifier\.|roberta\.embeddings\.position_ids$"),
)

# Lample & Conneau 2019. `lang_embeddings`, if there are any, have a row per language. Sinusoidal
# positions are stored as a table, as learned ones are.
_XLM_MODULES = """
embeddings/tokens B.embeddings
embeddings/positions B.position_embeddings
embeddings/token_types B.lang_embeddings
embeddings/norm B.layer_norm_emb
attention/query_key_value B.attentions.{n}.q_lin B.attentions.{n}.k_lin B.attentions.{n}.v_lin
attention/output B.attentions.{n}.out_lin
attention_norm B.layer_norm1.{n}
intermediate B.ffns.{n}.lin1
output B.ffns.{n}.lin2
output_norm B.layer_norm2.{n}
mlm pred_layer.proj
"""
XLM = Architecture(
    name="XLMWithLMHeadModel",
    kinds=("xlm",),
    head="linear",
    names={
        "vocabulary_size": "vocab_size",
        "layers": "n_layers",
        "hidden": "emb_dim",
        "heads": "n_heads",
        "positions": "max_position_embeddings",
        "dropout": "dropout",
        "norm_epsilon": "layer_norm_eps",
        "initial_sd": "init_std",
    },
    attention_dropout="attention_dropout",
    fixed={
        "gelu_activation": True,
        "asm": False,
        "causal": False,
        "is_encoder": True,
        "tie_word_embeddings": True,
    },
    modules=_modules(_XLM_MODULES, "transformer"),
    bare=(
        "embeddings.",
        "position_embeddings.",
        "lang_embeddings.",
        "position_ids",
        "layer_norm",
        "attentions.",
        "ffns.",
    ),
    tied={"pred_layer.proj.weight": "transformer.embeddings.weight"},
    unused=re.compile(r"transformer\.position_ids$"),
)

READ = (BERT, ROBERTA, XLM)
WRITTEN = (BERT, XLM)


@dataclasses.dataclass(frozen=True)
class Described:
    """What a config says about a model.

    Attributes:
      architecture: one of `READ`.
      config: its size, with float32 as dtype.
      skipped: the number of rows at the start of the table of positions that no token uses.
      has_languages: whether token types are languages.
      languages: the numbers of the languages that the config names.
    """

    architecture: Architecture
    config: BertConfig
    skipped: int
    has_languages: bool
    languages: Mapping[str, int]

    def lacks(self, leaf: Leaf) -> bool:
        """Whether the model lacks this parameter of ours, which is then zero."""
        return leaf == TOKEN_TYPES and self.architecture is XLM and not self.has_languages


@dataclasses.dataclass(frozen=True)
class _Roberta:
    pad_token_id: Count = 1


@dataclasses.dataclass(frozen=True)
class _Languages:
    n_langs: Size = 1
    use_lang_emb: bool = True
    lang2id: dict[str, Count] | None = None


_OBJECT, _BERT = TypeAdapter(dict[str, Any]), TypeAdapter(BertConfig)
_ROBERTA, _LANGUAGES = TypeAdapter(_Roberta), TypeAdapter(_Languages)
_RATES = TypeAdapter(dict[str, Annotated[float, Field(ge=0, lt=1)]])
_WAY_OUT = "mend the file, or save the model again by transformers"


def read(path: Path) -> Described:
    """Reads a config; FileNotFoundError if there is none, ValueError, naming the field, if it is
    damaged or describes a model that our encoder cannot compute."""
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file; give a folder that transformers wrote")
    values = typed(_OBJECT, read_json(path), str(path), _WAY_OUT)
    architecture = _architecture(path, values)
    names = dict(architecture.names)
    if names["vocabulary_size"] not in values and OLD_VOCABULARY in values:
        names["vocabulary_size"] = OLD_VOCABULARY
    for ours in names:
        if ours in SIZES and names[ours] not in values:
            raise ValueError(f"{path}: {names[ours]} is missing; {_WAY_OUT}")
    own = {ours: values[name] for ours, name in names.items() if name in values}
    config = typed(_BERT, own | {"head": architecture.head}, str(path), _WAY_OUT, names)
    attention = architecture.attention_dropout
    rate = values.get(attention, config.dropout)
    if typed(_RATES, {attention: rate}, str(path), _WAY_OUT)[attention] != config.dropout:
        raise ValueError(
            f"{path}: {names['dropout']}={config.dropout} and {attention}={rate}, but a model here "
            "has one rate: make them equal in the file"
        )
    said, skipped, has_languages = typed(_LANGUAGES, values, str(path), _WAY_OUT), 0, False
    if architecture is ROBERTA:
        skipped = typed(_ROBERTA, values, str(path), _WAY_OUT).pad_token_id + 1
        if skipped > config.positions - 3:
            raise ValueError(
                f"{path}: pad_token_id={skipped - 1} leaves no places of "
                f"{names['positions']}={config.positions}; {_WAY_OUT}"
            )
        config = dataclasses.replace(config, positions=config.positions - skipped)
    if architecture is XLM:
        has_languages = said.use_lang_emb and said.n_langs > 1
        config = dataclasses.replace(
            config,
            token_types=said.n_langs if has_languages else 1,
            intermediate=XLM_INTERMEDIATE * config.hidden,
        )
    return Described(architecture, config, skipped, has_languages, said.lang2id or {})


def _architecture(path: Path, values: Mapping[str, Any]) -> Architecture:
    """The model's architecture; ValueError if our encoder cannot compute it."""

    def refusal(name: str, known: str) -> ValueError:
        shown = f"{name}={values[name]!r}" if name in values else f"{name} is missing"
        return ValueError(f"{path}: {shown}: only {known} can be loaded")

    found = [each for each in READ if values.get("model_type") in each.kinds]
    if not found:
        raise refusal("model_type", ", ".join(repr(kind) for each in READ for kind in each.kinds))
    for name, value in found[0].fixed.items():
        if values.get(name, value) != value:
            raise refusal(name, repr(value))
    return found[0]


def architecture_for(config: BertConfig) -> Architecture:
    """The architecture that a model of ours is written as; ValueError if it would be an XLM of a
    size that XLMs cannot have."""
    (architecture,) = (each for each in WRITTEN if each.head == config.head)
    if architecture is XLM and config.intermediate != XLM_INTERMEDIATE * config.hidden:
        raise ValueError(
            f"models.intermediate={config.intermediate}: an XLM, which models.head={config.head!r} "
            f"is written as, has {XLM_INTERMEDIATE} times models.hidden={config.hidden}"
        )
    return architecture


def fields(config: BertConfig, special: Sequence[int] = range(SPECIALS)) -> dict[str, Any]:
    """The fields of `config.json` for a model of ours; `special` are the ids of `SPECIAL_TOKENS`,
    in their order."""
    architecture = architecture_for(config)
    pad, unknown, first, last, mask = special
    found = {
        "architectures": [architecture.name],
        "model_type": architecture.kinds[0],
        **architecture.fixed,
        **{name: getattr(config, ours) for ours, name in architecture.names.items()},
        architecture.attention_dropout: config.dropout,
        "pad_token_id": pad,
    }
    if architecture is XLM:
        found |= {
            "n_langs": config.token_types,
            "use_lang_emb": config.token_types > 1,
            "embed_init_std": config.initial_sd,
            "bos_token_id": first,
            "eos_token_id": last,
            "pad_index": pad,  # read by transformers 4 instead of pad_token_id
            "unk_index": unknown,
            "mask_index": mask,
            "mask_token_id": mask,
        }
    return found

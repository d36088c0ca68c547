"""`config.json` of `transformers` to and from the size of a model."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from xling_jax.models.bert import BertConfig
from xling_jax.models.hugging_face.names import (
    READ,
    ROBERTA,
    TOKEN_TYPES,
    WRITTEN,
    XLM,
    Architecture,
    Leaf,
)
from xling_jax.models.json_fields import RANGES, SHORTEST, Fields, bert_field
from xling_jax.vocabulary.pieces import CLS, MASK, PAD, SEP, UNK

CONFIG = "config.json"
XLM_INTERMEDIATE = 4  # times the hidden size
OLD_VOCABULARY = "n_words"  # of early XLM configs


@dataclasses.dataclass(frozen=True)
class Described:
    """What a config says.

    architecture: the model's. config: its size; it computes in float32.
    skipped: how many rows of the table of positions no token has.
    has_languages: whether a token type is a language. languages: their numbers, as far as named.
    """

    architecture: Architecture
    config: BertConfig
    skipped: int
    has_languages: bool
    languages: Mapping[str, int]

    def lacks(self, leaf: Leaf) -> bool:
        """Whether the model has no such parameter; ours is zero."""
        return leaf == TOKEN_TYPES and self.architecture is XLM and not self.has_languages


def read(path: Path) -> Described:
    """Reads a config.

    Raises:
      FileNotFoundError: there is none.
      ValueError: it cannot be read, or is of a model that is not like ours; the field is named.
    """
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file; give a folder that transformers wrote")
    fields = Fields.read(path)
    architecture = _architecture(fields)
    sizes = _sizes(fields, architecture)
    own = {ours: bert_field(fields, ours, name) for ours, name in sizes.items()}
    for ours, (name, default) in architecture.constants.items():
        own[ours] = bert_field(fields, ours, name, default)
    _require_one_rate(fields, architecture, own["dropout"])
    has_languages, skipped = False, 0
    if architecture is ROBERTA:
        skipped = fields.integer("pad_token_id", 1, at_most=own["positions"] - SHORTEST - 1) + 1
        own["positions"] -= skipped
    if architecture is XLM:
        languages = fields.integer("n_langs", 1, at_least=1)
        has_languages = fields.boolean("use_lang_emb", True) and languages > 1
        own["token_types"] = languages if has_languages else 1
        own["intermediate"] = XLM_INTERMEDIATE * own["hidden"]
    numbers = fields.object("lang2id", {})
    try:
        config = BertConfig(**own, head=architecture.head)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    named = {name: numbers.integer(name) for name in numbers.names()}
    return Described(architecture, config, skipped, has_languages, named)


def _architecture(fields: Fields) -> Architecture:
    """That of the model; ValueError if our encoder computes something else."""
    found = [each for each in READ if fields.get("model_type") in each.kinds]
    if not found:
        known = ", ".join(repr(kind) for each in READ for kind in each.kinds)
        raise fields.error("model_type", f"only {known} can be loaded")
    for name, value in found[0].fixed.items():
        if fields.get(name, value) != value:
            raise fields.error(name, f"only {value!r} can be loaded")
    return found[0]


def _sizes(fields: Fields, architecture: Architecture) -> dict[str, str]:
    """The fields that a config must have, by ours."""
    sizes = dict(architecture.sizes)
    if sizes["vocabulary_size"] not in fields and OLD_VOCABULARY in fields:
        sizes["vocabulary_size"] = OLD_VOCABULARY
    return sizes


def _require_one_rate(fields: Fields, architecture: Architecture, dropout: float) -> None:
    """ValueError if the attention has a dropout of its own."""
    attention = fields.number(architecture.attention_dropout, dropout, **RANGES["dropout"])
    if attention != dropout:
        raise ValueError(
            f"{fields.path}: {architecture.constants['dropout'][0]}={dropout} and "
            f"{architecture.attention_dropout}={attention}, but a model here has one rate: make "
            "them equal in the file"
        )


def architecture_for(config: BertConfig) -> Architecture:
    """What a model of ours is written as.

    Raises:
      ValueError: an XLM has no such size.
    """
    (architecture,) = (each for each in WRITTEN if each.head == config.head)
    if architecture is XLM and config.intermediate != XLM_INTERMEDIATE * config.hidden:
        raise ValueError(
            f"models.intermediate={config.intermediate}: an XLM, which models.head={config.head!r} "
            f"is written as, has {XLM_INTERMEDIATE} times models.hidden={config.hidden}"
        )
    return architecture


def fields(config: BertConfig) -> dict[str, Any]:
    """The fields that `transformers` reads; `config.dtype` and `config.remat` are not among them.

    The special tokens are those of `vocabulary.pieces`.
    """
    architecture = architecture_for(config)
    names = dict(architecture.sizes)
    names |= {ours: name for ours, (name, _) in architecture.constants.items()}
    found = {
        "architectures": [architecture.name],
        "model_type": architecture.kinds[0],
        **architecture.fixed,
        **{name: getattr(config, ours) for ours, name in names.items()},
        architecture.attention_dropout: config.dropout,
        "pad_token_id": PAD,
    }
    if architecture is XLM:
        found |= {
            "n_langs": config.token_types,
            "use_lang_emb": config.token_types > 1,
            "embed_init_std": config.initial_sd,
            "bos_token_id": CLS,
            "eos_token_id": SEP,
            "pad_index": PAD,  # which transformers 4 reads instead of pad_token_id
            "unk_index": UNK,
            "mask_index": MASK,
            "mask_token_id": MASK,
        }
    return found

"""`config.json` of `transformers` to and from the size of a model."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from xling_jax.models.bert import BertConfig
from xling_jax.models.hugging_face_names import READ, ROBERTA, WRITTEN, XLM, Architecture
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


def read(path: Path) -> Described:
    """Reads a config.

    Raises:
      FileNotFoundError: there is none.
      ValueError: it cannot be read, or is of a model that is not like ours; the field is named.
    """
    fields = _fields_of(path)
    architecture = _architecture(path, fields)
    for name, value in architecture.fixed.items():
        found = fields.get(name, value)
        if found != value:
            raise ValueError(f"{path}: {name}={found!r}, but only {value!r} can be loaded")
    missing = [name for name in architecture.sizes.values() if name not in fields]
    if missing:
        raise ValueError(f"{path}: {', '.join(missing)} missing")
    own = {ours: fields[name] for ours, name in architecture.sizes.items()}
    own |= {
        ours: fields.get(name, default) for ours, (name, default) in architecture.constants.items()
    }
    attention = fields.get(architecture.attention_dropout, own["dropout"])
    if attention != own["dropout"]:
        raise ValueError(
            f"{path}: {architecture.constants['dropout'][0]}={own['dropout']} and "
            f"{architecture.attention_dropout}={attention}, but a model here has one rate: make "
            "them equal in the file"
        )
    has_languages = False
    try:
        skipped = fields.get("pad_token_id", 1) + 1 if architecture is ROBERTA else 0
        if architecture is XLM:
            languages = fields.get("n_langs", 1)
            has_languages = languages > 1 and fields.get("use_lang_emb", True)
            own["token_types"] = languages if has_languages else 1
            own["intermediate"] = XLM_INTERMEDIATE * own["hidden"]
        numbers = {str(name): int(n) for name, n in (fields.get("lang2id") or {}).items()}
        config = BertConfig(
            **{**own, "positions": own["positions"] - skipped, "head": architecture.head}
        )
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error
    return Described(architecture, config, skipped, has_languages, numbers)


def _fields_of(path: Path) -> dict[str, Any]:
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file; give a folder that transformers wrote")
    try:
        fields = json.loads(path.read_text("utf-8"))
        if not isinstance(fields, dict):
            raise ValueError("it holds no object")
    except ValueError as error:
        raise ValueError(f"{path}: not a config in JSON: {error}") from error
    if OLD_VOCABULARY in fields:
        fields.setdefault("vocab_size", fields[OLD_VOCABULARY])
    return fields


def _architecture(path: Path, fields: Mapping[str, Any]) -> Architecture:
    kind = fields.get("model_type")
    for architecture in READ:
        if kind in architecture.kinds:
            return architecture
    known = ", ".join(repr(kind) for architecture in READ for kind in architecture.kinds)
    raise ValueError(f"{path}: model_type={kind!r}, but only {known} can be loaded")


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

"""Weights of BERT to and from a folder that `transformers` reads and writes.

The folder holds `config.json` and `model.safetensors`, as its BertForMaskedLM saves them.
RobertaForMaskedLM and XLMRobertaForMaskedLM differ in names only, and in positions that are
counted from behind the padding's: their folders are read too.
"""

import json
import os
import re
from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import safetensors
import safetensors.numpy

from xling_jax.files import write_beside
from xling_jax.models import heads
from xling_jax.models.bert import BertConfig

CONFIG, WEIGHTS, PICKLE = "config.json", "model.safetensors", "pytorch_model.bin"
SIZES = {
    "vocabulary_size": "vocab_size",
    "layers": "num_hidden_layers",
    "hidden": "hidden_size",
    "intermediate": "intermediate_size",
    "heads": "num_attention_heads",
}  # our fields to theirs
CONSTANTS = {
    "positions": ("max_position_embeddings", 512),
    "token_types": ("type_vocab_size", 2),
    "dropout": ("hidden_dropout_prob", 0.1),
    "norm_epsilon": ("layer_norm_eps", 1e-12),
    "initial_sd": ("initializer_range", 0.02),
}  # with what transformers takes where the file is silent
BERT, ROBERTA = "bert", ("roberta", "xlm-roberta")  # model_type
FIXED = {
    "hidden_act": "gelu",
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
}  # the only values that our encoder has
MODULES = {
    "embeddings/tokens": ("bert.embeddings.word_embeddings",),
    "embeddings/positions": ("bert.embeddings.position_embeddings",),
    "embeddings/token_types": ("bert.embeddings.token_type_embeddings",),
    "embeddings/norm": ("bert.embeddings.LayerNorm",),
    "attention/query_key_value": tuple(f"attention.self.{x}" for x in ("query", "key", "value")),
    "attention/output": ("attention.output.dense",),
    "attention_norm": ("attention.output.LayerNorm",),
    "intermediate": ("intermediate.dense",),
    "output": ("output.dense",),
    "output_norm": ("output.LayerNorm",),
    "mlm/dense": ("cls.predictions.transform.dense",),
    "mlm/norm": ("cls.predictions.transform.LayerNorm",),
    "mlm": ("cls.predictions",),
}  # several where ours are joined along the last axis
LEAVES = {"kernel": "weight", "scale": "weight", "bias": "bias"}
OLD_NAMES = {"gamma": "weight", "beta": "bias"}  # of layer norms in early checkpoints
TIED = {
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.bias": "cls.predictions.bias",
}
FROM_ROBERTA = {
    "roberta.": "bert.",
    "lm_head.dense.": "cls.predictions.transform.dense.",
    "lm_head.layer_norm.": "cls.predictions.transform.LayerNorm.",
    "lm_head.decoder.": "cls.predictions.decoder.",
    "lm_head.": "cls.predictions.",
}  # beginnings of names, the first that fits
POSITIONS = "bert.embeddings.position_embeddings.weight"
UNUSED = re.compile(r"bert\.pooler\.|cls\.seq_relationship\.|bert\.embeddings\.position_ids$")
DTYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}


def load(folder: str | os.PathLike[str]) -> tuple[BertConfig, dict[str, Any]]:
    """Reads a masked language model.

    Weights of any floating type become float32. The pooler and the next-sentence head of
    checkpoints that have them are left out.

    Returns:
      The config, which computes in float32, and plain params as `heads.initial_params` gives.

    Raises:
      FileNotFoundError: one of the two files is missing.
      ValueError: another architecture, a file that cannot be read, or tensors that are missing,
        unknown, misshapen or not what the tied output needs.
    """
    folder = Path(folder)
    config, skipped = _read_config(folder / CONFIG)
    path = require(folder)
    tensors = _read_tensors(path)
    if skipped and POSITIONS in tensors:
        tensors[POSITIONS] = tensors[POSITIONS][skipped:]
    shapes = _shapes(config)
    params: dict[str, Any] = {}
    for leaf, shape in shapes.items():
        joined = _joined(path, tensors, leaf, shape)
        _insert(params, leaf, jnp.asarray(joined, jnp.float32))
    _require_known(path, tensors, {name for leaf in shapes for name in _names(leaf)})
    return config, params


def require(folder: Path) -> Path:
    """The file of the weights; FileNotFoundError, or ValueError for a pickle, if there is none."""
    path = folder / WEIGHTS
    if not path.exists():
        pickle = path.with_name(PICKLE)
        if pickle.exists():
            raise ValueError(
                f"{pickle} is a pickle, which can run any code when it is read. Convert it: "
                "AutoModelForMaskedLM.from_pretrained(FOLDER).save_pretrained(NEW_FOLDER)"
            )
        raise FileNotFoundError(f"{path}: no such file (one file, not several shards, is read)")
    return path


def save(folder: str | os.PathLike[str], config: BertConfig, params: Mapping[str, Any]) -> None:
    """Writes a masked language model; `config.dtype` is not stored.

    Args:
      folder: made where it is missing.
      config: the model's.
      params: plain, as `heads.initial_params` gives and `partition.select` picks.

    Raises:
      ValueError: params are not those of a model of this config, or its head is not BERT's.
    """
    if config.head != "bert":
        raise ValueError(
            f"models.head={config.head!r}: BertForMaskedLM has no such head; models.stored writes "
            "this model"
        )
    leaves = {
        tuple(key.key for key in path): np.asarray(leaf, np.float32)
        for path, leaf in jax.tree_util.tree_leaves_with_path(params)
    }
    shapes = _shapes(config)
    for leaf in [*shapes, *leaves]:
        have, want = leaves[leaf].shape if leaf in leaves else None, shapes.get(leaf)
        if have != want:
            raise ValueError(
                f"params/{'/'.join(leaf)} has the shape {have}, but the config wants {want}: "
                "give the plain params of one model, and the config that it was made with"
            )
    tensors = {}
    for leaf in shapes:
        names = _names(leaf)
        for name, part in zip(names, np.split(leaves[leaf], len(names), axis=-1), strict=True):
            # Safetensors writes the memory as it lies, whatever the strides.
            tensors[name] = np.ascontiguousarray(part.T if leaf[-1] == "kernel" else part)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    # Transformers refuses files that do not say which framework's layout they have.
    write_beside(folder / WEIGHTS, safetensors.numpy.save(tensors, metadata={"format": "pt"}))
    write_beside(folder / CONFIG, (json.dumps(_config_fields(config), indent=2) + "\n").encode())


def _config_fields(config: BertConfig) -> dict[str, Any]:
    theirs = SIZES | {ours: name for ours, (name, _) in CONSTANTS.items()}
    return {
        "architectures": ["BertForMaskedLM"],
        "model_type": BERT,
        **FIXED,
        **{name: getattr(config, ours) for ours, name in theirs.items()},
        "attention_probs_dropout_prob": config.dropout,
        "pad_token_id": 0,
    }


def _read_config(path: Path) -> tuple[BertConfig, int]:
    """The config, and how many rows of the table of positions no token has."""
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file; give a folder that transformers wrote")
    try:
        fields = json.loads(path.read_text("utf-8"))
        if not isinstance(fields, dict):
            raise ValueError("it holds no object")
    except ValueError as error:
        raise ValueError(f"{path}: not a config in JSON: {error}") from error
    kind = fields.get("model_type")
    if kind != BERT and kind not in ROBERTA:
        known = ", ".join(map(repr, (BERT, *ROBERTA)))
        raise ValueError(f"{path}: model_type={kind!r}, but only {known} can be loaded")
    for name, value in FIXED.items():
        found = fields.get(name, value)
        if found != value:
            raise ValueError(f"{path}: {name}={found!r}, but only {value!r} can be loaded")
    missing = [name for name in SIZES.values() if name not in fields]
    if missing:
        raise ValueError(f"{path}: {', '.join(missing)} missing")
    own = {ours: fields[name] for ours, name in SIZES.items()}
    own |= {ours: fields.get(name, default) for ours, (name, default) in CONSTANTS.items()}
    attention = fields.get("attention_probs_dropout_prob", own["dropout"])
    if attention != own["dropout"]:
        raise ValueError(
            f"{path}: hidden_dropout_prob={own['dropout']} and attention_probs_dropout_prob="
            f"{attention}, but a model here has one rate: make them equal in the file"
        )
    try:
        skipped = fields.get("pad_token_id", 1) + 1 if kind in ROBERTA else 0
        return BertConfig(**{**own, "positions": own["positions"] - skipped}), skipped
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error


def _read_tensors(path: Path) -> dict[str, np.ndarray]:
    """The file's tensors under today's names."""
    try:
        # The numpy interface knows no bfloat16.
        found = safetensors.deserialize(path.read_bytes())
    except safetensors.SafetensorError as error:
        raise ValueError(f"{path}: not a safetensors file: {error}") from error
    tensors: dict[str, np.ndarray] = {}
    for name, content in found:
        current = _current_name(name)
        if UNUSED.match(current):
            continue
        if content["dtype"] not in DTYPES:
            raise ValueError(f"{path}: tensor {name} is of type {content['dtype']}, not floating")
        if current in tensors:
            raise ValueError(f"{path}: tensor {name} is there under two names")
        dtype = jnp.dtype(DTYPES[content["dtype"]])
        tensors[current] = np.frombuffer(content["data"], dtype).reshape(content["shape"])
    for copy, original in TIED.items():
        if original not in tensors and copy in tensors:
            tensors[original] = tensors[copy]
    return tensors


def _current_name(name: str) -> str:
    """The name in a BertForMaskedLM of today."""
    for old, new in FROM_ROBERTA.items():
        if name.startswith(old):
            name = new + name.removeprefix(old)
            break
    module, _, leaf = name.rpartition(".")
    if module.startswith(("embeddings.", "encoder.", "pooler.")):
        module = f"bert.{module}"
    return f"{module}.{OLD_NAMES.get(leaf, leaf)}"


def _shapes(config: BertConfig) -> dict[tuple[str, ...], tuple[int, ...]]:
    """The shape of every leaf of the params, by its path."""
    tree = heads.param_shapes(config)
    return {
        tuple(key.key for key in path): leaf.shape
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
    }


def _names(leaf: tuple[str, ...]) -> list[str]:
    """The tensors that make up a leaf of the params."""
    module, kind = (leaf[:-1], LEAVES[leaf[-1]]) if leaf[-1] in LEAVES else (leaf, "weight")
    prefix = ""
    if module[0] == "layers":
        prefix, module = f"bert.encoder.layer.{module[1]}.", module[2:]
    return [f"{prefix}{name}.{kind}" for name in MODULES["/".join(module)]]


def _joined(
    path: Path, tensors: Mapping[str, np.ndarray], leaf: tuple[str, ...], shape: tuple[int, ...]
) -> np.ndarray:
    """The leaf of this shape; ValueError if a tensor is missing or misshapen."""
    names, parts = _names(leaf), []
    wanted = (*shape[:-1], shape[-1] // len(names))
    if leaf[-1] == "kernel":
        wanted = wanted[::-1]
    for name in names:
        if name not in tensors:
            raise ValueError(
                f"{path}: tensor {name} is missing. A masked language model is needed, as "
                "AutoModelForMaskedLM saves it"
            )
        if tensors[name].shape != wanted:
            raise ValueError(
                f"{path}: tensor {name} has the shape {tensors[name].shape}, but {CONFIG} "
                f"wants {wanted}"
            )
        parts.append(tensors[name].T if leaf[-1] == "kernel" else tensors[name])
    return np.concatenate(parts, axis=-1)


def _require_known(path: Path, tensors: Mapping[str, np.ndarray], known: Container[str]) -> None:
    """ValueError if a tensor is not among the known, or the output not tied to the embeddings."""
    for name in tensors:
        if name not in known and name not in TIED:
            raise ValueError(f"{path}: tensor {name} is unknown in a model of its {CONFIG}")
    for copy, original in TIED.items():
        if copy in tensors and not np.array_equal(tensors[copy], tensors[original]):
            raise ValueError(
                f"{path}: tensor {copy} differs from {original}, but only tied ones can be loaded"
            )


def _insert(tree: dict[str, Any], path: Iterable[str], value: Any) -> None:
    *parents, last = path
    for name in parents:
        tree = tree.setdefault(name, {})
    tree[last] = value

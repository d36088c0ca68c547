"""Weights of BERT and XLM to and from a folder that `transformers` reads and writes.

The folder holds `config.json` and `model.safetensors`. Models with BERT's head are written as
BertForMaskedLM saves them, those with a linear head as XLMWithLMHeadModel does. The folders of
RobertaForMaskedLM and XLMRobertaForMaskedLM are read too: they differ from BERT's in names, and in
positions, which start after the padding's id.
"""

import dataclasses
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import safetensors.numpy
from flax import traverse_util

from xling_jax.files import link_beside, require_regular, write_beside
from xling_jax.models import heads, tensor_files
from xling_jax.models.bert import BertConfig
from xling_jax.models.hugging_face import config as hf
from xling_jax.models.hugging_face.config import Architecture, Described, Leaf
from xling_jax.models.tensor_files import TensorFile
from xling_jax.vocabulary.pieces import SPECIALS

WEIGHTS, PICKLE = "model.safetensors", "pytorch_model.bin"


def load(
    folder: str | os.PathLike[str], language: str | None = None
) -> tuple[BertConfig, dict[str, Any]]:
    """Reads a masked language model: its config, with float32 as dtype, and its plain params. They
    have no `mlm` if the folder holds an encoder without a head.

    Weights of any floating type become float32. A pooler and a next-sentence head are left out. The
    language embeddings of an XLM become the token types, in its order; an XLM without them has one
    token type, which is zero. Of a RoBERTa's token types only the first is kept: its tokenizer
    gives no other, so it alone was trained.

    Args:
      folder: one that `transformers` wrote.
      language: if the model has language embeddings, keep only this language's, as token type 0.
        None: keep all.

    Raises:
      FileNotFoundError: one of the two files is missing.
      ValueError: another architecture, a file that cannot be read, a language that the model does
        not have, or tensors that are missing, unknown, misshapen, not finite in float32, or not
        tied as the output needs.
    """
    folder = Path(folder)
    described = hf.read(folder / hf.CONFIG)
    architecture, config = described.architecture, described.config
    kept = 0 if architecture is hf.ROBERTA else None
    if language is not None and described.has_languages:
        kept = _number_of(folder / hf.CONFIG, described, language)
    file = TensorFile(require(folder))
    names = _names_in(file, architecture)
    file.require_layers(config.layers, hf.CONFIG)
    shapes = _shapes(config)
    head = {leaf for leaf in shapes if leaf[0] == "mlm"}
    of_head = {name for leaf in head for name in architecture.tensors(leaf)} | {*architecture.tied}
    if of_head.isdisjoint(names):
        shapes = {leaf: shape for leaf, shape in shapes.items() if leaf not in head}
    _require_tensors(file, names, described, shapes)
    params: dict[Leaf, jax.Array] = {}
    for leaf, shape in shapes.items():
        if described.lacks(leaf):
            params[leaf] = jnp.zeros(shape)
            continue
        value = _joined(leaf, (file.read(names[name]) for name in architecture.tensors(leaf)))
        params[leaf] = jnp.asarray(value[described.skipped :] if leaf == hf.POSITIONS else value)
    if kept is not None:
        params[hf.TOKEN_TYPES] = params[hf.TOKEN_TYPES][kept : kept + 1]
        config = dataclasses.replace(config, token_types=1)
    return config, traverse_util.unflatten_dict(params)


def _names_in(file: TensorFile, architecture: Architecture) -> dict[str, str]:
    """The names of a file's tensors by their current names, without unused tensors; ValueError if a
    tensor is not of a floating type, or there under two names."""
    names: dict[str, str] = {}
    for name in file.shapes:
        current = architecture.current(name)
        if architecture.unused.match(current):
            continue
        file.require_floating(name)
        if current in names:
            raise ValueError(f"{file.path}: tensor {name} is there under two names")
        names[current] = name
    for copy, original in architecture.tied.items():
        if original not in names and copy in names:
            names[original] = names[copy]
    return names


def _joined(leaf: Leaf, parts: Iterable[np.ndarray]) -> np.ndarray:
    return np.concatenate([part.T if leaf[-1] == "kernel" else part for part in parts], axis=-1)


def _parted(leaf: Leaf, value: np.ndarray, names: list[str]) -> dict[str, np.ndarray]:
    """The tensors that a parameter is made of; the inverse of `_joined`."""
    parts = np.split(value, len(names), axis=-1)
    return {
        name: part.T if leaf[-1] == "kernel" else part
        for name, part in zip(names, parts, strict=True)
    }


def _require_tensors(
    file: TensorFile,
    names: Mapping[str, str],
    described: Described,
    shapes: Mapping[Leaf, tuple[int, ...]],
) -> None:
    """ValueError unless a file's tensors fit parameters of these shapes and the output is tied."""
    architecture = described.architecture
    wanted: dict[str, tuple[int, ...]] = {}
    for leaf, (first, *others) in shapes.items():
        if described.lacks(leaf):
            continue
        shape = (first + described.skipped if leaf == hf.POSITIONS else first, *others)
        tensors = architecture.tensors(leaf)
        part = (*shape[:-1], shape[-1] // len(tensors))
        wanted |= dict.fromkeys(tensors, part[::-1] if leaf[-1] == "kernel" else part)
    tied = {copy: names[copy] for copy in architecture.tied if copy in names}
    wanted |= {copy: wanted[architecture.tied[copy]] for copy in tied}
    found = {name: file.shapes[stored] for name, stored in names.items()}
    way_out = "An encoder is needed, as AutoModelForMaskedLM or AutoModel saves it"
    tensor_files.require_shapes(file.path, found, wanted, hf.CONFIG, way_out)
    for copy, stored in tied.items():
        original = architecture.tied[copy]
        if stored == names[original]:
            continue
        if not np.array_equal(file.read(stored), file.read(names[original])):
            raise ValueError(
                f"{file.path}: tensor {copy} differs from {original}, but only tied ones can be "
                "loaded"
            )


def _number_of(path: Path, described: Described, language: str) -> int:
    number = described.languages.get(language, -1)
    if not 0 <= number < described.config.token_types:
        known = ", ".join(sorted(described.languages)) or "none"
        raise ValueError(
            f"{path}: the model has language embeddings, and lang2id names none for {language!r} "
            f"(it names {known}): give one of these names to the language, or add it to lang2id"
        )
    return number


def require(folder: Path) -> Path:
    """The file of the weights; if it is missing, ValueError if there is a pickle instead, else
    FileNotFoundError."""
    path = folder / WEIGHTS
    if not path.exists():
        pickle = path.with_name(PICKLE)
        if pickle.exists():
            raise ValueError(
                f"{pickle} is a pickle, which can run any code when it is read. Convert it: "
                "AutoModelForMaskedLM.from_pretrained(FOLDER).save_pretrained(NEW_FOLDER)"
            )
        raise FileNotFoundError(f"{path}: no such file (one file, not several shards, is read)")
    require_regular(path)
    return path


def save(
    folder: str | os.PathLike[str],
    config: BertConfig,
    params: Mapping[str, Any],
    special: Sequence[int] = range(SPECIALS),
) -> None:
    """Writes a masked language model of plain params; `config.dtype` is not stored. `special` are
    the ids of `SPECIAL_TOKENS`, in their order.

    An XLM adds language embeddings only if it is given `langs`. So token type 0 is added to its
    positions, and if there are more types, its language embeddings are their differences from type
    0: without `langs` it computes what our model does with token type 0, with `langs` what ours
    does with these token types. Without an attention mask it leaves out the tokens of the
    padding's id.

    Raises:
      ValueError: the params do not fit the config, or `transformers` has no such model.
    """
    architecture = hf.architecture_for(config)
    given = traverse_util.flatten_dict(dict(params))
    leaves = {path: np.asarray(leaf, np.float32) for path, leaf in given.items()}
    shapes = _shapes(config)
    for leaf in [*shapes, *leaves]:
        have, want = leaves[leaf].shape if leaf in leaves else None, shapes.get(leaf)
        if have != want:
            raise ValueError(
                f"params/{'/'.join(leaf)} has the shape {have}, but the config wants {want}: "
                "give the plain params of one model, and the config that it was made with"
            )
    if architecture is hf.XLM:
        types = leaves.pop(hf.TOKEN_TYPES)
        leaves[hf.POSITIONS] = leaves[hf.POSITIONS] + types[0]
        if len(types) > 1:
            leaves[hf.TOKEN_TYPES] = types - types[0]
    write(Path(folder), tensors_of(architecture, leaves), hf.fields(config, special))


def tensors_of(
    architecture: Architecture, leaves: Mapping[Leaf, np.ndarray]
) -> dict[str, np.ndarray]:
    """The tensors of `transformers`, by name, for parameters by path."""
    found: dict[str, np.ndarray] = {}
    for leaf, value in leaves.items():
        found |= _parted(leaf, value, architecture.tensors(leaf))
    return found


def write(
    folder: Path,
    tensors: Mapping[str, np.ndarray],
    fields: Mapping[str, Any],
    like: Path | None = None,
) -> None:
    """Writes the weights and the config of a model; `like` is the folder of one with the same
    weights, which shares its file of them."""
    if like is not None:
        link_beside(folder / WEIGHTS, like / WEIGHTS)
    else:
        # Safetensors writes memory as it is, ignoring strides.
        laid = {name: np.ascontiguousarray(tensor, np.float32) for name, tensor in tensors.items()}
        # Transformers refuses files that do not name the framework they are from.
        write_beside(folder / WEIGHTS, safetensors.numpy.save(laid, metadata={"format": "pt"}))
    write_beside(folder / hf.CONFIG, json.dumps(fields, indent=2) + "\n")


def _shapes(config: BertConfig) -> dict[Leaf, tuple[int, ...]]:
    """The shape of every leaf of the plain params, by its path."""
    leaves = traverse_util.flatten_dict(heads.param_shapes(config))
    return {path: leaf.shape for path, leaf in leaves.items()}

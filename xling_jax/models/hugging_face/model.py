"""Weights of BERT and XLM to and from a folder that `transformers` reads and writes.

The folder holds `config.json` and `model.safetensors`. Models with BERT's head are as
BertForMaskedLM saves them, those with a linear one as XLMWithLMHeadModel does. The folders of
RobertaForMaskedLM and XLMRobertaForMaskedLM are read too: they differ from BERT's in names, and in
positions that are counted from behind the padding's.
"""

import dataclasses
import json
import os
from collections.abc import Iterable, Mapping
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

WEIGHTS, PICKLE = "model.safetensors", "pytorch_model.bin"


def load(
    folder: str | os.PathLike[str], language: str | None = None
) -> tuple[BertConfig, dict[str, Any]]:
    """Reads a masked language model, or an encoder without a head: the config, which computes in
    float32, and plain params, which then have no `mlm`.

    Weights of any floating type become float32. The pooler and the next-sentence head of
    checkpoints that have them are left out. The language embeddings of an XLM are the token types,
    in its order; an XLM without them has one token type, which is zero.

    folder: that `transformers` wrote. language: of a model with language embeddings, keep only this
    one's, as token type 0; others stay as they are. None: keep all.
    FileNotFoundError: one of the two files is missing. ValueError: another architecture, a file
    that cannot be read, a language that the model does not have, or tensors that are missing,
    unknown, misshapen, not finite in float32 or not what the tied output needs.
    """
    folder = Path(folder)
    described = hf.read(folder / hf.CONFIG)
    architecture, config = described.architecture, described.config
    kept = None
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
    """The names of a file's tensors by those of today, unused tensors left out; ValueError if a
    tensor is not of a floating type, or there twice."""
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
    """The tensors that make up a parameter; `_joined` is the way back."""
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
    """ValueError unless a file's tensors have these shapes and the output is tied."""
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
    require_regular(path)
    return path


def save(folder: str | os.PathLike[str], config: BertConfig, params: Mapping[str, Any]) -> None:
    """Writes a masked language model of plain params; `config.dtype` is not stored.

    An XLM adds no language embedding unless it is given languages. So token type 0 is added to its
    positions, and where there are more, its language embeddings are what they differ from 0 by:
    without `langs` it computes what ours does with token type 0, with `langs` the same as ours with
    these token types. Where it gets no attention mask it takes tokens of id 0 for padding.

    ValueError: params are not those of a model of this config, or `transformers` has no such model.
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
    write(Path(folder), tensors_of(architecture, leaves), hf.fields(config))


def tensors_of(
    architecture: Architecture, leaves: Mapping[Leaf, np.ndarray]
) -> dict[str, np.ndarray]:
    """The tensors that `transformers` has for parameters by their paths."""
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
    weights, whose file is shared."""
    if like is not None:
        link_beside(folder / WEIGHTS, like / WEIGHTS)
    else:
        # Safetensors writes the memory as it lies, whatever the strides.
        laid = {name: np.ascontiguousarray(tensor, np.float32) for name, tensor in tensors.items()}
        # Transformers refuses files that do not say which framework's layout they have.
        write_beside(folder / WEIGHTS, safetensors.numpy.save(laid, metadata={"format": "pt"}))
    write_beside(folder / hf.CONFIG, json.dumps(fields, indent=2) + "\n")


def _shapes(config: BertConfig) -> dict[Leaf, tuple[int, ...]]:
    """The shape of every leaf of the params, by its path."""
    leaves = traverse_util.flatten_dict(heads.param_shapes(config))
    return {path: leaf.shape for path, leaf in leaves.items()}

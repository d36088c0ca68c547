"""`model.safetensors` of `transformers` to parameters."""

from collections.abc import Container, Mapping
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import safetensors

from xling_jax.models.hugging_face_config import CONFIG
from xling_jax.models.hugging_face_names import Architecture, Leaf

DTYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}


def read(path: Path, architecture: Architecture) -> dict[str, np.ndarray]:
    """The file's tensors under today's names, those that are not used left out.

    Raises:
      ValueError: the file cannot be read, or a tensor is not of a floating type.
    """
    try:
        # The numpy interface knows no bfloat16.
        found = safetensors.deserialize(path.read_bytes())
    except safetensors.SafetensorError as error:
        raise ValueError(f"{path}: not a safetensors file: {error}") from error
    tensors: dict[str, np.ndarray] = {}
    for name, content in found:
        current = architecture.current(name)
        if architecture.unused.match(current):
            continue
        if content["dtype"] not in DTYPES:
            raise ValueError(f"{path}: tensor {name} is of type {content['dtype']}, not floating")
        if current in tensors:
            raise ValueError(f"{path}: tensor {name} is there under two names")
        dtype = jnp.dtype(DTYPES[content["dtype"]])
        tensors[current] = np.frombuffer(content["data"], dtype).reshape(content["shape"])
    for copy, original in architecture.tied.items():
        if original not in tensors and copy in tensors:
            tensors[original] = tensors[copy]
    return tensors


def joined(
    path: Path,
    tensors: Mapping[str, np.ndarray],
    names: list[str],
    leaf: Leaf,
    shape: tuple[int, ...],
) -> np.ndarray:
    """The parameter of this shape that the named tensors make up.

    Raises:
      ValueError: a tensor is missing or misshapen.
    """
    parts = []
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


def parted(leaf: Leaf, value: np.ndarray, names: list[str]) -> dict[str, np.ndarray]:
    """The tensors that make up a parameter; `joined` is the way back."""
    parts = np.split(value, len(names), axis=-1)
    # Safetensors writes the memory as it lies, whatever the strides.
    return {
        name: np.ascontiguousarray(part.T if leaf[-1] == "kernel" else part)
        for name, part in zip(names, parts, strict=True)
    }


def require_known(
    path: Path,
    tensors: Mapping[str, np.ndarray],
    architecture: Architecture,
    known: Container[str],
) -> None:
    """ValueError if a tensor is not among the known, or the output not tied to the embeddings."""
    for name in tensors:
        if name not in known and name not in architecture.tied:
            raise ValueError(f"{path}: tensor {name} is unknown in a model of its {CONFIG}")
    for copy, original in architecture.tied.items():
        if copy in tensors and not np.array_equal(tensors[copy], tensors[original]):
            raise ValueError(
                f"{path}: tensor {copy} differs from {original}, but only tied ones can be loaded"
            )

"""`model.safetensors` of `transformers` to parameters."""

from collections.abc import Iterable, Mapping

import numpy as np

from xling_jax.models.hugging_face.names import Architecture, Leaf
from xling_jax.models.tensor_files import TensorFile


def names_in(file: TensorFile, architecture: Architecture) -> dict[str, str]:
    """The names of a file's tensors by those of today, unused tensors left out.

    Raises:
      ValueError: a tensor is not of a floating type, or there twice.
    """
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


def require_tied(file: TensorFile, names: Mapping[str, str], architecture: Architecture) -> None:
    """ValueError if the output is not tied to the embeddings."""
    for copy, original in architecture.tied.items():
        if copy not in names or names[copy] == names[original]:
            continue
        if not np.array_equal(file.read(names[copy]), file.read(names[original])):
            raise ValueError(
                f"{file.path}: tensor {copy} differs from {original}, but only tied ones can be "
                "loaded"
            )


def part_shape(leaf: Leaf, shape: tuple[int, ...], parts: int) -> tuple[int, ...]:
    """The shape of each of the tensors that make up a parameter of a shape."""
    shape = (*shape[:-1], shape[-1] // parts)
    return shape[::-1] if leaf[-1] == "kernel" else shape


def joined(leaf: Leaf, parts: Iterable[np.ndarray]) -> np.ndarray:
    """The parameter that tensors make up."""
    return np.concatenate([part.T if leaf[-1] == "kernel" else part for part in parts], axis=-1)


def parted(leaf: Leaf, value: np.ndarray, names: list[str]) -> dict[str, np.ndarray]:
    """The tensors that make up a parameter; `joined` is the way back."""
    parts = np.split(value, len(names), axis=-1)
    # Safetensors writes the memory as it lies, whatever the strides.
    return {
        name: np.ascontiguousarray(part.T if leaf[-1] == "kernel" else part)
        for name, part in zip(names, parts, strict=True)
    }

"""Safetensors files, whose names and shapes can be checked before any values are read."""

from collections.abc import Mapping
from pathlib import Path

import ml_dtypes  # noqa: F401  (gives NumPy bfloat16)
import numpy as np
import safetensors

from xling_jax.files import require_regular

FLOATING = ("F64", "F32", "F16", "BF16")
Shape = tuple[int, ...]


class TensorFile:
    """The tensors in a file at `path`, with their `shapes` by name; `read` reads one."""

    def __init__(self, path: Path):
        """Reads the header; ValueError if this is not a safetensors file, or an incomplete one."""
        require_regular(path)
        self.path = path
        try:
            self._file = safetensors.safe_open(path, "numpy")
            self._tensors = {name: self._file.get_slice(name) for name in self._file.keys()}
        except safetensors.SafetensorError as error:
            raise ValueError(
                f"{path} is not a safetensors file, or damaged: {error}. Restore it or write it "
                "again"
            ) from error
        self.shapes = {name: tuple(x.get_shape()) for name, x in self._tensors.items()}

    def require_layers(self, layers: int, config: str) -> None:
        """ValueError if a config wants more layers than there are tensors."""
        if layers > len(self.shapes):
            raise ValueError(
                f"{self.path} has {len(self.shapes)} tensors, but {config} wants {layers} layers: "
                "they do not belong together"
            )

    def require_floating(self, name: str) -> None:
        """ValueError unless the tensor's type is one of `FLOATING`."""
        if (dtype := self._tensors[name].get_dtype()) not in FLOATING:
            raise ValueError(
                f"{self.path}: tensor {name} is of type {dtype}, and {', '.join(FLOATING)} are read"
            )

    def read(self, name: str) -> np.ndarray:
        """A tensor as float32; ValueError unless it is of a `FLOATING` type and all its values are
        finite in float32."""
        self.require_floating(name)
        value = self._file.get_tensor(name)
        with np.errstate(over="ignore"):
            found = np.asarray(value, np.float32)
        if not np.isfinite(found).all():
            what = "too large for float32" if np.isfinite(value).all() else "NaN or infinite"
            number = int((~np.isfinite(found)).sum())
            raise ValueError(
                f"{self.path}: {number} of the {found.size} values of tensor {name} are {what}: "
                "restore the file, or take another checkpoint"
            )
        return found


def require_shapes(
    path: Path, found: Mapping[str, Shape], wanted: Mapping[str, Shape], config: str, way_out: str
) -> None:
    """ValueError unless a file at `path` has just the tensors wanted, by name and shape.

    Args:
      config: the name of the file that says what is wanted.
      way_out: what to do if a tensor is missing.
    """
    for name, shape in wanted.items():
        if name not in found:
            raise ValueError(f"{path}: tensor {name} is missing. {way_out}")
        if found[name] != shape:
            raise ValueError(
                f"{path}: tensor {name} has the shape {found[name]}, but {config} wants {shape}"
            )
    for name in found:
        if name not in wanted:
            raise ValueError(f"{path}: tensor {name} is unknown in a model of its {config}")

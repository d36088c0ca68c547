"""Stored models that the rows of a config name, with their own weights or with random ones."""

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from ml_collections import ConfigDict

from xling_jax import errors
from xling_jax.models import folders as model_folders
from xling_jax.models.text_model import TextModel

_ENCODER = re.compile(r"(?:(random)\[)?([\w.-]+)(?(1)\])")


@dataclasses.dataclass(frozen=True)
class Encoder:
    """A model's name in the config, and whether its weights are replaced by random ones."""

    model: str
    is_random: bool

    def require(self, models: Iterable[str]) -> None:
        """Raises ValueError if there is no such model."""
        if self.model not in models:
            raise ValueError(
                f"there is no model {self.model!r} among {', '.join(models) or 'none'}"
            )

    def load(self, folder: Path, language: str, seed: int) -> TextModel:
        """The model in a folder, or a random one with its pieces and its size, drawn with a seed
        from FIRST_UNTRAINED_SEED on. FileNotFoundError or ValueError, naming the field, if there is
        no model, or it is damaged or of another language."""
        with errors.in_field(f"models.{self.model}"):
            model = model_folders.load(folder, language)
        return model.randomized(seed) if self.is_random else model

    def manifest(self, paths: Iterable[Path]) -> list[dict[str, Any]]:
        """The files of the model's folders, with their hashes; errors name the field."""
        with errors.in_field(f"models.{self.model}"):
            return [entry for path in paths for entry in model_folders.manifest(path)]


def parse(text: str) -> Encoder | None:
    """Reads `MODEL` or `random[MODEL]`; None if it is neither."""
    match = _ENCODER.fullmatch(text.strip())
    return Encoder(match[2], match[1] is not None) if match else None


def named(given: str, taken: Iterable[str] = ()) -> dict[str, str]:
    """Splits folders joined by +, and returns them by names for their models.

    A model is called after the last part of its path without a placeholder, where a part
    `rowROW_seedSEED`, also with a placeholder for SEED, counts as ROW. `row` is put before a name
    that is `taken` or cannot be a field's, and a number after one that comes again.
    """
    found: dict[str, str] = {}
    for folder in split(given):
        first, number = _name(folder, taken), 2
        name = first
        while name in found:
            name, number = f"{first}_{number}", number + 1
        found[name] = folder
    return found


def split(given: str) -> list[str]:
    """Folders that are joined by +. A folder's name may itself contain a +, if there is such a
    folder."""
    parts, found = given.split("+"), list[str]()
    while parts:
        names = ["+".join(parts[:number]) for number in range(1, len(parts) + 1)]
        found.append(next(filter(_is_folder, names), parts[0]))
        del parts[: found[-1].count("+") + 1]
    return found


def _is_folder(given: str) -> bool:
    """Whether there is such a folder, or the one around its first part with a placeholder."""
    before, brace, _ = given.partition("{")
    base = Path(before).expanduser()
    return (base.parent if brace else base).is_dir()


def _name(folder: str, taken: Iterable[str]) -> str:
    parts = [re.sub(r"^row(.+)_seed.+$", r"\1", part) for part in PurePath(folder).parts]
    name = next((part for part in reversed(parts) if "{" not in part), "model")
    name = re.sub(r"\W+", "_", name).strip("_")
    is_free = name.isidentifier() and not hasattr(ConfigDict, name) and name not in taken
    return name if is_free else f"row{name}"


def folders(models: Mapping[str, str], seeds: Sequence[int]) -> dict[int, dict[str, str]]:
    """The folders of each seed's models, by the models' names.

    In a folder `{seed}` stands for the seed, and `{next_seed}` for the one after it in `seeds`, the
    first after the last. The next one of a single seed is that seed plus 1.
    """
    after = [*seeds[1:], seeds[0]] if len(seeds) > 1 else [seeds[0] + 1]
    return {
        seed: {
            name: path.replace("{seed}", str(seed)).replace("{next_seed}", str(following))
            for name, path in models.items()
        }
        for seed, following in zip(seeds, after, strict=True)
    }

"""Which two models a row compares, and on whose text."""

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from xling_jax import errors
from xling_jax.models import folders as model_folders
from xling_jax.models.text_model import TextModel

_SIDE = re.compile(r"(?:(random)\[)?([\w.-]+)(?(1)\])")


@dataclasses.dataclass(frozen=True)
class Side:
    """A model of a row: its name in the config, and whether its weights are drawn anew."""

    model: str
    is_random: bool


@dataclasses.dataclass(frozen=True)
class ModelPair:
    """A row: two models and the language whose text, with its translations, they read."""

    name: str
    description: str
    sides: tuple[Side, Side]
    language: str


def parse(
    name: str, description: str, models: Iterable[str], languages: Iterable[str]
) -> ModelPair:
    """Reads a description such as `en|random[fr] @fr`: two models joined by `|`, either of them in
    `random[…]` for a random encoder of its size and vocabulary, and the language of the text after
    an `@`; ValueError where it names a model or language that there is not."""
    both, _, language = (part.strip() for part in description.partition("@"))
    found = [_SIDE.fullmatch(part.strip()) for part in both.split("|")]
    if len(found) != 2 or None in found or not language:
        raise ValueError(f"{description!r} is not of the form MODEL|MODEL @LANGUAGE")
    sides = [Side(match[2], match[1] is not None) for match in found if match]
    if unknown := [side.model for side in sides if side.model not in models]:
        raise ValueError(f"there is no model {unknown[0]!r} among {', '.join(models) or 'none'}")
    if language not in languages:
        raise ValueError(f"there is no text of {language!r}: choose from {', '.join(languages)}")
    return ModelPair(name, description, (sides[0], sides[1]), language)


def folders(models: Mapping[str, str], seeds: Sequence[int]) -> dict[int, dict[str, str]]:
    """Where the models of each seed are, by name.

    In folders `{seed}` stands for a seed and `{next_seed}` for the one after it in `seeds`; after
    the last comes the first, or its successor where there is no other.
    """
    after = [*seeds[1:], seeds[0]] if len(seeds) > 1 else [seeds[0] + 1]
    return {
        seed: {
            name: path.replace("{seed}", str(seed)).replace("{next_seed}", str(following))
            for name, path in models.items()
        }
        for seed, following in zip(seeds, after, strict=True)
    }


def load(side: Side, place: int, models: Mapping[str, str], language: str, seed: int) -> TextModel:
    """The model of a side, 0 or 1, of a pair; a random encoder, drawn with the seed, has the pieces
    and the size of the trained one. FileNotFoundError or ValueError, naming the field, where there
    is none, or it is damaged or of another language."""
    folder = Path(models[side.model]).expanduser()
    with errors.in_field(f"models.{side.model}"):
        model = model_folders.load(folder, language)
    if not side.is_random:
        return model
    # Seeds of training are below 2^32, and the two sides must not be the same encoder.
    return model.randomized(2**32 + 2 * seed + place)

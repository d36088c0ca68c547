"""Which two models a row compares, and on which language's text."""

import dataclasses
from collections.abc import Collection, Mapping
from pathlib import Path

from xling_jax.models.heads import FIRST_UNTRAINED_SEED
from xling_jax.models.text_model import TextModel
from xling_jax.runs import encoders
from xling_jax.runs.encoders import Encoder


@dataclasses.dataclass(frozen=True)
class ModelPair:
    """A row: two models, and the language into which the first one's sentences are translated for
    the second one."""

    name: str
    description: str
    sides: tuple[Encoder, Encoder]
    language: str


def parse(
    name: str, description: str, models: Collection[str], languages: Collection[str]
) -> ModelPair:
    """Reads a description such as `en|random[fr] @fr`: two models joined by `|`, either of them in
    `random[…]` for a random encoder of its size and vocabulary, and the language of the text after
    an `@`; ValueError where it names a model or language that there is not."""
    both, _, language = (part.strip() for part in description.partition("@"))
    sides = [encoders.parse(part) for part in both.split("|")]
    if len(sides) != 2 or sides[0] is None or sides[1] is None or not language:
        raise ValueError(f"{description!r} is not of the form MODEL|MODEL @LANGUAGE")
    for side in filter(None, sides):
        side.require(models)
    if language not in languages:
        raise ValueError(f"there is no text of {language!r}: choose from {', '.join(languages)}")
    return ModelPair(name, description, (sides[0], sides[1]), language)


def load(
    side: Encoder, place: int, models: Mapping[str, str], language: str, seed: int
) -> TextModel:
    """The model of a pair's side, the first (`place` 0) or second (1); see `Encoder.load`. Two
    sides never have the same random weights."""
    folder = Path(models[side.model]).expanduser()
    return side.load(folder, language, FIRST_UNTRAINED_SEED + 2 * seed + place)

"""The models of a pretrained row: what its languages share, and what each has for itself."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from flax import traverse_util

from xling_jax import errors
from xling_jax.linalg.affine import AffineMap
from xling_jax.models import folders
from xling_jax.models.bert import BertConfig
from xling_jax.models.text_model import TextModel
from xling_jax.tasks.finetune import MAP, divide


@dataclasses.dataclass(frozen=True)
class Pretrained:
    """The models of one row and seed, by language; the first is that which is fine-tuned on.

    frozen: the paths of leaves that the models do not share, as those of a language's partition:
    they stay as they are while the first language is learned, and each language is tested with its
    own (W&C §4.3). maps: of each language's states, if they are mapped.
    """

    models: Mapping[str, TextModel]
    frozen: frozenset[str]
    maps: Mapping[str, AffineMap] = dataclasses.field(default_factory=dict)

    @property
    def first(self) -> TextModel:
        """The model that is fine-tuned."""
        return next(iter(self.models.values()))

    @property
    def config(self) -> BertConfig:
        """The first model's size."""
        return self.first.config

    def own(self, language: str) -> Any:
        """The leaves of a language's encoder that are not trained, as a tree."""
        found = divide(self.models[language].params, self.frozen)[1]
        return found | ({MAP: self.maps[language]} if self.maps else {})

    def all_frozen(self, maps: Mapping[str, AffineMap]) -> "Pretrained":
        """The same models, of which nothing is trained, with these maps."""
        encoder = divide(self.first.params, frozenset())[0]
        paths = frozenset(traverse_util.flatten_dict(encoder, sep="/"))
        return Pretrained(self.models, paths, maps)


def of_folders(paths: Mapping[str, Path]) -> Pretrained:
    """Reads the models of languages, of which the first is fine-tuned on.

    Raises:
      FileNotFoundError, ValueError: one cannot be read, or they are of different sizes.
    """
    models: dict[str, TextModel] = {}
    for language, folder in paths.items():
        with errors.in_field(language):
            models[language] = folders.load(folder, language)
    first, *others = models.values()
    for language, model in models.items():
        sizes = [dataclasses.replace(x.config, vocabulary_size=1) for x in (first, model)]
        if sizes[0] != sizes[1]:
            raise ValueError(f"{paths[language]} is a model of another size than the first one")
    found: set[str] = set()
    for model in models.values():
        if model.own is None:
            return Pretrained(models, _different(first, others))
        found |= {path for path in model.own if not path.startswith("mlm/")}
    return Pretrained(models, frozenset(found))


def _different(first: TextModel, others: Sequence[TextModel]) -> frozenset[str]:
    """The paths of an encoder's leaves in which some model differs from the first.

    That is what models share of which nobody wrote down what is a language's own.
    """
    flat = [traverse_util.flatten_dict(dict(model.params), sep="/") for model in (first, *others)]
    return frozenset(
        path
        for path, leaf in flat[0].items()
        if not all(np.array_equal(leaf, other[path]) for other in flat[1:])
        and not path.startswith("mlm/")
    )

"""The models of a pretrained row: what its languages share, what each has for itself, and the maps
from one language's states to another's (W&C §5.1.2)."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from flax import traverse_util

from xling_jax import errors
from xling_jax.corpora import sources, word_links
from xling_jax.evaluators.text_encoder import TextEncoder
from xling_jax.linalg import word_aligner
from xling_jax.linalg.procrustes import AffineMap
from xling_jax.linalg.word_aligner import Links
from xling_jax.models import folders
from xling_jax.models.bert import BertConfig
from xling_jax.models.text_model import TextModel
from xling_jax.tasks.finetune import MAP, divide

Parallel = tuple[Sequence[str], Sequence[str]]  # of the first language, and their translations


@dataclasses.dataclass(frozen=True)
class Pretrained:
    """The models of one row and seed.

    Attributes:
      models: by language; the first is fine-tuned on.
      frozen: the paths of leaves that the models do not share. These stay as they are while the
        first language is learned, and each language is tested with its own (W&C §4.3).
      is_shared: whether the languages' encoders have any learned leaf in common.
      maps: by language, from its states to the first language's; empty if they are not mapped.
    """

    models: Mapping[str, TextModel]
    frozen: frozenset[str]
    is_shared: bool
    maps: Mapping[str, AffineMap] = dataclasses.field(default_factory=dict)

    @property
    def first(self) -> TextModel:
        return next(iter(self.models.values()))

    @property
    def config(self) -> BertConfig:
        return self.first.config

    def own(self, language: str) -> Any:
        """The leaves of a language's encoder that are not trained, as a tree."""
        found = divide(self.models[language].params, self.frozen)[1]
        return found | ({MAP: self.maps[language]} if self.maps else {})

    def all_frozen(self, maps: Mapping[str, AffineMap]) -> "Pretrained":
        """The same models with all leaves frozen, and with these maps."""
        encoder = divide(self.first.params, frozenset())[0]
        paths = frozenset(traverse_util.flatten_dict(encoder, sep="/"))
        return dataclasses.replace(self, frozen=paths, maps=maps)


def of_folders(paths: Mapping[str, Path]) -> Pretrained:
    """Reads the models of languages, of which the first is fine-tuned on; FileNotFoundError or
    ValueError if one cannot be read, or they are of different sizes."""
    models: dict[str, TextModel] = {}
    leaves: list[dict[str, np.ndarray]] = []
    for language, folder in paths.items():
        with errors.in_field(language):
            model = folders.load(folder, language)
        sizes = [
            dataclasses.replace(x.config, vocabulary_size=1) for x in (model, *models.values())
        ]
        if sizes[0] != sizes[-1]:
            raise ValueError(f"{folder} is a model of another size than the first one")
        own = traverse_util.flatten_dict(dict(model.params), sep="/")
        for known in leaves:  # what is equal is kept once
            same = [path for path in own.keys() & known if np.array_equal(own[path], known[path])]
            own |= {path: known[path] for path in same}
        leaves.append(own)
        models[language] = dataclasses.replace(
            model, params=traverse_util.unflatten_dict(own, sep="/")
        )
    first, *others = leaves
    separate = {
        path for path, leaf in first.items() if any(x.get(path) is not leaf for x in others)
    }
    # What was written down as a language's own may be equal in all by chance.
    separate = separate.union(*(model.own for model in models.values() if model.own is not None))
    frozen = frozenset(path for path in separate if not path.startswith("mlm/"))
    shared = (first[path] for path in first.keys() - separate if not path.startswith("mlm/"))
    # A leaf with one value throughout is not learned, such as unused token types.
    return Pretrained(models, frozen, is_shared=any(np.ptp(leaf) > 0 for leaf in shared))


def read_links(path: str | os.PathLike[str], number: int) -> list[Links]:
    """The links of `number` sentences, see `word_links.read`; ValueError also for another number of
    lines, or for possible links."""
    found = word_links.read(path)
    if len(found) != number:
        raise ValueError(
            f"{path} has links for {len(found)} sentences, and there are {number}: give a line for "
            "each pair of sentences, and none for lines that are blank in both texts"
        )
    for line, links in enumerate(found, 1):
        if links.possible:
            way_out = "leave possible links out, or write 1p2 as 1-2"
            raise sources.wrong(path, line, f"{links.possible[0]} is a possible link: {way_out}")
    return [links.sure for links in found]


def _written(first: TextModel, target: TextModel, sentences: Parallel) -> list[list[str]]:
    """Translations as the two models write them."""
    both = zip((first, target), sentences, strict=True)
    return [list(map(model.write, texts)) for model, texts in both]


def link(first: TextModel, target: TextModel, sentences: Parallel) -> list[Links]:
    """Links between the words of translations as two models write them, by `word_aligner`."""
    own, other = ([text.split() for text in side] for side in _written(first, target, sentences))
    return list(word_aligner.align(own, other))


def learn(
    target: TextModel, first: TextModel, layer: int, sentences: Parallel, links: list[Links]
) -> AffineMap:
    """The map of a layer's states of `target` to the first model's, learned from linked words.

    Links are between words as the models write them, from the first language's. ValueError: one is
    outside its sentences, or they are fewer than the states have dimensions.
    """
    written = _written(first, target, sentences)
    vectors, is_there = [], []
    for side, model in enumerate((first, target)):
        wanted = [sorted({link[side] for link in linked}) for linked in links]
        for number, (words, text) in enumerate(zip(wanted, written[side], strict=True), 1):
            if words and words[-1] >= (size := len(text.split())):
                raise ValueError(
                    f"sentence {number} has {size} words, and a link to word {words[-1]}: links "
                    "are between words as the models' text is tokenized"
                )
        found, whole = TextEncoder(model, [layer]).occurrences(written[side], wanted)
        place, start = [], 0
        for linked, words in zip(links, wanted, strict=True):
            at = {word: start + n for n, word in enumerate(words)}
            place += [at[link[side]] for link in linked]
            start += len(words)
        vectors.append(found[0][place])
        is_there.append(whole[place])
    both = is_there[0] & is_there[1]
    width = vectors[0].shape[1]
    if both.sum() < width:
        raise ValueError(
            f"{both.sum()} linked words are too few to learn a map of {width} dimensions from: "
            "give more parallel sentences"
        )
    return AffineMap.learn(jnp.asarray(vectors[1][both]), jnp.asarray(vectors[0][both]))

"""The models of a pretrained row: what its languages share, what each has for itself, and the maps
from one language's states to another's (W&C §5.1.2)."""

import dataclasses
import functools
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from flax import traverse_util

from xling_jax import errors
from xling_jax.corpora import word_links
from xling_jax.evaluators.text_encoder import TextEncoder
from xling_jax.linalg.procrustes import AffineMap
from xling_jax.linalg.word_aligner import Links
from xling_jax.models import folders
from xling_jax.models.bert import BertConfig
from xling_jax.models.text_model import TextModel
from xling_jax.tasks.finetune import MAP, divide

Parallel = tuple[Sequence[str], Sequence[str]]  # of the first language, and their translations
Words = tuple[list[list[str]], list[list[str]]]  # of both sides' sentences, see `words`


@dataclasses.dataclass(frozen=True)
class Pretrained:
    """The models of one row and seed.

    Attributes:
      models: by language; the first is fine-tuned on.
      frozen: the paths of leaves that the models do not share, and others that are not to be
        trained. These stay as they are while the first language is learned, and each language is
        tested with its own (W&C §4.3).
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

    def is_own(self, language: str) -> bool:
        """Whether a language's encoder differs from the first one's."""
        first, own = (
            traverse_util.flatten_dict(divide(model.params, self.frozen)[1])
            for model in (self.first, self.models[language])
        )
        return any(own[path] is not leaf for path, leaf in first.items())

    def with_frozen_embeddings(self) -> "Pretrained":
        """The same models with all of their embeddings frozen."""
        paths = traverse_util.flatten_dict(dict(self.first.params), sep="/")
        embeddings = frozenset(path for path in paths if path.startswith("embeddings/"))
        return dataclasses.replace(self, frozen=self.frozen | embeddings)

    def all_frozen(self, maps: Mapping[str, AffineMap]) -> "Pretrained":
        """The same models with all leaves frozen, and with these maps."""
        encoder = divide(self.first.params, frozenset())[0]
        paths = frozenset(traverse_util.flatten_dict(encoder, sep="/"))
        return dataclasses.replace(self, frozen=paths, maps=maps)


def of_folders(paths: Mapping[str, Path]) -> Pretrained:
    """Reads the models of languages, of which the first is fine-tuned on; FileNotFoundError or
    ValueError if one cannot be read, or they are of different sizes or number types."""
    models: dict[str, TextModel] = {}
    leaves: list[dict[str, np.ndarray]] = []
    for language, folder in paths.items():
        with errors.in_field(language):
            model = folders.load(folder, language)
        sizes = [
            dataclasses.replace(x.config, vocabulary_size=1) for x in (model, *models.values())
        ]
        if sizes[0] != sizes[-1]:
            raise ValueError(
                f"{folder} is a model of another size or number type than the first one"
            )
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


def read_links(path: str | os.PathLike[str], sentences: Parallel) -> list[Links]:
    """The links between the words of translations, which blanks separate, see `word_links.read`;
    ValueError also for another number of lines, a possible link, or one to a word that a sentence
    lacks."""
    found, number = word_links.read(path), len(sentences[0])
    if len(found) != number:
        raise ValueError(
            f"{path} has links for {len(found)} sentences, and there are {number}: give a line for "
            "each pair of sentences, and none for lines that are blank in both texts"
        )
    for line, (links, *both) in enumerate(zip(found, *sentences, strict=True), 1):
        with errors.in_field(f"{path}, line {line}"):
            if links.possible:
                way_out = "leave possible links out, or write 1p2 as 1-2"
                raise ValueError(f"{links.possible[0]} is a possible link: {way_out}")
            links.require_words(*(len(text.split()) for text in both))
    return [links.sure for links in found]


def words(first: TextModel, target: TextModel, sentences: Parallel, one_by_one: bool) -> Words:
    """The words of translations as the two models write them: what blanks separate then or, if the
    sentences' own words are written `one_by_one`, what became of each, such as "home ." of
    "home."."""

    def written(model: TextModel, texts: Sequence[str]) -> list[list[str]]:
        if not one_by_one:
            return [model.write(text).split() for text in texts]
        write = functools.cache(model.write)
        return [list(map(write, text.split())) for text in texts]

    return written(first, sentences[0]), written(target, sentences[1])


def learn(
    target: TextModel, first: TextModel, layer: int, words: Words, links: list[Links]
) -> AffineMap:
    """The map of a layer's states of `target` to the first model's, learned from linked words.

    Links are from the first language's words. ValueError: they are fewer than the states have
    dimensions.
    """
    vectors, is_there = [], []
    for side, model in enumerate((first, target)):
        wanted = [sorted({link[side] for link in linked}) for linked in links]
        found, whole = TextEncoder(model, [layer]).occurrences(words[side], wanted)
        place, start = [], 0
        for linked, own in zip(links, wanted, strict=True):
            at = {word: start + n for n, word in enumerate(own)}
            place += [at[link[side]] for link in linked]
            start += len(own)
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

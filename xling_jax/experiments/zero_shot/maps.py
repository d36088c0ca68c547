"""Maps from the states of a language's model to those of the first's (W&C §5.1.2)."""

import os
from collections.abc import Sequence

import jax.numpy as jnp

from xling_jax import numerals
from xling_jax.corpora import sources
from xling_jax.evaluators.text_encoder import TextEncoder
from xling_jax.linalg import word_aligner
from xling_jax.linalg.affine import AffineMap
from xling_jax.linalg.word_aligner import Links
from xling_jax.models.text_model import TextModel

Parallel = tuple[Sequence[str], Sequence[str]]


def read_links(path: str | os.PathLike[str], number: int) -> list[Links]:
    """Reads the links of sentences as fast_align and others write them, `0-0 1-2`, a pair a line.

    Raises:
      FileNotFoundError: there is no such file.
      ValueError: another number of lines than of sentences, or no links; the line is named.
    """
    found: list[Links] = []
    for line_number, line in sources.numbered(path):
        links = []
        for part in line.split():
            first, _, second = part.partition("-")
            try:
                links.append((numerals.whole(first), numerals.whole(second)))
            except ValueError as error:
                way_out = ": leave possible links out, or write 1p2 as 1-2" if "p" in part else ""
                raise sources.wrong(
                    path, line_number, f"{part!r} is no link such as 0-1{way_out}"
                ) from error
        found.append(links)
    if not line:
        found.pop()  # what is behind the last line's end
    if len(found) != number:
        raise ValueError(
            f"{path} has links for {len(found)} sentences, and there are {number}: give a line for "
            "each pair of sentences, and none for lines that are blank in both texts"
        )
    return found


def _written(first: TextModel, target: TextModel, sentences: Parallel) -> list[list[str]]:
    return [
        [model.write(text) for text in texts]
        for model, texts in zip((first, target), sentences, strict=True)
    ]


def link(first: TextModel, target: TextModel, sentences: Parallel) -> list[Links]:
    """Links between the words of translations, as `word_aligner.align` finds them.

    Args:
      first, target: the models, which say how the sentences are written.
      sentences: of the first language, and their translations.
    """
    own, other = ([text.split() for text in side] for side in _written(first, target, sentences))
    return word_aligner.align(own, other)


def learn(
    target: TextModel, first: TextModel, layer: int, sentences: Parallel, links: list[Links]
) -> AffineMap:
    """The map of a layer's states, learned from occurrences of words that are linked.

    Args:
      target: the model that is mapped. first: the model that it is mapped to.
      layer: of both.
      sentences: of the first language, and their translations.
      links: between words as the models write them, from the first language's.

    Raises:
      ValueError: a link outside its sentences, or fewer links than the states have dimensions.
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

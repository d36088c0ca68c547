"""Which pieces of other languages stand near a piece, found without a dictionary (D&S §4)."""

import dataclasses
import hashlib
import io
import json
from collections.abc import Sequence
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from xling_jax.alignment import csls, vecmap
from xling_jax.files import write_beside
from xling_jax.vocabulary.static_vectors import SkipGram, Vectors

NO_PIECE = -1


def nothing(size: int, width: int = 1) -> np.ndarray:
    """A table [size, width] of pieces without neighbours."""
    return np.full((size, width), NO_PIECE, np.int32)


def find(vectors: Sequence[Vectors], size: int, number: int, seed: int) -> np.ndarray:
    """The nearest pieces of every other language, by unsupervised VecMap (Artetxe et al. 2018).

    Args:
      vectors: of each language's pieces, as ids of the joint vocabulary.
      size: of the joint vocabulary.
      number: neighbours in each other language.
      seed: of VecMap's random choices.

    Returns:
      int32 [size, number * (languages - 1)]: ids by language and then by CSLS, the nearest first.
      A piece without a vector has none, which is -1.

    Raises:
      ValueError: a language has fewer than `number` vectors.
    """
    languages = len(vectors)
    fewest = min(len(own) for own in vectors)
    if fewest < number:
        raise ValueError(f"{number} neighbours are wanted, but a language has {fewest} vectors")
    table = np.full((size, languages - 1, number), NO_PIECE, np.int32)
    for one in range(languages):
        for other in range(one + 1, languages):
            first, second = vecmap.map_unsupervised(
                jnp.asarray(vectors[one].vectors), jnp.asarray(vectors[other].vectors), seed
            )
            directions = [(one, other, first, second), (other, one, second, first)]
            for source, target, queries, keys in directions:
                _, nearest = csls.top_k(queries, keys, k=number)
                column = target - (target > source)
                table[vectors[source].words, column] = vectors[target].words[np.asarray(nearest)]
    return table.reshape(size, -1)


def cached(
    folder: Path,
    texts: Sequence[Sequence[np.ndarray]],
    settings: SkipGram,
    size: int,
    number: int,
    seed: int,
) -> np.ndarray:
    """What `find` gives for skip-gram vectors of each language's text, kept in a folder.

    The file's name is a hash of everything that the table depends on.
    """
    import gensim

    content = hashlib.sha256()
    versions = [gensim.__version__, jax.__version__]
    content.update(
        json.dumps([versions, dataclasses.asdict(settings), size, number, seed]).encode()
    )
    for text in texts:
        for sentence in text:
            content.update(np.int32(len(sentence)).tobytes() + sentence.tobytes())
    path = folder / f"neighbours-{content.hexdigest()[:32]}.npy"
    if path.exists():
        return np.load(path, allow_pickle=False)
    # The languages' seeds differ: Fake-English has the text of English.
    vectors = [settings.train(text, seed + k + 1) for k, text in enumerate(texts)]
    table = find(vectors, size, number, seed)
    file = io.BytesIO()
    np.save(file, table)
    write_beside(path, file.getvalue())
    return table

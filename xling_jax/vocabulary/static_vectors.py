"""Static vectors of pieces or words: skip-gram, as fastText trains it, and `.vec` files."""

import dataclasses
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from xling_jax import numerals
from xling_jax.corpora import sources

_LONGEST = 10_000  # words of a sentence; gensim ignores those after
CONTEXTS = "contexts"  # given instead of a file to train vectors on the text with the words


@dataclasses.dataclass(frozen=True)
class Vectors:
    """Vectors, float32 [n, d], of words or pieces, given by ids, int32 [n], most frequent first."""

    words: np.ndarray
    vectors: np.ndarray

    def __len__(self) -> int:
        return len(self.words)


@dataclasses.dataclass(frozen=True)
class _Written:
    """Sentences as lists of words, which every pass makes anew; longer ones than gensim reads come
    in parts."""

    sentences: Iterable[np.ndarray]
    names: Mapping[int, str]

    def __iter__(self) -> Iterator[list[str]]:
        for sentence in self.sentences:
            for start in range(0, len(sentence), _LONGEST):
                yield [self.names[n] for n in sentence[start : start + _LONGEST].tolist()]


@dataclasses.dataclass(frozen=True)
class SkipGram:
    """How vectors are trained: fastText's defaults, except for fewer buckets and the 300 dimensions
    of its published vectors."""

    dimension: int = 300
    learning_rate: float = 0.05
    window: int = 5
    min_count: int = 5
    negative: int = 5
    sample: float = 1e-4
    epochs: int = 5
    min_n: int = 3
    max_n: int = 6
    buckets: int = 200_000  # 240 MB a language
    threads: int = 1


# gensim's names of the settings, where they differ.
GENSIM = {
    "dimension": "vector_size",
    "learning_rate": "alpha",
    "buckets": "bucket",
    "threads": "workers",
}


def train(
    settings: Mapping[str, Any],
    sentences: Iterable[np.ndarray],
    names: Mapping[int, str],
    seed: int,
) -> Vectors:
    """Trains skip-gram vectors as fastText does (Bojanowski et al. 2017), with gensim. In one
    thread the same text and seed give the same bits.

    A vector is the mean of the word's own and those of its character n-grams. Memory holds vectors
    of all buckets and words, and no copy of the text.

    Args:
      settings: the fields of `SkipGram`.
      sentences: the ids of each; read once to count words, and then once per epoch.
      names: the word of every id in the sentences, all different.
      seed: of the initial vectors and of all draws.

    Raises:
      ValueError: no word occurs `min_count` times.
    """
    from gensim.models import FastText

    text = _Written(sentences, names)
    own = {GENSIM.get(name, name): value for name, value in settings.items()}
    # fastText's exponent, where word2vec has 0.75
    model = FastText(min_alpha=0.0, ns_exponent=0.5, sg=1, seed=seed, **own)
    try:
        model.build_vocab(text)
    except RuntimeError:  # gensim's error for a text without words
        pass
    if not len(model.wv):
        raise ValueError(f"min_count={settings['min_count']}: nothing occurs so often in this text")
    model.train(text, total_examples=model.corpus_count, epochs=settings["epochs"])
    ids = {name: word for word, name in names.items()}
    words = np.array([ids[name] for name in model.wv.index_to_key], np.int32)
    return Vectors(words, np.asarray(model.wv.vectors, np.float32))


def read(path: str | Path, ids: dict[str, int], most: int | None = None) -> Vectors:
    """Reads the vectors of the words in `ids`, which are in Unicode NFC, from a text file such as
    fastText writes.

    A line is a word and its numbers, separated by blanks. The first line may instead give the
    number of vectors and of dimensions. The file is taken to be sorted by frequency; only its first
    `most` vectors are looked at, by default all.

    Raises:
      FileNotFoundError, ValueError: as `sources.lines`.
      ValueError: a line has another number of dimensions than the first line states or has, or
        there are fewer or more lines than it states (naming file and line); or no word in `ids`
        has a vector.
    """
    found: dict[int, np.ndarray] = {}
    lines = sources.numbered(path)
    said = dimension = None  # what the first line states
    number = seen = 0
    for number, line in lines:
        parts = line.rstrip().split(" ")
        if number == 1 and len(parts) == 2 and (header := _header(parts)):
            said, dimension = header
            continue
        if not line and next(lines, None) is None:
            break  # the empty line after the last line's end
        if said is not None and seen == said:
            raise sources.wrong(path, number, f"the first line says {said} vectors; here are more")
        dimension = dimension or len(parts) - 1
        # Words may hold blanks of their own; the numbers are the last ones.
        word = " ".join(parts[: len(parts) - dimension])
        is_whole = len(parts) > dimension > 0 and word
        vector = _numbers(parts[len(parts) - dimension :]) if is_whole else None
        if vector is None:
            raise sources.wrong(
                path, number, f"not a word and {dimension or 'its'} numbers: {line[:60]!r}"
            )
        _, *rest = word.split(" ")
        if said is not None and not seen and rest and _numbers(rest[-1:]) is not None:
            raise sources.wrong(
                path, number, f"the first line says {dimension} numbers a vector; here are more"
            )
        if (composed := unicodedata.normalize("NFC", word)) in ids:
            found.setdefault(ids[composed], vector)
        seen += 1
        if seen == most:
            break
    if said is not None and seen < min(said, most or said):
        raise sources.wrong(
            path, number, f"the file ends after {seen} vectors, and its first line says {said}"
        )
    if not found:
        raise ValueError(
            f"{path}: none of the wanted words is in it, such as {', '.join(list(ids)[-3:])}"
        )
    return Vectors(np.array(list(found), np.int32), np.stack(list(found.values())))


def _header(parts: list[str]) -> tuple[int, int] | None:
    """The numbers of vectors and dimensions; None if these are a word and a number."""
    try:
        vectors, dimension = map(numerals.whole, parts)
    except ValueError:
        return None
    return (vectors, dimension) if dimension else None


def _numbers(parts: list[str]) -> np.ndarray | None:
    """The numbers, float32 [n]; None unless all parts are finite numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy before 2.3 only warns if something is no number
        try:
            vector = np.fromstring(" ".join(parts), np.float32, sep=" ")
        except ValueError:
            return None
    return vector if len(vector) == len(parts) and np.isfinite(vector).all() else None

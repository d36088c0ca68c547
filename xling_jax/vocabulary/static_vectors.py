"""Static vectors of pieces or words: skip-gram (Mikolov et al. 2013), and `.vec` files."""

import dataclasses
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from xling_jax import numerals
from xling_jax.corpora import sources


@dataclasses.dataclass(frozen=True)
class Vectors:
    """Vectors of some of a language's pieces or words, the most frequent first.

    words: int32 [n], ids. vectors: float32 [n, d].
    """

    words: np.ndarray
    vectors: np.ndarray

    def __len__(self) -> int:
        return len(self.words)


@dataclasses.dataclass(frozen=True)
class SkipGram:
    """How skip-gram vectors are trained.

    dimension: of a vector. window: places to either side. min_count: rarer words get no vector.
    negative: wrong words drawn for a right one. sample: words of a larger share of the text are
    thinned out. epochs: passes over the text.
    """

    dimension: int
    window: int
    min_count: int
    negative: int
    sample: float
    epochs: int

    def train(self, sentences: Sequence[np.ndarray], seed: int) -> Vectors:
        """Trains vectors with gensim, in one thread: the same text and seed give the same bits.

        Args:
          sentences: the ids of each sentence.
          seed: of the initial vectors and of all draws.

        Raises:
          ValueError: no word occurs `min_count` times.
        """
        from gensim.models import Word2Vec

        text = [[str(word) for word in sentence] for sentence in sentences]
        model = Word2Vec(
            vector_size=self.dimension,
            window=self.window,
            min_count=self.min_count,
            negative=self.negative,
            sample=self.sample,
            epochs=self.epochs,
            sg=1,
            workers=1,
            seed=seed,
        )
        model.build_vocab(text)
        if not len(model.wv):
            raise ValueError(f"min_count={self.min_count}: nothing occurs so often in this text")
        model.train(text, total_examples=len(text), epochs=self.epochs)
        words = np.array([int(word) for word in model.wv.index_to_key], np.int32)
        return Vectors(words, np.asarray(model.wv.vectors, np.float32))


def read(path: str | Path, ids: dict[str, int], most: int | None = None) -> Vectors:
    """Reads the vectors of known words from a text file such as fastText writes.

    A line is a word and its numbers, divided by blanks. A first line may hold two numbers, of the
    vectors and of their dimensions. The file's order is taken for the order of frequency.

    Args:
      path: the file.
      ids: the id of every word that is wanted.
      most: how many vectors to look at, from the beginning; all by default.

    Raises:
      FileNotFoundError: there is no such file.
      ValueError: a line is no UTF-8, has other numbers than the first line says or has, or there
        are fewer or more lines than it says; or no wanted word has a vector; with file and line.
    """
    found: dict[int, np.ndarray] = {}
    lines = sources.numbered(path)
    said = dimension = None  # of the first line
    number = seen = 0
    for number, line in lines:
        parts = line.rstrip().split(" ")
        if number == 1 and len(parts) == 2 and (header := _header(parts)):
            said, dimension = header
            continue
        if not line and next(lines, None) is None:
            break  # what is behind the last line's end
        if said is not None and seen == said:
            raise sources.wrong(path, number, f"the first line says {said} vectors; here are more")
        dimension = dimension or len(parts) - 1
        # Words may hold blanks of their own; the numbers are the last ones.
        word = " ".join(parts[: len(parts) - dimension])
        vector = _numbers(parts[len(parts) - dimension :]) if word and dimension else None
        if vector is None:
            raise sources.wrong(
                path, number, f"not a word and {dimension or 'its'} numbers: {line[:60]!r}"
            )
        if word in ids:
            found.setdefault(ids[word], vector)
        seen += 1
        if seen == most:
            break
    if said is not None and seen < min(said, most or said):
        raise sources.wrong(
            path, number, f"the file ends after {seen} vectors, and its first line says {said}"
        )
    if not found:
        raise ValueError(
            f"{path}: none of the {len(ids):,} wanted words is in it, such as "
            f"{', '.join(list(ids)[-3:])}"
        )
    return Vectors(np.array(list(found), np.int32), np.stack(list(found.values())))


def _header(parts: list[str]) -> tuple[int, int] | None:
    """The numbers of vectors and dimensions; None if it is a word and a number."""
    try:
        vectors, dimension = map(numerals.whole, parts)
    except ValueError:
        return None
    return (vectors, dimension) if dimension else None


def _numbers(parts: list[str]) -> np.ndarray | None:
    """float32 [n], None if they are no n finite numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numpy before 2.3 warns of what is no number
        try:
            vector = np.fromstring(" ".join(parts), np.float32, sep=" ")
        except ValueError:
            return None
    return vector if len(vector) == len(parts) and np.isfinite(vector).all() else None

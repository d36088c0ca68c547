"""Static vectors of pieces or words: skip-gram (Mikolov et al. 2013), and `.vec` files."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np


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

    A line is a word and its numbers, divided by blanks; a first line of two numbers is skipped.
    The file's order is taken for the order of frequency.

    Args:
      path: the file.
      ids: the id of every word that is wanted.
      most: how many vectors to look at, from the beginning; all by default.

    Raises:
      FileNotFoundError: there is no such file.
      ValueError: a line is no UTF-8 or has other numbers than the first; or no wanted word has a
        vector; with file and line.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file; give a .vec file of one vector a line")
    found: dict[int, np.ndarray] = {}
    dimension = None
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            parts = line.rstrip().split(b" ")
            if number == 1 and len(parts) == 2:
                most = most and most + 1
                continue
            if most and number > most:
                break
            dimension = dimension or len(parts) - 1
            try:
                # Words may hold blanks of their own; the numbers are the last ones.
                word = b" ".join(parts[: len(parts) - dimension]).decode("utf-8")
                vector = np.array(parts[len(parts) - dimension :], np.float32)
            except ValueError as error:
                raise ValueError(
                    f"{path}, line {number}: not a word in UTF-8 and {dimension} numbers ({error})"
                ) from error
            if len(vector) != dimension or not word or not np.isfinite(vector).all():
                raise ValueError(f"{path}, line {number}: not a word and {dimension} numbers")
            if word in ids:
                found.setdefault(ids[word], vector)
    if not found:
        raise ValueError(
            f"{path}: none of the {len(ids):,} wanted words is in it, such as "
            f"{', '.join(list(ids)[-3:])}"
        )
    return Vectors(np.array(list(found), np.int32), np.stack(list(found.values())))

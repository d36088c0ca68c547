"""A part of a text to a file of tokens: the work of one process, which imports no JAX."""

import dataclasses
import functools
import hashlib
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from xling_jax.batches import token_files
from xling_jax.batches.token_files import Shard
from xling_jax.corpora import sources, text
from xling_jax.corpora.normalize import Normalization, Normalizer
from xling_jax.corpora.splitting import Splitter
from xling_jax.vocabulary.pieces import SEP, UNK, Pieces

_BATCH = 1000  # sentences encoded at once


@dataclasses.dataclass(frozen=True, eq=False)
class Encoding:
    """What becomes of a line of text.

    language: the name whose rules normalise it.
    normalization: see `corpora.normalize`.
    pieces: the vocabulary that cuts it.
    split: cuts lines into sentences first, None if each is one.
    ids: int [pieces.size], the id in the stream of each piece, where it is not the same. [SEP]
      after a sentence stays `pieces.SEP`.
    """

    language: str
    normalization: Normalization
    pieces: Pieces
    split: Splitter | None = None
    ids: np.ndarray | None = None

    def __post_init__(self) -> None:
        if self.ids is None:
            return
        shape, size = self.ids.shape, self.pieces.size
        if shape != (size,) or self.ids.dtype.kind not in "iu" or self.ids.min() < 0:
            raise ValueError(
                f"ids: {self.ids.dtype}{list(shape)} is no map of the {size} pieces of "
                f"{self.language}: give an id of 0 or more for every piece"
            )

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type that all ids fit in."""
        size = self.pieces.size if self.ids is None else int(self.ids.max()) + 1
        return token_files.token_type(max(size, SEP + 1))

    @property
    def normalizer(self) -> Normalizer:
        """What normalises the sentences."""
        return _normalizer(self.language, self.normalization)

    def sentences(self, lines: Iterable[str]) -> Iterator[str]:
        """The sentences of lines, normalised."""
        cleaned = text.sentences_of(lines, self.split)
        return filter(None, map(self.normalizer, cleaned))


@dataclasses.dataclass(frozen=True)
class Job:
    """A chunk that becomes the shard `path`, with no more sentences than `limit`."""

    chunk: sources.Chunk
    path: Path
    encoding: Encoding
    limit: int | None


def make_shard(job: Job) -> Shard:
    """Writes the shard of a job; memory holds some sentences and no more than a line of text."""
    encoding = job.encoding
    sentences = itertools.islice(encoding.sentences(sources.lines(job.chunk)), job.limit)
    counts = {"sentences": 0, "words": 0, "unknown": 0}
    digest = hashlib.sha256()

    def tokens() -> Iterator[np.ndarray]:
        while batch := list(itertools.islice(sentences, _BATCH)):
            # The pool has a process for every core.
            encoded = encoding.pieces.encode(batch, threads=1)
            pieces = np.concatenate(encoded)
            digest.update("\n".join([""] * (counts["sentences"] > 0) + batch).encode())
            counts["sentences"] += len(batch)
            counts["words"] += sum(sentence.count(" ") + 1 for sentence in batch)
            counts["unknown"] += int(np.count_nonzero(pieces == UNK))
            stream = pieces if encoding.ids is None else encoding.ids[pieces]
            yield np.insert(stream, np.cumsum([len(ids) for ids in encoded]), SEP)

    total = token_files.write_tokens(job.path, tokens(), encoding.dtype)
    shard = token_files.describe(job.path, tokens=total, text_sha256=digest.hexdigest(), **counts)
    token_files.write_shard(job.path.parent, shard)
    return shard


@functools.lru_cache(maxsize=8)
def _normalizer(language: str, normalization: Normalization) -> Normalizer:
    return Normalizer(language, normalization)

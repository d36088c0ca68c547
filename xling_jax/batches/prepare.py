"""Turns text of any size into token files, with several processes, which do not import JAX."""

import contextlib
import dataclasses
import functools
import hashlib
import itertools
import json
import multiprocessing
import os
import re
import sys
import threading
import time
import types
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import numpy as np

from xling_jax import processes as run_processes
from xling_jax.batches import token_files
from xling_jax.batches.token_files import Shard, TokenFiles
from xling_jax.corpora import sources, text
from xling_jax.corpora.normalize import Normalization, Normalizer
from xling_jax.corpora.splitting import Splitter
from xling_jax.vocabulary.pieces import BLANK, SEP, UNK, Pieces

CHUNK_BYTES = 2**24
FORMAT = 2  # of the files and of how lines are read; if it changes, all are made anew
_BATCH = 1000  # sentences encoded at once
_MOST_WORDS, _LONGEST_WORD = 2**17, 32  # remembered: words (about 30 MB), characters of each
_SAY_SECONDS = 30


@dataclasses.dataclass(frozen=True, eq=False)
class Encoding:
    """How a line of text becomes tokens.

    Attributes:
      language: the name that decides the rules of normalisation.
      normalization: see `corpora.normalize`.
      pieces: the vocabulary.
      split: cuts lines into sentences first; None if each line is a sentence.
      ids: int [pieces.size], each piece's id in the stream; None if the piece's own. The [SEP]
        after a sentence is always `pieces.SEP`.
    """

    language: str
    normalization: Normalization
    pieces: Pieces
    split: Splitter | None = None
    ids: np.ndarray | None = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """The smallest type of the files that holds all ids."""
        size = self.pieces.size if self.ids is None else int(self.ids.max()) + 1
        return token_files.token_type(max(size, SEP + 1))

    @property
    def normalizer(self) -> Normalizer:
        """What normalises the sentences."""
        return _normalizer(self.language, self.normalization)

    def sentences(self, lines: Iterable[str]) -> Iterator[str]:
        """The sentences of lines, normalised."""
        return filter(None, map(self.normalizer, text.sentences_of(lines, self.split)))


@functools.lru_cache(maxsize=8)
def _normalizer(language: str, normalization: Normalization) -> Normalizer:
    return Normalizer(language, normalization)


@dataclasses.dataclass(frozen=True)
class Job:
    """A chunk that becomes the shard `path`, with `limit` sentences at most; with the state of its
    source before it was hashed (see `sources.state`), and the hash."""

    chunk: sources.Chunk
    state: tuple[int, int, int] | None
    sha256: str
    path: Path
    encoding: Encoding
    limit: int | None


def make_shard(job: Job) -> Shard:
    """Writes the shard of a job; ValueError if its source has changed since it was hashed. Memory
    holds a batch of sentences, a line of text and the words that are remembered."""
    encoding = job.encoding
    sentences = itertools.islice(encoding.sentences(sources.lines(job.chunk)), job.limit)
    counts = {"sentences": 0, "words": 0, "unknown": 0}
    digest = hashlib.sha256()
    known: dict[str, bytes] = {}

    def tokens() -> Iterator[np.ndarray]:
        while batch := list(itertools.islice(sentences, _BATCH)):
            pieces, lengths = _encode(batch, encoding.pieces, known)
            digest.update("\n".join([""] * (counts["sentences"] > 0) + batch).encode())
            counts["sentences"] += len(batch)
            counts["words"] += sum(sentence.count(" ") + 1 for sentence in batch)
            counts["unknown"] += int(np.count_nonzero(pieces == UNK))
            stream = pieces if encoding.ids is None else encoding.ids[pieces]
            yield np.insert(stream, np.cumsum(lengths), SEP)
        sources.require_unchanged(job.chunk.source, job.state, job.sha256)

    return token_files.write_shard(job.path, tokens(), encoding.dtype, digest, counts)


def _encode(
    sentences: list[str], pieces: Pieces, known: dict[str, bytes]
) -> tuple[np.ndarray, list[int]]:
    """The ids of all sentences in one array, and how many each has. The ids are those of
    `Pieces.encode`; where the result is the same, known words are looked up in `known` instead."""
    # The pool has a process for every core.
    encode = functools.partial(pieces.encode, threads=1)
    if not pieces.cuts_words_alone or any(BLANK in sentence for sentence in sentences):
        encoded = encode(sentences)
        return np.concatenate(encoded), list(map(len, encoded))
    if len(known) > _MOST_WORDS:
        known.clear()
    split = [sentence.split(" ") for sentence in sentences]
    new = list({word for words in split for word in words}.difference(known))
    own = {word: ids.tobytes() for word, ids in zip(new, encode(new), strict=True)}
    known |= own
    words_ids = [[known[word] for word in words] for words in split]
    for word in own:
        if len(word) > _LONGEST_WORD:
            del known[word]
    flat = np.frombuffer(b"".join(itertools.chain.from_iterable(words_ids)), np.int32)
    return flat, [sum(map(len, words)) // flat.itemsize for words in words_ids]


def prepare(
    given: Sequence[sources.Source],
    encoding: Encoding,
    folder: str | os.PathLike[str],
    *,
    limit: int | None = None,
    processes: int = 1,
    chunk_bytes: int = CHUNK_BYTES,
    say: Callable[[str], None] = lambda message: None,
) -> TokenFiles:
    """Makes the token files of a language, or opens them if they are there and unchanged.

    They are in a subfolder of `folder`, named by the language and a hash of everything that decides
    them. A run that was stopped goes on where it was; only one run at a time may prepare a
    language. All processes of a run must call this; each makes its share of the files, which are
    the same whatever the number of processes. The memory of each process holds little more than the
    vocabulary, the dictionaries of normalisation, the pieces of frequent words, and a thousand
    sentences.

    Args:
      given: the text, one source after the other.
      encoding: how it becomes tokens.
      folder: where prepared texts are kept.
      limit: keep the first `limit` sentences at most (counted as `encoding` cuts them).
      processes: how many work at once for each process of the run.
      chunk_bytes: how much text goes into one file. A compressed source becomes a single file.
      say: is called with a line of progress now and then.

    Raises:
      FileNotFoundError: a source does not exist.
      ValueError: no text, a source that cannot be read (see `corpora.sources`) or changes
        meanwhile, or a worker process that was killed.
    """
    known = [(sources.state(source), sources.fingerprint(source)) for source in given]
    key = _key([digest for _, digest in known], encoding, limit, chunk_bytes)
    own = Path(folder) / f"{re.sub('[^a-zA-Z0-9-]', '_', encoding.language)}-{key[:16]}"
    if run_processes.of_first(lambda: TokenFiles.open_unchanged(own) is not None):
        return TokenFiles.open(own)
    chunks = [
        (chunk, state, digest)
        for source, (state, digest) in zip(given, known, strict=True)
        for chunk in sources.chunks(source, chunk_bytes)
    ]
    jobs = [
        Job(chunk, state, digest, own / f"{number:05}.tokens.npy", encoding, limit)
        for number, (chunk, state, digest) in enumerate(chunks)
    ]

    def clean() -> None:
        for path in own.glob(".*"):  # unfinished files of a killed run
            path.unlink()

    def collect() -> None:
        shards = _limited(jobs, limit, processes, say)
        for job in jobs[len(shards) :]:
            token_files.remove_shard(job.path)
        manifest = _manifest([sources.name(x) for x in given], encoding.language, shards)
        counts = f"{manifest['sentences']:,} sentences, {manifest['tokens']:,} tokens"
        if (unknown := 100 * manifest["unknown"]) >= 0.1:
            counts += f" ({unknown:.1f} % of the pieces are [UNK])"
        say(f"{encoding.language}: {counts} in {own}")
        token_files.write_index(own, key, manifest, shards)

    run_processes.by_all(clean if run_processes.is_first() else None)
    if run_processes.are_several():
        run_processes.by_all(lambda: _make_share(jobs, limit, processes, say))
    run_processes.by_all(collect if run_processes.is_first() else None)
    return TokenFiles.open(own)


def _manifest(names: Sequence[str], language: str, shards: Sequence[Shard]) -> dict[str, Any]:
    sentences = sum(shard.sentences for shard in shards)
    tokens = sum(shard.tokens for shard in shards)
    if not sentences:
        raise text.no_text(" + ".join(names))
    return {
        "language": language,
        "sources": list(names),
        "sentences": sentences,
        "words": sum(shard.words for shard in shards),
        "tokens": tokens,
        "unknown": sum(shard.unknown for shard in shards) / max(1, tokens - sentences),
    }


def _key(digests: Sequence[str], encoding: Encoding, limit: int | None, chunk_bytes: int) -> str:
    decides = {
        "format": FORMAT,
        "sources": list(digests),
        "language": encoding.language,
        "normalization": encoding.normalizer.identity,
        "split": encoding.split and encoding.split.identity,
        "pieces": encoding.pieces.sha256,
        "ids": None if encoding.ids is None else encoding.ids.tolist(),
        "limit": limit,
        "chunk_bytes": chunk_bytes,
    }
    return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()


def _limited(
    jobs: list[Job], limit: int | None, processes: int, say: Callable[[str], None]
) -> list[Shard]:
    """The shards of the first `limit` sentences."""
    shards: list[Shard] = []
    left = limit
    with contextlib.closing(_made(jobs, processes, say)) as made:
        for job, shard in zip(jobs, made, strict=True):
            if left is not None:
                if shard.sentences > left:
                    shard = make_shard(dataclasses.replace(job, limit=left))
                left -= shard.sentences
            shards.append(shard)
            if left == 0:
                break
    return shards


def _make_share(
    jobs: list[Job], limit: int | None, processes: int, say: Callable[[str], None]
) -> None:
    """Makes this process's share of the shards, and stops when all processes together have about
    `limit` sentences."""
    sentences = 0
    with contextlib.closing(_made(run_processes.share(jobs), processes, say)) as made:
        for shard in made:
            sentences += run_processes.count() * shard.sentences
            if limit is not None and sentences >= limit:
                break


def _made(
    jobs: list[Job], processes: int, say: Callable[[str], None]
) -> Generator[Shard, None, None]:
    """The shards of the jobs, one after the other; reports progress every half minute."""
    sentences, said = 0, time.monotonic()
    of_one = " of one process" if run_processes.are_several() else ""
    with contextlib.closing(_in_order(jobs, processes)) as made:
        for number, (job, shard) in enumerate(zip(jobs, made, strict=True), 1):
            yield shard
            sentences += shard.sentences
            if time.monotonic() - said >= _SAY_SECONDS:
                said = time.monotonic()
                done = f"{number} of {len(jobs)} files{of_one}, {sentences:,} sentences"
                say(f"{job.encoding.language}: {done}")


def _shard(job: Job) -> Shard:
    """The shard of a job, which is made unless it is on disk."""
    return token_files.read_shard(job.path) or make_shard(job)


def _in_order(jobs: list[Job], processes: int) -> Generator[Shard, None, None]:
    """The shards of the jobs, one after the other."""
    # `files.beside` writes only in the first process of a run; a pool's processes are in no run.
    if min(processes, len(jobs)) <= 1 and run_processes.is_first():
        yield from map(_shard, jobs)
        return
    spawn = multiprocessing.get_context("spawn")  # a fork of JAX's threads may hang
    pool = ProcessPoolExecutor(processes, mp_context=spawn, initializer=_end_with_parent)
    try:
        with _no_main_module():
            shards = pool.map(_shard, jobs)
        yield from shards
    except BrokenProcessPool as error:
        raise ValueError(
            f"processes={processes}: one of them was ended from outside, often for want of memory. "
            "Set a lower number and start again; finished files are kept"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def _no_main_module() -> Iterator[None]:
    """Keeps processes spawned here from running the main module again, which imports JAX."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _end_with_parent() -> None:
    """Ends this process when its parent is killed; otherwise it would wait for work for ever."""

    def wait() -> None:
        if parent := multiprocessing.parent_process():
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()

"""Text of any size to token files, by several processes."""

import collections
import contextlib
import dataclasses
import functools
import hashlib
import json
import multiprocessing
import os
import re
import sys
import threading
import time
import types
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from xling_jax.batches import token_files
from xling_jax.batches.encoding import Encoding, Job, make_shard
from xling_jax.batches.token_files import Shard, TokenFiles
from xling_jax.corpora import sources

CHUNK_BYTES = 2**24
FORMAT = 1  # of the files; a new one makes all anew
_SAY_SECONDS = 30


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

    They lie in a folder of their own below `folder`, named by everything that decides them. A run
    that was stopped goes on where it was; one process at a time may prepare a language. The
    files are the same whatever the number of processes. Memory holds, in each process, about the
    vocabulary, the dictionaries of normalisation, and some thousand sentences.

    Args:
      given: the text, one source after the other.
      encoding: what becomes of it.
      folder: where prepared texts are.
      limit: keep the first `limit` sentences (counted as `encoding` cuts them).
      processes: how many work at once.
      chunk_bytes: text that becomes one file. A compressed source is one file as a whole.
      say: takes a line of progress now and then.

    Raises:
      FileNotFoundError: a source is no file.
      ValueError: an argument that means nothing, no text, fewer sentences than `limit`, a source
        that cannot be read (see `corpora.sources`), or a process ended from outside.
    """
    if not given:
        raise ValueError("sources=(): name at least one")
    for field, value in (("limit", limit), ("processes", processes), ("chunk_bytes", chunk_bytes)):
        if value is not None and value < 1:
            raise ValueError(f"{field}={value}: it is at least 1")
    key = _key(given, encoding, limit, chunk_bytes)
    own = Path(folder) / f"{re.sub('[^a-zA-Z0-9-]', '_', encoding.language)}-{key[:16]}"
    with contextlib.suppress(FileNotFoundError, ValueError):
        return TokenFiles.open(own).verify()
    for path in own.glob(".*"):
        path.unlink()
    chunks = [chunk for source in given for chunk in sources.chunks(source, chunk_bytes)]
    jobs = [
        Job(chunk, own / f"{number:05}.tokens.npy", encoding, limit)
        for number, chunk in enumerate(chunks)
    ]
    shards = _limited(jobs, limit, processes, _progress(encoding.language, len(jobs), say))
    names = [sources.name(source) for source in given]
    sentences = sum(shard.sentences for shard in shards)
    _require_text(names, sentences, limit)
    for job in jobs[len(shards) :]:
        token_files.remove_shard(job.path)
    manifest = _manifest(encoding.language, names, shards)
    token_files.write_index(own, key, manifest, shards)
    say(f"{encoding.language}: {sentences:,} sentences, {manifest['tokens']:,} tokens in {own}")
    return TokenFiles.open(own)


def _limited(
    jobs: list[Job], limit: int | None, processes: int, progress: Callable[[Shard], None]
) -> list[Shard]:
    """The shards of the first `limit` sentences."""
    shards: list[Shard] = []
    left = limit
    with contextlib.closing(_in_order(jobs, processes)) as made:
        for job, shard in zip(jobs, made, strict=True):
            if left is not None:
                if shard.sentences > left:
                    shard = make_shard(dataclasses.replace(job, limit=left))
                left -= shard.sentences
            shards.append(shard)
            progress(shard)
            if left == 0:
                break
    return shards


def _in_order(jobs: list[Job], processes: int) -> Generator[Shard, None, None]:
    """The shards of the jobs, one after the other; those on disk are not made again."""
    pool = _pool(processes) if min(processes, len(jobs)) > 1 else None
    ahead = 2 * processes if pool else 0
    waiting: collections.deque[Callable[[], Shard]] = collections.deque()
    try:
        for job in jobs:
            shard = token_files.read_shard(job.path)
            if shard is not None:
                waiting.append(functools.partial(lambda shard: shard, shard))
            elif pool:
                with _no_main_module():
                    waiting.append(pool.submit(make_shard, job).result)
            else:
                waiting.append(functools.partial(make_shard, job))
            if len(waiting) > ahead:
                yield waiting.popleft()()
        while waiting:
            yield waiting.popleft()()
    except BrokenProcessPool as error:
        raise ValueError(
            f"processes={processes}: one of them was ended from outside, often for want of memory. "
            "Set a lower number and start again; finished files are kept"
        ) from error
    finally:
        if pool:
            pool.shutdown(cancel_futures=True)


def _pool(processes: int) -> ProcessPoolExecutor:
    context = multiprocessing.get_context("spawn")  # a fork of JAX's threads may hang
    return ProcessPoolExecutor(processes, mp_context=context, initializer=_end_with_parent)


@contextlib.contextmanager
def _no_main_module() -> Iterator[None]:
    """Keeps a process spawned within from running the main module again, which imports JAX."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _end_with_parent() -> None:
    """Ends this process when its parent was killed; it would wait for work for ever."""

    def wait() -> None:
        if parent := multiprocessing.parent_process():
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _key(
    given: Sequence[sources.Source], encoding: Encoding, limit: int | None, chunk_bytes: int
) -> str:
    decides = {
        "format": FORMAT,
        "sources": [sources.fingerprint(source) for source in given],
        "language": encoding.language,
        "normalization": encoding.normalizer.identity,
        "split": encoding.split and encoding.split.identity,
        "pieces": encoding.pieces.sha256,
        "ids": None if encoding.ids is None else encoding.ids.tolist(),
        "limit": limit,
        "chunk_bytes": chunk_bytes,
    }
    return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()


def _require_text(names: list[str], sentences: int, limit: int | None) -> None:
    if not sentences:
        raise ValueError(f"{' + '.join(names)} has no text: it is empty or holds only blank lines")
    if limit is not None and sentences < limit:
        raise ValueError(
            f"limit={limit}, but {' + '.join(names)} has {sentences} sentences: "
            "lower the limit, leave it out to take all, or give more text"
        )


def _manifest(language: str, names: list[str], shards: list[Shard]) -> dict[str, Any]:
    tokens = sum(shard.tokens for shard in shards)
    sentences = sum(shard.sentences for shard in shards)
    unknown = sum(shard.unknown for shard in shards)
    hashes = "\n".join(shard.text_sha256 for shard in shards)
    return {
        "language": language,
        "sources": names,
        "sentences": sentences,
        "words": sum(shard.words for shard in shards),
        "tokens": tokens,
        "unknown": unknown / max(1, tokens - sentences),
        "sha256": hashlib.sha256(hashes.encode()).hexdigest(),
    }


def _progress(language: str, total: int, say: Callable[[str], None]) -> Callable[[Shard], None]:
    """Says how far it is, every half minute."""
    done = sentences = 0
    said = time.monotonic()

    def progress(shard: Shard) -> None:
        nonlocal done, sentences, said
        done += 1
        sentences += shard.sentences
        if time.monotonic() - said >= _SAY_SECONDS:
            said = time.monotonic()
            say(f"{language}: {done} of {total} files, {sentences:,} sentences")

    return progress

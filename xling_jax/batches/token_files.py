"""A language's tokens on disk: one stream in several files, read from any place."""

import dataclasses
import functools
import hashlib
import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from xling_jax import records
from xling_jax.batches import streams
from xling_jax.files import beside, read_json, sha256, sha256_once, write_beside

INDEX = "index.json"
_OPEN = 64  # files of a stream that are open at a time


@dataclasses.dataclass(frozen=True)
class Shard:
    """A file of the stream.

    file, bytes, sha256: its name, size and hash. tokens: number of pieces, the [SEP] after every
    sentence included. sentences, words: how many the text has, with blanks between words. unknown:
    how many pieces are [UNK]. text_sha256: of the sentences joined by newlines, in UTF-8; of text
    with words replaced by translations, of its tokens, and `words` then counts those of
    `code_switch`.
    """

    file: str
    bytes: int
    sha256: str
    tokens: int
    sentences: int
    words: int
    unknown: int
    text_sha256: str


def token_type(size: int) -> np.dtype[Any]:
    """uint16 where ids below `size` fit, else uint32."""
    return np.dtype("<u2" if size <= 2**16 else "<u4")


def write_tokens(path: Path, parts: Iterable[np.ndarray], dtype: np.dtype[Any]) -> int:
    """Writes arrays one after the other to one flat .npy file, completely or not at all. Returns
    the number of tokens. Holds one part in memory."""

    def write_header(total: int) -> None:
        header = {"descr": dtype.str, "fortran_order": False, "shape": (total,)}
        np.lib.format.write_array_header_1_0(file, header)

    total = 0
    with beside(path) as file:
        write_header(0)  # NumPy leaves room in the header for any length
        for part in parts:
            file.write(part.astype(dtype).tobytes())
            total += len(part)
        file.seek(0)
        write_header(total)
    return total


def write_shard(
    path: Path,
    parts: Iterable[np.ndarray],
    dtype: np.dtype[Any],
    text: Any,
    counts: Mapping[str, int],
) -> Shard:
    """Writes a file of the stream, and beside it the description that `read_shard` checks.

    Args:
      path: of the file.
      parts, dtype: see `write_tokens`.
      text: the hashlib object of the text. Like `counts` it is read after the last part, so making
        the parts may update both.
      counts: of sentences, words and unknown pieces, by these names.
    """
    tokens = write_tokens(path, parts, dtype)
    size, digest = path.stat().st_size, sha256(path)
    shard = Shard(path.name, size, digest, tokens, text_sha256=text.hexdigest(), **counts)
    write_beside(_description(path), json.dumps(dataclasses.asdict(shard)))
    return shard


def read_shard(path: Path) -> Shard | None:
    """The shard of a file that is complete and unchanged; otherwise None."""
    try:
        shard = Shard(**json.loads(_description(path).read_text("utf-8")))
        whole = shard.file == path.name and sha256(path) == shard.sha256
    except (OSError, ValueError, TypeError):
        return None
    return shard if whole else None


def remove_shard(path: Path) -> None:
    """Removes a file of the stream and its description."""
    path.unlink(missing_ok=True)
    _description(path).unlink(missing_ok=True)


class TokenFiles:
    """The token stream of a language: the pieces of each sentence, followed by [SEP].

    Attributes:
      key: a hash of everything that decides the contents of the files.
      total: number of tokens.
      sentences: how many there are.
      shards: the files in the order of the stream.
      manifest: language, sources, sentences, words (separated by blanks), tokens, unknown (share of
        [UNK] in the pieces), sha256 (of the shards' `text_sha256`).
    """

    def __init__(self, folder: Path, index: dict[str, Any]):
        """Takes the contents of the index; see `open`."""
        self.folder = folder
        self.key: str = index["key"]
        self.manifest: dict[str, Any] = index["manifest"]
        self.shards = [Shard(**shard) for shard in index["shards"]]
        self.sentences = sum(shard.sentences for shard in self.shards)
        self._ends = np.cumsum([shard.tokens for shard in self.shards])
        self.total = int(self._ends[-1])
        self._opened = functools.lru_cache(maxsize=_OPEN)(self._open)
        self._header = functools.cache(self._read_header)

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Self:
        """Opens what `batches.prepare` wrote; ValueError if the index is damaged, or a file is
        missing or has another size."""
        path = Path(folder) / INDEX
        try:
            index = read_json(path)
            records.require_unchanged(index, str(path))
            files = cls(path.parent, index)
            for shard in files.shards:
                size = (files.folder / shard.file).stat().st_size
                if size != shard.bytes:
                    raise ValueError(f"{shard.file} is {size} bytes long, not {shard.bytes}")
        except (OSError, ValueError, TypeError, KeyError, IndexError) as error:
            raise ValueError(f"{path} cannot be used ({error}): prepare the text again") from error
        return files

    @classmethod
    def open_unchanged(cls, folder: Path) -> Self | None:
        """Opens the stream if every byte is as written, otherwise returns None. A process reads a
        file only once for this, unless it changes."""
        try:
            files = cls.open(folder)
            for shard in files.shards:
                if sha256_once(folder / shard.file) != shard.sha256:
                    return None
        except (OSError, ValueError):
            return None
        return files

    def __reduce__(self) -> Any:
        return type(self).open, (str(self.folder),)

    def read(self, start: int, length: int) -> np.ndarray:
        """The tokens from place `start` on: int32 [length]. After the stream's last token comes
        its first one again."""
        tokens = np.empty(length, np.int32)
        done = 0
        while done < length:
            place = (start + done) % self.total
            number = int(np.searchsorted(self._ends, place, side="right"))
            shard = self.shards[number]
            first = place - (int(self._ends[number]) - shard.tokens)
            part = self._part(shard, first, min(length - done, shard.tokens - first))
            tokens[done : done + len(part)] = part
            done += len(part)
        return tokens

    @functools.cached_property
    def sentence_starts(self) -> np.ndarray:
        """The place of each sentence's first token, int64 [sentences]."""
        return streams.sentence_starts(map(self._mapped, self.shards))

    def as_array(self) -> np.ndarray:
        """The whole stream: int32 [total]."""
        return self.read(0, self.total)

    def _part(self, shard: Shard, first: int, most: int) -> np.ndarray:
        """At least one and at most so many tokens of a file, from its token `first` on. Windows
        begin anywhere, so each may be in another of very many files: all that is done for it anew
        is to open that one, if it is not open, and to read."""
        try:
            dtype, offset = self._header(shard.file)
            place, size = offset + first * dtype.itemsize, most * dtype.itemsize
            file = self._opened(shard.file)  # a name, so that no other thread closes it meanwhile
            content = os.pread(file.fileno(), size, place)
            if not content:
                raise ValueError("it is too short")
            return np.frombuffer(content, dtype)
        except (OSError, ValueError) as error:
            raise self._unreadable(shard, error) from error

    def _mapped(self, shard: Shard) -> np.ndarray:
        try:
            return np.load(self.folder / shard.file, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise self._unreadable(shard, error) from error

    def _open(self, name: str) -> io.FileIO:
        return open(self.folder / name, "rb", buffering=0)

    def _read_header(self, name: str) -> tuple[np.dtype[Any], int]:
        """The type of a file's tokens, and the place of the first one in bytes. NumPy's own reader
        parses Python, for which CPython 3.11 may raise a SystemError in one of several threads."""
        with open(self.folder / name, "rb") as file:
            start = file.read(10)  # magic, version 1.0 and the length of the header
            header = file.read(int.from_bytes(start[8:], "little"))
        for dtype in map(np.dtype, ("<u2", "<u4")):
            if start.startswith(b"\x93NUMPY\1\0") and repr(dtype.str).encode() in header:
                return dtype, len(start) + len(header)
        raise ValueError("it is no file of tokens")

    def _unreadable(self, shard: Shard, error: Exception) -> ValueError:
        return ValueError(
            f"{self.folder / shard.file} cannot be read ({error}): delete it and prepare the text "
            "again"
        )


def write_index(
    folder: Path, key: str, manifest: Mapping[str, Any], shards: Sequence[Shard]
) -> TokenFiles:
    """Writes the index, when all shards are there, and opens the stream. Adds the text's hash to
    the manifest."""
    hashes = "\n".join(shard.text_sha256 for shard in shards)
    index = {
        "key": key,
        "manifest": {**manifest, "sha256": hashlib.sha256(hashes.encode()).hexdigest()},
        "shards": [dataclasses.asdict(shard) for shard in shards],
    }
    content = json.dumps(records.sealed(index), indent=1, ensure_ascii=False)
    write_beside(folder / INDEX, content + "\n")
    return TokenFiles.open(folder)


def _description(path: Path) -> Path:
    return path.with_name(path.name.removesuffix(".npy") + ".json")

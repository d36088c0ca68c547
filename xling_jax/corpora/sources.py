"""Sources of text, divided into parts that are read line by line, however large they are."""

import bz2
import codecs
import contextlib
import dataclasses
import gzip
import hashlib
import io
import json
import lzma
import os
import pathlib
import re
import stat
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from xling_jax import files
from xling_jax.corpora import tfds

SYNTHETIC = "synthetic"  # what a config calls the embedded languages' texts
_UNPACKING_ERRORS = (EOFError, OSError, lzma.LZMAError, zlib.error)

_BLOCK = 2**18  # bytes read at once
_SEARCHED = 2**13  # bytes read at once to find the end of a line
_HEAD = 2**16  # bytes from which what a file is like can be told
_EXAMPLES = 1000  # examples read at once
_WEIGHED = 100  # about so many examples give an estimate of the length of all
_NEW_END, _OLD_END = re.compile(rb"\n"), re.compile(rb"[\r\n]")
_BYTE_ORDER_MARK = "\ufeff"
_NUL = "a NUL byte"
_WIDE_MARKS = {  # UTF-32 first: its mark begins with that of UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}

_PACKED_MARKS = {
    b"\x1f\x8b": ".gz",
    b"BZh": ".bz2",
    b"\xfd7zXZ\0": ".xz",
    b"\x28\xb5\x2f\xfd": ".zst",
    b"PK\x03\x04": ".zip",
}
_TAR_MARK, _TAR_PLACE = b"ustar", 257


class _Streams(io.RawIOBase):
    """What the streams of a compressed file hold, one after the other. It raises an error for
    anything after a stream that is not another stream, where `bz2.open` and `lzma.open` end."""

    def __init__(self, file: BinaryIO, kind: Callable[[], Any]):
        self._file, self._kind, self._stream = file, kind, kind()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        unpacked = b""
        while not unpacked:
            packed = b""
            if self._stream.eof:
                packed = self._stream.unused_data.lstrip(b"\0")
                while not packed:
                    if not (block := self._file.read(_BLOCK)):
                        return 0
                    packed = block.lstrip(b"\0")
                self._stream = self._kind()
            elif self._stream.needs_input and not (packed := self._file.read(_BLOCK)):
                raise EOFError("it ends within a stream")
            unpacked = self._stream.decompress(packed, len(buffer))
        buffer[: len(unpacked)] = unpacked
        return len(unpacked)

    def close(self) -> None:
        self._file.close()
        super().close()


def _streams(kind: Callable[[], Any]) -> Callable[[pathlib.Path], io.BufferedReader]:
    return lambda path: io.BufferedReader(_Streams(path.open("rb"), kind), _BLOCK)


COMPRESSED: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".bz2": _streams(bz2.BZ2Decompressor),
    ".xz": _streams(lzma.LZMADecompressor),
}


@dataclasses.dataclass(frozen=True)
class Lines:
    """Text in memory, and its name in manifests and errors."""

    name: str
    lines: tuple[str, ...]


# A UTF-8 file, also compressed (.gz, .bz2, .xz), a TFDS name (see `corpora.tfds`), or `Lines`.
Source = str | Lines


@dataclasses.dataclass(frozen=True)
class Chunk:
    """Whole lines of a source: bytes start..stop-1 of a file, or these examples of a TFDS name; to
    the end if `stop` is None. `Lines` are always whole."""

    source: Source
    start: int = 0
    stop: int | None = None


def name(source: Source) -> str:
    """What to call the source."""
    return source.name if isinstance(source, Lines) else source


def chunks(source: Source, bytes_a_chunk: int) -> list[Chunk]:
    """Divides a source, in its order, into chunks of about `bytes_a_chunk` bytes of text.

    A file is divided at line ends, so a chunk is at most one line longer than this. A compressed
    file is always one chunk. Any other empty source has no chunk. Raises as `lines` does.
    """
    if isinstance(source, Lines):
        parts: list[list[str]] = []
        size = 0
        for line in source.lines:
            if not parts or size >= bytes_a_chunk:
                parts.append([])
                size = 0
            parts[-1].append(line)
            size += len(line.encode()) + 1
        return [Chunk(Lines(source.name, tuple(part))) for part in parts]
    if source.startswith(tfds.PREFIX):
        examples = tfds.examples(source)
        total = len(examples)
        some = examples.read(range(0, total, max(1, total // _WEIGHED)))
        size = sum(len(line.encode()) + 1 for line in some)
        step = max(1, bytes_a_chunk * len(some) // max(1, size))
        return [Chunk(source, start, min(start + step, total)) for start in range(0, total, step)]
    path = _path(source)
    if path.suffix.lower() in COMPRESSED:
        return [Chunk(source)]
    divided, start, size = [], 0, path.stat().st_size
    end = _line_end(source)
    with _open(source) as file:
        while start < size:
            is_last = size - start <= bytes_a_chunk
            stop = size if is_last else _next_line(file, start + bytes_a_chunk, end)
            divided.append(Chunk(source, start, stop))
            start = stop
    return divided


def lines(chunk: Chunk) -> Iterator[str]:
    r"""The lines of a chunk, as they are, without their ends: \n or \r\n, and \r in a file that
    has no \n, except perhaps as its last character.

    If a file or its chunk ends with a line end, an empty line follows. A byte-order mark at a
    file's beginning is left out. Memory holds a block and a line of a file, or some TFDS examples.

    Raises:
      FileNotFoundError: there is no such file.
      ValueError: not a regular file (but a folder, pipe or device), one that cannot be opened or
        unpacked, invalid UTF-8 or NUL bytes (the error names the line in the whole file), or a TFDS
        name that cannot be read.
    """
    if isinstance(chunk.source, Lines):
        yield from chunk.source.lines
    elif chunk.source.startswith(tfds.PREFIX):
        examples = tfds.examples(chunk.source)
        numbers = range(chunk.start, len(examples) if chunk.stop is None else chunk.stop)
        for first in range(0, len(numbers), _EXAMPLES):
            yield from examples.read(numbers[first : first + _EXAMPLES])
    else:
        yield from _file_lines(chunk.source, chunk.start, chunk.stop)


def numbered(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """The lines of a text file with their numbers, from 1. Raises as `lines` does."""
    return enumerate(lines(Chunk(os.fspath(path))), 1)


def wrong(path: str | os.PathLike[str], line: int, problem: object) -> ValueError:
    """The error for a problem in a line, counted from 1."""
    return ValueError(f"{path}, line {line}: {problem}")


def fingerprint(source: Source) -> str:
    """A hash of the source: of its lines or bytes, or of the version and size that TFDS states."""
    if isinstance(source, Lines):
        return hashlib.sha256(json.dumps(source.lines).encode()).hexdigest()
    if source.startswith(tfds.PREFIX):
        return hashlib.sha256(tfds.examples(source).identity.encode()).hexdigest()
    with _open(source):  # whose errors name the source
        return files.sha256_once(_path(source))


def state(source: Source) -> tuple[int, int, int] | None:
    """What changes if the content of a file does, see `files.state`; None for other sources, which
    do not change."""
    if isinstance(source, Lines) or source.startswith(tfds.PREFIX):
        return None
    return files.state(_path(source))


def require_unchanged(source: Source, before: tuple[int, int, int] | None, digest: str) -> None:
    """Raises ValueError if a source that was read is not the one that had this `state` and this
    `fingerprint` before."""
    if state(source) != before and fingerprint(source) != digest:
        raise ValueError(
            f"{name(source)} was changed while it was read: start again when nothing writes into "
            "it any more"
        )


def _path(source: str) -> pathlib.Path:
    try:
        path = pathlib.Path(source).expanduser()
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileNotFoundError(
            f"{source}: no such file (looked for {path.absolute()}). Name a file or, where "
            f"a TFDS name can be given, {tfds.FORM}"
        ) from error
    except OSError as error:
        raise ValueError(f"{source}: cannot be read ({error.strerror})") from error
    except (RuntimeError, ValueError) as error:  # no such user's home; a NUL in the name
        raise ValueError(f"{source!r} is no name of a file ({error})") from error
    if stat.S_ISDIR(mode):
        raise ValueError(f"{source} is a folder: name one file")
    if not stat.S_ISREG(mode):
        raise ValueError(
            f"{source} is no regular file but a pipe, device or socket, which cannot be read "
            "twice: write the text to a file"
        )
    return path


@contextlib.contextmanager
def _open(source: str, unpack: bool = False) -> Iterator[Any]:
    """Opens a file for reading bytes, unpacked if asked to."""
    path = _path(source)
    opener = COMPRESSED.get(path.suffix.lower()) if unpack else None
    try:
        file = opener(path) if opener else path.open("rb")
    except OSError as error:
        raise ValueError(f"{source}: cannot be opened ({error.strerror})") from error
    with file:
        yield file


def _line_end(source: str) -> re.Pattern[bytes]:
    r"""What ends the lines of a file. A lone \r does so only where no \n has text behind it."""
    with _open(source, unpack=True) as file, contextlib.suppress(*_UNPACKING_ERRORS):
        block = file.read(_HEAD)
        if b"\r" in block:
            while block and b"\n" not in block:
                block = file.read(_BLOCK)
            behind = block.partition(b"\n")[2] or file.read(1)
            return _NEW_END if behind else _OLD_END
    return _NEW_END


def _next_line(file: io.BufferedReader, place: int, line_end: re.Pattern[bytes]) -> int:
    """The beginning of the first line that begins at `place` or later; the file's end if none."""
    position = place - 1
    file.seek(position)
    while block := file.read(_SEARCHED):
        if match := line_end.search(block):
            end = position + match.end()
            if match[0] == b"\r":
                file.seek(end)
                end += file.read(1) == b"\n"
            return end
        position += len(block)
    return position


def _file_lines(source: str, start: int, stop: int | None) -> Iterator[str]:
    is_old, utf8 = _line_end(source) is _OLD_END, codecs.getincrementaldecoder("utf-8")()
    decoder = io.IncrementalNewlineDecoder(utf8, translate=True) if is_old else utf8
    position = start
    pending: list[str] = []  # parts of an unfinished line, joined only once, however long it is
    for block in _blocks(source, start, stop):
        if (place := block.find(0)) >= 0:
            raise _not_utf8(source, position + place, _NUL)
        try:
            decoded = decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            place = position + len(block) - len(error.object) + error.start
            byte = f"not valid UTF-8 (byte 0x{error.object[error.start]:02x})"
            raise _not_utf8(source, place, byte) from error
        if position == 0:
            decoded = decoded.removeprefix(_BYTE_ORDER_MARK)
        position += len(block)
        first, *others = decoded.split("\n")
        pending.append(first)
        for line in others:
            yield "".join(pending).rstrip("\r")
            pending = [line]
    yield "".join(pending).rstrip("\r")


def _not_utf8(source: str, place: int, problem: str) -> ValueError:
    """The error for a byte, which says what encoding the file seems to have."""
    head = next(_blocks(source, 0, _SEARCHED))
    seems = _wide_encoding(head)
    if ending := next((name for mark, name in _PACKED_MARKS.items() if head.startswith(mark)), ""):
        way_out = f"It looks like a {ending} file: unpack it"
        way_out += f", or let its name end with {ending}" * (ending in COMPRESSED)
    elif head.startswith(_TAR_MARK, _TAR_PLACE):
        way_out = "It looks like a .tar file: unpack it, and name one of its files"
    elif problem == _NUL and not seems:
        way_out = "The file is damaged, or no text: remove such bytes"
    else:
        said = f"It looks like {seems.upper()}: convert" if seems else "Convert"
        example = f"iconv -f {seems or 'latin1'} -t utf-8 {source}"
        way_out = f"{said} the file first, for example with {example}"
    return ValueError(f"{source}, line {_line_number(source, place)}: {problem}. {way_out}")


def _wide_encoding(head: bytes) -> str:
    """Which of UTF-16 and UTF-32 the beginning of a file is in; "" if neither."""
    if marked := next((name for mark, name in _WIDE_MARKS.items() if head.startswith(mark)), ""):
        return marked
    zeros = head.count(0)
    ends = max(head.count(b"\n\0"), head.count(b"\0\n"))
    if 4 * zeros < len(head) and 2 * ends <= head.count(b"\n"):
        return ""
    width = 32 if 2 * zeros > len(head) else 16
    return f"utf-{width}{'le' if head[1::2].count(0) >= head[::2].count(0) else 'be'}"


def _blocks(source: str, start: int, stop: int | None) -> Iterator[bytes]:
    """The unpacked bytes of a file from `start` to `stop` in blocks, and an empty block at last."""
    with _open(source, unpack=True) as file:
        if start:  # not in a compressed file, which is one chunk
            file.seek(start)
        while True:
            size = _BLOCK if stop is None else min(_BLOCK, stop - start)
            try:
                block = file.read(size)
            except _UNPACKING_ERRORS as error:
                suffix = pathlib.Path(source).suffix.lower()
                if suffix not in COMPRESSED:
                    raise
                raise ValueError(
                    f"{source}, line {_line_number(source, start)}: cannot be unpacked from here "
                    f"on ({error}): it is torn, or no {suffix} file"
                ) from error
            start += len(block)
            yield block
            if not block:
                return


def _line_number(source: str, place: int) -> int:
    """The number of the line, counted from 1, that a byte of the (unpacked) file is in."""
    is_old, ends, last = _line_end(source) is _OLD_END, 0, b""
    for block in _blocks(source, 0, place):
        ends += block.count(b"\n")
        if is_old:
            ends += block.count(b"\r") - (last + block).count(b"\r\n")
            last = block[-1:]
    return ends + 1

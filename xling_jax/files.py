"""Files that are written completely or not at all, and JSON that is checked."""

import contextlib
import functools
import hashlib
import io
import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from xling_jax import processes

_LONGEST_NAME = 255  # bytes, that file systems allow
LARGEST_JSON = 1 << 32  # bytes; a checkpoint's record has all evaluations of all replicas


def plain_name(text: str, more: str = "") -> str:
    """A name for a file: characters other than letters, digits, `_`, `.`, `-` and `more` become
    `_`."""
    return re.sub(rf"[^\w.{re.escape(more)}-]", "_", text)


def short_name(name: str) -> str:
    """The name itself or, if it is too long for a file, its beginning and a hash."""
    if len(name.encode()) <= _LONGEST_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()
    return f"{name.encode()[:150].decode(errors='ignore')}_{digest}"


@contextlib.contextmanager
def _renamed(path: Path) -> Iterator[Path]:
    """A path in the same folder, which is made, for a new file; afterwards the file is moved to
    `path`, or removed if something failed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    other = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield other
        os.replace(other, path)
    except OSError as error:
        error.filename = error.filename or str(path)  # errors of a full disk have no name
        raise
    finally:
        other.unlink(missing_ok=True)


@contextlib.contextmanager
def beside(path: Path) -> Iterator[BinaryIO]:
    """A file that is written beside its place and moved there when complete, so that no reader sees
    half of it. Of several processes only the first writes.
    """
    if not processes.is_first():
        yield io.BytesIO()
        return
    with _renamed(path) as other, open(other, "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def link_beside(path: Path, other: Path) -> None:
    """Makes `path` a hard link to another file, or a copy if the file system has no links."""
    if processes.is_first():
        with _renamed(path) as new:
            try:
                os.link(other, new)
            except OSError:
                shutil.copyfile(other, new)


def write_beside(path: Path, content: str | bytes) -> Path:
    """Writes a file `beside` its place; returns the path."""
    with beside(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
    return path


def kept(folder: Path, key: str, suffix: str, make: Callable[[], bytes]) -> bytes:
    """What `make` returns; taken from the folder if it was kept there before under this key. A
    file's name holds a hash of its content, so a damaged one is noticed and made anew."""

    def named(content: bytes) -> Path:
        return folder / f"{key}-{short_hash(content)}{suffix}"

    for path in folder.glob(f"{key}-*{suffix}"):
        if path == named(content := path.read_bytes()):
            return content
    write_beside(named(content := make()), content)
    return content


def short_hash(content: bytes) -> str:
    """Half of the SHA-256, which is enough to tell files apart."""
    return hashlib.sha256(content).hexdigest()[:32]


def sha256(path: Path) -> str:
    """The hash of a file's content."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def state(path: Path) -> tuple[int, int, int]:
    """A file's size, time of modification and inode. If its content changes, one of them does too,
    but for rare cases."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns, found.st_ino


def sha256_once(path: Path) -> str:
    """As `sha256`, but a process reads a file only once for it, unless the file changes."""
    return _sha256_of(path, state(path))


@functools.cache
def _sha256_of(path: Path, _: tuple[int, int, int]) -> str:
    return sha256(path)


def require_new(folder: Path, flag: str) -> None:
    """Raises ValueError if there is a file of this name, or a folder that is not empty."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{flag}={folder} already exists; name a new folder")


def require_regular(path: Path) -> None:
    """Raises FileNotFoundError if there is no such file, and ValueError for a folder, or a pipe, a
    socket or a device, on which a reader might wait for ever."""
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        raise ValueError(f"{path} is a folder: put a file in its place, or give another path")
    if not stat.S_ISREG(mode):
        raise ValueError(
            f"{path} is a pipe, a socket or a device: write what it gives to a file, and use that"
        )


def read_json(path: Path) -> Any:
    """The value in a file of JSON; FileNotFoundError if there is none, ValueError, naming it, if it
    is not a regular file, too large, or refused by `parse_json`."""
    require_regular(path)
    if path.stat().st_size > LARGEST_JSON:
        raise ValueError(f"{path} is larger than {LARGEST_JSON >> 20} MiB: it is no file of JSON")
    return parse_json(path.read_bytes(), str(path))


def parse_json(content: bytes, name: str) -> Any:
    """The value of UTF-8 JSON from a file of this name; NaN and Infinity are numbers.

    ValueError if it is not UTF-8 or not JSON, nested too deep, or an object has a name twice.
    """
    again = "restore it, or let the program that wrote it write it again"
    try:
        return json.loads(content.decode("utf-8-sig"), object_pairs_hook=_without_duplicates)
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is not UTF-8 (byte {error.start + 1}): {again}") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ValueError(f"{name} is not JSON ({place}: {error.msg}): {again}") from None
    except RecursionError:
        raise ValueError(f"{name}: its JSON is nested too deep: {again}") from None
    except ValueError as error:  # a name twice, or a number of thousands of digits
        raise ValueError(f"{name}: {error}: {again}") from None


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"an object has {twice!r} twice")
    return found

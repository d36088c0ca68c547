"""Files that are whole or not there."""

import contextlib
import io
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from xling_jax import processes


def plain_name(text: str) -> str:
    """A name where a file system allows no other characters: letters, digits, `_`, `.`, `-`."""
    return re.sub(r"[^\w.-]", "_", text)


@contextlib.contextmanager
def beside(path: Path) -> Iterator[BinaryIO]:
    """A file beside its place, which takes it when all is written, so that no reader sees half.

    Folders above it are made. Nothing is left of a file whose writing failed. Of several processes
    the first alone writes.
    """
    if not processes.is_first():
        yield io.BytesIO()
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    other = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(other, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(other, path)
    except OSError as error:
        error.filename = error.filename or str(path)  # nobody names it where the disk is full
        raise
    finally:
        other.unlink(missing_ok=True)


def link_beside(path: Path, other: Path) -> None:
    """Makes a file the same as another one, without a copy where the file system can do that."""
    if not processes.is_first():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        try:
            os.link(other, new)
        except OSError:
            shutil.copyfile(other, new)
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)


def write_beside(path: Path, content: str | bytes) -> Path:
    """Writes a file `beside` its place; returns the path."""
    with beside(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
    return path

"""The folder of a run: one process at a time writes there, and all of a run's processes see it."""

import os
import re
import socket
import time
import uuid
from pathlib import Path

from xling_jax import lock as locks
from xling_jax import processes
from xling_jax.files import write_beside
from xling_jax.lock import Lock
from xling_jax.training.metrics import say

_URL = re.compile(r"[a-z][a-z0-9+.-]+:/")
# Orbax looks for its files by patterns: with one of these in a path it finds none, or others.
_PATTERN = re.compile(r"[][*?\\]")
_SHARED = ".shared"
_SEEN_WITHIN = 90  # seconds in which all machines see what one has written, or that it is lost


def lock(workdir: Path) -> Lock | None:
    """Makes the folder and takes its lock, which a process keeps while it writes there; None in all
    processes but the first. ValueError if the folder cannot be written to or cannot hold
    checkpoints, if not all processes see what is in it, or if another process, which is named, has
    the lock."""
    if _URL.match(str(workdir)):
        raise ValueError(
            f"--workdir={workdir} is no folder of a file system; mount the bucket, for instance by "
            "gcsfuse, and name a folder there"
        )
    if wrong := _PATTERN.search(str(workdir.resolve())):
        raise ValueError(
            f"--workdir={workdir.resolve()}: there is a {wrong[0]} in its path, and checkpoints "
            "below such a folder cannot be read again: choose a path without [ ] * ? or \\"
        )
    taken, written = list[Lock](), uuid.uuid4().hex

    def begin() -> None:
        try:
            workdir.mkdir(parents=True, exist_ok=True)
            taken.append(_take(workdir))
            if processes.are_several():
                write_beside(workdir / _SHARED, written)
        except OSError as error:
            raise ValueError(
                f"--workdir={workdir}: {_why_closed(workdir, error)}choose another folder"
            ) from error
        if not taken[0].is_sure:
            say(f"{workdir}: its file system has no locks; let no other process write there")

    processes.by_all(begin if processes.is_first() else None)
    if processes.are_several():
        _require_shared(workdir / _SHARED, processes.of_first(lambda: written))
    return taken[0] if taken else None


def _take(workdir: Path) -> Lock:
    """The lock; of several processes the first waits a while for it, as a network file system keeps
    the lock of a machine that is lost."""
    end, has_said = time.monotonic() + _SEEN_WITHIN, False
    while True:
        try:
            return locks.take(workdir)
        except ValueError as error:
            if not processes.are_several() or time.monotonic() > end:
                raise
            if not has_said:
                say(f"waiting up to {_SEEN_WITHIN} seconds for its lock: {error}")
                has_said = True
        time.sleep(1)


def _why_closed(workdir: Path, error: OSError) -> str:
    """Why a process cannot write into a folder, and what may be done about it, up to "choose"."""
    path = workdir.resolve() / locks.NAME
    is_closed = isinstance(error, PermissionError) and error.filename == str(path)
    if is_closed and os.path.exists(path) and os.access(workdir, os.W_OK):
        return f"{path} is another user's. If that run has ended, remove this file, or "
    return f"cannot write there ({error.strerror}); "


def _require_shared(path: Path, written: str) -> None:
    """Raises ValueError in all processes unless each sees what the first one wrote into a file;
    they would wait for each other at the first checkpoint. The file is removed."""

    def look() -> None:
        end = time.monotonic() + _SEEN_WITHIN
        while not _has(path, written):
            if time.monotonic() > end:
                raise ValueError(
                    f"--workdir={path.parent}: on {socket.gethostname()} a process does not see "
                    "what the first one writes there; name a folder that all machines share, the "
                    "same for all processes"
                )
            time.sleep(0.2)

    try:
        processes.by_all(look)
    finally:
        if processes.is_first():
            path.unlink(missing_ok=True)


def _has(path: Path, written: str) -> bool:
    try:
        return path.read_bytes() == written.encode()
    except OSError:
        return False

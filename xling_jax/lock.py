"""Locks of folders, so that only one process at a time writes into one."""

import contextlib
import errno
import fcntl
import json
import os
import shlex
import socket
import sys
import time
import weakref
from pathlib import Path

NAME = ".lock"
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)


class Lock:
    """The right to write into a folder, which ends with this object or with the process.

    Processes that this one starts do not hold it. `is_sure` is False if the file system has no
    locks, such as NFS without its lock service.
    """

    def __init__(self, path: Path):
        """Takes the lock, a file that exists as long as the lock is held; see `take`."""
        while True:
            try:
                file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            except PermissionError:
                _require_free(path)
                raise
            try:
                self.is_sure = _lock_if_possible(file, path)
            except (OSError, ValueError):
                os.close(file)
                raise
            if _is_in_place(file, path):
                break
            os.close(file)  # the process that had it has just removed it
        weakref.finalize(self, _release, file, path, os.getpid())
        said = {
            "host": socket.gethostname(),
            "process": os.getpid(),
            "since": time.strftime("%Y-%m-%d %H:%M:%S %z"),
            "command": shlex.join(sys.orig_argv)[:1000],  # so that all of it is read
        }
        with contextlib.suppress(OSError):  # a full disk: the lock is held without a description
            os.ftruncate(file, 0)
            os.pwrite(file, json.dumps(said).encode(), 0)


def _lock_if_possible(file: int, path: Path) -> bool:
    """Locks an open file; returns False if the file system has no locks. ValueError if another
    process has locked it."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return False
        if error.errno not in (errno.EACCES, errno.EAGAIN):
            raise
        raise ValueError(
            f"--workdir={path.parent} is in use by {_in_words(os.pread(file, 4096, 0))}. Wait "
            "until it ends or end it, or choose another --workdir"
        ) from None
    return True


def _require_free(path: Path) -> None:
    """Raises ValueError if a process of another user holds a lock that this one may only read."""
    with contextlib.suppress(OSError):
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            _lock_if_possible(file, path)
        finally:
            os.close(file)


def _is_in_place(file: int, path: Path) -> bool:
    """Whether the path still names this open file."""
    with contextlib.suppress(OSError):
        return os.path.samestat(os.fstat(file), path.stat())
    return False


def _release(file: int, path: Path, process: int) -> None:
    if os.getpid() == process and _is_in_place(file, path):
        path.unlink(missing_ok=True)
    os.close(file)


_held: "weakref.WeakValueDictionary[Path, Lock]" = weakref.WeakValueDictionary()


def take(folder: Path) -> Lock:
    """The lock of a folder, one object for all who take it within a process; ValueError, naming
    the other process, if another one has it."""
    path = folder.resolve() / NAME
    lock = _held.get(path)
    if lock is None:
        lock = _held[path] = Lock(path)
    return lock


def _in_words(holder: bytes) -> str:
    try:
        said = json.loads(holder)
        words = "process {process} on {host} since {since} ({command}".format(**said)
        return " ".join(words[:400].split()) + ")"
    except (ValueError, TypeError, KeyError):
        return "another process"

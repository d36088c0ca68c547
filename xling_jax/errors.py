"""Errors as one line that names the thing and a way out."""

import contextlib
import errno
import os
import re
import resource
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path

from absl import flags

from xling_jax import processes

TRACEBACK = "XLING_JAX_TRACEBACK"  # of the environment: set to see where an error was raised
INTERRUPTED = 130  # exit status, as of a program that Ctrl-C ended
OUT_OF_MEMORY = "RESOURCE_EXHAUSTED"  # in XLA's errors
_NO_MEMORY = (OUT_OF_MEMORY, "failed to map segment", "bad_alloc")  # XLA's, a loader's, C++'s
NOTHING_LOST = "nothing that was stored is lost, and the same command goes on"
LESS_MEMORY = (
    f"end other programs, raise the limit, or make batches or model smaller; {NOTHING_LOST}"
)
_PLACE = "name another place"
_ACCESS = f"give yourself access to it (`ls -ld` shows the permissions), or {_PLACE}"
_SPACE = (
    "free some, for instance the checkpoints of finished runs, unless another run begins with "
    f"them (training.start_from); {NOTHING_LOST}"
)
_DISK = f"see to the file system, or {_PLACE} on another one; {NOTHING_LOST}"
_WAYS_OUT = {
    errno.ENOENT: "check the path",
    errno.ENOTDIR: f"a file stands where a folder of this path should be: {_PLACE}",
    errno.EISDIR: f"a folder stands where a file should be: move it away, or {_PLACE}",
    errno.EEXIST: f"a file stands where a folder should be: move it away, or {_PLACE}",
    errno.EACCES: _ACCESS,
    errno.EPERM: _ACCESS,
    errno.EROFS: _ACCESS,
    errno.ENAMETOOLONG: "give shorter names",
    errno.ELOOP: f"mend the links, or {_PLACE}",
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
    errno.EFBIG: f"raise the limit (`ulimit -f`); {NOTHING_LOST}",
    errno.EMFILE: f"raise the limit, for instance by `ulimit -n 4096`; {NOTHING_LOST}",
    errno.ENFILE: f"end other programs; {NOTHING_LOST}",
    errno.ENOMEM: LESS_MEMORY,
    errno.EAGAIN: f"end other programs, or raise the limits (`ulimit -a`); {NOTHING_LOST}",
    errno.ESTALE: _DISK,
    errno.EIO: _DISK,
    errno.EPIPE: "nobody reads the output any more; what was computed is stored",
}
_TYPES = {  # words of Python and Abseil about a flag's value of a wrong type, and the way out
    "invalid literal for int()": "write a whole number",
    "could not convert string to float": "write a number",
    "Non-boolean argument": "write True or False",
    "as a ConfigDict": "set its fields one by one, as --config.SECTION.FIELD=VALUE",
}
_PACKAGE = Path(__file__).parent


@contextlib.contextmanager
def in_one_line(status: int = 1) -> Iterator[None]:
    """Ends the program if something goes wrong inside, with a status and one line, or with the
    traceback if `XLING_JAX_TRACEBACK` is in the environment; of several processes all end."""
    is_whole = bool(os.environ.get(TRACEBACK))
    in_background: list[threading.ExceptHookArgs] = []
    hooks = threading.excepthook, sys.unraisablehook
    if not is_whole:  # where a checkpoint cannot be written, threads of libraries say so at length
        threading.excepthook = in_background.append
        sys.unraisablehook = lambda _: None
    try:
        yield
        print(end="", flush=True)
    except KeyboardInterrupt:
        _end(INTERRUPTED, f"interrupted: {NOTHING_LOST}")
    except Exception as error:
        in_background.clear()
        processes.end_if_abandoned(error)
        _end(status, traceback.format_exc() if is_whole else f"error: {explain(error)}")
    finally:
        for each in in_background:
            threading.__excepthook__(each)
    threading.excepthook, sys.unraisablehook = hooks


def parse_flags(arguments: list[str]) -> list[str]:
    """Parses the flags of a command; ends the program with one line if they are wrong."""
    with in_one_line(status=2):
        rest = flags.FLAGS(arguments)
        if len(rest) > 1:
            raise ValueError(f"unknown argument {rest[1]!r}: write --NAME=VALUE")
        return rest


def _end(status: int, message: str) -> None:
    if processes.are_several():
        processes.end(status, message)
    print(message, file=sys.stderr)
    warnings.simplefilter("ignore")
    try:
        print(end="", flush=True)
    except OSError:  # Python would try once more, and complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(status)


def explain(error: Exception) -> str:
    """What went wrong, and what to do about it."""
    said = str(error).strip()
    if isinstance(error, flags.Error):
        ways = (f"{said}; {way}" for words, way in _TYPES.items() if words in said)
        return " ".join(next(ways, said).split()).removeprefix("flag ")
    if isinstance(error, OSError) and error.errno is not None:
        return _of_system(error.errno, error.filename)
    is_own_kind = type(error).__module__.startswith("xling_jax.")
    if said and (
        is_own_kind or isinstance(error, ValueError | OSError) and _is_ours(_raiser(error))
    ):
        return said
    short = " ".join(said.split())[:300]
    if _raiser(error).endswith("jax/_src/xla_bridge.py"):
        return (
            f"JAX_PLATFORMS={os.environ.get('JAX_PLATFORMS', '')}: JAX cannot compute there "
            f"({short or 'it finds no such device'}). Unset it, and JAX takes what there is; "
            "JAX_PLATFORMS=cpu works everywhere"
        )
    # Libraries put the system's message into errors of their own.
    for number in _WAYS_OUT:
        if os.strerror(number) in said:
            path = re.search(r'"(/[^"]+)"', said)
            return _of_system(number, path[1]) if path else f"{short}: {_WAYS_OUT[number]}"
    if (
        isinstance(error, MemoryError)
        or any(words in said for words in _NO_MEMORY)
        or isinstance(error, ImportError | SystemError)
        and resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
    ):
        return f"the memory does not suffice ({short or type(error).__name__}): {LESS_MEMORY}"
    if _raiser(error).endswith("ml_collections/config_dict/config_dict.py"):
        return f"the config lacks what the experiment needs: {short}"
    return (
        f"{type(error).__name__} at {_place(error)}: {short}. This is a fault of the program: "
        f"{TRACEBACK}=1 shows where it comes from; nothing that was stored is lost"
    )


def _of_system(number: int, path: str | bytes | None) -> str:
    what = f"{os.fsdecode(path)}: " if path else ""
    way_out = _WAYS_OUT.get(number, _DISK if path else NOTHING_LOST)
    return f"{what}{os.strerror(number)}: {way_out}"


def _raiser(error: BaseException) -> str:
    """The file of the code that raised an error; "" without one."""
    frames = traceback.extract_tb(error.__traceback__)
    return frames[-1].filename if frames else ""


def _is_ours(file: str) -> bool:
    return Path(file).is_relative_to(_PACKAGE)


def _place(error: Exception) -> str:
    """The last line of this package that an error came through."""
    frames = traceback.extract_tb(error.__traceback__)
    last = next((f for f in reversed(frames) if _is_ours(f.filename)), frames[-1])
    return f"{Path(last.filename).name}, line {last.lineno}"


@contextlib.contextmanager
def in_field(field: str) -> Iterator[None]:
    """Puts the name of a field in front of errors that are raised while its file is read."""
    try:
        yield
    except (FileNotFoundError, ValueError) as error:
        kind = FileNotFoundError if isinstance(error, FileNotFoundError) else ValueError
        raise kind(f"{field}: {error}") from error

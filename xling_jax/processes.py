"""Several processes that compute one run together: how they start, agree and end.

Every process runs the same program on the same config, plans the same batches and holds the arrays
of its own devices. All see one workdir, on a shared file system. Only the first process writes
there, except that each writes its part of Orbax's checkpoints and of token files, and what is done
next depends on what the first one reads.
"""

import contextlib
import ipaddress
import json
import os
import re
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from absl import flags

# JAX and NumPy are imported where they are used: what only writes a file need not wait.

AUTO = "auto"
HEARTBEAT = 30  # seconds after which a silent process counts as dead
JOINING = 300  # seconds within which all processes of a run must have found the first
PATIENCE = 24 * 3600  # seconds that processes wait for each other: preparing text may take hours
ABANDONED = 75  # exit status where another process of the run is gone; starting again may help
# In XLA's errors if another process is gone.
OF_OTHERS = ("Gloo", "NCCL", "heartbeat", "oordination", "Connection", "UNAVAILABLE")

COORDINATOR = flags.DEFINE_string(
    "coordinator", "", "HOST:PORT of the first process, for a run of several processes."
)
COUNT = flags.DEFINE_string(
    "processes",
    "",
    "How many processes compute the run; `auto` asks a TPU pod, Slurm or Open MPI. Under `srun` "
    "with several tasks that is the default; with 1 each task is a run of its own, which needs its "
    "own --workdir.",
)
INDEX = flags.DEFINE_integer("process", None, "Which of them this one is, from 0.", lower_bound=0)


class _Place:
    """The number of this process, the number of processes, and how often they have met."""

    index, count, meetings = 0, 1, 0


def start() -> None:
    """Joins the other processes of the run, before any computation, if the flags or the
    environment tell of some; ValueError for flags that are wrong or do not fit each other. Ends
    this process if they do not find each other within `JOINING` seconds."""
    tasks = os.environ.get("SLURM_STEP_NUM_TASKS", "")
    count = COUNT.value or (AUTO if tasks.isdecimal() and int(tasks) > 1 else "")
    is_placed = bool(COORDINATOR.value) or INDEX.value is not None
    if count in ("", "1") and not is_placed:
        return
    import jax

    patience: dict[str, Any] = {
        "heartbeat_timeout_seconds": HEARTBEAT,
        "initialization_timeout": 2 * JOINING,
    }
    if count == AUTO and not is_placed:
        with _joining(""):
            try:
                jax.distributed.initialize(**patience)
            except ValueError as error:
                raise ValueError(
                    f"--processes={AUTO}: this is no TPU pod, Slurm step or Open MPI job "
                    f"({error}). Give --processes=N, --process and --coordinator"
                ) from error
    else:
        if (
            not re.fullmatch("[1-9][0-9]{0,5}", count)
            or INDEX.value is None
            or INDEX.value >= int(count)
        ):
            index = "" if INDEX.value is None else INDEX.value
            raise ValueError(
                f"--processes={count} --process={index}: give the number of processes, "
                f"which one this is (from 0), and --coordinator=HOST:PORT of the first; or "
                f"--processes={AUTO} alone"
            )
        port = _require_address(COORDINATOR.value)
        if INDEX.value == 0:
            try:
                socket.create_server(("", port)).close()
            except OSError as error:
                raise ValueError(
                    f"--coordinator: the first process cannot listen at port {port} "
                    f"({os.strerror(error.errno or 0)}); choose another one"
                ) from error
        with _joining(f" at {COORDINATOR.value}"):
            jax.distributed.initialize(
                COORDINATOR.value,
                int(count),
                INDEX.value,
                cluster_detection_method="deactivate",
                **patience,
            )
    # JAX has begun to catch SIGTERM, and does nothing with it. Only `Interruption` should catch it.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _Place.index, _Place.count = jax.process_index(), jax.process_count()


@contextlib.contextmanager
def _joining(where: str) -> Iterator[None]:
    """Ends this process if what is inside takes too long; JAX itself would abort it."""
    said = (
        f"error: this process did not meet the others{where} within {JOINING} s. See that all run, "
        "that all were given the same --coordinator, and that its port can be reached"
    )
    late = threading.Timer(JOINING, end, (ABANDONED, said))
    late.daemon = True
    late.start()
    try:
        yield
    finally:
        late.cancel()


def _require_address(text: str) -> int:
    """The port of a --coordinator; ValueError unless it is HOST:PORT."""
    found = re.fullmatch(r"(\[.+\]|[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}):([0-9]{1,5})", text)
    try:
        if found is None or not 0 < int(found[2]) < 2**16:
            raise ValueError("this is not HOST:PORT with a port from 1 to 65535")
        if found[1].startswith("["):
            ipaddress.IPv6Address(found[1][1:-1])
        elif found[1].replace(".", "").isdigit():
            ipaddress.IPv4Address(found[1])
    except ValueError as error:
        raise ValueError(
            f"--coordinator={text!r}: {error}; write the first process's host and a free "
            "port of it, such as node1:8476, 10.0.0.1:8476 or [fd00::1]:8476"
        ) from None
    return int(found[2])


def are_several() -> bool:
    """Whether more than one process computes the run."""
    return _Place.count > 1


def is_first() -> bool:
    """Whether this is the process that writes files and prints."""
    return _Place.index == 0


def count() -> int:
    """How many processes compute the run."""
    return _Place.count


def share(parts: list[Any]) -> list[Any]:
    """This process's part of a list, dealt item by item to the processes in turn."""
    return parts[_Place.index :: _Place.count]


def end_if_abandoned(error: BaseException) -> None:
    """Ends this process if an error says that another one is gone or cannot be reached: at once,
    without cleaning up, which would wait for the other. Checkpoints are complete or not there, so
    nothing is lost."""
    if not are_several():
        return
    import jax

    is_xla = isinstance(error, jax.errors.JaxRuntimeError)
    if is_xla and any(name in str(error) for name in OF_OTHERS):
        end(
            ABANDONED,
            f"{error}\nerror: process {_Place.index} of {_Place.count} cannot go on: another "
            "process of this run has ended, and its own output says why, or cannot be reached. "
            "Start all of them again with the same command: they go on from the last checkpoint. "
            "If all of them say this, see to the network or the driver",
        )


def end(status: int, message: str) -> None:
    """Ends this one of several processes at once, since cleaning up would wait for the others; they
    then end too."""
    print(message, file=sys.stderr, flush=True)
    sys.stdout.flush()
    os._exit(status)


@contextlib.contextmanager
def together() -> Iterator[None]:
    """A context for what all processes do together; see `end_if_abandoned`."""
    try:
        yield
    except Exception as error:
        end_if_abandoned(error)
        raise


def _client() -> Any:
    """The service through which processes find each other; it has barriers and short values."""
    from jax._src import distributed  # no public name has barriers that may take long

    return distributed.global_state.client


def wait(name: str) -> None:
    """Returns when all processes have called it; `name` is for errors."""
    if are_several():
        _Place.meetings += 1
        with together():
            _client().wait_at_barrier(f"{name}/{_Place.meetings}", PATIENCE * 1000)


def of_first(ask: Callable[[], Any]) -> Any:
    """What a function returns in the first process, for all processes: a value that JSON can hold.
    A shared file system does not show all machines the same at the same time."""
    if not are_several():
        return ask()
    _Place.meetings += 1
    key = f"answers/{_Place.meetings}"
    with together():
        if is_first():
            _client().key_value_set(key, json.dumps(ask()))
        return json.loads(_client().blocking_key_value_get(key, PATIENCE * 1000))


def of_all(value: float) -> list[float]:
    """The numbers that all processes give, in the order of the processes."""
    if not are_several():
        return [value]
    import numpy as np
    from jax.experimental import multihost_utils

    with together():
        return multihost_utils.process_allgather(np.array([value])).ravel().tolist()


def by_all(work: Callable[[], None] | None) -> None:
    """Each process does its work, if it has any, and returns when all have; the work must not wait
    for other processes. If it fails in one (by a ValueError or OSError), the others raise a
    ValueError with its message."""
    own: Exception | None = None
    try:
        if work:
            work()
    except (ValueError, OSError) as error:
        own = error
    told: list[str] = []
    if are_several():
        _Place.meetings += 1
        key = f"problems/{_Place.meetings}"
        said = "" if own is None else str(own) or type(own).__name__
        with together():
            _client().key_value_set(f"{key}/{_Place.index}", json.dumps(said))
            for index in range(_Place.count):
                answer = _client().blocking_key_value_get(f"{key}/{index}", PATIENCE * 1000)
                told.append(json.loads(answer))
        wait("what each process does")  # so that all have read before the first one ends
    if own is not None:
        raise own
    if any(told):
        raise ValueError(next(filter(None, told)))


def require_same(own: Any, explain: Callable[[Any], str]) -> None:
    """Raises a ValueError in all processes if a value that JSON can hold is not the same in all;
    `explain` makes its message from the value of the first process."""
    if not are_several():
        return
    first = of_first(lambda: own)

    def compare() -> None:
        if json.dumps(own, sort_keys=True) != json.dumps(first, sort_keys=True):
            raise ValueError(explain(first))

    by_all(compare)


def by_first(report: Callable[[], str]) -> str:
    """What a function returns in the first process; "" in the others, which wait for it, and raise
    a ValueError with its message if it fails."""
    texts: list[str] = []
    by_all((lambda: texts.append(report())) if is_first() else None)
    return texts[0] if texts else ""


@contextlib.contextmanager
def first_before_others() -> Iterator[None]:
    """The first process does what is inside before the others, which then find what it has written;
    what is inside must not wait for other processes."""
    if not is_first():
        wait("what the first process prepares")
    try:
        yield
    finally:
        if is_first():
            wait("what the first process prepares")

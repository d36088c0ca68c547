"""Several processes that compute one run together: how they start, agree and end.

Every process runs the same program on the same config, plans the same batches and holds the arrays
of its own devices. All see one workdir, on a file system that they share; the first alone writes
there (Orbax's checkpoints apart, of which each writes its part).
"""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator

import numpy as np
from absl import flags

# JAX is imported where it is used: whoever only writes a file must not wait for it.

AUTO = "auto"
HEARTBEAT = 30  # seconds after which a silent process is taken for dead
ABANDONED = 75  # exit status where another process of the run is gone; starting again may help
# In the errors of XLA where another process is gone.
OF_OTHERS = ("Gloo", "NCCL", "heartbeat", "oordination", "Connection", "UNAVAILABLE")

COORDINATOR = flags.DEFINE_string(
    "coordinator", "", "HOST:PORT of the first process, for a run of several processes."
)
COUNT = flags.DEFINE_string(
    "processes",
    "",
    "How many processes compute the run; `auto` asks a TPU pod, Slurm or Open MPI. Under `srun` "
    "with several tasks that is the default.",
)
INDEX = flags.DEFINE_integer("process", -1, "Which of them this one is, from 0.")


class _Place:
    """Which process this is, of how many."""

    index, count = 0, 1


def start() -> None:
    """Joins the other processes of the run, if the flags or the environment tell of some.

    Before any computation.

    Raises:
      ValueError: flags that do not fit each other.
    """
    count = COUNT.value or (AUTO if int(os.environ.get("SLURM_STEP_NUM_TASKS", 1)) > 1 else "")
    if not count:
        if COORDINATOR.value or INDEX.value >= 0:
            raise ValueError("--coordinator and --process: say how many there are, --processes=N")
        return
    import jax

    if count == AUTO:
        jax.distributed.initialize(heartbeat_timeout_seconds=HEARTBEAT)
    else:
        if not count.isdigit() or not 0 <= INDEX.value < int(count) or not COORDINATOR.value:
            raise ValueError(
                f"--processes={count} --process={INDEX.value} --coordinator={COORDINATOR.value}: "
                "give a number of processes, which one this is (from 0), and HOST:PORT of the first"
            )
        jax.distributed.initialize(
            COORDINATOR.value,
            int(count),
            INDEX.value,
            cluster_detection_method="deactivate",
            heartbeat_timeout_seconds=HEARTBEAT,
        )
    _Place.index, _Place.count = jax.process_index(), jax.process_count()


def count() -> int:
    """How many processes compute the run."""
    return _Place.count


def is_first() -> bool:
    """Whether this is the process that writes and speaks."""
    return _Place.index == 0


@contextlib.contextmanager
def together() -> Iterator[None]:
    """What all processes do together: see `end_if_abandoned`."""
    try:
        yield
    except Exception as error:
        end_if_abandoned(error)
        raise


def wait(name: str) -> None:
    """Returns when all processes have come here; `name` is for errors."""
    if _Place.count > 1:
        from jax.experimental import multihost_utils

        with together():
            multihost_utils.sync_global_devices(name)


def any_of(answer: bool) -> bool:
    """Whether any process says yes; all must ask."""
    if _Place.count == 1:
        return answer
    from jax.experimental import multihost_utils

    with together():
        return bool(multihost_utils.process_allgather(np.array([answer])).any())


def end_if_abandoned(error: Exception) -> None:
    """Ends this process where an error says that another one is gone.

    At once, and without cleaning up, which would wait for the other. Checkpoints are whole or not
    there, so nothing is lost.
    """
    if _Place.count > 1 and any(name in str(error) for name in OF_OTHERS):
        print(
            f"error: process {_Place.index} of {_Place.count} cannot go on: another process of "
            "this run has ended; its own output says why. Start all of them again with the same "
            f"command: they go on from the last checkpoint ({str(error).splitlines()[0][:200]})",
            file=sys.stderr,
            flush=True,
        )
        os._exit(ABANDONED)


def by_first(report: Callable[[], str]) -> str:
    """What a function returns in the first process; "" in the others, which do not call it."""
    return report() if is_first() else ""


@contextlib.contextmanager
def first_before_others() -> Iterator[None]:
    """The first process does what is inside before the others, which find what it has written."""
    if not is_first():
        wait("what the first process prepares")
    try:
        yield
    finally:
        if is_first():
            wait("what the first process prepares")

"""Contestants that take turns, each in a process of its own.

Two numerical libraries in one process would compete for its threads. A worker is stopped (SIGSTOP)
while others have their turns, so it takes no processor time from them. It reads from stdin and
writes to stdout one JSON object in each line.
"""

import json
import os
import resource
import signal
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

TUNABLES = "GLIBC_TUNABLES"
TOTAL = 10_000_000  # steps of every contestant's schedule, more than any turns take
# As xling_jax.main sets them; the second matters if matrices are factorised.
LARGE_PAGES = {TUNABLES: "glibc.malloc.hugetlb=1"}
ONE_BLAS_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
HERE = Path(__file__).parent


def suit_libraries() -> None:
    """Starts this program again with the variables that `xling_jax.main` sets for libraries."""
    if TUNABLES not in os.environ:
        environment = LARGE_PAGES | ONE_BLAS_THREAD | os.environ
        os.execve(sys.executable, [sys.executable, *sys.argv], environment)


def peak_memory() -> float:
    """The highest memory of this process so far, in GiB; on Linux only."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


class Worker:
    """A contestant, seen from the program that gives turns."""

    def __init__(
        self,
        python: str | Path,
        script: str,
        options: Mapping[str, Any],
        variables: Mapping[str, str],
        log: Path,
    ):
        """Starts `script` of this folder and waits until it has warmed up.

        Args:
          python: the interpreter.
          script: its name.
          options: sent to it as the first line.
          variables: added to the environment, from which glibc's tunables are removed first.
          log: a file for what it prints.
        """
        environment = {name: x for name, x in os.environ.items() if name != TUNABLES}
        self._log = log
        with open(log, "w", encoding="utf-8") as output:
            self._process = subprocess.Popen(
                [str(python), str(HERE / script)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                env={**environment, **variables},
                text=True,
            )
        self._exchange(options)

    def turn(self, seconds: float) -> dict[str, Any]:
        """The worker's measurements in a turn of about `seconds` seconds."""
        self._process.send_signal(signal.SIGCONT)
        return self._exchange({"seconds": seconds})

    def close(self) -> None:
        """Ends the worker."""
        self._process.kill()
        self._process.wait()

    def _exchange(self, message: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin and self._process.stdout
        try:
            print(json.dumps(message), file=self._process.stdin, flush=True)
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            tail = self._log.read_text("utf-8", "replace")[-2000:]
            raise RuntimeError(f"a worker ended early; the end of {self._log}:\n{tail}")
        self._process.send_signal(signal.SIGSTOP)
        return json.loads(answer)


class Referee:
    """The other end of a `Worker`, inside the contestant's process."""

    def __init__(self):
        """Reads the options."""
        # What libraries print on stdout must not get between the answers.
        self._answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
        self.options: dict[str, Any] = json.loads(sys.stdin.readline())

    def report(self, result: Mapping[str, Any]) -> float:
        """Sends the result of a turn, or after the warm-up any; returns the next turn's seconds."""
        print(json.dumps(result), file=self._answers, flush=True)
        line = sys.stdin.readline()
        if not line:
            raise SystemExit
        return json.loads(line)["seconds"]


def rounds(
    workers: Mapping[str, Worker], repeats: int, seconds: float, say: Callable[[str], None]
) -> dict[str, list[dict[str, Any]]]:
    """Lets every worker have a turn in each round; rounds begin with different workers."""
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in workers}
    names = list(workers)
    for number in range(repeats):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            results[name].append(workers[name].turn(seconds))
            say(f"round {number + 1} of {repeats}, {name}: {summary(results[name][-1])}")
    return results


def summary(result: Mapping[str, Any]) -> str:
    """A turn in a few words."""
    if "tokens" not in result:
        return f"{max(result['rates'].values()) / 1e9:.0f} GFLOP/s"
    return f"{speed(result):,.0f} tokens/s, {result['steps']} steps, loss {result['loss']:.2f}"


def speed(result: Mapping[str, Any]) -> float:
    """Real tokens a second."""
    return result["tokens"] / result["seconds"]


def spread(values: Sequence[float], form: str) -> str:
    """The median, and the range from lowest to highest."""
    low, middle, high = (
        format(x, form) for x in (min(values), statistics.median(values), max(values))
    )
    return f"{middle} ({low} to {high})"


def say(message: str) -> None:
    """A line of progress."""
    print(message, file=sys.stderr, flush=True)

"""Makes `training.loop` a contestant, which trains as in a run and can stop between calls."""

import time
from collections.abc import Callable
from pathlib import Path

import jax
from turns import TOTAL, Referee

from xling_jax.training.loop import Schedule
from xling_jax.training.step import StepCompiler

PLAN = "step.hlo"


class NoCheckpoints:
    """Saves nothing, since only the step is measured."""

    def latest(self):
        """There is none."""

    def describe(self):
        """Says so in words."""
        return "none was saved"

    def save(self, step, state, evaluations):
        """Does nothing."""

    def wait(self):
        """Does nothing."""


class LastLoss:
    """Keeps the training loss, in nats, instead of writing it to a file."""

    loss = float("nan")

    def keep(self, is_kept):
        """Does nothing."""

    def write(self, *, loss, **entry):
        """Takes the mean loss over a call's steps."""
        self.loss = loss


class Compiler(StepCompiler):
    """Remembers the bytes that the step takes on each device, and XLA's plan of it."""

    bytes_needed = 0
    plan = ""

    def __call__(self, *arguments, **named):
        """The compiled step."""
        compiled = super().__call__(*arguments, **named)
        self.bytes_needed, self.plan = compiled.bytes_needed, compiled.function.as_text()
        return compiled


class Turns:
    """Stands in for the evaluation: measures, and ends a turn when its time is over."""

    def __init__(
        self,
        referee: Referee,
        count: Callable[[int, int], dict[str, int]],
        metrics: LastLoss,
        compiler: Compiler,
        trace: str | None = None,
    ):
        """The first call ends the warm-up, which does not count.

        Args:
          referee: gets the result of each turn.
          count: returns what all replicas read in the steps first..stop-1.
          metrics: has the last loss.
          compiler: has the memory and the plan of the step.
          trace: a folder for a profile of every turn and for `PLAN`; None: no profile.
        """
        self._referee, self._count, self._trace = referee, count, trace
        self._metrics, self._compiler = metrics, compiler
        self._seconds = self._first = 0
        self._began = time.perf_counter()

    def __call__(self, step, state, settings):
        """Called by the loop after every call of the compiled program."""
        seconds = time.perf_counter() - self._began
        if seconds < self._seconds:
            return ()
        if self._trace and self._seconds:
            jax.profiler.stop_trace()
        stats = jax.local_devices()[0].memory_stats() or {}
        result = self._count(self._first, step) | {
            "seconds": seconds,
            "steps": step - self._first,
            "loss": self._metrics.loss,
            "bytes_needed": self._compiler.bytes_needed,
            "bytes_peak": stats.get("peak_bytes_in_use", 0),
        }
        self._seconds = self._referee.report(result)
        if self._trace:
            Path(self._trace, PLAN).write_text(self._compiler.plan, encoding="utf-8")
            jax.profiler.start_trace(self._trace)
        self._first, self._began = step, time.perf_counter()
        return ()


class EveryStep(tuple[int, ...]):
    """Steps of a schedule that is evaluated after every call: it contains all steps but 0, and as
    an empty tuple makes no call shorter."""

    def __contains__(self, step: object) -> bool:
        """Whether the step is not the first one."""
        return step != 0


def schedule(epoch: int, call: int) -> Schedule:
    """The schedule of a run in which `Turns` is called after every call of the program."""
    return Schedule(TOTAL, epoch, EveryStep(), epoch, min(call, epoch))

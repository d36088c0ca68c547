"""Ending a run on a signal, at a point where it can be resumed."""

import signal

from xling_jax import processes


class Interrupted(Exception):
    """The run was asked to end (SIGTERM, Ctrl-C); everything is saved."""


class Interruption:
    """A context in which SIGTERM and Ctrl-C are only noted, so that the run can end at a point from
    which it can be resumed."""

    def __init__(self):
        self._is_noted = False

    def __enter__(self) -> "Interruption":
        signals = (signal.SIGTERM, signal.SIGINT)
        self._handlers = {number: signal.signal(number, self._note) for number in signals}
        return self

    def __exit__(self, *_) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _note(self, number, frame) -> None:
        self._is_noted = True

    def was_asked(self) -> bool:
        """Whether any process was asked to end; all processes must call this together."""
        return any(processes.of_all(self._is_noted))

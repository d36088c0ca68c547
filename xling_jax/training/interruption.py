"""Runs that are asked to end, and end where they can be resumed."""

import signal

from xling_jax import processes


class Interrupted(Exception):
    """The run was asked to end (SIGTERM, Ctrl-C); everything is saved."""


class Interruption:
    """While it is entered, SIGTERM and Ctrl-C are only noted: the run ends where it can resume."""

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
        """Whether any process was asked to end; all processes must ask this together."""
        return any(processes.of_all(self._is_noted))

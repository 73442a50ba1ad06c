"""Give up on servers that say nothing.

A server that is frozen keeps its connections, so nobody tells the client; it has to look at the
clock itself. Whoever waits for an answer then hears that the connection is closed.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic

__all__ = ["Watch"]


class Watch:
    """A thread that closes connections which were silent for too long; it ends when none is left.

    Args:
        seconds: How long is too long.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._guard = threading.Lock()
        self._heard: dict[int, float] = {}
        self._thread: threading.Thread | None = None

    @contextmanager
    def over(self, descriptor: int) -> Iterator[Callable[[], None]]:
        """Watch a connection; to be told whenever something was heard or is asked."""

        def hear() -> None:
            self._heard[descriptor] = monotonic()

        try:  # whoever is stopped in here watches no longer: the number becomes another's
            with self._guard:
                hear()
                if self._thread is None:
                    thread = threading.Thread(target=self._run, daemon=True, name="dphmm-watch")
                    thread.start()
                    self._thread = thread
            yield hear
        finally:
            with self._guard:
                self._heard.pop(descriptor, None)

    def _run(self) -> None:
        idle = 0.0
        while True:
            threading.Event().wait(self._seconds / 10)
            with self._guard:
                late = monotonic() - self._seconds
                for descriptor in [one for one, at in self._heard.items() if at < late]:
                    self._heard[descriptor] = monotonic()
                    _shut(descriptor)
                idle = 0.0 if self._heard else idle + self._seconds / 10
                if idle > 4 * self._seconds:
                    self._thread = None
                    return


def _shut(descriptor: int) -> None:
    """End a connection that another thread is waiting on, which then closes it."""
    with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as copy:
        copy.shutdown(socket.SHUT_RDWR)

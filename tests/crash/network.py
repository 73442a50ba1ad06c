"""A network between servers and their database that can stop, and lose what is under way."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

AT_ONCE = struct.pack("ii", 1, 0)
"""For SO_LINGER: a connection that is closed is gone, and the other side is told by a reset."""


class Network:
    """Carries bytes between a port of this machine and a socket of PostgreSQL.

    Args:
        target: The path of PostgreSQL's socket.
    """

    def __init__(self, target: str) -> None:
        self._target = target
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self._runs = threading.Event()
        self._runs.set()
        self._guard = threading.Lock()
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listening.close()
        self._lose()
        self._runs.set()

    @contextmanager
    def stopped(self, _: int) -> Iterator[None]:
        """A strike: nothing is carried and nobody is told; then everything arrives late."""
        self._runs.clear()
        yield
        self._runs.set()

    @contextmanager
    def lost(self, _: int) -> Iterator[None]:
        """A strike: the same, and then what was under way never arrives: a commit's word, too."""
        self._runs.clear()
        yield
        self._lose()
        self._runs.set()

    def _lose(self) -> None:
        with self._guard:
            ends, self._open = self._open, set()
        for end in ends:
            with suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
                end.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            try:
                far.connect(self._target)
            except OSError:  # PostgreSQL is away
                near.close()
                far.close()
                continue
            with self._guard:
                self._open |= {near, far}
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self._runs.wait()
                with self._guard:
                    if source not in self._open:  # lost while it was waiting here
                        break
                target.sendall(data)
        with self._guard:
            self._open -= {source, target}
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        source.close()


@contextmanager
def carrying(target: str) -> Iterator[Network]:
    network = Network(target)
    try:
        yield network
    finally:
        network.close()

"""A service as a process: it logs lines of JSON and stops when told to, finishing its work."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable
from importlib import import_module
from types import FrameType

from dphmm.books import Store
from dphmm.errors import ArgumentError, require
from dphmm.noise.randomness import Randomness
from dphmm.service.connections import limited_protocol, make_room
from dphmm.service.logs import log, log_lines
from dphmm.service.settings import ServiceSettings

__all__ = ["serve"]

GRACE = 8
"""Seconds for what was accepted to finish after a signal; a second later the process ends."""

UNFINISHED = 3
"""The exit code when something was still running then; it can be asked for again."""

BACKLOG = 2048
"""Connections that may wait to be accepted."""


def serve(
    store: Store,
    settings: ServiceSettings | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    randomness: Randomness | None = None,
    descriptor: int | None = None,
    ready: Callable[[str], object] = lambda address: None,
) -> None:
    """Serve until a signal; `descriptor` is a listening socket that somebody else opened.

    `ready` hears the address once it is ours.
    """
    uvicorn = require("uvicorn", "service")
    require("fastapi", "service")
    from dphmm.service.app import create_app

    listener = None if descriptor is not None else _listen(host, port)
    log_lines()
    import_module("dphmm.service.warm")
    chosen = settings or ServiceSettings()
    make_room(chosen)
    app = create_app(store, chosen, randomness)

    class Server(uvicorn.Server):  # type: ignore[name-defined,misc]
        should_exit: bool

        # Not the inherited one, which raises the signal again when all is done: the exit code is 0.
        def handle_exit(self, number: int, frame: FrameType | None) -> None:
            app.closing = True
            end = threading.Timer(GRACE + 1, os._exit, (UNFINISHED,))
            end.daemon = True
            end.start()
            self.force_exit = self.should_exit and number == signal.SIGINT
            self.should_exit = True

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            app.close()
            await super().shutdown(sockets)

    config = uvicorn.Config(
        app,
        fd=descriptor,
        log_config=None,
        access_log=False,  # it would name people
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=GRACE,
        http=limited_protocol(chosen),
        ws="none",
        proxy_headers=bool(chosen.trusted_proxies),
        forwarded_allow_ips=list(chosen.trusted_proxies),
        h11_max_incomplete_event_size=2**14,
    )
    if listener is not None:
        port = listener.getsockname()[1]
        ready(f"http://{host}:{port}")
    log.info("started on %s:%s", host, port)
    Server(config).run(sockets=None if listener is None else [listener])


def _listen(host: str, port: int) -> socket.socket:
    """A listening socket, or one sentence: the server itself would end with a code of its own."""
    try:
        kind, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=kind, backlog=BACKLOG)
    except OSError as fault:
        raise ArgumentError(
            f"host and port must be free to listen on, got {host}:{port}: {fault.strerror}"
        ) from None

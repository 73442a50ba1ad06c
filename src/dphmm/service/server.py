"""A service as a process: it logs lines of JSON and stops when told to, finishing its work."""

from __future__ import annotations

import os
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from types import FrameType
from typing import NoReturn

from dphmm.books import Store
from dphmm.errors import ArgumentError, require
from dphmm.noise.randomness import Randomness
from dphmm.service.connections import limited_protocol, make_room
from dphmm.service.logs import log, log_lines
from dphmm.service.processes import supervise
from dphmm.service.settings import ServiceSettings
from dphmm.service.sharing import FOLDER, Shared

__all__ = ["leave", "serve"]

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
    require("uvicorn", "service")
    require("fastapi", "service")
    from dphmm.service.tracing import find_exporters

    find_exporters()  # or it is said here that they are missing
    listener = _listen(host, port) if descriptor is None else _inherit(descriptor)
    log_lines()
    chosen = settings or ServiceSettings()
    if descriptor is None:
        port = listener.getsockname()[1]

    def tell() -> None:
        if descriptor is None:
            ready(f"http://{host}:{port}")
        log.info("started on %s:%s", host, port)

    if chosen.workers == 1:
        _serve(store, chosen, randomness, listener, tell=tell)
    else:
        tell()
        _serve_together(store, chosen, randomness, listener)


def leave(code: int) -> NoReturn:
    """End the process at once, when all is closed.

    What Python tidies up takes half a second of a processor, many times that on a busy machine,
    and nothing that could end it after the grace runs any more.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # it is gone, or full
            stream.flush()
    os._exit(code)


def _serve_together(
    store: Store,
    settings: ServiceSettings,
    randomness: Randomness | None,
    listener: socket.socket,
) -> None:
    """Serve by several processes, which count together what is limited together."""
    open_store = store.open_again
    store.close()
    shared = Shared(settings.workers)
    most = -(-settings.connections // settings.workers)
    own = replace(settings, connections=most)
    with tempfile.TemporaryDirectory(prefix="dphmm-metrics-") as folder:
        os.environ[FOLDER] = folder

        def work() -> None:
            _serve(open_store(), own, randomness, listener, shared)

        code = supervise(shared, work, settings.workers, GRACE + 1.5)
    if code:
        raise SystemExit(code)


def _serve(
    store: Store,
    settings: ServiceSettings,
    randomness: Randomness | None,
    listener: socket.socket,
    shared: Shared | None = None,
    tell: Callable[[], object] = lambda: None,
) -> None:
    uvicorn = require("uvicorn", "service")
    from dphmm.service.app import create_app
    from dphmm.service.tracing import open_tracing

    import_module("dphmm.service.warm")
    make_room(settings)
    app = create_app(store, settings, randomness, shared, open_tracing(settings))

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
        log_config=None,
        access_log=False,  # it would name people
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=GRACE,
        http=limited_protocol(settings),
        ws="none",
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies),
        h11_max_incomplete_event_size=2**14,
    )
    tell()
    Server(config).run(sockets=[listener])


def _inherit(descriptor: int) -> socket.socket:
    """A listening socket that somebody else opened."""
    return socket.socket(fileno=os.dup(descriptor))


def _listen(host: str, port: int) -> socket.socket:
    """A listening socket, or one sentence: the server itself would end with a code of its own."""
    try:
        kind, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server(address[:2], family=kind, backlog=BACKLOG)
    except OSError as fault:
        raise ArgumentError(
            f"host and port must be free to listen on, got {host}:{port}: {fault.strerror}"
        ) from None
    # asyncio says this only of sockets that name their protocol: without it an answer, whose
    # heading leaves first, waits 40 ms until that has arrived.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener

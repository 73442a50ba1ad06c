"""A service as a process: it logs lines of JSON and stops when told to, finishing its work."""

from __future__ import annotations

import json
import logging
import signal
import socket
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from dphmm.books import Store
from dphmm.errors import ArgumentError, require
from dphmm.noise.randomness import Randomness
from dphmm.service.settings import ServiceSettings

__all__ = ["serve"]

GRACE = 15
"""Seconds for what was accepted to finish after a signal."""

BACKLOG = 2048
"""Connections that may wait to be accepted."""

FIELDS = ("request", "method", "route", "status", "client")


class JsonLines(logging.Formatter):
    """One JSON object a line; a fault adds where it happened, never a value."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        facts: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created)),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        facts |= {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        if record.exc_info and record.exc_info[0] is not None:
            facts["fault"] = record.exc_info[0].__name__
            facts["at"] = _places(record.exc_info[2])
        return json.dumps(facts)


def _places(traceback: Any) -> list[str]:
    """File and line of each frame: an exception's own text might quote what was sent."""
    places = []
    while traceback is not None:
        code = traceback.tb_frame.f_code
        places.append(f"{code.co_filename}:{traceback.tb_lineno}")
        traceback = traceback.tb_next
    return places


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
    app = create_app(store, settings, randomness)

    class Server(uvicorn.Server):  # type: ignore[name-defined,misc]
        should_exit: bool

        # Not the inherited one, which raises the signal again when all is done: the exit code is 0.
        def handle_exit(self, number: int, frame: FrameType | None) -> None:
            app.closing = True
            self.force_exit = self.should_exit and number == signal.SIGINT
            self.should_exit = True

    config = uvicorn.Config(
        app,
        fd=descriptor,
        log_config=None,
        access_log=False,  # it would name people
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=GRACE,
        h11_max_incomplete_event_size=2**14,
    )
    if listener is not None:
        port = listener.getsockname()[1]
        ready(f"http://{host}:{port}")
    logging.getLogger("dphmm.service").info("started on %s:%s", host, port)
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


def log_lines() -> None:
    """Send the service's and the server's own lines to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("dphmm.service", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO if name.startswith("dphmm") else logging.WARNING)

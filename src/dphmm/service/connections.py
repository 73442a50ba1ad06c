"""How many connections there may be, and how long one may take to say what it wants."""

from __future__ import annotations

import asyncio
import resource
from typing import Any

from dphmm.errors import require
from dphmm.service.settings import ServiceSettings

__all__ = ["limited_protocol", "make_room"]

OTHER_FILES = 256
"""Open files beside connections."""


def make_room(settings: ServiceSettings) -> None:
    """Let the process have as many open files as its connections need."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = settings.connections + OTHER_FILES
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def limited_protocol(settings: ServiceSettings) -> type[asyncio.Protocol]:
    """The server's protocol, in which connections that say nothing make room for others.

    A head must come within some seconds. Where there are too many connections, the one that has
    been without a request for longest is closed, so that half-sent ones keep nobody out.
    """
    h11 = require("uvicorn.protocols.http.h11_impl", "service")
    idle: dict[Any, None] = {}
    """Connections without a request, the longest first."""

    class Limited(h11.H11Protocol):  # type: ignore[name-defined,misc]
        _late: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            idle[self] = None
            self._expect_head()
            if len(self.connections) > settings.connections:
                next(iter(idle)).transport.abort()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._is_heard()
            elif self._late is None and not self.transport.is_closing():
                self._expect_head()  # of which a part has come

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if not self.transport.is_closing() and self.cycle.response_complete:
                idle[self] = None

        def connection_lost(self, fault: Exception | None) -> None:
            self._is_heard()
            super().connection_lost(fault)

        def _expect_head(self) -> None:
            self._late = self.loop.call_later(settings.slowest_head, self.transport.abort)

        def _is_heard(self) -> None:
            idle.pop(self, None)
            if self._late is not None:
                self._late.cancel()
                self._late = None

    return Limited

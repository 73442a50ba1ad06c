"""What every request passes: size and time of its body, the tick, the log, the count.

Written against ASGI itself, so that the tick is the last thing before the network.
"""

from __future__ import annotations

import asyncio
import json
import math
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeAlias

from starlette.requests import Request
from starlette.responses import Response

from dphmm.books import Key
from dphmm.errors import DphmmError
from dphmm.service.access import Access, RefusedError
from dphmm.service.limits import Room
from dphmm.service.logs import log
from dphmm.service.metrics import Metrics
from dphmm.service.receiving import (
    BadLengthError,
    GoneError,
    Message,
    Receive,
    TooLongError,
    receive,
    replay,
)
from dphmm.service.routes import CLOSED, Route, Routes, check_path
from dphmm.service.settings import ServiceSettings
from dphmm.service.showing import UNREACHABLE, check_names
from dphmm.service.tracing import Tracing
from dphmm.service.workers import WorkerError

__all__ = ["Middleware"]

Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]

LINGER = 1.0
LINGER_BYTES = 2**20
"""Seconds and bytes for which a body that nobody will read is waited for."""


def until_tick(passed: float, tick: float) -> float:
    """Seconds to the next whole tick, at least one, after a request that came `passed` ago.

    >>> until_tick(0.25, 1.0), until_tick(1.25, 1.0), until_tick(0.0, 1.0), until_tick(7.0, 0.0)
    (0.75, 0.75, 1.0, 0.0)
    """
    if tick <= 0:
        return 0.0
    return max(1, math.ceil(passed / tick)) * tick - passed


class Middleware:
    """The outermost application."""

    def __init__(
        self,
        app: App,
        settings: ServiceSettings,
        metrics: Metrics,
        access: Access,
        routes: Routes,
        find_key: Callable[[Request], Awaitable[Key]],
        stop: Callable[[], None],
        shortcut: Callable[[Message, bytes], Awaitable[Response | None]],
        tracing: Tracing | None = None,
    ) -> None:
        self.app = app
        self._tracing = tracing
        self._access = access
        self._routes = routes
        self._find_key = find_key
        self._settings = settings
        self._metrics = metrics
        self._stop = stop
        self._shortcut = shortcut
        self._sent = Room(max(settings.sent_at_once, settings.largest_body))
        self.closing = False
        """Whether the service is shutting down: what was accepted goes on, nothing new."""

    def close(self) -> None:
        """Take nothing new, and end what may be long; it can be asked for again."""
        self.closing = True
        self._stop()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        arrived = asyncio.get_running_loop().time()
        scope["state"] = {**scope.get("state", {}), "request": uuid.uuid4().hex[:16]}
        answer, heard = _Held(), _Heard(receive)
        scope["state"]["sent"] = 0
        if self._tracing is not None:
            self._tracing.begin()
        try:
            if self.closing:
                raise RefusedError(503, "the service is shutting down; ask again", 5)
            asked = await self._open(scope)
            body = await self._body(scope, heard, self._routes.largest(asked))
            if asked is not None and not asked.large:  # a large one is read elsewhere
                check_names(body)
            response = await self._shortcut(scope, body) if asked is not None else None
            if response is None:
                await self.app(scope, replay(body, heard), answer)
            else:
                await response(scope, heard, answer)
        except RefusedError as fault:
            await heard.discard()
            await answer.refuse(fault)
        except DphmmError as fault:
            self._log_fault(scope, fault=str(fault))
            await answer.refuse(RefusedError(503, UNREACHABLE, 5))
        except TimeoutError:
            await answer.refuse(RefusedError(408, "the body must come faster; send it again"))
        except GoneError:
            return
        except Exception as fault:  # nobody further out could answer
            # Its own words might quote what was sent; its kind and its place do not.
            if isinstance(fault, WorkerError):
                self._log_fault(scope, fault=fault.kind, at=fault.at)
            else:
                told = type(fault), Exception(type(fault).__name__), fault.__traceback__
                log.error("error", exc_info=told, extra={"request": scope["state"]["request"]})
            answer = _Held()
            await answer.refuse(RefusedError(500, "something went wrong here; it was logged"))
        finally:
            self._sent.give(scope["state"].get("client", ""), scope["state"]["sent"])
        route = _route(scope)
        if scope["path"].startswith("/v1"):
            await self._until_tick(arrived)
        self._metrics.requests.labels(route, str(answer.status)).inc()
        self._log(scope, route, answer.status)
        if self._tracing is not None:
            name = scope["state"]["request"]
            self._tracing.end(name, scope["method"], route, answer.status)
        await answer.leave(send, scope["state"]["request"])

    async def _open(self, scope: Message) -> Route | None:
        """Whether the sender may do this, before anything that they send is read."""
        check_path(scope.get("raw_path") or b"")
        if not scope["path"].startswith(CLOSED):
            return None
        key = await self._find_key(Request(scope))
        scope["state"].update(key=key, client=key.client)
        route = self._routes.find(scope["method"], scope["path"])
        scope["state"]["route"] = route.path
        self._access.check(key, route.scopes)
        return route

    async def _until_tick(self, arrived: float) -> None:
        """Wait for the next whole tick after the request came."""
        wait = until_tick(asyncio.get_running_loop().time() - arrived, self._settings.tick)
        if wait > 0:
            await asyncio.sleep(wait)

    async def _body(self, scope: Message, hear: Receive, largest: int) -> bytes:
        client, state = scope["state"].get("client", ""), scope["state"]

        def take(size: int) -> None:
            # Held until the answer is there: of one client not more than fits.
            if not self._sent.take(client, size):
                raise RefusedError(429, "bodies must come one by one; wait for some", 1)
            state["sent"] += size

        try:
            async with asyncio.timeout(self._settings.slowest_body):
                return await receive(scope, hear, largest, take)
        except TooLongError:
            told = f"the body must have at most {largest} bytes, got more"
            raise RefusedError(413, told) from None
        except BadLengthError:
            raise RefusedError(400, "the body must have one length, got two") from None

    def _log_fault(self, scope: Message, **facts: object) -> None:
        log.error("error", extra={"request": scope["state"]["request"], **facts})

    def _log(self, scope: Message, route: str, status: int) -> None:
        # No path (it names people), no duration (it depends on the noise), no body.
        log.info(
            "request",
            extra={
                "request": scope["state"]["request"],
                "method": scope["method"],
                "route": route,
                "status": status,
                "client": scope["state"].get("client", ""),
                "key": scope["state"]["key"].name if "key" in scope["state"] else "",
            },
        )


class _Heard:
    """What a connection says, and whether that was all of a body."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.is_all = False

    async def __call__(self) -> Message:
        message = await self._receive()
        self.is_all = not message.get("more_body", False)
        return message

    async def discard(self) -> None:
        """Let the rest of a refused body pass by: closing on it would lose the answer."""
        size = 0
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER):
                while not self.is_all and size < LINGER_BYTES:
                    size += len((await self()).get("body", b""))


class _Held:
    """An answer that is complete but has not left."""

    def __init__(self) -> None:
        self.status = 500
        self._headers: list[tuple[bytes, bytes]] = []
        self._parts: list[bytes] = []

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self._headers = list(message.get("headers", []))
        elif message["type"] == "http.response.body":
            self._parts.append(message.get("body", b""))

    async def refuse(self, fault: RefusedError) -> None:
        body = json.dumps({"problem": fault.message}).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            # What is left of the body will not be read.
            (b"connection", b"close"),
        ]
        for name, value in fault.all_headers().items():
            headers.append((name.encode(), value.encode()))
        self.status, self._headers, self._parts = fault.status, headers, [body]

    async def leave(self, send: Send, request: str) -> None:
        headers = [
            *self._headers,
            (b"cache-control", b"no-store"),
            (b"x-content-type-options", b"nosniff"),
            (b"x-request-id", request.encode()),
        ]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"".join(self._parts)})


def _route(scope: Message) -> str:
    """The pattern of the path, which names nobody."""
    path = getattr(scope.get("route"), "path", "unknown")
    return str(scope["state"].get("route", path))

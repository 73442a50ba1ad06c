"""What every request passes: size and time of its body, the tick, the log, the count.

Written against ASGI itself, so that the tick is the last thing before the network.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import uuid
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from starlette.requests import Request

from dphmm.books import Key
from dphmm.errors import DphmmError
from dphmm.service.access import Access, RefusedError
from dphmm.service.metrics import Metrics
from dphmm.service.settings import ServiceSettings

__all__ = ["Middleware", "log"]

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]

CLOSED = ("/v1", "/metrics")
"""Where a key is asked for before anything is read."""

SMALL = 1000
"""Bodies that are no scenario may have the thousandth part."""

log = logging.getLogger("dphmm.service")


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
        find_key: Callable[[Request], Awaitable[Key]],
    ) -> None:
        self.app = app
        self._access = access
        self._find_key = find_key
        self._settings = settings
        self._metrics = metrics
        self.closing = False
        """Whether the service is shutting down: what was accepted goes on, nothing new."""

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        arrived = asyncio.get_running_loop().time()
        scope["state"] = {**scope.get("state", {}), "request": uuid.uuid4().hex[:16]}
        answer = _Held()
        if self.closing:
            await answer.refuse(503, "the service is shutting down; ask again", retry_after=5)
        else:
            try:
                if scope["path"].startswith(CLOSED):
                    key = await self._find_key(Request(scope))
                    scope["state"].update(key=key, client=key.client, access=self._access)
                body = await self._body(scope, receive)
                await self.app(scope, _replayed(body, receive), answer)
            except DphmmError as fault:
                await answer.refuse(*_refusal(fault))
            except _TooLargeError as fault:
                await answer.refuse(413, f"the body must have at most {fault} bytes, got more")
            except TimeoutError:
                await answer.refuse(408, "the body must come faster; send it again")
            except _GoneError:
                return
            except Exception as fault:  # nobody further out could answer
                # Its own words might quote what was sent; its kind and its place do not.
                kind = type(fault)
                told = (kind, Exception(kind.__name__), fault.__traceback__)
                log.error("error", exc_info=told, extra={"request": scope["state"]["request"]})
                answer = _Held()
                await answer.refuse(500, "something went wrong here; it was logged")
        route = _route(scope)
        if scope["path"].startswith("/v1"):
            await self._until_tick(arrived)
        self._metrics.requests.labels(route, str(answer.status)).inc()
        self._log(scope, route, answer.status)
        await answer.leave(send, scope["state"]["request"])

    async def _until_tick(self, arrived: float) -> None:
        """Wait for the next whole tick after the request came."""
        wait = until_tick(asyncio.get_running_loop().time() - arrived, self._settings.tick)
        if wait > 0:
            await asyncio.sleep(wait)

    async def _body(self, scope: Message, receive: Receive) -> bytes:
        largest = self._settings.largest_body
        if scope["path"] != "/v1/scenarios":
            largest = max(largest // SMALL, SMALL)
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        if announced.isdigit() and int(announced) > largest:
            raise _TooLargeError(largest)
        parts, size = [], 0
        async with asyncio.timeout(self._settings.slowest_body):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise _GoneError
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > largest:
                    raise _TooLargeError(largest)
                if not message.get("more_body", False):
                    return b"".join(parts)

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
            },
        )


def _refusal(fault: DphmmError) -> tuple[int, str, int | None]:
    if isinstance(fault, RefusedError):
        return fault.status, fault.message, fault.retry_after
    return 503, str(fault), 5


class _TooLargeError(Exception):
    pass


class _GoneError(Exception):
    """The client hung up before its request was complete: nothing was asked."""


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

    async def refuse(self, status: int, problem: str, retry_after: int | None = None) -> None:
        body = json.dumps({"problem": problem}).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            # What is left of the body will not be read.
            (b"connection", b"close"),
        ]
        if retry_after is not None:
            headers.append((b"retry-after", str(retry_after).encode()))
        self.status, self._headers, self._parts = status, headers, [body]

    async def leave(self, send: Send, request: str) -> None:
        headers = [
            *self._headers,
            (b"cache-control", b"no-store"),
            (b"x-content-type-options", b"nosniff"),
            (b"x-request-id", request.encode()),
        ]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": b"".join(self._parts)})


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body once, then whatever the connection has to say."""
    sent = False

    async def replay() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _route(scope: Message) -> str:
    """The pattern of the path, which names nobody."""
    return str(getattr(scope.get("route"), "path", "unknown"))

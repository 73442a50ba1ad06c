"""Who may ask the studio, and how much they may send.

Any page that a browser has open can send requests to a server on loopback. So the Host must
be this server's own (a name that resolves to 127.0.0.1 is refused), the Origin, where a
browser names one, must be the page's own, and every request that computes carries a token
that only this run's page knows.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from hmac import compare_digest
from typing import Any

__all__ = ["Guard", "problem"]

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MAX_BODY = 2 * 2**20
NAMES = ("127.0.0.1", "localhost", "[::1]")
TOKEN = "x-dphmm-studio"

_HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        b"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]


class Guard:
    """An ASGI app around another that lets only this server's own page through."""

    def __init__(self, app: App, *, port: int, token: str) -> None:
        self._app = app
        self._hosts = {f"{name}:{port}" for name in NAMES}
        if port == 80:
            self._hosts |= set(NAMES)
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse with a sentence that says why."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            await problem(send, *refusal)
            return
        body = await _body(scope, receive)
        if body is None:
            await problem(send, 413, f"body must have at most {MAX_BODY} bytes")
            return

        waiting = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive_again() -> MutableMapping[str, Any]:
            return waiting.pop() if waiting else await receive()

        async def send_guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *_HEADERS]
            await send(message)

        await self._app(scope, receive_again, send_guarded)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers = _headers(scope)
        hosts = headers.get("host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return 421, "Host must be this server's own address on loopback"
        for origin in headers.get("origin", []):
            if origin.removeprefix("http://") not in self._hosts or "://" not in origin:
                return 403, "Origin must be the studio's own page"
        for site in headers.get("sec-fetch-site", []):
            if site not in ("same-origin", "none"):
                return 403, "requests must come from the studio's own page"
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return 405, "method must be GET, HEAD or POST"
        if scope["method"] == "POST":
            kind = (headers.get("content-type") or [""])[0].partition(";")[0].strip().lower()
            if kind != "application/json":
                return 415, "content-type must be application/json"
            token = (headers.get(TOKEN) or [""])[0]
            if not compare_digest(token.encode(), self._token.encode()):
                return 403, f"{TOKEN} must be this run's token; reload the page"
        return None


async def problem(send: Send, status: int, sentence: str) -> None:
    """Send a refusal."""
    body = json.dumps({"error": sentence}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *_HEADERS]})
    await send({"type": "http.response.body", "body": body})


def _headers(scope: Scope) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return found


async def _body(scope: Scope, receive: Receive) -> bytes | None:
    """The whole body, or None as soon as it is too long."""
    declared = (_headers(scope).get("content-length") or ["0"])[0]
    if not declared.isascii() or not declared.isdigit() or int(declared) > MAX_BODY:
        return None
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b""
        part = message.get("body", b"")
        size += len(part)
        if size > MAX_BODY:
            return None
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)

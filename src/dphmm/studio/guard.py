"""Who may ask the studio, and how much they may send.

Any page that a browser has open can send requests to a server on loopback. So the Host must
be this server's own (a name that resolves to 127.0.0.1 is refused), the Origin, where a
browser names one, must be the page's own, and every request that computes carries a token
that only this run's page knows.
"""

from __future__ import annotations

from hmac import compare_digest

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dphmm.service import receiving

__all__ = ["Guard", "refuse"]

MAX_BODY = 2 * 2**20
NAMES = ("127.0.0.1", "localhost", "[::1]")
TOKEN = "x-dphmm-studio"

_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """An ASGI app around another that lets only this server's own page through."""

    def __init__(self, app: ASGIApp, *, port: int, token: str) -> None:
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

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
                message["headers"] = [*message.get("headers", []), *added]
            await send(message)

        refusal, body = self._refusal(scope["method"], Headers(scope=scope)), b""
        if refusal is None:
            try:
                body = await receiving.receive(scope, receive, MAX_BODY)
            except receiving.TooLongError:
                refusal = 413, f"body must have at most {MAX_BODY} bytes"
            except receiving.BadLengthError:
                refusal = 400, "body must have one length, got two"
            except receiving.GoneError:
                return
        if refusal is not None:
            await refuse(*refusal)(scope, receive, send_guarded)
            return
        await self._app(scope, receiving.replay(body, receive), send_guarded)

    def _refusal(self, method: str, headers: Headers) -> tuple[int, str] | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return 421, "Host must be this server's own address on loopback"
        for origin in headers.getlist("origin"):
            if origin.removeprefix("http://") not in self._hosts or "://" not in origin:
                return 403, "Origin must be the studio's own page"
        for site in headers.getlist("sec-fetch-site"):
            if site not in ("same-origin", "none"):
                return 403, "requests must come from the studio's own page"
        if method not in ("GET", "HEAD", "POST"):
            return 405, "method must be GET, HEAD or POST"
        if method == "POST":
            kind = headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != "application/json":
                return 415, "content-type must be application/json"
            token = headers.get(TOKEN, "")
            if not compare_digest(token.encode(), self._token.encode()):
                return 403, f"{TOKEN} must be this run's token; reload the page"
        return None


def refuse(status: int, sentence: str) -> JSONResponse:
    """The answer to a request that is not met, in one sentence."""
    return JSONResponse({"error": sentence}, status_code=status)

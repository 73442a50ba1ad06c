"""The studio's server: the page, and routes that compute on scenarios and simulations.

Every computing route takes a JSON object and answers with one; bad input is a 4xx with one
sentence. Nothing is stored but a few recently opened scenarios, in memory.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import resources
from threading import BoundedSemaphore, Lock, Thread
from typing import Any, TypeAlias

import uvicorn
from cachetools import LRUCache
from jinja2 import Environment, StrictUndefined
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from dphmm.errors import ArgumentError, DphmmError
from dphmm.scenario import Scenario
from dphmm.studio import requests
from dphmm.studio.effects import Situation, make_policy
from dphmm.studio.examples import Shown, draw, open_example, paper
from dphmm.studio.files import make_scenario, opening_view, to_zip
from dphmm.studio.guard import Guard, refuse
from dphmm.studio.requests import read_body, read_request
from dphmm.studio.simulate import timeline, walk

__all__ = ["create_app", "run_in_background", "serve"]

REMEMBERED = 8
"""How many scenarios the server keeps; the page opens one again when it was forgotten."""


Work: TypeAlias = Callable[[dict[str, Any]], Any]
Answer: TypeAlias = Callable[[Shown, Any], Any]


class _ForgottenError(Exception):
    """A scenario that the server does not have (any more)."""


class Opened:
    """The scenarios that were opened lately, by a name that only the request decides."""

    def __init__(self, own: Scenario | None = None) -> None:
        self._own = None if own is None else (draw(own), opening_view(own))
        self._shown: LRUCache[str, Shown] = LRUCache(REMEMBERED)
        self._lock = Lock()

    def open(self, content: dict[str, Any]) -> dict[str, Any]:
        """Open what a request names, and tell the page what it needs to draw it."""
        request = read_request(requests.Open, content)
        own = self._own if request.name == "own" else None
        name = "-".join(str(value) for value in request.model_dump().values())
        with self._lock:
            shown = self._shown.get(name) or (open_example(request) if own is None else own[0])
            self._shown[name] = shown
        return {"world": name, **({"view": own[1]} if own else {}), **shown.describe()}

    def find(self, content: dict[str, Any]) -> Shown:
        """The scenario that a request is about."""
        with self._lock:
            shown = self._shown.get(read_request(requests.World, content).world)
        if shown is None:
            raise _ForgottenError
        return shown


def create_app(*, port: int, token: str | None = None, scenario: Scenario | None = None) -> Guard:
    """The studio as an ASGI app that answers on one port of loopback only.

    With a scenario the page opens on it; without, on the paper's running example.
    """
    secret = secrets.token_urlsafe(24) if token is None else token
    static = resources.files("dphmm.studio") / "static"
    page = (
        Environment(autoescape=True, undefined=StrictUndefined)
        .from_string((static / "index.html").read_text(encoding="utf-8"))
        .render(token=secret, own="" if scenario is None else scenario.name)
    )
    opened = Opened(scenario)
    # Two computations at a time: more would only make all of them slow.
    busy = BoundedSemaphore(2)

    def compute(work: Work, body: bytes) -> Response:
        try:
            content = read_body(body)
            with busy:
                answer = work(content)
        except _ForgottenError:
            return refuse(404, "world must be one that was opened; open it again")
        except DphmmError as error:
            return refuse(400, str(error))
        if isinstance(answer, dict):
            return JSONResponse(answer)
        kind = "zip" if isinstance(answer, bytes) else "toml"
        return Response(answer, media_type=f"application/{kind}")

    def route(path: str, work: Work) -> Route:
        async def endpoint(request: Request) -> Response:
            return await run_in_threadpool(compute, work, await request.body())

        return Route(path, endpoint, methods=["POST"])

    def about(kind: type[requests.Fields], answer: Answer) -> Work:
        def work(content: dict[str, Any]) -> Any:
            shown = opened.find(content)
            return answer(shown, read_request(kind, content, len(shown.scenario.states)))

        return work

    async def index(request: Request) -> Response:
        return HTMLResponse(page)

    app = Starlette(
        routes=[
            Route("/", index, methods=["GET"]),
            route("/api/open", opened.open),
            *(route(f"/api/{name}", about(*parts)) for name, parts in ANSWERS.items()),
            Mount("/static", StaticFiles(directory=str(static))),
        ]
    )
    return Guard(app, port=port, token=secret)


def _linked(shown: Shown, request: requests.Linked) -> dict[str, Any]:
    return {"linked": make_policy(shown.scenario, request.policy).has_edge(*request.states)}


ANSWERS: dict[str, tuple[type[requests.Fields], Answer]] = {
    "effects": (requests.Effects, lambda shown, r: Situation.of(shown.scenario, r).effects()),
    "repairs": (
        requests.Repairs,
        lambda shown, r: Situation.of(shown.scenario, r).repairs(r.state),
    ),
    "linked": (requests.Linked, _linked),
    "timeline": (requests.Timeline, lambda shown, r: timeline(shown.scenario, r)),
    "walk": (requests.Walk, walk),
    "scenario": (requests.Save, lambda shown, r: to_zip(make_scenario(shown.scenario, r))),
    "toml": (requests.Save, lambda shown, r: make_scenario(shown.scenario, r).settings.to_toml()),
}
"""What each route reads, and what it answers: an object, or the content of a file."""


def serve(
    *,
    port: int,
    ready: Callable[[str], None],
    host: str = "127.0.0.1",
    scenario: Scenario | None = None,
) -> None:
    """Serve the studio on loopback until interrupted; port 0 takes a free one.

    `ready` is called with the address once the port is taken.
    """
    with _listen(host, port) as listener:
        Thread(target=_warm_up, daemon=True).start()
        ready(_address(listener))
        _server(listener, scenario).run(sockets=[listener])


@contextmanager
def run_in_background(scenario: Scenario | None = None) -> Iterator[str]:
    """The address of a studio that runs in the background, on a free port, for a while."""
    with _listen("127.0.0.1", 0) as listener:
        server = _server(listener, scenario)
        thread = Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            yield _address(listener)
        finally:
            server.should_exit = True
            thread.join(timeout=10)


def _listen(host: str, port: int) -> socket.socket:
    if host not in ("127.0.0.1", "::1"):
        raise ArgumentError(f"host must be 127.0.0.1 or ::1, got {host!r}")
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise ArgumentError(f"port must be free, got {port} ({error.strerror})") from None
    return listener


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def _server(listener: socket.socket, scenario: Scenario | None) -> uvicorn.Server:
    app = create_app(port=listener.getsockname()[1], scenario=scenario)
    return uvicorn.Server(
        uvicorn.Config(app, log_level="warning", access_log=False, server_header=False)
    )


def _warm_up() -> None:
    """Compile, or load, the kernels before the page asks for them."""
    runs = [{"policy": {"base": "categories"}}]
    walk(paper(), read_request(requests.Walk, {"length": 2, "runs": runs}, n_states=6))

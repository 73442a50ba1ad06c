"""The studio's server: the page, and routes that compute on scenarios and simulations.

Every computing route takes a JSON object and answers with one; bad input is a 4xx with one
sentence. Nothing is stored but a few recently used worlds, in memory.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from importlib import resources
from threading import BoundedSemaphore, Thread
from typing import TYPE_CHECKING, Any

from dphmm.errors import ArgumentError, DphmmError, require
from dphmm.scenario import Scenario
from dphmm.studio.effects import read_policy, read_situation
from dphmm.studio.files import opening_view, packed, scenario_of, world_of
from dphmm.studio.guard import Guard
from dphmm.studio.reading import Fields, parsed
from dphmm.studio.simulate import timeline, walk
from dphmm.studio.worlds import Shelf, World, built_in, paper

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

__all__ = ["create_app", "running", "serve"]

PAGE_TOKEN = "{{token}}"
PAGE_OWN = "{{own}}"
Answer = Callable[[World, Fields], Any]


class _ForgottenError(Exception):
    """A world that the server does not have (any more)."""


def create_app(*, port: int, token: str | None = None, scenario: Scenario | None = None) -> Guard:
    """The studio as an ASGI app that answers on one port of loopback only.

    With a scenario the page opens on it; without, on the paper's running example.
    """
    applications = require("starlette.applications", "service")
    concurrency = require("starlette.concurrency", "service")
    responses = require("starlette.responses", "service")
    routing = require("starlette.routing", "service")
    staticfiles = require("starlette.staticfiles", "service")

    secret = secrets.token_urlsafe(24) if token is None else token
    shelf = Shelf()
    static = resources.files("dphmm.studio") / "static"
    page = (static / "index.html").read_text(encoding="utf-8").replace(PAGE_TOKEN, secret)
    page = page.replace(PAGE_OWN, "" if scenario is None else escape(scenario.name))
    own = None if scenario is None else (world_of(scenario), opening_view(scenario))
    # Two computations at a time: more would only make all of them slow.
    busy = BoundedSemaphore(2)

    def computed(work: Callable[[Fields], Any], body: bytes) -> Response:
        status = 200
        try:
            fields = parsed(body)
            with busy:
                answer = work(fields)
        except _ForgottenError:
            status, answer = 404, {"error": "world must be one that was opened; open it again"}
        except DphmmError as error:
            status, answer = 400, {"error": str(error)}
        response: Response = (
            responses.JSONResponse(answer, status_code=status)
            if isinstance(answer, dict)
            else answer
        )
        return response

    def route(path: str, work: Callable[[Fields], Any]) -> Any:
        async def endpoint(request: Request) -> Response:
            body = await request.body()
            response: Response = await concurrency.run_in_threadpool(computed, work, body)
            return response

        return routing.Route(path, endpoint, methods=["POST"])

    def opened(fields: Fields) -> dict[str, Any]:
        if own is not None and fields.text("name") == "own":
            world, view = own
            name = shelf.put("own", lambda: world)
            return {"world": name, "view": view, **world.description()}
        name = shelf.put(fields.content, lambda: built_in(fields))
        return {"world": name, **_on(shelf, name).description()}

    def saved(world: World, fields: Fields) -> Response:
        content = packed(scenario_of(world, fields))
        response: Response = responses.Response(content, media_type="application/zip")
        return response

    def written(world: World, fields: Fields) -> Response:
        text = scenario_of(world, fields).settings.to_toml()
        response: Response = responses.Response(text, media_type="application/toml")
        return response

    def about_world(answer: Answer) -> Callable[[Fields], Any]:
        return lambda fields: answer(_on(shelf, fields.text("world")), fields)

    async def index(request: Request) -> Response:
        response: Response = responses.HTMLResponse(page)
        return response

    return Guard(
        applications.Starlette(
            routes=[
                routing.Route("/", index, methods=["GET"]),
                route("/api/open", opened),
                route("/api/effects", about_world(_effects)),
                route("/api/linked", about_world(_linked)),
                route("/api/repairs", about_world(_repairs)),
                route("/api/timeline", about_world(timeline)),
                route("/api/walk", about_world(walk)),
                route("/api/scenario", about_world(saved)),
                route("/api/toml", about_world(written)),
                routing.Mount("/static", staticfiles.StaticFiles(directory=str(static))),
            ]
        ),
        port=port,
        token=secret,
    )


def _on(shelf: Shelf, name: str) -> World:
    world = shelf.get(name)
    if world is None:
        raise _ForgottenError
    return world


def _effects(world: World, fields: Fields) -> dict[str, Any]:
    return read_situation(world, fields).effects()


def _linked(world: World, fields: Fields) -> dict[str, Any]:
    states = fields.states("states", world.n_states)
    if len(states) != 2:
        raise ArgumentError(f"states must be two different states, got {len(states)}")
    return {"linked": read_policy(world, fields.inner("policy")).has_edge(*states)}


def _repairs(world: World, fields: Fields) -> dict[str, Any]:
    state = fields.state("state", world.n_states) if fields.has("state") else None
    return read_situation(world, fields).repairs(state)


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
    with _door(host, port) as door:
        Thread(target=_warm_up, daemon=True).start()
        ready(_address(door))
        _server(door, scenario).run(sockets=[door])


@contextmanager
def running(scenario: Scenario | None = None) -> Iterator[str]:
    """The address of a studio that runs in the background, on a free port, for a while."""
    with _door("127.0.0.1", 0) as door:
        server = _server(door, scenario)
        thread = Thread(target=server.run, kwargs={"sockets": [door]}, daemon=True)
        thread.start()
        try:
            yield _address(door)
        finally:
            server.should_exit = True
            thread.join(timeout=10)


def _door(host: str, port: int) -> socket.socket:
    if host not in ("127.0.0.1", "::1"):
        raise ArgumentError(f"host must be 127.0.0.1 or ::1, got {host!r}")
    door = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        door.bind((host, port))
        door.listen()
    except OSError as error:
        door.close()
        raise ArgumentError(f"port must be free, got {port} ({error.strerror})") from None
    return door


def _address(door: socket.socket) -> str:
    host, port = door.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def _server(door: socket.socket, scenario: Scenario | None) -> Any:
    uvicorn = require("uvicorn", "service")
    app = create_app(port=door.getsockname()[1], scenario=scenario)
    return uvicorn.Server(
        uvicorn.Config(app, log_level="warning", access_log=False, server_header=False)
    )


def _warm_up() -> None:
    """Compile, or load, the kernels before the page asks for them."""
    fields = Fields({"length": 2, "runs": [{"policy": {"base": "categories"}}]}, "body")
    walk(paper(), fields)

"""The studio's server: the page, and routes that compute on scenarios and simulations.

Every computing route takes a JSON object and answers with one; bad input is a 4xx with one
sentence. Nothing is written but the scenario's own files, when somebody saves.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager
from importlib import resources
from pathlib import Path
from threading import BoundedSemaphore, Thread
from typing import Any, TypeAlias

import uvicorn
from jinja2 import Environment, StrictUndefined
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from dphmm.errors import ArgumentError, DphmmError
from dphmm.studio import requests, saving, watching
from dphmm.studio.comparing import compare
from dphmm.studio.effects import Situation, timeline
from dphmm.studio.examples import open_example
from dphmm.studio.guard import Guard, refuse
from dphmm.studio.live import Live
from dphmm.studio.opened import Opened
from dphmm.studio.progress import Job, Jobs, StoppedError
from dphmm.studio.requests import read_body, read_request
from dphmm.studio.shelf import ForgottenError, Shelf
from dphmm.studio.simulate import expect_errors, walk
from dphmm.studio.start import Start, name_of, recent_file
from dphmm.studio.tradeoff import tradeoff

__all__ = ["create_app", "run_in_background", "serve"]

Work: TypeAlias = Callable[[dict[str, Any]], Any]
Answer: TypeAlias = Callable[[Opened, Any], Any]


def create_app(
    *,
    port: int,
    token: str | None = None,
    own: Opened | None = None,
    start: Start | None = None,
    live: Live | None = None,
) -> Guard:
    """The studio as an ASGI app that answers on one port of loopback only.

    With a scenario of one's own the page opens on it; without, it offers what there is.
    """
    secret = secrets.token_urlsafe(24) if token is None else token
    static = resources.files("dphmm.studio") / "static"
    page = (
        Environment(autoescape=True, undefined=StrictUndefined)
        .from_string((static / "index.html").read_text(encoding="utf-8"))
        .render(
            token=secret,
            own="" if own is None else own.scenario.name,
            modules=sorted(one.name for one in (static / "js").iterdir()),
        )
    )
    shelf = Shelf(own, start, None if live is None or own is None else name_of(own.path))
    # Two long computations at a time: more would only make all of them slow. What a slider asks
    # for never waits for them.
    long, quick = BoundedSemaphore(2), BoundedSemaphore(2)
    jobs = Jobs()

    def compute(work: Work, slow: bool, content: dict[str, Any], job: Job) -> Response:
        try:
            with _turn(long if slow else quick, job), job.running():
                answer = work(content)
        except StoppedError:
            return refuse(409, "work must be waited for, got nobody who does; ask again")
        except ForgottenError:
            return refuse(404, "world must be one that was opened; open it again")
        except DphmmError as error:
            return refuse(400, str(error))
        except OSError as fault:
            return refuse(500, f"files must be there and writable, got: {fault.strerror}")
        if isinstance(answer, dict):
            return JSONResponse(answer)
        kind = "zip" if isinstance(answer, bytes) else "toml"
        return Response(answer, media_type=f"application/{kind}")

    def route(path: str, work: Work) -> Route:
        async def endpoint(request: Request) -> Response:
            slow = path.removeprefix("/api/") in SLOW
            try:
                content = read_body(await request.body())
                job = jobs.begin(read_request(requests.Named, content).job)
            except DphmmError as error:
                return refuse(400, str(error))
            return await _while_waited_for(
                request, job, run_in_threadpool(compute, work, slow, content, job)
            )

        return Route(path, endpoint, methods=["POST"])

    def about(kind: type[requests.Fields], answer: Answer) -> Work:
        def work(content: dict[str, Any]) -> Any:
            opened = shelf.find(content)
            return answer(opened, read_request(kind, content, len(opened.scenario.states)))

        return work

    async def progress(request: Request) -> Response:
        try:
            name = read_request(requests.Job, read_body(await request.body())).job
        except DphmmError as error:
            return refuse(400, str(error))
        return JSONResponse(jobs.describe(name))

    async def index(request: Request) -> Response:
        return HTMLResponse(page)

    app = Starlette(
        routes=[
            Route("/", index, methods=["GET"]),
            Route("/api/progress", progress, methods=["POST"]),
            route("/api/open", shelf.open),
            route("/api/save", shelf.save),
            route("/api/start", shelf.list),
            route("/api/drop", shelf.drop),
            *([] if live is None else [route("/api/live", lambda content: live.describe())]),
            *(route(f"/api/{name}", about(*parts)) for name, parts in ANSWERS.items()),
            Mount("/static", StaticFiles(directory=str(static))),
        ]
    )
    return Guard(app, port=port, token=secret)


@contextmanager
def _turn(turns: BoundedSemaphore, job: Job) -> Iterator[None]:
    """One of the turns, waited for as long as somebody waits for the job."""
    while not turns.acquire(timeout=0.2):
        job.check()
    try:
        yield
    finally:
        turns.release()


async def _while_waited_for(request: Request, job: Job, work: Awaitable[Response]) -> Response:
    """The answer of some work, which is told to stop when the one who asked is gone."""

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        job.stop()

    watching = asyncio.create_task(watch())
    try:
        return await work
    finally:
        watching.cancel()


def _linked(opened: Opened, request: requests.Linked) -> dict[str, Any]:
    scenario = opened.scenario_of(request)
    own = sorted(request.states) in (opened.edges if request.edges is None else request.edges)
    return {"linked": scenario.policy.has_edge(*request.states), "own": own}


def _situation(opened: Opened, request: requests.Effects) -> Situation:
    return Situation.of(opened.scenario_of(request), request.step)


SLOW = ("released", "repairs", "timeline", "expected", "tradeoff", "walk", "scenario")
"""Routes that may take seconds."""

ANSWERS: dict[str, tuple[type[requests.Fields], Answer]] = {
    "effects": (requests.Effects, lambda opened, r: _situation(opened, r).effects()),
    "released": (requests.Effects, lambda opened, r: _situation(opened, r).released()),
    "repairs": (requests.Repairs, lambda opened, r: _situation(opened, r).repairs(r.state)),
    "linked": (requests.Linked, _linked),
    "between": (requests.Between, compare),
    "timeline": (
        requests.Timeline,
        lambda opened, r: timeline(opened.scenario_of(r), r.horizon),
    ),
    "expected": (requests.Draft, expect_errors),
    "tradeoff": (requests.Tradeoff, tradeoff),
    "walk": (requests.Walk, walk),
    "difference": (requests.Draft, saving.difference),
    "scenario": (requests.Draft, saving.to_zip),
    "toml": (requests.Draft, lambda opened, r: opened.text_of(r)),
}
"""What each route reads, and what it answers: an object, or the content of a file."""


def serve(
    *,
    port: int,
    ready: Callable[[str], None],
    host: str = "127.0.0.1",
    path: str | Path | None = None,
    watch: str | Path | None = None,
    key_file: str | None = None,
    anchor: str | None = None,
) -> None:
    """Serve the studio on loopback until interrupted; port 0 takes a free one.

    `path` is a scenario's file, or a folder of some; by default the present one. `ready` is
    called with the address once the port is taken. `watch` is a ledger file, a store or a service
    that releases the scenario, to be shown as it grows; `key_file` has a service's key,
    `anchor` is where a store's roots are kept.
    """
    own, start = _opening(path, Path(), recent_file())
    with _watched(watch, own, key_file, anchor) as live, _listen(host, port) as listener:
        server = _server(listener, own, start, live)
        Thread(target=_warm_up, daemon=True).start()
        ready(_address(listener))
        server.run(sockets=[listener])


@contextmanager
def run_in_background(
    path: str | Path | None = None,
    memory: Path | None = None,
    watch: str | Path | None = None,
    key_file: str | None = None,
    anchor: str | None = None,
) -> Iterator[str]:
    """The address of a studio that runs in the background, on a free port, for a while.

    `memory` is the file that keeps the names of lately opened scenarios, if any does.
    """
    own, start = _opening(path, None, memory)
    with _watched(watch, own, key_file, anchor) as live, _listen("127.0.0.1", 0) as listener:
        server = _server(listener, own, start, live)
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
    # Or an answer waits 40 ms until its heading, which leaves first, has arrived.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
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


def _opening(
    path: str | Path | None, folder: Path | None, memory: Path | None
) -> tuple[Opened | None, Start]:
    """The scenario to begin with, if one was named, and the files that the page offers."""
    given = folder if path is None else Path(path)
    if given is None or given.is_dir():
        return None, Start(given, memory)
    own, start = saving.open_file(given), Start(given.parent, memory)
    start.remember(given)
    return own, start


@contextmanager
def _watched(
    watch: str | Path | None, own: Opened | None, key_file: str | None, anchor: str | None
) -> Iterator[Live | None]:
    """What is to be watched, until the server ends."""
    if watch is None:
        if key_file is not None:
            raise ArgumentError("key_file must come with a service to watch, got none")
        yield None
        return
    if own is None or own.path is None:
        raise ArgumentError("watch must come with the scenario whose ledger it is, got none")
    source = watching.watch(str(watch), own.scenario, own.path, key_file, anchor)
    with closing(Live(source, own.scenario, own.drawing)) as live:
        yield live


def _server(
    listener: socket.socket, own: Opened | None, start: Start, live: Live | None
) -> uvicorn.Server:
    app = create_app(port=listener.getsockname()[1], own=own, start=start, live=live)
    return uvicorn.Server(
        uvicorn.Config(app, log_level="warning", access_log=False, server_header=False)
    )


def _warm_up() -> None:
    """Compile, or load, the kernels before the page asks for them."""
    example = open_example(requests.Open(name="paper"))
    walk(example, requests.Walk(length=2))
    Situation.of(example.scenario, 1).effects()

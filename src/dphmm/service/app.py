"""The routes: who may ask what, and which problem gets which status."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Path, Query, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse

from dphmm import __version__
from dphmm.books import OPERATE, Key, Store, find_key, list_keys
from dphmm.noise.randomness import Randomness
from dphmm.release.book import check_key
from dphmm.release.engine import LongWayError
from dphmm.service import bodies
from dphmm.service.access import Access, RefusedError
from dphmm.service.batches import KINDS
from dphmm.service.committing import GroupCommit, Threads
from dphmm.service.handlers import Handlers
from dphmm.service.managing import Managing
from dphmm.service.metrics import Metrics
from dphmm.service.middleware import Middleware
from dphmm.service.page import api_page
from dphmm.service.preparing import Preparing
from dphmm.service.problems import answer_problems
from dphmm.service.readiness import Readiness
from dphmm.service.routes import Route, Routes
from dphmm.service.settings import ServiceSettings
from dphmm.service.sharing import Shared
from dphmm.service.shortcut import DIGEST, LONGEST_PERSON, Shortcut
from dphmm.service.showing import UNREACHABLE, Released, released
from dphmm.service.tracing import TracedCommit, Tracing
from dphmm.service.workers import Workers

__all__ = ["create_app"]

Digest = Annotated[str, Path(pattern=DIGEST, description="A scenario's id.")]
Person = Annotated[
    str,
    Path(
        min_length=1,
        max_length=LONGEST_PERSON,
        description="The person's name: printable, in Unicode's form NFC, as UTF-8.",
        json_schema_extra={"pattern": r"^\S(.*\S)?$"},
    ),
]


async def _holder(request: Request) -> Key:
    """Whose key it is; that it may do this was asked before the body was read."""
    key: Key = request.state.key
    return key


async def _client(request: Request) -> str:
    return (await _holder(request)).client


Holder = Annotated[Key, Depends(_holder)]
Client = Annotated[str, Depends(_client)]
Whose = Annotated[
    str | None, Query(max_length=200, description="Whose keys, for an operator to say.")
]
Number = Annotated[int, Query(ge=0, le=2**53, description="The number of one, or of so many.")]
KeyName = Annotated[str, Path(pattern="^[0-9a-f]{16}$", description="A key's id.")]
Endpoint = Callable[..., Any]

PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": bodies.Problem}
    for status in (400, 401, 403, 404, 405, 408, 409, 413, 415, 422, 429, 503)
}
KEY = {"type": "http", "scheme": "bearer", "description": "A key of this service."}
MANAGING = f"keys {OPERATE}"
ROWS: dict[str, Any] = {
    KINDS[1]: {"schema": {"type": "string", "description": "Rows as lines of JSON."}},
    KINDS[2]: {"schema": {"type": "string", "format": "binary"}},
}
"""How else rows of a batch may come and go."""

BATCH = "/v1/scenarios/{digest}/releases:batch"
STREAM = "/v1/scenarios/{digest}/people/{person}"


def create_app(
    store: Store,
    settings: ServiceSettings | None = None,
    randomness: Randomness | None = None,
    shared: Shared | None = None,
    tracing: Tracing | None = None,
) -> Middleware:
    """The service over a store, as an ASGI application; it closes the store at the end.

    `shared` is what it shares with other processes that serve the same port, `tracing` where its
    traces go.
    """
    check_key(store, randomness)
    settings = settings or ServiceSettings()
    metrics, access = Metrics(store, shared), Access(settings, shared)
    threads = Threads(settings)
    handlers = Handlers(store, settings, randomness)
    workers = Workers(store, settings, randomness)
    commits = GroupCommit if tracing is None else TracedCommit
    commit = commits(store, threads, settings, randomness)
    readiness = Readiness(store)
    preparing = Preparing(handlers, workers.submit, settings.long_seconds)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        workers.close()
        readiness.close()
        threads.close()
        store.close()
        if tracing is not None:
            tracing.close()

    app = FastAPI(
        title="dphmm",
        version=__version__,
        description="Releases what a Markov chain is doing, at most once for each moment.",
        lifespan=lifespan,
        docs_url=None,  # its page loads scripts from elsewhere; ours has none
        redoc_url=None,
        redirect_slashes=False,  # to an address that the request made up
    )
    explain = answer_problems(app, metrics)
    describe = app.openapi

    def describe_keys() -> dict[str, Any]:
        page = describe()
        page.setdefault("components", {})["securitySchemes"] = {"key": KEY}
        return page

    app.openapi = describe_keys  # type: ignore[method-assign]

    async def find_holder(request: Request) -> Key:
        """Whose key it is; asked before the body is read."""
        address = request.client.host if request.client else ""
        secret, key = access.identify(request.headers.get("authorization"), address)
        if key is not None:
            return key
        if not access.is_worth_looking(secret, address) and access.is_worth_listing():
            access.know(await threads.run("", list_keys, store))
        if not access.is_worth_looking(secret, address):
            return access.remember(None, address, asked=False)
        return access.remember(await threads.run("", find_key, store, secret), address)

    async def call(name: str, client: str, digest: str, *arguments: Any) -> Response:
        """Do something with a scenario here if that is sure to be short, in a worker if not."""
        if await preparing.is_small(client, digest):
            work = getattr(handlers, name)
            return JSONResponse(await threads.run(client, work, client, digest, *arguments))
        return JSONResponse(await workers.run(client, name, client, digest, *arguments))

    routes = Routes(settings)
    route = partial(_route, app, routes)

    # The first one, since the others are looked at in order and this is asked most.
    @route("POST", STREAM + "/releases", "release", bodies.Released)
    async def release(
        digest: Digest, person: Person, body: bodies.NewRelease, request: Request
    ) -> Response:
        """The answer at a time. Asked again, it is the same answer, whatever is sent with it."""
        return await answer_one(request.state.client, digest, person, body)

    async def answer_one(
        client: str, digest: str, person: str, body: bodies.NewRelease
    ) -> Response:
        answer: Released | None = None
        if await preparing.is_small(client, digest):
            scenario, ask = handlers.ask(client, digest, person, body)
            answered = await commit.release(ask)
            if not isinstance(answered.faults.get(0), LongWayError):
                answer = released(scenario, answered)
        if answer is None:
            answer = await workers.run(client, "release", client, digest, person, body)
        if answer.price is not None:
            metrics.answered(answer.price, answer.shown["repeated"])
        return JSONResponse(answer.shown)

    @app.get("/live", tags=["operation"])
    async def live() -> bodies.Status:
        """Whether the process answers at all; the store is not asked."""
        return bodies.Status(status="ok")

    @app.get("/ready", tags=["operation"], responses={503: {"model": bodies.Problem}})
    @app.get("/health", tags=["operation"], responses={503: {"model": bodies.Problem}})
    async def ready() -> bodies.Status:
        """Whether the store can be written and is where its anchor says."""
        if not await readiness.is_ready():
            raise RefusedError(503, UNREACHABLE, 5)
        return bodies.Status(status="ok")

    @app.get("/docs", include_in_schema=False)
    async def show_page() -> HTMLResponse:
        return HTMLResponse(api_page(app.openapi()))

    @route("GET", "/metrics", OPERATE, None)
    async def show_metrics() -> Response:
        """Counters and gauges for Prometheus; none depends on a true state or on a duration."""
        text = metrics.text(await readiness.is_ready())
        return Response(text, media_type="text/plain; version=0.0.4")

    @route(
        "POST", "/v1/scenarios", "scenarios", bodies.ScenarioSummary, also=201, body="NewScenario"
    )
    async def add_scenario(request: Request, client: Client) -> Response:
        """Keep a scenario; its id is the SHA-256 of its content. 201 if it is new."""
        content = await request.body()
        summary, new, small = await workers.run(client, "add_scenario", client, content)
        handlers.keep(client, summary["id"], small)
        return JSONResponse(summary, 201 if new else 200)

    @route("GET", "/v1/scenarios", "read", bodies.ScenarioIds)
    async def list_scenarios(client: Client) -> Response:
        """The ids of your scenarios."""
        return JSONResponse(await threads.run(client, handlers.scenarios, client))

    @route("GET", "/v1/scenarios/{digest}", "read", bodies.ScenarioSummary)
    async def show_scenario(digest: Digest, client: Client) -> Response:
        """What a scenario is called and what a release costs."""
        return await call("scenario", client, digest)

    @route("PUT", STREAM, "people", bodies.StreamSummary)
    async def open_stream(
        digest: Digest, person: Person, by: Holder, body: bodies.NewStream | None = None
    ) -> Response:
        """Make a person known, once; doing it again changes nothing."""
        given = body or bodies.NewStream()
        return await call("begin", by.client, digest, person, given, by.name)

    @route("POST", BATCH, "release", bodies.Batched, body="NewBatch")
    async def release_batch(digest: Digest, request: Request, client: Client) -> Response:
        """Many releases by one commit; each row gets its answer or its own problem.

        Also as lines of JSON (application/x-ndjson), a row each, or as an Arrow stream
        (application/vnd.apache.arrow.stream), a column for each field, both ways.
        """
        given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        kind = given if given in KINDS else KINDS[0]
        done = await workers.run(client, "batch", client, digest, await request.body(), kind)
        metrics.answered_many(done)
        return Response(done.content, media_type=kind)

    @route("GET", STREAM + "/releases", "read", bodies.Releases)
    async def list_releases(
        digest: Digest,
        person: Person,
        client: Client,
        after: Annotated[str | None, Query(max_length=40, description="A time.")] = None,
    ) -> Response:
        """The answers and estimates after a time."""
        return await call("releases", client, digest, person, after)

    @route("GET", STREAM + "/track", "read", bodies.Track)
    async def track(digest: Digest, person: Person, client: Client) -> Response:
        """The best estimate of every step, given all answers until now."""
        return JSONResponse(await workers.run(client, "track", client, digest, person))

    @route("GET", STREAM + "/privacy", "read", bodies.Statement)
    async def privacy(digest: Digest, person: Person, client: Client) -> Response:
        """What the answers to this question cost, in words and numbers, and for whom it holds."""
        return JSONResponse(await workers.run(client, "privacy", client, digest, person))

    @route("GET", "/v1/people", "read", bodies.People)
    async def list_people(
        client: Client,
        after: Annotated[str, Query(max_length=200, description="A name.")] = "",
    ) -> Response:
        """The names of your people after one, a thousand at a time."""
        return JSONResponse(await threads.run(client, handlers.people, client, after))

    @route("GET", "/v1/people/{person}/ledger", "read", bodies.LedgerPage)
    async def ledger(person: Person, client: Client, after: Number = 0) -> Response:
        """What was spent on a person, on every question; a thousand entries at a time."""
        return JSONResponse(await workers.run(client, "ledger", client, person, after))

    @route("DELETE", "/v1/people/{person}", "people", bodies.Erased)
    async def erase(person: Person, by: Holder) -> Response:
        """Erase a person; the slots answered, the epsilon spent and the budget are kept."""
        work = partial(handlers.erase, by.client, person, by.name)
        return JSONResponse(await threads.run(by.client, work))

    _manage(route, threads, access, Managing(store))

    shortcut = Shortcut(STREAM + "/releases", answer_one, explain)
    return Middleware(
        app, settings, metrics, access, routes, find_holder, workers.close, shortcut, tracing
    )


def _manage(
    route: Callable[..., Callable[[Endpoint], Endpoint]],
    threads: Threads,
    access: Access,
    managing: Managing,
) -> None:
    """The routes of those who manage keys."""

    async def do(work: Callable[..., Any], by: Key, *arguments: Any, status: int = 200) -> Response:
        done = await threads.run(by.client, work, by, *arguments)
        access.forget_all()  # what was changed counts from now on, here
        return JSONResponse(done, status)

    @route("GET", "/v1/keys", MANAGING, bodies.Keys)
    async def show_keys(by: Holder, client: Whose = None) -> Response:
        """The keys of a client: what they open and until when."""
        return JSONResponse(await threads.run(by.client, managing.keys, by, client))

    @route("POST", "/v1/keys", MANAGING, None, also=201, made=bodies.MadeKey)
    async def add_key(body: bodies.NewKey, by: Holder, client: Whose = None) -> Response:
        """Another key, shown this once, with some of your own scopes."""
        return await do(managing.create, by, client, body, status=201)

    @route("POST", "/v1/keys/{name}/rotate", MANAGING, None, also=201, made=bodies.MadeKey)
    async def rotate_key(
        name: KeyName, body: bodies.KeyTerms, by: Holder, client: Whose = None
    ) -> Response:
        """Another key with the same scopes, shown this once; the old one closes later."""
        return await do(managing.rotate, by, client, name, body, status=201)

    @route("PUT", "/v1/keys/{name}", MANAGING, bodies.KeyFacts)
    async def expire_key(
        name: KeyName, body: bodies.KeyTerms, by: Holder, client: Whose = None
    ) -> Response:
        """Let a key close after some hours, never later than it would."""
        return await do(managing.expire, by, client, name, body)

    @route("DELETE", "/v1/keys/{name}", MANAGING, bodies.KeyFacts)
    async def revoke_key(name: KeyName, by: Holder, client: Whose = None) -> Response:
        """Close a key now."""
        return await do(managing.revoke, by, client, name)

    @route("GET", "/v1/acts", MANAGING, bodies.Acts)
    async def show_acts(by: Holder, after: Number = 0) -> Response:
        """Who did what with people's budgets, erasures and keys, not whom about."""
        return JSONResponse(await threads.run(by.client, managing.acts, by, after))


def _route(
    app: FastAPI,
    routes: Routes,
    method: str,
    path: str,
    scopes: str,
    answer: Any,
    also: int | None = None,
    body: str | None = None,
    made: Any = None,
) -> Callable[[Endpoint], Endpoint]:
    """Add a route; a `body` that a worker reads, and may be large, is described here."""
    routes.add(Route(method, path, tuple(scopes.split()), large=body is not None))
    responses = dict(PROBLEMS)
    if also is not None:
        responses[also] = {"model": made or answer}
    if path == "/metrics":
        responses[200] = {"content": {"text/plain": {"schema": {"type": "string"}}}}
    # What the middleware asks for is only described here: asking again would cost every request.
    extra: dict[str, Any] = {"security": [{"key": []}]}
    if body is not None:
        content = {"application/json": {"schema": bodies.whole_schema(getattr(bodies, body))}}
        if path == BATCH:
            content |= ROWS
            responses[200] = {"content": ROWS}
        extra["requestBody"] = {"required": True, "content": content}
    return app.api_route(
        path,
        methods=[method],
        response_model=made or answer,
        status_code=200 if made is None else 201,
        responses=responses,
        response_class=JSONResponse,
        openapi_extra=extra,
        tags=["operation" if path == "/metrics" else path.split("/")[2]],
    )

"""The routes: who may ask what, and which problem gets which status."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse
from fastapi.security import HTTPBearer
from starlette.exceptions import HTTPException

from dphmm import __version__
from dphmm.books import Key, Store, find_key
from dphmm.errors import BudgetError, DphmmError, NotFoundError, StoreError
from dphmm.noise.randomness import Randomness
from dphmm.release.book import check_key
from dphmm.service import bodies
from dphmm.service.access import Access, RefusedError
from dphmm.service.committing import GroupCommit, Threads
from dphmm.service.handlers import Handlers, show_release
from dphmm.service.metrics import Metrics
from dphmm.service.middleware import Middleware
from dphmm.service.page import api_page
from dphmm.service.settings import ServiceSettings

__all__ = ["create_app"]

Digest = Annotated[str, Path(pattern="^[0-9a-f]{64}$", description="A scenario's id.")]
Person = Annotated[str, Path(min_length=1, max_length=200, description="The person's name.")]


def _needs(scope: str) -> Any:
    async def check(request: Request) -> str:
        key: Key = request.state.key
        request.state.access.check(key, scope)
        return key.client

    return Depends(check)


Releasing = Annotated[str, _needs("release")]
Reading = Annotated[str, _needs("read")]
Managing = Annotated[str, _needs("admin")]
Endpoint = Callable[..., Any]

PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": bodies.Problem}
    for status in (400, 401, 403, 404, 405, 408, 409, 413, 422, 429, 503)
}


def create_app(
    store: Store, settings: ServiceSettings | None = None, randomness: Randomness | None = None
) -> Middleware:
    """The service over a store, as an ASGI application; it closes the store at the end."""
    check_key(store, randomness)
    settings = settings or ServiceSettings()
    metrics, access, threads = Metrics(), Access(settings), Threads(settings)
    handlers = Handlers(store, settings, randomness)
    commit = GroupCommit(store, threads, settings, randomness)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        threads.close()
        store.close()

    app = FastAPI(
        title="dphmm",
        version=__version__,
        description="Releases what a Markov chain is doing, at most once for each moment.",
        lifespan=lifespan,
        docs_url=None,  # its page loads scripts from elsewhere; ours has none
        redoc_url=None,
    )
    _answer_problems(app, metrics)

    async def find_holder(request: Request) -> Key:
        """Whose key it is; asked before the body is read."""
        address = request.client.host if request.client else ""
        secret, key = access.identify(request.headers.get("authorization"), address)
        if key is None:
            key = access.remember(await threads.run(find_key, store, secret), address)
        return key

    stream = "/v1/scenarios/{digest}/people/{person}"
    bearer = [Depends(HTTPBearer(auto_error=False, description="A key of this service."))]
    route = partial(_route, app, bearer)

    @app.get("/health", tags=["operation"], responses={503: {"model": bodies.Problem}})
    async def health() -> dict[str, str]:
        """Whether the service can reach its store."""
        result: dict[str, str] = await threads.run(handlers.health)
        return result

    @app.get("/docs", include_in_schema=False)
    async def show_page() -> HTMLResponse:
        return HTMLResponse(api_page(app.openapi()))

    @route("GET", "/metrics", None)
    async def show_metrics(client: Managing) -> Response:
        """Counters for Prometheus; none depends on a true state or on a duration."""
        return Response(metrics.text(), media_type="text/plain; version=0.0.4")

    @route("POST", "/v1/scenarios", bodies.ScenarioSummary, also=201)
    async def add_scenario(body: bodies.NewScenario, client: Managing) -> Response:
        """Keep a scenario; its id is the SHA-256 of its content. 201 if it is new."""
        summary, new = await threads.run(handlers.add_scenario, client, body)
        return JSONResponse(summary, 201 if new else 200)

    @route("GET", "/v1/scenarios", None)
    async def list_scenarios(client: Reading) -> Response:
        """The ids of your scenarios."""
        return JSONResponse(await threads.run(handlers.scenarios, client))

    @route("GET", "/v1/scenarios/{digest}", bodies.ScenarioSummary)
    async def show_scenario(digest: Digest, client: Reading) -> Response:
        """What a scenario is called and what a release costs."""
        return JSONResponse(await threads.run(handlers.scenario, client, digest))

    @route("PUT", stream, bodies.StreamSummary)
    async def open_stream(
        digest: Digest, person: Person, client: Releasing, body: bodies.NewStream | None = None
    ) -> Response:
        """Make a person known, once; doing it again changes nothing."""
        given = body or bodies.NewStream()
        return JSONResponse(await threads.run(handlers.begin, client, digest, person, given))

    @route("POST", stream + "/releases", bodies.Released)
    async def release(
        digest: Digest, person: Person, body: bodies.NewRelease, client: Releasing
    ) -> Response:
        """The answer at a time. Asked again, it is the same answer, whatever is sent with it."""
        if handlers.has_ready(client, digest):
            scenario, ask = handlers.ask(client, digest, person, body)
        else:
            scenario, ask = await threads.run(handlers.ask, client, digest, person, body)
        answered = await commit.release(ask)
        release, repeated = answered.release(0), answered.repeated > 0
        if not release.silent or answered.filled:
            metrics.answered(release.epsilon + answered.filled, repeated)
        return JSONResponse(show_release(scenario, release, repeated))

    @route("GET", stream + "/releases", bodies.Releases)
    async def list_releases(
        digest: Digest,
        person: Person,
        client: Reading,
        after: Annotated[str | None, Query(max_length=40, description="A time.")] = None,
    ) -> Response:
        """The answers and estimates after a time."""
        return JSONResponse(await threads.run(handlers.releases, client, digest, person, after))

    @route("GET", stream + "/track", bodies.Track)
    async def track(digest: Digest, person: Person, client: Reading) -> Response:
        """The best estimate of every step, given all answers until now."""
        return JSONResponse(await threads.run(handlers.track, client, digest, person))

    @route("GET", stream + "/privacy", bodies.Statement)
    async def privacy(digest: Digest, person: Person, client: Reading) -> Response:
        """What all answers to this question cost, in words and numbers."""
        return JSONResponse(await threads.run(handlers.privacy, client, digest, person))

    @route("GET", "/v1/people", None)
    async def list_people(client: Reading) -> Response:
        """The names of your people."""
        return JSONResponse(await threads.run(handlers.people, client))

    @route("GET", "/v1/people/{person}/ledger", bodies.LedgerPage)
    async def ledger(person: Person, client: Reading) -> Response:
        """What was spent on a person, on every question."""
        return JSONResponse(await threads.run(handlers.ledger, client, person))

    @route("DELETE", "/v1/people/{person}", bodies.Erased)
    async def erase(person: Person, client: Managing) -> Response:
        """Erase a person; the slots answered, the epsilon spent and the budget are kept."""
        return JSONResponse(await threads.run(handlers.erase, client, person))

    return Middleware(app, settings, metrics, access, find_holder)


def _route(
    app: FastAPI, bearer: list[Any], method: str, path: str, answer: Any, also: int | None = None
) -> Callable[[Endpoint], Endpoint]:
    responses = dict(PROBLEMS)
    if also is not None:
        responses[also] = {"model": answer}
    return app.api_route(
        path,
        methods=[method],
        response_model=answer,
        responses=responses,
        response_class=PlainTextResponse if path == "/metrics" else JSONResponse,
        dependencies=bearer,
        tags=["operation" if path == "/metrics" else path.split("/")[2]],
    )


def _answer_problems(app: FastAPI, metrics: Metrics) -> None:
    def problem(status: int, text: str, retry_after: int | None = None, **more: Any) -> Response:
        headers = {} if retry_after is None else {"retry-after": str(retry_after)}
        return JSONResponse({"problem": text, **more}, status, headers)

    @app.exception_handler(DphmmError)
    async def ours(request: Request, fault: DphmmError) -> Response:
        if isinstance(fault, RefusedError):
            return problem(fault.status, fault.message, fault.retry_after)
        if isinstance(fault, NotFoundError):
            return problem(404, "there is no such thing, or it is not yours")
        if isinstance(fault, BudgetError):
            metrics.refusals.inc()
            facts: dict[str, Any] = {
                "window": fault.window,
                "slot": fault.opens,
                "time": fault.when,
            }
            return problem(
                409,
                str(fault),
                spent=str(fault.spent),
                requested=str(fault.requested),
                remaining=str(fault.remaining),
                **{name: fact for name, fact in facts.items() if fact is not None},
            )
        if isinstance(fault, StoreError):
            return problem(503, str(fault), retry_after=5)
        return problem(422, str(fault))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, fault: RequestValidationError) -> Response:
        # The input, which may hold a true state, is in neither place nor message.
        first = fault.errors()[0]
        where = [str(part) for part in first["loc"]]
        if "state" in where:
            text = "state must be a number or label of a state, or two finite coordinates"
            return problem(422, text, where=["body", "state"])
        return problem(422, f"{' '.join(where)}: {first['msg']}", where=where)

    @app.exception_handler(HTTPException)
    async def other(request: Request, fault: HTTPException) -> Response:
        answer = problem(fault.status_code, str(fault.detail).lower())
        answer.headers.update(fault.headers or {})
        return answer

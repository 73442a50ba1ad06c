"""What is answered to a request that is refused or fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from dphmm.errors import BudgetError, DphmmError, StoreError
from dphmm.service.access import RefusedError
from dphmm.service.logs import log
from dphmm.service.metrics import Metrics
from dphmm.service.showing import invalid, problem_of

__all__ = ["answer_problems"]


def answer_problems(
    app: FastAPI, metrics: Metrics
) -> Callable[[Request, DphmmError], Awaitable[Response]]:
    """Let an application answer what goes wrong; gives how it answers our own errors."""

    @app.exception_handler(DphmmError)
    async def ours(request: Request, fault: DphmmError) -> Response:
        status, shown = problem_of(fault)
        headers = fault.all_headers() if isinstance(fault, RefusedError) else {}
        if isinstance(fault, BudgetError):
            metrics.refusals.inc()
        if status == 503 and isinstance(fault, StoreError):
            log.error("store", extra={"request": request.state.request, "fault": str(fault)})
            headers["retry-after"] = "5"
        return JSONResponse(shown, status, headers)

    @app.exception_handler(RequestValidationError)
    async def not_as_described(request: Request, fault: RequestValidationError) -> Response:
        first = fault.errors()[0]
        return JSONResponse(problem_of(invalid(first["loc"], first["msg"]))[1], 422)

    @app.exception_handler(HTTPException)
    async def other(request: Request, fault: HTTPException) -> Response:
        shown = {"problem": str(fault.detail).lower()}
        return JSONResponse(shown, fault.status_code, dict(fault.headers or {}))

    return ours

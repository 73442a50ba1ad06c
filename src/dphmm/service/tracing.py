"""Traces of requests for OpenTelemetry: which route, which phases, and how many ticks each took.

How long noise takes to draw depends on the noise, so a span begins and ends at whole ticks after
its request came: no reader of traces learns more than whoever sent the request. Nothing that names
a person, a state, a key or a client is in one.
"""

from __future__ import annotations

import math
import os
import threading
import time
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from dphmm.errors import require
from dphmm.release.engine import Answered, Ask
from dphmm.release.phases import listening
from dphmm.service.committing import GroupCommit
from dphmm.service.settings import ServiceSettings

__all__ = ["ENDPOINTS", "TracedCommit", "Tracing", "find_exporters", "open_tracing"]

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
SECOND = 10**9
COARSE = 0.05
"""Seconds: what stands for the tick where that is off."""

PATIENCE = 2.0
"""Seconds for the last spans to leave when the service stops."""


@dataclass
class Trace:
    """One request on its way: when it came, and when its phases began and ended."""

    wall: int = field(default_factory=time.time_ns)
    clock: float = field(default_factory=time.monotonic)
    phases: list[tuple[str, float, float]] = field(default_factory=list)


_TRACE: ContextVar[Trace | None] = ContextVar("trace", default=None)


class Tracing:
    """Sends spans somewhere.

    Args:
        exporter: Where they go.
        tick: Seconds of which times are multiples.
    """

    def __init__(self, exporter: Any, tick: float) -> None:
        sdk = require("opentelemetry.sdk.trace", "otel")
        batches = require("opentelemetry.sdk.trace.export", "otel")
        resources = require("opentelemetry.sdk.resources", "otel")
        named = {"service.name": os.environ.get("OTEL_SERVICE_NAME", "dphmm")}
        # Not the whole process's: what other libraries tell there names paths, and so people.
        self._provider = sdk.TracerProvider(resource=resources.Resource(named))
        self._provider.add_span_processor(batches.BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("dphmm")
        self._context = require("opentelemetry.trace", "otel").set_span_in_context
        self._tick = tick or COARSE

    def begin(self) -> None:
        """A request came."""
        _TRACE.set(Trace())

    def end(self, request: str, method: str, route: str, status: int) -> None:
        """It was answered; what is told of it is what its log line says."""
        trace = _TRACE.get()
        if trace is None:
            return
        facts = {
            "dphmm.request": request,
            "http.request.method": method,
            "http.route": route,
            "http.response.status_code": status,
        }
        began, ended = self._span(trace, trace.clock, time.monotonic())
        name = f"{method} {route}"
        span = self._tracer.start_span(name, attributes=facts, start_time=began)
        inside = self._context(span)
        for phase, start, stop in trace.phases:
            first, last = self._span(trace, start, stop)
            part = self._tracer.start_span(phase, context=inside, start_time=first)
            part.end(min(last, ended))
        span.end(ended)

    def _span(self, trace: Trace, start: float, stop: float) -> tuple[int, int]:
        """Two instants as whole ticks after a request came, the first earlier, the second later."""
        ticks = math.floor((start - trace.clock) / self._tick)
        later = max(ticks + 1, math.ceil((stop - trace.clock) / self._tick))
        size = round(self._tick * SECOND)
        came = trace.wall // size * size
        return came + ticks * size, came + later * size

    def close(self) -> None:
        """Let the last spans leave, if they do so soon."""
        last = threading.Thread(target=self._provider.shutdown, daemon=True)
        last.start()
        last.join(PATIENCE)


class TracedCommit(GroupCommit):
    """Commits whose phases are told to the traces of the requests that share one."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._heard: dict[int, list[tuple[str, float, float]]] = {}

    async def release(self, ask: Ask) -> Answered:
        """What came of an ask, once it is durable."""
        try:
            return await super().release(ask)
        finally:
            heard, trace = self._heard.pop(id(ask), []), _TRACE.get()
            if trace is not None:
                trace.phases += heard

    def _release(self, asks: list[Ask]) -> Any:
        began: list[tuple[str, float]] = []
        with listening(lambda phase: began.append((phase, time.monotonic()))):
            try:
                return super()._release(asks)
            finally:
                ends = [*(start for _, start in began[1:]), time.monotonic()]
                phases = [(name, at, end) for (name, at), end in zip(began, ends, strict=True)]
                self._heard.update((id(ask), phases) for ask in asks)


def find_exporters() -> Any:
    """What sends traces, if the environment says where; the extra must be there then."""
    if not any(os.environ.get(name) for name in ENDPOINTS):
        return None
    require("opentelemetry.sdk.trace", "otel")
    return require("opentelemetry.exporter.otlp.proto.http.trace_exporter", "otel")


def open_tracing(settings: ServiceSettings) -> Tracing | None:
    """Where the environment says that traces go; None where it says nothing."""
    exporters = find_exporters()
    if exporters is None:
        return None
    return Tracing(exporters.OTLPSpanExporter(timeout=PATIENCE), settings.tick)

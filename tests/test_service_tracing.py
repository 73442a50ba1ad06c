"""Traces: the phases of a request, in whole ticks, and nothing about anybody."""

from __future__ import annotations

import sys

import pytest

from dphmm import MissingExtraError
from dphmm.books import find_problems
from dphmm.release import phases
from dphmm.service import ServiceSettings
from dphmm.service.tracing import ENDPOINTS, Tracing, open_tracing
from tests.crash import paper_scenario
from tests.service_worlds import World

pytest.importorskip("opentelemetry.sdk")
TICK = 0.02
ATTRIBUTES = {
    "dphmm.request",
    "http.request.method",
    "http.route",
    "http.response.status_code",
}


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    tracing = Tracing(exporter, TICK)
    chosen = ServiceSettings(tick=TICK, rate=0, wrong_keys=0, key_memory=0)
    world = World(tmp_path_factory.mktemp("traced"), chosen, tracing=tracing)

    def spans():
        tracing._provider.force_flush()
        found = exporter.get_finished_spans()
        exporter.clear()
        return found

    spans()
    yield world, spans
    assert find_problems(world.store) == []
    world.close()
    tracing.close()


def test_a_release_has_its_phases(traced):
    world, spans = traced
    answer = world.release(1, "s5")
    found = {span.name: span for span in spans()}
    root = found.pop("POST /v1/scenarios/{digest}/people/{person}/releases")
    assert {"admission", "draw", "commit"} == set(found)
    assert all(span.parent.span_id == root.context.span_id for span in found.values())
    assert set(root.attributes) == ATTRIBUTES
    assert root.attributes["dphmm.request"] == answer.headers["x-request-id"]
    assert all(not span.attributes for span in found.values())
    for span in (root, *found.values()):
        began, took = span.start_time, span.end_time - span.start_time
        assert began % round(TICK * 1e9) == 0
        assert took > 0
        assert took % round(TICK * 1e9) == 0
    world.release(1, 4)
    assert "draw" not in {span.name for span in spans()}, "what is repeated is not drawn"


def test_a_request_that_is_refused_is_told_too(traced):
    world, spans = traced
    world.release(2, "no such state")
    world.ask("GET", "/v1/people", key="wrong")
    statuses = [span.attributes["http.response.status_code"] for span in spans()]
    assert statuses == [422, 401]


def test_no_span_names_anybody(traced):
    world, spans = traced
    person = world.person.replace("anna", "zq-somebody")
    world.ask("PUT", person, {"budget": 3})
    world.ask("POST", person + "/releases", {"time": 1, "state": "s5"})
    world.ask("POST", person + "/releases", {"time": "zq-time", "state": "zq-state"})
    world.ask("GET", person + "/privacy")
    world.ask("DELETE", "/v1/people/zq-somebody")
    world.ask("POST", "/v1/scenarios", paper_scenario.body())
    text = "".join(span.to_json() for span in spans())
    assert text.count("http.route") >= 6
    assert "zq-" not in text
    assert "red" not in text.replace("dphmm.request", "").replace("required", "")
    assert not any(key in text for key in world.keys.values())
    assert world.scenario not in text


def test_phases_are_heard_inside_only():
    heard = []
    phases.enter("draw")
    with phases.listening(heard.append):
        phases.enter("commit")
    phases.enter("draw")
    assert heard == ["commit"]


def test_traces_go_where_the_environment_says(monkeypatch):
    for name in ENDPOINTS:
        monkeypatch.delenv(name, raising=False)
    assert open_tracing(ServiceSettings()) is None
    monkeypatch.setenv(ENDPOINTS[0], "http://127.0.0.1:9")
    opened = open_tracing(ServiceSettings())
    opened.begin()
    opened.end("id", "GET", "/ready", 200)
    opened.close()  # nobody listens there; it does not wait for long
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'dphmm\[otel\]'"):
        open_tracing(ServiceSettings())

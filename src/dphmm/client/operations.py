"""What can be asked of a service: each operation as steps without a network."""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from dphmm.client.results import (
    Answer,
    Erased,
    LedgerEntry,
    LedgerFacts,
    Person,
    ScenarioFacts,
    Statement,
    Track,
    build,
)
from dphmm.client.talking import Call, Page, Pages, Reply, Steps
from dphmm.cost.limit import Limit
from dphmm.errors import ArgumentError, DataError, ServiceError, check_name
from dphmm.geometry.exact import Exact, as_epsilon, whole
from dphmm.scenario.packing import pack
from dphmm.scenario.scenario import Scenario
from dphmm.scenario.settings import Settings
from dphmm.tables.files import as_path, read_text

Item = TypeVar("Item")
Place = int | str | Iterable[float]
DIGEST = 64


def add_scenario(scenario: Scenario | str | Path) -> Steps[ScenarioFacts]:
    """Keep a scenario at the service; the same one again changes nothing.

    Args:
        scenario: The scenario, or the TOML file of one beside the files that it names.
    """
    reply = yield send("POST", "/v1/scenarios", _scenario_body(scenario))
    return reply.read(ScenarioFacts)


def scenarios() -> Steps[tuple[str, ...]]:
    """The ids of your scenarios."""
    reply = yield Call("GET", "/v1/scenarios")
    return listed(reply, "scenarios", str)


def scenario(scenario: ScenarioFacts | str) -> Steps[ScenarioFacts]:
    """What a scenario is called and what a release costs.

    Args:
        scenario: Its id, or what `add_scenario` gave.
    """
    reply = yield Call("GET", scenario_path(scenario))
    return reply.read(ScenarioFacts)


def begin(
    scenario: ScenarioFacts | str, person: str, *, budget: Exact | Limit | None = None
) -> Steps[Person]:
    """Make a person known; doing it again changes nothing.

    Args:
        scenario: The scenario or its id.
        person: Their name.
        budget: What may be spent on them, such as 5 or "24 per 1 day, 100 in all"; set once.
    """
    body = {} if budget is None else {"budget": _limit(budget)}
    reply = yield send("PUT", _person_path(scenario, person), body)
    return reply.read(Person)


def release(
    scenario: ScenarioFacts | str,
    person: str,
    time: int | str,
    state: Place,
    *,
    epsilon: Exact | None = None,
) -> Steps[Answer]:
    """The answer at a time. Asked again it is the same answer, so it is safe to ask again.

    Args:
        scenario: The scenario or its id.
        person: Whose state it is; they were made known before.
        time: As the scenario's trips have it.
        state: The number or label of a state, or two coordinates. Secret.
        epsilon: The price, if not the scenario's.
    """
    row = row_of(time, state, epsilon)
    reply = yield send("POST", _person_path(scenario, person) + "/releases", row)
    return reply.read(Answer)


def releases(
    scenario: ScenarioFacts | str, person: str, *, after: int | str | None = None
) -> Pages[Answer]:
    """The answers and estimates of a person in the order of time.

    Args:
        scenario: The scenario or its id.
        person: Their name.
        after: Only those after this time.
    """
    path = _person_path(scenario, person) + "/releases"
    given = None if after is None else str(_time(after, "after"))
    yield from read_on(path, "releases", Answer, given)


def track(scenario: ScenarioFacts | str, person: str) -> Steps[Track]:
    """The best estimate of every step, given all answers until now.

    Args:
        scenario: The scenario or its id.
        person: Their name.
    """
    reply = yield Call("GET", _person_path(scenario, person) + "/track")
    return reply.read(Track)


def privacy(scenario: ScenarioFacts | str, person: str) -> Steps[Statement]:
    """What the answers to this question cost, in words and numbers, and for whom it holds.

    Args:
        scenario: The scenario or its id.
        person: Their name.
    """
    reply = yield Call("GET", _person_path(scenario, person) + "/privacy")
    return reply.read(Statement)


def people(*, after: str = "") -> Pages[str]:
    """The names of your people, in order.

    Args:
        after: Only those after this name.
    """
    if not isinstance(after, str):
        raise ArgumentError(f"after must be a name, got {type(after).__name__}")
    yield from read_on("/v1/people", "people", str, after or None)


def ledger(person: str) -> Steps[LedgerFacts]:
    """What was spent on a person, on every question, with all entries.

    Args:
        person: Their name.
    """
    path, later = _of_person(person) + "/ledger", list[LedgerEntry]()
    reply = yield Call("GET", path)
    facts = reply.facts()
    first = build(LedgerFacts, facts)
    while isinstance(facts, dict) and facts.get("next") is not None:
        reply = yield Call("GET", path, {"after": str(facts["next"])})
        facts = reply.facts()
        later += build(LedgerFacts, facts).entries
    return replace(build(LedgerFacts, facts), entries=(*first.entries, *later))


def entries(person: str) -> Pages[LedgerEntry]:
    """The entries of a person's ledger in the order in which they were written.

    Args:
        person: Their name.
    """
    yield from read_on(_of_person(person) + "/ledger", "entries", LedgerEntry, None)


def erase(person: str) -> Steps[Erased]:
    """Erase a person; the slots answered, the epsilon spent and the budget are kept.

    It is not sent a second time by itself, because then nobody could tell who was erased.

    Args:
        person: Their name.
    """
    reply = yield Call("DELETE", _of_person(person), again=False)
    return reply.read(Erased)


# Parts


def scenario_id(scenario: Scenario | str | Path) -> str:
    """What a service would call a scenario, without asking one."""
    body = _scenario_body(scenario)
    return pack(body["scenario"], body["states"], body["model"], body.get("edges"))[0]


def row_of(time: int | str, state: Place, epsilon: Exact | None) -> dict[str, Any]:
    """The body of a release."""
    row: dict[str, Any] = {"time": _time(time, "time"), "state": _place(state)}
    if epsilon is not None:
        row["epsilon"] = price(epsilon)
    return row


def price(epsilon: Exact) -> str:
    """A price as the service reads it, exactly."""
    return str(as_epsilon(epsilon))


def scenario_path(scenario: ScenarioFacts | str) -> str:
    """The path of a scenario."""
    digest = scenario.id if isinstance(scenario, ScenarioFacts) else scenario
    if not isinstance(digest, str) or len(digest) != DIGEST or not digest.isalnum():
        raise ArgumentError("scenario must be the id of one at the service, 64 letters and digits")
    return f"/v1/scenarios/{digest}"


def send(
    method: str, path: str, body: Any, query: dict[str, str] | None = None, again: bool = True
) -> Call:
    """A call with a body."""
    return Call(method, path, query or {}, json.dumps(body).encode(), again=again)


def read_on(path: str, name: str, kind: type[Item], after: str | None) -> Pages[Item]:
    """Page after page, each asked for when the one before has been read."""
    while True:
        reply = yield Call("GET", path, {} if after is None else {"after": after})
        facts = reply.facts()
        yield Page(_items(facts, name, kind))
        following = facts.get("next")
        if following is None:
            return
        if str(following) == after:
            raise ServiceError("the service must go on with its pages, got the same one again")
        after = str(following)


def listed(reply: Reply, name: str, kind: type[Item]) -> tuple[Item, ...]:
    """The things of one kind in an answer."""
    return _items(reply.facts(), name, kind)


def _items(facts: Any, name: str, kind: type[Item]) -> tuple[Item, ...]:
    given = facts.get(name) if isinstance(facts, dict) else None
    return tuple(build(kind, one) for one in (given if isinstance(given, list) else [None]))


def _person_path(scenario: ScenarioFacts | str, person: str) -> str:
    return f"{scenario_path(scenario)}/people/{quote(check_name(person, 'person'), safe='')}"


def _of_person(person: str) -> str:
    return f"/v1/people/{quote(check_name(person, 'person'), safe='')}"


def _time(time: Any, argument: str) -> int | str:
    if isinstance(time, str) and time:
        return time
    if isinstance(time, datetime):
        return time.isoformat()
    if isinstance(time, str):
        raise ArgumentError(f"{argument} must be a whole number or a date, got an empty text")
    return whole(time, argument, None)


def _place(state: Any) -> int | str | list[float]:
    """A true state as JSON; what is wrong with it is said without it."""
    if isinstance(state, str):
        return state
    try:
        if not isinstance(state, Iterable):
            return whole(state, "state")
        pair = [float(number) for number in state]
    except (ArgumentError, TypeError, ValueError, OverflowError):
        pair = []
    if len(pair) != 2:
        raise ArgumentError("state must be a number or label of a state, or two coordinates")
    return pair


def _limit(budget: Exact | Limit) -> str:
    limit = budget if isinstance(budget, Limit) else Limit.read(budget, "budget")
    return str(limit)


def _scenario_body(scenario: Scenario | str | Path) -> dict[str, Any]:
    if isinstance(scenario, Scenario):
        with tempfile.TemporaryDirectory(prefix="dphmm-scenario-") as folder:
            path = Path(folder) / "scenario.toml"
            scenario.save(path)
            return _scenario_body(path)
    if not isinstance(scenario, (str, Path)):
        raise ArgumentError(
            f"scenario must be a Scenario or its file, got {type(scenario).__name__}"
        )
    path = as_path(scenario)
    settings, folder_of = Settings.read(path), path.parent
    model = folder_of / settings.model
    try:
        content = model.read_bytes()
    except OSError as fault:
        raise DataError(f"{model.name}: model must be readable, got: {fault.strerror}") from None
    body = {
        "scenario": read_text(path),
        "states": read_text(folder_of / settings.states),
        "model": base64.b64encode(content).decode(),
    }
    if settings.policy.edges is not None:
        body["edges"] = read_text(folder_of / settings.policy.edges)
    return body

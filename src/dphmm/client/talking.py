"""Requests and answers without a network, and when a request is sent again.

What a client does is a generator of steps: it yields a `Call` and gets its `Reply`, a `Pause` and
gets nothing, or a `Page` of things for whoever reads on. Two small loops, one that blocks and one
that awaits, carry the steps out; no rule stands in them.
"""

from __future__ import annotations

import json
import random
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Generic, TypeAlias, TypeVar

from dphmm.client.results import build
from dphmm.errors import ArgumentError, BudgetError, DphmmError, NotFoundError, ServiceError

__all__ = [
    "JSON",
    "Call",
    "Page",
    "Pages",
    "Pause",
    "Reply",
    "Step",
    "Steps",
    "Talk",
    "fault_of",
    "persist",
    "wait_for",
]

JSON = "application/json"
LATER = (408, 429, 502, 503, 504)
"""Statuses that say: not now."""

BEFORE = (429,)
"""Those that are said before anything was done."""

SHORTEST = 0.1
LONGEST = 5.0
"""Seconds between two attempts, doubled each time, of which a random half is waited for."""

MOST_ASKED_FOR = 60.0
"""Seconds that a service may ask a client to wait."""

Thing = TypeVar("Thing")
Item = TypeVar("Item")


@dataclass(frozen=True)
class Call:
    """One request; its body may hold true states and is in no `repr`.

    Args:
        method: The method of HTTP.
        path: The path, quoted.
        query: What comes after the question mark.
        content: The body.
        kind: The body's media type.
        again: Whether it may be sent twice: whatever it did the first time is found again.
    """

    method: str
    path: str = field(repr=False)
    query: Mapping[str, str] = field(default_factory=dict, repr=False)
    content: bytes | None = field(default=None, repr=False)
    kind: str = JSON
    again: bool = True


@dataclass(frozen=True)
class Reply:
    """What came back, or that nothing did.

    Args:
        status: The status of HTTP; 0 if there was no answer.
        content: The body.
        headers: Its headers, by names in small letters.
        why: What kept the answer from coming.
        sent: Whether the request may have reached the service.
    """

    status: int
    content: bytes = field(default=b"", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    why: str = ""
    sent: bool = True

    def read(self, kind: type[Thing]) -> Thing:
        """The answer as an object, or the error that it is."""
        return build(kind, self.facts())

    def facts(self) -> Any:
        """The answer as JSON has it, or the error that it is."""
        self.check()
        return self._json()

    def check(self) -> None:
        """Raise the error that the answer is, if it is one."""
        if 200 <= self.status < 300:
            return
        if not self.status:
            raise ServiceError(
                f"the service could not be asked ({self.why}); nothing is lost, ask again with "
                "the same time"
            )
        try:
            facts = self._json()
        except ServiceError:
            facts = None
        raise fault_of(self.status, facts)

    def _json(self) -> Any:
        try:
            return json.loads(self.content)
        except (ValueError, RecursionError):
            raise ServiceError(
                f"the service must answer in JSON, got something else with status {self.status}",
                self.status,
            ) from None


@dataclass(frozen=True)
class Pause:
    """Some seconds in which nothing happens."""

    seconds: float


@dataclass(frozen=True)
class Page(Generic[Item]):
    """Some of the things that somebody reads one after the other."""

    items: tuple[Item, ...]


Step: TypeAlias = Call | Pause | Page[Any]
Steps: TypeAlias = Generator[Call | Pause, Any, Thing]
"""What ends with a result."""

Pages: TypeAlias = Generator[Call | Pause | Page[Item], Any, None]
"""What gives one thing after the other."""


class Talk(Generic[Thing]):
    """A conversation: a step at a time, for whoever carries them out.

    Args:
        steps: What is to be done.
        retries: How often a call may be sent again.
    """

    def __init__(self, steps: Generator[Step, Any, Thing], retries: int) -> None:
        self._steps = persist(steps, retries)
        self._result: list[Thing] = []

    def next(self, given: Reply | None = None) -> Step | None:
        """The step after one that gave this; None when all is done."""
        try:
            return self._steps.send(given)
        except StopIteration as done:
            self._result.append(done.value)
            return None

    @property
    def result(self) -> Thing:
        """What came of it."""
        return self._result[0]


def fault_of(status: int, facts: Any) -> DphmmError:
    """The error of a status and of the body that came with it."""
    said = facts if isinstance(facts, dict) else {}
    problem = said.get("problem")
    if not isinstance(problem, str):
        return ServiceError(f"the service must say what is wrong, got status {status}", status)
    if status == 409 and "remaining" in said:
        try:
            return BudgetError(
                **{name: Fraction(said[name]) for name in ("spent", "requested", "remaining")},
                window=said.get("window"),
                opens=said.get("slot"),
                when=said.get("time"),
            )
        except (KeyError, TypeError, ValueError, ArithmeticError):
            return ServiceError(problem, status)
    if status == 404:
        return NotFoundError(problem)
    if status in (400, 405, 413, 415, 422):
        return ArgumentError(problem)
    return ServiceError(problem, status)


def wait_for(attempt: int, asked: str | None) -> float:
    """Seconds until the next attempt: longer each time, and no shorter than asked for."""
    longest = min(LONGEST, SHORTEST * 2.0**attempt)
    wait = random.uniform(longest / 2, longest)
    if asked is not None and asked.strip().isdecimal():
        wait = max(wait, min(float(asked), MOST_ASKED_FOR))
    return wait


def persist(steps: Generator[Step, Any, Thing], retries: int) -> Generator[Step, Any, Thing]:
    """The same steps, in which a call that may be sent again is, if there was no good answer."""
    given: Any = None
    while True:
        try:
            step = steps.send(given)
        except StopIteration as done:
            result: Thing = done.value
            return result
        given = (yield from _persist(step, retries)) if isinstance(step, Call) else (yield step)


def _persist(call: Call, retries: int) -> Steps[Reply]:
    for attempt in range(retries + 1):
        reply: Reply = yield call
        if reply.status and reply.status not in LATER:
            break
        harmless = call.again or not reply.sent or reply.status in BEFORE
        if attempt == retries or not harmless:
            break
        yield Pause(wait_for(attempt, reply.headers.get("retry-after")))
    return reply

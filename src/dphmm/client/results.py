"""What a service said, as frozen objects; every field may be shown to anybody but a made key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from fractions import Fraction
from functools import cache
from math import inf
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from dphmm.errors import DphmmError, ServiceError

__all__ = [
    "Act",
    "Answer",
    "Erased",
    "KeyFacts",
    "LedgerEntry",
    "LedgerFacts",
    "MadeKey",
    "Near",
    "PathCosts",
    "Person",
    "ScenarioFacts",
    "Statement",
    "Tells",
    "Track",
    "Verdict",
    "build",
]

Thing = TypeVar("Thing")
Time = int | str
Cost = Fraction | float
"""A fraction, or infinity."""


@dataclass(frozen=True)
class ScenarioFacts:
    """What a scenario is called at the service and what a release costs."""

    id: str
    name: str
    states: int
    dimension: int
    epsilon: Fraction
    limit: str | None
    speaks: str


@dataclass(frozen=True)
class Person:
    """Where a person stands: the last time that was answered or passed, if there is one."""

    person: str
    scenario: str
    time: Time | None
    slot: int | None


@dataclass(frozen=True)
class Answer:
    """An answer; `answer` and `lattice` are None where the schedule is silent."""

    time: Time
    slot: int
    silent: bool
    answer: tuple[float, ...] | None
    lattice: tuple[int, ...] | None
    estimate: tuple[float, ...]
    epsilon: Fraction
    statement: str
    repeated: bool


@dataclass(frozen=True)
class Verdict:
    """What came of one row of many: an answer, or the error that the row alone would have raised.

    Args:
        person: Whose row it is.
        status: 200 for an answer, 0 where the service could not be asked, else its status.
        answer: The answer, if there is one.
        error: What was wrong, if something was.
    """

    person: str
    status: int
    answer: Answer | None = None
    error: DphmmError | None = None

    def result(self) -> Answer:
        """The answer, or the error raised."""
        if self.answer is None:
            raise self.error or ServiceError("the service gave no answer for the row")
        return self.answer


@dataclass(frozen=True)
class Track:
    """The estimate at every step given all answers."""

    times: tuple[Time, ...]
    slots: tuple[int, ...]
    track: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class PathCosts:
    """What answers cost between two paths, under a condition; infinite without limit."""

    condition: str | None
    event: Cost | None
    window: Cost | None
    sequence: Cost | None


@dataclass(frozen=True)
class Near:
    """How near a reader comes in a part of the day."""

    when: str
    radius: float


@dataclass(frozen=True)
class Tells:
    """What all answers together tell, under the statement's condition; see docs/service.md."""

    linked: Cost
    linked_delta: Cost | None
    delta: Fraction
    moment: Cost | None
    realised: Cost
    near: tuple[Near, ...]
    near_before: float | None
    home: float | None
    unit: str
    zone: str


@dataclass(frozen=True)
class Statement(PathCosts):
    """What the answers to one question cost, under a condition; `text` says it in words."""

    since: int | None
    releases: int
    spent: Fraction
    before: Fraction
    besides: Fraction | None
    text: str
    linked: Cost | None
    worst_pair: Cost | None
    width: int
    windows: Mapping[str, str]
    adaptive: bool
    own: PathCosts | None
    tells: Tells | None


@dataclass(frozen=True)
class LedgerEntry:
    """One thing that was said."""

    slot: int
    query: str
    epsilon: Fraction
    constrained: Cost


@dataclass(frozen=True)
class LedgerFacts:
    """What was spent on a person, on every question."""

    person: str
    spent: Fraction
    budget: str | None
    remaining: Fraction | None
    entries: tuple[LedgerEntry, ...]


@dataclass(frozen=True)
class Erased:
    """What stays of an erased person."""

    spent: Fraction
    slots: Mapping[str, int]


@dataclass(frozen=True)
class KeyFacts:
    """Whose a key is and what it opens; not the key."""

    id: str
    client: str
    scopes: tuple[str, ...]
    created: str
    expires: str | None
    open: bool


@dataclass(frozen=True)
class MadeKey(KeyFacts):
    """A key, the only time that it can be read; its `repr` leaves it out."""

    key: str = field(repr=False)


@dataclass(frozen=True)
class Act:
    """Something that was done, by whom, not whom about."""

    number: int
    time: str
    who: str
    client: str
    act: str
    chain: str


def build(kind: type[Thing], facts: Any) -> Thing:
    """An object of some kind from JSON; fields that this version does not know are left out."""
    try:
        thing: Thing = _made(kind, facts)
    except (KeyError, TypeError, ValueError, ArithmeticError, AttributeError):
        raise ServiceError(
            "the service must answer as this version describes it, got something else"
        ) from None
    return thing


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _made(kind: Any, given: Any) -> Any:
    options = get_args(kind)
    if get_origin(kind) is UnionType:
        return _one_of(options, given)
    if get_origin(kind) is tuple:
        return tuple(_made(options[0], one) for one in given)
    if get_origin(kind) is Mapping:
        return {str(name): _made(options[1], one) for name, one in given.items()}
    if kind is Fraction:
        return Fraction(str(given))
    if kind is float:
        return float(given)
    if kind in (int, bool, str):
        if type(given) is not kind:
            raise TypeError(kind)
        return given
    named = {one.name: one for one in fields(kind)}
    hints = _hints(kind)
    return kind(
        **{
            name: _made(hints[name], given[name])
            for name, one in named.items()
            if name in given or one.default is MISSING
        }
    )


def _one_of(options: tuple[Any, ...], given: Any) -> Any:
    if given is None and NoneType in options:
        return None
    if Fraction in options:
        return inf if given == "inf" else Fraction(str(given))
    rest = [option for option in options if option is not NoneType]
    if len(rest) > 1:  # a time
        return _made(type(given) if type(given) in rest else rest[0], given)
    return _made(rest[0], given)

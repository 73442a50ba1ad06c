"""What the page may send: the fields of every request, each with its type and its bounds.

The page is not trusted, since any program on the machine can write a request by hand. What
passes here is small enough to compute with; what does not is an `ArgumentError` that names
the field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
)
from pydantic_core import from_json

from dphmm.errors import ArgumentError

__all__ = ["read_body", "read_request"]

MAX_STATES = 10_000
MAX_EDGES = 100_000
MAX_TEXT = 200
MAX_STEPS = 500
MAX_PEOPLE = 6


def _check_state(state: int, info: ValidationInfo) -> int:
    n_states: Any = info.context
    if not 0 <= state < n_states:
        raise ValueError(f"must name states 0..{n_states - 1}")
    return state


def _check_different(states: list[int]) -> list[int]:
    if len(set(states)) != len(states):
        raise ValueError("must name each state once")
    return states


def _sort_pairs(pairs: list[list[int]]) -> list[list[int]]:
    """Each pair once, the lower state first."""
    return [list(pair) for pair in sorted({(min(pair), max(pair)) for pair in pairs})]


State: TypeAlias = Annotated[int, AfterValidator(_check_state)]
Pair: TypeAlias = Annotated[
    list[State], Field(min_length=2, max_length=2), AfterValidator(_check_different)
]
Pairs: TypeAlias = Annotated[list[Pair], Field(max_length=MAX_EDGES), AfterValidator(_sort_pairs)]
Text: TypeAlias = Annotated[str, Field(max_length=MAX_TEXT)]
Texts: TypeAlias = Annotated[list[Text], Field(max_length=MAX_STEPS)]
Shares: TypeAlias = Annotated[dict[Text, float], Field(max_length=MAX_STATES)]
Key: TypeAlias = Literal[
    "epsilon", "limit", "start", "mechanism", "shape", "gamma", "repair", "full_rank", "delta",
    "estimate", "policy.complete", "policy.category", "policy.distance", "policy.one_step",
    "policy.edges", "when", "when.every", "when.phase", "when.hours", "when.error", "when.apart",
    "when.gaps",
]  # fmt: skip
"""What of a scenario's file the page may change; it names no other files."""


class Fields(BaseModel):
    """A JSON object; fields that it does not have are passed over."""

    model_config = ConfigDict(strict=True, frozen=True)


class Open(Fields):
    """Which scenario to open: the one the studio was started with, or an example of some size."""

    name: Literal["paper", "city", "grid", "clinic", "own", "file"]
    file: Text | None = None
    """Which of the files that the start page lists."""
    size: int = Field(default=24, ge=12, le=40)
    rows: int = Field(default=20, ge=1, le=1000)
    columns: int = Field(default=20, ge=1, le=1000)
    fingerprint: Text | None = None
    """Of the scenario that a link was made on."""


class Dropped(Fields):
    """A file that was dropped on the page: its name and what is in it."""

    name: Text
    text: Annotated[str, Field(max_length=2**20)]


class Job(Fields):
    """The name that the page gave to a request, to ask how far it is."""

    job: Text


class Named(Fields):
    """What any request may have: a name."""

    job: Text | None = None


class World(Fields):
    """What every other request has: the name under which a scenario was opened."""

    world: Text


class Draft(Fields):
    """What was changed in an opened scenario: keys of its file, and its own edges."""

    changes: dict[Key, bool | int | Text | Texts | Shares | None] = {}
    edges: Pairs | None = None
    """All edges of the policy's file, if any was drawn or taken away."""


class Effects(Draft):
    """A draft at a step without releases, or the last before it from which on nothing changes."""

    step: int = Field(default=1, ge=1, le=MAX_STEPS)


class Repairs(Effects):
    """The same, and the exposed state whose partners are compared."""

    state: State | None = None


class Linked(Draft):
    """Two states that a policy may link."""

    states: Pair


class Timeline(Draft):
    """How far to look ahead."""

    horizon: int = Field(default=10, ge=1, le=60)


class Between(Fields):
    """Two versions of a scenario, at a step."""

    step: int = Field(default=1, ge=1, le=MAX_STEPS)
    runs: Annotated[list[Draft], Field(min_length=2, max_length=2)]


class Tradeoff(Effects):
    """A curve along one setting; without values, which ones there are."""

    axis: Literal["radius", "epsilon", "interval", "budget"] = "radius"
    values: Annotated[list[Text], Field(max_length=64)] = []


class Walk(Fields):
    """Simulated people, and the one or two ways in which their walks are released."""

    seed: int = Field(default=1, ge=0, lt=2**32)
    """Of the first person; the others have the next ones."""
    length: int = Field(default=48, ge=1, le=600)
    people: int = Field(default=1, ge=1, le=MAX_PEOPLE)
    person: int = Field(default=0, ge=0, lt=MAX_PEOPLE)
    """Whose belief is asked for, from 0; of the others only what is drawn."""
    runs: Annotated[list[Draft], Field(min_length=1, max_length=2)] = [Draft()]


class Save(Draft):
    """A draft to write down, in the file it was opened from or in a new one beside it."""

    name: Annotated[str, Field(pattern=r"^[\w][\w .\-]{0,80}\.toml$")] | None = None


Asked = TypeVar("Asked", bound=Fields)


def read_body(body: bytes) -> dict[str, Any]:
    """The JSON object of a body; NaN, infinities and absurd nesting are refused."""
    try:
        content = from_json(body, allow_inf_nan=False)
    except ValueError:
        raise ArgumentError("body must be a JSON object, got something else") from None
    if not isinstance(content, dict):
        raise ArgumentError(f"body must be an object, got {_show(content)}")
    return content


def read_request(kind: type[Asked], content: Mapping[str, Any], n_states: int = 0) -> Asked:
    """The fields of a request about so many states."""
    try:
        return kind.model_validate(content, context=n_states)
    except ValidationError as fault:
        first = fault.errors(include_url=False)[0]
        field = next((part for part in reversed(first["loc"]) if isinstance(part, str)), "body")
        says = re.sub("^(.* should|Value error,)", "", first["msg"]).removeprefix(" must")
        says = {"missing": "be given", "model_type": "be an object"}.get(first["type"], says)
        says = says.partition(" after")[0].strip()
        raise ArgumentError(f"{field} must {says}, got {_show(first['input'])}") from None


def _show(value: object) -> str:
    """A value as it may stand in a message: short, or by its kind."""
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    shown = repr(value)
    return shown if len(shown) <= 40 else f"{shown[:37]}..."

"""What the page may send: the fields of every request, each with its type and its bounds.

The page is not trusted, since any program on the machine can write a request by hand. What
passes here is small enough to compute with; what does not is an `ArgumentError` that names
the field.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    ValidationInfo,
)
from pydantic_core import from_json

from dphmm.errors import ArgumentError

__all__ = ["read_body", "read_request"]

MAX_STATES = 10_000
MAX_EDGES = 100_000
MAX_CLIQUES = 5_000
MAX_TEXT = 200

# No exponent: "1e999999999" is nine digits to write and a gigabyte to compute with.
_NUMBER = re.compile(r"-?[0-9]{1,9}(\.[0-9]{1,9})?|[0-9]{1,9}/0{0,8}[1-9][0-9]{0,8}")


def _number(low: Fraction, high: Fraction) -> PlainValidator:
    """An exact number within bounds, written as a text such as "0.5" or "1/3"."""

    def read(value: object) -> Fraction:
        text = str(value) if type(value) in (int, str) else ""
        number = Fraction(text) if _NUMBER.fullmatch(text) else None
        if number is None or not low <= number <= high:
            raise ValueError(f'must be a number in {low}..{high} in a text, such as "0.5"')
        return number

    return PlainValidator(read)


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


def _check_members(cliques: list[list[int]]) -> list[list[int]]:
    if sum(map(len, cliques)) > MAX_EDGES:
        raise ValueError(f"must have at most {MAX_EDGES} members")
    return cliques


def _check_labels(labels: list[str], info: ValidationInfo) -> list[str]:
    if len(labels) != info.context:
        raise ValueError(f"must have {info.context} labels")
    return labels


State: TypeAlias = Annotated[int, AfterValidator(_check_state)]
States: TypeAlias = Annotated[
    list[State], Field(max_length=MAX_STATES), AfterValidator(_check_different)
]
Pair: TypeAlias = Annotated[
    list[State], Field(min_length=2, max_length=2), AfterValidator(_check_different)
]
Pairs: TypeAlias = Annotated[list[Pair], Field(max_length=MAX_EDGES), AfterValidator(_sort_pairs)]
Text: TypeAlias = Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]
Epsilon: TypeAlias = Annotated[Fraction, _number(Fraction(1, 1000), Fraction(1000))]
Limit: TypeAlias = Annotated[Fraction, _number(Fraction(1, 1000), Fraction(10**6))]
Radius: TypeAlias = Annotated[Fraction, _number(Fraction(0), Fraction(10**9))]


class Fields(BaseModel):
    """A JSON object; fields that it does not have are passed over."""

    model_config = ConfigDict(strict=True, frozen=True)


class Open(Fields):
    """Which of the examples to open, and how large."""

    name: Literal["paper", "city", "grid", "clinic", "own"]
    size: int = Field(default=24, ge=12, le=40)
    rows: int = Field(default=20, ge=1, le=1000)
    columns: int = Field(default=20, ge=1, le=1000)


Noise: TypeAlias = Literal["knorm", "staircase", "laplace"]


class World(Fields):
    """What every other request has: the name under which a scenario was opened."""

    world: Text


class DrawnPolicy(Fields):
    """A base policy with the edges and cliques that were drawn, less those taken away."""

    base: Literal["none", "complete", "categories", "distance", "one_step"] = "none"
    radius: Radius = Fraction(0)
    categories: Annotated[list[Text], AfterValidator(_check_labels)] | None = None
    links: Pairs = []
    unlinks: Pairs = []
    cliques: Annotated[
        list[States], Field(max_length=MAX_CLIQUES), AfterValidator(_check_members)
    ] = []


class Moment(Fields):
    """What is known: nothing, a set of states, or a start; and how many steps ago."""

    states: Annotated[States, Field(min_length=1)] | None = None
    start: State | None = None
    steps: int = Field(default=0, ge=0, le=500)


class Effects(Fields):
    """A policy at a moment."""

    policy: DrawnPolicy = DrawnPolicy()
    moment: Moment = Moment()
    epsilon: Epsilon = Fraction(1)
    mechanism: Noise = "knorm"


class Repairs(Effects):
    """The same, and the exposed state whose partners are compared."""

    state: State | None = None


class Linked(Fields):
    """Two states that a policy may link."""

    policy: DrawnPolicy = DrawnPolicy()
    states: Pair


class Timeline(Fields):
    """How far to look ahead from a moment."""

    policy: DrawnPolicy = DrawnPolicy()
    moment: Moment = Moment()
    horizon: int = Field(default=12, ge=1, le=60)


class Run(Fields):
    """One way to release."""

    policy: DrawnPolicy = DrawnPolicy()
    epsilon: Epsilon = Fraction(1)
    limit: Limit | None = None
    mechanism: Noise = "knorm"
    repair: Literal["nearest", "min_area", "min_error", "none"] = "min_error"


class Walk(Fields):
    """A simulated person, and the one or two ways in which their walk is released."""

    seed: int = Field(default=1, ge=0, lt=2**32)
    length: int = Field(default=24, ge=1, le=200)
    start: State = 0
    runs: Annotated[list[Run], Field(max_length=2)] = []


class Save(Run):
    """What is drawn, as a scenario to take away."""

    moment: Moment = Moment()


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

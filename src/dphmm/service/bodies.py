"""The bodies of requests and answers, as the OpenAPI page shows them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, StrictStr

from dphmm.books.store import LATEST_TIME

PRICE = r"^[0-9]{1,20}([.][0-9]{1,20}|/[0-9]{1,20})?$"
Epsilon = Annotated[
    Annotated[StrictStr, Field(pattern=PRICE)] | StrictInt | StrictFloat,
    Field(description='Exact as text ("0.1", "1/3") or an integer; a float is rounded down.'),
]
Name = Annotated[str, Field(min_length=1, max_length=200)]


class Body(BaseModel):
    """A body in which no unknown field hides."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class NewScenario(Body):
    """A scenario file and the tables that it names; all of it is public."""

    scenario: str = Field(description="The TOML of the scenario, as `dphmm release` takes it.")
    states: str = Field(description="The CSV table of the states.")
    transition: list[list[float]] | None = Field(
        default=None, description="The transition matrix, one row a state; or send `model`."
    )
    model: str | None = Field(
        default=None, description="The model file that `dphmm learn` wrote, in base64."
    )
    edges: str | None = Field(default=None, description="The CSV table of the policy's edges.")


class ScenarioSummary(Body):
    """What a scenario is called here and what it costs."""

    id: str
    name: str
    states: int
    dimension: int
    epsilon: str
    limit: str | None


class NewStream(Body):
    """How much may be spent on a person in all scenarios together; it can be set once."""

    budget: Epsilon | None = None


class StreamSummary(Body):
    """Where a stream stands."""

    person: str
    scenario: str
    time: int


class NewRelease(Body):
    """A true state, to be answered with noise and forgotten."""

    time: StrictInt = Field(ge=1, le=LATEST_TIME, description="The step, counted from 1.")
    state: StrictInt | StrictStr | list[StrictFloat | StrictInt] = Field(
        description="The number or label of a state, or a pair of coordinates. Secret.",
        json_schema_extra={"writeOnly": True},
    )
    epsilon: Epsilon | None = None


class Released(Body):
    """An answer: every field may be shown to anybody."""

    time: int
    answer: list[float]
    lattice: list[int]
    estimate: list[float]
    epsilon: str
    statement: str
    repeated: bool = Field(description="It was given before; nothing was spent.")


class Releases(Body):
    """Answers in the order of time."""

    releases: list[Released]
    next: int | None = Field(description="Ask for `after` this time to read on.")


class Track(Body):
    """The estimate at every step given all answers: the smoothed track."""

    times: list[int]
    track: list[list[float]]


class Statement(Body):
    """What all releases of a stream cost."""

    releases: int
    spent: str
    text: str
    linked: str | None
    worst_pair: str | None
    event: str | None
    window: str | None
    sequence: str | None


class LedgerEntry(Body):
    """One thing that was said."""

    time: int
    scenario: str
    query: str
    epsilon: str
    constrained: str


class LedgerPage(Body):
    """What was spent on a person in all scenarios."""

    person: str
    spent: str
    budget: str | None
    entries: list[LedgerEntry]


class Erased(Body):
    """What stays of an erased person."""

    spent: str
    times: dict[str, int]


class Problem(Body):
    """What was wrong and what to do."""

    problem: str
    where: list[str] | None = None
    spent: str | None = None
    requested: str | None = None
    remaining: str | None = None


Json = dict[str, Any]

"""The bodies of requests and answers, as the OpenAPI page shows them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictFloat,
    StrictInt,
    StrictStr,
)

NUMBER = r"[0-9]{1,20}([.][0-9]{1,20}|/[0-9]{1,20})?"
PRICE = f"^{NUMBER}$"
PART = NUMBER + "( in all| per ([0-9]{1,9} )?[a-z]{1,7})?"
LIMIT = f"^{PART}(, {PART}){{0,3}}$"
Time = int | str


def _as_whole(given: object) -> object:
    """A number that is whole, however it is written: JSON knows no other kind."""
    return int(given) if isinstance(given, float) and given.is_integer() else given


Whole = Annotated[StrictInt, BeforeValidator(_as_whole)]
Positive = Annotated[StrictInt, Field(gt=0)] | Annotated[StrictFloat, Field(gt=0)]
Epsilon = Annotated[
    Annotated[StrictStr, Field(pattern=PRICE)] | Positive,
    Field(description='Exact as text ("0.1", "1/3") or a number, which means what it says.'),
]


class Body(BaseModel):
    """A body in which no unknown field hides."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class Status(Body):
    """That all is well."""

    status: str


class NewScenario(Body):
    """A scenario file and the tables that it names; all of it is public."""

    scenario: str = Field(
        min_length=1, description="The TOML of the scenario, as `dphmm release` takes it."
    )
    states: str = Field(min_length=1, description="The CSV table of the states.")
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
    speaks: str = Field(description="At which steps something is said.")


class ScenarioIds(Body):
    """The ids of scenarios."""

    scenarios: list[str]


class People(Body):
    """The names of people."""

    people: list[str]
    next: str | None = Field(description="Ask for `after` this name to read on.")


class NewStream(Body):
    """A person's own limit."""

    budget: Annotated[StrictStr, Field(pattern=LIMIT)] | Positive | None = Field(
        default=None,
        description="What may be spent on the person, on every question together; set once. "
        'In all ("24"), within any window ("24 per 1 day"), or both, with a comma between.',
    )


class StreamSummary(Body):
    """Where a person stands: the last time that was answered or passed."""

    person: str
    scenario: str
    time: Time | None
    slot: int | None


class NewRelease(Body):
    """A true state, to be answered with noise and forgotten."""

    time: Whole | Annotated[StrictStr, Field(min_length=1, max_length=40)] = Field(
        description="As the scenario's trips have it: a whole number, or a date of ISO 8601.",
    )
    state: StrictInt | StrictStr | list[StrictFloat | StrictInt] = Field(
        description="The number or label of a state, or a pair of coordinates. Secret.",
        json_schema_extra={"writeOnly": True},
    )
    epsilon: Epsilon | None = None


class BatchRow(NewRelease):
    """A true state of somebody, to be answered with noise and forgotten."""

    person: StrictStr = Field(min_length=1, max_length=200)


class NewBatch(Body):
    """Rows of any people of the scenario, in any order."""

    rows: list[BatchRow] = Field(min_length=1)


class Released(Body):
    """An answer: every field may be shown to anybody."""

    time: Time = Field(description="When its slot begins.")
    slot: int = Field(description="The step of the scenario's clock.")
    silent: bool = Field(description="The schedule says nothing here: only the estimate is there.")
    answer: list[float] | None
    lattice: list[int] | None
    estimate: list[float]
    epsilon: str = Field(
        description="The price of this answer; slots before it that were answered along have "
        "theirs, in the ledger."
    )
    statement: str = Field(
        description="What this answer alone hides and does not hide, and for whom that holds."
    )
    repeated: bool = Field(description="It was given before; nothing was spent.")


class BatchedRow(Body):
    """An answer with the status 200, or a problem."""

    model_config = ConfigDict(extra="allow")

    person: str
    status: int


class Batched(Body):
    """What came of every row, in the order in which they came."""

    rows: list[BatchedRow]


class Releases(Body):
    """Answers in the order of time."""

    releases: list[Released]
    next: Time | None = Field(description="Ask for `after` this time to read on.")


class Track(Body):
    """The estimate at every step given all answers: the smoothed track."""

    times: list[Time]
    slots: list[int]
    track: list[list[float]]


class PathCosts(Body):
    """What answers cost between two paths, under a condition; `inf` without limit."""

    condition: str | None = Field(
        description="For whom, and by which answers, all numbers hold; null for everybody by all "
        "that was said."
    )
    event: str | None = Field(
        description="Between two paths that differ at one time; null where it was not computed."
    )
    window: str | None = Field(description="The same of paths that differ within `width` steps.")
    sequence: str | None = Field(
        description="Between any two paths: an upper bound where the value is not known."
    )


class Near(Body):
    """How near a reader comes in a part of the day."""

    when: str
    radius: float


class Tells(Body):
    """What all answers together tell, under the `condition` of the statement."""

    linked: str = Field(
        description="Between two paths that are equal or linked at every time, by the policy or by "
        "repair."
    )
    linked_delta: str | None = Field(
        description="The same for the probability of any set of answers, with `delta` besides, if "
        "times and prices were not chosen after earlier answers; null where the noise may have "
        "been shaped by them, or answers are few."
    )
    delta: str
    moment: str | None = Field(
        description="Of one moment from the first answer to the last, between linked states, over "
        "all paths before and after it, to whoever takes the model for true: an upper bound; null "
        "where it would take long, the noise may have been shaped by answers, or the model "
        "remembers more than the place."
    )
    realised: str = Field(
        description="The factor by which these answers moved the odds between linked states, to "
        "whoever takes the model for true and, after `since`, knew what was said before."
    )
    near: list[Near] = Field(
        description="The radius that holds half of the belief of whoever knows only the model, "
        "the answers and, after `since`, what was said before; empty where states are no places."
    )
    near_before: float | None = Field(description="The same without these answers.")
    home: float | None = Field(
        description="The same for the one place of all nights, taking it that there is one."
    )
    unit: str
    zone: str = Field(description="Whose hours the parts of the day are; empty: the place's own.")


class Statement(PathCosts):
    """What the answers to one question cost, since its scenario was adopted."""

    since: int | None = Field(
        description="The slot where this scenario was adopted; what was said until then, under "
        "another, has been spent and is not in here."
    )
    releases: int
    spent: str = Field(description="The sum of their prices; no other question's are in it.")
    before: str = Field(description="What was spent before, which no other number counts.")
    besides: str | None = Field(
        description="What else was spent on the person, which no other number counts."
    )
    text: str = Field(description="All of it in words, each sentence with its condition.")
    linked: str | None = Field(
        description="The most that one step tells between two linked states, under `condition`."
    )
    worst_pair: str | None = Field(
        description="The same between any two possible states; `inf` if some are told apart."
    )
    width: int = Field(description="The steps of the window.")
    windows: dict[str, str] = Field(
        description="The most that any window of the limit held, by its length."
    )
    adaptive: bool = Field(description="Whether earlier answers shaped the noise of later ones.")
    own: PathCosts | None = Field(
        description="The same for people who make only the model's own moves, if others may; what "
        "`condition` says of delta, gaps and other answers holds for it, too."
    )
    tells: Tells | None


class LedgerEntry(Body):
    """One thing that was said."""

    slot: int
    query: str
    epsilon: str = Field(description="Its price: between linked states, for whom its answer says.")
    constrained: str = Field(
        description="The same between any two states that were possible; `inf` without limit."
    )


class LedgerPage(Body):
    """What was spent on a person, on every question."""

    person: str
    spent: str = Field(
        description="The sum of all prices: what linked paths lose at most, if every question's "
        "policy links them; states that only repair hides may lose more by several questions."
    )
    budget: str | None
    remaining: str | None = Field(
        description="What the budget leaves at the latest slot; null without one, and where "
        "questions count time in different steps."
    )
    entries: list[LedgerEntry]
    next: int | None = Field(description="Ask for `after` this number to read on.")


class Erased(Body):
    """What stays of an erased person."""

    spent: str
    slots: dict[str, int] = Field(description="The last slot of each question.")


class NewKey(Body):
    """What a new key may do, and for how long."""

    scopes: list[Literal["release", "read", "people", "scenarios", "keys"]] = Field(
        min_length=1, max_length=5
    )
    days: Whole | None = Field(default=None, ge=1, le=3650, description="Until it closes.")


class KeyTerms(Body):
    """When a key closes."""

    hours: Whole = Field(default=0, ge=0, le=8760, description="From now on.")


class KeyFacts(Body):
    """Whose a key is and what it opens; not the key."""

    id: str = Field(description="The start of its SHA-256.")
    client: str
    scopes: list[str]
    created: str
    expires: str | None
    open: bool


class Keys(Body):
    """A client's keys."""

    keys: list[KeyFacts]


class MadeKey(KeyFacts):
    """A key, the only time that it can be read."""

    key: str


class ActFacts(Body):
    """Something that was done, by whom, not whom about."""

    number: int
    time: str
    who: str = Field(description="A key's id; empty for a command on the machine.")
    client: str
    act: str
    chain: str = Field(description="A hash of this and of the one before.")


class Acts(Body):
    """What was done, in order."""

    acts: list[ActFacts]
    next: int | None = Field(description="Ask for `after` this number to read on.")


class Problem(Body):
    """What was wrong and what to do."""

    problem: str
    where: list[str] | None = None
    spent: str | None = None
    requested: str | None = None
    remaining: str | None = None
    window: str | None = Field(default=None, description="The limit's window that is full.")
    slot: int | None = Field(default=None, description="From which slot on it is possible.")
    time: Time | None = Field(default=None, description="When that slot begins.")


def whole_schema(kind: type[BaseModel]) -> dict[str, Any]:
    """The schema of a body by itself, with what it refers to in its place."""
    schema = kind.model_json_schema()
    parts = schema.pop("$defs", {})

    def put(part: Any) -> Any:
        if isinstance(part, list):
            return [put(one) for one in part]
        if not isinstance(part, dict):
            return part
        if "$ref" in part:
            return put(parts[part["$ref"].rpartition("/")[2]])
        return {name: put(one) for name, one in part.items()}

    whole: dict[str, Any] = put(schema)
    return whole

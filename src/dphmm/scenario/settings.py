"""The TOML file of a scenario: its keys, checked, and the same file written back."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, cast

import tomlkit

from dphmm.chain.estimates import ESTIMATES, Estimate, check_estimate
from dphmm.cost.limit import Limit
from dphmm.errors import (
    ArgumentError,
    DphmmError,
    ScenarioError,
    check_text,
    expect,
    expect_each,
)
from dphmm.geometry.exact import as_delta, as_epsilon, as_text, exact
from dphmm.geometry.query import QUERY_NAME
from dphmm.noise.mechanism import MECHANISMS, SHAPES
from dphmm.noise.staircase import as_gamma
from dphmm.release.schedule import Schedule
from dphmm.scenario.locating import find_line, suggest
from dphmm.tables.clock import Clock
from dphmm.tables.files import as_path, read_text
from dphmm.tables.units import length

__all__ = ["Policy", "Settings"]

REPAIRS = ("nearest", "min_area", "min_error", "optimal", "optimal_volume", "none")
Number: TypeAlias = int | Decimal | str


@dataclass(frozen=True)
class Policy:
    """Which states must look alike: every part that is given adds its edges.

    Args:
        complete: Whether everybody must look like everybody.
        category: The column of the states whose equal values must look alike.
        distance: The radius, in the units of the query, within which states must look alike.
        one_step: Whether states that one state can reach in one step must look alike.
        edges: A CSV file of two labels a row.
    """

    complete: bool = False
    category: str | None = None
    distance: Fraction | None = None
    one_step: bool = False
    edges: str | None = None

    def __post_init__(self) -> None:
        _expect_kinds(self, {"complete": bool, "one_step": bool})
        for name in ("category", "edges"):
            if getattr(self, name) is not None:
                _expect_kinds(self, {name: str})
        if self.distance is not None:
            radius = exact(self.distance, "distance")
            if radius < 0:
                raise ArgumentError(f"distance must not be negative, got {self.distance!r}")
            object.__setattr__(self, "distance", radius)


@dataclass(frozen=True)
class Settings:
    """Everything a scenario file says; the names of its files are relative to it."""

    name: str
    epsilon: Fraction
    states: str = "states.csv"
    model: str = "model.npz"
    limit: Limit | None = None
    start: str | Mapping[str, float] = "uniform"
    """A label, "uniform", "stationary", or the probability of each label."""
    columns: tuple[str, ...] = ()
    step: Fraction = Fraction(1)
    query: str = QUERY_NAME
    """What the ledger calls the question."""
    policy: Policy = field(default_factory=Policy)
    mechanism: str = "knorm"
    shape: str = "hull"
    gamma: Fraction | None = None
    repair: str | None = "min_error"
    full_rank: bool = True
    delta: Fraction = Fraction(0)
    clock: Clock = field(default_factory=Clock)
    when: Schedule | None = None
    """When to speak; a price that it names becomes the scenario's."""
    unit: str = ""
    """What the query is measured in, for people to read."""
    estimate: Estimate = "mean"
    """What stands for a belief; estimates follow from answers, so this shapes none of them."""
    base: str | None = None
    """The file of a base map, drawn under the states; no answer depends on it."""

    def __post_init__(self) -> None:
        _expect_kinds(self, dict.fromkeys(("name", "states", "model", "query", "unit"), str))
        _expect_kinds(self, {"policy": Policy, "full_rank": bool, "clock": Clock})
        if self.base is not None:
            _expect_kinds(self, {"base": str})
        if self.when is not None:
            _expect_kinds(self, {"when": Schedule})
            if self.when.epsilon is not None:
                object.__setattr__(self, "epsilon", self.when.epsilon)
                object.__setattr__(self, "when", replace(self.when, epsilon=None))
        if self.schedule is not None:
            self.schedule.check_bound()
        if not isinstance(self.start, (str, Mapping)):
            raise ArgumentError(
                "start must be a label, 'uniform', 'stationary' or the probability of each label, "
                f"got {type(self.start).__name__}"
            )
        object.__setattr__(self, "columns", tuple(expect_each(self.columns, str, "columns")))
        object.__setattr__(self, "epsilon", as_epsilon(self.epsilon))
        object.__setattr__(self, "step", as_epsilon(self.step, "step"))
        check_estimate(self.estimate)
        if self.limit is not None:
            object.__setattr__(self, "limit", Limit.read(self.limit))
            self.limit.in_steps(self.clock.law)
        object.__setattr__(self, "gamma", as_gamma(self.gamma, self.mechanism))
        object.__setattr__(self, "delta", as_delta(self.delta))

    @property
    def schedule(self) -> Schedule | None:
        """When to speak, by the scenario's clock."""
        if self.when is None:
            return None
        return replace(self.when, step=self.clock.step, zone=self.clock.zone)

    @property
    def speaks(self) -> str:
        """When to speak, in words, with the zone of the hours."""
        return "every step" if self.when is None else str(replace(self.when, zone=self.clock.zone))

    @classmethod
    def read(cls, path: str | Path) -> Settings:
        """The settings of a TOML file; a mistake is located, a misspelt key gets a suggestion."""
        return cls.parse(read_text(path), as_path(path).name)

    @classmethod
    def parse(cls, text: str, name: str) -> Settings:
        """The settings of a TOML text that stands in a file of this name."""
        try:
            # Decimal keeps an epsilon of 0.1 exactly what was written.
            table = tomllib.loads(text, parse_float=Decimal)
        except tomllib.TOMLDecodeError as fault:
            raise ScenarioError(f"{name}: file must be TOML: {fault}") from None
        return _Reader(name, text, table).settings(Path(name).stem)

    def to_toml(self) -> str:
        """The TOML text that `read` reads back."""
        file = tomlkit.document()
        for name in ("name", "states", "model"):
            file[name] = getattr(self, name)
        file["epsilon"] = as_text(self.epsilon)
        if self.limit is not None:
            file["limit"] = str(self.limit)
        if isinstance(self.start, str):
            file["start"] = self.start
        if self.unit:
            file["unit"] = self.unit
        file |= {"mechanism": self.mechanism, "shape": self.shape, "repair": self.repair or "none"}
        if self.gamma is not None:
            file["gamma"] = as_text(self.gamma)
        file |= {"full_rank": self.full_rank, "delta": as_text(self.delta)}
        if self.estimate != "mean":
            file["estimate"] = self.estimate
        query: dict[str, Any] = {"columns": list(self.columns)} if self.columns else {}
        if self.query != QUERY_NAME:
            query["name"] = self.query
        file["query"] = {**query, "step": as_text(self.step)}
        policy = vars(self.policy) | {
            "distance": None if self.policy.distance is None else as_text(self.policy.distance)
        }
        file["policy"] = {name: rule for name, rule in policy.items() if rule not in (None, False)}
        time = vars(self.clock) | {"open": self.clock.open or None}
        file["time"] = {name: value for name, value in time.items() if value is not None}
        if self.when is not None:
            when = vars(self.when) | {"hours": list(self.when.hours), "zone": None}
            when["error"] = None if self.when.error is None else as_text(exact(self.when.error))
            usual = vars(Schedule()) | {"hours": []}
            file["when"] = {k: v for k, v in when.items() if v not in (None, usual[k])}
        if self.base is not None:
            file["map"] = {"base": self.base}
        if not isinstance(self.start, str):
            file["start"] = dict(self.start)
        return tomlkit.dumps(file)


_KEYS = {
    "": (
        *("name", "states", "model", "epsilon", "limit", "start", "mechanism", "shape", "gamma"),
        *("repair", "full_rank", "delta", "estimate", "unit", "query", "policy", "time", "when"),
        "map",
    ),
    "query": ("name", "columns", "step"),
    "policy": tuple(part.name for part in fields(Policy)),
    "time": ("step", "origin", "zone", "open"),
    "map": ("base",),
    "when": ("every", "phase", "hours", "error", "apart", "epsilon", "gaps"),
}
_MISSING: Any = object()


class _Reader:
    """One file's table, read key by key; every complaint names file, line and key."""

    def __init__(self, file: str, text: str, table: dict[str, Any]) -> None:
        self._file, self._text, self._table = file, text, table

    def settings(self, stem: str) -> Settings:
        self._check_keys("", self._table)
        for section in ("query", "policy", "time", "when", "map"):
            self._check_keys(section, self._section(section))
        columns = self._get("query", "columns", list, [])
        if not all(isinstance(column, str) for column in columns):
            raise self._wrong("query", "columns", "must be a list of names")
        unit = self._get("", "unit", str, "")
        clock = self._clock(self._section("time"))
        mechanism = self._choice("mechanism", MECHANISMS, "knorm")
        return Settings(
            name=self._get("", "name", str, stem),
            epsilon=self._number("", "epsilon", as_epsilon),
            states=self._get("", "states", str, "states.csv"),
            model=self._get("", "model", str, "model.npz"),
            limit=self._number("", "limit", partial(_limit, clock=clock), None),
            start=self._start(),
            columns=tuple(columns),
            step=self._number("query", "step", partial(_spacing, unit), Fraction(1)),
            query=self._get("query", "name", str, QUERY_NAME),
            policy=Policy(
                complete=self._get("policy", "complete", bool, False),
                category=self._get("policy", "category", str, None),
                distance=self._number("policy", "distance", partial(_radius, unit), None),
                one_step=self._get("policy", "one_step", bool, False),
                edges=self._get("policy", "edges", str, None),
            ),
            mechanism=mechanism,
            shape=self._choice("shape", SHAPES, "hull"),
            gamma=self._number("", "gamma", partial(as_gamma, mechanism=mechanism), None),
            repair=self._repair(),
            full_rank=self._get("", "full_rank", bool, True),
            delta=self._number("", "delta", as_delta, Fraction(0)),
            clock=clock,
            when=self._when(clock) if "when" in self._table else None,
            unit=unit,
            estimate=cast("Estimate", self._choice("estimate", ESTIMATES, "mean")),
            base=self._get("map", "base", str, None),
        )

    def _when(self, clock: Clock) -> Schedule:
        given = dict(self._section("when"))
        given["hours"] = self._get("when", "hours", list, [])
        for key in ("error", "epsilon"):
            given[key] = self._number("when", key, as_epsilon, None)
        try:
            schedule = Schedule(**given)
            replace(schedule, step=clock.step, zone=clock.zone).check_bound()
        except ArgumentError as fault:
            key, _, problem = str(fault).partition(" ")
            raise self._wrong("when", key, re.sub(r"Decimal\('(.*?)'\)", r"\1", problem)) from None
        return schedule

    def _clock(self, section: dict[str, Any]) -> Clock:
        try:
            origin = section.get("origin")
            if origin is not None and not isinstance(origin, int):
                origin = str(origin)
            return Clock(
                section.get("step", 1), origin, section.get("zone"), section.get("open", 0)
            )
        except ArgumentError as fault:
            key = str(fault).partition(" ")[0]
            raise self._wrong("time", key, str(fault).partition(" ")[2]) from None

    def _start(self) -> str | Mapping[str, float]:
        start = self._table.get("start", "uniform")
        if isinstance(start, str):
            return start
        if isinstance(start, dict) and all(
            isinstance(value, (int, Decimal)) and not isinstance(value, bool)
            for value in start.values()
        ):
            return {label: float(value) for label, value in start.items()}
        raise self._wrong(
            "", "start", "must be a label, 'uniform', 'stationary', or a table of probabilities"
        )

    def _repair(self) -> str | None:
        if self._table.get("repair") is False:
            return None
        chosen = self._choice("repair", REPAIRS, "min_error")
        return None if chosen == "none" else chosen

    def _choice(self, key: str, choices: tuple[str, ...], default: str) -> str:
        chosen: str = self._get("", key, str, default)
        if chosen not in choices:
            hint = suggest(chosen, choices)
            raise self._wrong("", key, f"must be one of {', '.join(choices)}, got {chosen!r}{hint}")
        return chosen

    def _get(self, section: str, key: str, kind: type, default: Any) -> Any:
        value = self._section(section).get(key, default)
        if value is not default and (type(value) is not kind):
            names = {str: "text", bool: "true or false", list: "a list"}
            raise self._wrong(section, key, f"must be {names[kind]}, got {_shown(value)}")
        return value

    def _number(self, section: str, key: str, convert: Any, default: Any = _MISSING) -> Any:
        value = self._section(section).get(key, _MISSING)
        if value is _MISSING and default is _MISSING:
            raise ScenarioError(f"{self._file}: {key} must be given")
        if value is _MISSING:
            return default
        if isinstance(value, bool) or not isinstance(value, (int, Decimal, str)):
            raise self._wrong(section, key, f"must be a number, got {_shown(value)}")
        if not _is_moderate(value):
            raise self._wrong(section, key, "must be a number of moderate size, got a huge one")
        try:
            return convert(value)
        except DphmmError as fault:
            problem = re.sub(r"^\w+ ", "", str(fault))
            raise self._wrong(section, key, re.sub(r"Decimal\('(.*?)'\)", r"\1", problem)) from None

    def _section(self, section: str) -> dict[str, Any]:
        if not section:
            return self._table
        table = self._table.get(section, {})
        if not isinstance(table, dict):
            raise self._wrong("", section, f"must be a table [{section}], got {_shown(table)}")
        return table

    def _check_keys(self, section: str, table: Mapping[str, Any]) -> None:
        known = _KEYS[section]
        for key in table:
            if key not in known:
                everywhere = {name: part for part, names in _KEYS.items() for name in names}
                hint = suggest(key, known) or suggest(key, tuple(everywhere))
                raise self._wrong(section, key, f"is not a key of a scenario{hint}")

    def _wrong(self, section: str, key: str, problem: str) -> ScenarioError:
        line = find_line(self._text, section, key)
        place = f"{self._file}:{line}" if line else self._file
        return ScenarioError(f"{place}: {f'{section}.{key}' if section else key} {problem}")


def _spacing(unit: str, value: Number) -> Fraction:
    return as_epsilon(length(value, unit, "step"), "step")


def _radius(unit: str, value: Number) -> Fraction:
    return length(value, unit, "distance")


def _expect_kinds(given: Policy | Settings, kinds: Mapping[str, type]) -> None:
    for name, kind in kinds.items():
        expect(getattr(given, name), kind, name)
        if kind is str:
            check_text(getattr(given, name), name)


def _limit(value: Number, clock: Clock) -> Limit:
    limit = Limit.read(value)
    limit.in_steps(clock.law)
    return limit


def _is_moderate(value: Number) -> bool:
    """Whether a number is quickly made exact; 1e999999999 has a billion digits."""
    if len(str(value)) > 400:
        return False
    try:
        number = Decimal(value)
    except InvalidOperation:
        return True
    return not number.is_finite() or abs(number.adjusted()) < 300


def _shown(value: object) -> str:
    return str(value) if isinstance(value, Decimal) else repr(value)

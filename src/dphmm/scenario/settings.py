"""The TOML file of a scenario: its keys, checked, and the same file written back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import tomlkit

from dphmm.chain.estimates import Estimate, check_estimate
from dphmm.cost.limit import Limit
from dphmm.errors import (
    ArgumentError,
    check_text,
    expect,
    expect_each,
)
from dphmm.geometry.exact import as_delta, as_epsilon, as_text, exact
from dphmm.geometry.query import QUERY_NAME
from dphmm.noise.staircase import as_gamma
from dphmm.release.schedule import Schedule
from dphmm.scenario.keys import read_keys
from dphmm.tables.clock import Clock
from dphmm.tables.files import as_path, read_text

__all__ = ["Policy", "Settings"]


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
                raise ArgumentError(f"distance must not be negative, got {as_text(radius)}")
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
        given = read_keys(text, name)
        return cls(**given | {"policy": Policy(**given["policy"])})

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


def _expect_kinds(given: Policy | Settings, kinds: Mapping[str, type]) -> None:
    for name, kind in kinds.items():
        expect(getattr(given, name), kind, name)
        if kind is str:
            check_text(getattr(given, name), name)

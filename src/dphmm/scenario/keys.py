"""The keys of a scenario file, read one by one; every complaint names file, line and key."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, cast

from dphmm.chain.estimates import ESTIMATES, Estimate
from dphmm.cost.limit import Limit
from dphmm.errors import ArgumentError, DphmmError, ScenarioError
from dphmm.geometry.exact import as_delta, as_epsilon
from dphmm.geometry.query import QUERY_NAME
from dphmm.noise.mechanism import MECHANISMS, SHAPES
from dphmm.noise.staircase import as_gamma
from dphmm.release.schedule import Schedule
from dphmm.tables.clock import Clock
from dphmm.tables.units import length

__all__ = ["KEYS", "REPAIRS", "read_keys"]

REPAIRS = ("nearest", "min_area", "min_error", "optimal", "optimal_volume", "none")
Number: TypeAlias = int | Decimal | str

KEYS = {
    "": (
        *("name", "states", "model", "epsilon", "limit", "start", "mechanism", "shape", "gamma"),
        *("repair", "full_rank", "delta", "estimate", "unit", "query", "policy", "time", "when"),
        "map",
    ),
    "query": ("name", "columns", "step"),
    "policy": ("complete", "category", "distance", "one_step", "edges"),
    "time": ("step", "origin", "zone", "open"),
    "map": ("base",),
    "when": ("every", "phase", "hours", "error", "apart", "epsilon", "gaps"),
}
"""What a file may say, by its section; the first are those before any."""

_MISSING: Any = object()


def read_keys(text: str, name: str) -> dict[str, Any]:
    """What a TOML text in a file of this name says, checked, as `Settings` takes it."""
    try:
        # Decimal keeps an epsilon of 0.1 exactly what was written.
        table = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as fault:
        raise ScenarioError(f"{name}: file must be TOML: {fault}") from None
    except (ValueError, RecursionError):  # which the parser does not say itself
        raise ScenarioError(
            f"{name}: file must be TOML with numbers of few digits and few lists in lists"
        ) from None
    return _Reader(name, text, table).settings(Path(name).stem)


class _Reader:
    """One file's table, read key by key; every complaint names file, line and key."""

    def __init__(self, file: str, text: str, table: dict[str, Any]) -> None:
        self._file, self._text, self._table = file, text, table

    def settings(self, stem: str) -> dict[str, Any]:
        self._check_keys("", self._table)
        for section in ("query", "policy", "time", "when", "map"):
            self._check_keys(section, self._section(section))
        columns = self._get("query", "columns", list, [])
        if not all(isinstance(column, str) for column in columns):
            raise self._wrong("query", "columns", "must be a list of names")
        unit = self._get("", "unit", str, "")
        clock = self._clock(self._section("time"))
        mechanism = self._choice("mechanism", MECHANISMS, "knorm")
        return {
            "name": self._get("", "name", str, stem),
            "epsilon": self._number("", "epsilon", as_epsilon),
            "states": self._get("", "states", str, "states.csv"),
            "model": self._get("", "model", str, "model.npz"),
            "limit": self._number("", "limit", partial(_limit, clock=clock), None),
            "start": self._start(),
            "columns": tuple(columns),
            "step": self._number("query", "step", partial(_spacing, unit), Fraction(1)),
            "query": self._get("query", "name", str, QUERY_NAME),
            "policy": {
                "complete": self._get("policy", "complete", bool, False),
                "category": self._get("policy", "category", str, None),
                "distance": self._number("policy", "distance", partial(_radius, unit), None),
                "one_step": self._get("policy", "one_step", bool, False),
                "edges": self._get("policy", "edges", str, None),
            },
            "mechanism": mechanism,
            "shape": self._choice("shape", SHAPES, "hull"),
            "gamma": self._number("", "gamma", partial(as_gamma, mechanism=mechanism), None),
            "repair": self._repair(),
            "full_rank": self._get("", "full_rank", bool, True),
            "delta": self._number("", "delta", as_delta, Fraction(0)),
            "clock": clock,
            "when": self._when(clock) if "when" in self._table else None,
            "unit": unit,
            "estimate": cast("Estimate", self._choice("estimate", ESTIMATES, "mean")),
            "base": self._get("map", "base", str, None),
        }

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
            hint = _suggestion(chosen, choices)
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
        known = KEYS[section]
        for key in table:
            if key not in known:
                hint = _suggestion(key, known) or _other_section(section, key)
                raise self._wrong(section, key, f"is not a key of a scenario{hint}")

    def _wrong(self, section: str, key: str, problem: str) -> ScenarioError:
        line = self._line(section, key)
        place = f"{self._file}:{line}" if line else self._file
        return ScenarioError(f"{place}: {f'{section}.{key}' if section else key} {problem}")

    def _line(self, section: str, key: str) -> int | None:
        """Where a key stands, as far as plain lines tell."""
        current = ""
        for number, line in enumerate(self._text.splitlines(), start=1):
            head = re.match(r"\s*\[\s*([\w\-]+)\s*\]", line)
            if head:
                current = head[1]
                if not section and current == key:
                    return number
            elif current == section and re.match(rf"""\s*["']?{re.escape(key)}["']?\s*=""", line):
                return number
        return None


def _spacing(unit: str, value: Number) -> Fraction:
    return as_epsilon(length(value, unit, "step"), "step")


def _radius(unit: str, value: Number) -> Fraction:
    return length(value, unit, "distance")


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
    try:
        return str(value) if isinstance(value, Decimal) else repr(value)
    except RecursionError:
        return "tables in tables"


def _suggestion(word: str, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else ""


def _other_section(section: str, key: str) -> str:
    """What a section has, or before any of them which one has such a key."""
    if section:
        return f"; [{section}] has {', '.join(KEYS[section])}"
    inner = {name: part for part, names in KEYS.items() for name in names if part}
    near = difflib.get_close_matches(key, inner, n=1)
    return f"; did you mean {near[0]!r} in [{inner[near[0]]}]?" if near else ""

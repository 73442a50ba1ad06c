"""Reading what the page sent: every field is checked for its type, its size and its range.

The page is not trusted, since any program on the machine can write a request by hand. What
passes here is small enough to compute with; what does not is an `ArgumentError` that names
the field.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dphmm.errors import ArgumentError

__all__ = ["Fields", "parsed"]

MAX_STATES = 10_000
MAX_EDGES = 100_000
MAX_CLIQUES = 5_000
MAX_TEXT = 200

# No exponent: "1e999999999" is nine digits to write and a gigabyte to compute with.
_NUMBER = re.compile(r"-?[0-9]{1,9}(\.[0-9]{1,9})?|[0-9]{1,9}/[0-9]{1,9}")


def parsed(body: bytes) -> Fields:
    """The fields of a JSON object; NaN, infinities and absurd nesting are refused."""

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is not a number")

    try:
        content = json.loads(body, parse_constant=refuse)
    except (ValueError, RecursionError):
        raise ArgumentError("body must be a JSON object, got something else") from None
    return Fields(content, "body")


class Fields:
    """A JSON object whose fields are taken one by one, each with what it must be."""

    def __init__(self, content: Any, name: str) -> None:
        if not isinstance(content, Mapping):
            raise ArgumentError(f"{name} must be an object, got {_kind(content)}")
        self._content: Mapping[str, Any] = content
        self._name = name

    @property
    def content(self) -> Mapping[str, Any]:
        """The object as it came."""
        return self._content

    def has(self, name: str) -> bool:
        """Whether a field is there and not null."""
        return self._content.get(name) is not None

    def without(self, name: str) -> Fields:
        """The same fields but for one."""
        rest = {key: value for key, value in self._content.items() if key != name}
        return Fields(rest, self._name)

    def inner(self, name: str) -> Fields:
        """The fields of an object within; none if it is missing."""
        return Fields(self._content.get(name, {}), name)

    def several(self, name: str, most: int) -> list[Fields]:
        """The objects of a list."""
        items = self._list(name, most)
        return [Fields(item, f"{name}[{number}]") for number, item in enumerate(items)]

    def text(self, name: str, default: str | None = None, longest: int = MAX_TEXT) -> str:
        """A text of limited length."""
        value = self._content.get(name, default)
        if not isinstance(value, str) or len(value) > longest:
            raise ArgumentError(
                f"{name} must be a text of at most {longest} characters, got {_kind(value)}"
            )
        return value

    def choice(self, name: str, choices: tuple[str, ...], default: str | None = None) -> str:
        """One of a few words."""
        value = self._content.get(name, default)
        if not isinstance(value, str) or value not in choices:
            raise ArgumentError(f"{name} must be one of {', '.join(choices)}, got {_kind(value)}")
        return value

    def whole(self, name: str, low: int, high: int, default: int | None = None) -> int:
        """An integer within bounds."""
        value = self._content.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ArgumentError(
                f"{name} must be a whole number in {low}..{high}, got {_kind(value)}"
            )
        return value

    def rational(self, name: str, low: Fraction, high: Fraction, default: str) -> Fraction:
        """An exact number within bounds, written as a text such as "0.5" or "1/3"."""
        value = self._content.get(name, default)
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**9:
            value = str(value)
        if not isinstance(value, str) or not _NUMBER.fullmatch(value):
            raise ArgumentError(
                f'{name} must be a number in a text, such as "0.5", got {_kind(value)}'
            )
        if value.partition("/")[2].strip("0") == "" and "/" in value:
            raise ArgumentError(f"{name} must not be divided by zero")
        number = Fraction(value)
        if not low <= number <= high:
            raise ArgumentError(f"{name} must lie in {low}..{high}, got {value}")
        return number

    def states(self, name: str, n_states: int) -> list[int]:
        """Different states, by number."""
        states = self._list(name, n_states)
        for state in states:
            _check_state(state, name, n_states)
        if len(set(states)) != len(states):
            raise ArgumentError(f"{name} must name each state once, got a repeated state")
        return states

    def state(self, name: str, n_states: int, default: int | None = None) -> int:
        """One state, by number."""
        value = self._content.get(name, default)
        _check_state(value, name, n_states)
        assert isinstance(value, int)  # _check_state saw to it
        return value

    def pairs(self, name: str, n_states: int) -> list[tuple[int, int]]:
        """Different pairs of different states, the lower first."""
        found = set()
        for pair in self._list(name, MAX_EDGES):
            if not isinstance(pair, list) or len(pair) != 2:
                raise ArgumentError(f"{name} must hold pairs of states, got {_kind(pair)}")
            for state in pair:
                _check_state(state, name, n_states)
            if pair[0] == pair[1]:
                raise ArgumentError(f"{name} must join two different states, got one twice")
            found.add((min(pair), max(pair)))
        return sorted(found)

    def cliques(self, name: str, n_states: int) -> list[list[int]]:
        """Groups of different states."""
        groups = self._list(name, MAX_CLIQUES)
        members = sum(len(group) if isinstance(group, list) else 0 for group in groups)
        if members > MAX_EDGES:
            raise ArgumentError(f"{name} must have at most {MAX_EDGES} members, got {members}")
        return [Fields({name: group}, self._name).states(name, n_states) for group in groups]

    def labels(self, name: str, n_states: int) -> list[str] | None:
        """A label for every state, or None if the field is missing."""
        if not self.has(name):
            return None
        labels = self._list(name, MAX_STATES)
        if len(labels) != n_states:
            raise ArgumentError(f"{name} must have {n_states} labels, got {len(labels)}")
        for label in labels:
            if not isinstance(label, str) or not 0 < len(label) <= MAX_TEXT:
                raise ArgumentError(f"{name} must hold short texts, got {_kind(label)}")
        return labels

    def _list(self, name: str, most: int) -> list[Any]:
        value = self._content.get(name, [])
        if not isinstance(value, list):
            raise ArgumentError(f"{name} must be a list, got {_kind(value)}")
        if len(value) > most:
            raise ArgumentError(f"{name} must have at most {most} entries, got {len(value)}")
        return value


def _check_state(state: Any, name: str, n_states: int) -> None:
    whole = isinstance(state, int) and not isinstance(state, bool)
    if not whole or not 0 <= state < n_states:
        raise ArgumentError(f"{name} must name states 0..{n_states - 1}, got {_kind(state)}")


def _kind(value: Any) -> str:
    """A value as it may stand in a message: short, or by its type."""
    if isinstance(value, str | int | float | bool | None.__class__):
        shown = repr(value)
        return shown if len(shown) <= 40 else f"{shown[:37]}..."
    return "an object" if isinstance(value, Mapping) else "a list"

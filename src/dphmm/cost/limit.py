"""What may be spent on a person: in all, and within any so many consecutive steps.

A window bounds what can be learned about everything that happens within it, however long the
stream goes on: w-event privacy (Kellaris et al., 2014).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fractions import Fraction

from dphmm.errors import ArgumentError, expect, expect_each
from dphmm.geometry.exact import Exact, as_epsilon, as_text, seconds, whole

__all__ = ["Limit", "Window", "begin_of", "slot_from", "step_of"]

FOREVER = 2**62
"""Beyond every instant: where it ends when a slot may begin of which nobody can tell."""

_UNITS = {86400: "day", 3600: "hour", 60: "minute", 1: "second"}
_PART = re.compile(r"\s*(\S+?)\s*(?:per\s+(?:([0-9]{1,9})\s*)?([a-z]+)|(in\s+all))?\s*")


@dataclass(frozen=True)
class Window:
    """So much within any so many consecutive steps.

    Args:
        amount: The most that they may hold.
        width: How many steps; seconds of a clock before `Limit.in_steps`.
        timed: Whether the width is in seconds.
        name: How long it is in words, if not so many steps.
    """

    amount: Fraction
    width: int
    timed: bool = False
    name: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "amount", as_epsilon(self.amount, "amount"))
        whole(self.width, "width", 1)

    @property
    def length(self) -> str:
        """How long it is, in words."""
        if self.name:
            return self.name
        size = next(size for size in _UNITS if self.width % size == 0) if self.timed else 1
        count, unit = self.width // size, _UNITS[size] if self.timed else "step"
        return f"{count} {unit}" if count == 1 else f"{count} {unit}s"

    def __str__(self) -> str:
        return f"{as_text(self.amount)} per {self.length}"


@dataclass(frozen=True)
class Limit:
    """What may be spent on a person: in all, within windows, or both.

    Wherever a limit is asked for, a number or a text will do: "24", "24 per 288 steps",
    "24 per 1 day, 100 in all". Of any `width` consecutive slots the prices then sum to at most
    the amount, wherever they begin. Days, hours, minutes and seconds need a scenario's clock,
    of whose step they must be whole multiples. Where questions with several time steps are asked
    about one person, an answer counts at the instant at which its slot begins, and a window is a
    duration that may begin at any instant.

    Args:
        total: The most in all; None for no such limit.
        windows: The most within any so many consecutive steps.

    >>> limit = Limit.read("24 per 1 day, 100 in all")
    >>> limit.total, limit.windows[0].amount, limit.in_steps("300 s").windows[0].width
    (Fraction(100, 1), Fraction(24, 1), 288)
    """

    total: Fraction | None = None
    windows: tuple[Window, ...] = ()

    def __post_init__(self) -> None:
        if self.total is not None:
            object.__setattr__(self, "total", as_epsilon(self.total, "total"))
        expect_each(self.windows, Window, "windows")
        ordered = sorted(self.windows, key=lambda window: (window.timed, window.width))
        object.__setattr__(self, "windows", tuple(ordered))

    @classmethod
    def read(cls, limit: Exact | Limit, argument: str = "limit") -> Limit:
        """The limit that was written.

        Args:
            limit: A number, a text as above, or a limit.
            argument: What a message calls it.
        """
        expect(argument, str, "argument")
        if isinstance(limit, Limit):
            if limit == cls():
                raise ArgumentError(f"{argument} must have a total or a window, got neither")
            return limit
        if not isinstance(limit, str):
            return cls(as_epsilon(limit, argument))
        found = cls()
        for part in limit.split(","):
            one = _read_part(part, argument)
            if one is None or (one.total is not None and found.total is not None):
                raise ArgumentError(
                    f"{argument} must be like '24', '24 per 1 day' or '24 per 288 steps, "
                    f"100 in all', got {limit!r}"
                )
            found &= one
        return found

    @property
    def width(self) -> int:
        """The steps of the longest window; 0 without one."""
        return max((window.width for window in self.windows), default=0)

    def in_steps(self, clock: str = "", argument: str = "limit") -> Limit:
        """The same limit with every window in steps.

        Args:
            clock: How long a step is, as a clock's `law` says it: "300 s", or no duration.
            argument: What a message calls it.
        """
        expect(clock, str, "clock")
        expect(argument, str, "argument")
        if not any(window.timed for window in self.windows):
            return self
        size = step_of(clock)[1] if clock.endswith("s") else None
        if size is None:
            raise ArgumentError(
                f"{argument} must count its windows in steps where steps have no duration, "
                f"got {str(self)!r}"
            )
        counted = Limit(self.total)
        for window in self.windows:
            if window.timed and window.width % size:
                raise ArgumentError(
                    f"{argument} must have windows of whole steps of {size} s, got {str(self)!r}"
                )
            width = window.width // size if window.timed else window.width
            named = Window(window.amount, width, name=window.length)
            counted &= Limit(None, (named,))
        return counted

    def __and__(self, other: Limit) -> Limit:
        """Both limits at once."""
        totals = [total for total in (self.total, other.total) if total is not None]
        least: dict[tuple[bool, int], Window] = {}
        for window in (*self.windows, *other.windows):
            name = window.timed, window.width
            if name not in least or window.amount < least[name].amount:
                least[name] = window
        return Limit(min(totals, default=None), tuple(least.values()))

    @property
    def words(self) -> str:
        """The limit in a sentence: "24 in any 1 day, 100 in all"."""
        words = [f"{as_text(window.amount)} in any {window.length}" for window in self.windows]
        total = [] if self.total is None else [f"{as_text(self.total)} in all"]
        return ", ".join([*words, *total])

    def __str__(self) -> str:
        windows = [str(window) for window in self.windows]
        if self.total is None:
            return ", ".join(windows)
        return ", ".join([*windows, as_text(self.total) + (" in all" if windows else "")])


def _read_part(text: str, argument: str) -> Limit | None:
    found = _PART.fullmatch(text)
    if found is None:
        return None
    amount, count, unit, _ = found.groups()
    spent = as_epsilon(amount, argument)
    if unit is None:
        return Limit(spent)
    number = 1 if count is None else int(count)
    if number and unit in ("step", "steps"):
        return Limit(None, (Window(spent, number),))
    try:
        return Limit(None, (Window(spent, seconds(f"{number} {unit}", argument), timed=True),))
    except ArgumentError:
        return None


def begin_of(slot: int, clock: str, other: str) -> tuple[int, int]:
    """The earliest and the latest instant at which a slot may begin, as another clock counts.

    Clocks are given by their `law`. What they count, seconds or whole numbers, is the unit of
    the instants. Where one counts seconds and the other does not, nobody can tell.

    >>> begin_of(3, "600 s", "300 s"), begin_of(7, "300 s", "600 s"), begin_of(7, "5", "")
    ((1800, 1800), (2100, 2100), (35, 35))
    """
    (unit, size), (other_unit, _) = step_of(clock), step_of(other)
    return (slot * size, slot * size) if unit == other_unit else (-FOREVER, FOREVER)


def slot_from(instant: int, clock: str, other: str) -> int:
    """The first slot that begins at an instant or later, as another clock counts instants.

    >>> slot_from(1500, "600 s", "300 s"), slot_from(1800, "600 s", "300 s")
    (3, 3)
    """
    (unit, size), (other_unit, _) = step_of(clock), step_of(other)
    return -(-instant // size) if unit == other_unit else -FOREVER


def step_of(clock: str) -> tuple[str, int]:
    """What a clock of a `law` counts, seconds ("s") or numbers, and how many are a step."""
    number, _, unit = clock.partition(" ")
    return unit, int(number or 1)

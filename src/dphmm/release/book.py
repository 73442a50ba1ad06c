"""What a book is: where answers are written down before they leave.

Four things keep them: memory, a file, a database, and the folder of a Spark run. Each says
where people are, gives back what was said, and commits answers and standings together or not
at all. A book has no rules of its own: those are in `admission`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Protocol, runtime_checkable

from dphmm.cost.limit import begin_of, slot_from, step_of
from dphmm.errors import ArgumentError, MovedError, expect, expect_each
from dphmm.noise.randomness import KeyedRandomness, Randomness
from dphmm.release.admission import Place
from dphmm.release.answers import Answers
from dphmm.release.moment import Line, check_randomness
from dphmm.release.said import Record
from dphmm.release.standing import Standing

__all__ = [
    "Book",
    "KeyInUse",
    "Remembering",
    "check_adoption",
    "check_commit",
    "check_key",
    "fingerprint_of",
    "recall",
]


@dataclass(frozen=True)
class KeyInUse:
    """The key that a book's noise comes from, and since which slot.

    Args:
        fingerprint: The key's fingerprint; None for the operating system's noise.
        first: The first slot that it served, of the clock that was asked by then.
        rotated: Whether another key came before, so that earlier slots are closed to this one.
        clocks: The first slot of each clock that the key before had answered.
    """

    fingerprint: str | None
    first: int
    rotated: bool = False
    clocks: Mapping[str, int] = field(default_factory=dict)

    def opens(self, clock: str) -> int | None:
        """The first slot of a clock that may be answered now, if earlier ones were closed.

        Args:
            clock: How time is cut into slots. One that was not asked before goes on after the
                latest answer of any that it can be compared with.
        """
        if not self.rotated or not self.clocks:
            return self.first if self.rotated else None
        if clock in self.clocks:
            return self.clocks[clock]
        unit = step_of(clock)[0]
        last = [
            begin_of(first - 1, own, own)[0]
            for own, first in self.clocks.items()
            if step_of(own)[0] == unit
        ]
        return slot_from(max(last) + 1, clock, clock) if last else None


@runtime_checkable
class Book(Protocol):
    """Where answers are written down.

    A commit is durable when it returns, and everything in it is there or nothing is. `places`
    are what the answers were drawn from: if one of them has changed meanwhile, `MovedError` names
    its line and nothing is written.
    """

    def places(self, lines: Sequence[Line]) -> list[Place]:
        """Where some people are now.

        Args:
            lines: Who, and which question.
        """

    def unsaid(self, line: Line, after: int) -> Sequence[Record]:
        """The answers after a slot that the line's standing does not know of, in order.

        Args:
            line: Whose, and to which question.
            after: The slot of the standing.
        """

    def find(self, line: Line, times: Sequence[int]) -> dict[int, Record]:
        """What was said at some slots, as far as the book holds it.

        Args:
            line: About whom, and to which question.
            times: The slots.
        """

    def answers(self, line: Line, *, after: int | None = None) -> Sequence[Record]:
        """Everything that was said on a line, in order.

        Args:
            line: Whose, and to which question.
            after: Only what was said after this slot.
        """

    def adopted(self, line: Line) -> Standing | None:
        """Where a line stood when it went over to its present law; None if it has no other.

        Args:
            line: Whose, and to which question.
        """

    def commit(
        self,
        answers: Sequence[Answers],
        standings: Sequence[Standing],
        places: Sequence[Place],
    ) -> None:
        """Write answers and where their people stand now, all of it or nothing.

        Args:
            answers: What will be said.
            standings: Where its people stand then.
            places: For each standing, where its line was when the answers were drawn.
        """

    def key(self) -> KeyInUse | None:
        """The key that new answers must come from; None before the first answer."""

    def use_key(self, key: KeyInUse) -> None:
        """Write down which key serves from which slot.

        Args:
            key: Its fingerprint and its first slot.
        """


@runtime_checkable
class Remembering(Protocol):
    """A book that remembers where people were after its own last commit, and need not look."""

    def recall(self, line: Line) -> Place | None:
        """Where somebody was then; None if that is not known.

        Somebody else may have answered since: it serves for what is committed, which compares it,
        and for nothing else.

        Args:
            line: Who, and which question.
        """


def check_commit(
    answers: Sequence[Answers], standings: Sequence[Standing], places: Sequence[Place]
) -> None:
    """Refuse to commit anything but answers, and a place for each standing."""
    expect_each(answers, Answers, "answers")
    if len(expect_each(standings, Standing, "standings")) != len(
        expect_each(places, Place, "places")
    ):
        raise ArgumentError(
            f"places must be one for each standing, got {len(places)} for {len(standings)}"
        )


def check_adoption(before: Standing | None, standing: Standing) -> Standing:
    """Refuse to adopt a law from where a line no longer stands, or of somebody who was erased."""
    if before is None or before.time != standing.time:
        raise MovedError([standing.line])
    return before


def fingerprint_of(randomness: Randomness | None) -> str | None:
    """What a book keeps of a source of noise."""
    return randomness.fingerprint if isinstance(randomness, KeyedRandomness) else None


@cache
def _is_book(kind: type) -> bool:
    """Whether a class has all that a book has: asked before every answer, so once for each."""
    return issubclass(kind, Book)


@cache
def _can_recall(kind: type) -> bool:
    return issubclass(kind, Remembering)


def recall(book: Book, line: Line) -> Place | None:
    """Where a book remembers somebody to be, if it is one that does; see `Remembering`."""
    return book.recall(line) if _can_recall(type(book)) else None  # type: ignore[attr-defined]


def check_key(book: Book, randomness: Randomness | None) -> None:
    """Refuse to go on with another key than the one that a book was written with."""
    if not _is_book(type(book)):
        expect(book, Book, "book")
    check_randomness(randomness)
    used = book.key()
    if used is not None and used.fingerprint != fingerprint_of(randomness):
        raise ArgumentError(
            "key must be the one that this ledger's answers come from, got another or none; "
            "to change it from the next slot on: dphmm ledger rotate"
        )

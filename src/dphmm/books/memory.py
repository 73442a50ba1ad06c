"""A book that is gone with the program: for notebooks, experiments and tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial, wraps
from numbers import Integral
from typing import Any, NamedTuple, TypeVar, cast

from dphmm.cost.budget import Span
from dphmm.cost.limit import begin_of, slot_from
from dphmm.cost.sharing import Single, one_at_a_time
from dphmm.cost.totals import Totals
from dphmm.errors import MovedError, StoreError, expect, expect_each, expect_function
from dphmm.release.admission import Place
from dphmm.release.answers import Answers
from dphmm.release.book import KeyInUse, check_adoption, check_commit
from dphmm.release.moment import Line
from dphmm.release.said import Record
from dphmm.release.standing import Standing

__all__ = ["MemoryBook"]

Method = TypeVar("Method", bound=Callable[..., Any])


class _Change(NamedTuple):
    """What is written together."""

    records: Sequence[Record]
    standings: Sequence[Standing]
    adopted: Sequence[Standing] = ()


def when_whole(method: Method) -> Method:
    """The method of a book, for one thread after the other, and never of half a change.

    Whoever is stopped while writing (by Ctrl-C in a notebook, by a signal) leaves the change to
    the next one: half of it would be an answer without its price, or without its standing.
    """

    @one_at_a_time
    @wraps(method)
    def wait(self: Any, *arguments: Any, **options: Any) -> Any:
        self._finish()
        return method(self, *arguments, **options)

    return cast(Method, wait)


class MemoryBook(Single):
    """Answers and standings in memory; safe to share between threads.

    >>> MemoryBook().key() is None
    True
    """

    def __init__(self) -> None:
        self._standings: dict[Line, Standing] = {}
        self._adopted: dict[Line, Standing] = {}
        self._records: dict[Line, dict[int, Record]] = {}
        self._asked: dict[tuple[str, str], dict[Line, None]] = {}
        """The lines of each person about whom something was said."""
        self._clocks: dict[tuple[str, str], dict[Line, str]] = {}
        """Of each person the lines that stand somewhere, and what their slots are."""
        self._spent: dict[tuple[str, str], Totals] = {}
        self._versions: dict[tuple[str, str], int] = {}
        self._key: KeyInUse | None = None
        self._unwritten: _Change | None = None
        """What is being written, or was when somebody was stopped in it."""
        self._share("book")

    @property
    @when_whole
    def people(self) -> tuple[tuple[str, str], ...]:
        """Client and name of everybody about whom something was said, in order."""
        return tuple(self._spent)

    @when_whole
    def lines(self) -> list[Line]:
        """Every line that stands somewhere."""
        return sorted(self._standings)

    @when_whole
    def records(self, client: str, person: str) -> list[Record]:
        """Everything that was said about somebody, in order of time.

        Args:
            client: Whose person it is; empty outside a service.
            person: Their name.
        """
        expect(client, str, "client")
        expect(person, str, "person")
        lines = self._asked.get((client, person), ())
        found = [record for line in lines for record in self._records[line].values()]
        return sorted(found, key=lambda record: record.time)

    @when_whole
    def places(self, lines: Sequence[Line]) -> list[Place]:
        """See `Book`."""
        return [self._place(line) for line in expect_each(lines, Line, "lines")]

    def _place(self, line: Line) -> Place:
        person, said = line[:2], self._records.get(line, {})
        standing = self._find_standing(line)
        latest = None if standing is None else standing.time
        if said:
            last = next(reversed(said))
            latest = last if latest is None else max(last, latest)
        return Place(
            standing=standing,
            latest=latest,
            answered=said,
            spent=Fraction(self._spent[person].of(0)) if person in self._spent else Fraction(0),
            recent=partial(self._recent, person),
            opens=Place.opens if self._key is None else self._key.opens,
            known=person in self._spent,
            version=self._versions.get(person, 0),
            key=self._key,
        )

    def _said(self, line: Line) -> dict[int, Record]:
        expect(line, Line, "line")
        return self._records.get(line, {})

    def _find_standing(self, line: Line) -> Standing | None:
        return self._standings.get(line)

    @when_whole
    def _recent(self, person: tuple[str, str], clock: str, since: int) -> list[Span]:
        found = []
        for line, own in self._clocks.get(person, {}).items():
            earliest = slot_from(since, own, clock)
            for time, record in reversed(self._records.get(line, {}).items()):
                if time < earliest:
                    break
                found.append((*begin_of(time, own, clock), record.epsilon))
        return found

    @when_whole
    def unsaid(self, line: Line, after: int) -> Sequence[Record]:
        """See `Book`."""
        said = self._said(line)
        if not said or next(reversed(said)) <= after:
            return ()
        return [record for time, record in said.items() if time > after]

    @when_whole
    def answers(self, line: Line, *, after: int | None = None) -> list[Record]:
        """See `Book`."""
        said = self._said(line).values()
        return [record for record in said if after is None or record.time > after]

    @when_whole
    def find(self, line: Line, times: Sequence[int]) -> dict[int, Record]:
        """See `Book`."""
        times = expect_each(times, Integral, "times")
        said = self._said(line)
        return {time: said[time] for time in times if time in said}

    @when_whole
    def commit(
        self, answers: Sequence[Answers], standings: Sequence[Standing], places: Sequence[Place]
    ) -> None:
        """See `Book`."""
        self._unwritten = _Change(self._check(answers, standings, places), standings)
        self._finish()

    def _finish(self) -> None:
        """Write what is to be written; once more, if somebody was stopped in it."""
        change = self._unwritten
        if change is None:
            return
        for record in change.records:
            self._keep(record)
        self._stand(change.standings)
        for standing in change.adopted:
            self._adopted[standing.line] = standing
        self._unwritten = None

    def _check(
        self, answers: Sequence[Answers], standings: Sequence[Standing], places: Sequence[Place]
    ) -> list[Record]:
        """The answers one by one, if nobody has moved, and none is for a moment that has one."""
        check_commit(answers, standings, places)
        moved = [
            standing.line
            for standing, place in zip(standings, places, strict=True)
            if self._versions.get(standing.line[:2], 0) != place.version
            or place.key not in (None, self._key)
        ]
        if moved:
            raise MovedError(moved)
        records = [record for table in answers for record in table.records()]
        for record in records:
            if record.time in self._records.get(record.line, ()):
                raise _second_answer()
        if len({(record.line, record.time) for record in records}) < len(records):
            raise _second_answer()
        return records

    def _keep(self, record: Record) -> None:
        person = record.line[:2]
        said = self._records.setdefault(record.line, {})
        if not said:
            self._asked.setdefault(person, {})[record.line] = None
        if record.time in said:
            if said[record.time] is record:
                return  # by who was stopped
            raise _second_answer()
        if person not in self._spent:
            self._spent[person] = Totals([Fraction(0)])
        # Paid first: who is stopped in between has paid for nothing, and no answer is free.
        self._spent[person].add(0, record.epsilon)
        said[record.time] = record

    def _stand(self, standings: Sequence[Standing]) -> None:
        for standing in standings:
            person = standing.line[:2]
            self._standings[standing.line] = standing
            self._clocks.setdefault(person, {})[standing.line] = standing.clock
            self._spent.setdefault(person, Totals([Fraction(0)]))
            self._versions[person] = self._versions.get(person, 0) + 1

    @when_whole
    def adopt(self, standing: Standing) -> None:
        """Let a line go on under another law, from where the standing says.

        Args:
            standing: Where the line stands, under the other law.
        """
        expect(standing, Standing, "standing")
        check_adoption(self._find_standing(standing.line), standing)
        self._unwritten = _Change((), [standing], [standing])
        self._finish()

    @when_whole
    def adopted(self, line: Line) -> Standing | None:
        """See `Book`."""
        expect(line, Line, "line")
        return self._adopted.get(line)

    def key(self) -> KeyInUse | None:
        """See `Book`."""
        return self._key

    @when_whole
    def use_key(self, key: KeyInUse) -> None:
        """See `Book`; of two threads that begin at once the first one's key stays."""
        expect(key, KeyInUse, "key")
        if self._key is None:
            self._write_key(key)

    def _write_key(self, key: KeyInUse) -> None:
        self._key = key

    @when_whole
    def rotate(self, make: Callable[[KeyInUse | None, dict[str, int]], KeyInUse]) -> KeyInUse:
        """Write down another key in the place of the present one; nothing is answered meanwhile.

        Args:
            make: The other key, for the present one and the last slot of each clock.
        """
        expect_function(make, "make")
        key = make(self._key, self.latest())
        self._write_key(key)
        return key

    def __repr__(self) -> str:
        answers = sum(len(said) for said in self._records.values())
        return f"{type(self).__name__}({len(self._spent)} people, {answers} answers)"

    @when_whole
    def latest(self) -> dict[str, int]:
        """The last slot of each clock that was answered for anybody."""
        found: dict[str, int] = {}
        for line, said in self._records.items():
            if said:
                clock, last = self._clocks.get(line[:2], {}).get(line, ""), next(reversed(said))
                found[clock] = max(last, found.get(clock, last))
        return found


def _second_answer() -> StoreError:
    return StoreError("a moment must be answered once, got a second answer for one")

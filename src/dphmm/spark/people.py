"""People's rows in, their answers and where they stand out: what a worker computes.

Nothing here knows Spark. `Rows` holds true states and is used up by the release; `Standing`
and `Answers` are public.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

import numpy as np

from dphmm._types import FloatArray, IntArray, Mask, ObjectArray
from dphmm.books.releasing import LONGEST_GAP
from dphmm.chain.belief import Belief
from dphmm.cost.ledger import Ledger
from dphmm.errors import DataError
from dphmm.release.batch import Batch
from dphmm.scenario.scenario import Scenario
from dphmm.spark.sessions import over_budget

__all__ = [
    "Answers",
    "Rows",
    "Standing",
    "check",
    "dropped",
    "release_alone",
    "release_together",
    "renewed",
]


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """One person's rows in order of time; the only thing here that holds true states."""

    person: str
    times: ObjectArray
    """As written in the table."""
    slots: IntArray
    states: IntArray

    def __len__(self) -> int:
        return len(self.slots)

    def at(self, kept: IntArray | slice) -> Rows:
        """Some of the rows."""
        return Rows(self.person, self.times[kept], self.slots[kept], self.states[kept])

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """One person's rows from several batches."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            parts[0].person,
            np.concatenate([rows.times for rows in parts]),
            np.concatenate([rows.slots for rows in parts]),
            np.concatenate([rows.states for rows in parts]),
        )


@dataclass(frozen=True, eq=False)
class Standing:
    """Where a person's releases stand: all that a later run needs, and nothing secret."""

    person: str
    base: int
    """The slot of step 0."""
    step: int
    belief: Belief
    spent: Fraction = Fraction(0)
    constrained: Fraction | float = Fraction(0)
    late: int = 0
    """Rows that came after a later step was answered."""
    repeated: int = 0
    """Further rows for a step that was answered."""
    refused: int = 0
    """Rows that the limit or the clock did not allow; only a stream goes on after one."""


@dataclass(frozen=True, eq=False)
class Answers:
    """What is said to some people, a row each; everything in it may be shown to anybody."""

    people: ObjectArray
    times: ObjectArray
    slots: IntArray
    steps: IntArray
    answer: FloatArray
    estimate: FloatArray
    lattice: ObjectArray
    constrained: ObjectArray

    def __len__(self) -> int:
        return len(self.slots)


def renewed(scenario: Scenario, standing: Standing | None, rows: Rows) -> tuple[Standing, Rows]:
    """Where a person stands and the rows that can be answered; the others are counted.

    The rows are in order, so those that come late or twice are so whatever the batches were.
    """
    if standing is None:
        first = scenario.settings.clock.first_slot
        base = int(rows.slots[0]) - 1 if first is None else first
        standing = Standing(rows.person, base, 0, scenario.start)
    # Most people's rows are all new, and these lines run once for everybody.
    slots = rows.slots
    if slots[0] > standing.base + standing.step and (slots[1:] > slots[:-1]).all():
        return standing, rows
    late, repeated = dropped(standing, slots)
    counted = replace(
        standing,
        late=standing.late + int(late.sum()),
        repeated=standing.repeated + int(repeated.sum()),
    )
    return counted, rows.at(np.flatnonzero(~late & ~repeated))


def dropped(standing: Standing, slots: IntArray) -> tuple[Mask, Mask]:
    """Which of some rows in order come late, and which come again."""
    latest = standing.base + standing.step
    late = (slots < latest) | (slots <= standing.base)
    repeated = (slots == latest) | (np.diff(slots, prepend=latest) == 0)
    return late, repeated & ~late


def check(scenario: Scenario, standing: Standing, rows: Rows, name: str = "table") -> None:
    """Refuse what the local engine refuses, before anything is drawn."""
    latest = standing.base + standing.step
    far = len(rows) > 0 and rows.slots[-1] - latest > LONGEST_GAP
    if far and np.diff(rows.slots, prepend=latest).max() > LONGEST_GAP:
        raise DataError(
            f"{name}: time must be within {LONGEST_GAP} steps of the one before; check the "
            f"scenario's time step and origin"
        )
    limit, price = scenario.settings.limit, scenario.settings.epsilon
    if limit is not None and standing.spent + len(rows) * price > limit:
        raise over_budget(standing.spent, len(rows) * price, limit - standing.spent)


def release_alone(
    scenario: Scenario, key: bytes, standing: Standing, rows: Rows
) -> tuple[Standing, Answers]:
    """One person's answers, by a stream that is taken up where it stands."""
    stream = scenario.stream(standing.person, key, Ledger())
    stream.time = standing.step
    stream.prior = stream.posterior = standing.belief
    said = []
    for slot, state in zip(rows.slots.tolist(), rows.states.tolist(), strict=True):
        stream.skip(slot - standing.base - stream.time - 1)
        said.append(stream.release(state))
    entries = stream.ledger.entries
    dimension = scenario.query.dimension
    lattice: ObjectArray = np.empty((len(said), dimension), dtype=object)
    for row, release in enumerate(said):
        lattice[row] = release.lattice
    answers = Answers(
        people=np.full(len(said), standing.person, dtype=object),
        times=rows.times,
        slots=rows.slots,
        steps=rows.slots - standing.base,
        answer=np.array([release.answer for release in said]).reshape(-1, dimension),
        estimate=np.array([release.estimate for release in said]).reshape(-1, dimension),
        lattice=lattice,
        constrained=np.array([str(entry.constrained) for entry in entries], dtype=object),
    )
    return _moved_on(standing, stream.time, stream.posterior, stream.ledger), answers


def _moved_on(standing: Standing, step: int, belief: Belief, new: Ledger) -> Standing:
    return replace(
        standing,
        step=step,
        belief=belief,
        spent=standing.spent + new.spent,
        constrained=standing.constrained + new.constrained,
    )


def release_together(
    scenario: Scenario, key: bytes, people: Sequence[tuple[Standing, Rows]]
) -> tuple[list[Standing], Answers]:
    """The answers of people who stand at the same step, by a batch; the same as one by one."""
    standings = [standing for standing, _ in people]
    price = scenario.settings.epsilon
    batch = Batch(
        scenario.model,
        scenario.plan,
        epsilon=price,
        people=[standing.person for standing in standings],
        start=[standing.belief for standing in standings],
        time=standings[0].step,
        scenario=scenario.name,
        key=key,
        threads=1,
    )
    counts = np.array([len(rows) for _, rows in people])
    who = np.repeat(np.arange(len(people)), counts)
    steps = np.concatenate([rows.slots - standing.base for standing, rows in people])
    order = np.lexsort((who, steps))
    who, steps = who[order], steps[order]
    true = np.concatenate([rows.states for _, rows in people])[order]
    ends = np.array([rows.slots[-1] - standing.base for standing, rows in people])
    bounds = np.flatnonzero(np.diff(steps, prepend=steps[0] - 1, append=steps[-1] + 1))
    constrained = np.empty(len(people), dtype=object)
    totals = _Totals([standing.constrained for standing in standings])
    said, texts = [], np.empty(len(who), dtype=object)
    moved = list(standings)
    for first, end in pairwise(bounds.tolist()):
        step = int(steps[first])
        while batch.time < step - 1:
            batch.skip()
        speaking = who[first:end]
        states = np.zeros(len(people), dtype=np.int64)
        states[speaking] = true[first:end]
        active = np.zeros(len(people), dtype=bool)
        active[speaking] = True
        release = batch.release(states, active=active)
        said.append(release)
        for charge in release.charges:
            constrained[charge.people] = str(charge.entry.constrained)
            totals.add(charge.people, charge.entry.constrained)
        texts[first:end] = constrained[speaking]
        for person in speaking[ends[speaking] == step].tolist():
            before = standings[person]
            moved[person] = Standing(
                person=before.person,
                base=before.base,
                step=step,
                belief=batch.belief(person),
                spent=before.spent + int(counts[person]) * price,
                constrained=totals.of(person),
                late=before.late,
                repeated=before.repeated,
                refused=before.refused,
            )
    names = np.array([standing.person for standing in standings], dtype=object)
    answers = Answers(
        people=names[who],
        times=np.concatenate([rows.times for _, rows in people])[order],
        slots=np.concatenate([rows.slots for _, rows in people])[order],
        steps=steps,
        answer=np.concatenate([release.answer for release in said]),
        estimate=np.concatenate([release.estimate for release in said]),
        lattice=np.concatenate([release.lattice for release in said]),
        constrained=texts,
    )
    return moved, answers


class _Totals:
    """Sums of fractions for many people; equal sums are added once."""

    def __init__(self, sums: Sequence[Fraction | float]) -> None:
        self._sums = list(dict.fromkeys(sums))
        numbers = {total: number for number, total in enumerate(self._sums)}
        self._number_of = np.array([numbers[total] for total in sums])

    def add(self, people: IntArray, price: Fraction | float) -> None:
        met, places = np.unique(self._number_of[people], return_inverse=True)
        self._number_of[people] = places + len(self._sums)
        self._sums += [self._sums[number] + price for number in met.tolist()]

    def of(self, person: int) -> Fraction | float:
        return self._sums[int(self._number_of[person])]

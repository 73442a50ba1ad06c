"""Noise for admitted rows: by a `Batch` for many people, by a `Stream` for a few.

Both give the same answers under a key. People whose rows end after about as many steps go
together, so that nobody is carried far beyond their own last row; the beliefs of one group
take at most 256 MiB.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

import numpy as np

from dphmm._types import IntArray, Mask
from dphmm.noise.randomness import Randomness
from dphmm.release.admission import Place
from dphmm.release.answers import Answers
from dphmm.release.moment import Line
from dphmm.release.standing import Standing
from dphmm.release.terms import Terms

__all__ = ["Work", "draw"]

FEWEST_PEOPLE = 16
FEWEST_ROWS = 64
"""Groups with fewer are not worth a batch."""

ROOM = 2**28
"""Bytes for the beliefs of one group."""


@dataclass(eq=False, repr=False)
class Work:
    """One person's admitted rows in order of time; it holds true states, so it is never printed."""

    terms: Terms
    line: Line
    place: Place
    times: IntArray
    states: IntArray
    prices: Sequence[Fraction] | None
    rows: IntArray
    """Which rows of the ask they are; -1 for a step that has none."""
    spoken: Mask
    """At which of them something is said; at the others the belief moves on."""
    answers: Answers | None = field(default=None)
    span: tuple[int, int] = (0, 0)
    """The rows of `answers` that are this person's."""
    standing: Standing | None = field(default=None)
    """Where the person stands afterwards."""

    @cached_property
    def before(self) -> Standing:
        """Where the person stands before the first row."""
        if self.place.standing is not None:
            return self.place.standing
        return self.terms.begin(self.line.client, self.line.person, int(self.times[0]))

    @cached_property
    def steps(self) -> int:
        """How many steps the last row is away."""
        return int(self.times[-1]) - self.before.time


def draw(works: Sequence[Work], source: Randomness) -> list[Answers]:
    """The answers to all rows, in a table for each scenario; nothing is written down yet."""
    by_terms: dict[tuple[int, str], list[Work]] = {}
    for work in works:
        by_terms.setdefault((id(work.terms), work.line.client), []).append(work)
    tables = []
    for some in by_terms.values():
        terms = some[0].terms
        lines = [line for work in some for line in [work.line] * len(work.times)]
        times = np.concatenate([work.times for work in some]) if some[1:] else some[0].times
        table = Answers(terms.plan.query, terms.law, lines, times, source.private)
        first = 0
        for work in some:
            work.answers, work.span = table, (first, first + len(work.times))
            first += len(work.times)
        alone, groups = _grouped(terms, some)
        for work in alone:
            _draw_alone(work, source)
        for group in groups:
            _draw_together(terms, group, source)
        if terms.limit is not None and terms.limit.width:
            for work in some:
                _remember(work, terms.limit.width)
        tables.append(table)
    return tables


def _remember(work: Work, width: int) -> None:
    """Let a standing hold what the limit's windows will count, for books without answers."""
    assert work.standing is not None
    assert work.answers is not None
    prices = work.answers.epsilons[slice(*work.span)]
    new = [(t, price) for t, price in zip(work.times.tolist(), prices, strict=True) if price]
    work.standing = work.standing.remember([*work.before.recent, *new], width)


def _grouped(terms: Terms, works: list[Work]) -> tuple[list[Work], list[list[Work]]]:
    """Those who are drawn one by one, and those who go together, the longest walks first."""
    if terms.plan.delta or len(works) < FEWEST_PEOPLE:
        return works, []
    together = [work for work in works if work.prices is None]
    alone = [work for work in works if work.prices is not None]
    period = terms.model.varies
    room = max(FEWEST_PEOPLE, ROOM // (8 * terms.model.n_states))
    groups: list[list[Work]] = []
    for work in sorted(together, key=lambda work: (work.before.time * period, -work.steps)):
        group = groups[-1] if groups else []
        first = group[0] if group else work
        apart = period and first.before.time != work.before.time
        if not group or len(group) >= room or 2 * work.steps < first.steps or apart:
            groups.append(group := [])
        group.append(work)
    worthwhile = []
    for group in groups:
        rows = sum(len(work.times) for work in group)
        if len(group) >= FEWEST_PEOPLE and rows >= FEWEST_ROWS:
            worthwhile.append(group)
        else:
            alone += group
    return alone, worthwhile


def _draw_alone(work: Work, source: Randomness) -> None:
    """One person's answers, by a stream that is taken up where it stands."""
    stream = work.terms.stream(work.before, randomness=source)
    assert work.answers is not None
    rows = zip(work.times.tolist(), work.states.tolist(), work.spoken.tolist(), strict=True)
    for place, (time, state, spoken) in enumerate(rows):
        row = work.span[0] + place
        if (gap := time - stream.time - 1) > 0:
            stream.skip(gap)
        if not spoken:
            work.answers.pass_over(np.array([row]), stream.repeat(()).estimate)
            continue
        release = stream.release(state, None if work.prices is None else work.prices[place])
        work.answers.fill_row(row, release, stream.said[-1].step.constrained(release.epsilon))
    work.standing = stream.standing


def _draw_together(terms: Terms, group: list[Work], source: Randomness) -> None:
    """The answers of many people, by a batch; the same as one by one."""
    befores = [work.before for work in group]
    batch = terms.batch(befores, randomness=source)
    table = group[0].answers
    assert table is not None
    people = np.repeat(np.arange(len(group)), [len(work.times) for work in group])
    steps = np.concatenate(
        [work.times - before.time for work, before in zip(group, befores, strict=True)]
    )
    rows = np.concatenate([np.arange(*work.span) for work in group])
    states = np.concatenate([work.states for work in group])
    spoken = np.concatenate([work.spoken for work in group])
    last = np.array([work.steps for work in group])
    order = np.lexsort((people, steps))
    people, steps, rows, states, spoken = (
        column[order] for column in (people, steps, rows, states, spoken)
    )
    bounds = np.flatnonzero(np.diff(steps, prepend=-1, append=-1))
    now = 0
    for first, end in pairwise(bounds.tolist()):
        for _ in range(int(steps[first]) - now - 1):
            batch.skip()
        now = int(steps[first])
        asking, says = people[first:end], spoken[first:end]
        true_states = np.zeros(len(group), dtype=np.int64)
        true_states[asking] = states[first:end]
        active = np.zeros(len(group), dtype=bool)
        active[asking] = says
        release = batch.release(true_states, active=active)
        for charge in release.charges:
            found = np.searchsorted(release.people, charge.people)
            table.fill(
                rows[first:end][says][found],
                release.lattice[found],
                release.estimate[found],
                charge.epsilon,
                charge.constrained,
                charge.statement,
            )
        if not says.all():
            table.pass_over(rows[first:end][~says], batch._estimates_of(asking[~says]))
        finished = asking[last[asking] == now]
        for person, standing in zip(finished.tolist(), batch.standings(finished), strict=True):
            group[person].standing = standing

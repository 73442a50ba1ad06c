"""How to spend a budget: the interval, the price and the noise whose estimates are closest.

A stay that is told at every step costs as many prices as it has steps, while its estimate
sharpens like their root; people who move far between two answers are lost in between. Where the
best interval lies depends on how people move, so it is looked for on people.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import inf, log
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dphmm.chain.estimates import Estimate, check_estimate
from dphmm.cost.limit import Limit, Window
from dphmm.errors import ArgumentError, expect, expect_each, expect_function, expect_one_of
from dphmm.geometry.exact import Exact, as_text, whole
from dphmm.noise.mechanism import MECHANISMS
from dphmm.scenario.designing import wanted_error
from dphmm.scenario.scenario import Scenario
from dphmm.scenario.spending import (
    Person,
    Spending,
    intervals,
    read_person,
    schedule_of,
    spend,
    walk_people,
)

__all__ = ["ERRORS", "PEOPLE", "BudgetDesign", "ErrorOf", "find_budget", "find_schedule"]

ErrorOf: TypeAlias = Literal["hindsight", "now"]
"""Which estimate's error counts: given all answers, or those until then."""

Tracks: TypeAlias = "Iterable[tuple[ArrayLike, ArrayLike]]"

_Ways: TypeAlias = tuple[Spending, ...]

ERRORS = ("hindsight", "now")
NOISES = ("knorm", "staircase")
PEOPLE = 12

WORTH = 0.98
"""Other noise than K-norm is recommended below this part of K-norm's error: under a staircase
pairs that are nearer than linked ones lose more."""

HOPELESS = 1.5
"""Longer intervals are not tried once the error is so many times the least."""

ROUND = (10, 12, 15, 20, 25, 30, 40, 50, 60, 80)
"""The budgets that are tried, times powers of ten."""

LEAST, MOST = Fraction(1, 100), 10
"""The least budget that is tried in a window, and the most for each of its steps."""

SCOUTS = 3
"""Of so many people one is asked first, when a budget is looked for."""

USUAL = 2
"""The price of an answer at which the search for an interval begins."""

BESIDE = 2
"""An interval is the best once so many shorter and so many longer ones are worse."""


@dataclass(frozen=True)
class BudgetDesign:
    """The ways to spend a budget that were compared, and the recommended one.

    Args:
        budget: What may be spent, with its window.
        ways: The ways, the most frequent answers first.
        error_of: Which error decided: that of estimates "now", or in "hindsight".
        people: How many people they were compared on.
        simulated: Whether those were walks of the model.
        tried: If a budget was looked for, each that was tried, its best way and that one's error.
    """

    budget: Limit
    ways: tuple[Spending, ...]
    error_of: ErrorOf
    people: int
    simulated: bool
    tried: tuple[tuple[Fraction, Spending, float], ...] = ()

    def error(self, way: Spending) -> float:
        """The error to expect of a way: the one that counts, evened out with those beside it.

        The least of many means over few people is less than it should be, so the next shorter and
        longer interval with the same noise have half a say.

        Args:
            way: One of the ways.
        """
        expect(way, Spending, "way")
        alike = [one for one in self.ways if one.mechanism == way.mechanism]
        alike = [one for one in alike if one.estimate == alike[0].estimate]
        place = [one.every for one in alike].index(way.every)
        near = [self.measured(one) for one in alike[max(0, place - 1) : place + 2]]
        if len(near) < 3 or min(near) == 0 or place == 0:
            return self.measured(way)
        even = (near[0] * near[1] ** 2 * near[2]) ** 0.25
        # Another estimate stands for the same beliefs, and is as much closer everywhere.
        return even * self.measured(way) / near[1]

    def measured(self, way: Spending) -> float:
        """The error of a way that counts, as it was on these people.

        Args:
            way: One of the ways.
        """
        expect(way, Spending, "way")
        return way.now if self.error_of == "now" else way.hindsight

    @property
    def best(self) -> Spending:
        """The recommended way: the closest, but K-norm noise where it is nearly as close."""
        closest = min(self.ways, key=self.error)
        plain = [way for way in self.ways if way.mechanism == NOISES[0]]
        usual = min(plain, key=self.error, default=closest)
        return usual if WORTH * self.error(usual) <= self.error(closest) else closest

    @property
    def whom(self) -> str:
        """On whom the errors are expected, in words."""
        if self.simulated:
            return f"{self.people} simulated people"
        return f"{self.people} people of the tracks given"

    def adopt(self, scenario: Scenario) -> Scenario:
        """The scenario with the recommended way written into it.

        A limit in all stays, and so does whether gaps are answered.

        Args:
            scenario: The one that was designed for.
        """
        expect(scenario, Scenario, "scenario")
        best, limit, before = self.best, scenario.settings.limit, scenario.settings.when
        when = schedule_of(best.every)
        return scenario.replace(
            epsilon=best.epsilon,
            mechanism=best.mechanism,
            gamma=None,
            limit=self.budget & Limit(None if limit is None else limit.total),
            when=when if before is None else replace(when, gaps=before.gaps),
            estimate=best.estimate,
        )


def find_schedule(
    scenario: Scenario,
    budget: Exact | Limit,
    *,
    tracks: Tracks | None = None,
    people: int = PEOPLE,
    mechanisms: Sequence[str] = NOISES,
    error_of: ErrorOf = "hindsight",
    estimate: Estimate | None = None,
    seed: int = 0,
    done: Callable[[int], object] | None = None,
) -> BudgetDesign:
    """How often to speak, how loudly and with which noise, so that estimates are closest.

    Every way spends the whole budget of a window. What is expected is measured on people: on
    walks of the model, who move more regularly than people do, or better on tracks.

    Args:
        scenario: What is released; its own price, noise, limit and schedule do not matter.
        budget: What may be spent, with a window: "24 per 1 day".
        tracks: People who may be looked at, a pair of slots and of states each. What is found is
            a function of them, so they must be public. Walks of the model by default.
        people: On how many people to compare.
        mechanisms: The kinds of noise to compare.
        error_of: Which error decides: that of estimates "now", or in "hindsight".
        estimate: What stands for a belief: its "mean" or its "median"; by default the mean, and
            for the best way whichever is closer.
        seed: That of the people and of the noise.
        done: Hears how many more people were followed.

    >>> from dphmm import MarkovModel, PolicyGraph
    >>> line = [[0.8, 0.2, 0, 0], [0.1, 0.8, 0.1, 0], [0, 0.1, 0.8, 0.1], [0, 0, 0.2, 0.8]]
    >>> town = Scenario([[0], [1], [2], [3]], MarkovModel(line), PolicyGraph.complete(4), epsilon=1)
    >>> found = find_schedule(town, "2 per 8 steps", people=4)
    >>> [(way.every, str(way.epsilon), way.mechanism) for way in found.ways][:3]
    [(1, '1/4', 'knorm'), (1, '1/4', 'staircase'), (2, '1/2', 'knorm')]
    >>> found.adopt(town).settings.limit.words
    '2 in any 8 steps'
    """
    return _Trial(scenario, tracks, people, mechanisms, error_of, estimate, seed, done).of(budget)


def find_budget(
    scenario: Scenario, error: Exact, per: str = "1 day", **options: Any
) -> BudgetDesign | None:
    """The smallest round budget whose best way keeps an error; None if none does.

    A third of the people look for it, at the intervals around the best one. It keeps the error on
    everybody, and the next smaller one does not.

    Args:
        scenario: What is released.
        error: The largest mean distance of an estimate, in the units of the query.
        per: The window of the budget: "1 day", or "288 steps".
        options: The other arguments of `find_schedule`.
    """
    wanted, trial = wanted_error(error), _Trial(scenario, **options)
    scouts = trial.scouts()
    most = MOST * trial.window(f"1 per {per}", "per").width
    powers = [Fraction(10) ** power for power in range(-3, 9)]
    rounds = [digit * power for power in powers for digit in ROUND]
    rounds = [amount for amount in rounds if LEAST <= amount <= most]
    asked: dict[int, BudgetDesign] = {}
    found: dict[int, BudgetDesign] = {}
    # Of these budgets the first is too small and the last is enough, as far as is known.
    small, enough, harder = -1, len(rounds), 1.0

    def seems_enough(place: int) -> bool:
        if place not in asked:
            asked[place] = scouts.near(f"{as_text(rounds[place])} per {per}")
        return harder * asked[place].error(asked[place].best) <= wanted

    while small + 1 < enough:
        between = range(small + 1, enough - 1)
        place = small + 1 + bisect_left(between, True, key=seems_enough)
        # The scouts find places and intervals; whether a budget is enough is for all to say.
        seems_enough(place)
        scouted = asked[place]
        one = found[place] = trial.near(str(scouted.budget), scouted.best.every)
        if one.error(one.best) <= wanted:
            enough = place
        else:
            small = place
        # People are about as much harder to follow than the scouts at every budget.
        if expected := scouted.error(scouted.best):
            harder = one.error(one.best) / expected
    if enough == len(rounds):
        return None
    best = {one: found[one].best for one in sorted(found)}
    tried = tuple((rounds[one], way, found[one].error(way)) for one, way in best.items())
    return replace(found[enough], tried=tried)


@dataclass
class _Trial:
    """People to compare ways on; the arguments are those of `find_schedule`."""

    scenario: Scenario
    tracks: Tracks | None = None
    people: int = PEOPLE
    mechanisms: Sequence[str] = NOISES
    error_of: ErrorOf = "hindsight"
    estimate: Estimate | None = None
    seed: int = 0
    done: Callable[[int], object] | None = None

    def __post_init__(self) -> None:
        expect(self.scenario, Scenario, "scenario")
        whole(self.people, "people", 1)
        whole(self.seed, "seed")
        if self.done is not None:
            expect_function(self.done, "done")
        if self.estimate is not None:
            check_estimate(self.estimate)
        expect_one_of(self.error_of, ERRORS, "error_of")
        named = expect_each(self.mechanisms, str, "mechanisms")
        if not named:
            raise ArgumentError("mechanisms must name at least one, got none")
        for mechanism in named:
            expect_one_of(mechanism, MECHANISMS, "each of mechanisms")
        self._given = None if self.tracks is None else self._chosen(self.tracks)

    def window(self, budget: Exact | Limit, argument: str = "budget") -> Window:
        """The one window of a budget, in steps."""
        limit = Limit.read(budget, argument)
        if limit.total is not None or len(limit.windows) != 1:
            raise ArgumentError(
                f"{argument} must have one window and nothing beside it, like '24 per 1 day', "
                f"got {str(limit)!r}"
            )
        return limit.in_steps(self.scenario.settings.clock.law, argument).windows[0]

    def of(self, budget: Exact | Limit) -> BudgetDesign:
        """The ways to spend a budget, from the shortest interval on while there is hope."""
        found, attempt = self._begin(budget)
        least = inf
        for every in intervals(self.window(budget).width):
            ways = attempt(every)
            found = replace(found, ways=(*found.ways, *ways))
            here = min(found.measured(way) for way in ways)
            least = min(least, here)
            if here > HOPELESS * least:
                break
        return self._with_medians(found, attempt)

    def near(self, budget: Exact | Limit, every: int | None = None) -> BudgetDesign:
        """The ways to spend a budget with the best interval and those beside it.

        The search goes downhill from an interval, by default that of answers at a usual price.
        """
        found, attempt = self._begin(budget)
        window = self.window(budget)
        tries = list(intervals(window.width))
        wanted = every or USUAL * window.width / window.amount
        place = min(range(len(tries)), key=lambda one: abs(log(tries[one] / wanted)))
        tried: dict[int, tuple[Spending, ...]] = {}
        while True:
            beside = range(max(0, place - BESIDE), min(len(tries), place + BESIDE + 1))
            tried |= {one: attempt(tries[one]) for one in beside if one not in tried}
            found = replace(found, ways=tuple(way for one in sorted(tried) for way in tried[one]))
            least = min(tried, key=lambda one: min(found.measured(way) for way in tried[one]))
            if least == place:
                return self._with_medians(found, attempt)
            place = least

    def scouts(self) -> _Trial:
        """The same on some of the people."""
        fewer = replace(self, people=-(-self.people // SCOUTS), tracks=None)
        fewer._given = None if self._given is None else self._given[: fewer.people]
        return fewer

    def _begin(self, budget: Exact | Limit) -> tuple[BudgetDesign, Callable[..., _Ways]]:
        """No ways yet, and how to try all kinds of noise with an interval."""
        window, people = self.window(budget), self._given
        if people is None:
            people = walk_people(self.scenario, window.width, self.people, self.seed)
        one = partial(
            spend, self.scenario, window, people=people, seed=self.seed,
            done=self.done or (lambda count: None),
        )  # fmt: skip

        def attempt(
            every: int, noises: Sequence[str] = tuple(self.mechanisms), estimate: Any = None
        ) -> _Ways:
            kind = estimate or self.estimate or "mean"
            return tuple(one(every, noise, kind) for noise in noises)

        limit, simulated = Limit.read(budget), self._given is None
        return BudgetDesign(limit, (), self.error_of, len(people), simulated), attempt

    def _with_medians(self, found: BudgetDesign, attempt: Callable[..., _Ways]) -> BudgetDesign:
        """Both estimates stand for the same beliefs, so only the best way is tried again."""
        if self.estimate is not None:
            return found
        best = found.best
        place = 1 + found.ways.index(best)
        again = attempt(best.every, (best.mechanism,), "median")
        return replace(found, ways=(*found.ways[:place], *again, *found.ways[place:]))

    def _chosen(self, tracks: Tracks) -> list[Person]:
        """Some of the people given."""
        pairs = expect_each(tracks, Sequence, "tracks")
        if any(len(pair) != 2 for pair in pairs):
            raise ArgumentError("tracks must be pairs of slots and states, as many of each")
        n_states = len(self.scenario.states)
        given = [read_person(slots, states, n_states) for slots, states in pairs]
        given = [person for person in given if len(person.slots)]
        if not given:
            raise ArgumentError("tracks must hold at least one person, got none")
        order = np.random.default_rng(self.seed).permutation(len(given))[: self.people]
        return [given[number] for number in order.tolist()]

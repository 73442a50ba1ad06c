"""A synthetic city: homes, workplaces, roads, a river with bridges, and people with habits.

The map is fixed by its size; the people and their days come from the generator. Time is in
minutes since Monday 00:00. Everybody moves along roads, one cell after the next, so where a
person is next is mostly decided by where they are: a first-order chain is informative, and
still far from the truth, which has homes, appointments and a time of day.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from dphmm._types import FloatArray, IntArray, Mask
from dphmm.errors import ArgumentError, require
from dphmm.tables.datasets.tracks import Trip
from dphmm.tables.geo import Grid, LocalPlane

if TYPE_CHECKING:
    import polars as pl

__all__ = ["City", "synthetic_city"]

_DAY = 24 * 60
_STREET_MINUTES = 2.0
_FAST_ROAD_MINUTES = 0.8


@dataclass(frozen=True, eq=False)
class City:
    """A map and where everybody was at every step.

    `categories` and `fast_road` describe states; `homes` and `workplaces` people (a workplace
    of -1: works nowhere); `states[p, t]` is where person p was at minute `times[t]`.
    """

    plane: LocalPlane
    grid: Grid
    categories: tuple[str, ...] = field(repr=False)
    fast_road: Mask = field(repr=False)
    step_minutes: int
    homes: IntArray = field(repr=False)
    workplaces: IntArray = field(repr=False)
    states: IntArray = field(repr=False)

    @property
    def people(self) -> int:
        """How many people live here."""
        return len(self.states)

    @property
    def names(self) -> tuple[str, ...]:
        """What trips and tables call each person, in the order of `states`."""
        width = len(str(self.people - 1))
        return tuple(f"{person:0{width}d}" for person in range(self.people))

    @property
    def times(self) -> IntArray:
        """Minutes since Monday 00:00 of every step."""
        return self.step_minutes * np.arange(self.states.shape[1], dtype=np.int64)

    @property
    def sequences(self) -> list[IntArray]:
        """Every person's states, whole, as `MarkovModel.fit` takes them."""
        return list(self.states)

    def days(self, start_hour: float = 0, end_hour: float = 24) -> list[Trip]:
        """Every person's every day, or the same hours of it, as a trip each."""
        steps_per_day = _DAY // self.step_minutes
        first = round(start_hour * 60 / self.step_minutes)
        last = round(end_hour * 60 / self.step_minutes)
        if not 0 <= first < last <= steps_per_day:
            raise ArgumentError(
                f"start_hour and end_hour must lie in order within a day, "
                f"got {start_hour!r}, {end_hour!r}"
            )
        times = self.times
        return [
            Trip(name, times[day + first : day + last], row[day + first : day + last])
            for name, row in zip(self.names, self.states, strict=True)
            for day in range(0, len(row), steps_per_day)
        ]

    def trips(self) -> list[Trip]:
        """Every journey from one stay to the next, both ends included.

        A stay is ten minutes in one cell, so a traffic light does not end a journey.
        """
        stay = max(1, round(10 / self.step_minutes))
        found = []
        times = self.times
        for name, row in zip(self.names, self.states, strict=True):
            changes = np.flatnonzero(np.diff(row))
            if len(changes) == 0:
                continue
            breaks = np.flatnonzero(np.diff(changes) >= stay)
            firsts = changes[np.concatenate([[0], breaks + 1])]
            lasts = changes[np.concatenate([breaks, [len(changes) - 1]])] + 1
            found += [
                Trip(name, times[a : b + 1], row[a : b + 1])
                for a, b in zip(firsts, lasts, strict=True)
            ]
        return found

    def table(self) -> pl.DataFrame:
        """The city as tracks: person, time (integer minutes), state."""
        polars = require("polars", "geo")
        frame: pl.DataFrame = polars.DataFrame(
            {
                "person": np.repeat(np.array(self.names), len(self.times)),
                "time": np.tile(self.times, self.people),
                "state": self.states.ravel(),
            }
        )
        return frame


@dataclass(frozen=True, eq=False)
class _Map:
    grid: Grid
    categories: tuple[str, ...]
    fast_road: Mask
    minutes: FloatArray
    next_toward: IntArray

    def of(self, category: str) -> IntArray:
        return np.flatnonzero(np.array(self.categories) == category)

    def route(self, start: int, end: int) -> Iterator[tuple[int, float]]:
        """The cells after `start` up to `end`, each with the minutes from `start`."""
        here = start
        while here != end:
            here = int(self.next_toward[end, here])
            yield here, float(self.minutes[end, start] - self.minutes[end, here])


def synthetic_city(
    *,
    people: int,
    days: int,
    rng: np.random.Generator,
    step_minutes: int = 1,
    size: int = 30,
    cell_km: float = 0.34,
) -> City:
    """A city of size x size cells in which people live for some days, Monday first.

    Streets take two minutes a cell (10 km/h) and fast roads 48 seconds (25 km/h); a river, not
    a state, parts the city and is crossed on bridges. Most people work in the centre or the
    industrial east on weekdays; many eat out at noon and run an errand in the evening; the
    rest, and everybody at weekends, go to shops, parks and other people's homes.

    >>> city = synthetic_city(people=3, days=2, rng=np.random.default_rng(1), step_minutes=5)
    >>> city.states.shape, city.grid.n_states
    ((3, 576), 873)
    >>> sorted(set(city.categories))
    ['bridge', 'home', 'park', 'shop', 'work']
    """
    for name, value, least in (("people", people, 1), ("days", days, 1), ("size", size, 10)):
        if value < least:
            raise ArgumentError(f"{name} must be at least {least}, got {value!r}")
    if step_minutes < 1 or _DAY % step_minutes:
        raise ArgumentError(
            f"step_minutes must be a whole divisor of a day's 1440 minutes, got {step_minutes!r}"
        )
    city = _draw_map(size, cell_km)
    homes = rng.choice(city.of("home"), people)
    workplaces = rng.choice(city.of("work"), people)
    workplaces[rng.random(people) < 0.2] = -1
    leaves_home = rng.normal(8 * 60, 45, people)
    favourites = np.stack([_favourites(city, int(home), rng) for home in homes])
    clock = np.arange(0, days * _DAY, step_minutes)
    states = np.empty((people, len(clock)), dtype=np.int64)
    for person in range(people):
        home, work = int(homes[person]), int(workplaces[person])
        visits: list[tuple[float, int]] = []
        for day in range(days):
            plan = (
                _working_day(leaves_home[person], home, work, favourites[person], city, rng)
                if work >= 0 and day % 7 < 5
                else _free_day(home, favourites[person], rng)
            )
            visits += [(day * _DAY + minute, place) for minute, place in plan]
        moments, places = _walk(city, home, visits, rng)
        states[person] = places[np.searchsorted(moments, clock, side="right") - 1]
    states.setflags(write=False)
    return City(
        plane=LocalPlane(48.0, 11.0),
        grid=city.grid,
        categories=city.categories,
        fast_road=city.fast_road,
        step_minutes=step_minutes,
        homes=np.asarray(homes, dtype=np.int64),
        workplaces=np.asarray(workplaces, dtype=np.int64),
        states=states,
    )


def _working_day(
    usual: float,
    home: int,
    work: int,
    favourites: IntArray,
    city: _Map,
    rng: np.random.Generator,
) -> list[tuple[float, int]]:
    leave = usual + rng.normal(0, 12)
    plan = [(leave, work)]
    if rng.random() < 0.4:
        shops = city.of("shop")
        noon = 12.5 * 60 + rng.normal(0, 20)
        plan += [(noon, _nearby(city, work, shops, rng)), (noon + rng.uniform(25, 50), work)]
    close = max(leave + 9 * 60 + rng.normal(0, 30), 14 * 60)
    if rng.random() < 0.5:
        plan += [(close, int(rng.choice(favourites))), (close + rng.uniform(45, 120), home)]
    else:
        plan.append((close, home))
        if rng.random() < 0.3:
            out = close + rng.uniform(90, 150)
            plan += [(out, int(rng.choice(favourites))), (out + rng.uniform(30, 90), home)]
    return plan


def _free_day(home: int, favourites: IntArray, rng: np.random.Generator) -> list[tuple[float, int]]:
    minute = rng.normal(10 * 60, 60)
    plan: list[tuple[float, int]] = []
    for _ in range(int(rng.integers(0, 4))):
        plan.append((minute, int(rng.choice(favourites))))
        minute += rng.uniform(45, 120)
        if rng.random() < 0.6:
            plan.append((minute, home))
            minute += rng.uniform(45, 120)
    return [*plan, (minute, home)]


def _walk(
    city: _Map, home: int, visits: list[tuple[float, int]], rng: np.random.Generator
) -> tuple[FloatArray, IntArray]:
    """Every moment at which a person enters a cell, and the cell."""
    here = home
    moments, places = [0.0], [home]
    for minute, place in visits:
        start = max(minute, moments[-1] + 1)
        pace = rng.uniform(0.85, 1.3)
        for cell, after in city.route(here, place):
            moments.append(start + pace * after)
            places.append(cell)
        here = place
    return np.array(moments), np.array(places, dtype=np.int64)


def _nearby(city: _Map, place: int, among: IntArray, rng: np.random.Generator) -> int:
    """One of the three places of some kind that are quickest to reach."""
    return int(rng.choice(among[np.argsort(city.minutes[place, among])[:3]]))


def _favourites(city: _Map, home: int, rng: np.random.Generator) -> IntArray:
    """Where a person goes in their free time: two shops, a park, a far shop, a friend."""
    shops, parks = city.of("shop"), city.of("park")
    return np.array(
        [
            _nearby(city, home, shops, rng),
            _nearby(city, home, shops, rng),
            _nearby(city, home, parks, rng),
            int(rng.choice(shops)),
            int(rng.choice(city.of("home"))),
        ],
        dtype=np.int64,
    )


def _draw_map(size: int, cell_km: float) -> _Map:
    """The map of a size: which cells are land, what they are for, how long roads take."""
    full = Grid.rectangle(size, size, cell_km)
    row, column = full.row_col.T
    river = np.round(size * (0.62 + 0.08 * np.sin(2 * np.pi * row / size))).astype(np.int64)
    avenues = np.unique(np.round(size * np.array([0.17, 0.5, 0.83])).astype(np.int64))
    fast = np.isin(row, avenues) | np.isin(column, avenues)
    bridge = (column == river) & np.isin(row, avenues)
    land = (column != river) | bridge
    middle = np.hypot(row - 0.5 * size, column - 0.42 * size) / size
    east = (column > 0.78 * size) & (np.abs(row - 0.5 * size) < 0.2 * size)
    category = np.full(size * size, "home", dtype=object)
    category[((row * 7 + column * 11) % 13 == 0) & ~east] = "shop"
    category[(row // 3 * 5 + column // 3 * 3) % 17 == 0] = "park"
    category[(middle < 0.13) | east] = "work"
    category[(middle < 0.13) & ((row + 2 * column) % 5 == 0)] = "shop"
    category[bridge] = "bridge"

    state = np.cumsum(land) - 1
    grid = Grid(cell_km, full.row_col[land], full.origin)
    index = np.arange(size * size)
    starts, ends = [], []
    for move, allowed in ((1, column < size - 1), (size, row < size - 1)):
        edge = index[allowed & land]
        edge = edge[land[edge + move]]
        starts.append(edge)
        ends.append(edge + move)
    a, b = np.concatenate(starts), np.concatenate(ends)
    minutes = np.where(fast[a] & fast[b], _FAST_ROAD_MINUTES, _STREET_MINUTES)
    # Uneven streets, so that between two places one route is the quickest and everybody's.
    minutes = minutes * (1 + 0.02 * np.modf(np.sqrt(2.0) * (a + 1) + np.sqrt(3.0) * (b + 1))[0])
    count = int(land.sum())
    roads = csr_array((minutes, (state[a], state[b])), shape=(count, count))
    distance, before = dijkstra(roads, directed=False, return_predecessors=True)
    return _Map(
        grid,
        tuple(str(name) for name in category[land]),
        fast[land],
        np.asarray(distance, dtype=np.float64),
        np.asarray(before, dtype=np.int64),
    )

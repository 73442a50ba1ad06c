"""What the experiments run on: a city, its trips, and the sequences that are evaluated."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from dphmm._types import FloatArray, IntArray
from dphmm.chain.ground import Ground
from dphmm.chain.markov import MarkovModel
from dphmm.errors import ArgumentError, DataError
from dphmm.geometry.query import Query
from dphmm.tables import datasets
from dphmm.tables.datasets import Trip
from dphmm.tables.geo import Grid, LocalPlane

if TYPE_CHECKING:
    import polars as pl

__all__ = ["LEARNED", "MOVES", "Workload", "load_workload"]

GEOLIFE = "geolife/geolife_beijing_3rdring_plt_1min.zip"
GOWALLA = "gowalla/gowalla_LA_checkins_sample.txt.gz"
STEP_KM = "0.01"
"""The lattice of released answers: ten metres."""

LEARNED = ("others", "same")
"""Whom the chain is learned from: people who are not evaluated, or everybody as in the paper."""

MOVES = ("all", "short")
"""Which moves count: all of them, or the shorter ones only (a share that the workload names)."""


@dataclass(frozen=True, eq=False)
class Workload:
    """A city with the trips to learn from and the sequences to evaluate. Private: true states."""

    name: str
    title: str
    rule: str
    """In words: what a step is, which gaps are allowed, which sequences were chosen."""
    grid: Grid
    trips: list[Trip] = field(repr=False)
    sequences: list[Trip] = field(repr=False)
    """One state more than steps: the first is the public start."""
    radius: str
    radii: tuple[str, ...]
    epsilons: tuple[str, ...]
    paper_hidden: int
    """The degree of protection of the one-step policy that the paper reports."""
    short: float = 0.99
    """The share of moves, from the shortest on, that make up the chain of short moves."""
    seconds: int = 1
    """How long one unit of the trips' times is."""
    utc_offset_hours: int = 0
    regular: bool = True
    """Whether steps are about equally long, so that direction and hour may help a reader."""
    window: int = 11
    delta: float = 0.01
    files: Mapping[str, str] = field(default_factory=dict)
    """The digest of each file that it was read from."""

    @cached_property
    def query(self) -> Query:
        """Where a state is, in kilometres."""
        return Query(self.grid.centers / 1000, step=STEP_KM)

    @cached_property
    def ground(self) -> Ground:
        """Where the cells lie, for chains that know directions."""
        return Ground(self.grid.centers)

    @property
    def steps(self) -> int:
        """How many answers a sequence gets."""
        return len(self.sequences[0]) - 1

    @cached_property
    def digest(self) -> str:
        """A fingerprint of everything that results depend on."""
        parts = hashlib.sha256(f"{self.name} {self.delta} {self.short} {STEP_KM}".encode())
        for array in (self.query.points, *(t.states for t in [*self.trips, *self.sequences])):
            parts.update(np.ascontiguousarray(array).tobytes())
        return parts.hexdigest()[:16]

    def bands(self, times: IntArray) -> IntArray:
        """Which quarter of the local day each time lies in, from 0 (midnight to six)."""
        local = times * self.seconds + 3600 * self.utc_offset_hours
        return np.asarray(local // 21600 % 4, dtype=np.int64)

    def model(self, learned: str, moves: str = "all") -> MarkovModel:
        """The chain learned by counting, without smoothing, as the paper does."""
        return MarkovModel.from_counts(self.counts(learned, moves), zeros="facts")

    def start(self, model: MarkovModel, state: int) -> int:
        """Where a sequence starts: its first state, or the nearest from which the chain roams.

        A chain of other people may never leave a state, and would hide nobody there.
        """
        _, group = connected_components(model.transition, connection="strong")
        roaming = group == np.argmax(np.bincount(group))
        if roaming[state]:
            return state
        return int(self.query.nearest_states(np.array([state]), roaming)[0])

    def counts(self, learned: str, moves: str = "all") -> sparse.csr_array:
        """How often each move was made by those whom the chain is learned from."""
        if learned not in LEARNED or moves not in MOVES:
            raise ArgumentError(f"model must be one of {LEARNED} x {MOVES}, got {learned, moves}")
        evaluated = {trip.person for trip in self.sequences} if learned == "others" else set()
        chosen = [trip.states for trip in self.trips if trip.person not in evaluated]
        counts = counted(chosen, self.grid.n_states).tocoo()
        if moves == "short":
            lengths = self.lengths(counts)
            kept = lengths <= quantile(lengths, counts.data, self.short)
            entries = (counts.data[kept], (counts.row[kept], counts.col[kept]))
            return sparse.csr_array(entries, shape=counts.shape)
        return sparse.csr_array(counts)

    def lengths(self, counts: sparse.coo_array) -> FloatArray:
        """The length of every move in kilometres."""
        places = self.grid.centers / 1000
        return np.asarray(np.linalg.norm(places[counts.row] - places[counts.col], axis=1))


def counted(sequences: Sequence[IntArray], n_states: int) -> sparse.csr_array:
    """The matrix of move counts."""
    none = [np.zeros(0, dtype=np.int64)]
    sources = np.concatenate(none + [states[:-1] for states in sequences])
    targets = np.concatenate(none + [states[1:] for states in sequences])
    ones = np.ones(len(sources))
    return sparse.csr_array((ones, (sources, targets)), shape=(n_states, n_states))


def quantile(values: FloatArray, weights: FloatArray, share: float) -> float:
    """The smallest value that at least `share` of the weight does not exceed.

    >>> quantile(np.array([3.0, 1.0]), np.array([1.0, 9.0]), 0.9)
    1.0
    """
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) / weights.sum()
    place = int(np.searchsorted(reached, share - 1e-12))
    return float(values[order[min(place, len(values) - 1)]])


def load_workload(name: str, data: Path | None, *, quick: bool = False, seed: int = 8) -> Workload:
    """The workload of a name: `geolife`, `gowalla`, or `city`, which needs no data.

    `quick` is a smaller one of the same kind, for tests.
    """
    makers: dict[str, Callable[[Path | None, bool, int], Workload]] = {
        "geolife": _geolife,
        "gowalla": _gowalla,
        "city": _city,
    }
    if name not in makers:
        raise ArgumentError(f"dataset must be one of {', '.join(makers)}, got {name!r}")
    return makers[name](data, quick, seed)


def _geolife(data: Path | None, quick: bool, seed: int) -> Workload:
    table, _ = datasets.load_geolife(_existing(data, GEOLIFE))
    grid, trips = _on_grid(table, timedelta(minutes=1), 0.34, timedelta(minutes=6))
    sequences, chosen = _choose(trips, quick, seed)
    return Workload(
        name="geolife",
        title="GeoLife, Beijing within the third ring, cells of 0.34 km",
        rule="A step is the next fix of a person, the first of a clock minute; a gap of at most "
        f"6 minutes counts as one step, a longer one ends the trip. {chosen}",
        grid=grid,
        trips=trips,
        sequences=sequences,
        radius="1",
        radii=("0.5", "1", "1.5", "2", "3"),
        epsilons=("0.2", "0.5", "1", "1.5", "2"),
        paper_hidden=100,
        utc_offset_hours=8,
    )


def _gowalla(data: Path | None, quick: bool, seed: int) -> Workload:
    table, _ = datasets.load_gowalla(_existing(data, GOWALLA))
    grid, trips = _on_grid(table, timedelta(seconds=1), 0.89, timedelta(days=36500))
    sequences, chosen = _choose(trips, quick, seed)
    return Workload(
        name="gowalla",
        title="Gowalla, Los Angeles (a sample of 46% of the check-ins), cells of 0.89 km",
        rule="A step is the next check-in of a person, however much later: no gap ends a "
        f"sequence. {chosen}",
        grid=grid,
        trips=trips,
        sequences=sequences,
        radius="2",
        radii=("1", "2", "3", "4", "6"),
        epsilons=("0.2", "0.5", "1", "1.5", "2"),
        paper_hidden=70,
        short=0.5,
        utc_offset_hours=-8,
        regular=False,
    )


def _on_grid(
    table: pl.DataFrame, step: timedelta, cell: float, max_gap: timedelta
) -> tuple[Grid, list[Trip]]:
    """Fixes as trips over cells of so many kilometres, one fix a step of the clock."""
    table = datasets.resample(table, step)
    plane = LocalPlane.around(table["latitude"].to_numpy(), table["longitude"].to_numpy())
    grid = Grid.from_points(*plane.to_plane(table["latitude"], table["longitude"]), cell)
    return grid, datasets.split_trips(datasets.to_states(table, grid, plane), max_gap=max_gap)


def _city(data: Path | None, quick: bool, seed: int) -> Workload:
    people, days = (24, 1) if quick else (60, 2)
    city = datasets.synthetic_city(people=people, days=days, rng=np.random.default_rng(seed))
    trips = city.days(6, 12)
    sequences, chosen = _choose(trips, quick, seed)
    return Workload(
        name="city",
        title="A synthetic city, cells of 0.34 km",
        rule=f"A step is a minute, without gaps; mornings from 6 to 12. {chosen}",
        grid=city.grid,
        trips=trips,
        sequences=sequences,
        radius="1",
        radii=("0.5", "1", "2") if quick else ("0.5", "1", "1.5", "2", "3"),
        epsilons=("0.5", "1", "2") if quick else ("0.2", "0.5", "1", "1.5", "2"),
        paper_hidden=100,
        seconds=60,
    )


def _existing(data: Path | None, name: str) -> Path:
    if data is None:
        raise ArgumentError("data must be the folder of the datasets, got None; give --data")
    path = Path(data) / name
    if not path.exists():
        raise DataError(f"{path}: file must exist; see docs/data.md for where it comes from")
    return path


def _choose(trips: list[Trip], quick: bool, seed: int) -> tuple[list[Trip], str]:
    """Sequences of 100 steps of as many different people as there are, and how in words."""
    count, steps = (3, 12) if quick else (20, 100)
    runs = datasets.cut_trips(trips, steps + 1)
    if not runs:
        raise DataError(f"trips must hold a run of {steps + 1} states, got none")
    order = np.random.default_rng(seed).permutation(len(runs))
    rank: dict[str, int] = {}
    ranked: list[tuple[int, int, Trip]] = []
    for place in order:
        person = runs[place].person
        rank[person] = rank.get(person, 0) + 1
        ranked.append((rank[person], len(ranked), runs[place]))
    chosen = [run for _, _, run in sorted(ranked, key=lambda row: row[:2])[:count]]
    people = len({run.person for run in chosen})
    text = (
        f"{len(runs)} runs of {steps + 1} states from {len(rank)} people can be cut without "
        f"overlap; {len(chosen)} of them, of {people} people, were drawn with seed {seed}. The "
        f"first state of each is the public start, so {steps} answers follow."
    )
    return chosen, text

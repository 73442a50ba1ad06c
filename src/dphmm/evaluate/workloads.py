"""What the experiments run on: a city, its trips, and the sequences that are evaluated."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from dphmm._types import FloatArray, IntArray
from dphmm.chain.ground import Ground
from dphmm.chain.markov import MarkovModel
from dphmm.errors import ArgumentError, DataError, require
from dphmm.evaluate.division import (
    Divided,
    divide,
    find_twins,
    find_twins_of_geolife,
    make_grid,
    make_trips,
)
from dphmm.evaluate.fingerprint import LENGTH, file_digest
from dphmm.evaluate.protocol import protocol, read_final
from dphmm.geometry.query import Query
from dphmm.tables import datasets
from dphmm.tables.datasets import Trip
from dphmm.tables.geo import Grid

__all__ = ["LEARNED", "MOVES", "Workload", "load_workload"]

GEOLIFE = "geolife/geolife_beijing_3rdring_plt_1min.zip"
RAW = "geolife/geolife_beijing_3rdring_raw.parquet"
CITIES = {
    "LA": (
        "gowalla/gowalla_LA_checkins_sample.txt.gz",
        "Los Angeles (a sample of 46% of the check-ins)",
    ),
    "NYC": ("gowalla/gowalla_NYC_checkins.txt.gz", "New York City"),
}
STEP_KM = "0.01"
"""The lattice of released answers: ten metres."""

WORDS = ("title", "rule", "files")
"""What a page says of a workload; no result depends on it."""

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
    tested: list[Trip] | None = field(default=None, repr=False)
    """The trips of locked people, where these are evaluated; the chains never see them."""
    twins: Mapping[str, str] = field(default_factory=dict, repr=False)
    """For every id the first that is the same person; trips bear the name of that one."""
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
        """A fingerprint of everything that results depend on: all but words, and the protocol."""
        parts = hashlib.sha256(json.dumps([STEP_KM, protocol()], sort_keys=True).encode())
        for one in fields(self):
            if one.name not in WORDS:
                parts.update(f"\0{one.name}\0".encode())
                parts.update(_bytes(getattr(self, one.name)))
        return parts.hexdigest()[:LENGTH]

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


def _bytes(value: Any) -> bytes:
    """A field of a workload as a fingerprint reads it."""
    if isinstance(value, Grid):
        return np.ascontiguousarray(value.centers).tobytes()
    if not isinstance(value, list):
        return repr(value).encode()
    rows = [f"{trip.person} {trip.times.tolist()} {trip.states.tolist()}" for trip in value]
    return "\n".join(rows).encode()


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


def load_workload(
    name: str,
    data: Path | None,
    *,
    quick: bool = False,
    seed: int | None = None,
    final: bool = False,
) -> Workload:
    """The workload of a name; those of real people without the locked ones.

    Args:
        name: `geolife`, `gowalla`, `gowalla-nyc`, `city`, which needs no data, or
            `geolife-5s`: the raw fixes at so many seconds a step.
        data: The folder of the datasets.
        quick: Whether to make a smaller one of the same kind, for tests.
        seed: Of the drawing of sequences, by default the protocol's.
        final: Whether to evaluate the locked people, on chains of the others. Refused unless
            it was asked for by `make evidence FINAL=1`.
    """
    makers: dict[str, Callable[[Path | None, bool, int, bool], Workload]] = {
        "geolife": _geolife,
        "gowalla": partial(_gowalla, "LA"),
        "gowalla-nyc": partial(_gowalla, "NYC"),
        "city": _city,
    }
    if final:
        read_final()
    seconds = re.fullmatch(r"geolife-(\d+)s", name)
    if seconds:
        makers[name] = partial(_raw_geolife, int(seconds[1]))
    if name not in makers:
        raise ArgumentError(f"dataset must be one of {', '.join(makers)}, got {name!r}")
    drawn: int = protocol()["people"]["draw"] if seed is None else seed
    return makers[name](data, quick, drawn, final)


def _geolife(data: Path | None, quick: bool, seed: int, final: bool) -> Workload:
    path, chosen = _existing(data, GEOLIFE), protocol()["geolife"]
    table, _ = datasets.load_geolife(path)
    parts = divide(table, find_twins_of_geolife(path), final)
    return _workload(
        parts, timedelta(minutes=1), chosen, timedelta(minutes=6), quick, seed,
        name="geolife",
        title="GeoLife, Beijing within the third ring, cells of 0.34 km",
        rule="A step is the next fix of a person, the first of a clock minute; a gap of at most "
        "6 minutes counts as one step, a longer one ends the trip.",
        utc_offset_hours=8,
        files={GEOLIFE: file_digest(path)},
    )  # fmt: skip


def _raw_geolife(step: int, data: Path | None, quick: bool, seed: int, final: bool) -> Workload:
    path, chosen, clock = _existing(data, RAW), protocol()["geolife"], protocol()["clock"]
    minutes = _existing(data, GEOLIFE)
    polars = require("polars", "geo")
    table = polars.read_parquet(path, columns=["person", "time", "latitude", "longitude"])
    table = table.with_columns(polars.col("time").dt.replace_time_zone("UTC"))
    parts = divide(table, find_twins_of_geolife(minutes), final)
    steps = dict(zip(clock["seconds"], clock["steps"], strict=True)).get(step)
    return _workload(
        parts, timedelta(seconds=step), chosen, timedelta(seconds=clock["gap"] * step), quick, seed,
        steps=steps,
        name=f"geolife-{step}s",
        title=f"GeoLife as logged, {step} seconds a step, cells of 0.34 km",
        rule=f"A step is the next fix of a person, the first in {step} seconds; a gap of at most "
        f"{clock['gap']} steps counts as one, a longer one ends the trip.",
        utc_offset_hours=8,
        files={RAW: file_digest(path), GEOLIFE: file_digest(minutes)},
    )  # fmt: skip


def _gowalla(place: str, data: Path | None, quick: bool, seed: int, final: bool) -> Workload:
    name, title = CITIES[place]
    path, chosen = _existing(data, name), protocol()["gowalla"]
    table, _ = datasets.load_gowalla(path)
    parts = divide(table, find_twins(table, timedelta(seconds=1), chosen["cell_km"]), final)
    return _workload(
        parts, timedelta(seconds=1), chosen, timedelta(days=36500), quick, seed,
        name="gowalla" if place == "LA" else f"gowalla-{place.lower()}",
        title=f"Gowalla, {title}, cells of 0.89 km",
        rule="A step is the next check-in of a person, however much later: no gap ends a "
        "sequence.",
        short=0.5,
        utc_offset_hours=-8 if place == "LA" else -5,
        regular=False,
        files={name: file_digest(path)},
    )  # fmt: skip


def _workload(
    parts: Divided, step: timedelta, chosen: Mapping[str, Any], gap: timedelta, quick: bool,
    seed: int, *, steps: int | None = None, rule: str, **rest: Any,
) -> Workload:  # fmt: skip
    """Rows as trips over cells of so many kilometres, one fix a step of the clock."""
    grid, plane = make_grid(parts.rows, chosen["cell_km"])
    trips = make_trips(parts.rows, step, gap, grid, plane, parts.person)
    tested = None
    if parts.locked is not None:
        tested = make_trips(parts.locked, step, gap, grid, plane, parts.person)
    sequences, words = _choose(trips if tested is None else tested, quick, seed, steps)
    return Workload(
        grid=grid,
        trips=trips,
        tested=tested,
        sequences=sequences,
        rule=f"{rule} {words}",
        radius=chosen["radius"],
        radii=tuple(chosen["radii"]),
        epsilons=tuple(chosen["epsilons"]),
        paper_hidden=chosen["paper_hidden"],
        twins=parts.person,
        **rest,
    )


def _city(data: Path | None, quick: bool, seed: int, final: bool) -> Workload:
    if final:
        raise ArgumentError("dataset must be one of real people for final, got 'city'")
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


def _choose(
    trips: list[Trip], quick: bool, seed: int, steps: int | None = None
) -> tuple[list[Trip], str]:
    """Sequences of as many different people as there are, and how in words."""
    people = protocol()["people"]
    count, steps = (3, 12) if quick else (people["sequences"], steps or people["steps"])
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
    persons = len({run.person for run in chosen})
    text = (
        f"{len(runs)} runs of {steps + 1} states from {len(rank)} people can be cut without "
        f"overlap; {len(chosen)} of them, of {persons} people, were drawn with seed {seed}. The "
        f"first state of each is the public start, so {steps} answers follow."
    )
    return chosen, text

"""Whether regions of beliefs hold what they state, of people a chain was not learned from.

Each part of the people is held out in turn, and answers to them are read by a chain of others: of
counts over places, of counts with momentum, and private ones with several draws of their noise.
All chains of a part read the same answers, so what differs between draws is their noise alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Literal, TypeAlias

import numpy as np

from dphmm._types import FloatArray
from dphmm.chain.ground import Ground
from dphmm.chain.markov import MarkovModel
from dphmm.evaluate.intervals import RULE, People, Statistic
from dphmm.evaluate.parts import Part, Study
from dphmm.evaluate.protocol import protocol
from dphmm.evaluate.results import Table, Value
from dphmm.evaluate.study import FOLDS, deal
from dphmm.evaluate.workloads import Workload
from dphmm.noise.randomness import SeededRandomness
from dphmm.scenario.counting import CONFIDENCE, Counted, Counting
from dphmm.scenario.coverage import answer_walks, cover
from dphmm.scenario.judging import REGIONS, walk_of
from dphmm.scenario.judging import People as Tracks
from dphmm.scenario.private import learn_private
from dphmm.scenario.scenario import Scenario
from dphmm.scenario.settings import Policy
from dphmm.tables.datasets import Trip, synthetic_city
from dphmm.tables.states import States

__all__ = ["CHAINS", "Covered", "calibration_study", "divide", "learn", "tracks_of"]

Chain: TypeAlias = Literal["private", "places", "momentum"]
CHAINS: tuple[Chain, ...] = ("private", "places", "momentum")
WORDS = {
    "private": "private, ε = 1",
    "places": "counts over places",
    "momentum": "counts with momentum",
}
NAMES = {"geolife": "GeoLife", "gowalla": "Gowalla", "city": "made-up city"}


@dataclass(frozen=True)
class Covered:
    """What regions about the people of one part hold, by a chain of others."""

    part: int
    chain: Chain
    steps: int
    people: int
    """In each part of the made-up city."""
    seed: int
    draw: int = 0
    """Of a private chain's noise."""

    @property
    def name(self) -> str:
        """What the file of this result is called."""
        return f"covered_{self.chain}_{self.part}_{self.draw}_{self.steps}_{self.people}"

    def measure(self, workload: Workload) -> dict[str, FloatArray]:
        """The sums of `Coverage`, a row a person. Private."""
        centers = workload.grid.centers
        learned, held = divide(workload, self.part, self.people, self.seed)
        policy = Policy(distance=1000 * Fraction(workload.radius))
        scenario = Scenario(
            States.on_plane(centers), walk_of(Ground(centers)), policy, epsilon=1, step="0.01"
        )
        walks = answer_walks(
            scenario, held, self.steps, np.random.default_rng([self.seed, self.part])
        )
        noise = np.random.default_rng([self.seed, self.part, 1 + self.draw])
        return {"sums": cover(learn(self.chain, learned, centers, noise), walks, centers).sums}


def divide(workload: Workload, part: int, people: int, seed: int) -> tuple[Tracks, Tracks]:
    """Whom a chain is learned from, and who is held out.

    Args:
        workload: Real people, of whom one fold is held out; or the city, which makes its own.
        part: Which of the folds, or of the parts of the city.
        people: How many a part of the city has.
        seed: Of the city's people.
    """
    if workload.name == "city":
        parts = _city(people, seed)
        return parts[part - 1], parts[part]
    fold = deal(workload.trips)
    learned = [trip for trip in workload.trips if fold[trip.person] != part]
    return tracks_of(learned), tracks_of(t for t in workload.trips if fold[t.person] == part)


@cache
def _city(people: int, seed: int) -> list[Tracks]:
    """A weekday of so many people in each of the parts."""
    made = synthetic_city(people=FOLDS * people, days=1, rng=np.random.default_rng(seed))
    slots = np.arange(made.states.shape[1])
    return [[(slots, states) for states in made.states[part::FOLDS]] for part in range(FOLDS)]


def tracks_of(trips: Iterable[Trip]) -> Tracks:
    """The slots and states of each person, with a gap between trips.

    Args:
        trips: Under one name for each person.
    """
    rows: dict[str, tuple[list[int], list[int]]] = {}
    for trip in trips:
        slots, states = rows.setdefault(trip.person, ([], []))
        begin = slots[-1] + 2 if slots else 0
        slots += range(begin, begin + len(trip))
        states += trip.states.tolist()
    return list(rows.values())


def learn(
    chain: Chain, people: Tracks, centers: FloatArray, rng: np.random.Generator
) -> MarkovModel:
    """The chain that `dphmm learn` makes of some people; a private one at epsilon 1.

    Args:
        chain: Which.
        people: Whose.
        centers: The coordinates of the places.
        rng: What draws the noise of a private chain: for experiments only.
    """
    if chain == "private":
        randomness = SeededRandomness(rng)
        return learn_private(people, centers, epsilon=1, randomness=randomness).model.at(1)
    kind: Literal["first", "momentum"] = "first" if chain == "places" else "momentum"
    counting = Counting(len(centers), kind, None, Ground(centers), CONFIDENCE[kind])
    return counting.learn(Counted.joined(counting.count(*person) for person in people)).at(1)


def calibration_study(*, quick: bool = False) -> Study:
    """What regions hold on GeoLife, Gowalla and the made-up city.

    Args:
        quick: Whether to take one part, one draw and few steps.
    """
    chosen = protocol()["calibration"]
    folds = range(1 if quick else FOLDS)
    draws = 1 if quick else chosen["draws"]
    parts: dict[tuple[str, Chain], list[list[Covered]]] = {
        (name, chain): [
            [
                Covered(
                    fold, chain, 240 if quick else steps, chosen["people"], chosen["seed"], draw
                )
                for fold in folds
            ]
            for draw in range(draws if chain == "private" else 1)
        ]
        for name, steps in chosen["steps"].items()
        for chain in CHAINS
    }

    def summarise(
        workloads: Mapping[str, Workload], found: Mapping[Part, dict[str, FloatArray]]
    ) -> tuple[dict[str, Value], dict[str, Table]]:
        values: dict[str, Value] = {}
        rows = []
        for (name, chain), tasks in parts.items():
            sums = [[found[name, task]["sums"] for task in draw] for draw in tasks]
            told = dict(_values(sums, chosen["points"], chosen["factor"]))
            values |= {f"{name}.{chain}.{key}": value for key, value in told.items()}
            rows.append((NAMES[name], WORDS[chain], *_cells(told)))
        regions = (f"region of {mass:.0%}" for mass in REGIONS)
        rest = ("moved by the chain's noise", "expected error / real", "within 5 points")
        head = ("people", "chain", *regions, *rest)
        return values, {"regions": Table(head, tuple(rows))}

    return Study(
        name="calibration",
        about="Truth in regions minus what they state, people held out, answers at ε = 1",
        module=__name__,
        parts=tuple(
            (name, task) for (name, _), draws in parts.items() for tasks in draws for task in tasks
        ),
        summarise=summarise,
        settings={**chosen, "rule": RULE},
        seeds=tuple(range(draws)),
    )


def _values(
    sums: list[list[FloatArray]], points: float, factor: float
) -> Iterator[tuple[str, Value]]:
    """The figures of one chain on one set of people, from the sums of every draw and part."""
    everybody = np.concatenate([np.mean(part, axis=0) for part in zip(*sums, strict=True)])
    steps, *held = everybody.T[: 1 + len(REGIONS)]
    expected, real = everybody.T[-2:]
    columns = {"steps": steps, "expected": expected, "real": real}
    columns |= {f"held.{place}": column for place, column in enumerate(held)}
    people = People(columns, seeds=len(sums))
    rest = {"people": people.number, "seeds": len(sums)}
    for place, mass in enumerate(REGIONS):

        def miss(means: Mapping[str, FloatArray], place: int = place) -> FloatArray:
            return np.asarray(100 * means[f"held.{place}"] / means["steps"])

        yield f"miss.{mass:.0%}", Value(*_three(people, miss, "+.1f"), unit="points", **rest)  # type: ignore[arg-type]
    yield (
        "within",
        people.verdict(
            lambda means: (
                100 * points
                - 100
                * np.max([np.abs(means[f"held.{place}"]) for place in range(len(REGIONS))], axis=0)
                / means["steps"]
            ),
            f"the worst region within {100 * points:g} points",
        ),
    )
    if len(sums) > 1:
        # The same walks and answers in each draw: what differs is the noise of the chain.
        each = [[100 * part[:, 1] / part[:, 0].sum() for part in draw] for draw in sums]
        apart = np.array([[column.sum() for column in draw] for draw in each])
        spread = float(np.sqrt(apart.var(axis=0, ddof=1).mean()))
        yield "noise", Value(spread, ".1f", unit="points", note="standard deviation of a chain")

    def ratio(means: Mapping[str, FloatArray]) -> FloatArray:
        return np.asarray(means["expected"] / means["real"])

    yield "expected", Value(*_three(people, ratio, ".2f"), **rest)  # type: ignore[arg-type]
    yield (
        "expected.within",
        people.verdict(
            lambda means: np.log(factor) - np.abs(np.log(ratio(means))),
            f"the expected error within a factor of {factor:g}",
        ),
    )


def _three(people: People, statistic: Statistic, form: str) -> tuple[float, str, float, float]:
    value, low, high = people.interval(statistic)
    return value, form, low, high


def _cells(told: Mapping[str, Value]) -> Iterator[str]:
    for mass in REGIONS:
        yield told[f"miss.{mass:.0%}"].text(interval=True)
    yield f"±{told['noise'].text()}" if "noise" in told else ""
    yield told["expected"].text(interval=True)
    yield str(told["within"].value)

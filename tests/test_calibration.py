"""Regions of beliefs about people whom no model was learned from hold as much as they state."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dphmm import Policy, Scenario, States, datasets, learn_private
from dphmm.chain.ground import Ground
from dphmm.chain.markov import Chain
from dphmm.evaluate.workloads import load_workload
from dphmm.noise.randomness import SeededRandomness
from dphmm.scenario import judging
from dphmm.scenario.counting import CONFIDENCE, Counted, Counting
from dphmm.scenario.judging import Judgement, People, cross_validate

POINTS = 0.05
"""How far a region may be from holding what it states."""

STEPS = 4000
ERROR = 0.04
"""So many steps leave a standard error of 1.5 to 3 points over walks: two of the usual ones."""

FACTOR = 1.5
"""The expected error is within this factor of the real one."""


def of_private(people: People, centers: np.ndarray) -> Chain:
    randomness = SeededRandomness(np.random.default_rng(5))
    return learn_private(people, centers, epsilon=1, randomness=randomness).model


def of_counts(chain: str) -> Callable[[People, np.ndarray], Chain]:
    """The chain that `dphmm learn` makes of raw moves."""

    def learn(people: People, centers: np.ndarray) -> Chain:
        counting = Counting(len(centers), chain, None, Ground(centers), CONFIDENCE[chain])
        return counting.learn(Counted.joined(counting.count(*person) for person in people))

    return learn


MODELS = {
    "private": of_private,
    "places": of_counts("first"),
    "momentum": of_counts("momentum"),
}


def city(people: int) -> tuple[np.ndarray, People, str]:
    made = datasets.synthetic_city(people=people, days=1, rng=np.random.default_rng(8))
    slots = np.arange(made.states.shape[1])
    return made.grid.centers, [(slots, states) for states in made.states], "1000"


def real(name: str, data: Path) -> tuple[np.ndarray, People, str]:
    """People of a dataset, ids of one person together, with a gap between their runs."""
    workload = load_workload(name, data)
    one = datasets.same_person(workload.trips)
    rows: dict[str, tuple[list[int], list[int]]] = {}
    for trip in workload.trips:
        slots, states = rows.setdefault(one[trip.person], ([], []))
        begin = slots[-1] + 2 if slots else 0
        slots += range(begin, begin + len(trip))
        states += trip.states.tolist()
    return workload.grid.centers, list(rows.values()), str(workload.radius)


def judged(model: str, centers: np.ndarray, people: People, radius: str) -> Judgement:
    def learn(some: People) -> Scenario:
        chain = MODELS[model](some, centers)
        places = States.on_plane(centers)
        return Scenario(places, chain, Policy(distance=radius), epsilon=1, step="0.01")

    return cross_validate(learn, people)


def check(found: Judgement, points: float) -> None:
    assert found.people >= 50
    assert found.miss <= points, found.regions
    assert 1 / FACTOR <= found.expected <= FACTOR, found.expected


def test_regions_of_a_small_sample_are_near_what_they_state(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # 600 steps leave a standard error of some 5 points.
    monkeypatch.setattr(judging, "STEPS", 600)
    check(judged("private", *city(60)), 0.2)


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_regions_hold_people_of_a_made_up_city(monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    monkeypatch.setattr(judging, "STEPS", STEPS)
    check(judged(model, *city(60)), POINTS + ERROR)


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", ["geolife", "gowalla"])
def test_regions_hold_real_people(
    monkeypatch: pytest.MonkeyPatch, shared_data: Path, name: str, model: str
) -> None:
    monkeypatch.setattr(judging, "STEPS", STEPS)
    check(judged(model, *real(name, shared_data)), POINTS + ERROR)

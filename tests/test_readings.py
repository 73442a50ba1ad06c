"""What answers tell: the same estimates as use and as attack, and the theorems' bounds."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dphmm import Plan, PolicyGraph, Stream, constrained_epsilon
from dphmm.evaluate import Result, Workload, load_workload, run_study
from dphmm.evaluate.late import learn_chain
from dphmm.evaluate.reading import Reading, reading_study
from dphmm.evaluate.study import Fold
from dphmm.evaluate.theorems import Bounds, theorems_study
from dphmm.evaluate.together import law_likelihoods, read_together

FEW = Reading(0, (0, 1), "staircase", "2", 2, steps=10, runs=1)


@pytest.fixture(scope="module")
def city() -> Workload:
    return load_workload("city", None, quick=True)


# Laws


def test_a_reading_has_every_seed_of_so_many_runs_a_person(city: Workload) -> None:
    found = FEW.measure(city)
    _, runs = Fold(0, 10).parts(city)
    people = len({run.person for run in runs})
    assert found["filtered"].shape == (2, people, 10)
    assert sorted(found["person"]) == list(range(people))
    assert (found["filtered"][0] != found["filtered"][1]).any()
    again = replace(FEW, seeds=(1,)).measure(city)
    # Sums in single precision depend a little on how many draws are read together.
    np.testing.assert_allclose(found["filtered"][1], again["filtered"][0], rtol=1e-3)
    assert found["without"].shape == (people, 10)
    # Reading helps: all answers tell more than a guess without any.
    assert found["smoothed"].mean() < found["without"].mean()


def test_use_and_attack_come_from_the_same_estimates(city: Workload, tmp_path: Path) -> None:
    study = reading_study(quick=True)
    *_, result = run_study(tmp_path, study, lambda name: city, workers=1)
    assert isinstance(result, Result)
    for setting in ("staircase.1every1", "staircase.5every5"):
        share, far = (result.value(f"{setting}.{kind}.smoothed") for kind in ("share", "km"))
        assert far.low is not None
        raw = float(far.value) / float(share.value)
        assert 1 < raw < 2  # km: the error of a K-norm answer at epsilon 1 under a policy of 1 km
        near, nearer = (result.value(f"{setting}.near{x}.smoothed") for x in ("1", "0.25"))
        assert float(nearer.value) <= float(near.value)
        worst = result.value(f"{setting}.worst.smoothed")
        assert float(worst.value) >= float(share.value)
    assert len(result.table("utility").rows) == len(result.table("attack").rows) == 4
    assert "below 18.0%: " in result.table("utility").rows[1][-1]
    promises = [row[1] for row in result.table("utility").rows]
    assert promises[0] == "1 at an instant, 1 in any step, 20 in 20 steps"
    assert promises[2] == "5 at an instant, 5 in any 5 steps, 20 in 20 steps"
    assert result.value("without").unit == "km"


# Oracle


def test_draws_read_together_are_read_as_streams_read_them(city: Workload) -> None:
    training, runs = Fold(0, 10).parts(city)
    model, start = learn_chain(city, [trip.states for trip in training], None)
    plan = Plan(PolicyGraph.within_distance(city.query, city.radius), city.query,
                mechanism="staircase")  # fmt: skip
    law = plan.at(np.ones(city.query.n_states, dtype=bool)).mechanism(Fraction(2))
    said = FEW.answers(law, runs[0].states, 0)
    told: list[np.ndarray | None] = [None] * 10
    told[::2] = [law_likelihoods(law, one) for one in said]
    so_far, all_told = read_together(told, model, start, 2)
    for seed in range(2):
        stream = Stream(model, plan, epsilon=2, start=start)
        for step in range(10):
            stream.repeat([] if step % 2 else said[step // 2, seed])
            here = model.place_belief(stream.posterior).probabilities
            np.testing.assert_allclose(so_far[step, seed], here, rtol=0, atol=1e-4)
        late = [belief.probabilities for belief in stream.smooth()]
        mine = all_told[:, seed] / all_told[:, seed].sum(axis=1, keepdims=True)
        np.testing.assert_allclose(mine, late, rtol=0, atol=1e-4)
    assert np.abs(so_far[:, 0] - so_far[:, 1]).max() > 0.01


def test_bounds_are_those_of_theorem_6_3_over_all_states(city: Workload) -> None:
    found = Bounds("distance", city.radius).measure(city)
    plan = Plan(PolicyGraph.within_distance(city.query, city.radius), city.query)
    hull = plan.at(np.ones(city.query.n_states, dtype=bool)).hull
    assert found["knorm"] == float(constrained_epsilon(city.query, hull, 1))
    apart = (city.query.points[:, None] - city.query.points[None]).reshape(-1, 2)
    norms = hull.lattice_norms(apart)
    assert found["knorm"] == pytest.approx(norms.max(), rel=1e-9)
    assert found["staircase"] == np.ceil(found["knorm"])


def test_bounds_of_a_run_are_those_of_an_answer_times_its_steps(
    city: Workload, tmp_path: Path
) -> None:
    *_, result = run_study(tmp_path, theorems_study(quick=True), lambda name: city, workers=1)
    assert isinstance(result, Result)
    once = float(result.value("geolife.distance.knorm.once").value)
    assert result.value("geolife.distance.knorm.run").value == pytest.approx(100 * once, rel=1e-4)
    assert len(result.table("bounds").rows) == 2

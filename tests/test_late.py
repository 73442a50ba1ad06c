"""Estimates on people held out, now, later and in hindsight: private, and in the making alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dphmm.evaluate.late import TRUSTS, WEIGHTS, Late, choose_weights, late_shares
from dphmm.evaluate.study import Fold, deal
from dphmm.evaluate.workloads import Workload, load_workload

FEW = Late(0, epsilon="2", every=3, mechanism="staircase", steps=10, limit=2, lag=0)
CLOSE = 1e-9
"""Late beliefs and those in hindsight are sums of the same numbers in another order."""


@pytest.fixture(scope="module")
def city() -> Workload:
    return load_workload("city", None, quick=True)


# Laws


def test_a_lag_of_nothing_is_the_filter_and_one_of_all_steps_the_smoother(city: Workload) -> None:
    now, after = (replace(FEW, lag=lag).measure(city) for lag in (0, 10))
    np.testing.assert_allclose(now["lagged"], now["filtered"], rtol=CLOSE)
    np.testing.assert_allclose(after["lagged"], after["smoothed"], rtol=CLOSE)
    for name in ("raw", "released", "filtered", "smoothed"):
        np.testing.assert_array_equal(now[name], after[name])
    assert np.isnan(replace(FEW, lag=None).measure(city)["lagged"]).all()


def test_answers_come_every_so_many_steps_and_estimates_at_all(city: Workload) -> None:
    found = FEW.measure(city)
    said = ~np.isnan(found["released"])
    assert said.tolist() == [[step % 3 == 0 for step in range(10)]] * 2
    assert np.isfinite(found["filtered"]).all()
    assert found["raw"].shape == (2, 10)


def test_shares_are_of_knorm_answers_at_epsilon_one(city: Workload) -> None:
    """These are drawn first, so they do not depend on what is compared with them."""
    found, other = FEW.measure(city), replace(FEW, mechanism="knorm", every=1).measure(city)
    np.testing.assert_array_equal(found["raw"], other["raw"])
    assert late_shares([found])["filtered"] == found["filtered"].mean() / found["raw"].mean()
    assert late_shares([found, other])["smoothed"] == pytest.approx(
        (found["smoothed"].mean() + other["smoothed"].mean()) / 2 / found["raw"].mean()
    )


def test_weights_are_chosen_without_the_people_who_are_evaluated(city: Workload) -> None:
    training, _ = Fold(0, 10).parts(city)
    chosen = choose_weights(city, training, last=1)
    assert chosen.weight in WEIGHTS
    assert chosen.trust in TRUSTS
    dealt = deal(city.trips)
    others = [
        replace(trip, states=trip.states[::-1]) if dealt[trip.person] == 0 else trip
        for trip in city.trips
    ]
    assert others != city.trips
    changed = replace(city, trips=others)
    assert choose_weights(changed, Fold(0, 10).parts(changed)[0], last=1) == chosen


def test_names_tell_every_setting_apart() -> None:
    others = [
        replace(FEW, **{name: value})
        for name, value in [
            ("fold", 1), ("seed", 1), ("epsilon", "1"), ("every", 1), ("mechanism", "knorm"),
            ("estimate", "mean"), ("anywhere", 0.1), ("lag", None), ("steps", 9), ("limit", None),
        ]
    ]  # fmt: skip
    assert len({FEW.name, *(other.name for other in others)}) == 11


# Data


@pytest.mark.data
@pytest.mark.slow
def test_a_staircase_every_five_steps_comes_close_on_held_out_people(shared_data: Path) -> None:
    workload = load_workload("geolife", shared_data)
    shares = late_shares(
        [Late(2, epsilon="5", every=5, mechanism="staircase", lag=10).measure(workload)]
    )
    assert shares["filtered"] < 0.17
    assert shares["smoothed"] < 0.085
    assert shares["lagged"] - shares["smoothed"] < 0.02

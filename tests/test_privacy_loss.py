"""How much linked paths lose, at a small probability of losing more."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from dphmm import (
    ArgumentError,
    Mechanism,
    PolicyGraph,
    PrivacyLoss,
    Query,
    SeededRandomness,
    SensitivityHull,
    privacy_loss,
    sensitivity_hull,
)
from dphmm.cost import edge_losses
from dphmm.cost.edge_losses import HALF, edge_curve, edge_differences
from dphmm.noise.cones import fan_of
from dphmm.noise.staircase import best_gamma
from tests.paper import CATEGORIES, VALUES

QUERY, POLICY = Query(VALUES), PolicyGraph.by_category(CATEGORIES)

ABOVE = 1e-9
"""How far below the exact curve a bound may fall: rounding of the oracle's own sums."""


def weights(mechanism: Mechanism, noise: np.ndarray) -> np.ndarray:
    gamma, body = mechanism.gamma, mechanism.body
    levels = body.lattice_norms(noise) if gamma is None else body.lattice_layers(noise, gamma)
    return np.exp(-float(mechanism.epsilon) * levels)


def hockey_stick(mechanism: Mechanism, differences: np.ndarray) -> np.ndarray:
    """The pointwise largest curve over all edges, from every lattice point that weighs."""
    epsilon = float(mechanism.epsilon)
    extent = np.abs(mechanism.body.lattice_vertices).max(axis=0) * int(36 / epsilon + 2)
    noise = np.array(list(product(*(range(-int(x), int(x) + 1) for x in extent))))
    own = weights(mechanism, noise)
    odds = np.exp(epsilon * np.arange(-HALF, HALF + 1) / HALF)
    curves = []
    for vector in differences:
        other = weights(mechanism, noise + vector.astype(int))
        curves.append([np.clip(own - o * other, 0, None).sum() / own.sum() for o in odds])
    return np.max(curves, axis=0)


def binomial_delta(count: int, share: float, epsilon: float) -> float:
    """What randomised response tells more than epsilon."""
    heads = binom.pmf(np.arange(count + 1), count, exp(share) / (1 + exp(share)))
    losses = share * (2 * np.arange(count + 1) - count)
    return float(heads @ np.clip(-np.expm1(np.minimum(epsilon - losses, 0.0)), 0, None))


# Paper


def test_the_running_example_tells_less_than_its_epsilon_alone_says() -> None:
    mechanism = Mechanism(QUERY, sensitivity_hull(QUERY, POLICY), "0.1")
    day = privacy_loss(mechanism, POLICY) * 288
    assert day.epsilon(0) == Fraction("28.8")
    assert 6 < day.epsilon(1e-6) < (PrivacyLoss.pure("0.1") * 288).epsilon(1e-6) < 9.1


def test_a_day_of_releases_at_a_tenth_costs_at_most_nine() -> None:
    line, both = Query([0, 1000]), PolicyGraph.complete(2)
    laplace = Mechanism(line, sensitivity_hull(line, both).l1_ball(), "0.1")
    assert 8.7 < (privacy_loss(laplace, both) * 288).epsilon(1e-6) < 8.8
    assert 8.9 < (PrivacyLoss.pure("0.1") * 288).epsilon(1e-6) < 9.1


def test_a_staircase_tells_more_than_k_norm_noise_and_less_than_its_price() -> None:
    query = Query([[x, y] for x in range(5) for y in range(5)])
    policy = PolicyGraph.within_distance(query, 3)
    hull = sensitivity_hull(query, policy)
    plain, steps = (
        (privacy_loss(Mechanism(query, hull, "0.1", gamma), policy) * 288).epsilon(1e-6)
        for gamma in (None, best_gamma(2, "0.1"))
    )
    assert 6.7 < plain < 6.8 < 7.4 < steps < 7.6 < 8.94
    # On a line whose neighbours are one step apart a staircase is randomised response.
    line, both = Query([0, 1]), PolicyGraph.complete(2)
    edge = Mechanism(line, sensitivity_hull(line, both), "0.1", "0.5")
    assert (privacy_loss(edge, both) * 288).epsilon(1e-6) == pytest.approx(8.948, abs=1e-3)


def test_no_single_edge_need_be_the_worst_at_every_epsilon() -> None:
    query = Query([[0, 0], [9, 0], [0, 9], [5, 5]])
    policy = PolicyGraph(4, [(0, 1), (0, 2), (0, 3)])
    mechanism = Mechanism(query, sensitivity_hull(query, policy), 2)
    differences = edge_differences(mechanism, policy)
    curves = np.array([edge_curve(mechanism, differences[[i]]) for i in range(3)])
    together = edge_curve(mechanism, differences)
    assert (together >= curves.max(axis=0) - ABOVE).all()
    assert len(set(curves[:, 1:-1].argmax(axis=0).tolist())) > 1


# Laws


@given(
    st.lists(
        st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=3, max_size=4, unique=True
    ),
    st.sampled_from(["0.7", "1", "3"]),
    st.sampled_from([None, "0.5", "0.9"]),
)
def test_a_curve_is_never_below_that_of_every_lattice_point(places, epsilon, gamma) -> None:
    query = Query(places)
    policy = PolicyGraph(len(places), [(0, state) for state in range(1, len(places))])
    mechanism = Mechanism(query, sensitivity_hull(query, policy), epsilon, gamma)
    differences = edge_differences(mechanism, policy)
    true, bound = hockey_stick(mechanism, differences), edge_curve(mechanism, differences)
    assert (bound >= true - ABOVE).all()
    assert (bound <= true + 0.05).all()


@given(st.integers(1, 400), st.sampled_from(["0.01", "0.1", "1"]), st.floats(1e-8, 0.1))
def test_more_answers_tell_more_and_never_more_than_the_sum(count, epsilon, delta) -> None:
    one = PrivacyLoss.pure(epsilon)
    few, more = one * count, one * (count + 1)
    assert few.epsilon(delta) <= more.epsilon(delta) <= more.total
    assert few.epsilon(delta / 2) >= few.epsilon(delta)
    assert few.delta(float(few.epsilon(delta))) <= delta


def test_different_prices_add_up_on_one_grid() -> None:
    both = PrivacyLoss.pure("0.3") * 50 + PrivacyLoss.pure("0.1") * 50
    assert both.total == 20
    assert (PrivacyLoss.pure("0.3") * 50).epsilon(1e-5) < both.epsilon(1e-5)
    assert both.epsilon(1e-5) < (PrivacyLoss.pure("0.3") * 100).epsilon(1e-5)


def test_states_with_one_answer_are_never_told_apart() -> None:
    query, policy = Query([0, 0, 5]), PolicyGraph(3, [(0, 1)])
    loss = privacy_loss(Mechanism(query, SensitivityHull.from_vertices([[5]]), 1), policy)
    assert (loss * 10).epsilon(1e-6) == 0


def test_a_long_history_keeps_a_grid_of_bounded_size() -> None:
    long = PrivacyLoss.pure("0.01") * 100_000
    assert len(long.masses) < 10_000
    assert long.epsilon(1e-6) == pytest.approx(19.4, abs=0.1)
    assert binomial_delta(100_000, 0.01, float(long.epsilon(1e-6))) <= 1e-6


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: PrivacyLoss.pure(1) * 0, "count must be at least 1, got 0"),
        (lambda: PrivacyLoss.pure(1).epsilon(1), "delta must be at least 0 and below 1, got 1"),
        (
            lambda: privacy_loss(
                Mechanism(QUERY, SensitivityHull.from_vertices([[1, 1]]), 1), POLICY
            ),
            "policy must link only states that the body hides",
        ),
    ],
)
def test_wrong_arguments_are_refused(wrong, message) -> None:
    with pytest.raises(ArgumentError, match=message):
        wrong()


def test_many_edges_are_gathered_and_still_bounded(monkeypatch) -> None:
    query = Query([[x, y] for x in range(4) for y in range(4)])
    policy = PolicyGraph.complete(16)
    mechanism = Mechanism(query, sensitivity_hull(query, policy), 1)
    differences = edge_differences(mechanism, policy)
    all_of_them = edge_curve(mechanism, differences)
    monkeypatch.setattr("dphmm.cost.edge_losses.MOST_EDGES", 5)
    few = edge_curve(mechanism, differences)
    assert (few >= all_of_them - ABOVE).all()
    assert (few <= all_of_them + 0.2).all()


def test_a_body_too_large_to_sum_gets_randomised_response(monkeypatch) -> None:
    monkeypatch.setattr("dphmm.cost.edge_losses.MAX_SUMMED", 10)
    mechanism = Mechanism(QUERY, sensitivity_hull(QUERY, POLICY), 1)
    pure = PrivacyLoss.pure(1) * 5
    assert (privacy_loss(mechanism, POLICY) * 5).epsilon(1e-3) == pure.epsilon(1e-3)


@pytest.mark.parametrize("price", ["1e-300", "1e-20", "700", "1e9"])
def test_prices_that_floats_cannot_tell_apart_count_in_full(price) -> None:
    query, policy = Query([0, 1]), PolicyGraph.complete(2)
    noise = Mechanism(query, sensitivity_hull(query, policy), price)
    for law in (PrivacyLoss.pure(price), privacy_loss(noise, policy)):
        many = law * 9 + PrivacyLoss.pure("0.1") * 3
        assert many.epsilon("1e-6") == many.total == 9 * Fraction(price) + Fraction("0.3")


def test_no_body_and_price_takes_more_blocks_than_there_is_time_for() -> None:
    """Bodies in space with the smallest cells once took 58 million, a minute's work."""
    for dimension in (1, 2, 3, 4):
        query = Query(list(product(range(3), repeat=dimension)))
        fan = fan_of(sensitivity_hull(query, PolicyGraph.within_distance(query, "1.5")))
        largest = max(cone.volume for cone in fan.cones)
        for price in (1e-9, 0.1, 1.0, 100.0):
            layout = edge_losses._layout(fan, price)
            if layout is not None:
                ranges, bins = layout
                each = len(ranges) ** dimension * min(largest, bins**dimension)
                assert len(fan.cones) * each <= 4 * edge_losses.BLOCKS


# Oracle


@pytest.mark.parametrize("corners", [[[4]], [[2, 0], [0, 2]], [[2, 1], [0, 1], [1, 2]]])
@pytest.mark.parametrize(("epsilon", "gamma"), [("0.5", None), ("2", None), ("1", "0.67")])
def test_the_curve_is_that_of_every_lattice_point(corners, epsilon, gamma) -> None:
    query = Query([[0] * len(corners[0]), *corners])
    policy = PolicyGraph(len(corners) + 1, [(0, i + 1) for i in range(len(corners))])
    mechanism = Mechanism(query, sensitivity_hull(query, policy), epsilon, gamma)
    differences = edge_differences(mechanism, policy)
    np.testing.assert_allclose(
        edge_curve(mechanism, differences), hockey_stick(mechanism, differences), atol=0.01
    )


def test_a_rank_of_three_is_bounded_too() -> None:
    query = Query(np.concatenate([[[0, 0, 0]], np.eye(3, dtype=int), [[1, 1, 0]]]))
    policy = PolicyGraph(5, [(0, i) for i in range(1, 5)])
    mechanism = Mechanism(query, sensitivity_hull(query, policy), 2)
    differences = edge_differences(mechanism, policy)
    true, bound = hockey_stick(mechanism, differences), edge_curve(mechanism, differences)
    assert (bound >= true - ABOVE).all()
    assert (bound <= true + 0.03).all()


def test_compositions_are_those_of_every_sequence_of_answers() -> None:
    """Discrete Laplace noise with difference 2: losses are -e, 0, e in units of e/2, by hand."""
    share = 0.4
    law = {x: exp(-share * abs(x)) for x in range(-200, 201)}
    total = sum(law.values())
    masses: dict[int, float] = {}
    for x, weight in law.items():
        loss = abs(x + 2) - abs(x)
        masses[loss] = masses.get(loss, 0.0) + weight / total
    deltas = []
    for count in (1, 3, 6):
        told = 0.0
        for losses in product(masses, repeat=count):
            chance = np.prod([masses[loss] for loss in losses])
            told += chance * max(0.0, 1 - exp(1.0 - share * sum(losses)))
        deltas.append(told)
    line, both = Query([0, 2]), PolicyGraph.complete(2)
    one = privacy_loss(Mechanism(line, sensitivity_hull(line, both), "0.8"), both)
    bounds = [(one * count).delta(1.0) for count in (1, 3, 6)]
    np.testing.assert_allclose(bounds, deltas, rtol=1e-6, atol=1e-12)


def test_randomised_response_composes_to_a_binomial() -> None:
    for epsilon in (2.0, 6.0, 8.948):
        told = binomial_delta(288, 0.1, epsilon)
        bound = (PrivacyLoss.pure("0.1") * 288).delta(epsilon)
        assert told <= bound <= told * (1 + 1e-5) + 1e-11


DRAWS, STEPS = 4000, 24


def test_draws_tell_as_much_as_the_law_says() -> None:
    query = Query([[x, y] for x in range(3) for y in range(3)])
    policy = PolicyGraph.within_distance(query, 1)
    mechanism = Mechanism(query, sensitivity_hull(query, policy), "0.5")
    day = privacy_loss(mechanism, policy) * STEPS
    random = SeededRandomness(np.random.default_rng(5))
    noise = mechanism.sample_lattice_many(4, DRAWS * STEPS, random) - query.points[4]
    norms = mechanism.body.lattice_norms
    losses = 0.5 * (norms(noise + np.array([1, 0])) - norms(noise))
    sums = losses.reshape(DRAWS, STEPS).sum(axis=1)
    for epsilon in (0.5, 2.0, 4.0):
        told = np.clip(-np.expm1(epsilon - sums), 0, None)
        # Four standard errors: one in 16,000 true laws fails, and the seed is fixed.
        error = 4 * told.std() / DRAWS**0.5
        assert day.delta(epsilon) >= told.mean() - error
        assert day.delta(epsilon) <= told.mean() + error + 0.01
    # A law that claims a third less is found out.
    assert (privacy_loss(mechanism, policy) * (STEPS * 2 // 3)).delta(2.0) < np.clip(
        -np.expm1(2.0 - sums), 0, None
    ).mean()


@pytest.mark.parametrize("size", [1, 10, 1000])
@pytest.mark.parametrize(("epsilon", "count"), [("0.1", 288), ("0.5", 100), ("1", 24)])
def test_laplace_noise_costs_what_another_accountant_says(size, epsilon, count) -> None:
    name = "dp_accounting.pld.privacy_loss_distribution"
    accountant = pytest.importorskip(name, reason="needs dp-accounting (a development dependency)")
    theirs = accountant.from_discrete_laplace_mechanism(
        parameter=float(epsilon) / size, sensitivity=size, value_discretization_interval=1e-4
    )
    line, both = Query([0, size]), PolicyGraph.complete(2)
    ours = privacy_loss(Mechanism(line, sensitivity_hull(line, both).l1_ball(), epsilon), both)
    told = theirs.self_compose(count).get_epsilon_for_delta(1e-6)
    assert (ours * count).epsilon(1e-6) == pytest.approx(told, rel=2e-4)

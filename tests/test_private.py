"""Learning that is private for whole people: what one person can change, and the noise on it."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import exp
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, sparse, stats

from dphmm import (
    ArgumentError,
    Belief,
    MarkovModel,
    MomentumModel,
    Plan,
    Policy,
    PolicyGraph,
    Scenario,
    SeededRandomness,
    States,
    Stream,
    TimeVaryingModel,
    datasets,
)
from dphmm.chain.ground import Ground
from dphmm.chain.habits import BEFORE, SHARPNESS, Habits, Rings, Turns, likely_share, settle
from dphmm.evaluate.metrics import distances
from dphmm.evaluate.study import Fold
from dphmm.evaluate.workloads import load_workload
from dphmm.scenario import private
from dphmm.scenario.counting import Counted
from dphmm.scenario.judging import judge
from dphmm.scenario.learning import moves_within
from dphmm.scenario.private import GRAINS, Levels, learn_private

SIDE = 5
WIDE = 52
GRID = Ground([[x, y] for x in range(SIDE) for y in range(SIDE)])
LINE = [[0, 0], [1, 0], [2, 0], [9, 9]]

# A right sampler fails with this probability, and the seed is fixed.
SIGNIFICANCE = 1e-4

ASKED = {
    "habits": Levels.of_habits(Ground(LINE)),
    "lengths": Levels.of_habits(Ground(LINE), 2.0, turns=False),
    "moves": Levels.of_moves(moves_within(LINE, 1), 2),
}

tracks = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=0, max_size=30
).map(lambda rows: (np.cumsum([gap for gap, _ in rows]), [place for _, place in rows]))  # fmt: skip


def seeded(seed: int) -> SeededRandomness:
    return SeededRandomness(np.random.default_rng(seed))


def grains(levels: Levels, people: list[tuple[object, object]]) -> list[np.ndarray]:
    """Everybody's grains, an array a level."""
    counted = Counted.joined(levels.count(*person) for person in people)  # type: ignore[arg-type]
    sums = []
    for place, level in enumerate(levels.levels):
        here = counted.parts == place
        sums.append(np.zeros(level.size, dtype=np.int64))
        np.add.at(sums[-1], counted.sources[here], counted.times[here])
    return sums


def walkers(people: int, seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    """People who stay a while, then walk straight across the grid."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(people):
        row, places = int(rng.integers(SIDE)), []
        for x in range(SIDE):
            places += [SIDE * x + row] * (6 if x == 0 else 1)
        found.append((np.arange(len(places)), np.array(places)))
    return found


# Paper


def test_lengths_and_turns_fall_into_their_bins() -> None:
    rings = Rings(Ground(LINE), 2.0)
    assert rings.squares.tolist() == [0, 1, 2, 4]
    assert rings.bins(np.array([0, 0, 1, 3, 2, 0])).tolist() == [0, 1, 4, 4, 3]
    straight_back = np.array([0, 0, 1, 2, 1, 1, 1, 0])
    # A stay of one step ends; then straight on, back, stay, a stay of one goes on, of two ends.
    assert Turns(Ground(LINE)).bins(straight_back).tolist() == [9, 1, 5, 0, 6, 9]


def test_people_who_walk_straight_teach_a_chain_that_goes_straight() -> None:
    learned = learn_private(
        walkers(60), Levels.of_habits(GRID), epsilon=5, randomness=seeded(1)
    ).model
    assert isinstance(learned, MomentumModel)
    seen = [np.log(np.where(np.arange(25) == place, 0.9, 0.1 / 24)) for place in (2, 7, 12)]
    ahead = learned.filter([*seen, None], start=2)[-1].probabilities
    assert ahead.argmax() == 17
    plain = learn_private(
        walkers(60), Levels.of_habits(GRID, turns=False), epsilon=5, randomness=seeded(1)
    ).model
    assert type(plain) is MarkovModel
    assert plain.filter([*seen, None], start=2)[-1].probabilities[17] < ahead[17]


@pytest.mark.slow
def test_fifty_people_of_a_made_up_city_beat_a_walk_that_knows_no_data() -> None:
    city = datasets.synthetic_city(people=60, days=1, rng=np.random.default_rng(8))
    slots = np.arange(city.states.shape[1])
    everybody = [(slots, states) for states in city.states]
    learned = learn_private(everybody[:50], city.grid.centers, epsilon=1, randomness=seeded(2))
    places = States.on_plane(city.grid.centers)
    town = Scenario(places, learned.model, Policy(distance=1000), epsilon=1, step=10)
    found = judge([(town, everybody[50:])], lag=None)
    assert found.shares["now"] < 0.9 * found.shares["walk"]
    assert found.miss < 0.15, "twenty walks tell no better"


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize(("epsilon", "now", "late"), [("1", 0.40, 0.26), ("0.3", 0.42, 0.28)])
def test_people_of_geolife_are_followed_by_a_model_that_is_private_for_others(
    shared_data: Path, epsilon: str, now: float, late: float
) -> None:
    # Runs of 100 steps, every second one, of five folds with the ids of one person together.
    workload = load_workload("geolife", shared_data)
    one = datasets.same_person(workload.trips)
    plan = Plan(PolicyGraph.within_distance(workload.query, "1"), workload.query)
    values, place = workload.query.values, 0
    apart: dict[str, list[np.ndarray]] = {"raw": [], "now": [], "late": []}
    for fold in range(5):
        training, runs = Fold(fold, 100).parts(workload)
        people: dict[str, tuple[list[int], list[int]]] = {}
        for trip in training:
            slots, states = people.setdefault(one[trip.person], ([], []))
            begin = slots[-1] + 2 if slots else 0
            slots += range(begin, begin + len(trip))
            states += trip.states.tolist()
        model = learn_private(
            people.values(), workload.grid.centers, epsilon=epsilon, randomness=seeded(fold)
        ).model
        for run in runs:
            place += 1
            if place % 2:
                continue
            stream = Stream(
                model, plan, epsilon=1, start=Belief.uniform(len(values)),
                randomness=seeded(100 + place), estimate="median",
            )  # fmt: skip
            releases = [stream.release(int(state)) for state in run.states]
            truth = values[run.states]
            apart["raw"].append(distances([r.answer for r in releases], truth))
            apart["now"].append(distances([r.estimate for r in releases], truth))
            apart["late"].append(distances(stream.smoothed(), truth))
    raw, found, hindsight = (float(np.concatenate(rows).mean()) for rows in apart.values())
    assert found <= now * raw, found / raw
    assert hindsight <= late * raw, hindsight / raw


def test_people_who_go_farther_than_memory_reaches_have_a_chain_that_reaches_them() -> None:
    wide = Ground([[x, y] for x in range(WIDE) for y in range(WIDE)])
    rings = Rings(wide, farther=True)
    assert rings.squares.tolist() == [0, 1, 2, 5, 20, 72, 117]
    assert rings.near == 4
    assert Rings(wide).squares.tolist() == [0, 1, 2, 5]
    assert Rings(wide, 3.0, farther=True).squares.tolist() == [0, 1, 2, 6, 9], "as was asked for"
    for leap, kind, least in ((6, MarkovModel, 0.9), (1, MomentumModel, 0.9)):
        people = [(np.arange(8), WIDE * leap * np.arange(8) + n) for n in range(50)]
        learned = learn_private(people, Levels.of_habits(wide), epsilon=1, randomness=seeded(2))
        assert type(learned.model) is kind
        assert "0.5 on how far (8 numbers), 0.5 on staying and turning" in learned.source
        place = WIDE * (WIDE // 2) + WIDE // 2
        row = learned.model.on_places.at(1).transition[[place]].toarray()[0]
        far = (wide.steps(np.full(WIDE**2, place), np.arange(WIDE**2)) ** 2).sum(axis=1)
        within = (far > 20) & (far <= 72) if leap == 6 else far == 1
        assert row[within].sum() > least


# Laws


@pytest.mark.parametrize("asked", ASKED)
@given(others=st.lists(tracks, max_size=3), person=tracks)
def test_one_person_changes_each_level_by_at_most_one_unit(
    asked: str, others: list[tuple[object, object]], person: tuple[object, object]
) -> None:
    levels = ASKED[asked]
    with_them, without = (grains(levels, people) for people in ([*others, person], others))
    for more, fewer in zip(with_them, without, strict=True):
        assert more.dtype == np.int64
        assert (more >= fewer).all()
        assert int((more - fewer).sum()) <= GRAINS


def test_a_third_is_rounded_down_before_anything_is_added() -> None:
    levels = ASKED["lengths"]
    (sums,) = grains(levels, [([0, 1, 2, 3], [0, 0, 1, 3])])
    assert sums.tolist() == [333333, 333333, 0, 0, 333333]


@given(st.lists(tracks, max_size=3), st.lists(tracks, max_size=3), st.integers(0, 99))
def test_what_is_possible_does_not_depend_on_the_data(
    one: list[tuple[object, object]], other: list[tuple[object, object]], seed: int
) -> None:
    for levels in ASKED.values():
        first, second = (
            learn_private(people, levels, epsilon=1, randomness=seeded(seed)).model.at(1)  # type: ignore[arg-type]
            for people in (one, other)
        )
        assert sparse.csr_array((first.transition > 0) != (second.transition > 0)).nnz == 0
        assert first.anywhere > 0


def test_the_source_says_what_was_spent_where_and_it_adds_up() -> None:
    levels = Levels.of_habits(GRID)
    learned = learn_private([], levels, epsilon="0.3")
    assert learned.source.startswith(
        "private, epsilon=0.3 for everything about one person, added or removed: "
    )
    assert "0.15 on how far (" in learned.source
    assert "0.15 on staying and turning (16 numbers)" in learned.source
    assert sum(levels.shares) == 1
    cells = learn_private([], ASKED["moves"], epsilon=2)
    assert "2 on every move (16 numbers)" in cells.source
    assert isinstance(cells.model, TimeVaryingModel)
    with pytest.raises(ArgumentError, match="shares must add up to 1"):
        Levels(levels.levels, (Fraction(1, 2), Fraction(1, 3)))


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=9))
def test_settled_numbers_are_none_below_zero_and_sum_to_the_noisy_sum(noisy: list[float]) -> None:
    settled = settle(noisy)
    assert settled.min() >= 0
    np.testing.assert_allclose(settled.sum(), max(sum(noisy), 0), rtol=0, atol=1e-9)


def test_noise_on_the_few_who_leave_does_not_decide_how_long_people_stay() -> None:
    # Sixty people who hardly move, as in the made-up city: 0.14 of them end a long stay, beside
    # noise of scale 2. Without noise a step in 200 ends one. Settled and shared out, the noise
    # made that anything between the first and the last quarter of one in 1,200 and one in 38.
    far = np.array([58.2, 1.6, 0.2, 0.0, 0.0, 0.0])
    turned = np.array([0.4, 1.2, 0, 0.1, 0, 0, 0.2, 0.2, 0.4, 0.1, 0.7, 0, 0.7, 0, 55.8, 0.14])
    rng, left = np.random.default_rng(3), []
    for _ in range(100):
        noisy = [numbers + rng.laplace(0, 2, len(numbers)) for numbers in (far, turned)]
        model = Habits(Rings(GRID, 3.0), SHARPNESS, 6.0, 2.0).draw(*noisy)
        left.append(1 - model.transition[12 * 20 + 19, 12 * 20 + 19])
    low, high = np.quantile(left, [0.25, 0.75])
    assert high < 8 * low
    assert 1 / 800 < np.median(left) < 1 / 100


@given(st.floats(-20, 100), st.floats(-20, 100), st.floats(0, 1), st.floats(0.5, 20))
def test_a_likely_share_is_neither_none_nor_all(
    stay: float, go: float, usual: float, noise: float
) -> None:
    assert 0 < likely_share(np.array([stay, go]), usual, noise) < 1


@pytest.mark.parametrize(
    "wrong", [{"epsilon": 0}, {"epsilon": -1}, {"prior": 0.0}, {"anywhere": 1.5}]
)
def test_learning_refuses_what_makes_no_sense(wrong: dict[str, object]) -> None:
    with pytest.raises(ArgumentError, match="must"):
        learn_private([], ASKED["moves"], **{"epsilon": 1, **wrong})  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="support must be square"):
        Levels.of_moves(sparse.csr_array((2, 3)))
    with pytest.raises(ArgumentError, match="slots must be at least 1"):
        Levels.of_moves(moves_within(LINE, 1), 0)


def test_sharper_numbers_stay_more_and_a_reach_beyond_a_place_keeps_it_still() -> None:
    far = np.array([6.0, 3.0, 1.0, 0.0])
    still = [
        Habits(Rings(GRID, 1.5), sharpness).draw(far).transition[12, 12] for sharpness in (1.0, 2.0)
    ]
    assert still[0] < still[1]
    alone = Habits(Rings(Ground([[0, 0], [1, 0], [50, 50]]), 1.0)).draw(
        np.array([6.0, 3.0, 1.0]), np.ones(16)
    )
    lone = alone.transition[[2 * 20 + 8]]
    assert lone.sum() == pytest.approx(1, rel=1e-12)
    assert lone.nnz == 1


# Oracle


@pytest.mark.parametrize("pair", [(56.0, 4.0), (7.0, 6.0), (3.0, -2.0)])
@pytest.mark.parametrize("usual", [0.6, 0.9])
def test_a_likely_share_is_the_mean_over_all_shares_and_numbers(
    pair: tuple[float, float], usual: float
) -> None:
    noise, most = 2.0, max(sum(pair), 0) + 20.0
    total = weighted = 0.0
    for logit in np.linspace(-12, 12, 601):
        share = 1 / (1 + exp(-logit))
        # A beta density times the derivative of the share.
        before = share ** (BEFORE * usual) * (1 - share) ** (BEFORE * (1 - usual))

        def likelihood(people: float, share: float = share) -> float:
            apart = abs(pair[0] - people * share) + abs(pair[1] - people * (1 - share))
            return exp(-apart / noise)

        bends = sorted(
            {min(max(pair[0] / share, 0), most), min(max(pair[1] / (1 - share), 0), most)}
        )
        mass = before * integrate.quad(likelihood, 0, most, points=bends)[0]
        total, weighted = total + mass, weighted + mass * share
    wanted = weighted / total
    assert likely_share(np.array(pair), usual, noise) == pytest.approx(wanted, abs=2e-3)


@pytest.mark.parametrize("asked", ASKED)
def test_no_outcome_tells_neighbours_apart_by_more_than_epsilon(
    asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # With a unit of seven grains every walk of four steps over four places, as the person who is
    # added to nobody or to somebody else, and every outcome of each bin near the two sums.
    monkeypatch.setattr(private, "GRAINS", 7)
    levels, epsilon = ASKED[asked], Fraction(3, 5)
    worst = Fraction(0)
    other = ([0, 1, 2], [0, 1, 1])
    for walk, others in product(product(range(4), repeat=4), ([], [other])):
        person = (range(4), walk)
        more, fewer = (grains(levels, people) for people in ([*others, person], others))
        loss = Fraction(0)
        for share, a, b in zip(levels.shares, more, fewer, strict=True):
            for x, y in zip(a.tolist(), b.tolist(), strict=True):
                # log P(z | x) - log P(z | y) of discrete Laplace noise, the normaliser cancels.
                here = max(abs(z - y) - abs(z - x) for z in range(-2, 30))
                loss += epsilon * share * Fraction(here, 7)
        worst = max(worst, loss)
    assert worst <= epsilon
    assert worst >= epsilon * Fraction(5, 7), "the bound is nearly reached, so it is not idle"


@pytest.mark.parametrize(("scale", "fits"), [(1.0, True), (2.0, False)])
def test_the_noise_on_each_number_is_the_discrete_laplace(
    scale: float, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(private, "GRAINS", 3)
    draws, epsilon = 4000, Fraction(2)
    sums = np.full(draws, 5, dtype=np.int64)
    noisy = np.rint(3 * private._noisy(sums, epsilon, seeded(7), b"0")).astype(np.int64) - 5
    decay = exp(-float(epsilon) * scale / 3)
    edge = 6
    chances = [(1 - decay) / (1 + decay) * decay ** abs(k) for k in range(-edge, edge + 1)]
    seen = [int((noisy == k).sum()) for k in range(-edge, edge + 1)]
    observed = [*seen, draws - sum(seen)]
    expected = [draws * chance for chance in chances]
    found = stats.chisquare(observed, [*expected, draws - sum(expected)]).pvalue
    assert bool(found > SIGNIFICANCE) is fits

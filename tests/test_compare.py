"""Mechanisms beside ours: each held to its promise and to its own likelihood, and a broken one."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from dphmm import ArgumentError, Belief, MarkovModel, Query
from dphmm.chain.lagging import FixedLag
from dphmm.evaluate.compare import (
    CONTENDERS,
    Budget,
    Contender,
    OneLaw,
    Told,
    World,
    compare,
    contender_of,
    read,
)
from dphmm.evaluate.compare.field import grid_of
from dphmm.evaluate.compare.harness import see
from dphmm.evaluate.compare.optimal import regions_of, solve_optimal
from dphmm.evaluate.compare.planar import PlanarLaplace, draw_planar, log_planar
from dphmm.evaluate.compare.predictive import Predictive
from dphmm.evaluate.compare.reading import likelihoods, log_scores, looks
from dphmm.evaluate.compare.testing import farther, log_farther
from dphmm.evaluate.compare.window_event import BudgetAbsorption, BudgetDivision

EXACT = 1e-9
SINGLE = 2e-5
"""Beliefs are kept in single precision."""


def small_world(side: int = 4, anywhere: float = 0.05) -> World:
    """A square of cells of half a kilometre in which people stay or walk to the next cell."""
    cells = np.array([(x, y) for x in range(side) for y in range(side)])
    near = np.abs(cells[:, None] - cells[None, :]).sum(axis=2) <= 1
    chain = MarkovModel(near / near.sum(axis=1, keepdims=True), anywhere=anywhere)
    weights = 1.0 + np.arange(len(cells))
    start = Belief.from_probabilities(weights / weights.sum())
    return World(Query(cells * 0.5, step="0.01"), "0.8", chain, start)


WORLD = small_world()
BUDGET = Budget(3, 6)
FIRST = np.array([5, 5, 6, 6, 10, 10])
SECOND = np.array([5, 6, 6, 7, 9, 10])
"""Two paths that are equal or linked at every time."""


def made(name: str, budget: Budget = BUDGET) -> Contender:
    knobs = {"every": 2} if "scheduled" in name else {}
    if name == "optimal":
        knobs = {"most": 9}
    return contender_of(name, WORLD, budget, **knobs)


def losses(told: Told, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The log-ratio of all that was told of each person, between two paths."""
    total = np.zeros(len(told.spent))
    for step in range(told.steps):
        logs = told.log_likelihood(step)
        if logs is not None:
            total += logs[:, second[step]] - logs[:, first[step]]
    return total


def is_its_own_law(contender: Contender, people: int, seed: int = 0) -> bool:
    """Whether the mean of P(told | second) / P(told | first), told of the first, is one.

    That holds for the law that was drawn from and for no other. Ratios are at most e^spent, so
    five standard errors are left by chance once in a million.
    """
    told = contender.release(np.tile(FIRST, (people, 1)), np.random.default_rng(seed))
    ratios = np.exp(losses(told, FIRST, SECOND))
    return bool(abs(ratios.mean() - 1) <= 5 * ratios.std() / np.sqrt(people))


def keeps_its_promise(contender: Contender, people: int, seed: int = 1) -> bool:
    """Whether no linked pair loses more at a step, by what was told, than the step cost."""
    told = contender.release(np.tile(FIRST, (people, 1)), np.random.default_rng(seed))
    links = WORLD.policy.links
    for step in range(told.steps):
        logs = told.log_likelihood(step)
        if logs is not None:
            worst = np.abs(logs[:, links[:, 0]] - logs[:, links[:, 1]]).max(axis=1)
            if (worst > told.spent[:, step] + EXACT).any():
                return False
    return True


class _TooLoud(PlanarLaplace):
    """Broken: less noise than the likelihood says, as if the radius were the diameter."""

    def draw(self, places: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return draw_planar(self.world.places[places], 2 * self.rate, rng)


class _Dear(PlanarLaplace):
    """Broken: loses twice what it says it spends."""

    @property
    def rate(self) -> float:
        return 2 * self.epsilon / self.world.span


class _Untested(Predictive):
    """Broken: forgets that the choice between prediction and noise tells something."""

    def release(self, paths: np.ndarray, rng: np.random.Generator) -> Told:
        told = super().release(paths, rng)

        def log_likelihood(step: int) -> np.ndarray:
            return np.where(
                (told.spent[:, step] > self.budget.each)[:, None],
                log_planar(told.shown[:, step], self.world.places, 1.0),
                0.0,
            )

        return Told(told.shown, told.spent, log_likelihood)


# Paper


@pytest.mark.parametrize("name", sorted(set(CONTENDERS) - {"location_set"}))
def test_every_mechanism_draws_what_its_likelihood_says(name: str) -> None:
    assert is_its_own_law(made(name), 4000)


@pytest.mark.parametrize("name", sorted(set(CONTENDERS) - {"location_set"}))
def test_no_mechanism_loses_more_at_a_step_than_the_step_cost(name: str) -> None:
    assert keeps_its_promise(made(name), 1500)


@pytest.mark.parametrize("broken", [_TooLoud, _Untested])
def test_a_mechanism_with_another_likelihood_is_found_out(broken: type[Contender]) -> None:
    assert not is_its_own_law(broken(WORLD, BUDGET), 4000)


def test_a_mechanism_that_loses_more_than_it_spends_is_found_out() -> None:
    assert not keeps_its_promise(_Dear(WORLD, BUDGET), 1500)


def test_a_location_set_loses_at_most_epsilon_between_its_places() -> None:
    contender = made("location_set")
    told = contender.release(np.tile(FIRST, (60, 1)), np.random.default_rng(2))
    first = told.log_likelihood(0)
    assert first is not None
    inside = contender.plan.to_protect(WORLD.start.predict(WORLD.chain))  # type: ignore[attr-defined]
    spread = np.ptp(first[:, inside], axis=1)
    assert 0.3 < spread.max() <= BUDGET.each + 1e-6
    assert len(np.flatnonzero(inside)) > 2


def test_the_radius_of_planar_laplace_noise_has_its_law() -> None:
    rng = np.random.default_rng(3)
    noise = draw_planar(np.zeros((20_000, 2)), 2.5, rng)
    radius, angle = np.hypot(*noise.T), np.arctan2(noise[:, 1], noise[:, 0])

    def law(r: np.ndarray) -> np.ndarray:
        return 1 - (1 + 2.5 * r) * np.exp(-2.5 * r)

    assert stats.kstest(radius, law).pvalue > 1e-4
    assert stats.kstest(angle, stats.uniform(-np.pi, 2 * np.pi).cdf).pvalue > 1e-4
    # The usual mistake, an exponential radius, is caught by the same test.
    wrong = rng.exponential(1 / 2.5, 20_000)
    assert stats.kstest(wrong, law).pvalue < 1e-9


def test_the_planar_density_sums_to_one() -> None:
    axis = np.arange(-8, 8, 0.02)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    total = np.exp(log_planar(grid, np.array([[0.1, -0.2]]), 3.0)).sum() * 0.02**2
    assert total == pytest.approx(1, abs=1e-3)


def test_places_as_far_apart_as_linked_ones_can_be_lose_epsilon_under_planar_laplace() -> None:
    contender = PlanarLaplace(WORLD, BUDGET)
    answers = np.array([[-9.0, -9.0], [0.3, 0.4], [9.0, 9.0]])
    logs = contender.log_likelihoods(answers)
    links = WORLD.policy.links
    gaps = np.abs(logs[:, links[:, 0]] - logs[:, links[:, 1]])
    assert gaps.max() == pytest.approx(contender.epsilon, rel=1e-3)
    assert gaps.max() <= contender.epsilon + EXACT


def vertices(prior: np.ndarray, cost: np.ndarray, pairs: np.ndarray, factor: float) -> float:
    """The least cost of a 3 x 3 mechanism, over every corner of the polytope."""
    ratios = []
    for a, b in np.concatenate([pairs, pairs[:, ::-1]]):
        for z in range(3):
            row = np.zeros(9)
            row[3 * a + z], row[3 * b + z] = 1, -factor
            ratios.append(row)
    tight = np.concatenate([np.array(ratios), -np.eye(9)])
    sums = np.kron(np.eye(3), np.ones(3))
    chosen = np.array(list(combinations(range(len(tight)), 6)))
    systems = np.concatenate([np.tile(sums, (len(chosen), 1, 1)), tight[chosen]], axis=1)
    regular = np.abs(np.linalg.det(systems)) > 1e-9
    target = np.concatenate([np.ones(3), np.zeros(6)])
    corners = np.linalg.solve(systems[regular], target[None, :, None])[:, :, 0]
    allowed = (corners @ tight.T <= 1e-9).all(axis=1)
    return float((corners[allowed] @ (prior[:, None] * cost).ravel()).min())


@pytest.mark.parametrize("prior", [[1 / 3, 1 / 3, 1 / 3], [0.7, 0.1, 0.2]])
def test_the_linear_program_reaches_the_best_corner_of_three_places(prior: list[float]) -> None:
    weights, places = np.array(prior), np.array([0.0, 1.0, 3.0])
    cost = np.abs(places[:, None] - places[None, :])
    pairs = np.array([[0, 1], [1, 2]])
    for factor in (1.5, 4.0):
        matrix = solve_optimal(weights, cost, pairs, np.full(2, np.log(factor)))
        found = float((weights[:, None] * cost * matrix).sum())
        assert found == pytest.approx(vertices(weights, cost, pairs, factor), rel=1e-6)


def test_the_optimal_matrix_keeps_every_ratio_without_a_tolerance() -> None:
    rng = np.random.default_rng(4)
    places = rng.random((12, 2))
    cost = np.hypot(*(places[:, None] - places[None, :]).T)
    pairs = np.array(list(combinations(range(12), 2)))
    loss = 3 * cost[pairs[:, 0], pairs[:, 1]]
    matrix = solve_optimal(np.full(12, 1 / 12), cost, pairs, loss)
    for a, b in ((0, 1), (1, 0)):
        assert (matrix[pairs[:, a]] <= np.exp(loss)[:, None] * matrix[pairs[:, b]]).all()
    assert matrix.sum(axis=1) == pytest.approx(np.ones(12), rel=1e-12)


def test_one_step_of_nobody_else_beats_the_linear_program_on_its_own_map() -> None:
    side = small_world(3)
    program = contender_of("optimal", side, Budget(1, 1), most=9)
    matrix = program.matrix  # type: ignore[attr-defined]
    best = float((side.prior[:, None] * matrix * side.apart).sum())
    paths = np.repeat(np.arange(9), 3000)[:, None]
    weights = side.prior[paths[:, 0]] * 9
    for name in ("planar", "remapped", "l1", "knorm", "staircase"):
        told = contender_of(name, side, Budget(1, 1)).release(paths, np.random.default_rng(5))
        error = weights * np.hypot(*(told.shown[:, 0] - side.places[paths[:, 0]]).T)
        assert error.mean() > best - 4 * error.std() / np.sqrt(len(error)), name


# Laws


@pytest.mark.parametrize("name", sorted(CONTENDERS))
def test_nobody_spends_more_than_the_budget_in_any_window(name: str) -> None:
    rng = np.random.default_rng(6)
    steps = 8 if name == "location_set" else 40
    paths = rng.integers(0, 16, (6, steps))
    budget = Budget(3, 6)
    for knobs in grid_of(name, budget)[:6]:
        told = contender_of(name, WORLD, budget, **knobs).release(paths, rng)
        assert told.most_in(6) <= 3 + EXACT
        assert told.shown.shape == (6, steps, 2)
        assert np.isfinite(told.shown).all()


def test_the_chance_of_a_test_is_that_of_its_noise() -> None:
    distance, threshold = np.array([0.2, 1.0, 1.9]), 1.0
    for place, value in enumerate(distance):
        heard = farther(
            np.full(40_000, value), np.full(40_000, threshold), 2.0, np.random.default_rng(place)
        )
        chance = stats.laplace(scale=0.5).sf(threshold - value)
        logs = log_farther(
            distance[None].repeat(2, 0), np.full(2, threshold), 2.0, np.array([True, False])
        )
        assert np.exp(logs[0, place]) == pytest.approx(chance, rel=1e-12)
        assert np.exp(logs[1, place]) == pytest.approx(1 - chance, rel=1e-12)
        # Four standard errors of a share of 40,000.
        assert heard.mean() == pytest.approx(chance, abs=4 * 0.5 / 200)


def test_remapping_is_the_guess_with_the_least_expected_distance() -> None:
    contender = contender_of("remapped", WORLD, BUDGET)
    assert isinstance(contender, PlanarLaplace)
    answers = np.random.default_rng(7).normal(1, 1, (20, 2))
    shown = contender.show(answers)
    weights = np.exp(contender.log_likelihoods(answers)) * WORLD.prior
    for row, point in zip(weights, shown, strict=True):
        costs = [row @ np.hypot(*(WORLD.places - place).T) for place in WORLD.places]
        mine = row @ np.hypot(*(WORLD.places - point).T)
        assert mine <= min(costs) * (1 + 1e-5)


def test_regions_are_squares_and_few_enough() -> None:
    region = regions_of(WORLD.places, 4)
    assert sorted(np.bincount(region).tolist()) == [4, 4, 4, 4]
    assert (regions_of(WORLD.places, 16) == np.arange(16)).all()
    assert (regions_of(WORLD.places, 1) == 0).all()


# Oracle


def test_prices_of_absorption_are_those_of_the_published_algorithm() -> None:
    rng = np.random.default_rng(8)
    contender = BudgetAbsorption(WORLD, Budget(4, 8))
    unit = 4 / 16
    published = np.zeros((50, 30))
    for step in range(30):
        prices = contender.prices(published[:, :step], step)
        for person in range(50):
            # Kellaris et al., Algorithm 2, one step at a time.
            earlier = np.flatnonzero(published[person, :step])
            last = int(earlier[-1]) if len(earlier) else -1
            nullified = published[person, last] / unit - 1 if len(earlier) else 0
            if step - last <= nullified:
                expected = 0.0
            else:
                expected = unit * min(step - (last + nullified), 8)
            assert prices[person] == pytest.approx(expected, abs=EXACT)
        published[:, step] = np.where(rng.random(50) < 0.4, prices, 0.0)
        window = published[:, max(0, step - 7) : step + 1].sum(axis=1)
        assert (window <= 2 + EXACT).all()


def test_prices_of_division_are_half_of_what_is_left() -> None:
    contender = BudgetDivision(WORLD, Budget(4, 8), window=4)
    published = np.array([[0.5, 0.0, 0.25, 0.0]])
    # The window's budget is 2, half of it for publications; the last three steps count.
    assert contender.prices(published[:, :1], 1).tolist() == [0.25]
    assert contender.prices(published, 4).tolist() == [0.375]


def test_the_reader_is_the_librarys_filter_smoother_and_fixed_lag() -> None:
    told = contender_of("scheduled", WORLD, Budget(4, 8), every=2).release(
        np.random.default_rng(9).integers(0, 16, (3, 8)), np.random.default_rng(10)
    )
    rows = likelihoods(told)
    beliefs = read(rows, WORLD.chain, WORLD.start, 3, lag=2)
    assert beliefs.lagged is not None
    for person in range(3):
        seen = [None if row is None else np.log(row[:, person].astype(float)) for row in rows]
        exact = WORLD.chain.filter(seen, start=WORLD.start)
        smooth = WORLD.chain.smooth(seen, start=WORLD.start)
        late = FixedLag(WORLD.chain, lag=2, start=WORLD.start)
        settled = [one for row in seen for one in late.step(row)] + late.finish()
        for step in range(8):
            for mine, theirs in (
                (beliefs.filtered, exact[step]),
                (beliefs.hindsight, smooth[step]),
            ):
                assert mine[step, person] == pytest.approx(theirs.probabilities, abs=SINGLE)
        for step, one in enumerate(settled):
            mine = beliefs.lagged[step, person]
            assert mine == pytest.approx(one.belief.probabilities, abs=SINGLE)
    some = read(rows, WORLD.chain, WORLD.start, 3, lag=2, at=[1, 4, 7])
    for kind in ("filtered", "lagged", "hindsight"):
        assert (getattr(some, kind) == getattr(beliefs, kind)[[1, 4, 7]]).all()
    score = log_scores(rows, WORLD.chain, WORLD.start, 3)
    for person in range(3):
        seen = [None if row is None else np.log(row[:, person].astype(float)) for row in rows]
        assert score[person] == pytest.approx(WORLD.chain.score(seen, start=WORLD.start), abs=1e-4)


def test_what_is_seen_of_beliefs_is_what_they_say() -> None:
    belief = np.zeros((1, 1, 16), dtype=np.float32)
    belief[0, 0, [0, 15]] = 0.75, 0.25
    seen = see(WORLD, belief, np.array([[15]]))
    far = np.hypot(1.5, 1.5)
    assert seen.error[0, 0] == pytest.approx(far, rel=1e-6)
    assert seen.expected[0, 0] == pytest.approx(0.75 * far, rel=1e-6)
    assert seen.within[0, 0] == pytest.approx(0.25)


def test_more_budget_means_less_error_and_an_adversary_who_knows_more() -> None:
    paths = np.stack(
        [WORLD.chain.sample(30, rng=np.random.default_rng(i), start=5) for i in range(30)]
    )
    little, much = (
        compare(
            contender_of("staircase", WORLD, Budget(total, 30)),
            paths,
            np.random.default_rng(11),
            own=[(WORLD.chain, Belief.certain(5, 16))] * 30,
        )
        for total in (3, 90)
    )
    for name in ("raw", "filtered", "lagged", "hindsight", "expected", "own"):
        assert getattr(much, name).mean() < getattr(little, name).mean(), name
    assert much.within.mean() > little.within.mean()
    assert much.hindsight.mean() <= much.lagged.mean() + 0.01 <= much.filtered.mean() + 0.02
    assert much.spent == pytest.approx({"instant": 3, "window": 90, "step": 3})


class Everywhere(OneLaw):
    """A mechanism in one class: any place at all, which costs nothing and tells nothing."""

    name = "nothing"
    promise = "Nobody loses anything."

    def draw(self, places: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return self.world.places[rng.integers(0, len(self.world.places), len(places))]

    def log_likelihoods(self, answers: np.ndarray) -> np.ndarray:
        return np.zeros((len(answers), len(self.world.places)))


def test_a_new_mechanism_is_one_class() -> None:
    paths = np.tile(FIRST, (5, 1))
    found = compare(Everywhere(WORLD, BUDGET), paths, np.random.default_rng(12))
    silent = WORLD.chain.filter([None] * 6, start=WORLD.start)
    rows = np.array([belief.probabilities for belief in silent], dtype=np.float32)
    at = looks(6)
    alone = see(WORLD, rows[at, None], FIRST[None, at])
    assert found.hindsight == pytest.approx(np.full(5, alone.error.mean()), rel=1e-5)
    assert found.expected == pytest.approx(np.full(5, alone.expected.mean()), rel=1e-5)


# Messages


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Budget(0, 3), "total must be a number above 0, got 0"),
        (lambda: Budget(1, 0), "steps must be at least 1, got 0"),
        (lambda: contender_of("none", WORLD, BUDGET), "name must be"),
        (lambda: PlanarLaplace(WORLD, BUDGET, every=4), "every must divide 6 steps, got 4"),
        (lambda: BudgetDivision(WORLD, BUDGET, window=12), "window must divide 6 steps, got 12"),
        (lambda: Predictive(WORLD, BUDGET, share=0), "share must be above 0, got 0"),
        (
            lambda: compare(made("planar"), np.zeros((0, 3), int), np.random.default_rng(0)),
            "paths must be rows of places",
        ),
        (
            lambda: compare(made("planar"), FIRST[None] + 9, np.random.default_rng(0)),
            "paths must be among the 16 places",
        ),
        (
            lambda: compare(made("planar"), FIRST[None], np.random.default_rng(0), own=[]),
            "own must have a chain for each of 1 paths, got 0",
        ),
        (
            lambda: World(Query([0, 1]), "1", MarkovModel(np.eye(2)), Belief.certain(0, 2)),
            "query must have two coordinates, got 1",
        ),
        (
            lambda: World(WORLD.query, "1", MarkovModel(np.eye(2)), Belief.certain(0, 2)),
            "chain must have the 16 states of the query, got 2",
        ),
        (
            lambda: World(WORLD.query, "0.1", WORLD.chain, WORLD.start).span,
            "radius must link places, got '0.1', which links none",
        ),
        (
            lambda: solve_optimal(np.ones(2), np.ones((3, 3)), np.zeros((0, 2), int), np.ones(0)),
            "prior must fit distance",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ArgumentError, match=message):
        call()

"""Accounting: the paper's theorems, the tight values, and every pair of paths as their oracle."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import exp, inf, lcm, nextafter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm.chain.markov import Belief, Chain, MarkovModel
from dphmm.cost import composition
from dphmm.cost.bracket import Bracket, path_epsilon, sequence_bracket
from dphmm.cost.charges import Charge, constrained_epsilon, worst_pair
from dphmm.cost.composition import compose
from dphmm.cost.history import History
from dphmm.cost.realised import realised_odds
from dphmm.cost.sequences import paper_sequence_epsilon, sequence_epsilon
from dphmm.cost.statement import privacy_statement
from dphmm.cost.windows import event_epsilon, window_epsilon
from dphmm.cost.words import CONDITION
from dphmm.errors import ArgumentError, TooLargeError
from dphmm.geometry.hull import SensitivityHull
from dphmm.geometry.query import Query
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.sensitivity import sensitivity_hull
from tests.paper import CATEGORIES, TRANSITION, VALUES

QUERY = Query(VALUES)
POLICY = PolicyGraph.by_category(CATEGORIES)
MODEL = MarkovModel(TRANSITION)
UNIT = SensitivityHull.from_vertices([[1]])
ORACLE_CASES = 300
COARSE = 25


def mask(*states: int, size: int = 6) -> np.ndarray:
    return np.isin(np.arange(size), states)


def ring(stops: int, far: int) -> tuple[Query, MarkovModel]:
    """Stops in a circle, all at position 0 but the last."""
    return Query([0] * (stops - 1) + [far]), MarkovModel(np.roll(np.eye(stops), 1, axis=1))


def lazy_walk(side: int) -> tuple[Query, MarkovModel]:
    """A grid on which each step leads to one of the eight cells around, or nowhere."""
    cells = np.array(list(product(range(side), repeat=2)))
    near = np.abs(cells[:, None] - cells[None, :]).max(axis=2) <= 1
    return Query(cells), MarkovModel(near / near.sum(axis=1, keepdims=True))


class Alternating(Chain):
    """A chain with two models that take turns: the first for odd times."""

    def __init__(self, odd: MarkovModel, even: MarkovModel) -> None:
        self.turns = (even, odd)

    @property
    def n_states(self) -> int:
        return self.turns[0].n_states

    @property
    def digest(self) -> bytes:
        return b"".join(model.digest for model in self.turns)

    def at(self, time: int) -> MarkovModel:
        return self.turns[time % 2]


# Paper


def test_theorem_6_3_on_the_running_example() -> None:
    assert constrained_epsilon(QUERY, sensitivity_hull(QUERY, POLICY), 1) == 2
    assert worst_pair(QUERY, sensitivity_hull(QUERY, POLICY), 3) == (6, 0, 4)


def test_example_5_2_exposes_s5_by_three_halves_under_laplace_and_endlessly_under_knorm() -> None:
    possible = mask(1, 2, 4)
    hull = sensitivity_hull(QUERY, POLICY, possible)
    assert constrained_epsilon(QUERY, hull.l1_ball(), 1, possible) == Fraction(3, 2)
    assert constrained_epsilon(QUERY, hull, 1, possible) == inf


def test_case_i_of_the_appendix_is_false_by_five_thirds() -> None:
    hull = sensitivity_hull(QUERY, POLICY, mask(1, 3, 4, 5))
    assert constrained_epsilon(QUERY, hull, 1, mask(1, 5)) == Fraction(5, 3)


def test_theorem_7_1_adds_the_epsilons_and_each_querys_worst_pair() -> None:
    hull = sensitivity_hull(QUERY, POLICY)
    other = Query([0, 4, 0, 1, 1, 1])
    total = compose([Charge(QUERY, hull, 1), Charge(other, UNIT, "0.5")])
    assert total.linked == Fraction(3, 2)
    assert total.constrained == 2 + 4 * Fraction(1, 2)
    pairs = product(range(6), repeat=2)
    assert total.tight == max(
        hull.norm(np.subtract(VALUES[j], VALUES[k]))
        + Fraction(abs(other.points[j] - other.points[k])[0].item(), 2)
        for j, k in pairs
    )


def test_theorem_7_2_sums_the_worst_pairs_of_every_time() -> None:
    masks = [mask(1, 2, 4), mask(2, 3, 4, 5)]
    policies = [POLICY.with_edges([(1, 4)]), POLICY.with_edges([(2, 4)])]
    hulls = [sensitivity_hull(QUERY, p, m) for p, m in zip(policies, masks, strict=True)]
    history = History.of(QUERY, MODEL, hulls, ["0.5", 1], start=0)
    expected = [
        constrained_epsilon(QUERY, hull, epsilon, possible)
        for hull, epsilon, possible in zip(hulls, ["0.5", 1], masks, strict=True)
    ]
    assert [m.tolist() for m in history.possible] == [m.tolist() for m in masks]
    assert paper_sequence_epsilon(history) == sum(expected)


@pytest.mark.parametrize(("body", "tight", "paper"), [(1, 200, 2400), (10, 20, 240)])
def test_a_ring_of_24_stops_costs_a_twelfth_of_the_papers_bound(
    body: int, tight: int, paper: int
) -> None:
    # The body 10 is what linking the far stop with a neighbour gives, as a repair would.
    query, model = ring(24, far=10)
    hull = SensitivityHull.from_vertices([[body]])
    if body == 10:
        assert hull == sensitivity_hull(query, PolicyGraph(24, [(22, 23)]))
    history = History.of(query, model, [hull] * 240, 1)
    assert sequence_epsilon(history) == tight
    assert paper_sequence_epsilon(history) == paper
    assert sequence_bracket(history) == Bracket(Fraction(tight), Fraction(paper))


def test_on_a_lazy_grid_walk_from_a_known_start_tight_and_paper_agree() -> None:
    query, model = lazy_walk(6)
    hull = sensitivity_hull(query, PolicyGraph.within_distance(query, 1))
    history = History.of(query, model, [hull] * 20, 1, start=0)
    paper = paper_sequence_epsilon(history)
    assert sequence_epsilon(history) == paper
    bracket = sequence_bracket(history)
    assert bracket.is_tight
    assert bracket.lower == paper


def test_on_that_walk_an_event_costs_2_and_windows_12_and_110() -> None:
    # Steps of one cell; the diamond of radius 2 around the origin, at epsilon 1.
    query, model = lazy_walk(24)
    hull = sensitivity_hull(query, PolicyGraph.within_distance(query, 2))
    history = History.of(query, model, [hull] * 14, 1)
    assert event_epsilon(history) == 2
    assert window_epsilon(history, 3) == 12
    assert window_epsilon(history, 10) == 110


# Laws


@st.composite
def histories(draw: st.DrawFn, flat: bool = True) -> History:
    """Small chains with any moves, hulls of any rank, skipped steps, masks and epsilons."""
    seed = draw(st.integers(0, 2**32 - 1))
    return random_history(np.random.default_rng(seed), flat=flat)


def random_history(rng: np.random.Generator, flat: bool = True) -> History:
    n, steps = int(rng.integers(2, 5)), int(rng.integers(1, 5))
    dimension = int(rng.integers(1, 3))
    query = Query(rng.integers(-4, 5, size=(n, dimension)))
    model: Chain = Alternating(random_model(rng, n), random_model(rng, n))
    corners = 1 if flat and rng.random() < 0.15 else 2
    hulls: list[SensitivityHull | None] = []
    for _ in range(steps):
        vertices = rng.integers(1, 4, size=(corners, dimension)) * rng.choice([1, -1], dimension)
        if corners > 1:
            vertices = np.concatenate([vertices, np.eye(dimension, dtype=int)])
        skip = rng.random() < 0.2
        hulls.append(None if skip else SensitivityHull.from_vertices(vertices.tolist()))
    epsilons = [Fraction(int(rng.integers(1, 5)), int(rng.integers(1, 5))) for _ in range(steps)]
    start = rng.random(n) < 0.7
    start[rng.integers(n)] = True
    possible = None
    if rng.random() < 0.3:
        possible = [rng.random(n) < 0.8 for _ in range(steps)]
    try:
        return History.of(query, model, hulls, epsilons, start=start, possible=possible)
    except ArgumentError:
        return random_history(rng, flat=flat)


def random_model(rng: np.random.Generator, n: int) -> MarkovModel:
    moves = rng.random((n, n)) < rng.choice([0.3, 0.6, 1.0])
    moves[np.arange(n), rng.integers(n, size=n)] = True
    model = MarkovModel(moves / moves.sum(axis=1, keepdims=True))
    if rng.random() < 0.4:
        # To some states only, as chains over pairs do, or to all.
        density = (rng.random(n) < rng.choice([0.5, 1.0])).astype(float)
        density[rng.integers(n)] = 1
        model._go_anywhere(0.1, density / density.sum())
    return model


@given(histories())
def test_the_tight_value_lies_in_the_bracket_and_is_infinite_when_the_papers_is(
    history: History,
) -> None:
    bracket, tight = sequence_bracket(history), sequence_epsilon(history)
    assert bracket.upper == paper_sequence_epsilon(history)
    assert bracket.lower <= tight <= bracket.upper
    assert (tight == inf) == (bracket.upper == inf)


@given(histories())
def test_wider_windows_never_cost_less_and_the_widest_is_the_sequence(history: History) -> None:
    costs = [window_epsilon(history, width) for width in range(1, len(history) + 2)]
    assert costs == sorted(costs)
    assert costs[0] == event_epsilon(history)
    assert costs[-1] == costs[-2] == sequence_epsilon(history)


@given(histories(), st.integers(0, 3))
def test_leaving_out_a_release_never_costs_more(history: History, step: int) -> None:
    charges = list(history.charges)
    charges[step % len(charges)] = ()
    model = Alternating(history.models[0], history.models[-1 if len(history) % 2 == 0 else 0])
    if len(history) >= 2:
        model = Alternating(history.models[0], history.models[1])
    fewer = History(model, charges, possible=list(history.possible))
    whole = History(model, history.charges, possible=list(history.possible))
    assert sequence_epsilon(fewer) <= sequence_epsilon(whole)


@given(histories(flat=False), st.fractions(Fraction(1, 8), 8, max_denominator=8))
def test_losses_are_proportional_to_epsilon(history: History, factor: Fraction) -> None:
    scaled = [
        tuple(Charge(c.query, c.hull, c.epsilon * factor) for c in answers)
        for answers in history.charges
    ]
    model = Alternating(history.models[0], history.models[min(1, len(history) - 1)])
    whole = History(model, history.charges, possible=list(history.possible))
    other = History(model, scaled, possible=list(history.possible))
    assert sequence_epsilon(other) == factor * sequence_epsilon(whole)


@given(histories(flat=False))
def test_a_unit_too_coarse_for_exact_counts_rounds_up_and_by_little(history: History) -> None:
    exact = sequence_epsilon(history)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(composition, "FINITE", COARSE)
        rounded = sequence_epsilon(history)
    answers = sum(map(len, history.charges))
    unit = paper_sequence_epsilon(history) / (COARSE - answers)
    # The next float up, for the rounding of the fraction itself.
    assert exact <= rounded <= nextafter(float(exact + 2 * answers * unit), inf)


def test_numbers_beyond_64_bits_give_a_float_rounded_up() -> None:
    primes = [1_000_003, 1_000_033, 1_000_037, 1_000_039]
    query, model = Query([0, 1]), MarkovModel([[0.5, 0.5], [0.5, 0.5]])
    hulls = [SensitivityHull.from_vertices([[prime]]) for prime in primes]
    value = sequence_epsilon(History.of(query, model, hulls, 1))
    exact = sum(Fraction(1, prime) for prime in primes)
    assert isinstance(value, float)
    assert exact <= value <= float(exact) * (1 + 1e-15)


@given(
    st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=1, max_size=4),
)
def test_the_worst_pair_is_the_largest_norm_of_a_difference(
    points: list[tuple[int, int]], corners: list[tuple[int, int]]
) -> None:
    query, hull = Query(points), SensitivityHull.from_vertices(corners)
    norms = {
        (j, k): hull.norm(np.subtract(points[j], points[k]))
        for j, k in product(range(len(points)), repeat=2)
    }
    found = worst_pair(query, hull, 1)
    assert found.epsilon == max(norms.values()) == norms[found.first, found.second]


@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=6))
def test_realised_odds_are_the_likelihood_ratio_when_there_are_two_states(
    weights: list[float],
) -> None:
    prior = np.array([weights[0], weights[1]]) / (weights[0] + weights[1])
    posterior = Belief.from_probabilities(prior).condition([0.0, -1.0]).probabilities
    factors = realised_odds(prior, posterior)
    assert factors == pytest.approx([exp(1), exp(-1)], rel=1e-9)


# Oracle


def paths(history: History, steps: int) -> list[tuple[int, ...]]:
    """Every path of some length that the chain allows through the possible sets."""
    found = [(int(state),) for state in history.states(0)]
    for step in range(1, steps):
        model = history.models[step]
        moves = (model.transition.toarray() + model.jumps) > 0
        found = [
            (*path, int(state))
            for path in found
            for state in history.states(step)
            if moves[path[-1], state]
        ]
    return found


def loss(history: History, step: int, j: int, k: int) -> Fraction | float:
    total: Fraction | float = Fraction(0)
    for charge in history.charges[step]:
        apart = charge.query.values[j] - charge.query.values[k]
        total += charge.hull.norm(apart) * charge.epsilon
    return total


def told_apart(history: History) -> bool:
    """Whether some release tells two possible states apart with certainty."""
    return any(
        loss(history, step, j, k) == inf
        for step in range(len(history))
        for j, k in product(history.states(step), repeat=2)
    )


def brute_force(history: History, steps: int) -> list[Fraction]:
    """For each width the largest loss over all pairs of paths that differ within it only."""
    size = history.models[0].n_states
    table = np.zeros((steps, size, size), dtype=object)
    for step in range(steps):
        for j, k in product(history.states(step), repeat=2):
            table[step, j, k] = loss(history, step, j, k)
    unit = lcm(*(Fraction(entry).denominator for entry in table.ravel()))
    counts = (table * unit).astype(np.int64)
    every = np.array(paths(history, steps))
    first, second = every[:, None], every[None, :]
    totals = sum(counts[step, first[..., step], second[..., step]] for step in range(steps))
    differ = first != second
    earliest = differ.argmax(axis=2)
    latest = steps - 1 - differ[..., ::-1].argmax(axis=2)
    spans = np.where(differ.any(axis=2), latest - earliest + 1, 0)
    return [Fraction(int(totals[spans <= width].max()), unit) for width in range(1, steps + 1)]


def test_tight_values_equal_the_maximum_over_all_pairs_of_paths() -> None:
    rng = np.random.default_rng(5)
    finite = 0
    for _ in range(ORACLE_CASES):
        history = random_history(rng)
        if told_apart(history):
            assert sequence_epsilon(history) == inf
            continue
        # The oracle's windows are those of paths that last, so masks must not cut any off.
        uncut = History(
            Alternating(history.models[0], history.models[min(1, len(history) - 1)]),
            history.charges,
            possible=[*history.possible[:1], *[None] * (len(history) - 1)],
        )
        if told_apart(uncut):
            continue
        finite += 1
        lengths = range(1, len(history) + 1)
        assert sequence_epsilon(history) == max(brute_force(history, n)[-1] for n in lengths)
        windows = [window_epsilon(uncut, width) for width in lengths]
        assert windows == brute_force(uncut, len(history))
    assert finite > ORACLE_CASES / 2


def test_an_event_of_infinite_loss_is_infinite() -> None:
    query, model = Query([[0, 0], [0, 1], [5, 5]]), MarkovModel(np.full((3, 3), 1 / 3))
    flat = SensitivityHull.from_vertices([[1, 0]])
    round_body = SensitivityHull.from_vertices([[1, 0], [0, 1]])
    history = History.of(query, model, [round_body, flat, round_body], 1)
    assert event_epsilon(history) == sequence_epsilon(history) == inf
    assert sequence_bracket(history).lower == inf


def test_two_given_paths_cost_the_sum_of_their_losses() -> None:
    query, model = ring(3, far=10)
    history = History.of(query, model, [UNIT, None, UNIT], [1, 1, "0.5"])
    assert path_epsilon(history, [2, 0, 1], [0, 1, 2]) == 15
    with pytest.raises(ArgumentError, match="one state for each of 3 steps"):
        path_epsilon(history, [2, 0], [0, 1, 2])


def test_several_queries_a_step_compose_over_time() -> None:
    model = MarkovModel(np.full((3, 3), 1 / 3))
    one, two = Query([0, 1, 3]), Query([3, 1, 3])
    step = (Charge(one, UNIT, 1), Charge(two, UNIT, 1))
    history = History(model, [step, (), step])
    assert sequence_epsilon(history) == 2 * compose(step).tight == 8
    assert paper_sequence_epsilon(history) == 2 * compose(step).constrained == 10


def test_a_mask_that_was_given_is_kept_even_where_no_move_leads() -> None:
    # As with delta above zero: state 1 was dropped at the first step and state 2 comes back.
    query, model = ring(3, far=10)
    history = History.of(
        query, model, [UNIT] * 2, 1, possible=[mask(0, size=3), mask(1, 2, size=3)]
    )
    assert paper_sequence_epsilon(history) == 10
    assert sequence_epsilon(history) == 0


# What people read


def test_a_statement_gives_every_number_in_words() -> None:
    query, model = lazy_walk(4)
    hull = sensitivity_hull(query, PolicyGraph.within_distance(query, 1))
    history = History.of(query, model, [hull, None, hull], 1, start=0)
    prior = np.full(16, 1 / 16)
    posterior = prior.copy()
    posterior[:2] = [0.12, 0.005]
    statement = privacy_statement(history, width=2, prior=prior, posterior=posterior)
    assert statement.linked == 1
    assert statement.spent == statement.releases == 2
    assert statement.event == event_epsilon(history)
    assert statement.window == window_epsilon(history, 2)
    assert statement.sequence == sequence_epsilon(history)
    assert not statement.adaptive
    text = statement.text()
    assert "2 releases, epsilon 2 in all" in text
    assert "×2.72 (epsilon 1)" in text
    odds = realised_odds(prior, posterior)
    assert f"factor of {max(odds.max(), 1 / odds.min()):.4g}" in text
    assert "hold for this history" not in text


def test_a_statement_says_when_it_holds_for_this_history_only() -> None:
    flat = SensitivityHull.from_vertices([[1, 0]])
    query, model = lazy_walk(3)
    statement = privacy_statement(History.of(query, model, [flat], 1))
    assert statement.adaptive
    assert "hold for this history only" in statement.text()
    assert "without limit" in statement.text()
    body = sensitivity_hull(query, PolicyGraph.complete(9))
    delta = privacy_statement(History.of(query, model, [body], 1), adaptive=True)
    assert "hold for this history only" in delta.text()


def test_above_the_bound_a_statement_gives_a_bracket(monkeypatch: pytest.MonkeyPatch) -> None:
    query, model = ring(5, far=10)
    history = History.of(query, model, [UNIT] * 10, 1)
    for module in ("composition", "sequences"):
        monkeypatch.setattr(f"dphmm.cost.{module}.TIGHT_STATES", 4)
    with pytest.raises(TooLargeError, match="up to 4 possible states, got 5"):
        sequence_epsilon(history)
    statement = privacy_statement(history)
    assert statement.sequence == Bracket(Fraction(40), Fraction(100))
    assert statement.event is None
    assert "between epsilon 40 (facet sequence) and 100 (Theorem 7.2)" in statement.text()


# Errors


def test_wrong_arguments_are_refused_by_name() -> None:
    query, model = ring(3, far=10)
    plane = SensitivityHull.from_vertices([[1, 0]])
    history = History.of(query, model, [UNIT], 1)
    with pytest.raises(ArgumentError, match="hull must live on the query's lattice"):
        Charge(query, plane, 1)
    with pytest.raises(ArgumentError, match=r"epsilon must be positive, got 0"):
        Charge(query, UNIT, 0)
    with pytest.raises(ArgumentError, match="charges must contain at least one charge"):
        compose([])
    with pytest.raises(ArgumentError, match="about the same states"):
        compose([Charge(query, UNIT, 1), Charge(Query([0, 1]), UNIT, 1)])
    with pytest.raises(ArgumentError, match="cover at least one step"):
        History.of(query, model, [], 1)
    with pytest.raises(ArgumentError, match="one for each of 1 steps, got 2"):
        History.of(query, model, [UNIT], [1, 1])
    with pytest.raises(ArgumentError, match="one mask for each of 1 steps, got 0"):
        History.of(query, model, [UNIT], 1, possible=[])
    with pytest.raises(ArgumentError, match="the 3 states of the model, got 2"):
        History.of(Query([0, 1]), model, [UNIT], 1)
    with pytest.raises(ArgumentError, match="reachable state at every step, got none at step 0"):
        History.of(query, model, [UNIT], 1, start=0, possible=[[True, False, False]])
    with pytest.raises(ArgumentError, match="width must be at least 1"):
        window_epsilon(history, 0)
    with pytest.raises(ArgumentError, match="must have the shape of prior"):
        realised_odds([0.5, 0.5], [1.0])
    with pytest.raises(ArgumentError, match="prior must hold probabilities"):
        realised_odds([1.5, 0.5], [0.5, 0.5])
    with pytest.raises(ArgumentError, match="zero where the prior is"):
        realised_odds([1.0, 0.0], [0.5, 0.5])
    with pytest.raises(ArgumentError, match="given together"):
        privacy_statement(history, prior=[1, 0, 0])


# Learned zeros


def test_a_bus_that_stays_where_the_ring_never_does_is_told_what_it_loses() -> None:
    # 24 stops, all at 0 but the last; linking it with its neighbour gives the body 10.
    query, stated = ring(24, far=10)
    body, steps = SensitivityHull.from_vertices([[10]]), 48
    bus, other = [23] * steps, [22] * steps
    facts = History.of(query, stated, [body] * steps, 1)
    assert path_epsilon(facts, bus, other) == steps
    assert sequence_epsilon(facts) == 4
    assert CONDITION in privacy_statement(facts).text()
    learned = MarkovModel(stated.transition, anywhere=0.01)
    guesses = History.of(query, learned, [body] * steps, 1)
    assert sequence_epsilon(guesses) == paper_sequence_epsilon(guesses) == steps
    assert (event_epsilon(guesses), window_epsilon(guesses, 10)) == (1, 10)
    statement = privacy_statement(guesses)
    assert statement.sequence == steps
    assert statement.own is not None
    assert (statement.own.event, statement.own.sequence) == (0, 4)
    lines = statement.text().splitlines()
    conditional = [line for line in lines if "for people who" in line]
    assert len(conditional) == 1
    assert conditional[0].startswith("These hold whatever you did; for people who make only the")


def test_every_sentence_under_facts_has_its_condition() -> None:
    query, model = lazy_walk(3)
    hull = sensitivity_hull(query, PolicyGraph.within_distance(query, 1))
    facts = privacy_statement(History.of(query, model, [hull] * 3, 1, start=4))
    assert facts.stated_zeros
    assert facts.own is None
    text = facts.text().splitlines()
    promises = [line for line in text if "by at most" in line or "without limit" in line]
    assert len(promises) == 5
    for line in promises:
        assert line.endswith(f", {CONDITION}.")
    whole = MarkovModel(np.full((9, 9), 1 / 9))
    assert not privacy_statement(History.of(query, whole, [hull] * 3, 1)).stated_zeros


def test_on_a_grid_the_price_of_full_support_is_printed() -> None:
    # 15 x 15 cells, radius 3: a moment costs 1 -> 7, six steps 21 -> 42; corners can be reached.
    query, stated = lazy_walk(15)
    hull = sensitivity_hull(query, PolicyGraph.within_distance(query, 3))
    learned = MarkovModel(stated.transition, anywhere=0.01)
    history = History.of(query, learned, [hull] * 24, 1)
    own = history.own
    assert own is not None
    values = [(event_epsilon(h), window_epsilon(h, 6), sequence_epsilon(h)) for h in (own, history)]
    assert values == [(1, 21, 168), (7, 42, 168)]
    assert own.models[0] is own.models[1]


def test_any_path_values_need_no_table_of_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    side = 60  # 3,600 states: more than a table of pairs is made for
    cells = np.array(list(product(range(side), repeat=2)))
    query = Query(cells)
    learned = MarkovModel.fit([np.arange(side * side)], n_states=side * side)
    hull = SensitivityHull.from_vertices([[3, 0], [0, 3]])
    history = History.of(query, learned, [hull] * 5, 1)
    assert history.is_free
    monkeypatch.setattr("dphmm.cost.pair_tables.pair_losses", None)
    far = Fraction(2 * (side - 1), 3)
    assert (event_epsilon(history), sequence_epsilon(history)) == (far, 5 * far)


def test_own_moves_that_an_answer_rules_out_leave_nothing_to_say() -> None:
    learned = MarkovModel(np.eye(2), anywhere=0.1)
    history = History.of(Query([0, 1]), learned, [UNIT], 1, start=0, possible=[[1]])
    assert history.own is None
    assert privacy_statement(history).own is None

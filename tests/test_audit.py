"""The audit: it catches what is broken, and computes rightly how surely."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import exp, log
from typing import get_args

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dphmm.audit import (
    CONTROLS,
    FALSE_ALARM,
    Audit,
    BatchSampler,
    Control,
    Finding,
    MechanismSampler,
    audit_sampler,
    bound,
    load,
    running_example,
    sampler_of,
)
from dphmm.audit.checks import Kind, check_law, law_miss, ratio_miss, tell_bound, write_chance
from dphmm.audit.events import (
    MAX_EDGES,
    Cells,
    Cones,
    chosen_edges,
    fine_events,
    ratio_events,
)
from dphmm.audit.sampler import checked
from dphmm.audit.sequences import paths_between
from dphmm.chain.markov import MarkovModel
from dphmm.cli.program import program
from dphmm.errors import ArgumentError
from dphmm.geometry.hull import SensitivityHull
from dphmm.geometry.query import Query
from dphmm.noise.mechanism import Mechanism
from dphmm.noise.randomness import SecureRandomness
from dphmm.noise.staircase import best_gamma
from dphmm.policy.graph import PolicyGraph
from dphmm.policy.plan import Plan
from dphmm.policy.sensitivity import sensitivity_hull
from dphmm.scenario.auditing import subject_of
from tests import paper, scenarios

EXAMPLE = running_example()
# Enough to miss a tenth too much with less than 1e-5, as the audit itself computes.
SHORT_DRAWS = 100_000
FEW_DRAWS = 20_000
RUNS = 20
POWER = 0.9999
FLOAT_REL = 1e-9
WINDOW_REL = 1e-4  # windows leave out e^-12 of the noise, and points are counted in millionths

BODIES = {
    "interval": [[3]],
    "flat interval": [[2, 4]],
    "running example": EXAMPLE.mechanism.body.lattice_vertices.tolist(),
    "flat rhombus": [[2, 0, 2], [0, 3, 3]],
    "cube": [[1, 1, 1], [1, 1, -1], [1, -1, 1], [-1, 1, 1]],
}


def run(*arguments):
    return CliRunner().invoke(program, ["audit", *map(str, arguments)])


def caught_and_quiet(*arguments):
    """Run the command; every control must be caught and nothing else accused."""
    result = run("--json", *arguments)
    said = json.loads(result.stdout)
    assert [control["name"] for control in said["controls"]] == list(CONTROLS)
    assert all(control["caught"] for control in said["controls"])
    assert max(control["miss"] for control in said["controls"]) <= 1 - POWER
    assert {control["test"] for control in said["controls"]} >= {"atoms", "residues", "tails"}
    assert said["false_alarm"] <= FALSE_ALARM * (1 + FLOAT_REL)
    assert not any(mechanism["violation"] for mechanism in said["mechanisms"])
    assert result.exit_code == 0
    return said


# Paper: the running example


def test_the_command_catches_every_control_and_accuses_no_real_mechanism():
    said = caught_and_quiet()
    assert [mechanism["name"] for mechanism in said["mechanisms"]] == [
        "knorm",
        "staircase",
        "laplace",
        "enlarged",
        "batch",
        "stream",
    ]
    assert max(said["mechanisms"][0]["leaks"].values()) < 0.01


@pytest.mark.slow
def test_twenty_commands_catch_every_control_and_accuse_nobody():
    for _ in range(RUNS):
        caught_and_quiet()


def test_the_running_example_is_the_papers():
    assert EXAMPLE.mechanism.query.points.tolist() == [list(row) for row in paper.VALUES]
    assert (EXAMPLE.edges == PolicyGraph.by_category(paper.CATEGORIES).edges).all()
    assert EXAMPLE.mechanism.body.volume == paper.AREA
    enlarged = running_example("enlarged")
    assert enlarged.mechanism.body != sensitivity_hull(
        enlarged.mechanism.query, PolicyGraph(6, enlarged.edges)
    )


@pytest.mark.parametrize("kind", ["knorm", "staircase"])
def test_on_the_cones_behind_a_state_the_ratio_is_exactly_epsilon(kind):
    example = running_example(kind)
    mechanism = example.mechanism
    claim = checked(sampler_of(example)())
    window = np.array(list(product(range(-12, 16), range(-12, 15))))
    for event in ratio_events(claim, example.edges):
        held = window[event.holds(window)]
        assert len(held) > 20
        for answer in held[::7]:
            logs = mechanism.lattice_log_probability(answer)
            assert logs[event.state] - logs[event.other] == pytest.approx(1, rel=FLOAT_REL)


def test_inside_a_staircase_the_ratio_is_epsilon_where_a_border_is_crossed():
    """An edge that does not reach the boundary: half of the cones tell nothing."""
    body = SensitivityHull.from_vertices([[8, 0], [0, 8]])
    query, edge = Query([[0, 0], [3, 0]]), np.array([[0, 1]])
    mechanism = Mechanism(query, body, Fraction(2), "1/4")
    claim = checked(MechanismSampler(mechanism, edge, Fraction(2)))
    window = np.array(list(product(range(-30, 31), repeat=2)))
    for event in ratio_events(claim, edge):
        assert event.share is None
        held = window[event.holds(window)]
        assert len(held) > 20
        logs = np.array([mechanism.lattice_log_likelihood(answer) for answer in held])
        assert (logs[:, event.state] - logs[:, event.other] == 2).all()
        as_floats = event.holds(window.astype(float) + 1e-9)
        assert 20 < as_floats.sum() < len(window) / 2


def test_fine_bits_are_those_of_the_notes():
    """Research notes: y with |y| < 1/2 and no multiple of 2**-53, for s3 against s2."""
    (event,) = fine_events(checked(sampler_of(EXAMPLE)()), np.array([[1, 2]]))
    assert (event.state, event.other) == (2, 1)
    answers = np.array([[0, 2.0**-54], [0, 2.0**-53], [0, 0.75 + 2.0**-54], [0, 0.25 + 2.0**-54]])
    assert event.holds(answers).tolist() == [True, False, False, True]


# Laws


@given(st.integers(0, 500), st.integers(0, 500), st.sampled_from([1e-6, 1e-3, 0.1]))
def test_a_certified_epsilon_grows_with_hits_and_with_the_level(hits, others, level):
    value = bound(hits, others, 500, level)
    if hits < 500:
        assert bound(hits + 1, others, 500, level) >= value
    if others < 500:
        assert bound(hits, others + 1, 500, level) <= value
    assert bound(hits, others, 500, 2 * level) >= value
    if hits and others:
        assert value <= log(hits / others)


def test_all_levels_add_up_to_the_false_alarm():
    result = audit_sampler(sampler_of(EXAMPLE), draws=FEW_DRAWS, false_alarm=1e-6)
    assert result.false_alarm == pytest.approx(1e-6)
    assert "no violation of epsilon 1 found at this power" in result.text()
    assert "verified" not in result.text()


def test_more_draws_miss_less():
    misses = [ratio_miss(0.4, 0.4 * exp(-1.1), n, 1e-6, 1.0) for n in (20_000, 50_000, 100_000)]
    assert misses == sorted(misses, reverse=True)
    assert misses[0] > 0.5 > misses[-1]
    assert ratio_miss(0.4, 0.4 * exp(-1.0), 100_000, 1e-6, 1.0) == 1.0


@pytest.mark.parametrize(("gamma", "price"), [(None, "1/2"), ("0.4", "1/2"), ("0.4", "3")])
@pytest.mark.parametrize("name", BODIES)
def test_every_exact_law_passes_in_every_rank(name, gamma, price):
    body = SensitivityHull.from_vertices(BODIES[name])
    points = np.array([[0] * body.dimension, body.lattice_vertices[0].tolist()], dtype=np.int64)
    mechanism = Mechanism(Query(points), body, price, gamma)
    sampler = MechanismSampler(mechanism, np.array([[0, 1]]), Fraction(price))
    found = audit_sampler(lambda: sampler, draws=FEW_DRAWS)
    assert found.violations == ()
    # The answers are integers, which the bits of floats cannot tell apart.
    assert all(
        f.detail.startswith("0 and 0 times") for f in found.findings if f.test == "fine bits"
    )


def test_k_norm_noise_sold_as_a_staircase_is_seen():
    example = running_example("staircase")

    class Sold(MechanismSampler):
        def sample(self, state, size):
            return EXAMPLE.mechanism.sample_lattice_many(state, size)

    found = audit_sampler(
        lambda: Sold(example.mechanism, example.edges, Fraction(1)), draws=FEW_DRAWS
    )
    assert {violation.test for violation in found.violations} == {"law"}


def test_streams_of_staircase_noise_keep_their_claim():
    query = EXAMPLE.mechanism.query
    plan = Plan(PolicyGraph(6, EXAMPLE.edges), query, mechanism="staircase", repair=None)
    body = plan.at(np.ones(6, dtype=bool)).body
    paths, edges = paths_between(np.tile([[1, 2]], (2, 1)))
    walk = MarkovModel(np.full((6, 6), 1 / 6))

    def make():
        return BatchSampler(
            walk, plan, Fraction(1), 0, paths, edges, (2,), 2, body, best_gamma(2, 1)
        )

    assert audit_sampler(make, draws=FEW_DRAWS // 8).violations == ()


class Fresh(SecureRandomness):
    """Draws again with other words what a row cut short: the mistake that batches once made."""

    def longer(self, rows, people, shared, states, size):
        return SecureRandomness().many(people, shared, states, size)


class Short(SecureRandomness):
    """Rows so short that many draws need more."""

    def many(self, people, shared, states, *size):
        return np.array(super().many(people, shared, states, *size))[:, :CUT]


class ShortAndFresh(Short, Fresh):
    pass


CUT = 16


@pytest.mark.parametrize(("source", "wrong"), [(Short(), False), (ShortAndFresh(), True)])
def test_rows_cut_short_are_continued_and_starting_over_would_be_seen(source, wrong):
    sampler = MechanismSampler(EXAMPLE.mechanism, EXAMPLE.edges, Fraction(1), source)
    claim = checked(sampler)
    cells = Cells.of(Cones(claim.body), 1.0, FEW_DRAWS)
    found = check_law(claim, cells, 1, sampler.sample(1, FEW_DRAWS), FALSE_ALARM, None)
    assert found.violated == wrong


def test_many_edges_are_reduced_to_different_ones_of_the_largest_loss():
    cells = np.array(list(product(range(6), repeat=2)))
    query = Query(cells)
    policy = PolicyGraph.within_distance(query, 2)
    body = sensitivity_hull(query, policy)
    sampler = MechanismSampler(Mechanism(query, body, Fraction(1)), policy.edges, Fraction(1))
    edges = chosen_edges(checked(sampler))
    vectors = query.points[edges[:, 0]] - query.points[edges[:, 1]]
    assert len(edges) == MAX_EDGES
    assert len(np.unique(vectors, axis=0)) == 6
    assert (body.lattice_norms(vectors) == 1).sum() >= 2


# Somebody else's mechanism


class Geometric:
    """Discrete Laplace noise on a line, written by a stranger."""

    lattice = True
    claimed = "0.5"
    points = np.array([[0], [2]])
    edges = np.array([[0, 1]])
    scale = 0.25  # epsilon over the distance of the two states

    def __init__(self):
        self.rng = np.random.default_rng()

    def sample(self, state, size):
        stop = 1 - exp(-self.scale)
        noise = self.rng.geometric(stop, size) - self.rng.geometric(stop, size)
        return self.points[state] + noise[:, None]

    def log_probability(self, answer):
        decay = exp(-self.scale)
        distance = np.abs(self.points[:, 0] - answer[0])
        return log((1 - decay) / (1 + decay)) - self.scale * distance


class Spendthrift(Geometric):
    scale = 0.3


class Silent(Spendthrift):
    log_probability = None


class Rounded(Geometric):
    """Claims a law that it does not have, within its epsilon."""

    def sample(self, state, size):
        return 2 * (super().sample(state, size) // 2)


class Nonsense(Geometric):
    def sample(self, state, size):
        answers = super().sample(state, size).astype(float)
        answers[0] = np.nan
        return answers


class Constant(Geometric):
    log_probability = None

    def sample(self, state, size):
        return np.zeros((size, 1), dtype=np.int64)


class Cautious(Geometric):
    log_probability = None
    claimed = 1


@pytest.mark.parametrize(
    ("maker", "tests"),
    [
        (Geometric, set()),
        (Cautious, set()),
        (Spendthrift, {"ratio"}),
        (Silent, {"ratio"}),
        (Rounded, {"law"}),
        (Nonsense, {"lattice"}),
        (Constant, set()),
    ],
)
def test_a_strangers_mechanism_is_held_against_its_own_claim(maker, tests):
    result = audit_sampler(maker, name="theirs", draws=SHORT_DRAWS)
    found = {finding.test for finding in result.violations}
    # Who spends too much is also seen by the search; who keeps epsilon is not.
    assert (found - set(get_args(Kind)) if "ratio" in tests else found) == tests
    assert ("VIOLATION" in result.text()) == bool(tests)


def test_what_cannot_be_tested_is_said():
    constant = audit_sampler(Constant, draws=FEW_DRAWS).findings
    assert any("answers hardly vary" in finding.detail for finding in constant)
    only = Geometric()
    single = audit_sampler(lambda: only, draws=FEW_DRAWS).findings
    assert any("only one instance" in finding.detail for finding in single)


def test_a_generator_that_starts_over_at_every_call_is_caught():
    class Restarting(Geometric):
        def sample(self, state, size):
            self.rng = np.random.default_rng(1)
            return super().sample(state, size)

    instance = Restarting()
    found = audit_sampler(lambda: instance, draws=FEW_DRAWS).violations
    assert [finding.what for finding in found if finding.test == "repeats"] == [
        "two calls of one instance"
    ]


# Oracle


@pytest.mark.parametrize("epsilon", [1.0, 2.5])
@pytest.mark.parametrize("gamma", [None, Fraction(2, 3)])
@pytest.mark.parametrize("name", BODIES)
def test_cells_have_the_probabilities_summed_over_their_lattice_points(name, epsilon, gamma):
    body = SensitivityHull.from_vertices(BODIES[name])
    cells = Cells.of(Cones(body, gamma), epsilon, 10**6)
    reach = {1: 120, 2: 80, 3: 14}[body.rank]
    box = np.array(list(product(range(-reach, reach + 1), repeat=body.rank)))
    window = (box.astype(object) @ body.basis).astype(np.int64)
    origin = Query(np.zeros((1, body.dimension), dtype=int))
    mechanism = Mechanism(origin, body, Fraction(epsilon), gamma)
    norms = body.lattice_layers(window, gamma) if gamma else body.lattice_norms(window)
    logs = -epsilon * norms - mechanism.log_normalizer
    times = np.rint(1e6 * np.exp(logs)).astype(np.int64)
    counts = cells.counts(np.repeat(window, times, axis=0))
    assert cells.probabilities.sum() == pytest.approx(1, rel=FLOAT_REL)
    assert counts / times.sum() == pytest.approx(cells.probabilities, rel=1e-2, abs=WINDOW_REL)
    assert len(cells.probabilities) > 3


def test_the_share_of_an_event_is_its_probability():
    claim = checked(sampler_of(EXAMPLE)())
    window = np.array(list(product(range(-70, 75), range(-40, 42))))
    logs = np.array([-EXAMPLE.mechanism.body.lattice_norms(window - p) for p in claim.points])
    shares = np.exp(logs - EXAMPLE.mechanism.log_normalizer)
    for event in ratio_events(claim, EXAMPLE.edges):
        held = event.holds(window)
        assert shares[event.state, held].sum() == pytest.approx(event.share, rel=WINDOW_REL)
        other = shares[event.other, held].sum()
        assert other == pytest.approx(event.share * exp(-1), rel=WINDOW_REL)


@pytest.mark.parametrize(("hits", "others"), [(0, 3), (7, 0), (400, 130), (500, 500)])
def test_bounds_are_those_of_clopper_and_pearson(hits, others):
    low = stats.binomtest(hits, 500).proportion_ci(1 - 1e-3, "exact").low
    high = stats.binomtest(others, 500).proportion_ci(1 - 1e-3, "exact").high
    expected = log(low / high) if low else -np.inf
    assert bound(hits, others, 500, 1e-3) == pytest.approx(expected, rel=FLOAT_REL)


@pytest.mark.parametrize("share", [0.3, 0.5])
def test_the_chance_to_miss_is_at_least_the_exact_one(share):
    """All pairs of counts, with their binomial probabilities."""
    draws, level, other = 120, 1e-2, share * exp(-2.2)
    first = stats.binom.pmf(np.arange(draws + 1), draws, share)
    second = stats.binom.pmf(np.arange(draws + 1), draws, other)
    missed = sum(
        first[a] * second[b]
        for a in range(draws + 1)
        for b in range(draws + 1)
        if first[a] * second[b] > 1e-15 and bound(a, b, draws, level) <= 1.0
    )
    claimed = ratio_miss(share, other, draws, level, 1.0)
    assert missed <= claimed <= 1
    assert 0.001 < missed < 0.9


def test_the_chance_that_chi_square_misses_is_that_of_simulation():
    claimed, true = np.array([0.25, 0.25, 0.5]), np.array([0.27, 0.25, 0.48])
    draws, level, runs = 3000, 0.01, 4000
    counts = np.random.default_rng(5).multinomial(draws, true, size=runs)
    distances = ((counts - draws * claimed) ** 2 / (draws * claimed)).sum(axis=1)
    missed = (distances < stats.chi2.isf(level, 2)).mean()
    # Four standard errors of a frequency over 4,000 runs.
    assert law_miss(claimed, true, draws, level) == pytest.approx(missed, abs=2 / runs**0.5)


# The command


def test_too_few_draws_miss_a_control_and_then_nothing_is_said():
    result = run("--draws", 1000)
    assert result.exit_code == 1
    assert "nothing can be said" in result.stdout
    assert "found at this power" not in result.stdout


def pretended_controls(**options):
    finding = Finding("repeats", "two fresh instances", True, 0.0, "the same")
    return [Control("seeded", "repeats", Audit("seeded", Fraction(1), 1, (finding,)), 0.0)]


def test_a_scenario_is_audited_without_a_word_about_its_states(tmp_path, monkeypatch):
    monkeypatch.setattr("dphmm.cli.audit.controls", pretended_controls)
    result = run(scenarios.written(tmp_path), "--draws", FEW_DRAWS)
    assert result.exit_code == 0
    assert "paper: no violation of epsilon 1 found at this power" in result.stdout
    assert "paper, a short stream: no violation of epsilon 2 found" in result.stdout
    assert scenarios.MARK not in result.stdout


def test_a_strangers_violation_is_a_no_and_their_mistake_bad_input(tmp_path, monkeypatch):
    monkeypatch.setattr("dphmm.cli.audit.controls", pretended_controls)
    monkeypatch.chdir(tmp_path)
    code = "from tests.test_audit import Silent\ndef broken(): raise KeyError('noise')\n"
    (tmp_path / "strangers_for_audit.py").write_text(code)
    violated = run("--mechanism", "strangers_for_audit:Silent", "--draws", SHORT_DRAWS)
    assert (violated.exit_code, "VIOLATION" in violated.stdout) == (1, True)
    broken = run("--mechanism", "strangers_for_audit:broken")
    assert broken.exit_code == 2
    assert "strangers_for_audit:broken failed: KeyError" in broken.stderr


def test_a_scenarios_noise_is_that_of_its_last_possible_set(tmp_path):
    subject = subject_of(scenarios.paper_scenario())
    assert len(subject.edges)
    assert subject.claimed == 1
    assert audit_sampler(sampler_of(subject), draws=FEW_DRAWS).violations == ()
    lone = scenarios.paper_scenario(policy=scenarios.Policy(), repair=None)
    with pytest.raises(ArgumentError.__bases__[0], match="policy must link"):
        subject_of(lone)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nonsense", "must be module:object"),
        ("no_such_module:thing", "must be importable"),
        ("json:no_such_thing", "must be importable"),
        ("math:pi", "must be a sampler"),
    ],
)
def test_a_mechanism_that_cannot_be_loaded_is_refused_by_name(name, message):
    with pytest.raises(ArgumentError, match=message):
        load(name)


def test_classes_make_fresh_samplers_and_objects_are_their_own(tmp_path, monkeypatch):
    code = "import numpy as np\nfrom tests.test_audit import Geometric\nhere = Geometric()\n"
    (tmp_path / "theirs_for_audit.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    make = load("theirs_for_audit:Geometric")
    assert make() is not make()
    keep = load("theirs_for_audit:here")
    assert keep() is keep()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"points": np.zeros(3)}, "points must be a table"),
        ({"edges": np.zeros((0, 2), dtype=int)}, "edges must be pairs"),
        ({"edges": np.array([[0, 9]])}, "edges must join"),
        ({"body": SensitivityHull.from_vertices([[1, 1]])}, "body must have"),
        ({"sample": lambda state, size: np.zeros(size)}, "sample must return"),
        ({"claimed": 0}, "claimed must be positive"),
        ({"log_probability": lambda answer: np.zeros(2)}, "log_probability must be"),
    ],
)
def test_a_sampler_that_does_not_fit_says_what_it_must_be(change, message):
    def make():
        sampler = Geometric()
        for name, value in change.items():
            setattr(sampler, name, value)
        return sampler

    with pytest.raises(ArgumentError, match=message):
        audit_sampler(make, draws=1000)


def test_bad_arguments_say_what_they_must_be():
    with pytest.raises(ArgumentError, match="sampler must have"):
        audit_sampler(object)
    with pytest.raises(ArgumentError, match="draws must be"):
        audit_sampler(Geometric, draws=10)
    with pytest.raises(ArgumentError, match="false_alarm must"):
        audit_sampler(Geometric, false_alarm=0)
    assert run("town.toml", "--mechanism", "knorm").exit_code == 2
    assert replace(EXAMPLE.mechanism, epsilon=Fraction(2)).epsilon == 2


def test_chances_and_leaks_are_rounded_up_and_what_is_certified_down() -> None:
    seen = Finding("ratio", "an event", False, 1.4e-5, "", miss=1.4e-5, leak=0.012341)
    text = Audit("noise", Fraction(1), 1000, (seen,)).text()
    assert "missed with 2e-05" in text
    assert "false alarm 2e-05" in text
    assert "1.24% in ratio" in text
    assert tell_bound(1.06768) == "at least epsilon 1.0676"
    assert write_chance(1e-4 + 1e-19) == "0.0001"

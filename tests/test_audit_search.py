"""The search for events: it finds leaks that half-spaces do not show, and accuses nobody else."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import exp, log

import numpy as np
import pytest
from scipy import stats

import dphmm
from dphmm import ArgumentError, KeyedRandomness
from dphmm.audit import (
    DRAWS,
    BatchSampler,
    StreamSampler,
    audit_sampler,
    load,
    running,
    running_example,
    running_sequence,
)
from dphmm.audit.broken import CutOff, FreeSecondAnswer, RepeatingDays
from dphmm.audit.certify import (
    SURE,
    Coins,
    certified,
    certify_miss,
    coins_for,
    smallest_leak,
)
from dphmm.audit.sampler import checked
from dphmm.audit.search import search_events
from dphmm.audit.sequences import SequenceSampler, paths_between
from dphmm.scenario.auditing import short_stream
from tests import scenarios

EXAMPLE = running_example()
POINTS = EXAMPLE.mechanism.query.points
EDGE = EXAMPLE.edges[:1]
FEW_DRAWS = 20_000
SEQUENCE_DRAWS = 10_000


def honest(state, size):
    return EXAMPLE.mechanism.sample_lattice_many(state, size)


def printing(share):
    """Prints the true state with some probability."""

    def sample(state, size):
        answers = honest(state, size)
        answers[np.random.default_rng().random(size) < share] = POINTS[state]
        return answers

    return sample


def parity(share):
    """Even answers; those of odd states are odd with some probability."""

    def sample(state, size):
        answers = 2 * honest(state, size)
        answers[np.random.default_rng().random(size) < share, 0] += state % 2
        return answers

    return sample


def audited(sample, draws, scale=1):
    return audit_sampler(
        sample, claimed=1, points=scale * POINTS, edges=EDGE, lattice=True, draws=draws
    )


# What the audit of half-spaces passed


def test_a_mechanism_that_prints_the_state_is_caught():
    tests = {found.test for found in audited(printing(0.2), FEW_DRAWS).violations}
    assert "atoms" in tests
    assert audited(honest, FEW_DRAWS).violations == ()


def test_a_mechanism_whose_parity_names_the_state_is_caught():
    tests = {found.test for found in audited(parity(1.0), FEW_DRAWS, scale=2).violations}
    assert "residues" in tests
    assert audited(parity(0.0), FEW_DRAWS, scale=2).violations == ()


def test_leaks_of_one_percent_are_caught():
    """The chance to miss the first is 6e-6, the second's 1,500 odd answers against none none."""
    assert "atoms" in {found.test for found in audited(printing(0.01), DRAWS).violations}
    found = audited(parity(0.01), DRAWS // 5, scale=2).violations
    assert "residues" in {one.test for one in found}


def test_a_result_says_that_other_linked_pairs_were_not_looked_at():
    """Beyond the ninth state this one prints the truth, and is not seen."""

    def sample(state, size):
        counts = np.random.default_rng().geometric(1 - np.exp(-1), size=(2, size, 1))
        return np.full((size, 1), state) if state > 8 else state + counts[0] - counts[1]

    def found(states):
        edges = np.arange(states - 1)[:, None] + [0, 1]
        points = np.arange(states)[:, None]
        return audit_sampler(sample, claimed=1, points=points, edges=edges, lattice=True,
                             draws=FEW_DRAWS)  # fmt: skip

    assert found(30).violations == ()
    assert "; only 8 linked pairs were looked at; " in found(30).text()
    assert "were looked at" not in found(9).text()


def test_a_tail_that_is_cut_off_is_caught_where_only_one_state_answers():
    found = audit_sampler(
        lambda: CutOff(EXAMPLE.mechanism, EDGE, Fraction(1)), draws=2 * FEW_DRAWS
    ).violations
    tail = next(one for one in found if one.test == "tails")
    assert " and 0 times" in tail.detail


def test_floats_and_a_line_are_searched_as_well():
    def sample(state, size):
        rng = np.random.default_rng()
        answers = state + rng.laplace(size=(size, 1))
        answers[rng.random(size) < 0.05] = state
        return answers

    result = audit_sampler(
        sample, claimed=1, points=[[0.0], [1.0]], edges=[[0, 1]], draws=FEW_DRAWS
    )
    assert "atoms" in {found.test for found in result.violations}


# Streams and batches


def test_streams_and_batches_pass_and_their_claims_add_up():
    batch = running_sequence(BatchSampler)()
    assert batch.paths.tolist() == [[1, 1, 1], [2, 2, 2], [1, 1, 2]]
    assert batch.claimed == [3, 1, 2]
    assert (batch.moments, batch.points.shape) == (6, (3, 12))
    assert audit_sampler(lambda: batch, draws=SEQUENCE_DRAWS).violations == ()
    stream = running_sequence(StreamSampler, days=(2,), asks=1)
    assert audit_sampler(stream, draws=1000).violations == ()


def test_a_stream_says_what_a_batch_says():
    class Keyed:
        def sources(self):
            return [KeyedRandomness(bytes(32))] * self.asks

    class KeyedBatch(Keyed, BatchSampler):
        pass

    class KeyedStream(Keyed, StreamSampler):
        pass

    said = [running_sequence(kind)().sample(2, 20) for kind in (KeyedBatch, KeyedStream)]
    assert (said[0] == said[1]).all()
    # Asked again, the same is said; the next day it is not.
    assert (said[0][:, :6] == said[0][:, 6:]).all()
    assert not (said[0][:, 0:2] == said[0][:, 4:6]).all()


def test_noise_that_repeats_between_days_and_second_answers_that_are_free_are_caught():
    # Asked once, the first answers of two days are not next to each other.
    make = running_sequence(RepeatingDays, asks=1)
    repeating = audit_sampler(make, draws=SEQUENCE_DRAWS).violations
    runs = next(found for found in repeating if found.test == "runs")
    assert runs.what.startswith("answer 2 less answer 0 is (0, 0)")
    free = audit_sampler(running_sequence(FreeSecondAnswer), draws=SEQUENCE_DRAWS).violations
    assert "cones" in {found.test for found in free}


def test_a_sequence_of_one_step_has_two_paths_and_none_by_itself():
    paths, edges = paths_between(np.array([[4, 7]]))
    assert (paths.tolist(), edges.tolist()) == ([[4], [7]], [[0, 1]])
    with pytest.raises(NotImplementedError):
        running_sequence(SequenceSampler)().sample(0, 1)


def test_a_scenario_is_audited_with_a_short_stream_of_it():
    scenario = scenarios.paper_scenario()
    result = scenario.audit(draws=FEW_DRAWS)
    assert result.violations == ()
    assert any(found.what.startswith("along a stream, ") for found in result.findings)
    assert result.false_alarm == pytest.approx(1e-4)
    sampler = short_stream(scenario)()
    assert sampler.claimed == [2, 1, 1]
    lone = scenarios.paper_scenario(policy=scenarios.Policy(), repair=None)
    assert short_stream(lone) is None


# Laws


def test_a_claim_that_is_true_is_certified_as_false_no_more_often_than_its_level():
    """Every number of hits, with the chance that a true claim of epsilon 1 gives it."""
    level, part = 1e-3, 1 / (1 + exp(-1))
    total = np.arange(1, 200)
    chances, one_less = [], []
    for hits in total.tolist():
        alarms = [x for x in range(hits + 1) if certified(x, hits - x, level) > 1]
        least = min(alarms, default=hits + 1)
        chances.append(stats.binom.sf(least - 1, hits, part))
        one_less.append(stats.binom.sf(least - 2, hits, part))
    assert max(chances) <= level
    # With one hit less, the level would be exceeded: the bound wastes nothing.
    assert min(one_less) > level


def test_coins_are_fair_and_never_ask_for_more_than_there_is():
    tossed = [Coins.toss(5000) for _ in range(2000)]
    assert all(max(coins.first, coins.second) <= 5000 for coins in tossed)
    assert {coins.first + coins.second for coins in tossed} == {coins_for(5000)}
    shares = np.array([coins.first for coins in tossed]) / coins_for(5000)
    # Five standard errors of a mean of 2,000 shares of about 9,300 coins.
    assert shares.mean() == pytest.approx(0.5, abs=5 * 0.5 / (2000 * 9000) ** 0.5)


ALARM = 0.2
AUDITS = 60
SMALL_DRAWS = 1000


class Tight:
    """Says the truth e times as often as a lie: epsilon 1 exactly, on every event."""

    claimed = 1
    points = np.arange(2)[:, None]
    edges = np.array([[0, 1]])

    def __init__(self):
        self.rng = np.random.default_rng(13)

    def sample(self, state, size):
        lies = self.rng.random(size) > 1 / (1 + exp(-1))
        answers = self.rng.integers(0, 40, size)
        return (2 * answers + (state ^ lies))[:, None]


def alarms(searched):
    sampler, count = Tight(), 0
    claim = checked(sampler)
    for _ in range(AUDITS):
        answers = {state: sampler.sample(state, SMALL_DRAWS) for state in (0, 1)}
        findings = searched(claim, claim.edges, answers, SMALL_DRAWS, ALARM)
        count += any(found.violated for found in findings)
    return count


def test_searching_and_certifying_on_other_draws_keeps_the_false_alarm():
    def on_the_same(claim, edges, answers, draws, alarm):
        half = {state: some[: draws // 2] for state, some in answers.items()}
        twice = {state: np.concatenate([some, some]) for state, some in half.items()}
        return running._searched(claim, edges, twice, draws, alarm)

    # Mean 12 and standard deviation 3.1 at most: 28 is five above.
    assert alarms(running._searched) <= 28
    assert alarms(on_the_same) > 28


# Oracle


@pytest.mark.parametrize(("share", "other"), [(0.6, 0.1), (0.9, 0.05), (0.3, 0.0)])
def test_the_chance_to_miss_is_that_over_all_counts(share, other):
    draws, level, limit = 60, 1e-2, 1.0
    coins = coins_for(draws)
    missed = 0.0
    for hits in range(coins + 1):
        for others in range(coins + 1 - hits):
            if certified(hits, others, level) <= limit:
                rest = coins - hits - others
                shares = [share / 2, other / 2, 1 - share / 2 - other / 2]
                missed += stats.multinomial.pmf([hits, others, rest], coins, shares)
    assert certify_miss(share, other, draws, level, limit) == pytest.approx(missed, rel=1e-6)


def test_the_smallest_leak_is_almost_surely_seen_and_a_smaller_one_is_not():
    for other in (0.0, 0.001, 0.02):
        leak = smallest_leak(other, 50_000, 1e-6, 1.0)
        allowed = exp(1) * other
        assert certify_miss(allowed + leak, other, 50_000, 1e-6, 1.0) <= SURE
        assert certify_miss(allowed + 0.98 * leak, other, 50_000, 1e-6, 1.0) > SURE
        assert smallest_leak(other, 100_000, 1e-6, 1.0) < leak
    assert smallest_leak(0.4, 50_000, 1e-6, 1.0) is None
    assert smallest_leak(0.0, 10, 1e-6, 1.0) is None


def test_events_are_what_their_words_say():
    answers = {state: parity(0.5)(state, 2000) for state in (1, 2)}
    claim = replace(checked(Tight()), points=2 * POINTS, edges=EDGE, limits={(1, 2): Fraction(1)})
    found = search_events(claim, EDGE, answers)
    event = found["residues"].event
    assert event.what.startswith("the sum of all coordinates is 1 modulo 2")
    assert event.holds(answers[1]).sum() > 900
    assert not event.holds(answers[2]).any()
    atom = found["atoms"].event
    assert atom.holds(answers[1]).any()


# The function


def test_a_function_is_audited_with_its_claim_and_nothing_less():
    assert dphmm.audit_sampler is audit_sampler
    claim = {"claimed": 1, "points": POINTS, "edges": EDGE}
    with pytest.raises(ArgumentError, match="must be given together"):
        audit_sampler(honest, claimed=1)
    with pytest.raises(ArgumentError, match="sampler must be a function, got int"):
        audit_sampler(3, **claim)
    with pytest.raises(ArgumentError, match="must be a sampler or make one"):
        audit_sampler(3)
    with pytest.raises(ArgumentError, match="claimed must be one epsilon, or 1"):
        audit_sampler(honest, **{**claim, "claimed": [1, 2]})
    with pytest.raises(ArgumentError, match="moments must divide"):
        audit_sampler(honest, **claim, moments=3)


def test_a_claim_may_be_one_for_each_edge():
    log_two = log(2)
    result = audit_sampler(
        Tight().sample, claimed=["1.01", 3], points=[[0], [1]], edges=[[0, 1], [1, 0]], draws=5000
    )
    assert result.epsilon == Fraction("1.01")
    loose = audit_sampler(
        Tight().sample, claimed=[log_two], points=[[0], [1]], edges=[[0, 1]], draws=5000
    )
    assert loose.violations


def test_a_function_with_attributes_can_be_named(tmp_path, monkeypatch):
    code = (
        "def sample(state, size):\n    return [[0]] * size\n"
        "sample.claimed, sample.points, sample.edges = 1, [[0], [1]], [[0, 1]]\n"
    )
    (tmp_path / "function_for_audit.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    make = load("function_for_audit:sample")
    assert make() is make()
    assert audit_sampler(make, draws=1000).violations == ()


# What leaves besides the values


def signed(state, size):
    """Writes zero with a sign, in one state only."""
    answers = honest(state, size)
    if state == EDGE[0][0]:
        return answers
    answers = answers.astype(np.float64)
    answers[answers == 0] = -0.0
    return answers


def doubled(state, size):
    """Says every answer twice in a row, from one offset on, in one state only."""
    answers = honest(state, size)
    if state == EDGE[0][0]:
        answers[2::2] = answers[1:-1:2]
    return answers


@pytest.mark.parametrize(("sample", "test"), [(signed, "atoms"), (doubled, "runs")])
def test_signs_of_zero_and_draws_that_repeat_in_one_state_are_found(sample, test) -> None:
    assert test in {finding.test for finding in audited(sample, FEW_DRAWS).violations}
    assert not audited(honest, FEW_DRAWS).violations

"""What is promised before anything is released, by a check and in the studio."""

from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction
from html import unescape
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dphmm import (
    Clock,
    MarkovModel,
    PolicyGraph,
    Query,
    Scenario,
    Schedule,
    States,
    Stream,
    TimeVaryingModel,
    exposed,
)
from dphmm.policy.plan import Protected
from dphmm.report import scenario_page
from dphmm.scenario.headline import headline
from tests.promise_answers import CONDITION
from tests.promise_routes import reported
from tests.scenarios import run

# When the start is known


def by_turns(origin: int | None) -> Scenario:
    """Everybody is at 0 at even times, whoever begins when; at odd ones anywhere."""
    gathered, free = MarkovModel([[1, 0, 0]] * 3), MarkovModel(np.full((3, 3), 1 / 3))
    return Scenario(
        Query([0, 1, 2]), TimeVaryingModel([gathered, free]), PolicyGraph.complete(3),
        epsilon=1, start="0", clock=Clock(1, origin=origin), name="town",
    )  # fmt: skip


@pytest.mark.parametrize("origin", [0, 1, 7, 8])
def test_a_check_begins_where_the_start_is_known(tmp_path: Path, origin: int) -> None:
    scenario = by_turns(origin)
    found, stream = scenario.check(3), scenario.stream("ann")
    for step in found.steps:
        release = stream.release("0")
        assert step.possible == int(stream.said[-1].step.possible.sum())
        assert bool(step.exposed) == release.statement.startswith("Only one state is possible")
    first = scenario.check(1)
    assert ("Nobody is exposed" in first.verdict) == (origin % 2 == 0)
    assert first.costs is not None
    assert (first.costs.worst_pair == 0) == (origin % 2 == 1)
    scenario.save(tmp_path / "town.toml")
    assert run("check", tmp_path / "town.toml", "--steps", "1").exit_code == origin % 2


def test_a_check_says_that_others_may_begin_at_another_turn(tmp_path: Path) -> None:
    """Without an origin somebody's start is known before their first row, whenever that is."""
    scenario = by_turns(None)
    late = scenario.stream("ann", time=1)
    assert late.release("0").statement.startswith("Only one state is possible")
    unless = ", if the start is known at slot 0"
    found = scenario.check(1)
    assert found.verdict.startswith(f"Nobody is exposed in these steps{unless}")
    assert unless in repr(found)
    assert unless in headline(scenario, found.steps[0])
    scenario.save(tmp_path / "town.toml")
    said = run("check", tmp_path / "town.toml", "--steps", "1").stdout
    assert f"If each of 1 steps is answered{unless}:" in said
    page = scenario_page(scenario, [reported(scenario, {1: 0})])
    first = unescape(page.split("<h2>The first steps</h2>")[1].split("</p>")[0])
    assert f"what repair does about it{unless}, {CONDITION}." in first
    fixed = scenario_page(by_turns(0), [reported(by_turns(0), {1: 0})])
    assert unless not in fixed
    # An answer's own promise does not depend on it, and neither does a model without turns.
    assert unless not in found.guarantee
    assert unless not in by_turns(0).check(1).verdict
    plain = Scenario(
        Query([0, 1]), MarkovModel(np.eye(2)[::-1]), PolicyGraph.complete(2), epsilon=1
    )
    assert unless not in plain.check(2).verdict


# What answers may change


def narrowed(**options: object) -> Scenario:
    """Two rows that are told apart for certain; who stands alone afterwards depends on which."""
    places = [[0, 0], [10, 0], [0, 1], [10, 1], [0, 0], [1, 0], [0, 0], [9, 0]]
    later, first = np.zeros((8, 8)), np.zeros((8, 8))
    later[:2, 4:6] = later[2:4, 6:8] = later[4:6, 4:6] = later[6:, 6:] = 0.5
    first[:, :4] = 0.25
    model = TimeVaryingModel([MarkovModel(later), MarkovModel(first)])
    policy = PolicyGraph(8, [(0, 1), (2, 3), (4, 7), (5, 6)])
    states = States.on_plane(places, labels=tuple("abcdefgh"))
    return Scenario(
        states, model, policy, epsilon=1, start=dict.fromkeys("abcd", 0.25),
        repair=None, full_rank=False, name="rows", clock=Clock(1, origin=0), **options,
    )  # fmt: skip


def test_check_claims_nothing_that_answers_may_change(tmp_path: Path) -> None:
    scenario = narrowed()
    stream = Stream(scenario.model, scenario.plan, epsilon=1, start=scenario.start)
    stream.release(0)
    stream.release(4)
    step = stream.said[-1].step
    assert exposed(scenario.query, step.policy, step.possible, hull=step.body).tolist() == [4, 5]
    found = scenario.check(2)
    assert not found.exposed
    unless = "as long as no answer narrows down what is possible"
    for shown in (repr(found), found._repr_html_()):
        assert f", {unless}, {CONDITION}" in shown
    assert found.costs is None  # the second body, and so its price, depends on the first answer
    scenario.save(tmp_path / "rows.toml")
    said = run("check", tmp_path / "rows.toml", "--steps", "2").stdout
    assert f"Nobody is exposed in these steps, {unless}, {CONDITION}." in said
    assert "If each of 2 steps is answered" not in said
    assert "depends on the answers" in said


def test_check_says_what_a_flat_hull_costs_where_no_answer_changes_it(tmp_path: Path) -> None:
    rows = Query([[0, 0], [1, 0], [0, 1], [1, 1]])
    policy = PolicyGraph(4, [(0, 1), (2, 3)])
    model = MarkovModel(np.eye(4), anywhere=0.1)
    scenario = Scenario(rows, model, policy, epsilon=1, full_rank=False, repair=None)
    costs = scenario.check(3).costs
    assert costs is not None
    assert costs.worst_pair == costs.event == np.inf
    assert "shaped by earlier answers" not in costs.text()
    scenario.save(tmp_path / "rows.toml")
    said = run("check", tmp_path / "rows.toml", "--steps", "3").stdout
    assert "Nobody is exposed in these steps." in said


# When it speaks


def lost(charges: list[Protected | None], paths: list[tuple[int, ...]], width: int) -> Fraction:
    """The most that answers at some steps tell between two paths that differ for so long."""
    most = Fraction(0)
    for one, other in combinations(paths, 2):
        apart = [time for time, (j, k) in enumerate(zip(one, other, strict=True)) if j != k]
        if apart[-1] - apart[0] < width:
            most = max(most, sum(
                (Fraction(step.body.lattice_norm(step.query.points[j] - step.query.points[k]))
                 for step, j, k in zip(charges, one, other, strict=True) if step is not None),
                Fraction(0),
            ))  # fmt: skip
    return most


def legal_paths(moves: np.ndarray, start: int, steps: int) -> list[tuple[int, ...]]:
    ways = product(range(len(moves)), repeat=steps)
    return [way for way in ways if moves[[start, *way[:-1]], way].all()]


def test_what_a_schedule_costs_is_the_most_of_whoever_starts_whenever() -> None:
    """Silent steps come first for some; the model's moves may lead to other states meanwhile."""
    rng, later = np.random.default_rng(8), 0
    for _ in range(40):
        n, steps = int(rng.integers(2, 5)), int(rng.integers(2, 5))
        own = (rng.random((n, n)) < 0.3) | np.eye(n, dtype=bool)[rng.permutation(n)]
        share = float(rng.choice([0, 0.1]))
        every, apart, phase = (int(x) for x in rng.integers(1, 4, size=3))
        origin = None if rng.random() < 0.7 else int(rng.integers(5))
        query = Query(rng.integers(-9, 10, size=n))
        policy = PolicyGraph.complete(n) if rng.random() < 0.3 else PolicyGraph(n, [(0, 1)])
        scenario = Scenario(
            query, MarkovModel(own / own.sum(axis=1, keepdims=True), anywhere=share), policy,
            epsilon=1, start="0", clock=Clock(1, origin=origin),
            when=Schedule(every=every, phase=phase, apart=apart),
        )  # fmt: skip
        moves = np.ones((n, n), dtype=bool) if share else own
        widths, found = (1, max(1, steps // 2), steps), []
        for start in range(every) if origin is None else [origin]:
            possible, spoke = np.arange(n) == 0, -apart
            charges: list[Protected | None] = []
            for time in range(start + 1, start + steps + 1):
                possible = moves[possible].any(axis=0)
                speaks = time % every == phase % every and (not charges or time - spoke >= apart)
                spoke = time if speaks else spoke
                charges.append(scenario.plan.at(possible) if speaks else None)
            found.append([
                [lost(charges, legal_paths(some, 0, steps), width) for width in widths]
                for some in (moves, own)
            ])  # fmt: skip
        costs = scenario.check(steps).costs
        assert costs is not None
        worst = np.array(found).max(axis=0).tolist()
        assert [costs.event, costs.window, costs.sequence] == worst[0]
        if share and costs.own is not None:
            assert [costs.own.event, costs.own.window, costs.own.sequence] == worst[1]
        later += found[0] != worst
    assert later > 5


def test_what_a_schedule_of_hours_costs_counts_the_busiest_start() -> None:
    """Four steps of an hour after 07:00 have one answer, after 19:00 three."""
    model, policy = MarkovModel(np.full((3, 3), 1 / 3)), PolicyGraph(3, [(0, 1), (1, 2)])
    when = Schedule(hours=("08:00", "20:00", "21:00", "22:00"))
    scenario = Scenario(Query([0, 1, 2]), model, policy, epsilon=1, when=when, clock=Clock("1 h"))
    found, stream = scenario.check(4), scenario.stream("ann", time=19)
    assert found.planned.endswith("as [when] says, wherever they begin (at most 3 of them)")
    assert found.costs is not None
    assert found.costs.spent == sum(stream.release("0").epsilon for _ in range(4)) == 3
    assert found.costs.sequence == stream.statement().sequence == 6
    # From a start whose slot is known it speaks when it does.
    early = scenario.replace(clock=Clock("1 h", origin="1970-01-01T07:00:00Z")).check(4)
    assert early.planned.endswith("as [when] says (1 of them)")
    assert early.costs is not None
    assert early.costs.spent == 1


def test_what_a_schedule_of_hours_costs_counts_every_season() -> None:
    """08:00 in Berlin is an even slot in summer, since there is one, and never in winter."""
    model, when = MarkovModel(np.full((2, 2), 0.5)), Schedule(every=2, hours=("08:00",))
    clock = Clock("1 h", zone="Europe/Berlin")
    scenario = Scenario(
        Query([0, 1]), model, PolicyGraph.complete(2), epsilon=1, when=when, clock=clock
    )
    noon = int(datetime(2024, 6, 30, 12, tzinfo=UTC).timestamp()) // 3600
    stream = scenario.stream("ann", time=noon)
    assert sum(stream.release("0").epsilon for _ in range(24)) == 1
    found = scenario.check(24)
    assert found.planned.endswith("wherever they begin (at most 1 of them)")
    assert found.costs is not None
    assert found.costs.spent == 1


def test_what_the_own_moves_cost_depends_on_the_turn_at_which_they_begin() -> None:
    still, free = MarkovModel(np.eye(3), anywhere=0.1), MarkovModel(np.full((3, 3), 1 / 3))
    scenario = Scenario(
        Query([0, 1, 2]), TimeVaryingModel([free, still]), PolicyGraph.complete(3), epsilon=1,
        start="0",
    )  # fmt: skip
    found = scenario.check(1)
    assert found.costs is not None
    assert found.costs.own is not None
    assert found.costs.own.sequence == 0
    late = scenario.stream("ann", time=1)
    late.release("0")
    assert late.statement().sequence == 1
    assert found.planned == "If each of 1 steps is answered, if the start is known at slot 0"
    # Where everybody may be does not, so nobody is exposed whenever it begins.
    assert "slot 0" not in found.verdict


# The studio's headline


def test_a_lone_place_is_not_called_certain_where_delta_or_a_statement_made_it_so() -> None:
    likely = np.array([[0.9, 0.1], [0.9, 0.1]])
    line = Query([0, 1])
    left_out = Scenario(line, MarkovModel(likely), PolicyGraph.complete(2), epsilon=1, delta="0.2")
    said = headline(left_out, left_out.check(1).steps[0])
    assert said.startswith("Only one place is in the 0.8 location set")
    ring = Scenario(line, MarkovModel(np.eye(2)[::-1]), PolicyGraph.complete(2), epsilon=1, start=0)
    said = headline(ring, ring.check(1).steps[0])
    assert said.startswith(f"Only one place is possible {CONDITION}")
    for text in (said, headline(left_out, left_out.check(1).steps[0])):
        assert "everybody knows" not in text


# What full support costs


def test_check_says_what_the_own_moves_would_give_if_they_were_facts() -> None:
    """The same moves, once learned and once stated: one's own values are the other's."""
    rng = np.random.default_rng(5)
    for _ in range(10):
        n = int(rng.integers(3, 7))
        moves = (rng.random((n, n)) < 0.4) | np.eye(n, dtype=bool)[rng.permutation(n)]
        query = Query(rng.integers(-9, 10, size=(n, 2)))
        policy = PolicyGraph(n, [pair for pair in combinations(range(n), 2) if rng.random() < 0.4])
        model = moves / moves.sum(axis=1, keepdims=True)
        options: dict[str, Any] = {"epsilon": 1, "start": "0"}
        learned = Scenario(query, MarkovModel(model, anywhere=0.1), policy, **options).check(4)
        stated = Scenario(query, MarkovModel(model), policy, **options).check(4)
        for ours, facts in zip(learned.steps, stated.steps, strict=False):
            assert (ours.own_possible, ours.own_error) == (facts.possible, facts.error)
            assert ours.possible == n

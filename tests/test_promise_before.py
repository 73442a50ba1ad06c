"""What is promised before anything is released, by a check and in the studio."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dphmm import Clock, MarkovModel, PolicyGraph, Query, Scenario, TimeVaryingModel
from dphmm.scenario.headline import headline
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
    # An answer's own promise does not depend on it, and neither does a model without turns.
    assert unless not in found.guarantee
    assert unless not in by_turns(0).check(1).verdict
    plain = Scenario(
        Query([0, 1]), MarkovModel(np.eye(2)[::-1]), PolicyGraph.complete(2), epsilon=1
    )
    assert unless not in plain.check(2).verdict

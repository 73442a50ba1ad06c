"""What pages and help texts say of privacy: for everybody, or with its condition."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dphmm import (
    MarkovModel,
    Plan,
    PolicyGraph,
    Query,
    Stream,
)
from dphmm.cost.words import OWN_MOVES
from tests.promise_answers import ANSWERS, LINKS, Answer, seeded
from tests.scenarios import run

DOCS = Path(__file__).parents[1] / "docs"


def said_of(model: MarkovModel, plan: Plan, start: int, state: int) -> Answer:
    """The law of one answer about somebody."""
    stream = Stream(model, plan, epsilon=1, start=start, randomness=seeded())
    release = stream.release(state)
    return Answer.of(stream.said[0], release)


def test_what_is_said_of_two_who_move_together_adds_up() -> None:
    """Each answer keeps its promise, and both are about the same place."""
    plan = Plan(PolicyGraph(2, [(0, 1)]), Query([0, 1]))
    model = MarkovModel(np.full((2, 2), 0.5))
    both = [said_of(model, plan, 0, 1), said_of(model, plan, 0, 1)]
    assert [answer.told(0, 1) for answer in both] == [1, 1]
    # Independent noise: of whoever is in one place together the losses add up.
    assert sum(answer.told(0, 1) for answer in both) == 2
    page = (DOCS / "guarantee.md").read_text()
    assert "If two people move together, the answers about each are about both" in page


def test_a_model_of_somebodys_own_trips_tells_of_them_for_certain() -> None:
    """Two linked states, one trip each: the published chains are others."""
    chains = [MarkovModel.fit([[2, place, 2]], n_states=3) for place in (0, 1)]
    assert chains[0].digest != chains[1].digest
    page = (DOCS / "guarantee.md").read_text()
    assert "One that was counted from your own trips tells of them, beside every answer" in page
    assert "may be chosen by looking at the truth about you" in page
    said = " ".join(run("learn", "--help").output.split())
    assert "Raw counts are published with the model" in said


def test_a_chain_breaks_a_promise_only_by_zeros_that_somebody_stated() -> None:
    moves = np.ones((5, 5)) - np.eye(5)[1]
    moves /= moves.sum(axis=1, keepdims=True)
    plan = Plan(PolicyGraph(5, sorted(LINKS)), Query(ANSWERS))
    assert said_of(MarkovModel(moves), plan, 0, 1).told(0, 1) == 110
    for share in (1e-9, 0.01, 0.5):
        assert said_of(MarkovModel(moves, anywhere=share), plan, 0, 1).told(0, 1) == 1
    page = (DOCS / "howto" / "judge-a-model.md").read_text()
    assert "A bad chain that was learned breaks no promise" in page
    assert "does, for whoever does what it forbids" in page


@pytest.mark.parametrize("command", ["release", "serve"])
def test_help_says_what_a_key_can_do(command: str) -> None:
    said = " ".join(run(command, "--help").output.split())
    assert "whoever has them can take it off" in said


def test_over_two_links_the_state_between_must_be_possible_too() -> None:
    line = Query([0, 50, 100, 1, 101])
    plan = Plan(PolicyGraph(5, [(0, 1), (1, 2), (0, 3), (2, 4)]), line)
    for between, lost in ((True, 2), (False, 100)):
        possible = np.array([True, between, True, True, True])
        step = plan.at(possible)
        assert step.body.lattice_norms(np.array([[100]]))[0] == lost
    page = (Path(__file__).parents[1] / "docs" / "guarantee.md").read_text()
    assert "exp(2ε), if the state between them is possible too" in page


CLAIMS = {
    "PathCosts": ("condition", "event", "window", "sequence"),
    "Statement": ("condition", "spent", "before", "besides", "text", "linked", "worst_pair", "own"),
    "Tells": ("linked", "linked_delta", "moment", "realised", "near", "home"),
    "LedgerEntry": ("epsilon", "constrained"),
    "LedgerPage": ("spent", "remaining"),
    "Released": ("epsilon", "statement"),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_every_number_of_the_service_s_page_says_what_it_is_about(name: str) -> None:
    pytest.importorskip("fastapi")
    from dphmm.service import bodies

    fields = getattr(bodies, name).model_fields
    assert all(fields[field].description for field in CLAIMS[name])


def test_the_service_s_page_says_where_a_condition_holds() -> None:
    pytest.importorskip("fastapi")
    from dphmm.service import bodies

    own = bodies.Statement.model_fields["own"].description or ""
    assert "what `condition` says of delta, gaps and other answers holds for it, too" in own
    assert "under the `condition`" in (bodies.Tells.__doc__ or "")
    spent = bodies.LedgerPage.model_fields["spent"].description or ""
    assert "states that only repair hides may lose more by several questions" in spent


def test_programs_read_the_whole_condition_of_the_model_s_own_moves() -> None:
    walk = MarkovModel((np.eye(5) + np.roll(np.eye(5), 1, axis=1)) / 2, anywhere=0.01)
    plan = Plan(PolicyGraph(5, [(0, 1), (1, 2)]), Query(range(5)))
    stream = Stream(walk, plan, epsilon=1, start=0, randomness=seeded())
    for place in (1, 2):
        stream.release(place)
    everybody = stream.statement()
    limited = replace(everybody, delta=Fraction(1, 100), filled=True, before=Fraction(1))
    for statement in (everybody, limited):
        (line,) = (line for line in statement.text().splitlines() if OWN_MOVES in line)
        told = statement.plain()["own"]["condition"].removeprefix(f"for {OWN_MOVES}")
        assert line.endswith(f"{told}.")
        assert told == replace(statement, stated_zeros=False).condition
    assert "location set" in limited.plain()["own"]["condition"]

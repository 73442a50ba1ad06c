"""What a refusal tells people to do can be done, and gives no second answer."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dphmm import Clock, Journal, MarkovModel, PolicyGraph, Query, Scenario
from dphmm.release import engine
from dphmm.release.engine import Ask
from dphmm.release.moment import Line
from tests.crash import paper_scenario
from tests.scenarios import run
from tests.service_worlds import service

CHANGED = "scenario must be as it was when the person was last answered"
OTHERWISE = (
    "scenario must have the time step of the person's answers, got another, in which their slots "
    "are other times; give its query another name"
)


def town(folder: Path, name: str = "town", **options: object) -> Path:
    """A scenario of three places, of which two may be spent."""
    model, policy = MarkovModel(np.full((3, 3), 1 / 3)), PolicyGraph.complete(3)
    (folder / name).mkdir()
    path = folder / name / "town.toml"
    Scenario(Query([0, 1, 2]), model, policy, epsilon=1, limit=2, **options).save(path)
    return path


def trips(folder: Path, *times: int) -> Path:
    path = folder / "trips.csv"
    path.write_text("person,time,state\n" + "".join(f"ann,{time},0\n" for time in times))
    return path


# Another time step


@pytest.mark.parametrize("kind", ["ledger", "store"])
def test_another_time_step_is_refused_with_what_can_be_done(tmp_path: Path, kind: str) -> None:
    book, rows, out = tmp_path / "book", trips(tmp_path, 12), tmp_path / "out.csv"

    def release(toml: Path) -> Any:
        return run("release", toml, rows, "-o", out, f"--{kind}", book)

    assert release(town(tmp_path, clock=Clock(2))).exit_code == 0
    other = town(tmp_path, "other", clock=Clock(3))
    for refused in (release(other), run("ledger", "adopt", book, other, "--same-states")):
        assert refused.exit_code == 2
        assert OTHERWISE in refused.stderr
        assert "adopt" not in refused.stderr
    # As it says, and what was spent counts in both: one of two is left.
    renamed = town(tmp_path, "renamed", clock=Clock(3), query="place")
    assert release(renamed).exit_code == 0
    trips(tmp_path, 12, 15)
    over = release(renamed)
    assert over.exit_code == 1
    assert "limit" in over.stderr
    shown = json.loads(run("ledger", "show", book, "--json").stdout)["people"]
    assert [(row["query"], row["slot"], row["spent"]) for row in shown] == [
        ("place", 4, "2"), ("state", 6, "2"),
    ]  # fmt: skip


def test_a_service_does_not_tell_answers_as_those_of_another_time_step(tmp_path: Path) -> None:
    with service(tmp_path) as world:
        assert world.release(4, "s3").status_code == 200
        (said,) = world.ask("GET", world.person + "/releases").json()["releases"]
        assert (said["time"], said["slot"]) == (4, 4)
        toml = paper_scenario.TOML + "step = 2\n"
        other = world.ask("POST", "/v1/scenarios", paper_scenario.body(toml)).json()["id"]
        person = f"/v1/scenarios/{other}/people/anna"
        for method, path, body in (
            ("PUT", "", {"budget": 5}),
            ("POST", "/releases", {"time": 12, "state": "s3"}),
            ("GET", "/releases", None),
            ("GET", "/track", None),
            ("GET", "/privacy", None),
        ):
            refused = world.ask(method, person + path, body)
            assert (refused.status_code, refused.json().get("problem")) == (422, OTHERWISE), path
        ledger = world.ask("GET", "/v1/people/anna/ledger").json()
        assert (ledger["spent"], ledger["budget"]) == ("1", None)


# A ledger whose last run was killed


def test_a_ledger_of_a_killed_run_is_adopted_after_the_run_was_repeated(tmp_path: Path) -> None:
    """The last standing is older than the last answers, and nothing is left that could be new."""
    first = town(tmp_path)
    scenario = Scenario.load(first)
    rows = trips(tmp_path, 1, 2)
    book = tmp_path / "book"
    child = os.fork()
    if child == 0:
        journal = Journal(book)
        for time in (1, 2):
            asked = Ask(scenario.terms, ["ann"], np.array([time]), np.array([0]))
            engine.release(journal, [asked])
        os._exit(0)  # without an end
    os.waitpid(child, 0)
    other = town(tmp_path, "other", repair="nearest")

    def adopt() -> Any:
        return run("ledger", "adopt", book, other, "--same-states")

    refused = adopt()
    assert refused.exit_code == 2
    assert "run that once more under the scenario as it was" in refused.stderr
    again = run("release", first, rows, "-o", tmp_path / "out.csv", "--ledger", book)
    assert again.exit_code == 0
    taken = adopt()
    assert taken.exit_code == 0, taken.stderr
    with Journal(book) as journal:
        (place,) = journal.places([Line("", "ann", "state")])
        assert [record.time for record in journal.records("", "ann")] == [1, 2]
    assert place.standing is not None
    assert (place.standing.time, place.standing.spent, place.spent) == (2, 2, 2)
    assert place.standing.law == Scenario.load(other).terms.law

"""SIGKILL at random moments: nothing is lost and nothing is said twice."""

from __future__ import annotations

import pytest

from tests.crash.killing import Killing
from tests.crash.postgres import running_server

SHORT, FULL = 10, 200
SEED = 7


def kill_servers(url, kills, late=False):
    seen = Killing(url, SEED, late=late).run(kills)
    assert seen.kills == kills
    return seen, seen.violations(url)


def check(url, kills):
    seen, violations = kill_servers(url, kills)
    assert violations == []
    assert len(seen.answers) >= kills  # a busy machine answers little between two kills
    assert seen.retried > 0


def test_a_killed_server_loses_nothing_on_sqlite(tmp_path):
    check(str(tmp_path / "store.db"), SHORT)


@pytest.mark.postgres
def test_a_killed_server_loses_nothing_on_postgresql():
    with running_server() as server:
        check(server.new_database(), SHORT)


def test_a_commit_after_the_answer_is_caught(tmp_path):
    """The check is no decoration: a store that commits too late fails it."""
    _, violations = kill_servers(str(tmp_path / "store.db"), SHORT, late=True)
    assert any("a client saw an answer that is not" in violation for violation in violations)


@pytest.mark.slow
def test_two_hundred_kills_lose_nothing_on_sqlite(tmp_path):
    check(str(tmp_path / "store.db"), FULL)


@pytest.mark.slow
@pytest.mark.postgres
def test_two_hundred_kills_lose_nothing_on_postgresql():
    with running_server() as server:
        check(server.new_database(), FULL)

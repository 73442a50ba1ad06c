"""Keys over the API and what is written down about them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from dphmm import ArgumentError
from dphmm.books import OPERATE, SCOPES, create_key, expire_key, find_key, list_keys, replace_key
from dphmm.books.acts import find_break, list_acts
from dphmm.cli.program import program
from dphmm.errors import NotFoundError
from tests.service_worlds import World


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    world.close()


def acts(world):
    return [act.act for act in list_acts(world.store) if act.who]


def test_a_key_is_made_listed_exchanged_expired_and_revoked(world):
    everything = create_key(world.store, "red", SCOPES)
    made = world.ask("POST", "/v1/keys", {"scopes": ["read"], "days": 30}, key=everything)
    assert made.status_code == 201
    facts = made.json()
    assert facts["scopes"] == ["read"]
    assert facts["open"]
    assert world.ask("GET", "/v1/people", key=facts["key"]).status_code == 200
    listed = world.ask("GET", "/v1/keys").json()["keys"]
    assert facts["id"] in {key["id"] for key in listed}
    assert all("key" not in key for key in listed)
    path = f"/v1/keys/{facts['id']}"
    other = world.ask("POST", path + "/rotate", {"hours": 2}).json()
    assert other["scopes"] == ["read"]
    assert other["key"] != facts["key"]
    for key in (facts["key"], other["key"]):  # both for two hours
        assert world.ask("GET", "/v1/people", key=key).status_code == 200
    assert world.ask("PUT", path, {"hours": 0}).status_code == 200
    assert world.ask("GET", "/v1/people", key=facts["key"]).status_code == 401
    assert world.ask("GET", "/v1/people", key=other["key"]).status_code == 200
    closed = world.ask("DELETE", f"/v1/keys/{other['id']}").json()
    assert not closed["open"]
    assert world.ask("GET", "/v1/people", key=other["key"]).status_code == 401
    assert acts(world) == ["key create", "key rotate", "key expire", "key revoke"]


def test_nobody_gives_what_they_do_not_have(world):
    refused = world.ask("POST", "/v1/keys", {"scopes": ["release"]})
    assert refused.status_code == 403
    assert world.ask("POST", "/v1/keys", {"scopes": ["keys"]}).status_code == 201
    assert world.ask("POST", "/v1/keys", {"scopes": [OPERATE]}).status_code == 422
    assert world.ask("POST", "/v1/keys?client=blue", {"scopes": ["keys"]}).status_code == 403


def test_an_operator_manages_every_clients_keys_and_sees_nothing_else(world):
    made = world.ask("POST", "/v1/keys?client=green", {"scopes": ["read"]}, scope=OPERATE)
    assert made.json()["client"] == "green"
    assert world.ask("POST", "/v1/keys", {"scopes": ["read"]}, scope=OPERATE).status_code == 422
    for path in ("/v1/people", "/v1/scenarios", world.person + "/releases"):
        assert world.ask("GET", path, scope=OPERATE).status_code == 403
    assert world.ask("GET", "/metrics", scope=OPERATE).status_code == 200
    with pytest.raises(ArgumentError, match="client must be empty"):
        create_key(world.store, "red", [OPERATE])
    with pytest.raises(ArgumentError, match="scopes must be some of"):
        create_key(world.store, "", [OPERATE, "read"])


def test_what_was_done_is_written_down_without_saying_whom_about(world):
    world.ask("PUT", world.person.replace("anna", "zq17"), {"budget": "5"})
    world.ask("DELETE", "/v1/people/zq17")
    world.ask("DELETE", "/v1/people/nobody")  # nothing was there, so nothing was done
    told = world.ask("GET", "/v1/acts", scope=OPERATE).json()["acts"]
    assert [act["act"] for act in told if act["who"]] == ["budget", "erase"]
    assert "zq17" not in str(told)
    mine = world.ask("GET", "/v1/acts", client="blue").json()["acts"]
    assert {act["client"] for act in mine} == {"blue"}
    assert find_break(world.store) is None
    with world.store.database.transaction() as transaction:
        transaction.rows("UPDATE acts SET act = 'nothing' WHERE number = 3")
    assert find_break(world.store) == 3


def test_a_key_closes_when_its_time_is_over_and_never_later_than_it_would(world):
    soon = datetime.now(UTC) + timedelta(hours=1)
    key = create_key(world.store, "red", ["read"], expires=soon)
    found = find_key(world.store, key)
    assert found is not None
    expire_key(world.store, found.name, soon + timedelta(days=1))
    assert find_key(world.store, key).expires == found.expires
    expire_key(world.store, found.name, datetime.now(UTC) - timedelta(seconds=2))
    assert find_key(world.store, key) is None
    with pytest.raises(ArgumentError, match="open, got a closed one"):
        replace_key(world.store, found.name, timedelta())
    with pytest.raises(NotFoundError):
        expire_key(world.store, found.name, soon, client="blue")


def test_a_key_from_before_the_scopes_were_more_opens_what_it_did(world):
    key = create_key(world.store, "red", ["read"])
    with world.store.database.transaction() as transaction:
        transaction.rows("UPDATE keys SET scopes = 'admin read'")
    assert find_key(world.store, key).scopes == {"read", "people", "scenarios", "keys"}


def test_the_commands_make_exchange_and_close_keys(world, capsys):
    url = world.store.database.name

    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            program.main(["store", "key", *arguments], prog_name="dphmm")
        assert ended.value.code == 0
        return capsys.readouterr().out.strip()

    key = run("create", url, "grey", "--scope", "read", "--days", "7")
    assert re.fullmatch(r"dphmm_[\w-]{43}", key)
    name = find_key(world.store, key).name
    other = run("rotate", url, name, "--hours", "0")
    assert find_key(world.store, key) is None
    assert find_key(world.store, other).client == "grey"
    assert "closes in 1 hours" in run("expire", url, find_key(world.store, other).name,
                                      "--hours", "1")  # fmt: skip
    assert "expired" in run("list", url)
    operator = run("create", url, "--scope", OPERATE)
    assert find_key(world.store, operator).scopes == {OPERATE}
    assert len(list_keys(world.store, "grey")) == 2

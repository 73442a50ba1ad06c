"""`dphmm store`: what is in a store, whether it is sound, and how people leave it."""

from __future__ import annotations

import json

import click
import pytest
from click.testing import CliRunner

from dphmm import MarkovModel
from dphmm.books import Store, list_keys
from dphmm.cli.release import command as release_command
from dphmm.cli.store import command
from dphmm.errors import BudgetError, DataError, NotFoundError, StoreError
from dphmm.scenario import write_model
from tests.crash import paper_scenario
from tests.crash.world import release


@pytest.fixture
def path(tmp_path):
    path = str(tmp_path / "streams.db")
    store = Store.open(path)
    for time in (1, 2, 4):
        release(store, "anna", time, 4)
    release(store, "bert", 1, 2)
    store.close()
    return path


def run(*arguments, **options):
    found = CliRunner().invoke(command, arguments, standalone_mode=False, **options)
    if found.exception is not None:
        raise found.exception
    return found


def test_inspect_counts(path):
    facts = json.loads(run("inspect", path, "--json").output)
    assert (facts["people"], facts["answers"], facts["standings"]) == (2, 4, 2)
    assert "answers      4" in run("inspect", path).output


def test_verify_says_sound_or_why_not(path):
    sound = run("verify", path)
    assert (sound.return_value, sound.output) == (0, "sound: 2 people, 4 answers\n")
    store = Store.open(path)
    with store.database.transaction() as transaction:
        transaction.rows("DELETE FROM answers WHERE time = 4")
    store.close()
    broken = run("verify", path, "--json")
    assert broken.return_value == 1
    assert "/anna: the answers cost 2, written as spent is 3" in broken.output
    assert run("verify", path).return_value == 1


def test_export_gives_a_person_what_is_kept_about_them(path, tmp_path):
    lines = [
        json.loads(line)
        for line in run("export", path, "--person", "anna").output.split("\n")
        if line
    ]
    assert [line["kind"] for line in lines] == ["person", "standing", *3 * ["answer"]]
    assert {line["person"] for line in lines} == {"anna"}
    out = tmp_path / "all.jsonl"
    run("export", path, "-o", str(out))
    assert len(out.read_text().splitlines()) == 8
    with pytest.raises(NotFoundError):
        run("export", path, "--person", "nobody")


def test_erase_asks_first(path):
    with pytest.raises(click.Abort):
        run("erase", path, "anna", input="n\n")
    assert json.loads(run("inspect", path, "--json").output)["people"] == 2
    assert "epsilon 3 stays spent" in run("erase", path, "anna", "--yes").output
    assert json.loads(run("inspect", path, "--json").output)["people"] == 1
    assert json.loads(run("erase", path, "bert", "--yes", "--json").output)["spent"] == "1"


def test_keys_are_made_listed_and_revoked(path):
    key = run("key", "create", path, "clinic", "--scope", "read").output.strip()
    listed = run("key", "list", path).output
    assert key not in listed
    assert "clinic" in listed
    (held,) = json.loads(run("key", "list", path, "--json").output)
    assert held["scopes"] == ["read"]
    assert run("key", "revoke", path, held["digest"]).output == "revoked a key of clinic\n"
    store = Store.open(path)
    assert list_keys(store)[0].revoked
    store.close()
    assert "revoked" in run("key", "list", path).output
    with pytest.raises(NotFoundError, match="digest must fit one key"):
        run("key", "revoke", path, "0000000000000000")


def test_a_store_that_is_not_there_is_not_made(tmp_path):
    with pytest.raises(StoreError, match="does not exist"):
        run("verify", str(tmp_path / "nothing.db"))
    assert list(tmp_path.iterdir()) == []


TRIPS = "person,time,state\nanna,1,s5\nbert,1,s2\nanna,2,s6\nanna,5,s6\n"


@pytest.fixture
def scenario(tmp_path):
    content = paper_scenario.body(paper_scenario.TOML)
    made = MarkovModel(content["transition"])
    (tmp_path / "paper.toml").write_text("limit = 3\n" + content["scenario"])
    (tmp_path / "states.csv").write_text(content["states"])
    write_model(tmp_path / "model.npz", made, "given")
    (tmp_path / "trips.csv").write_text(TRIPS)
    return tmp_path


def release_file(folder, *arguments):
    given = [str(folder / "paper.toml"), str(folder / "trips.csv"), *arguments]
    found = CliRunner().invoke(release_command, given, standalone_mode=False)
    if found.exception is not None:
        raise found.exception
    return found.stdout


def test_a_release_into_a_store_is_said_again_by_the_next_run(scenario):
    url = str(scenario / "streams.db")
    first = release_file(scenario, "--store", url)
    assert len(first.splitlines()) == 5
    assert release_file(scenario, "--store", url) == first
    assert run("verify", url).output == "sound: 2 people, 4 answers\n"
    (scenario / "trips.csv").write_text("person,time,state\nanna,6,s5\n")
    with pytest.raises(BudgetError, match=r"trips.csv:2: epsilon must stay within the limit"):
        release_file(scenario, "--store", url)
    (scenario / "trips.csv").write_text("person,time,state\nanna,4,s5\n")
    with pytest.raises(DataError, match=r"trips.csv:2: time must come after"):
        release_file(scenario, "--store", url)
    assert run("verify", url).output == "sound: 2 people, 4 answers\n"


def test_a_run_is_refused_as_a_whole_before_anything_is_spent(scenario):
    url = str(scenario / "streams.db")
    (scenario / "trips.csv").write_text(TRIPS + "anna,200005,s6\n")
    with pytest.raises(DataError, match=r"trips.csv:6: time must be within"):
        release_file(scenario, "--store", url)
    assert run("verify", url).output == "sound: 0 people, 0 answers\n"


def test_a_store_goes_with_no_ledger(scenario):
    with pytest.raises(click.UsageError, match="--store must not go with --ledger"):
        release_file(scenario, "--store", "a", "--ledger", "b")

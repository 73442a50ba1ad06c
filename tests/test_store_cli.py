"""`dphmm store`: what is in a store, whether it is sound, and how people leave it."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from dphmm import MarkovModel
from dphmm.books import Store, find_key, list_keys, revoke_key
from dphmm.books.changing import open_book
from dphmm.books.schema import VERSION
from dphmm.cli.release import command as release_command
from dphmm.cli.serve import command as serve_command
from dphmm.cli.serve import write_first_key
from dphmm.cli.store import command
from dphmm.errors import ArgumentError, BudgetError, DataError, NotFoundError, StoreError
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


def test_an_anchor_that_is_empty_in_the_environment_is_none(scenario, monkeypatch):
    url = str(scenario / "streams.db")
    monkeypatch.setenv("DPHMM_ANCHOR", "")
    first = release_file(scenario, "--store", url)
    monkeypatch.delenv("DPHMM_ANCHOR")
    assert release_file(scenario, "--store", url) == first


def test_a_run_is_refused_as_a_whole_before_anything_is_spent(scenario):
    url = str(scenario / "streams.db")
    (scenario / "trips.csv").write_text(TRIPS + "anna,200005,s6\n")
    with pytest.raises(DataError, match=r"trips.csv:6: time must be within"):
        release_file(scenario, "--store", url)
    assert run("verify", url).output == "sound: 0 people, 0 answers\n"


def test_a_store_goes_with_no_ledger(scenario):
    with pytest.raises(click.UsageError, match="--store must not go with --ledger"):
        release_file(scenario, "--store", "a", "--ledger", "b")


# For operators


def test_a_lost_store_is_restored_recovered_and_its_budgets_are_lowered(path, tmp_path, scenario):
    """The drill of the docs: copy, lose, put back, refuse, recover."""
    anchor, copy = str(tmp_path / "anchor"), str(tmp_path / "copy.db")
    url = str(scenario / "live.db")
    release_file(scenario, "--store", url, "--anchor", anchor)
    assert run("backup", url, copy, "--anchor", anchor).output == f"{copy} is a copy\n"
    (scenario / "trips.csv").write_text("person,time,state\nbert,6,s5\n")
    release_file(scenario, "--store", url, "--anchor", anchor)
    with pytest.raises(StoreError, match="has an anchor and cannot be used without it"):
        release_file(scenario, "--store", url)
    for name in ("", "-wal", "-shm"):
        Path(url + name).unlink(missing_ok=True)
    back = run("restore", copy, url, "--anchor", anchor)
    assert (back.return_value, "was restored from a backup" in back.output) == (1, True)
    behind = run("verify", url, "--anchor", anchor)
    assert (behind.return_value, "anchor: the store" in behind.output) == (1, True)
    (scenario / "trips.csv").write_text("person,time,state\nbert,7,s5\n")
    with pytest.raises(StoreError, match="nothing is answered until: dphmm store recover"):
        release_file(scenario, "--store", url, "--anchor", anchor)
    done = run("recover", url, "--not-before", "7", "--anchor", anchor)
    assert done.output == "nothing before 7 is answered any more\n"
    assert run("budget", url, "--lower", "2", "--anchor", anchor).output == "2 budgets are lower\n"
    release_file(scenario, "--store", url, "--anchor", anchor)
    assert run("verify", url, "--anchor", anchor).return_value == 0
    (scenario / "trips.csv").write_text("person,time,state\nbert,8,s5\n")
    with pytest.raises(BudgetError):
        release_file(scenario, "--store", url, "--anchor", anchor)


def test_expire_erases_and_closes(path):
    with pytest.raises(click.UsageError, match="--people or --tombstones"):
        run("expire", path)
    done = run("expire", path, "--people", "3", "--tombstones", "3")
    assert done.output == "1 people are erased, 1 tombstones are closed\n"
    assert run("verify", path).output == "sound: 1 people, 3 answers\n"
    with pytest.raises(ArgumentError, match="people must be a whole number or a date"):
        run("expire", path, "--people", "yesterday")
    with pytest.raises(ArgumentError, match="one date and one number at most"):
        run("expire", path, "--people", "3", "--people", "4")


def test_budget_and_migrate_say_what_they_did(path):
    with pytest.raises(click.UsageError, match="one of --lower and --lower-by"):
        run("budget", path)
    assert run("budget", path, "--lower", "4", "--person", "anna").output == "1 budgets are lower\n"
    assert run("migrate", path).output == f"the store has version {VERSION}\n"


COMMANDS = [
    ("inspect",),
    ("verify",),
    ("export",),
    ("erase", "bert", "--yes"),
    ("key", "create", "clinic"),
    ("key", "list"),
    ("key", "revoke", "00"),
    ("migrate",),
    ("backup", "copy.db"),
    ("recover", "--not-before", "9"),
    ("budget", "--lower", "1"),
    ("expire", "--people", "9"),
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_refuses_a_wrong_secret(tmp_path, monkeypatch, words):
    """Finding 6: with another secret the erased would be strangers, with slots and budgets."""
    monkeypatch.chdir(tmp_path)
    path = str(tmp_path / "own.db")
    store = Store.open(path, secret=b"s" * 32)
    release(store, "anna", 1, 4)
    store.close()
    split = 2 if words[0] == "key" else 1
    given = (*words[:split], path, *words[split:])
    with pytest.raises(StoreError, match="names erased people by another secret"):
        run(*given)
    wrong = tmp_path / "wrong"
    wrong.touch(0o600)
    wrong.write_bytes(b"w" * 32)
    with pytest.raises(StoreError, match="names erased people by another secret"):
        run(*given, "--secret-file", str(wrong))
    monkeypatch.setenv("DPHMM_SECRET", "77" * 32)
    with pytest.raises(StoreError, match="names erased people by another secret"):
        run(*given)
    with pytest.raises(StoreError, match="names erased people by another secret"):
        release(open_book(path, secret=b"w" * 32), "anna", 2, 4)
    monkeypatch.setenv("DPHMM_SECRET", b"s".hex() * 32)
    assert run("verify", path).return_value == 0
    monkeypatch.setenv("DPHMM_SECRET", "not hexadecimal")
    with pytest.raises(DataError, match="DPHMM_SECRET must be 64 hexadecimal digits"):
        run("verify", path)


def test_an_address_may_come_from_the_environment_or_a_closed_file(path, tmp_path, monkeypatch):
    monkeypatch.setenv("STORE", path)
    assert run("verify", "env:STORE").return_value == 0
    place = tmp_path / "place"
    place.touch(0o600)
    place.write_text(path + "\n")
    assert run("verify", f"file:{place}").return_value == 0
    place.chmod(0o644)
    with pytest.raises(DataError, match="must be closed to others"):
        run("verify", f"file:{place}")
    with pytest.raises(ArgumentError, match="NOWHERE must be set"):
        run("verify", "env:NOWHERE")


@pytest.mark.parametrize(
    "url", ["postgresql://me:hush@host/name", "postgresql://host/name?user=me&password=hush"]
)
def test_no_password_is_an_argument(path, url):
    for words in (("verify", url), ("verify", path, "--anchor", url)):
        with pytest.raises(ArgumentError, match="the address must have no password") as refused:
            run(*words)
        assert "hush" not in str(refused.value)


def test_an_address_that_is_no_url_is_refused_without_its_words(path):
    with pytest.raises(ArgumentError, match="address must be a URL, got none") as fault:
        run("inspect", "postgresql://user:hunter2@[half/store")
    assert "hunter2" not in str(fault.value)


@pytest.mark.parametrize("word", ["rotate", "expire"])
@pytest.mark.parametrize("hours", ["-1", "8761", "99999999999999"])
def test_a_key_closes_within_a_year(path, word, hours):
    key = run("key", "list", path).output[:16]
    with pytest.raises(click.BadParameter, match="is not in the range 0<=x<=8760"):
        run("key", word, path, key or "0", "--hours", hours)


def test_what_is_exported_is_closed_to_others(path, tmp_path):
    out = tmp_path / "all.jsonl"
    run("export", path, "-o", str(out))
    assert out.stat().st_mode & 0o077 == 0


def test_the_first_key_is_kept_or_not_made_and_made_once(path, tmp_path, monkeypatch):
    store = Store.open(path)

    def fail(*_):
        raise OSError(28, "no room")

    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", fail)
        with pytest.raises(OSError, match="no room"):
            write_first_key(tmp_path / "key", store)
    assert (list_keys(store), (tmp_path / "key").exists()) == ([], False)
    write_first_key(tmp_path / "key", store)
    assert find_key(store, (tmp_path / "key").read_text().strip()) is not None
    assert (tmp_path / "key").stat().st_mode & 0o077 == 0
    with pytest.raises(DataError, match="init must be a new file"):
        write_first_key(tmp_path / "key", store)
    revoke_key(store, list_keys(store)[0].digest)
    store.close()
    monkeypatch.setattr("dphmm.service.server.leave", lambda _: None)
    monkeypatch.setattr("dphmm.service.server.serve", lambda *_, **__: None)
    found = CliRunner().invoke(
        serve_command, [path, "--init", str(tmp_path / "second")], standalone_mode=False
    )
    assert found.exception is None
    assert not (tmp_path / "second").exists()
    assert "the store has keys" in found.stderr

"""Watching a ledger: what was written whole is read, nothing is touched, numbers are the file's."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic")
pytest.importorskip("starlette")

from dphmm.books import Store
from dphmm.books.tailing import StoreTail, Tail
from dphmm.errors import ArgumentError, DataError, ServiceError, StoreError
from dphmm.noise.randomness import SecureRandomness
from dphmm.release.moment import Line
from dphmm.studio import live as live_module
from dphmm.studio import watching
from dphmm.studio.live import Live
from dphmm.studio.saving import open_file
from dphmm.studio.server import run_in_background
from dphmm.studio.watching import ServiceSource, watch
from tests.scenarios import paper_scenario

SECURE = SecureRandomness()
HEAD, END = b'{"format": "dphmm ledger 2"}\n', b'{"kind": "end"}\n'


def line(person: str, slot: int, law: str, epsilon: str = "1", answer: object = (4, 2)) -> bytes:
    """An answer as a ledger has it."""
    facts = {
        "kind": "answer", "person": person, "query": "state", "slot": slot, "law": law,
        "epsilon": epsilon, "constrained": epsilon, "answer": answer, "estimate": [1.0, 1.0],
        "statement": "", "spacing": "1",
    }  # fmt: skip
    return json.dumps(facts).encode() + b"\n"


@pytest.fixture
def watched(tmp_path: Path) -> tuple[Path, Path, str]:
    """A scenario, its ledger with three answers of two people, and the law."""
    town = tmp_path / "town.toml"
    paper_scenario(limit="4 per 10 steps").save(town)
    law = open_file(town).scenario.law
    ledger = tmp_path / "town.ledger.jsonl"
    said = [line("ann", 1, law), line("ann", 2, law, "2.5"), line("bob", 2, law)]
    silent = line("bob", 3, law, "0", ())
    ledger.write_bytes(HEAD + END + b"".join(said) + silent + END)
    return town, ledger, law


def look_again(live: Live) -> dict[str, Any]:
    """What a page sees that comes after a while."""
    live._looked -= live_module.OFTEN[live._source.kind]
    return live.describe()


# Reading


def test_only_what_was_written_whole_is_read_and_only_once(
    watched: tuple[Path, Path, str],
) -> None:
    _, ledger, law = watched
    tail = Tail(ledger)
    assert [(one.line.person, one.time) for one in tail.more()] == [
        ("ann", 1), ("ann", 2), ("bob", 2), ("bob", 3),
    ]  # fmt: skip
    with ledger.open("ab") as file:
        file.write(line("ann", 4, law))
    assert tail.more() == []
    with ledger.open("ab") as file:
        file.write(END)
    assert [one.time for one in tail.more()] == [4]
    assert tail.more() == []


def test_a_file_that_is_no_ledger_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text("{}\n")
    with pytest.raises(DataError, match="ledger must be one that this dphmm wrote"):
        Tail(other)
    with pytest.raises(DataError, match="ledger must be readable"):
        Tail(tmp_path / "none.jsonl")
    other.write_bytes(HEAD + b'{"kind": "answer"}\n' + END)
    with pytest.raises(DataError, match="ledger must hold records"):
        Tail(other).more()


def test_nothing_is_written_or_locked(watched: tuple[Path, Path, str]) -> None:
    from dphmm.books import Journal

    _, ledger, _ = watched
    before = ledger.read_bytes()
    tail = Tail(ledger)
    with Journal(ledger):
        tail.more()
    assert ledger.read_bytes() == before


# Numbers


def test_spending_and_limits_are_those_of_the_ledger(watched: tuple[Path, Path, str]) -> None:
    town, ledger, law = watched
    opened = open_file(town)
    live = Live(watch(str(ledger), opened.scenario, town), opened.scenario, opened.drawing)
    found = live.describe()
    assert (found["answers"], found["n_people"], found["near"]) == (3, 2, 1)
    ann, bob = found["people"]
    assert (ann["person"], ann["spent"], ann["share"]) == ("ann", 3.5, 3.5 / 4)
    assert (bob["person"], bob["answers"], bob["share"]) == ("bob", 1, 0.25)
    assert sum(bar["spent"] for bar in found["spending"]) == 4.5
    assert found["drawn"][0]["place"] == [4.0, 2.0]
    # What left the window counts no more, and what followed another law is not on the map.
    with ledger.open("ab") as file:
        file.write(line("bob", 12, law) + line("eve", 12, "other") + END)
    found = look_again(live)
    shares = {one["person"]: one["share"] for one in found["people"]}
    assert shares == {"ann": 0.0, "bob": 0.25, "eve": 0.25}
    assert found["other_laws"] == 1
    assert len(found["drawn"]) == 4


def test_nothing_but_what_left_is_told(watched: tuple[Path, Path, str]) -> None:
    town, ledger, _ = watched
    opened = open_file(town)
    source = watch(str(ledger), opened.scenario, town)
    found = Live(source, opened.scenario, opened.drawing).describe()
    assert set(found["drawn"][0]) == {"person", "time", "place"}
    assert set(found["people"][0]) == {"person", "answers", "spent", "share", "limit", "last"}


def test_a_ledger_needs_its_scenario(watched: tuple[Path, Path, str]) -> None:
    with (
        pytest.raises(ArgumentError, match="watch must come with the scenario"),
        run_in_background(watch=watched[1]),
    ):
        pass


# A store


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[tuple[Path, Path, Store]]:
    """A scenario, and a store that releases it."""
    town = tmp_path / "town.toml"
    paper_scenario(limit="10 in all").save(town)
    with closing(Store.open(str(tmp_path / "store.db"))) as store:
        yield town, tmp_path / "store.db", store


def say(town: Path, store: Store, person: str, times: Iterable[int], client: str = "") -> None:
    stream = open_file(town).scenario.stream(
        person, book=store, client=client, time=min(times) - 1, randomness=SECURE
    )
    for _ in times:
        stream.release(2)


def test_a_store_is_watched_without_touching_it(stored: tuple[Path, Path, Store]) -> None:
    town, path, store = stored
    store.begin("ann", client="", budget="4 per 10 steps")
    say(town, store, "ann", (1, 2, 3))
    say(town, store, "bob", (1,), client="red")
    path.chmod(0o640)
    opened = open_file(town)
    live = Live(watch(str(path), opened.scenario, town), opened.scenario, opened.drawing)
    found = live.describe()
    assert path.stat().st_mode & 0o777 == 0o640, "rights are the owner's business"
    assert (found["kind"], found["file"], found["answers"]) == ("store", "store.db", 4)
    assert [(one["person"], one["share"]) for one in found["people"]] == [
        ("ann", 0.75),  # of her own 4, not of the scenario's 10
        ("red/bob", 0.1),
    ]
    assert found["people"][0]["limit"] == "4 in any 10 steps"
    assert (found["limited"], len(found["drawn"])) == (1, 4)
    stream = store.answers(Line("red", "bob", opened.scenario.terms.query))
    (place,) = [one["place"] for one in found["drawn"] if one["person"] == "red/bob"]
    assert place == stream[0].release().answer.tolist()
    say(town, store, "ann", (4,))
    assert look_again(live)["people"][0]["share"] == 1.0
    # Nobody who was erased stays on the page, and what was spent on them is not forgotten.
    store.erase("ann", client="")
    found = look_again(live)
    assert [one["person"] for one in found["people"]] == ["red/bob"]
    assert {one["person"] for one in found["drawn"]} == {"red/bob"}
    assert sum(bar["spent"] for bar in found["spending"]) == 1.0
    say(town, store, "ann", (14,))
    found = look_again(live)
    ann = found["people"][0]
    assert (ann["person"], ann["answers"], ann["spent"], ann["share"]) == ("ann", 1, 5.0, 0.5)
    assert found["returned"] == 1


def test_a_store_cannot_be_written_through_a_tail(stored: tuple[Path, Path, Store]) -> None:
    tail = StoreTail(str(stored[1]))
    with (
        pytest.raises(StoreError, match="cannot be written"),
        tail._database.transaction() as transaction,
    ):
        transaction.rows("DELETE FROM people")
    tail.close()


def test_many_answers_are_read_bit_by_bit(
    stored: tuple[Path, Path, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    town, path, store = stored
    for person in ("ann", "bob", "cleo"):
        say(town, store, person, (1, 2))
    monkeypatch.setattr(watching, "MOST_ROWS", 2)
    opened = open_file(town)
    live = Live(watch(str(path), opened.scenario, town), opened.scenario, opened.drawing)
    assert [(live.describe()["answers"], live.describe()["unread"])] == [(2, 2)]
    assert [look_again(live)["unread"] for _ in range(2)] == [1, 0]
    assert live.describe()["answers"] == 6


def test_what_is_no_store_is_not_made_one(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="must be a file, got none of that name"):
        StoreTail(str(tmp_path / "none.db"))
    assert list(tmp_path.iterdir()) == []
    sqlite3.connect(tmp_path / "other.db").executescript("CREATE TABLE facts (name, value)")
    with pytest.raises(StoreError, match="has no version"):
        StoreTail(str(tmp_path / "other.db"))


@pytest.mark.postgres
def test_a_store_on_postgresql_is_watched(
    watched: tuple[Path, Path, str], postgres_server: Any
) -> None:
    town, address = watched[0], postgres_server.new_database()
    with closing(Store.open(address)) as store:
        say(town, store, "ann", (1, 2))
        opened = open_file(town)
        source = watch(address, opened.scenario, town)
        with closing(Live(source, opened.scenario, opened.drawing)) as live:
            found = live.describe()
    assert (found["answers"], found["people"][0]["share"]) == (2, 0.5)


# A service


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, Any]]:
    """A scenario at a service, with somebody of each of two clients."""
    from tests.service_worlds import World

    town = tmp_path / "town.toml"
    paper_scenario().save(town)
    world = World(tmp_path)
    try:
        for client in ("red", "blue"):
            asks = world.client(client)
            held = asks.add_scenario(town)
            asks.begin(held, f"{client} ann", budget="4 per 10 steps")
            for time in (1, 2, 3):
                asks.release(held, f"{client} ann", time, 2)
        yield town, world
    finally:
        world.close()


def test_a_service_shows_a_key_its_own_people(served: tuple[Path, Any]) -> None:
    town, world = served
    opened = open_file(town)
    source = ServiceSource(world.client("red", "read"), opened.scenario, town)
    live = Live(source, opened.scenario, opened.drawing)
    found = live.describe()
    assert "blue" not in json.dumps(found)
    assert (found["kind"], found["answers"], found["n_people"]) == ("service", 3, 1)
    ann = found["people"][0]
    assert (ann["person"], ann["spent"], ann["share"]) == ("red ann", 3.0, 0.75)
    red = world.client("red")
    answers = [list(one.answer) for one in red.releases(red.add_scenario(town), "red ann")]
    assert [one["place"] for one in found["drawn"]] == answers
    red.release(red.add_scenario(town), "red ann", 4, 4)
    assert look_again(live)["people"][0]["share"] == 1.0
    assert len(live.describe()["drawn"]) == 4
    red.erase("red ann")
    assert look_again(live)["people"] == look_again(live)["drawn"] == []


@pytest.mark.parametrize("lost", range(2, 8))  # the first asks for scenarios
def test_a_service_that_goes_away_while_it_is_read_loses_no_answer(
    served: tuple[Path, Any], lost: int
) -> None:
    import httpx

    from dphmm import Client
    from tests.crash.http import Direct

    class Broken(Direct):
        asked = 0

        def handle_request(self, request: httpx.Request) -> httpx.Response:
            self.asked += 1
            if self.asked == lost:
                raise httpx.ConnectError("gone")
            return super().handle_request(request)

    town, world = served
    red = world.client("red")
    held = red.add_scenario(town)
    red.begin(held, "red bob")
    for time in (1, 2):
        red.release(held, "red bob", time, 2)
    opened = open_file(town)
    key, carrier = world.keys["red", "read"], Broken(world.app)
    client = Client("http://127.0.0.1", key=key, transport=carrier, retries=0)
    live = Live(ServiceSource(client, opened.scenario, town), opened.scenario, opened.drawing)
    with pytest.raises(ServiceError, match=r"^http://127\.0\.0\.1 does not answer$"):
        look_again(live)
    found = look_again(live)
    assert carrier.asked > lost
    assert (found["answers"], found["n_people"], len(found["drawn"])) == (5, 2, 5)
    assert sum(bar["spent"] for bar in found["spending"]) == 5.0


def test_a_service_needs_a_key_that_reads_and_the_scenario(served: tuple[Path, Any]) -> None:
    town, world = served
    opened = open_file(town)
    with pytest.raises(ServiceError, match="the key must have the scope 'read'"):
        ServiceSource(world.client("red", "release"), opened.scenario, town)
    paper_scenario(epsilon="2").save(town)
    with pytest.raises(ArgumentError, match=r"watch must be a service that has .* town\.toml"):
        ServiceSource(world.client("red", "read"), opened.scenario, town)


def test_a_key_without_a_service_is_refused(watched: tuple[Path, Path, str]) -> None:
    town, ledger, _ = watched
    scenario = open_file(town).scenario
    with pytest.raises(ArgumentError, match="key_file must come with the address of a service"):
        watch(str(ledger), scenario, town, "some.key")
    with (
        pytest.raises(ArgumentError, match="key_file must come with a service to watch"),
        run_in_background(town, key_file="some.key"),
    ):
        pass


def test_two_pages_look_once(watched: tuple[Path, Path, str]) -> None:
    town, ledger, law = watched
    opened = open_file(town)
    live = Live(watch(str(ledger), opened.scenario, town), opened.scenario, opened.drawing)
    live.describe()
    with ledger.open("ab") as file:
        file.write(line("bob", 5, law) + END)
    assert live.describe()["answers"] == 3
    assert look_again(live)["answers"] == 4


def test_other_questions_count_in_all_and_not_in_windows(
    watched: tuple[Path, Path, str],
) -> None:
    town, ledger, law = watched
    other = line("ann", 900, law).replace(b'"state"', b'"heart"')
    with ledger.open("ab") as file:
        file.write(other + END)
    opened = open_file(town)
    source = watch(str(ledger), opened.scenario, town)
    found = Live(source, opened.scenario, opened.drawing).describe()
    assert (found["other_questions"], found["now"]) == (1, 2)
    assert (found["people"][0]["spent"], found["people"][0]["share"]) == (4.5, 3.5 / 4)


# The page


@pytest.mark.browser
def test_answers_appear_on_the_page_as_they_come(
    browser: Any, watched: tuple[Path, Path, str]
) -> None:
    from playwright.sync_api import expect

    from tests.studio_page import Studio

    town, ledger, law = watched
    with run_in_background(town, watch=ledger) as address:
        studio = Studio(browser, address).open()
        page = studio.page
        studio.tab("live")
        expect(page.locator("#live-tell")).to_have_text(re.compile("3 answers about 2 people"))
        expect(page.locator("#live-tell strong")).to_have_text(re.compile("1 person spent 80%"))
        assert page.locator("#live-people tbody tr").first.inner_text() == "ann\t2\t3.5\t88%"
        assert page.locator(".track-answers circle").count() == 3
        assert studio.axe() == []
        with ledger.open("ab") as file:
            file.write(line("bob", 5, law) + END)
        expect(page.locator("#live-tell")).to_have_text(re.compile("4 answers about 2 people"))
        expect(page.locator(".track-answers circle")).to_have_count(4)
        assert studio.problems == []
        studio.context.close()


@pytest.mark.browser
def test_without_a_ledger_there_is_no_such_tab(studio: Any) -> None:
    assert studio.page.locator("#tab-live").is_hidden()

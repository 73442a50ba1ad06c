"""Stored answers are metres from a map's centre: a map with another one does not print them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from dphmm import (
    ArgumentError,
    DataError,
    Journal,
    KeyedRandomness,
    MarkovModel,
    MemoryBook,
    Policy,
    Scenario,
    Standing,
    States,
    Store,
)
from dphmm.books.changing import adopt_terms
from dphmm.release import engine
from dphmm.release.admission import Verdict
from dphmm.release.engine import Ask
from dphmm.spark.folder import FolderBook, Person

KEY = KeyedRandomness(bytes(range(32)))
OTHER = "scenario must have the map of the person's answers, got one with another centre"
TRIPS = "person,time,state\nann,1,a\n"


def around(folder: Path, latitude: float, epsilon: int = 1) -> Scenario:
    file = folder / f"{latitude}.csv"
    places = [("a", latitude, 11.5), ("b", latitude + 0.01, 11.5), ("c", latitude, 11.52)]
    lines = [f"{label},{north},{east}\n" for label, north, east in places]
    file.write_text("label,latitude,longitude\n" + "".join(lines))
    model = MarkovModel(np.full((3, 3), 1 / 3))
    return Scenario(States.read(file), model, Policy(complete=True), epsilon=epsilon)


def asked(scenario: Scenario, *times: int) -> Ask:
    states = np.zeros(len(times), dtype=int)
    return Ask(scenario.terms, ["ann"] * len(times), np.array(times), states)


@pytest.mark.parametrize("kind", ["memory", "journal", "store"])
def test_a_book_refuses_a_map_with_another_centre(tmp_path: Path, kind: str) -> None:
    here, there = around(tmp_path, 48), around(tmp_path, 52)
    trips = tmp_path / "trips.csv"
    trips.write_text(TRIPS)
    path, memory = tmp_path / "book", MemoryBook()

    def opened() -> MemoryBook | Store:
        if kind == "memory":
            return memory
        return Journal(path) if kind == "journal" else Store.open(str(path))

    book = opened()
    first = here.release(trips, book=book, randomness=KEY)
    if kind != "memory":
        book.close()  # type: ignore[union-attr]
        book = opened()
    assert here.release(trips, book=book, randomness=KEY).equals(first)
    with pytest.raises(DataError, match=OTHER):
        there.release(trips, book=book, randomness=KEY)
    with pytest.raises(ArgumentError, match=OTHER):
        there.stream("ann", book=book, randomness=KEY)
    other = there.replace(step=2)
    assert other.law != here.law
    with pytest.raises(ArgumentError, match=OTHER):
        list(adopt_terms(book, other.terms, same_states=True))
    if kind != "memory":
        book.close()  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", ["memory", "journal", "store"])
def test_whoever_cannot_go_on_holds_nobody_else_back(tmp_path: Path, kind: str) -> None:
    here, there = around(tmp_path, 48), around(tmp_path, 52)
    made = {"memory": MemoryBook, "journal": lambda: Journal(tmp_path / "book"),
            "store": lambda: Store.open(tmp_path / "book")}  # fmt: skip
    book = made[kind]()
    for scenario, people in ((there, ["ann", "eve"]), (here, ["ben", "zoe"])):
        for person in people:
            scenario.stream(person, book=book, time=0).release(0)
    other = here.replace(step=2)
    moved = adopt_terms(book, other.terms, same_states=True)
    assert [next(moved).person, next(moved).person] == ["ben", "zoe"]
    with pytest.raises(ArgumentError, match=rf"{OTHER}.*2 people stay.*'ann'; 2 go on"):
        next(moved)
    assert other.stream("zoe", book=book).release(0).time == 2
    for person in ("ann", "eve"):
        assert there.stream(person, book=book).release(0).time == 2  # as they were
    if kind != "memory":
        book.close()


def test_the_folder_of_a_spark_run_refuses_it_too(tmp_path: Path) -> None:
    here, there = around(tmp_path, 48), around(tmp_path, 52)
    book = FolderBook()
    engine.release(book, [asked(here, 1)], KEY)
    carried = FolderBook(KEY.fingerprint)
    carried.people["ann"] = Person(book.people["ann"].to_bytes())
    (answered,) = engine.release(carried, [asked(there, 1, 2)], KEY)
    assert answered.verdicts.tolist() == [Verdict.ELSEWHERE] * 2
    assert OTHER in str(answered.faults[0])


def test_a_standing_knows_its_map_and_an_older_one_any(tmp_path: Path) -> None:
    here, there = around(tmp_path, 48), around(tmp_path, 52)
    began = here.terms.begin("", "ann", 1)
    read = Standing.from_bytes(began.to_bytes())
    assert read.plane == began.plane == here.terms.plane != there.terms.plane
    assert here.replace(epsilon=2).terms.plane == here.terms.plane
    plain = Scenario(States.on_plane([[0, 0], [3, 0]]), MarkovModel(np.full((2, 2), 0.5)),
                     Policy(complete=True), epsilon=1)  # fmt: skip
    assert plain.terms.plane == ""
    stream = plain.terms.stream(plain.terms.begin("", "ann", 1))
    stream.release(0)
    assert stream.standing.plane == ""
    assert Standing(began.line, began.law, 0, 0, began.belief).plane is None


def test_a_service_lists_answers_on_their_own_map_only(tmp_path: Path) -> None:
    from dphmm.books.scenarios import add_scenario
    from dphmm.scenario.packing import pack
    from dphmm.service.handlers import Handlers
    from dphmm.service.settings import ServiceSettings

    digests = []
    with closing(Store.open(str(tmp_path / "store.db"))) as store:
        for latitude in (48, 52):
            scenario = around(tmp_path, latitude)
            states = (tmp_path / f"{latitude}.csv").read_text()
            toml = "epsilon = 1\n[policy]\ncomplete = true\n"
            digest, text = pack(toml, states, [[1 / 3] * 3] * 3, None)
            add_scenario(store, digest, text, client="red")
            digests.append(digest)
        handlers = Handlers(store, ServiceSettings(), long=True)
        handlers.begin("red", digests[0], "ann", _NoBudget(), who="red")
        scenario = handlers._find("red", digests[0])
        ask = Ask(scenario.terms, ["ann"], np.array([1]), np.array([0]), client="red")
        engine.release(store, [ask])
        assert len(handlers.releases("red", digests[0], "ann", None)["releases"]) == 1
        with pytest.raises(ArgumentError, match=OTHER):
            handlers.releases("red", digests[1], "ann", None)


class _NoBudget:
    budget = None

"""The same trips of random worlds under one key by every route, equal moment by moment."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

from dphmm import Batch, Journal, KeyedRandomness, MemoryBook, Scenario, Store
from dphmm.books import find_problems
from dphmm.release import engine
from dphmm.release.moment import Line
from dphmm.scenario import Row
from dphmm.scenario.releasing import ask_rows
from tests.scenarios import run
from tests.service_worlds import FAST, World
from tests.spark_worlds import KEY, KEYED, as_batch, everything, write_key
from tests.test_promise import kinds, random_world
from tests.test_promise_routes import scenario_of

CLIENT = "red"
PEOPLE = 18
"""From 16 on the engine draws by a batch."""
SHORT, FULL = 6, 60
"""How many worlds, and in the long form."""
ON_SPARK = 4
"""How many of them go through Spark itself, in the long form."""

Said: TypeAlias = dict[tuple[str, int], tuple[int, ...]]
"""The answer on the lattice of each moment at which something was said."""


def random_trips(scenario: Scenario, seed: int) -> list[Row]:
    """Rows with gaps, also of people who do what the model calls impossible."""
    rng, rows = np.random.default_rng([seed, 2]), []
    for number in range(PEOPLE):
        # A model that changes with time has one clock for all who are in one batch.
        first = 1 if scenario.model.varies else int(rng.integers(1, 4))
        later = first + 1 + np.flatnonzero(rng.random(5) < 0.5)
        rows += [
            Row(0, f"p{seed}-{number}", str(slot), slot, int(rng.integers(len(scenario.states))))
            for slot in (first, *later.tolist())
        ]
    return rows


def people_of(rows: list[Row]) -> dict[str, dict[int, int]]:
    """Everybody's slots and states."""
    found: dict[str, dict[int, int]] = {}
    for row in rows:
        found.setdefault(row.person, {})[row.slot] = row.state
    return found


def by_stream(scenario: Scenario, rows: list[Row], folder: Path) -> Said:
    said: Said = {}
    for person, walk in people_of(rows).items():
        stream = scenario.stream(person, time=min(walk) - 1, client=CLIENT, randomness=KEYED)
        for slot, state in walk.items():
            stream.skip(slot - stream.time - 1)
            release = stream.release(state)
            if not release.silent:
                said[person, slot] = tuple(release.lattice.tolist())
    return said


def by_batch(scenario: Scenario, rows: list[Row], folder: Path) -> Said:
    said: Said = {}
    people = people_of(rows)
    terms, names = scenario.terms, list(people)
    batch = Batch(
        terms.model, terms.plan, epsilon=terms.epsilon, people=names, start=terms.start,
        time=[min(walk) - 1 for walk in people.values()], client=CLIENT,
        schedule=terms.schedule, law=terms.law, randomness=KEYED,
    )  # fmt: skip
    for _ in range(max(row.slot for row in rows)):
        slots = (batch.times + 1).tolist()
        given = [people[name].get(slot) for name, slot in zip(names, slots, strict=True)]
        answer = batch.release(
            np.array([0 if state is None else state for state in given]),
            active=np.array([state is not None for state in given]),
        )
        for number, slot, lattice in zip(
            answer.people.tolist(), answer.times.tolist(), answer.lattice.tolist(), strict=True
        ):
            said[names[number], slot] = tuple(lattice)
    return said


def said_in(book: Any, scenario: Scenario, rows: list[Row]) -> Said:
    """What a book holds."""
    return {
        (person, record.time): record.lattice
        for person in people_of(rows)
        for record in book.answers(Line(CLIENT, person, scenario.terms.query))
        if record.lattice
    }


def by_engine(book: Any, scenario: Scenario, rows: list[Row]) -> Said:
    """Half of everybody's rows after the other, and all of them once more."""
    half = max(row.slot for row in rows) // 2
    for some in ([r for r in rows if r.slot <= half], [r for r in rows if r.slot > half], rows):
        (answered,) = engine.release(book, [ask_rows(scenario, some, CLIENT)], KEYED)
        assert not answered.faults
    return said_in(book, scenario, rows)


def by_memory(scenario: Scenario, rows: list[Row], folder: Path) -> Said:
    return by_engine(MemoryBook(), scenario, rows)


def by_journal(scenario: Scenario, rows: list[Row], folder: Path) -> Said:
    with Journal(folder / "journal") as book:
        return by_engine(book, scenario, rows)


def by_store(scenario: Scenario, rows: list[Row], folder: Path) -> Said:
    with closing(Store.open(folder / "own.db")) as book:
        return by_engine(book, scenario, rows)


def as_text(scenario: Scenario, rows: list[Row]) -> str:
    """Trips as a table with commas."""
    lines = [f"{row.person},{row.slot},{scenario.labels[row.state]}" for row in rows]
    return "\n".join(["person,time,state", *lines]) + "\n"


def by_command(scenario: Scenario, rows: list[Row], folder: Path) -> Said:
    (folder / "trips.csv").write_text(as_text(scenario, rows))
    scenario.save(folder / "town.toml")
    key = write_key(folder / "noise.key")
    ran = run("release", folder / "town.toml", folder / "trips.csv", "-o", folder / "out.csv",
              "--ledger", folder / "ledger", "--client", CLIENT, "--key-file", key)  # fmt: skip
    assert ran.exit_code == 0, ran.stderr
    with Journal(folder / "ledger") as book:
        return said_in(book, scenario, rows)


def by_pipe(scenario: Scenario, rows: list[Row], folder: Path) -> Said:
    """Rows as they come, everybody's in order of time."""
    scenario.save(folder / "piped.toml")
    key = write_key(folder / "pipe.key")
    ran = run("release", folder / "piped.toml", "--ledger", folder / "piped", "--client", CLIENT,
              "--key-file", key, stdin=as_text(scenario, rows))  # fmt: skip
    assert ran.exit_code == 0, ran.stderr
    with Journal(folder / "piped") as book:
        return said_in(book, scenario, rows)


def by_waiting_pipe(scenario: Scenario, rows: list[Row], folder: Path) -> Said:
    """The same into a store, where everybody's row of a time comes before the next, and waits."""
    scenario.save(folder / "waiting.toml")
    key = write_key(folder / "waiting.key")
    ordered = as_text(scenario, sorted(rows, key=lambda row: row.slot))
    ran = run("release", folder / "waiting.toml", "-", "--store", folder / "waiting.db",
              "--client", CLIENT, "--key-file", key, "--lag", 2, stdin=ordered)  # fmt: skip
    assert ran.exit_code == 0, ran.stderr
    with closing(Store.open(folder / "waiting.db")) as book:
        return said_in(book, scenario, rows)


def by_http(service: World, scenario: Scenario, rows: list[Row], folder: Path) -> Said:
    """Some people row by row and twice, the others as a table."""
    with service.client(CLIENT) as client:
        town = client.add_scenario(scenario)
        people = list(people_of(rows))
        for person in people:
            client.begin(town, person)
        alone = set(people[::6])
        for row in rows:
            if row.person in alone:
                first = client.release(town, row.person, row.slot, scenario.labels[row.state])
                again = client.release(town, row.person, row.slot, scenario.labels[0])
                assert first.lattice == again.lattice
        many = [
            {"person": row.person, "time": row.slot, "state": scenario.labels[row.state]}
            for row in rows
            if row.person not in alone
        ]
        client.release_many(town, many)
    return said_in(service.store, scenario, rows)


def by_partition(scenario: Scenario, rows: list[Row], folder: Path) -> Said:
    """What one of Spark's workers does with its rows."""
    pytest.importorskip("pyarrow")
    from dphmm.spark.partition import Partition

    done = Partition(scenario, KEYED, client=CLIENT).answer(
        [as_batch(sorted(rows, key=lambda row: (row.person, row.slot)))]
    )
    found = [row for batch in done for row in batch.to_pylist() if row["table"] == "answers"]
    return read_ledger(found)


def read_ledger(found: list[Any]) -> Said:
    said = {(row["person"], row["slot"]): tuple(json.loads(row["lattice"])) for row in found}
    return {moment: lattice for moment, lattice in said.items() if lattice}


ROUTES: dict[str, Callable[[Scenario, list[Row], Path], Said]] = {
    "stream": by_stream, "batch": by_batch, "memory": by_memory, "journal": by_journal,
    "store": by_store, "command": by_command, "pipe": by_pipe, "waiting pipe": by_waiting_pipe,
    "partition": by_partition,
}  # fmt: skip


def check_world(seed: int, folder: Path, service: World, spark: Any = None) -> Counter[str]:
    """The kinds of world met, and how many moments were said by how many routes."""
    folder.mkdir()
    world = random_world(seed)
    scenario_of(world).save(folder / "world.toml")
    scenario = Scenario.load(folder / "world.toml")
    rows = random_trips(scenario, seed)
    expected = by_stream(scenario, rows, folder)
    met = Counter(kinds(world))
    routes = {**ROUTES, "http": partial(by_http, service)}
    if scenario.plan.delta:
        del routes["batch"]  # which has none
    if spark is not None:
        routes["spark"] = partial(by_spark, spark)
    for name, route in routes.items():
        said = route(scenario, rows, folder)
        assert said == expected, f"world {seed} by {name}"
        met[name] += len(said)
    return met


def by_spark(spark: Any, scenario: Scenario, rows: list[Row], folder: Path) -> Said:
    from dphmm.spark import bulk

    for part in range(3):
        table = as_batch(rows[part::3], labels=scenario.labels)
        everything.write(table, folder / "trips" / f"{part}.parquet")
    key = write_key(folder / "spark.key")
    bulk.release(spark, scenario, str(folder / "trips"), str(folder / "spark"), key_file=key,
                 client=CLIENT, partitions=2)  # fmt: skip
    return read_ledger(bulk.ledger(spark, scenario, str(folder / "spark")).collect())


@pytest.fixture
def service(tmp_path: Path) -> Iterator[World]:
    """A service in this process, under the key of all routes."""
    patient = replace(FAST, long_seconds=300.0)  # a scenario is prepared where others work, too
    world = World(tmp_path, patient, KeyedRandomness(KEY))
    yield world
    assert find_problems(world.store) == []
    world.close()


@pytest.mark.filterwarnings("ignore::dphmm.errors.CollapsedAnswersWarning")
def test_random_trips_are_answered_alike_by_every_route(tmp_path: Path, service: World) -> None:
    met: Counter[str] = Counter()
    for seed in range(SHORT):
        met += check_world(seed, tmp_path / str(seed), service)
    assert min(met[name] for name in (*ROUTES, "http")) > 100, met


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dphmm.errors.CollapsedAnswersWarning")
def test_random_trips_are_answered_alike_by_every_route_in_many_worlds(
    tmp_path: Path, service: World
) -> None:
    met: Counter[str] = Counter()
    for seed in range(SHORT, FULL):
        met += check_world(seed, tmp_path / str(seed), service)
    assert {"facts", "learned", "delta", "memory", "staircase"} <= set(met), met


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from dphmm.spark.sessions import session

    made = session("local[1]")
    made.sparkContext.setLogLevel("OFF")
    yield made
    made.stop()


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning",
    "ignore::dphmm.errors.CollapsedAnswersWarning",
)  # fmt: skip
def test_random_trips_are_answered_alike_by_spark_itself(
    spark: Any, tmp_path: Path, service: World
) -> None:
    met: Counter[str] = Counter()
    for seed in range(ON_SPARK):
        met += check_world(seed, tmp_path / str(seed), service, spark)
    assert met["spark"] == met["stream"] > 100

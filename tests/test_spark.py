"""Spark: the local engine's answers, ledgers and models, and nothing secret left behind."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dphmm import ArgumentError, Batch, BudgetError, DataError, Limit, Schedule
from dphmm.chain.calendar import Calendar
from dphmm.chain.ground import Ground
from dphmm.errors import MissingExtraError
from dphmm.release.standing import Standing
from dphmm.scenario import Clock, Row, Scenario, read_model
from dphmm.scenario.counting import Counted, Counting
from dphmm.scenario.learning import (
    Moves,
    learn_public,
    learn_walks,
    support_from_edges,
)
from dphmm.scenario.private import Levels
from dphmm.spark import bulk, sessions, tables
from dphmm.spark import session as new_session
from tests import scenarios
from tests.spark_worlds import (
    KEY,
    KEYED,
    as_batch,
    city,
    everything,
    local_run,
    records_in,
    same_answers,
    walks,
    write_key,
)

spark_only = pytest.mark.spark

# PySpark leaves sockets to the garbage collector.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)

# Beliefs of a batch and of a stream are sums of the same numbers in another order.
CLOSE = 1e-9


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("spark")


@pytest.fixture(scope="module")
def key_file(folder: Path) -> str:
    return write_key(folder / "key")


@pytest.fixture(scope="module")
def spark(folder: Path) -> Iterator[Any]:
    options = {
        "spark.local.dir": str(folder / "local"),
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{folder / 'events'}",
        # So that a search sees what is there.
        "spark.shuffle.compress": "false",
        "spark.eventLog.compress": "false",
    }
    (folder / "events").mkdir()
    made = new_session("local[2]", options=options)
    made.sparkContext.setLogLevel("OFF")
    yield made
    made.stop()


# Paper


@spark_only
def test_the_running_example_is_released_alike(
    spark: Any, folder: Path, key_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    toml = scenarios.written(folder, epsilon=Fraction(1, 2))
    trips = folder / "paper.csv"
    text = scenarios.trips(("ann", 1, 2), ("bob", 4, 3), ("ann", 2, 5), ("bob", 7, 4), ("cy", 1, 3))
    trips.write_text(text)
    local = folder / "released.csv"
    arguments = ("release", toml, trips, "--key-file", key_file)
    assert scenarios.run(*arguments, "-o", local).exit_code == 0

    # The command stops its session, which the other tests still need.
    monkeypatch.setattr(spark, "stop", lambda: None, raising=False)
    monkeypatch.setattr(sessions, "session", lambda master: spark)
    monkeypatch.setattr("dphmm.spark.session", lambda master: spark)
    out = folder / "paper out"
    result = scenarios.run(*arguments, "-o", out, "--engine", "spark")
    assert (result.exit_code, result.output) == (0, f"{out}: 5 answers for 3 people\n")
    scenario = Scenario.load(toml)
    said = bulk.releases(spark, scenario, str(out)).collect()
    with local.open() as lines:
        expected = {(row["person"], row["time"]): row for row in csv.DictReader(lines)}
    assert len(said) == len(expected)
    for record in said:
        row = expected[record["person"], record["time"]]
        assert row.keys() == record.asDict().keys()
        assert [float(row[c]) for c in ("x", "y")] == [record["x"], record["y"]]
        assert row["epsilon"] == record["epsilon"]
        for column in ("estimate_x", "estimate_y"):
            assert float(row[column]) == pytest.approx(record[column], rel=CLOSE)
    again = scenarios.run(*arguments, "-o", out, "--engine", "spark")
    assert again.exit_code == 2
    assert scenarios.is_one_line(again.output)
    model = folder / "learned.npz"
    learned = scenarios.run(
        "learn", trips, "--states", folder / "states.csv", "-o", model,
        "--engine", "spark", "--smoothing", "1",
    )  # fmt: skip
    assert learned.exit_code == 0, learned.output
    beside = folder / "local.npz"
    scenarios.run(
        "learn", trips, "--states", folder / "states.csv", "-o", beside, "--smoothing", "1"
    )
    one, other = (read_model(path).model.at(1).transition for path in (model, beside))
    np.testing.assert_array_equal(one.toarray(), other.toarray())


# Oracle


@spark_only
def test_a_later_run_goes_on_where_the_earlier_one_stopped(
    spark: Any, folder: Path, key_file: str
) -> None:
    scenario = city(5, when=Schedule(every=3, phase=1, apart=5))
    rows = walks(25, people=24, longest=20, seed=3)
    cut = 30
    shuffled = random.Random(1).sample(rows, len(rows))
    days = ([r for r in shuffled if r.slot < cut], [r for r in shuffled if r.slot >= cut])
    for day, some in zip(("monday", "tuesday"), days, strict=True):
        for part in range(3):
            table = as_batch(some[part::3], labels=scenario.labels)
            everything.write(table, folder / day / f"{part}.parquet")
    first = bulk.release(
        spark, scenario, str(folder / "monday"), str(folder / "one"), key_file=key_file,
        partitions=3,
    )  # fmt: skip
    second = bulk.release(
        spark, scenario, str(folder / "tuesday"), str(folder / "two"), key_file=key_file,
        previous=str(folder / "one"), partitions=2,
    )  # fmt: skip
    assert second.people == 24, "those who did not move are still there"
    found = [
        row for out in ("one", "two")
        for row in bulk.ledger(spark, scenario, str(folder / out)).collect()
    ]  # fmt: skip
    with local_run(scenario, rows) as journal:
        assert same_answers(scenario, found, journal)
        said = [record for record in records_in(journal).values() if not record.silent]
        assert first.answers + second.answers == len(said) < len(rows)
        for row in bulk.state(spark, scenario, str(folder / "two")).collect():
            spent = sum(record.epsilon for record in journal.records("", row["person"]))
            assert Fraction(row["spent"]) == spent == Standing.from_bytes(row["standing"]).spent
    third = bulk.release(
        spark, scenario, str(folder / "monday"), str(folder / "three"), key_file=key_file,
        previous=str(folder / "two"), partitions=2,
    )  # fmt: skip
    assert third.answers == 0
    assert third.late + third.repeated == len(days[0])
    other = folder / "other key"
    other.write_bytes(bytes(32))
    other.chmod(0o600)
    on = {"previous": str(folder / "two"), "partitions": 2}
    tuesday, out = str(folder / "tuesday"), str(folder / "four")
    with pytest.raises(DataError, match="key must be the one that this ledger's answers"):
        bulk.release(spark, scenario, tuesday, out, key_file=str(other), **on)
    with pytest.raises(DataError, match="client must be that of the run before"):
        bulk.release(spark, scenario, tuesday, out, key_file=key_file, client="acme", **on)
    late = folder / "late"
    everything.write(
        as_batch([Row(0, "p000", "70", 70, 3)], labels=scenario.labels), late / "0.parquet"
    )
    with pytest.raises(DataError, match="scenario must be as it was"):
        bulk.release(
            spark, scenario.replace(repair="nearest"), str(late), str(folder / "five"),
            key_file=key_file, **on,
        )  # fmt: skip


@spark_only
def test_two_days_share_no_more_answers_than_fresh_noise_would(
    spark: Any, folder: Path, key_file: str
) -> None:
    """With relative steps in the noise all were equal, because the states are."""
    scenario = city(4)
    said = []
    for day in (0, 1440):
        rows = [Row(0, "ann", str(day + n), day + n, n % 16) for n in range(1, 61)]
        everything.write(as_batch(rows, labels=scenario.labels), folder / f"day{day}" / "0.parquet")
        out = str(folder / f"said{day}")
        bulk.release(
            spark, scenario, str(folder / f"day{day}"), out, key_file=key_file, partitions=1
        )
        found = bulk.ledger(spark, scenario, out).collect()
        said.append({row["slot"] - day: row["lattice"] for row in found})
    assert len(said[0]) == len(said[1]) == 60
    # One noise in about a thousand is the same again; ten of sixty would be no accident.
    assert sum(said[0][step] == said[1][step] for step in said[0]) < 10


@spark_only
def test_counts_are_the_local_ones_to_the_last(spark: Any, folder: Path) -> None:
    from dphmm.spark import counting, read_table

    scenario = city(4)
    rows = walks(16, people=30, longest=40, seed=5)
    shuffled = random.Random(2).sample(rows, len(rows))
    (folder / "csv").mkdir()
    for part in range(4):
        lines = [f"{r.person},{r.time},{scenario.labels[r.state]}" for r in shuffled[part::4]]
        (folder / "csv" / f"{part}.csv").write_text("\n".join(["user,time,state", *lines]) + "\n")
    tracks: dict[str, list[Row]] = {}
    for row in rows:
        tracks.setdefault(row.person, []).append(row)
    people = [
        Moves.of_track([row.slot for row in track], [row.state for row in track])
        for track in tracks.values()
    ]
    table = read_table(spark, str(folder / "csv" / "*.csv"))
    table.createOrReplaceTempView("trips")
    for slots in (1, 3):
        ours = counting.learn_public(
            read_table(spark, "trips"), scenario.states, Clock(), smoothing=0.5, slots=slots
        )
        theirs = learn_public(people, 16, smoothing=0.5, slots=slots)
        assert ours.source == theirs.source
        for time in range(slots):
            one, other = (m.model.at(time).transition.toarray() for m in (ours, theirs))
            np.testing.assert_array_equal(one, other)
    for kind in ("first", "second", "momentum"):
        how = Counting(16, kind, Calendar("hour", 1200), Ground(scenario.query.values))
        walked = [([r.slot for r in t], [r.state for r in t]) for t in tracks.values()]
        found = counting.learn_public(
            read_table(spark, "trips"), scenario.states, Clock(), counting=how
        )
        assert found.model.digest == learn_walks(walked, how).model.digest
    ground = Ground(scenario.query.values)
    for levels in (Levels.of_habits(ground), Levels.of_moves(support_from_edges([], 16), 3)):
        dealt = counting._summed(
            table, scenario.states, Clock(), None, "trips",
            partial(counting._walked, counting=levels),
        )  # fmt: skip
        local = Counted.joined(levels.count(*walk) for walk in walked)
        sums = [np.zeros((2, levels.levels[0].size + 99), dtype=np.int64) for _ in range(2)]
        for into, (parts, bins, _, grains) in zip(sums, (dealt, local), strict=True):
            np.add.at(into, (parts, bins), grains)
        np.testing.assert_array_equal(*sums)
        private = counting.learn_private(table, scenario.states, Clock(), levels, epsilon=1)
        assert private.source.startswith("private, epsilon=1 ")


@spark_only
def test_nothing_that_a_run_leaves_tells_true_states_or_keys(
    spark: Any, folder: Path, key_file: str
) -> None:
    # Rows are in the shuffle with a time that is nowhere else on the way.
    marks = [f"zqplace{number}" for number in range(9)]
    scenario = city(3, labels=marks)
    time = 886644220011
    rows = [Row(0, f"p{n}", str(time + s), time + s, (n + s) % 9) for n in range(9) for s in (0, 1)]
    everything.write(as_batch(rows, labels=scenario.labels), folder / "secret-in" / "0.parquet")
    out = folder / "secret-out"
    trips = str(folder / "secret-in")
    with everything.kept(folder / "local", folder / "kept"):
        bulk.release(spark, scenario, trips, str(out), key_file=key_file, partitions=2)
    left = {name: everything.inside(folder / name) for name in ("kept", "events", "secret-out")}
    assert all(left.values()), "there is something to search"
    for name, content in left.items():
        assert b"zqplace" not in content, name
        assert KEY not in content, name
        assert KEY[:8].hex().encode() not in content, name
    assert str(time)[:9].encode() not in left["kept"], "the shuffle is encrypted"
    assert str(time)[:9].encode() in everything.inside(folder / "secret-in"), "searches find"
    names = set(bulk._table(spark, scenario, str(out), "answers").columns)
    assert "state" not in names
    config = str(spark.sparkContext.getConf().getAll()).encode()
    assert KEY not in config


@spark_only
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"state": "zqnowhere"}, "state must be a label of"),
        ({"state": None}, "state must be a label of"),
        ({"person": " "}, "person must be given"),
        ({"person": None}, "person must be given"),
        ({"time": "zqnoon"}, "time must be a whole number"),
        ({"x": "zq12", "y": "3"}, "x must be a finite number"),
        ({"x": 1.0, "y": float("inf")}, "y must be a finite number"),
    ],
)
def test_bad_rows_are_named_without_their_values(columns: dict[str, Any], message: str) -> None:
    import pyarrow as pa

    places = tuple(name for name in ("x", "y") if name in columns)
    row = {"person": "ann", "time": "1", "state": "1", **columns}
    kinds = {name: pa.float64() if isinstance(v, float) else pa.string() for name, v in row.items()}
    batch = pa.RecordBatch.from_pylist([row], schema=pa.schema(list(kinds.items())))
    reading = tables.Reading(city(2).states, Clock(), places, "trips")
    with pytest.raises(DataError, match=message) as fault:
        list(tables.locate([batch], reading))
    assert "zq" not in str(fault.value)


@spark_only
def test_the_fault_of_a_worker_arrives_as_our_own(spark: Any, folder: Path, key_file: str) -> None:
    path = folder / "over.csv"
    path.write_text("person,time,state\nann,1,1\nann,2,0\n")
    with pytest.raises(BudgetError, match="request for 2 with 0 spent and 1 remaining"):
        bulk.release(
            spark, city(2, limit=Fraction(1)), str(path), str(folder / "over-out"),
            key_file=key_file, partitions=1,
        )  # fmt: skip
    with pytest.raises(DataError, match="table must be one that Spark reads"):
        bulk.release(spark, city(2), "/no/where", str(folder / "none"), key_file=key_file)


@spark_only
def test_a_window_is_counted_across_runs(spark: Any, folder: Path, key_file: str) -> None:
    limited = city(2, limit=Limit.read("2 per 4 steps"))
    runs = [("first", "ann,1,1\nann,2,0\nbob,2,0\n"), ("second", "ann,5,1\nann,6,2\nbob,4,1\n")]
    before = None
    for name, rows in runs:
        path = folder / f"{name}-window.csv"
        path.write_text(f"person,time,state\n{rows}")
        before = str(folder / f"{name}-window") if before is None else before
        done = bulk.release(
            spark, limited, str(path), str(folder / f"{name}-window"), key_file=key_file,
            previous=None if name == "first" else before, partitions=2,
        )  # fmt: skip
        assert done.answers == rows.count("\n")
    path.write_text("person,time,state\nann,3,1\n")
    with pytest.raises(BudgetError, match="limit of 2 per 4 steps, got a request for 1") as fault:
        bulk.release(
            spark, limited, str(path), str(folder / "third-window"), key_file=key_file,
            previous=before, partitions=1,
        )  # fmt: skip
    assert (fault.value.opens, fault.value.window) == (5, "2 per 4 steps")


@spark_only
def test_a_staircase_with_a_schedule_and_a_window_is_that_of_a_batch(
    spark: Any, folder: Path, key_file: str
) -> None:
    """Answers to the last bit, over two runs; then a limit that the schedule would pass."""
    scenario = city(
        4, mechanism="staircase", epsilon=Fraction(2), when=Schedule(every=2, phase=1),
        limit=Limit.read("2 per 2 steps, 12 in all"),
    )  # fmt: skip
    assert scenario.plan.mechanism == "staircase"
    terms, people = scenario.terms, [f"p{number:02d}" for number in range(24)]
    states = np.random.default_rng(4).integers(16, size=(12, 24))
    batch = Batch(
        terms.model, terms.plan, epsilon=terms.epsilon, start=terms.start, people=people, time=0,
        limit=terms.limit, schedule=terms.schedule, randomness=KEYED, law=terms.law,
    )  # fmt: skip
    expected, estimates = {}, {}
    for some in states:
        said = batch.release(some)
        parts = zip(said.people, said.times, said.lattice, said.answer, said.estimate, strict=True)
        for person, time, lattice, answer, estimate in parts:
            expected[people[person], str(time)] = lattice.tolist(), answer.tobytes()
            estimates[people[person], str(time)] = estimate
    assert len(expected) == 6 * 24
    found, before = {}, None
    for first, last in ((1, 8), (8, 12)):
        rows = [
            Row(0, name, str(slot), slot, int(states[slot - 1, person]))
            for slot in range(first, last + 1)
            for person, name in enumerate(people)
        ]
        trips, out = folder / f"stairs-{first}", str(folder / f"stairs-{first}-out")
        everything.write(as_batch(rows, labels=scenario.labels), trips / "0.parquet")
        bulk.release(
            spark, scenario, str(trips), out, key_file=key_file, previous=before, partitions=3
        )
        points = {}
        for row in bulk.releases(spark, scenario, out).collect():
            if row["x"] is not None:
                moment = row["person"], row["time"]
                points[moment] = np.array([row["x"], row["y"]]).tobytes()
                told = [row["estimate_x"], row["estimate_y"]]
                # As many digits as a table has.
                np.testing.assert_allclose(told, estimates[moment], atol=0.005)
        for row in bulk.ledger(spark, scenario, out).collect():
            if row["epsilon"] != "0":
                moment = row["person"], row["time"]
                found[moment] = json.loads(row["lattice"]), points[moment]
        before = out
    assert found == expected
    narrow = scenario.replace(limit=Limit.read("2 per 3 steps"))
    trips = folder / "stairs-over"
    everything.write(
        as_batch([Row(0, "p03", "13", 13, 1)], labels=scenario.labels), trips / "0.parquet"
    )
    with pytest.raises(BudgetError, match="limit of 2 per 3 steps, got a request for 2") as fault:
        bulk.release(
            spark, narrow, str(trips), str(folder / "stairs-over-out"), key_file=key_file,
            previous=before, partitions=1,
        )  # fmt: skip
    assert (fault.value.opens, fault.value.window) == (14, "2 per 3 steps")


def test_what_is_missing_is_said_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setitem(__import__("sys").modules, "pyspark.sql", None)
        with pytest.raises(MissingExtraError, match=r"pip install 'dphmm\[spark\]'"):
            new_session()


@spark_only
def test_without_java_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(MissingExtraError, match="install Java 17 or newer"):
        new_session()


def test_sessions_that_write_plain_rows_are_refused() -> None:
    def fake(master: str, **settings: str) -> Any:
        found = {key.replace("_", "."): value for key, value in settings.items()}
        conf = SimpleNamespace(get=lambda key, default: found.get(key, default))
        return SimpleNamespace(sparkContext=SimpleNamespace(getConf=lambda: conf, master=master))

    with pytest.raises(ArgumentError, match=r"spark\.io\.encryption\.enabled set to true"):
        sessions.check_encrypted(fake("local[2]"))
    sessions.check_encrypted(fake("local[2]", spark_io_encryption_enabled="true"))
    with pytest.raises(ArgumentError, match=r"spark\.network\.crypto\.enabled"):
        sessions.check_encrypted(fake("spark://h:1", spark_io_encryption_enabled="true"))

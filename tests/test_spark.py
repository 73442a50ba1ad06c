"""Spark: the local engine's answers, ledgers and models, and nothing secret left behind."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphmm import ArgumentError, BudgetError, DataError
from dphmm.books.journal import Journal
from dphmm.errors import MissingExtraError
from dphmm.scenario import Clock, Row, Scenario, read_model
from dphmm.scenario.learning import Bounds, Moves, learn_public, moves_within, support_from_edges
from dphmm.spark import bulk, sessions, tables
from dphmm.spark import session as new_session
from tests import scenarios
from tests.spark_worlds import KEY, as_batch, city, everything, local_run, walks, write_key

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


def assert_same_answers(scenario: Scenario, rows: list[Row], found: Any, journal: Journal) -> None:
    """Every answer and every price as the local engine has them, once each."""
    expected = {(p, r.slot): r for p in journal.people for r in journal.of(p)}
    assert len(found) == len(expected) == len(rows)
    for record in found:
        here = expected[record["person"], record["slot"]]
        assert tuple(json.loads(record["lattice"])) == here.answer
        for column in ("time", "step"):
            assert record[column] == getattr(here, column)
        if not isinstance(record, dict):  # what is the same in every row is Spark's to add
            for column in ("scenario", "law", "query"):
                assert record[column] == getattr(here, column)
            assert Fraction(record["epsilon"]) == here.epsilon
        assert record["constrained"] == str(here.constrained)


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


# Laws


@spark_only
@settings(max_examples=15)
@given(st.data())
def test_however_rows_are_cut_the_answers_are_the_local_ones(data: st.DataObject) -> None:
    seed = data.draw(st.integers(0, 1000))
    scenario = city(4, start=data.draw(st.sampled_from(["uniform", "5"])))
    rows = walks(16, people=data.draw(st.integers(1, 9)), longest=12, seed=seed)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    batches = [
        as_batch(rows[first:end])
        for first, end in zip([0, *cuts], [*cuts, len(rows)], strict=True)
        if end > first
    ]
    partition = bulk.Partition(scenario, KEY)
    found = [row for batch in partition.output(batches) for row in batch.to_pylist()]
    with local_run(scenario, rows) as journal:
        answers = [row for row in found if row["table"] == "answers"]
        assert_same_answers(scenario, rows, answers, journal)
        for standing in (row for row in found if row["table"] == "state"):
            said = journal.of(standing["person"])
            assert standing["base"] + standing["step"] == said[-1].slot
            assert Fraction(standing["spent"]) == sum(record.epsilon for record in said)


@spark_only
def test_late_and_repeated_rows_are_counted_whatever_the_batches_are() -> None:
    scenario = city(4)
    rows = [Row(0, "ann", str(slot), slot, slot % 16) for slot in (3, 3, 4, 4, 4, 9)]
    more = [Row(0, "ann", str(slot), slot, slot % 16) for slot in (2, 4, 9, 9, 11)]
    for size in (1, 2, 6):
        cut = [as_batch(rows[first : first + size]) for first in range(0, 6, size)]
        out = [r for b in bulk.Partition(scenario, KEY).output(cut) for r in b.to_pylist()]
        assert sorted(row["slot"] for row in out if row["table"] == "answers") == [3, 4, 9]
        (standing,) = (row for row in out if row["table"] == "state")
        assert (standing["late"], standing["repeated"]) == (0, 3)
        batch = as_batch(more, standing, scenario=scenario)
        again = bulk.Partition(scenario, KEY).output([batch])
        later = [row for part in again for row in part.to_pylist()]
        assert [row["slot"] for row in later if row["table"] == "answers"] == [11]
        (standing,) = (row for row in later if row["table"] == "state")
        assert (standing["late"], standing["repeated"]) == (2, 5)


@spark_only
def test_a_person_with_very_many_rows_goes_through_in_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bulk, "LONG", 50)
    scenario = city(3)
    rows = [Row(0, "ann", str(n), n, n % 9) for n in range(1, 1001)]
    held = []

    def batches() -> Iterator[Any]:
        for first in range(0, 1000, 40):
            held.append(first)
            yield as_batch(rows[first : first + 40])

    sizes = []
    found: list[dict[str, Any]] = []
    for batch in bulk.Partition(scenario, KEY).output(batches()):
        sizes.append(batch.num_rows)
        assert len(found) + batch.num_rows + 80 >= held[-1], "rows pile up"
        found += [row for row in batch.to_pylist() if row["table"] == "answers"]
    assert max(sizes) <= 80
    with local_run(scenario, rows) as journal:
        assert_same_answers(scenario, rows, found, journal)


@spark_only
def test_what_the_local_engine_refuses_is_refused_before_anything_is_drawn() -> None:
    rows = [Row(0, "ann", str(n), n, 0) for n in (1, 2, 3)]
    with pytest.raises(ArgumentError, match="spent=0 requested=3 remaining=2"):
        list(bulk.Partition(city(3, limit=Fraction(2)), KEY).output([as_batch(rows)]))
    far = [Row(0, "ann", "1", 1, 0), Row(0, "ann", "200000", 200_000, 0)]
    with pytest.raises(DataError, match="within 100000 steps"):
        list(bulk.Partition(city(3), KEY).output([as_batch(far)]))


# Oracle


@spark_only
def test_a_later_run_goes_on_where_the_earlier_one_stopped(
    spark: Any, folder: Path, key_file: str
) -> None:
    scenario = city(5)
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
    assert first.answers + second.answers == len(rows)
    assert second.people == 24, "those who did not move are still there"
    found = [
        row for out in ("one", "two")
        for row in bulk.ledger(spark, scenario, str(folder / out)).collect()
    ]  # fmt: skip
    with local_run(scenario, rows) as journal:
        assert_same_answers(scenario, rows, found, journal)
        for row in bulk.state(spark, scenario, str(folder / "two")).collect():
            spent = sum(record.epsilon for record in journal.of(row["person"]))
            assert Fraction(row["spent"]) == spent
    third = bulk.release(
        spark, scenario, str(folder / "monday"), str(folder / "three"), key_file=key_file,
        previous=str(folder / "two"), partitions=2,
    )  # fmt: skip
    assert third.answers == 0
    assert third.late + third.repeated == len(days[0])


@spark_only
def test_a_state_of_another_law_is_refused() -> None:
    rows = [Row(0, "ann", "1", 1, 0)]
    found = list(bulk.Partition(city(3), KEY).output([as_batch(rows)]))
    (standing,) = (row for batch in found for row in batch.to_pylist() if row["table"] == "state")
    changed = city(3, repair="nearest")
    with pytest.raises(DataError, match="state must be of this scenario"):
        list(bulk.Partition(changed, KEY).output([as_batch(rows, standing, scenario=city(3))]))
    broken = {**standing, "probabilities": b"123"}
    with pytest.raises(DataError, match="state must be a table that dphmm wrote"):
        list(bulk.Partition(city(3), KEY).output([as_batch(rows, broken, scenario=city(3))]))


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
    bounds = Bounds(moves_within(scenario.query.values, 150), 5)
    (counts,) = counting._counts(table, scenario.states, Clock(), 1, None, "trips", bounds)
    kept = Moves.joined(bounds.cut(moves) for moves in people)
    expected = np.zeros((16, 16))
    np.add.at(expected, (kept.sources, kept.targets), 1)
    np.testing.assert_array_equal(counts.toarray(), expected)
    private = counting.learn_private(
        table, scenario.states, Clock(), epsilon=1, max_moves=5,
        support=support_from_edges([], 16),
    )  # fmt: skip
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
        list(tables._located([batch], reading))
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

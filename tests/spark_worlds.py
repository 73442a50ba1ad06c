"""Small cities, walks and files for the tests of Spark."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np

from dphmm import MarkovModel
from dphmm.books.journal import Journal
from dphmm.noise.randomness import KeyedRandomness
from dphmm.release import engine
from dphmm.release.said import Record
from dphmm.scenario import Policy, Row, Scenario, Settings, States
from dphmm.scenario.learning import moves_within
from dphmm.scenario.releasing import ask_rows

KEY = b"zqkey" + bytes(range(150, 177))
KEYED = KeyedRandomness(KEY)


def city(side: int, labels: Sequence[str] | None = None, **changes: Any) -> Scenario:
    """A square of cells 100 m apart with walks to the neighbours."""
    cells = np.stack(np.meshgrid(np.arange(side), np.arange(side)), axis=-1).reshape(-1, 2) * 100.0
    options = {"epsilon": Fraction(1), "step": Fraction(10), **changes}
    options.setdefault("policy", Policy(distance=Fraction(250)))
    model = MarkovModel.from_counts(moves_within(cells, 150))
    return Scenario.from_settings(
        Settings("city", **options), States.on_plane(cells, labels=labels), model
    )


def walks(n_states: int, *, people: int, longest: int, seed: int) -> list[Row]:
    """Rows in order of person and time, with gaps and different first steps."""
    rng = np.random.default_rng(seed)
    rows = []
    for person in range(people):
        slots = rng.choice(np.arange(5, 60), rng.integers(1, longest + 1), replace=False)
        rows += [
            Row(0, f"p{person:03d}", str(slot), int(slot), int(rng.integers(n_states)))
            for slot in np.sort(slots)
        ]
    return rows


def as_batch(
    rows: Sequence[Row],
    standings: Sequence[dict[str, Any]] = (),
    labels: Sequence[str] = (),
) -> Any:
    """Rows as an Arrow batch: what Spark hands to a partition, or with labels a table of trips."""
    import pyarrow as pa

    if labels:
        return pa.RecordBatch.from_pylist(
            [{"person": r.person, "time": r.time, "state": labels[r.state]} for r in rows]
        )
    columns = {"person": pa.string(), "slot": pa.int64(), "moment": pa.int64(), "state": pa.int32()}
    cells = [{name: getattr(row, name) for name in columns} for row in rows]
    if standings:
        columns |= {"standing": pa.binary(), "spent": pa.string()}
        columns |= {"late": pa.int64(), "repeated": pa.int64()}
        before = [{n: row[n] for n in ("person", *list(columns)[4:])} for row in standings]
        cells = sorted([*before, *cells], key=lambda c: (c["person"], c.get("slot", -1)))
    return pa.RecordBatch.from_pylist(cells, schema=pa.schema(list(columns.items())))


@contextmanager
def local_run(scenario: Scenario, rows: Sequence[Row], client: str = "") -> Iterator[Journal]:
    """The ledger of `dphmm release` for the same rows under the same key."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Journal(Path(folder) / "ledger.jsonl", scenario.settings.clock.time_of) as journal,
    ):
        (answered,) = engine.release(journal, [ask_rows(scenario, [*rows], client)], KEYED)
        assert not answered.faults
        yield journal


def records_in(journal: Journal) -> dict[tuple[str, int], Record]:
    """Every answer of a ledger, by person and slot."""
    return {
        (record.line.person, record.time): record
        for who in journal.people
        for record in journal.records(*who)
    }


def same_answers(scenario: Scenario, found: Sequence[Any], journal: Journal) -> bool:
    """Whether every answer and every price is as the local engine has them, once each."""
    expected = records_in(journal)
    assert len(found) == len(expected)
    for record in found:
        here = expected[record["person"], record["slot"]]
        assert tuple(json.loads(record["lattice"])) == here.lattice
        assert record["time"] == str(scenario.settings.clock.time_of(here.time))
        assert record["constrained"] == str(here.constrained)
        if not isinstance(record, dict):  # what is the same in every row is Spark's to add
            assert (record["client"], record["query"]) == (here.line.client, here.line.query)
            assert record["law"] == here.law
            assert Fraction(record["epsilon"]) == here.epsilon
    return True


def write_key(path: Path) -> str:
    path.write_bytes(KEY)
    path.chmod(0o600)
    return str(path)


class everything:  # noqa: N801 - reads as a word
    """Files, written and searched."""

    @staticmethod
    def write(table: Any, path: Path) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        path.parent.mkdir(parents=True, exist_ok=True)
        whole = pa.Table.from_batches([table])
        parquet.write_table(whole, path, compression="none", use_dictionary=False)
        # A stream takes the oldest file first, and these are made within a moment.
        age = len(list(path.parent.iterdir()))
        os.utime(path, (1_700_000_000 + age, 1_700_000_000 + age))

    @staticmethod
    @contextmanager
    def kept(folder: Path, into: Path) -> Iterator[None]:
        """Keep every file that is below a folder at any moment, for Spark removes its shuffles."""
        into.mkdir(parents=True, exist_ok=True)
        over = Event()

        def watch() -> None:
            while not over.wait(0.005):
                # Spark may remove a folder while it is looked through.
                with suppress(FileNotFoundError):
                    for path in folder.rglob("*"):
                        with suppress(OSError):
                            if path.is_file():
                                os.link(path, into / f"{path.stat().st_ino} {path.name}")

        thread = Thread(target=watch)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    @staticmethod
    def inside(folder: Path) -> bytes:
        """The bytes of every file below a folder, hidden ones included."""
        return b"\n".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())

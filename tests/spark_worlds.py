"""Small cities, walks and files for the tests of Spark."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
from dphmm.books.releasing import Releaser

from dphmm import MarkovModel
from dphmm.books.journal import Journal
from dphmm.scenario import Policy, Row, Scenario, Settings, States
from dphmm.scenario.learning import moves_within

KEY = b"zqkey" + bytes(range(150, 177))


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
    standing: dict[str, Any] | None = None,
    labels: Sequence[str] = (),
    scenario: Scenario | None = None,
) -> Any:
    """Rows as an Arrow batch: what Spark hands to a partition, or with labels a table of trips."""
    import pyarrow as pa

    if labels:
        return pa.RecordBatch.from_pylist(
            [{"person": r.person, "time": r.time, "state": labels[r.state]} for r in rows]
        )
    columns = {"person": pa.string(), "time": pa.string(), "slot": pa.int64(), "state": pa.int32()}
    cells = [{"person": r.person, "time": r.time, "slot": r.slot, "state": r.state} for r in rows]
    if standing is not None:
        rest = {key: value for key, value in standing.items() if key not in (*columns, "table")}
        assert scenario is not None
        rest |= {"scenario": scenario.name, "law": scenario.law, "step": standing["step"]}
        cells.insert(0, {"person": standing["person"], **rest})
        texts = ("scenario", "law", "spent", "constrained")
        columns |= dict.fromkeys(texts, pa.string())
        columns |= dict.fromkeys(("possible", "probabilities", "wide"), pa.binary())
        columns |= dict.fromkeys(("base", "step", "late", "repeated", "refused"), pa.int64())
    return pa.RecordBatch.from_pylist(cells, schema=pa.schema(list(columns.items())))


@contextmanager
def local_run(scenario: Scenario, rows: Sequence[Row]) -> Iterator[Journal]:
    """The ledger of `dphmm release` for the same rows under the same key."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Journal(Path(folder) / "ledger.jsonl") as journal,
    ):
        Releaser(scenario, journal, KEY).answer(rows)
        yield journal


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

"""A real cluster on loopback: the same answers when a worker or the driver is killed."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from dphmm.scenario import Row
from tests.spark_cluster import Cluster, cluster, end, python, wait_until
from tests.spark_worlds import (
    KEY,
    as_batch,
    city,
    everything,
    local_run,
    records_in,
    walks,
    write_key,
)

pytestmark = [pytest.mark.spark, pytest.mark.slow]

# The library itself takes 130 MB; beliefs of a batch and their scratch have 32 MB each.
SMALL = 700


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Cluster]:
    with cluster(tmp_path / "cluster") as made:
        yield made


def answers_in(folder: Path) -> dict[tuple[str, int], set[tuple[int, ...]]]:
    """Every answer in every file below a folder, whether a log lists the file or not."""
    found: dict[tuple[str, int], set[tuple[int, ...]]] = {}
    paths: list[Path] = []
    # A folder may be moved while it is looked through.
    with suppress(FileNotFoundError):
        paths.extend(folder.rglob("*.parquet"))
    for path in paths:
        if "table=answers" in str(path):
            for row in _rows(path):
                lattice = tuple(json.loads(row["lattice"]))
                found.setdefault((row["person"], row["slot"]), set()).add(lattice)
    return found


def assert_complete(
    rows: list[Row], found: dict[tuple[str, int], set[tuple[int, ...]]], side: int
) -> None:
    """Everybody's answers are there, and nobody has two different ones for one time."""
    with local_run(city(side), rows) as journal:
        expected = {moment: {said.lattice} for moment, said in records_in(journal).items()}
    assert found == expected


def written(folder: Path, side: int, rows: list[Row], files: int) -> tuple[Path, Path, str]:
    scenario = city(side)
    folder.mkdir(exist_ok=True)
    scenario.save(folder / "city.toml")
    for number in range(files):
        table = as_batch(rows[number::files], labels=scenario.labels)
        everything.write(table, folder / "inbox" / f"{number}.parquet")
    return folder / "city.toml", folder / "inbox", write_key(folder / "key")


@pytest.mark.parametrize(
    ("side", "people", "steps"), [(100, 1_000, 3), (3, 1, 100_000)], ids=["wide", "long"]
)
def test_a_small_worker_is_enough(side: int, people: int, steps: int) -> None:
    command = [sys.executable, "-m", "tests.spark_memory", *map(str, (side, people, steps))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout) < SMALL


def test_a_worker_killed_in_the_middle_changes_nothing(tmp_path: Path, running: Cluster) -> None:
    rows = walks(25, people=300, longest=30, seed=1)
    shuffled = random.Random(3).sample(rows, len(rows))
    toml, inbox, key = written(tmp_path / "town", 5, shuffled, 7)
    out = tmp_path / "out"
    driver = python(
        running, "-m", "dphmm", "release", toml, inbox, "-o", out, "--key-file", key,
        "--engine", "spark", "--master", running.url,
    )  # fmt: skip
    try:
        temporary = out / "_temporary"
        wait_until(lambda: bool(answers_in(temporary)) or driver.poll() is not None, "an answer")
        assert driver.poll() is None, (running.folder / "driver.log").read_text()
        end(running.processes[-1])
        wait_until(lambda: driver.poll() is not None, "the job")
        assert driver.returncode == 0, (running.folder / "driver.log").read_text()[-3000:]
    finally:
        end(driver)
    assert (out / "_SUCCESS").exists()
    assert_complete(rows, answers_in(out), 5)
    left = everything.inside(running.folder)
    assert KEY not in left
    assert KEY.hex().encode() not in left


def test_a_driver_killed_in_the_middle_of_a_stream_changes_nothing(
    tmp_path: Path, running: Cluster
) -> None:
    rows = sorted(walks(9, people=40, longest=25, seed=2), key=lambda row: row.slot)
    toml, inbox, key = written(tmp_path / "town", 3, [], 0)
    labels = city(3).labels
    size = len(rows) // 4 + 1
    for number in range(4):
        part = rows[number * size : (number + 1) * size]
        everything.write(as_batch(part, labels=labels), inbox / f"{number}.parquet")
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    arguments = ("-m", "tests.spark_driver", running.url, toml, inbox, out, checkpoint, key)

    def logged() -> str:
        logs = (out / "_spark_metadata").glob("[0-9]*")
        return "".join(path.read_text() for path in logs)

    def orphaned() -> bool:
        """Whether a file is complete that no log knows yet."""
        known = logged()
        files = [p for p in out.glob("table=answers/*.parquet") if p.name not in known]
        return any(_rows(path) for path in files)

    def committed() -> bool:
        """Whether the sink has a batch that the checkpoint may not have."""
        return len(list((out / "_spark_metadata").glob("[0-9]*"))) > 0

    for moment in (orphaned, committed):
        driver = python(running, *arguments)
        wait_until(lambda d=driver, m=moment: m() or d.poll() is not None, moment.__name__)
        assert driver.poll() is None, (running.folder / "driver.log").read_text()[-3000:]
        end(driver)
    assert answers_in(out)
    driver = python(running, *arguments)
    wait_until(lambda: driver.poll() is not None, "the stream")
    assert driver.returncode == 0, (running.folder / "driver.log").read_text()[-3000:]
    assert_complete(rows, answers_in(out), 3)
    counted = logged()
    files = [path for path in out.glob("table=answers/*.parquet") if path.name in counted]
    assert sum(1 for path in files for _ in _rows(path)) == len(rows), "each counts once"
    assert not any(
        b"zqplace" in path.read_bytes() for path in checkpoint.rglob("*") if path.is_file()
    )


def _rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a file; none if a killed task was still writing it, for then it has no end."""
    from pyarrow import lib, parquet

    try:
        return parquet.ParquetFile(path).read(["person", "slot", "lattice"]).to_pylist()
    except (lib.ArrowInvalid, OSError):
        return []

"""Bulk release on a standalone cluster, beside the local batch engine on the same work.

DPHMM_BENCH_PEOPLE=1000000 goes on to a million people: some minutes more and 4 GB of disk.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks import Figure
from dphmm.errors import require
from dphmm.release.batch import Batch
from dphmm.scenario import Scenario
from tests.spark_cluster import cluster
from tests.spark_worlds import KEYED, city, everything, write_key

SIDE = 20
STEPS = 24
PEOPLE = 30_000
SIZES = (1_000, 10_000, 100_000)
SIZE_STEPS = 8
CORES = 2
REPEATS = 2


def paths(people: int, steps: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The states of everybody at every step, near enough to real walks for the cost."""
    rng = np.random.default_rng(0)
    model = city(SIDE).model
    walks = np.array([model.at(1).sample(steps, rng=rng, start=210) for _ in range(64)])
    return walks[rng.integers(64, size=people)]


def table(folder: Path, people: int, steps: int) -> str:
    """The same walks as Parquet files, one for each 10,000 people."""
    import pyarrow as pa
    from pyarrow import parquet

    where = folder / f"in-{people}-{steps}"
    where.mkdir()
    states = paths(people, steps)
    for first in range(0, people, 10_000):
        some = states[first : first + 10_000]
        names = np.char.add("person ", np.arange(first, first + len(some)).astype(str))
        columns = {
            "person": np.repeat(names, steps),
            "time": np.tile(np.arange(1, steps + 1), len(some)),
            "state": some.ravel().astype(str),
        }
        parquet.write_table(pa.table(columns), where / f"{first}.parquet")
    return str(where)


def local(scenario: Scenario, trips: str, people: int, steps: int) -> tuple[float, float]:
    """Seconds of the batch engine on all cores: from file to file, and of the releases alone."""
    import pyarrow as pa
    from pyarrow import parquet

    start = perf_counter()
    rows = parquet.read_table(trips)
    number_of = {label: number for number, label in enumerate(scenario.labels)}
    labels = rows["state"].combine_chunks().dictionary_encode()
    numbers = np.array([number_of[label] for label in labels.dictionary.to_pylist()])
    states = numbers[labels.indices.to_numpy()].reshape(people, steps).T
    names = rows["person"].to_numpy()[::steps]
    batch = Batch(
        scenario.model, scenario.plan, epsilon=scenario.settings.epsilon, people=names.tolist(),
        start=scenario.start, time=0, randomness=KEYED, law=scenario.terms.law, threads=CORES,
    )  # fmt: skip
    began = perf_counter()
    said = [batch.release(now) for now in states]
    alone = perf_counter() - began
    with tempfile.TemporaryDirectory() as folder:
        answers = {
            "person": np.tile(names, steps),
            "time": np.repeat(np.arange(1, steps + 1), people),
            **{f"answer {i}": np.concatenate([r.answer[:, i] for r in said]) for i in (0, 1)},
            **{f"estimate {i}": np.concatenate([r.estimate[:, i] for r in said]) for i in (0, 1)},
            **{f"lattice {i}": np.concatenate([r.lattice[:, i] for r in said]) for i in (0, 1)},
        }
        parquet.write_table(pa.table(answers), Path(folder) / "answers.parquet")
        beliefs = [batch.belief(person).probabilities.tobytes() for person in range(people)]
        state = pa.table({"person": names, "belief": beliefs})
        parquet.write_table(state, Path(folder) / "state.parquet", use_dictionary=["person"])
        return perf_counter() - start, alone


def on_spark(spark: Any, scenario: Scenario, trips: str, out: Path, key: str) -> float:
    """Seconds from the files of trips to the files of answers and states."""
    from dphmm.spark import release

    start = perf_counter()
    release(spark, scenario, trips, str(out), key_file=key, partitions=4 * CORES)
    return perf_counter() - start


def run() -> list[Figure]:
    require("pyspark", "spark")
    from dphmm.spark import session

    scenario = city(SIDE)
    with tempfile.TemporaryDirectory() as name, cluster(Path(name) / "cluster", CORES) as made:
        folder = Path(name)
        key = write_key(folder / "key")
        before = dict(os.environ)
        os.environ.update(made.env)
        began = perf_counter()
        spark = session(made.url)
        spark.sparkContext.setLogLevel("OFF")
        try:
            small = table(folder, 200, STEPS)
            on_spark(spark, scenario, small, folder / "warm", key)
            started = perf_counter() - began
            with everything.kept(folder / "cluster" / "local", folder / "kept"):
                on_spark(spark, scenario, small, folder / "again", key)
            running = min(
                on_spark(spark, scenario, small, folder / f"small{turn}", key) for turn in range(3)
            )
            files = (folder / "kept").glob("* shuffle_*.data*")
            shuffled = sum({path.stat().st_ino: path.stat().st_size for path in files}.values())
            trips = table(folder, PEOPLE, STEPS)
            local(scenario, small, 200, STEPS)
            ours, theirs = [], []
            for turn in range(REPEATS):
                theirs.append(local(scenario, trips, PEOPLE, STEPS))
                ours.append(on_spark(spark, scenario, trips, folder / f"out{turn}", key))
            releases = PEOPLE * STEPS
            whole, alone = (min(times) for times in zip(*theirs, strict=True))
            figures = [
                Figure("spark, start and first small job", started, "s"),
                Figure("spark, a job in a running session", running, "s", target="value <= 2.5"),
                Figure("spark, shuffle a row, encrypted", shuffled / (200 * STEPS), "B"),
                Figure(
                    f"spark, {PEOPLE:,} people x {STEPS} steps x {SIDE**2} states, per core",
                    releases / min(ours) / CORES, "1/s",
                    "the local batch engine, file to file", whole / min(ours), "ratio >= 0.65",
                ),
                Figure("local batch engine, file to file", releases / whole / CORES, "1/s"),
                Figure(
                    "local batch engine, releases alone", releases / alone / CORES, "1/s",
                    "spark per core beside it", alone / min(ours),
                ),
            ]  # fmt: skip
            largest = int(os.environ.get("DPHMM_BENCH_PEOPLE", SIZES[-1]))
            for people in (*(size for size in SIZES if size < largest), largest):
                more = table(folder, people, SIZE_STEPS)
                took = on_spark(spark, scenario, more, folder / f"grow{people}", key)
                count = people * SIZE_STEPS
                label = f"spark, {people:,} people x {SIZE_STEPS} steps"
                figures += [
                    Figure(label, took, "s"),
                    Figure(f"{label}, core time a release", 1e6 * took * CORES / count, "us"),
                ]
                figures.append(_bytes(f"{label}, state a person", folder / f"grow{people}", people))
            return figures
        finally:
            spark.stop()
            os.environ.clear()
            os.environ.update(before)


def _bytes(name: str, out: Path, people: int) -> Figure:
    size = sum(path.stat().st_size for path in (out / "table=state").glob("*.parquet"))
    return Figure(name, size / people, "B")

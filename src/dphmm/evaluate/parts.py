"""Parts of results: each is measured once and kept in a private file, under all it depends on.

A part that is kept is used again only if the code that measures it, the data and its own settings
are the same. Parts hold errors and degrees of protection of true states, so they are private.
"""

from __future__ import annotations

import hashlib
import multiprocessing
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from dphmm._types import FloatArray
from dphmm.evaluate.fingerprint import LENGTH, code_digest
from dphmm.evaluate.results import Result, Table, Value, machine
from dphmm.evaluate.workloads import Workload
from dphmm.tables.files import whole_file

__all__ = ["Measurable", "Part", "Study", "kept", "measured", "run", "run_study"]


class Measurable(Protocol):
    """A piece of work with a name, whose result is kept under it.

    A frozen dataclass: its fields are its settings, all of them.
    """

    @property
    def name(self) -> str:
        """What the file of this result is called."""

    def measure(self, workload: Workload) -> dict[str, FloatArray]:
        """The result: named arrays. Private."""


Part = tuple[str, Measurable]
"""The name of a workload, and what is measured on it."""


@dataclass(frozen=True, eq=False)
class Study:
    """One file of results: what is measured for it, and how its numbers come from that.

    Args:
        name: What the file is called.
        about: In a sentence, what is measured on whom.
        module: The module whose code makes the numbers from the parts.
        parts: What is measured, each on the workload of a name.
        summarise: From the workloads and everything measured, the values and the tables.
        settings: What was chosen, from the protocol.
        seeds: The seeds of noise.
        timed: Whether absolute times are among the values.
        data: The digests of what is read besides the workloads.
    """

    name: str
    about: str
    module: str
    parts: tuple[Part, ...]
    summarise: Callable[
        [Mapping[str, Workload], Mapping[Part, dict[str, FloatArray]]],
        tuple[Mapping[str, Value], Mapping[str, Table]],
    ]
    settings: Mapping[str, Any] = field(default_factory=dict)
    seeds: tuple[int, ...] = ()
    timed: bool = False
    data: Mapping[str, str] = field(default_factory=dict)


def kept(folder: Path, workload: Workload, task: Measurable) -> Path:
    """The file of a part: private, and named after what it depends on."""
    code = code_digest(type(task).__module__)
    settings = hashlib.sha256(repr(task).encode()).hexdigest()[:LENGTH]
    place = folder / "private-results" / f"{workload.digest}-{code}"
    return place / f"{task.name}-{settings}.npz"


def measured(folder: Path, workload: Workload, task: Measurable) -> dict[str, FloatArray]:
    """The result of a task that was run."""
    with np.load(kept(folder, workload, task)) as arrays:
        return {key: arrays[key] for key in arrays.files}


def run(
    folder: Path, workload: Workload, tasks: Sequence[Measurable], *, workers: int = 2
) -> Iterator[tuple[Measurable, bool]]:
    """Measure what is not yet kept; yields every task when its result is there, and if it was."""
    waiting: list[Measurable] = []
    for task in tasks:
        if kept(folder, workload, task).exists():
            yield task, True
        else:
            waiting.append(task)
    if workers < 2 or len(waiting) < 2:
        for task in waiting:
            _keep(folder, workload, task)
            yield task, False
        return
    # Forked copies of polars' threads would hang, so workers start fresh.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, _begin, (folder, workload)) as pool:
        futures = {pool.submit(_work, task): task for task in waiting}
        for future in as_completed(futures):
            future.result()
            yield futures[future], False


def run_study(
    folder: Path,
    study: Study,
    load: Callable[[str], Workload],
    *,
    workers: int = 2,
) -> Iterator[tuple[Part, bool] | Result]:
    """Measure the parts of a study, each yielded when it is there; the last is the result."""
    workloads = {name: load(name) for name in dict.fromkeys(name for name, _ in study.parts)}
    for name, workload in workloads.items():
        tasks = [task for where, task in study.parts if where == name]
        for task, was in run(folder, workload, tasks, workers=workers):
            yield (name, task), was
    found = {part: measured(folder, workloads[part[0]], part[1]) for part in study.parts}
    values, tables = study.summarise(workloads, found)
    data = dict(study.data)
    for name, workload in workloads.items():
        data |= {name: workload.digest, **workload.files}
    yield Result(
        name=study.name,
        about=study.about,
        module=study.module,
        values=values,
        tables=tables,
        settings=study.settings,
        seeds=study.seeds,
        data=data,
        machine=machine() if study.timed else None,
    )


_given: list[tuple[Path, Workload]] = []


def _begin(folder: Path, workload: Workload) -> None:
    _given.append((folder, workload))


def _work(task: Measurable) -> None:
    _keep(*_given[-1], task)


def _keep(folder: Path, workload: Workload, task: Measurable) -> None:
    path = kept(folder, workload, task)
    path.parent.mkdir(parents=True, exist_ok=True)
    results = task.measure(workload)
    with whole_file(path, private=True) as file:
        np.savez_compressed(file, **results)  # type: ignore[arg-type]

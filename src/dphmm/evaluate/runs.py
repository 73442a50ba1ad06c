"""Studies and tasks measured by processes that are started once, part by part.

One queue for everything: while a study's last part is measured, the next study's parts are too.
A part that fails, or whose data cannot be loaded, stops nobody else's; the study it belongs to has
no result, and the first error is raised at the end.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    as_completed,
)
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dphmm.errors import DphmmError
from dphmm.evaluate.fingerprint import libraries
from dphmm.evaluate.parts import Measurable, Part, Study, keep, kept, measured, seconds_of
from dphmm.evaluate.results import Result, machine
from dphmm.evaluate.workloads import Workload

__all__ = ["Done", "run", "run_studies", "run_study"]

Load = Callable[[str], Workload]


@dataclass(frozen=True)
class Done:
    """A part whose result is there."""

    part: Part
    was: bool
    """Whether it had been measured before."""
    seconds: float
    """Processor time that it took, now or then."""


def run(
    folder: Path, workload: Workload, tasks: Sequence[Measurable], *, workers: int = 2
) -> Iterator[tuple[Measurable, bool]]:
    """Measure what is not yet kept; yields every task when its result is there, and if it was."""
    waiting = [task for task in tasks if not kept(folder, workload, task).exists()]
    yield from ((task, True) for task in tasks if task not in waiting)
    with _queue(min(workers, len(waiting))) as queue:
        futures = {queue.begin(folder, workload, task): task for task in waiting}
        for future in as_completed(futures):
            future.result()
            yield futures[future], False


def run_studies(
    folder: Path, studies: Sequence[Study], load: Load, *, workers: int = 2
) -> Iterator[Done | Result]:
    """Measure the parts of studies, each yielded when it is there, and each study's result.

    Args:
        folder: Where parts are kept. Private.
        studies: What to measure; a part that several have is measured once.
        load: The workload of a name.
        workers: How many processes measure; with one, this process does.
    """
    faults: list[BaseException] = []
    lacks: dict[Study, set[Part]] = {study: set(study.parts) for study in studies}

    def finish(done: Done) -> Iterator[Done | Result]:
        yield done
        for study in [study for study, parts in lacks.items() if done.part in parts]:
            lacks[study].remove(done.part)
            if not lacks[study]:
                yield _result(folder, study, load)

    with _queue(workers) as queue:
        waiting: dict[Future[None], Part] = {}
        for part in dict.fromkeys(part for study in studies for part in study.parts):
            try:
                workload = load(part[0])
            except DphmmError as missing:  # no such data, or nobody with a run that long
                faults.append(missing)
                continue
            if kept(folder, workload, part[1]).exists():
                yield from finish(Done(part, True, seconds_of(folder, workload, part[1])))
            else:
                waiting[queue.begin(folder, workload, part[1])] = part
        yield from (_result(folder, study, load) for study in studies if not study.parts)
        for future in as_completed(waiting):
            name, task = waiting[future]
            fault = future.exception()
            if fault is None:
                yield from finish(Done((name, task), False, seconds_of(folder, load(name), task)))
            else:
                faults.append(fault)
    if faults:
        raise faults[0]


def run_study(
    folder: Path, study: Study, load: Load, *, workers: int = 2
) -> Iterator[Done | Result]:
    """Measure the parts of one study, each yielded when it is there; the last is the result."""
    return run_studies(folder, [study], load, workers=workers)


def _result(folder: Path, study: Study, load: Load) -> Result:
    workloads = {name: load(name) for name in dict.fromkeys(name for name, _ in study.parts)}
    found = {part: measured(folder, workloads[part[0]], part[1]) for part in study.parts}
    values, tables = study.summarise(workloads, found)
    data = dict(study.data)
    for name, workload in workloads.items():
        data |= {name: workload.digest, **workload.files}
    return Result(
        name=study.name,
        about=study.about,
        module=study.module,
        values=values,
        tables=tables,
        settings=study.settings,
        seeds=study.seeds,
        noise=study.noise,
        data=data,
        libraries=libraries(),
        machine=machine() if study.timed else None,
    )


@contextmanager
def _queue(workers: int) -> Iterator[_Queue]:
    """Processes that measure, or a thread of this one; what waits is dropped at the end."""
    if workers < 2:
        pool: Executor = ThreadPoolExecutor(1)
    else:
        # A worker has one core; two threads each would wait for one another.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        # Forked copies of polars' threads would hang, so workers start fresh.
        pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"))
    try:
        yield _Queue(pool)
    finally:
        pool.shutdown(cancel_futures=True)


class _Queue:
    """Where measurements are begun; a workload is packed once for all its tasks."""

    def __init__(self, pool: Executor) -> None:
        self._pool = pool
        self._packed: dict[str, bytes] = {}

    def begin(self, folder: Path, workload: Workload, task: Measurable) -> Future[None]:
        """The measurement of a task, which another process or thread does in its turn."""
        if isinstance(self._pool, ThreadPoolExecutor):
            return self._pool.submit(keep, folder, workload, task)
        if workload.digest not in self._packed:
            self._packed[workload.digest] = pickle.dumps(workload)
        packed = self._packed[workload.digest]
        return self._pool.submit(_work, folder, workload.digest, packed, task)


_unpacked: dict[str, Workload] = {}
"""In a worker: the workloads it has seen, by their digest."""


def _work(folder: Path, digest: str, packed: bytes, task: Measurable) -> None:
    if digest not in _unpacked:
        _unpacked[digest] = pickle.loads(packed)
    keep(folder, _unpacked[digest], task)

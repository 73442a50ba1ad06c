"""Parts of results: each is measured once and kept in a private file, under all it depends on.

A part that is kept is used again only if the code that measures it, the libraries, the data and its
own settings are the same. Parts hold errors and degrees of protection of true states, so they are
private.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time
from typing import Any, Protocol

import numpy as np

from dphmm._types import FloatArray
from dphmm.evaluate.fingerprint import LENGTH, code_digest, library_digest
from dphmm.evaluate.results import Table, Value
from dphmm.evaluate.workloads import Workload
from dphmm.tables.files import whole_file

__all__ = ["EXACT", "Measurable", "Part", "Study", "keep", "kept", "measured", "seconds_of"]

EXACT = "exact, no noise"
"""Of a study that draws nothing."""
SECONDS = "processor_seconds"
"""Kept beside a result: what it cost."""


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
        noise: Without seeds, what is drawn all the same, or that everything is exact.
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
    noise: str = ""
    timed: bool = False
    data: Mapping[str, str] = field(default_factory=dict)


def kept(folder: Path, workload: Workload, task: Measurable) -> Path:
    """The file of a part: private, and named after what it depends on."""
    code = code_digest(type(task).__module__)
    settings = hashlib.sha256(repr(task).encode()).hexdigest()[:LENGTH]
    place = folder / "private-results" / f"{workload.digest}-{code}-{library_digest()}"
    return place / f"{task.name}-{settings}.npz"


def measured(folder: Path, workload: Workload, task: Measurable) -> dict[str, FloatArray]:
    """The result of a task that was run."""
    with np.load(kept(folder, workload, task)) as arrays:
        return {key: arrays[key] for key in arrays.files if key != SECONDS}


def seconds_of(folder: Path, workload: Workload, task: Measurable) -> float:
    """The processor time that a task took when it was run."""
    with np.load(kept(folder, workload, task)) as arrays:
        return float(arrays[SECONDS])


def keep(folder: Path, workload: Workload, task: Measurable) -> None:
    """Measure a task and keep its result, with the processor time that it took."""
    path = kept(folder, workload, task)
    path.parent.mkdir(parents=True, exist_ok=True)
    began = process_time()
    results = task.measure(workload)
    results[SECONDS] = np.array(process_time() - began)
    with whole_file(path, private=True) as file:
        np.savez_compressed(file, **results)  # type: ignore[arg-type]

"""What the processes of one service share: tokens of clients and addresses, and who is there.

It is memory that belongs to no file, made before the processes are. A lock of the operating system
goes with the process that holds it, so one that is killed at any moment keeps nobody waiting.
"""

from __future__ import annotations

import fcntl
import hashlib
import mmap
import os
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["FOLDER", "Shared", "SharedBuckets"]

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""Names the folder where they count for Prometheus; set before its library is imported."""

SLOTS = 2**14
TRIED = 8
"""Places that a name may have; where all are taken, the one that was used last long ago goes."""

SLOT = struct.Struct("=Qdd")
PID = struct.Struct("=q")


class Shared:
    """A piece of memory for so many processes.

    Args:
        workers: How many.
    """

    def __init__(self, workers: int = 1) -> None:
        self._workers = workers
        self._file = os.memfd_create("dphmm")
        size = SLOTS * SLOT.size + workers * PID.size
        os.ftruncate(self._file, size)
        self._memory = mmap.mmap(self._file, size)
        self._key = os.urandom(16)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        fcntl.lockf(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN)

    def set_pid(self, number: int, pid: int) -> None:
        """Write down who is the so-and-so-many-th process; 0 for nobody."""
        PID.pack_into(self._memory, SLOTS * SLOT.size + number * PID.size, pid)

    def pids(self) -> list[int]:
        """The processes that are there."""
        start = SLOTS * SLOT.size
        found = (
            PID.unpack_from(self._memory, start + n * PID.size)[0] for n in range(self._workers)
        )
        return [int(pid) for pid in found if pid]

    def change(self, name: str, new: float, update: Callable[[float, float], float]) -> float:
        """The number held for a name, changed by what it was and when; `new` if there was none."""
        digest = hashlib.blake2b(name.encode(), digest_size=8, key=self._key).digest()
        mark = int.from_bytes(digest) or 1
        with self._alone():
            now = time.monotonic()  # one clock for all processes of a machine
            place, held, before = self._find(mark, new, now)
            value = update(held, max(0.0, now - before))
            SLOT.pack_into(self._memory, place, mark, value, now)
        return value

    def _find(self, mark: int, new: float, now: float) -> tuple[int, float, float]:
        oldest = (0, new, now)
        since = float("inf")
        for tried in range(TRIED):
            place = (mark + tried) % SLOTS * SLOT.size
            found, held, before = SLOT.unpack_from(self._memory, place)
            if found == mark:
                return place, held, before
            if not found:
                return place, new, now
            if before < since:
                oldest, since = (place, new, now), before
        return oldest


class SharedBuckets:
    """The same as `Buckets`, for all processes together.

    Args:
        rate: Tokens a second; 0 is without limit.
        shared: Where they are counted.
        kind: What tells these buckets from others there.
    """

    def __init__(self, rate: float, shared: Shared, kind: str) -> None:
        self._rate, self._shared, self._kind = rate, shared, kind
        self._most = max(1.0, rate)

    def take(self, name: str) -> bool:
        """Whether there was a token left."""
        return self._use(name, 1.0)

    def left(self, name: str) -> bool:
        """Whether there is a token, without taking it."""
        return self._use(name, 0.0)

    def _use(self, name: str, taken: float) -> bool:
        if self._rate <= 0:
            return True
        there = False

        def update(tokens: float, passed: float) -> float:
            nonlocal there
            # What a killed process half wrote is some number; it becomes a possible one.
            tokens = min(self._most, max(0.0, tokens) + passed * self._rate)
            there = tokens >= 1
            return tokens - taken if there else tokens

        self._shared.change(f"{self._kind} {name}", self._most, update)
        return there

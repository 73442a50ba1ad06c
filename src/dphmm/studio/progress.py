"""How far a long computation is, and that it ends where nobody waits for it any more.

The work itself says `begin` and `step`, and a repair how far it is within one; the page asks, and
stops it by going away. What says neither runs to its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock

from cachetools import LRUCache

from dphmm.policy.progress import listening

__all__ = ["Job", "Jobs", "StoppedError", "begin", "step"]

KEPT = 64
"""Jobs that can be asked about; a page has a few at a time."""


class StoppedError(Exception):
    """Nobody waits for the answer any more."""


class Job:
    """One computation for one request."""

    def __init__(self) -> None:
        self.done = self.parts = 0
        self.share = 0.0
        self.is_stopped = False

    def stop(self) -> None:
        """Let the work end at its next step."""
        self.is_stopped = True

    def check(self) -> None:
        """End here if nobody waits."""
        if self.is_stopped:
            raise StoppedError

    def hear(self, share: float | None) -> None:
        """Keep how far the repair in the present part is, and go on if somebody waits."""
        if share is not None:
            self.parts, self.share = self.parts or 1, share
        self.check()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Make this the job whose steps are counted."""
        token = _NOW.set(self)
        try:
            self.check()
            with listening(self.hear):
                yield
        finally:
            _NOW.reset(token)


class Jobs:
    """The jobs that were begun lately, under the names that the page gave them."""

    def __init__(self) -> None:
        self._jobs: LRUCache[str, Job] = LRUCache(KEPT)
        self._lock = Lock()

    def begin(self, name: str | None) -> Job:
        """A new job, which can be asked about if it has a name."""
        job = Job()
        if name is not None:
            with self._lock:
                self._jobs[name] = job
        return job

    def describe(self, name: str) -> dict[str, float]:
        """How many parts are done, a begun one by its share; 0 of 0 where nobody knows."""
        with self._lock:
            job = self._jobs.get(name) or Job()
        return {"done": min(job.done + job.share, job.parts), "parts": job.parts}


_NOW: ContextVar[Job | None] = ContextVar("job", default=None)


def begin(parts: int) -> None:
    """Say how many parts the present work has."""
    job = _NOW.get()
    if job is not None:
        job.parts = parts


def step() -> None:
    """Say that a part is done, and go on if somebody waits."""
    job = _NOW.get()
    if job is not None:
        job.done, job.share = job.done + 1, 0.0
        job.check()

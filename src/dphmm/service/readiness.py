"""Whether the service can do its work: asked by a thread of its own, so that it never waits."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import Future, ThreadPoolExecutor

from dphmm.books import Store
from dphmm.errors import StoreError
from dphmm.service.committing import can_write

__all__ = ["Readiness"]

FRESH = 1.0
"""Seconds for which an answer holds, so that asking often costs nothing."""

PATIENCE = 3.0
"""Seconds after which a store that says nothing cannot be used."""


class Readiness:
    """Whether the store can be written and is where its anchor says."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="dphmm-ready")
        self._asked: Future[bool] | None = None
        self._since = 0.0

    async def is_ready(self) -> bool:
        """What the last look said, or a new one."""
        if self._asked is None or (self._asked.done() and time.monotonic() - self._since > FRESH):
            self._since = time.monotonic()
            self._asked = self._thread.submit(self._look)
        try:
            return await asyncio.wait_for(
                asyncio.shield(asyncio.wrap_future(self._asked)), PATIENCE
            )
        except TimeoutError:
            return False

    def _look(self) -> bool:
        try:
            self._store.check()
        except StoreError:
            return False
        return can_write(self._store)

    def close(self) -> None:
        """Look no more."""
        self._thread.shutdown(wait=False, cancel_futures=True)

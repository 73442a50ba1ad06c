"""Blocking work in threads, and releases that share one wait for the disk."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

from dphmm.books import Store
from dphmm.errors import NotFoundError, StoreError
from dphmm.noise.randomness import Randomness
from dphmm.release import engine
from dphmm.release.engine import Answered, Ask
from dphmm.service.access import RefusedError
from dphmm.service.settings import ServiceSettings

__all__ = ["GroupCommit", "Threads"]

TOGETHER = 64
"""How many releases share a commit."""

Waiting: TypeAlias = tuple[Ask, asyncio.Future[Answered]]


class Threads:
    """Threads for blocking work, with a limit on how much may wait."""

    def __init__(self, settings: ServiceSettings) -> None:
        self._threads = ThreadPoolExecutor(settings.threads, thread_name_prefix="dphmm")
        self._most = settings.threads + settings.waiting
        self._running = 0

    async def run(self, work: Callable[..., Any], *arguments: Any) -> Any:
        """The result of a call in a thread; refused if too many wait already."""
        if self._running >= self._most:
            raise RefusedError(503, "the service is busy; ask again in a second", retry_after=1)
        self._running += 1
        try:
            return await asyncio.wrap_future(self._threads.submit(work, *arguments))
        finally:
            self._running -= 1

    def close(self) -> None:
        """Finish what was begun."""
        self._threads.shutdown(wait=True)


class GroupCommit:
    """Requests that come while others are being written are answered together, next.

    SQLite has one writer, so one group at a time; PostgreSQL has as many as there are threads.
    """

    def __init__(
        self,
        store: Store,
        threads: Threads,
        settings: ServiceSettings,
        randomness: Randomness | None = None,
    ) -> None:
        self._store = store
        self._threads = threads
        self._randomness = randomness
        self._free = 1 if store.database.dialect == "sqlite" else settings.threads
        self._most = settings.waiting
        self._waiting: deque[Waiting] = deque()
        self._tasks: set[asyncio.Task[None]] = set()

    async def release(self, ask: Ask) -> Answered:
        """What came of an ask, once it is durable."""
        if len(self._waiting) >= self._most:
            raise RefusedError(503, "the service is busy; ask again in a second", retry_after=1)
        future: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()
        self._waiting.append((ask, future))
        if self._free:
            self._free -= 1
            task = asyncio.create_task(self._drive())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await future

    async def _drive(self) -> None:
        """Answer what waits, group after group."""
        try:
            while self._waiting:
                count = min(len(self._waiting), TOGETHER)
                await self._answer([self._waiting.popleft() for _ in range(count)])
        finally:
            self._free += 1

    async def _answer(self, group: list[Waiting]) -> None:
        results: Sequence[Answered | Exception]
        try:
            results = await self._threads.run(self._release, [ask for ask, _ in group])
        except Exception as fault:  # every one of them must hear of it
            results = [fault] * len(group)
        for (_, future), result in zip(group, results, strict=True):
            if future.done():  # its client is gone; the answer is stored and can be asked again
                continue
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)

    def _release(self, asks: list[Ask]) -> Sequence[Answered | Exception]:
        """The answers; a fault that is not the store's stays with the ask that it comes from."""
        try:
            return engine.release(self._store, asks, self._randomness)
        except Exception as fault:
            if isinstance(fault, StoreError) and not isinstance(fault, NotFoundError):
                raise
            if len(asks) == 1:
                return [fault]
        return [result for ask in asks for result in self._release([ask])]

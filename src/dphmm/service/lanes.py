"""Blocking work in threads, and releases that share one wait for the disk."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from dphmm.books import Answer, Request, Store
from dphmm.service.access import RefusedError
from dphmm.service.settings import ServiceSettings

__all__ = ["Lanes", "Pool"]

TOGETHER = {"sqlite": 64, "postgresql": 16}
"""How many releases share a commit; in PostgreSQL each keeps its person's row locked so long."""


class Pool:
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


class Lanes:
    """Requests that come while others are being written are answered together, next.

    SQLite has one writer, so one lane; PostgreSQL has as many as there are threads.
    """

    def __init__(self, store: Store, pool: Pool, settings: ServiceSettings) -> None:
        self._store = store
        self._pool = pool
        dialect = store.database.dialect
        self._free = 1 if dialect == "sqlite" else settings.threads
        self._together = TOGETHER[dialect]
        self._most = settings.waiting
        self._waiting: deque[tuple[Request, asyncio.Future[Answer]]] = deque()
        self._tasks: set[asyncio.Task[None]] = set()

    async def release(self, request: Request) -> Answer:
        """The answer, once it is durable."""
        if len(self._waiting) >= self._most:
            raise RefusedError(503, "the service is busy; ask again in a second", retry_after=1)
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, future))
        if self._free:
            self._free -= 1
            task = asyncio.create_task(self._drive())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await future

    async def _drive(self) -> None:
        """Answer what waits, batch after batch."""
        try:
            while self._waiting:
                count = min(len(self._waiting), self._together)
                batch = [self._waiting.popleft() for _ in range(count)]
                await self._answer(batch)
        finally:
            self._free += 1

    async def _answer(self, batch: list[tuple[Request, asyncio.Future[Answer]]]) -> None:
        results: list[Any]
        try:
            results = await self._pool.run(
                self._store.release_all, [request for request, _ in batch]
            )
        except Exception as fault:  # every one of them must hear of it
            results = [fault] * len(batch)
        for (_, future), result in zip(batch, results, strict=True):
            if future.done():  # its client is gone; the answer is stored and can be asked again
                continue
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)

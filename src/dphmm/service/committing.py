"""Blocking work in threads, and releases that share one wait for the disk."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeAlias

from dphmm.books import Store
from dphmm.errors import StoreError
from dphmm.noise.randomness import Randomness
from dphmm.release import engine
from dphmm.release.engine import Answered, Ask, LongWayError
from dphmm.service.access import RefusedError
from dphmm.service.settings import ServiceSettings

__all__ = ["GroupCommit", "Threads", "can_write"]

TOGETHER = 64
"""How many releases share a commit."""

SHORT = 1_000_000
"""How long the ways of all of them may be together: some hundredths of a second."""

Waiting: TypeAlias = tuple[Ask, asyncio.Future[Answered]]


class Threads:
    """Threads for blocking work that is short, with a limit on how much may wait.

    A single client may have half of what may wait.
    """

    def __init__(self, settings: ServiceSettings) -> None:
        self._threads = ThreadPoolExecutor(settings.threads, thread_name_prefix="dphmm")
        self._most = settings.threads + settings.waiting
        self._running: Counter[str] = Counter()

    async def run(self, client: str, work: Callable[..., Any], *arguments: Any) -> Any:
        """The result of a call in a thread; refused if too many wait already."""
        if self._running.total() >= self._most or 2 * self._running[client] >= self._most + 1:
            raise _busy()
        self._running[client] += 1
        try:
            return await asyncio.wrap_future(self._threads.submit(work, *arguments))
        finally:
            self._running[client] -= 1
            if not self._running[client]:
                del self._running[client]

    def close(self) -> None:
        """Finish what was begun."""
        self._threads.shutdown(wait=True)


class GroupCommit:
    """Requests that come while others are being written are answered together, next.

    Clients take turns, so that the requests of one do not wait behind all of another's. SQLite
    has one writer, so one group at a time; PostgreSQL has as many as there are threads.
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
        self._count = 0
        self._waiting: dict[str, deque[Waiting]] = {}
        """In the order in which clients have their turn."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def release(self, ask: Ask) -> Answered:
        """What came of an ask, once it is durable."""
        queue = self._waiting.setdefault(ask.client, deque())
        if self._count >= self._most or 2 * len(queue) >= self._most + 1:
            raise _busy()
        future: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()
        queue.append((ask, future))
        self._count += 1
        if self._free:
            self._free -= 1
            task = asyncio.create_task(self._drive())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return await future

    async def _drive(self) -> None:
        """Answer what waits, group after group."""
        try:
            while group := self._next():
                await self._answer(group)
        finally:
            self._free += 1

    def _next(self) -> list[Waiting]:
        """Requests of all clients in turn, of each person one."""
        group: list[Waiting] = []
        people: set[tuple[str, str]] = set()
        clients = deque(self._waiting)
        while clients and len(group) < TOGETHER:
            queue = self._waiting[client := clients.popleft()]
            name = (client, queue[0][0].people[0]) if queue else (client, "")
            if not queue or name in people:
                continue
            people.add(name)
            group.append(queue.popleft())
            clients.append(client)
        self._count -= len(group)
        # Who had no turn yet is first; who has nothing left is forgotten.
        order = [*clients, *(client for client in self._waiting if client not in clients)]
        self._waiting = {client: self._waiting[client] for client in order if self._waiting[client]}
        return group

    async def _answer(self, group: list[Waiting]) -> None:
        results: Sequence[Answered | Exception]
        try:
            results = await self._threads.run("", self._release, [ask for ask, _ in group])
        except Exception as fault:  # every one of them must hear of it
            results = [fault] * len(group)
        for (ask, future), result in zip(group, results, strict=True):
            if future.done():  # its client is gone; the answer is stored and can be asked again
                continue
            if isinstance(result, Answered) and _is_for_later(result):
                self._waiting.setdefault(ask.client, deque()).appendleft((ask, future))
                self._count += 1
                continue
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)

    def _release(self, asks: list[Ask]) -> Sequence[Answered | Exception]:
        """The answers; a fault stays with the ask that it comes from.

        What was committed for the others before a fault is found again as a repetition.
        """
        try:
            return list(engine.release(self._store, asks, self._randomness, most=SHORT))
        except Exception as fault:
            if len(asks) == 1:
                return [fault]
            if isinstance(fault, StoreError) and not can_write(self._store):
                return [fault] * len(asks)
        half = len(asks) // 2
        return [*self._release(asks[:half]), *self._release(asks[half:])]


def _is_for_later(answered: Answered) -> bool:
    """Whether an ask was only too long together with others: the next group has room for it."""
    fault = answered.faults.get(0)
    return isinstance(fault, LongWayError) and not fault.alone


def can_write(store: Store) -> bool:
    """Whether the store is there and takes what is written, which here changes nothing."""
    with suppress(StoreError), store.database.transaction() as transaction:
        transaction.rows("UPDATE facts SET value = value WHERE name = 'version'")
        return True
    return False


def _busy() -> RefusedError:
    return RefusedError(503, "the service is busy; ask again in a second", retry_after=1)

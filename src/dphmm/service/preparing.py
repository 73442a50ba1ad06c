"""A scenario that is being prepared is waited for by everybody who asks for it, once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from dphmm.service.access import RefusedError
from dphmm.service.handlers import Handlers

__all__ = ["Preparing"]


class Preparing:
    """Scenarios on their way from the store through a worker to where others wait.

    Args:
        handlers: Where they are kept.
        submit: Asks a worker for something, of a client.
        seconds: How long a request waits for one.
    """

    def __init__(
        self, handlers: Handlers, submit: Callable[..., Future[Any]], seconds: float
    ) -> None:
        self._handlers, self._submit, self._seconds = handlers, submit, seconds
        self._begun: dict[tuple[str, str], asyncio.Future[Any]] = {}

    async def is_small(self, client: str, digest: str) -> bool:
        """Whether a scenario is at hand here; a worker prepares it the first time."""
        if not self._handlers.is_known(client, digest):
            begun = self._begun.get((client, digest)) or self._begin(client, digest)
            try:
                # Whoever hangs up, or has waited enough, does not end it for the others.
                async with asyncio.timeout(self._seconds):
                    await asyncio.shield(begun)
            except TimeoutError:
                raise RefusedError(
                    503, "the scenario is being prepared; ask again in a second", 1
                ) from None
        return self._handlers.is_small(client, digest)

    def _begin(self, client: str, digest: str) -> asyncio.Future[Any]:
        name = (client, digest)
        begun = asyncio.wrap_future(self._submit(client, "load", client, digest))
        self._begun[name] = begun

        def finish(done: asyncio.Future[Any]) -> None:
            self._begun.pop(name, None)  # what failed is tried again by the next one
            if not done.cancelled() and done.exception() is None:
                self._handlers.keep(client, digest, done.result())

        begun.add_done_callback(finish)
        return begun

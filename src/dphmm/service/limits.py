"""How many, and how fast: token buckets for keys and addresses, and room for what they send."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from cachetools import LRUCache

__all__ = ["REMEMBERED", "Buckets", "Room"]

REMEMBERED = 10_000
"""Names that are remembered."""


class Buckets:
    """A bucket of tokens for every name: one second's worth may be used at once.

    >>> now = [0.0]
    >>> buckets = Buckets(2, clock=lambda: now[0])
    >>> [buckets.take("a") for _ in range(3)]
    [True, True, False]
    >>> now[0] = 0.5
    >>> buckets.take("a"), buckets.take("b")
    (True, True)
    """

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._most = max(1.0, rate)
        self._clock = clock
        self._held: LRUCache[str, tuple[float, float]] = LRUCache(REMEMBERED)

    def take(self, name: str) -> bool:
        """Whether there was a token left."""
        if self._rate <= 0:
            return True
        now = self._clock()
        tokens, before = self._held.get(name, (self._most, now))
        tokens = min(self._most, tokens + (now - before) * self._rate)
        self._held[name] = (tokens - 1 if tokens >= 1 else tokens, now)
        return tokens >= 1

    def left(self, name: str) -> bool:
        """Whether there is a token, without taking it."""
        tokens, before = self._held.get(name, (self._most, self._clock()))
        return self._rate <= 0 or tokens + (self._clock() - before) * self._rate >= 1


class Room:
    """Room for so many bytes of each name.

    >>> room = Room(3)
    >>> room.take("a", 2), room.take("a", 2), room.take("b", 2)
    (True, False, True)
    >>> room.give("a", 2)
    >>> room.take("a", 3)
    True
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: Counter[str] = Counter()

    def take(self, name: str, size: int) -> bool:
        """Whether there was room, which is then held."""
        if self._held[name] + size > self._most:
            return False
        self._held[name] += size
        return True

    def give(self, name: str, size: int) -> None:
        """Have what was held again."""
        self._held[name] -= size
        if not self._held[name]:
            del self._held[name]

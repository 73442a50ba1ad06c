"""How many people each client may have."""

from __future__ import annotations

import threading

from dphmm.books import Store
from dphmm.books.quotas import count_people
from dphmm.errors import TooLargeError

__all__ = ["Quota"]

SELDOM = 1000
"""New people between two counts: counting a million takes a while."""


class Quota:
    """Remembers how many people clients have; several servers may go a little beyond."""

    def __init__(self, store: Store, most: int) -> None:
        self._store, self._most = store, most
        self._guard = threading.Lock()
        self._left: dict[str, int] = {}
        """How many more may come before they are counted again."""

    def take(self, client: str) -> None:
        """Count one more person, or refuse."""
        with self._guard:
            left = self._left.get(client, 0)
        if left < 1:
            left = min(SELDOM, self._most - count_people(self._store, client))
        if left < 1:
            raise TooLargeError(
                f"people must be at most {self._most} for each client; ask the operator for more"
            )
        with self._guard:
            self._left[client] = left - 1

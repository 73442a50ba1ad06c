"""How many people each client may have."""

from __future__ import annotations

import threading

from dphmm.books import Store
from dphmm.books.quotas import count_people
from dphmm.errors import TooLargeError

__all__ = ["Quota"]

SELDOM = 1000
"""New people between two counts: counting a million takes a while."""


SHARE = 64
"""How many processes may count on the same room."""


class Quota:
    """Remembers how many people clients have.

    Each of several processes takes a part of what is left, so that together they stay within it;
    each may go beyond by one, if they count at the same moment.
    """

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
            room = self._most - count_people(self._store, client)
            left = min(SELDOM, max(room // SHARE, min(room, 1)))
        if left < 1:
            raise TooLargeError(
                f"people must be at most {self._most} for each client; ask the operator for more"
            )
        with self._guard:
            self._left[client] = left - 1

"""Watch a store that has an anchor: nothing is shown that might still be taken back.

The order of a release is commit, anchor, speak. What was committed and is not anchored has not
left, and never does if the store is put back then: the moment gets another answer.
"""

from __future__ import annotations

from dphmm.books.anchors import open_anchor
from dphmm.books.rows import Person, find_facts
from dphmm.books.sealing import Roots
from dphmm.books.tailing import News, StoreTail
from dphmm.books.witness import Witness

__all__ = ["AnchoredTail"]

TRIES = 5
"""How often one look tries to find a store between two commits."""


class AnchoredTail(StoreTail):
    """The answers of a store as its anchor comes to know of them.

    Args:
        address: The file of an SQLite store, or the address of one on PostgreSQL.
        anchor: Where its roots are kept, if it has an anchor; it is only read.
    """

    def __init__(self, address: str, anchor: str | None = None) -> None:
        super().__init__(address)
        with self._database.transaction(write=False) as transaction:
            facts = find_facts(transaction)
        self._witness = Witness(self.name, facts, None if anchor is None else open_anchor(anchor))
        self._people: list[Person] = []
        self._unread = 0

    def more(self, most: int) -> News:
        """What was said since the last time, or nothing if something is on its way to the anchor.

        The store must be the same before and after it is read, and each of its roots be the
        anchor's then: so it was just that which was read, and it was anchored.
        """
        for _ in range(TRIES):
            read, last = self._read.copy(), self._last.copy()
            anchored, roots = self._look()
            found = super().more(most)
            later, again = self._look()
            if roots == again and all(
                root in (anchored.get(number), later.get(number)) for number, root in roots.items()
            ):
                self._people, self._unread = found.people, found.unread
                return found
            self._read, self._last = read, last
        return News([], self._people, self._unread)

    def _look(self) -> tuple[Roots, Roots]:
        """The roots of the anchor and of the store; refused if it may not answer."""
        anchored = self._witness.look()
        with self._database.transaction(write=False) as transaction:
            _, roots = self._witness.check(transaction, anchored)
        return anchored, roots

    def close(self) -> None:
        """Close all connections."""
        super().close()
        if self._witness.anchor is not None:
            self._witness.anchor.close()

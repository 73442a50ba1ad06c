"""Whether a store is where it was: by what this process has seen of it, and by its anchor.

The order is commit, anchor, speak. So the anchor is read first and the roots after it: they are
behind only in a store that has lost something.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from secrets import token_hex

from dphmm.books.anchors import Anchor, Anchored, recovered
from dphmm.books.database import Transaction
from dphmm.books.rows import find_facts, set_fact
from dphmm.books.schema import VERSION
from dphmm.books.sealing import Root, Roots, find_roots
from dphmm.errors import StoreError

__all__ = ["Witness"]


class Witness:
    """What a process knows of a store's past.

    Args:
        name: What messages call the store.
        facts: What is written of the store as a whole.
        anchor: Where its roots are kept outside of it, if anywhere.
    """

    def __init__(self, name: str, facts: Mapping[str, str], anchor: Anchor | None = None) -> None:
        self.anchor = anchor
        self.store, self.epoch = facts["store"], facts["epoch"]
        self.closed: Mapping[str, int] = json.loads(facts.get("closed", "{}"))
        """Of each unit of time the instant before which nothing is answered since a recovery."""
        self._name = name
        self._needs_anchor = "anchored" in facts
        self._checked: dict[str, str] = {}
        """The facts that were found to be right when they were last looked at."""
        self._seen: dict[int, int] = {}
        """How many commits of each root there have been, at least."""
        self._lifted: dict[int, int] = {}
        """How many of them the anchor knows of, at least."""

    def look(self) -> Roots:
        """Read the anchor; refused if the store needs one and this is not it.

        Gives the roots that whoever reads the store from now on must find, or later ones.
        """
        if self.anchor is None:
            if self._needs_anchor:
                raise StoreError(
                    f"the store {self._name} has an anchor and cannot be used without it; name "
                    f"it with --anchor"
                )
            return {}
        anchored = self.anchor.read(self.store)
        if anchored is None:
            raise StoreError(
                f"the anchor does not know the store {self._name}; name the one that it had, or, "
                f"if that is lost: dphmm store recover"
            )
        if anchored.epoch != self.epoch:
            raise recovered(self._name)
        for number, root in anchored.roots.items():
            self._raise(self._seen, number, root.commits)
            self._raise(self._lifted, number, root.commits)
        return anchored.roots

    def expect(self) -> Roots:
        """The same from memory; of a root that the anchor was not read for the hash is empty."""
        if self.anchor is None:
            return {}
        return {number: Root(count, "") for number, count in self._seen.copy().items()}

    def check(
        self, transaction: Transaction, expected: Roots, *, writing: bool = False
    ) -> dict[str, str]:
        """Refuse a store that has gone back, or that is another's by now; gives its facts.

        What is expected must have been asked before the transaction began.
        """
        facts = find_facts(transaction, writing=writing)
        if facts != self._checked:
            self._check_facts(facts)
            self._checked = facts
        if self.anchor is not None:
            self._check_roots(find_roots(transaction), expected)
        return facts

    def _check_facts(self, facts: Mapping[str, str]) -> None:
        if facts.get("version") != str(VERSION):
            raise StoreError(
                f"the store {self._name} was brought to version {facts.get('version')} meanwhile, "
                f"this dphmm knows {VERSION}; start it again with a newer one"
            )
        if "restored" in facts:
            raise StoreError(
                f"the store {self._name} was restored from a backup and does not know what was "
                f"said since; nothing is answered until: dphmm store recover"
            )
        if facts["epoch"] != self.epoch or ("anchored" in facts and self.anchor is None):
            raise StoreError(
                f"the store {self._name} was recovered or anchored meanwhile; start again"
            )

    def _check_roots(self, roots: Roots, expected: Roots) -> None:
        for number, root in expected.items():
            found = roots.get(number, Root(0, ""))
            if found.commits < root.commits:
                raise self.behind()
            if found.commits == root.commits and root.value not in ("", found.value):
                raise StoreError(f"the store {self._name} is not the one of its anchor, or altered")

    def behind(self) -> StoreError:
        """What is said of a store that has lost something."""
        kept = "its anchor" if self.anchor else "what this server has seen of it"
        return StoreError(
            f"the store {self._name} is behind {kept}: it is an old copy or has lost its end, and "
            f"would answer again what was answered; nothing is said until: dphmm store recover"
        )

    def check_next(self, number: int, root: Root) -> None:
        """Refuse a commit that comes after one that was lost."""
        if root.commits <= self._seen.get(number, 0):
            raise self.behind()

    def settle(self, roots: Roots) -> None:
        """Remember roots that are durable, and let the anchor know of them before anybody else."""
        for number, root in roots.items():
            self._raise(self._seen, number, root.commits)
        later = {n: root for n, root in roots.items() if root.commits > self._lifted.get(n, 0)}
        if self.anchor is None or not later:
            return
        self.anchor.lift(self.store, self.epoch, later)
        for number, root in later.items():
            self._raise(self._lifted, number, root.commits)

    def begin_epoch(self, transaction: Transaction) -> Roots:
        """Let other copies be of the past; gives the roots that the anchor begins with."""
        self.epoch, self._needs_anchor = token_hex(16), self.anchor is not None
        self._checked = {}
        set_fact(transaction, "epoch", self.epoch)
        set_fact(transaction, "anchored", "1" if self._needs_anchor else None)
        roots = find_roots(transaction)
        self._seen, self._lifted = {n: root.commits for n, root in roots.items()}, {}
        return roots

    def anchor_first(self, roots: Roots) -> None:
        """Make the anchor this store's, as it was when its epoch began."""
        if self.anchor is not None:
            self.anchor.replace(Anchored(self.store, self.epoch, roots))

    @staticmethod
    def _raise(counts: dict[int, int], number: int, count: int) -> None:
        counts[number] = max(count, counts.get(number, 0))

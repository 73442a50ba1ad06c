"""Whether a store is where it was: by what this process has seen of it, and by its anchor.

The order is commit, anchor, speak. So the anchor is read first and the roots after it: they are
behind only in a store that has lost something.

Nothing is committed on a root before the anchor has it. So the anchor has had every root but the
last one of each number, and never two of one count: a copy that goes on by itself is found out at
its first commit, however many are under way.

What is said was read or written in one transaction, and its roots are compared with the anchor's.
Where the anchor is further by then, the store must have that, too, and those roots in its past: it
may have been put back meanwhile and have gone on from there without them. So it is for whatever is
reported as done, an answer, an erasure or a key: nobody looks at what a commit was about.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from secrets import token_hex

from dphmm.books.anchors import Anchor, Anchored, recovered
from dphmm.books.database import Transaction
from dphmm.books.rows import find_facts, set_fact
from dphmm.books.schema import VERSION
from dphmm.books.sealing import NO_ROOT, Root, Roots, find_roots
from dphmm.errors import StoreError

__all__ = ["Witness"]

NOTED = 64
"""Commits of each root that a process remembers."""


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
        self._shared: dict[int, Root] = {}
        """The latest root of each number that the store and its anchor were found to share."""
        self._ours: dict[int, deque[Root]] = {}
        """The roots that this store had of late, by number."""

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
        return anchored.roots

    def expect(self) -> Roots:
        """The same from memory; of a root that the anchor was not read for the hash is empty."""
        if self.anchor is None:
            return {}
        return {number: Root(count, "") for number, count in self._seen.copy().items()}

    def check(
        self, transaction: Transaction, expected: Roots, *, writing: bool = False
    ) -> tuple[dict[str, str], Roots]:
        """Refuse a store that has gone back, or that is another's by now; gives facts and roots.

        What is expected must have been asked before the transaction began. Without an anchor the
        roots are not looked at.
        """
        facts = find_facts(transaction, writing=writing)
        if facts != self._checked:
            self._check_facts(facts)
            self._checked = facts
        roots = find_roots(transaction) if self.anchor is not None else {}
        self._check_roots(roots, expected)
        return facts, roots

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
        for number, root in roots.items():
            self._note(number, root)
        for number, root in expected.items():
            found = roots.get(number, NO_ROOT)
            if found.commits < root.commits:
                raise self.behind()
            if root.value:
                self._check_ours(number, root)
                if found.follows(root) is False:
                    raise self._stranger()
        self._share({number: root for number, root in expected.items() if root.value})

    def _share(self, roots: Roots) -> None:
        """Remember what the anchor has and the store, all of it, too."""
        for number, root in roots.items():
            if root.commits > self._shared.get(number, NO_ROOT).commits:
                self._shared[number] = root

    def _note(self, number: int, root: Root) -> None:
        """Remember that this store had a root; refused if it had another of the same count."""
        self._check_ours(number, root)
        ours = self._ours.setdefault(number, deque(maxlen=NOTED))
        if root.commits and root not in ours.copy():
            ours.append(Root(*root))

    def _check_ours(self, number: int, root: Root) -> None:
        """Refuse another root than this store had of the same count."""
        ours = self._ours.get(number, deque()).copy()
        if root.commits and any(one.commits == root.commits and one != root for one in ours):
            raise self._stranger()

    def behind(self) -> StoreError:
        """What is said of a store that has lost something."""
        kept = "its anchor" if self.anchor else "what this server has seen of it"
        return StoreError(
            f"the store {self._name} is behind {kept}: it is an old copy or has lost its end, and "
            f"would answer again what was answered; nothing is said until: dphmm store recover"
        )

    def check_passed(self, roots: Roots, later: Roots) -> None:
        """Refuse to say what some roots stand for, if a store has gone on later without them."""
        for number, root in roots.items():
            follows = later.get(number, NO_ROOT).follows(root)
            if follows is None:
                raise StoreError(
                    f"the store {self._name} has gone on too far meanwhile to tell whether what "
                    f"was asked for is in it; ask again"
                )
            if not follows:
                raise self.behind()

    def check_next(self, number: int, before: Root, root: Root) -> None:
        """Refuse a commit that comes after one that was lost, or after one of a copy.

        Nobody else of this store can go on from the root before, as long as its row is locked.
        """
        if root.commits <= self._seen.get(number, 0):
            raise self.behind()
        if self.anchor is None or not before.commits or before == self._shared.get(number):
            return
        # Of another process, which has not come to it yet, or never will.
        self._note(number, before)
        if self._lift(self.anchor, {number: before})[number] != before:
            raise self.behind()

    def settle(self, roots: Roots, changed: int | None = None) -> Roots:
        """Let the anchor know of what is durable, before anybody else.

        Gives nothing if it may be said, or all that the anchor has by now, which the store must
        have, too.

        Args:
            roots: Those of the store, as the transaction saw or left them.
            changed: The one that it left; without, it has only read.
        """
        for number, root in roots.items():
            self._raise(self._seen, number, root.commits)
        if self.anchor is None:
            return {}
        later = {n: root for n, root in roots.items() if root != self._shared.get(n)}
        if changed is not None:
            later = {changed: roots[changed]}
        if not later:
            return {}
        for number, root in later.items():
            self._note(number, root)
        known = self._lift(self.anchor, later)
        if any(root.commits > roots.get(n, NO_ROOT).commits for n, root in known.items()):
            return known
        self._share(known)
        return {}

    def _lift(self, anchor: Anchor, roots: Roots) -> Roots:
        """Let the anchor go on from what this store had; gives all roots that it knows then."""

        def judge(number: int, anchored: Root) -> None:
            self._check_ours(number, anchored)
            ours = roots[number]
            is_last = anchored.commits >= ours.commits - 1
            is_past = anchored.commits >= ours.commits or ours.follows(anchored) is not False
            if not is_past or not (is_last or anchored in self._ours[number].copy()):
                raise self._stranger()

        known = anchor.lift(self.store, self.epoch, roots, judge)
        for number, root in known.items():
            self._check_ours(number, root)
        return known

    def _stranger(self) -> StoreError:
        return StoreError(
            f"the store {self._name} is not the one of its anchor, or altered, or the anchor is an "
            f"old copy, two commits behind or more; nothing is said until: dphmm store recover"
        )

    def begin_epoch(self, transaction: Transaction) -> Roots:
        """Let other copies be of the past; gives the roots that the anchor begins with."""
        self.epoch, self._needs_anchor = token_hex(16), self.anchor is not None
        self._checked = {}
        set_fact(transaction, "epoch", self.epoch)
        set_fact(transaction, "anchored", "1" if self._needs_anchor else None)
        roots = find_roots(transaction)
        self._seen = {n: root.commits for n, root in roots.items()}
        self._shared, self._ours = {}, {}
        return roots

    def anchor_first(self, roots: Roots) -> None:
        """Make the anchor this store's, as it was when its epoch began."""
        if self.anchor is not None:
            self.anchor.replace(Anchored(self.store, self.epoch, roots))

    @staticmethod
    def _raise(counts: dict[int, int], number: int, count: int) -> None:
        counts[number] = max(count, counts.get(number, 0))

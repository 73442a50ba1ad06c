"""Named, recorded changes of a book: another law is adopted, another key takes over.

Neither opens a second answer: slots that were answered stay answered, what was spent stays
spent, and a key never serves a slot that the one before it could have served.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from dphmm._types import Mask
from dphmm.books.journal import Journal
from dphmm.books.memory import MemoryBook
from dphmm.books.store import Store
from dphmm.chain.anywhere import ANYWHERE
from dphmm.chain.belief import Belief
from dphmm.chain.stochastic import SAFE_PROBABILITY
from dphmm.errors import ArgumentError, DataError, DphmmError, MovedError
from dphmm.noise.randomness import Randomness
from dphmm.release.admission import check_fit
from dphmm.release.book import KeyInUse, fingerprint_of
from dphmm.release.moment import Line
from dphmm.release.standing import Standing
from dphmm.release.terms import Terms

__all__ = ["adopt_terms", "open_book", "rotate_key"]

LOOKED_BACK = 10_000
"""Steps for which a new model's moves are followed; whoever began before may be anywhere then."""


def open_book(
    place: str, *, secret: bytes | None = None, anchor: str | None = None
) -> Journal | Store:
    """The ledger file or the store at a place, which must be there."""
    path = Path(place)
    if "://" not in place:
        if not path.is_file():
            raise DataError(f"{place}: ledger must be a file or a store, got none of that name")
        with path.open("rb") as file:
            is_database = file.read(16).startswith(b"SQLite format 3")
        if not is_database:
            return Journal(path)
    return Store.open(place, create=False, secret=secret, anchor=anchor)


def adopt_terms(
    book: MemoryBook | Store,
    terms: Terms,
    *,
    same_states: bool,
    client: str | None = None,
    person: str | None = None,
) -> Iterator[Line]:
    """Let people who stand under another law go on under this one; gives those who do.

    With the `same_states` what is believed about them is carried over, but that what only the new
    model calls possible becomes so. Without, the states are others, and the new start is taken to
    be known at their latest slot.

    Whoever cannot go on stays as they are; in the end it is said why, after all others have gone.
    """
    led: dict[tuple[int, int, bool], Mask] = {}
    adopted, faults = 0, dict[Line, DphmmError]()
    for line in book.lines():
        if line.query != terms.query or client not in (None, line.client):
            continue
        if person not in (None, line.person):
            continue
        while True:
            is_new = False
            try:
                is_new = _adopt(book, line, terms, same_states, led)
                break
            except MovedError:  # answered, or erased, by a server meanwhile
                continue
            except (ArgumentError, DataError) as fault:
                faults[line] = fault
                break
        if is_new:
            adopted += 1
            yield line
    if faults:
        raise _all_faults(faults, adopted)


def _all_faults(faults: dict[Line, DphmmError], adopted: int) -> DphmmError:
    """Why people could not go on, with how many did; one person's own fault where there is one."""
    first, *others = faults.values()
    if not others and not adopted:
        return first
    line = next(iter(faults))
    who = f"{line.client}/{line.person}" if line.client else line.person
    kind = DataError if isinstance(first, DataError) else ArgumentError
    return kind(
        f"{first} ({len(faults)} people stay as they were, the first is {who!r}; {adopted} go on)"
    )


def _adopt(
    book: MemoryBook | Store,
    line: Line,
    terms: Terms,
    same_states: bool,
    led: dict[tuple[int, int, bool], Mask],
) -> bool:
    """Let a line go on under a law; whether it stood somewhere, and under another."""
    (place,) = book.places([line])
    standing = place.standing
    if standing is None or standing.law == terms.law:
        return False
    check_fit(place, terms.clock, terms.plane)
    if book.unsaid(line, standing.time):
        raise DataError(
            "ledger must have been closed by its last run, got one that was killed; run that "
            "once more under the scenario as it was, then adopt the new one"
        )
    again = book.adopted(line) is not None
    book.adopt(_under(standing, terms, same_states, again, led))
    return True


def _under(
    standing: Standing,
    terms: Terms,
    same_states: bool,
    again: bool,
    led: dict[tuple[int, int, bool], Mask],
) -> Standing:
    if not same_states:
        return replace(standing, law=terms.law, belief=terms.start)
    if standing.belief.n_states != terms.model.n_states:
        raise ArgumentError(
            f"scenario must have the {standing.belief.n_states} states of the answers to keep "
            f"what is believed, got {terms.model.n_states}"
        )
    belief = standing.belief
    if not belief.possible.all():
        about = standing.began, standing.time, again
        if about not in led:
            led[about] = _reached(terms, *about)
        belief = _widened(belief, led[about])
    return replace(standing, law=terms.law, belief=belief)


def _reached(terms: Terms, began: int, time: int, again: bool) -> Mask:
    """What a model calls possible by a time, if its start was known when somebody began.

    Where a law was adopted before, `again`, its states may have been others, and the start was
    known then: at some step since they began.
    """
    first = max(began, time - LOOKED_BACK)
    possible = terms.start.possible
    if first > began:
        possible = np.ones_like(possible)
    for step in range(first + 1, time + 1):
        before, possible = possible, terms.model.reach(possible, step)
        if again:
            possible = possible | terms.start.possible
        if not terms.model.varies and (possible == before).all():
            break
    return possible


def _widened(belief: Belief, possible: Mask) -> Belief:
    """A belief that calls nothing impossible that is possible.

    The model before may have stated that nobody is there. The promises of the new one are for
    people who move as it says, so noise must be made for whoever did so all along.
    """
    missing = possible & ~belief.possible
    if not missing.any():
        return belief
    weights = np.where(belief.possible, np.maximum(belief.probabilities, SAFE_PROBABILITY), 0.0)
    weights = (1 - ANYWHERE) * weights / weights.sum() + ANYWHERE * missing / missing.sum()
    return Belief.from_probabilities(weights)


def rotate_key(book: MemoryBook | Store, randomness: Randomness | None) -> KeyInUse:
    """Let another key serve from the slot after the latest answer on; earlier ones are closed.

    Slots of two clocks are not the same times, so each clock has its own first one.
    """
    fingerprint = fingerprint_of(randomness)

    def make(before: KeyInUse | None, latest: dict[str, int]) -> KeyInUse:
        if before is None:
            raise ArgumentError("book must hold an answer to have a key to rotate, got none")
        if before.fingerprint == fingerprint:
            raise ArgumentError("key must be another than the present one, got the same")
        if not latest:  # it was written down by somebody who was stopped before a first answer
            return replace(before, fingerprint=fingerprint)
        firsts = dict(before.clocks)
        for clock, last in sorted(latest.items()):
            firsts[clock] = max(last + 1, firsts.get(clock, last + 1))
        return KeyInUse(fingerprint, max(firsts.values()), rotated=True, clocks=firsts)

    return book.rotate(make)

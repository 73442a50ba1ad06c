"""Where a person's releases stand: all that is needed to go on, and nothing that is secret.

A `Stream` or a `Batch` is made from standings and gives them back; books keep them. As bytes a
standing has a version and a checksum, so that a damaged one is refused and never used.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import inf

import numpy as np

from dphmm.chain.belief import Belief
from dphmm.cost.totals import add_up
from dphmm.errors import ArgumentError, DataError, expect
from dphmm.geometry.exact import whole
from dphmm.release.moment import Line

__all__ = ["Standing", "check_law", "shared_by"]

MAGIC = b"dphmm standing 2\n"
OLDER = b"dphmm standing 1\n"
"""What was written before limits had windows, and before schedules, is read, too."""
CHECKSUM = 16
_HEAD = struct.Struct("<I")
_quote = json.encoder.encode_basestring_ascii


@dataclass(frozen=True, eq=False)
class Standing:
    """Where one person's releases are; every field may be shown to anybody.

    Args:
        line: Whose releases, and which question they answer.
        law: The fingerprint of everything public that shaped them.
        began: The slot at which the start was known; the first release was a step later.
        time: The slot of the latest step.
        belief: What everybody can believe after it.
        spent: The sum of every epsilon on this line.
        constrained: The same for the worst pair of possible states (Theorem 6.3).
        answered: The names of the questions that were answered at `time`.
        spoke: The slot of the last answer on this line; None before the first.
        clock: How time was cut into slots; the same slot of another clock is another time.
        recent: The priced slots that a limit's window may still hold, in order; together they
            are all that was spent, so the first stands for what came before it, too.
        plane: The map's centre, from which metres become degrees, empty for a map without
            degrees; None where nobody has kept it.
    """

    line: Line
    law: bytes
    began: int
    time: int
    belief: Belief
    spent: Fraction = Fraction(0)
    constrained: Fraction | float = Fraction(0)
    answered: tuple[str, ...] = ()
    spoke: int | None = None
    clock: str = ""
    recent: tuple[tuple[int, Fraction], ...] = ()
    plane: str | None = None

    def __post_init__(self) -> None:
        if self.spent and not self.recent:
            # Nobody has kept when it was: at the latest slot it counts longest.
            object.__setattr__(self, "recent", ((self.time, self.spent),))

    def remember(self, pairs: Iterable[tuple[int, Fraction]], width: int) -> Standing:
        """The same standing, with what windows of a width may hold at the next slot.

        Args:
            pairs: Slots and prices, of which none is missing that such a window may hold.
            width: The steps of the widest window; 0 if there is none.
        """
        width = whole(width, "width")
        if not width:
            return self
        expect(pairs, Iterable, "pairs")
        kept: dict[int, Fraction] = {}
        last = self.time + 1 - width
        for pair in pairs:
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise ArgumentError("pairs must be tuples of a slot and a price")
            slot, price = whole(pair[0], "pairs", None), pair[1]
            expect(price, Fraction, "each price of pairs")
            if slot > last and price:
                kept[slot] = kept[slot] + price if slot in kept else price
        before = self.spent - add_up(kept.values())
        first = ((last, before),) if before else ()
        return replace(self, recent=(*first, *sorted(kept.items())))

    def __repr__(self) -> str:
        return f"Standing({self.line.person!r}, time={self.time}, {float(self.spent):g} spent)"

    def to_bytes(self) -> bytes:
        """The standing as bytes; probabilities only of the possible states."""
        possible, probabilities, wide = self.belief.arrays()
        # JSON, written by hand: this runs for every answer, and a writer of anything is slow.
        runs = ", ".join(f'[{a}, {b}, {c}, "{price}"]' for a, b, c, price in _runs(self.recent))
        head = (
            f'{{"line": [{", ".join(map(_quote, self.line))}], "law": "{self.law.hex()}", '
            f'"began": {self.began}, "time": {self.time}, "spent": "{self.spent}", '
            f'"constrained": "{self.constrained}", '
            f'"answered": [{", ".join(map(_quote, self.answered))}], '
            f'"spoke": {"null" if self.spoke is None else self.spoke}, '
            f'"clock": {_quote(self.clock)}, "recent": [{runs}], '
            f'"plane": {"null" if self.plane is None else _quote(self.plane)}, '
            f'"states": {len(possible)}, "wide": {"false" if wide is None else "true"}}}'
        ).encode()
        parts = [MAGIC, _HEAD.pack(len(head)), head, np.packbits(possible).tobytes()]
        parts.append(probabilities[possible].astype("<f8", copy=False).tobytes())
        if wide is not None:
            parts.append(wide[:, possible].astype("<f8").tobytes())
        content = b"".join(parts)
        return content + hashlib.blake2b(content, digest_size=CHECKSUM).digest()

    @classmethod
    def from_bytes(cls, data: bytes) -> Standing:
        """The standing of bytes that `to_bytes` made, the same to the last bit.

        Args:
            data: What `to_bytes` gave; anything else is refused.
        """
        expect(data, bytes, "data")
        content, check = data[:-CHECKSUM], data[-CHECKSUM:]
        if not content.startswith((MAGIC, OLDER)):
            raise DataError("standing must be one that this version of dphmm wrote, got another")
        if hashlib.blake2b(content, digest_size=CHECKSUM).digest() != check:
            raise DataError("standing must be as it was written, got damaged bytes")
        (size,) = _HEAD.unpack_from(content, len(MAGIC))
        head = len(MAGIC) + _HEAD.size
        facts = json.loads(content[head : head + size])
        states, at = facts["states"], head + size
        mask = np.frombuffer(content, np.uint8, -(-states // 8), at)
        possible = np.unpackbits(mask, count=states).astype(bool)
        count, at = int(possible.sum()), at + len(mask)
        probabilities = np.zeros(states)
        probabilities[possible] = np.frombuffer(content, "<f8", count, at)
        wide = None
        if facts["wide"]:
            wider = np.frombuffer(content, "<f8", 2 * count, at + 8 * count)
            wide = np.stack([np.zeros(states), np.full(states, inf)])
            wide[:, possible] = wider.reshape(2, -1)
        cost = facts["constrained"]
        return cls(
            line=Line(*facts["line"]),
            law=bytes.fromhex(facts["law"]),
            began=facts["began"],
            time=facts["time"],
            belief=Belief(possible, probabilities, wide),
            spent=Fraction(facts["spent"]),
            constrained=inf if cost == "inf" else Fraction(cost),
            answered=tuple(facts["answered"]),
            spoke=facts.get("spoke"),
            clock=facts["clock"],
            recent=_pairs(facts.get("recent", ())),
            plane=facts.get("plane"),
        )


def _runs(pairs: Sequence[tuple[int, Fraction]]) -> list[tuple[int, int, int, str]]:
    """Slots and prices as few runs: first slot, distance to the next, how many, the price."""
    runs: list[tuple[int, int, int, str]] = []
    for slot, price in pairs:
        text = str(price)
        if runs and runs[-1][3] == text:
            first, step, count, _ = runs[-1]
            if count == 1 or slot == first + step * count:
                runs[-1] = (first, slot - first if count == 1 else step, count + 1, text)
                continue
        runs.append((slot, 0, 1, text))
    return runs


def _pairs(runs: Sequence[tuple[int, int, int, str]]) -> tuple[tuple[int, Fraction], ...]:
    pairs: list[tuple[int, Fraction]] = []
    for first, step, count, text in runs:
        price = Fraction(text)
        pairs += ((first + step * number, price) for number in range(count))
    return tuple(pairs)


def check_law(standing: Standing, law: bytes, n_states: int) -> None:
    """Refuse to go on under a law, or with a chain, that is not a standing's."""
    if standing.belief.n_states != n_states:
        raise ArgumentError(
            f"standing must have the {n_states} states of the model, got {standing.belief.n_states}"
        )
    if standing.law and standing.law != law:
        raise ArgumentError("standing must be of the stream's law, got another's; adopt it")


def shared_by(standings: Sequence[Standing], law: bytes) -> tuple[str, str, str | None]:
    """The client, the clock and the plane of people who go on together; refused if they differ."""
    laws = {standing.law for standing in standings if standing.law}
    clients = {standing.line.client for standing in standings}
    frames = {(standing.clock, standing.plane) for standing in standings}
    if max(len(laws), len(clients), len(frames)) > 1:
        raise ArgumentError("standings must be of one client, law, clock and map, got several")
    if laws - {law}:
        raise ArgumentError("law must be that of the standings, got another")
    return clients.pop() if clients else "", *(frames.pop() if frames else ("", None))

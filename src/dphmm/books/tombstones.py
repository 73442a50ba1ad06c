"""What stays of an erased person: enough not to answer twice, too little to say who it was."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from dphmm.books.database import Row, Transaction

__all__ = ["Tombstone", "tombstone_name", "tombstones_of"]


@dataclass(frozen=True)
class Tombstone:
    """For each scenario the last time and the epsilon spent."""

    scenarios: Mapping[str, tuple[int, Fraction]] = field(default_factory=dict)

    @property
    def spent(self) -> Fraction:
        """What was spent in all."""
        return sum((spent for _, spent in self.scenarios.values()), start=Fraction(0))

    def merged(self, times: Mapping[str, int], costs: Iterable[Row]) -> Tombstone:
        """The tombstone after the person came back, lived on and was erased again."""
        scenarios = dict(self.scenarios)
        for scenario, time in times.items():
            before, spent = scenarios.get(scenario, (0, Fraction(0)))
            scenarios[scenario] = (max(before, time), spent)
        for scenario, epsilon in costs:
            time, spent = scenarios[scenario]
            scenarios[scenario] = (time, spent + Fraction(epsilon))
        return Tombstone(scenarios)


def tombstone_name(secret: bytes, name: str) -> str:
    """A keyed hash of the identity: without the secret nobody can try out names."""
    return hmac.new(secret, name.encode(), hashlib.sha256).hexdigest()


def tombstones_of(transaction: Transaction, hashed: str) -> Tombstone:
    """What is known of an erased person; nothing for anybody else."""
    rows = transaction.rows(
        "SELECT scenario, time, spent FROM tombstones WHERE person = ?", (hashed,)
    )
    return Tombstone({scenario: (time, Fraction(spent)) for scenario, time, spent in rows})

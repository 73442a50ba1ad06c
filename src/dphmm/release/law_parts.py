"""The law that answers follow as a short text, part by part, to see which part another has.

A table of answers carries it in every row. It tells two scenarios apart and is no secret; what
separates noise and decides in books is the whole law (`law_of`).
"""

from __future__ import annotations

import hashlib

from dphmm.chain.belief import Belief
from dphmm.chain.markov import Chain
from dphmm.noise.randomness import encoded
from dphmm.policy.plan import Plan
from dphmm.release.moment import start_parts
from dphmm.release.schedule import Schedule

__all__ = ["differing_parts", "law_by_parts"]

PARTS = (
    *("model", "start", "query or its lattice", "policy"),
    *("mechanism, shape or gamma", "repair, full_rank or delta", "time step", "schedule"),
)
"""What a part is about, in the order in which they are written; epsilon has its own column."""

LENGTH = 6
"""Hexadecimal digits of a part: another one is the same by chance once in 16 million."""


def law_by_parts(
    model: Chain, plan: Plan, start: Belief, clock: str, schedule: Schedule | None
) -> str:
    """The fingerprints of the parts of a law, joined by dots."""
    parts = (
        (model.digest,),
        start_parts(start),
        (plan.query.digest,),
        (plan.policy.digest,),
        _texts(plan.mechanism, plan.shape, plan.gamma),
        _texts(plan.repair, plan.full_rank, plan.delta),
        _texts(clock),
        _texts("" if schedule is None else schedule.law),
    )
    return ".".join(hashlib.sha256(encoded(part)).hexdigest()[:LENGTH] for part in parts)


def differing_parts(law: str, other: str) -> list[str]:
    """The names of what differs between two laws; of a text that is none "law"."""
    ours, theirs = law.split("."), other.split(".")
    if len(ours) != len(theirs):
        return ["law"]
    pairs = zip(PARTS, ours, theirs, strict=True)
    return [name for name, one, another in pairs if one != another]


def _texts(*facts: object) -> tuple[bytes, ...]:
    return tuple(str(fact).encode() for fact in facts)

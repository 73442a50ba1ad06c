"""The one name of a moment, and what keyed noise is made from.

A moment is a client's person at a slot of the clock, asked one question. In one book it has
one answer and one price, whatever the policy, the model or epsilon have become meanwhile.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np

from dphmm.chain.belief import Belief
from dphmm.chain.markov import Chain
from dphmm.errors import ArgumentError, expect
from dphmm.geometry.exact import whole
from dphmm.noise.randomness import Randomness, encoded
from dphmm.policy.plan import Plan

__all__ = ["Line", "Moment", "law_of", "moment_bytes"]

LAW = b"dphmm law 1"
LONGEST_NAME = 200


class Line(NamedTuple):
    """One question about one person of one client, over time."""

    client: str
    person: str
    query: str


class Moment(NamedTuple):
    """What is answered once: one question about one person at one slot of the clock."""

    client: str
    person: str
    time: int
    query: str


def moment_bytes(client: str, person: str, time: int, query: str) -> bytes:
    """A moment as keyed noise reads it: four fields in this order, each behind its length.

    >>> moment_bytes("", "ann", 7, "state").hex()
    '00000000000000000000000000000003616e6e00000000000000013700000000000000057374617465'
    """
    return person_bytes(client, person) + time_bytes(time, query)


def person_bytes(client: str, person: str) -> bytes:
    """The first half of `moment_bytes`, which a person's moments share."""
    return encoded((client.encode(), person.encode()))


def time_bytes(time: int, query: str) -> bytes:
    """The second half of `moment_bytes`, which people share."""
    return encoded((b"%d" % time, query.encode()))


def law_of(model: Chain, plan: Plan, start: Belief, clock: str = "") -> bytes:
    """The fingerprint of everything public that shapes answers, epsilon apart.

    It separates noise: under one key another law gets unrelated words. It never opens a second
    answer, because a moment does not contain it. Names, labels, limits and units are not in it;
    `clock` is how the scenario cuts time into steps.
    """
    # Rounded, because the last bits of a solver's floats may differ between machines.
    known = np.rint(start.probabilities * 1e9).astype("<i8").tobytes()
    parts = (LAW, model.digest, plan.digest, start.possible.tobytes(), known, clock.encode())
    return hashlib.sha256(encoded(parts)).digest()


def check_name(name: str, argument: str) -> str:
    """The name, if it can be stored and printed."""
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        raise ArgumentError(f"{argument} must be 1 to {LONGEST_NAME} printable characters")
    return name


def check_client(client: str) -> str:
    """The client, empty or made of letters, digits and dashes."""
    if not isinstance(client, str) or len(client) > LONGEST_NAME:
        raise ArgumentError(f"client must be letters, digits and dashes, got {client!r}")
    if client and (not client.isascii() or not client.replace("-", "").isalnum()):
        raise ArgumentError(f"client must be letters, digits and dashes, got {client!r}")
    return client


def check_parts(
    model: Chain, plan: Plan, randomness: Randomness | None, time: object = None
) -> None:
    """Refuse parts of a stream or batch that do not go together."""
    expect(model, Chain, "model")
    expect(plan, Plan, "plan")
    if randomness is not None and not isinstance(randomness, Randomness):
        raise ArgumentError(
            f"randomness must be a kind of Randomness, got {type(randomness).__name__}; "
            f"for a key use KeyedRandomness(key)"
        )
    if model.n_places != plan.query.n_states:
        raise ArgumentError(
            f"model must have the {plan.query.n_states} states of the query, got {model.n_places}"
        )
    if time is not None and not isinstance(time, (list, tuple, range, np.ndarray)):
        whole(time, "time", None)  # type: ignore[arg-type]
    if time is None and randomness is not None and randomness.keyed:
        raise ArgumentError(
            "time must be given when noise is keyed, got none: it is the slot of the start, "
            "without which two days would share their noise"
        )

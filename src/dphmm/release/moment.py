"""The one name of a moment, and what keyed noise is made from.

A moment is a client's person at a slot of the clock, asked one question. In one book it has
one answer and one price, whatever the policy, the model or epsilon have become meanwhile.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dphmm._types import IntArray
from dphmm.chain.belief import Belief
from dphmm.chain.markov import Chain
from dphmm.errors import LONGEST_NAME, ArgumentError, DphmmError, expect
from dphmm.geometry.exact import whole
from dphmm.noise.randomness import Randomness, encoded
from dphmm.policy.plan import Plan
from dphmm.release.schedule import Schedule

__all__ = ["Line", "law_of", "moment_bytes"]

LAW = b"dphmm law 1"


class Line(NamedTuple):
    """One question about one person of one client, over time."""

    client: str
    person: str
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


def moments_bytes(people: list[bytes], times: IntArray, query: str) -> list[bytes]:
    """Many moments: of the `person_bytes` of each row, and its time."""
    ends = {time: time_bytes(time, query) for time in np.unique(times).tolist()}
    return [person + ends[time] for person, time in zip(people, times.tolist(), strict=True)]


def law_of(
    model: Chain, plan: Plan, start: Belief, clock: str = "", schedule: Schedule | None = None
) -> bytes:
    """The fingerprint of everything public that shapes answers, epsilon apart.

    It separates noise: under one key another law gets unrelated words. It never opens a second
    answer, because a moment does not contain it. Names, labels, limits and units are not in it;
    `clock` is how the scenario cuts time into steps.
    """
    when = () if schedule is None or not schedule.law else (schedule.law.encode(),)
    parts = (LAW, model.digest, plan.digest, *start_parts(start), clock.encode())
    return hashlib.sha256(encoded((*parts, *when))).digest()


def start_parts(start: Belief) -> tuple[bytes, bytes]:
    """What of a start is in the law."""
    # Rounded, because the last bits of a solver's floats may differ between machines.
    known = np.rint(start.probabilities * 1e9).astype("<i8").tobytes()
    return start.possible.tobytes(), known


def laws_of(
    model: Chain, plan: Plan, starts: list[Belief], schedule: Schedule | None
) -> tuple[list[bytes], IntArray]:
    """The different laws of many people, one for each different start, and whose is whose."""
    different = {id(start): start for start in starts}
    numbers = {name: number for number, name in enumerate(different)}
    laws = [law_of(model, plan, start, schedule=schedule) for start in different.values()]
    return laws, np.array([numbers[id(start)] for start in starts], dtype=np.int64)


def check_client(client: str) -> str:
    """The client, empty or made of letters, digits and dashes."""
    if not isinstance(client, str) or len(client) > LONGEST_NAME:
        raise ArgumentError(f"client must be letters, digits and dashes, got {client!r}")
    if client and (not client.isascii() or not client.replace("-", "").isalnum()):
        raise ArgumentError(f"client must be letters, digits and dashes, got {client!r}")
    return client


def check_randomness(randomness: Randomness | None) -> None:
    """Refuse what is no source of noise, such as a key by itself."""
    if randomness is not None and not isinstance(randomness, Randomness):
        raise ArgumentError(
            f"randomness must be a kind of Randomness, got {type(randomness).__name__}; "
            f"for a key use KeyedRandomness(key)"
        )


def read_state(given: Any, n_states: int, locate: Callable[[Any], int] | None) -> int:
    """The number of a true state, by `locate` if it is none; no message says which it was."""
    if locate is not None and not isinstance(given, (int, np.integer)):
        try:
            return locate(given)
        except (DphmmError, TypeError, ValueError, IndexError, OverflowError):
            # Whatever went wrong, its words might say where somebody is.
            raise ArgumentError(
                "true_state must be a state's number, its label or its coordinates"
            ) from None
    is_whole = isinstance(given, (int, np.integer)) and not isinstance(given, bool)
    if not is_whole or not 0 <= given < n_states:
        raise ArgumentError(f"true_state must be one of the {n_states} states")
    return int(given)


def check_parts(
    model: Chain,
    plan: Plan,
    randomness: Randomness | None,
    time: object = None,
    schedule: Schedule | None = None,
    law: bytes | None = None,
) -> None:
    """Refuse parts of a stream or batch that do not go together."""
    expect(b"" if law is None else law, bytes, "law")
    expect(model, Chain, "model")
    expect(plan, Plan, "plan")
    if schedule is not None:
        expect(schedule, Schedule, "schedule")
        schedule.check_bound()
    check_randomness(randomness)
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

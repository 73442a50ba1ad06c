"""A stream as bytes, to be resumed later or elsewhere: what it believes and what it said.

A snapshot holds no true state, because a stream has none. Model, policy and query are not
in it; a resumed stream is built from the scenario and checked against the query.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from fractions import Fraction
from typing import Any
from zipfile import BadZipFile

import numpy as np

from dphmm.chain.belief import Belief
from dphmm.cost.ledger import Entry, Ledger
from dphmm.errors import ArgumentError, DataError
from dphmm.geometry.query import Query
from dphmm.noise.mechanism import lattice_vector
from dphmm.release.stream import Said, Stream

__all__ = ["restore", "snapshot"]

FORMAT = 1
EARLIER = "earlier"
"""The name of an entry that sums up what a snapshot without history leaves out."""


def snapshot(stream: Stream, history: bool = True) -> bytes:
    """The stream's state; without its history it is shorter but cannot be smoothed.

    What was spent is kept either way: without history as one entry at time 0.
    """
    said = stream.said if history else []
    ledger = stream.ledger
    entries = ledger.entries
    if not history and entries:
        entries = (Entry(0, EARLIER, ledger.spent, ledger.constrained, stream.scenario),)
    facts = {
        "format": FORMAT,
        "query": stream.query.digest.hex(),
        "person": stream.person,
        "scenario": stream.scenario,
        "time": stream.time,
        "limit": None if ledger.limit is None else str(ledger.limit),
        "entries": [
            [e.time, e.query, str(e.epsilon), str(e.constrained), e.scenario] for e in entries
        ],
        "said": [
            [s.time, s.query.digest.hex(), str(s.epsilon), [int(x) for x in s.lattice]]
            for s in said
        ],
    }
    possible, probabilities, wide = stream.posterior.arrays()
    buffer = io.BytesIO()
    np.savez(
        buffer,
        facts=np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8),
        possible=np.packbits(possible),
        probabilities=probabilities,
        wide=np.empty((2, 0)) if wide is None else wide,
    )
    return buffer.getvalue()


def restore(stream: Stream, data: bytes, queries: Iterable[Query] = ()) -> Stream:
    """Bring a fresh stream of the same scenario to where a snapshot was taken.

    `queries` are the further ones that `release_also` answered, if any. The fresh stream's
    limit holds if it has one, so that a limit can be changed; else the snapshot's does.
    """
    if stream.time != 0 or stream.ledger.entries:
        raise ArgumentError("stream must be fresh, got one that has moved or spent already")
    facts, belief = _parsed(data, stream.query.n_states)
    known = {query.digest.hex(): query for query in (stream.query, *queries)}
    if facts["query"] != stream.query.digest.hex():
        raise ArgumentError("stream must have the query of the snapshot, got another")
    if (facts["person"], facts["scenario"]) != (stream.person, stream.scenario):
        raise ArgumentError(
            f"stream must be for the snapshot's person and scenario, got {stream.person!r}"
        )
    missing = {digest for _, digest, _, _ in facts["said"]} - set(known)
    if missing:
        raise ArgumentError(f"queries must hold all {len(missing)} further queries of the snapshot")
    entries = [
        Entry(time, query, Fraction(epsilon), _cost(constrained), scenario)
        for time, query, epsilon, constrained, scenario in facts["entries"]
    ]
    limit = stream.ledger.limit
    if limit is None and facts["limit"] is not None:
        limit = Fraction(facts["limit"])
    stream.ledger = Ledger(limit, entries)
    stream.time = facts["time"]
    stream.prior = stream.posterior = belief
    stream.said = [
        Said(time, known[digest], Fraction(epsilon), lattice_vector(lattice))
        for time, digest, epsilon, lattice in facts["said"]
    ]
    return stream


def _parsed(data: bytes, n_states: int) -> tuple[dict[str, Any], Belief]:
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            facts = json.loads(arrays["facts"].tobytes())
            possible = np.unpackbits(arrays["possible"], count=n_states).astype(bool)
            probabilities, wide = arrays["probabilities"], arrays["wide"]
    except (OSError, KeyError, ValueError, EOFError, BadZipFile):
        raise DataError("snapshot must be one that dphmm wrote, got other bytes") from None
    if facts["format"] != FORMAT or probabilities.shape != (n_states,):
        raise DataError("snapshot must fit this version and scenario, got another")
    if not wide.size:
        return facts, Belief(possible, probabilities, None)
    scaled, levels = wide.reshape(2, -1)
    sound = (scaled >= 2.0**-256) & (scaled < 2.0**256) & (levels >= 0) & (levels < np.inf)
    if scaled.shape != (n_states,) or not np.array_equal(sound, possible):
        raise DataError("snapshot must hold a belief, got numbers that are not one")
    return facts, Belief(possible, probabilities, wide)


def _cost(text: str) -> Fraction | float:
    return float("inf") if text == "inf" else Fraction(text)

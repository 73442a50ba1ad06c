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

from dphmm.belief import Belief
from dphmm.errors import ArgumentError, DataError
from dphmm.ledger import Entry, Ledger
from dphmm.query import Query
from dphmm.stream import Said, Stream

__all__ = ["restore", "snapshot"]

FORMAT = 1


def snapshot(stream: Stream, history: bool = True) -> bytes:
    """The stream's state; without its history it is shorter but cannot be smoothed."""
    said = stream.said if history else []
    facts = {
        "format": FORMAT,
        "query": stream.query.digest.hex(),
        "person": stream.person,
        "scenario": stream.scenario,
        "time": stream.time,
        "limit": None if stream.ledger.limit is None else str(stream.ledger.limit),
        "entries": [
            [e.time, e.query, str(e.epsilon), str(e.constrained), e.scenario]
            for e in (stream.ledger.entries if history else ())
        ],
        "said": [
            [s.time, s.query.digest.hex(), str(s.epsilon), [int(x) for x in s.lattice]]
            for s in said
        ],
    }
    possible, probabilities, logs = stream.posterior.arrays()
    buffer = io.BytesIO()
    np.savez(
        buffer,
        facts=np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8),
        possible=np.packbits(possible),
        probabilities=probabilities,
        logs=np.empty(0) if logs is None else logs,
    )
    return buffer.getvalue()


def restore(stream: Stream, data: bytes, queries: Iterable[Query] = ()) -> Stream:
    """Bring a fresh stream of the same scenario to where a snapshot was taken.

    `queries` are the further ones that `release_also` answered, if any.
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
    limit = stream.ledger.limit if facts["limit"] is None else Fraction(facts["limit"])
    stream.ledger = Ledger(limit, entries)
    stream.time = facts["time"]
    stream.prior = stream.posterior = belief
    stream.said = [
        Said(time, known[digest], Fraction(epsilon), np.array(lattice))
        for time, digest, epsilon, lattice in facts["said"]
    ]
    return stream


def _parsed(data: bytes, n_states: int) -> tuple[dict[str, Any], Belief]:
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            facts = json.loads(arrays["facts"].tobytes())
            possible = np.unpackbits(arrays["possible"], count=n_states).astype(bool)
            logs, probabilities = arrays["logs"], arrays["probabilities"]
    except (OSError, KeyError, ValueError, EOFError, BadZipFile):
        raise DataError("snapshot must be one that dphmm wrote, got other bytes") from None
    if facts["format"] != FORMAT or len(probabilities) != n_states:
        raise DataError("snapshot must fit this version and scenario, got another")
    return facts, Belief(possible, probabilities, logs if len(logs) else None)


def _cost(text: str) -> Fraction | float:
    return float("inf") if text == "inf" else Fraction(text)

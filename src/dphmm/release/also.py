"""Further queries about one step: bound by what protects the step so far."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dphmm.errors import ArgumentError
from dphmm.geometry.query import Query
from dphmm.policy.plan import Protected

if TYPE_CHECKING:
    from dphmm.release.stream import Stream

__all__ = ["protected_also"]


def protected_also(stream: Stream, query: Query) -> Protected:
    """What protects this step from a further query, bound by what protects it so far."""
    policy = stream.plan.policy
    possible = stream.plan.to_protect(stream.posterior, stream.model.memory)
    if stream._answered:
        if stream._step is None or not stream.said or stream.said[-1].time != stream.time:
            raise ArgumentError("release_also must follow a release of this stream, got none")
        # One step has one set: delta leaves the same states out of all its questions.
        policy, possible = stream._step.binding, stream._step.possible & stream.possible
    known = stream._also.get(query.name)
    if known is None or (known.query, known.policy.digest) != (query, policy.digest):
        known = stream._also[query.name] = stream.plan.replace(query=query, policy=policy)
    return known.at(possible)

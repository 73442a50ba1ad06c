"""What everything that a stream has said cost and told, from what it published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from dphmm._types import FloatArray
from dphmm.chain.belief import Belief
from dphmm.cost.statement import PrivacyStatement, privacy_statement
from dphmm.cost.tells import tell
from dphmm.cost.whereabouts import Whereabouts, whereabouts
from dphmm.errors import ArgumentError
from dphmm.policy.graph import PolicyGraph
from dphmm.release.said import history_of
from dphmm.release.schedule import fills_gaps

if TYPE_CHECKING:
    from dphmm.release.stream import Stream

__all__ = ["knows_earlier", "place_person", "state_costs"]


def state_costs(stream: Stream, width: int) -> PrivacyStatement:
    """See `Stream.statement`."""
    said, model, (time, start) = stream.said, stream.model, stream._said_from
    if not said:
        raise ArgumentError("stream must have a release to be stated, got none")
    history = history_of(said, model, start, time)
    heard = stream.observations()
    # Without answers nothing that comes later changes what is believed.
    unseen = model.filter([None] * len(history), start=start, time=time)
    seen = model.smooth(heard, start=start, time=time)[: len(history)]
    statement = privacy_statement(
        history,
        width=width,
        prior=unseen,
        posterior=seen,
        delta=stream.plan.delta,
        before=stream.standing.spent - sum((one.epsilon for one in said), start=Fraction(0)),
        # A ledger is a person's: what is not of this line was spent on another one.
        besides=max(Fraction(0), stream.ledger.spent - stream.standing.spent),
        limit=stream.ledger.limit,
    )
    near = place_person(stream, seen, unseen, heard)
    answers = [(one.step, one.epsilon) for one in said]
    tells = tell(
        history,
        start if model.memory is None else None,
        answers,
        _linked(stream),
        unseen,
        seen,
        near,
        adaptive=statement.adaptive,
        fixed=stream._rule is None or stream._rule.error is None,
    )
    return replace(statement, tells=tells, filled=fills_gaps(stream._rule))


def _linked(stream: Stream) -> PolicyGraph:
    """Who is linked: by the policy, and by what repair added to it for any of the answers.

    Of several questions of a step the first: what it links is linked for the others, too.
    """
    firsts = {one.time: one.step for one in reversed(stream.said)}
    added = [step.added for step in {id(step): step for step in firsts.values()}.values()]
    return stream.plan.policy.with_edges(np.unique(np.sort(np.concatenate(added)), axis=0))


def place_person(
    stream: Stream,
    seen: Sequence[Belief],
    unseen: Sequence[Belief],
    heard: Sequence[FloatArray | None],
) -> Whereabouts:
    """How near to a person the readers of a stream come, from its first step on.

    Args:
        stream: What was said about the person.
        seen: What is believed of each step, given all answers.
        unseen: The same without any.
        heard: The log-likelihood of each step's answers in every state, None without one.
    """
    around, (time, _) = stream._around, stream._said_from
    hours = None
    if around.hour_of is not None:
        hours = [around.hour_of(time + step + 1) for step in range(len(seen))]
    near = whereabouts(
        [one.probabilities for one in seen],
        [one.probabilities for one in unseen],
        around.places,
        hours=hours,
        heard=heard,
        unit=around.unit,
        zone=around.zone,
    )
    return replace(near, heard=knows_earlier(stream))


def knows_earlier(stream: Stream) -> bool:
    """Whether what is believed before a stream's answers comes from earlier ones.

    Not so where the states were others then: what is known is the start of the new ones.
    """
    before, start = stream._said_from[1], stream.start
    spent = sum((one.epsilon for one in stream.said), start=Fraction(0))
    return stream.standing.spent > spent and not np.array_equal(
        before.probabilities, start.probabilities
    )

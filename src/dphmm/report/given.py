"""The places that a track gave away: where its reader, in hindsight, is more sure than not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dphmm.chain.belief import Belief

__all__ = ["GivenAway", "places_given_away"]

SURE = 0.5
"""A place is given away when it is more likely than all others together."""


@dataclass(frozen=True)
class GivenAway:
    """A place at which a reader who knows model and answers believes somebody to have been."""

    state: int
    first: int
    """The number of the first release at which this was so, from 0."""
    last: int
    """The number of the last one in a row."""
    sure: float
    """The probability given all answers, on average over these releases."""
    before: float
    """The same without any answer."""

    @property
    def is_sure(self) -> bool:
        """Whether it is more likely than all other places together."""
        return self.sure > SURE

    @property
    def releases(self) -> int:
        """How many releases in a row."""
        return self.last - self.first + 1


def places_given_away(
    posterior: Sequence[Belief], prior: Sequence[Belief]
) -> tuple[GivenAway, ...]:
    """The places that answers gave away, those of most releases first; all of it is public.

    If there are none it is the surest place alone, which was not quite given away.

    Args:
        posterior: The belief at every release, given all answers.
        prior: The same without any answer.

    >>> known, vague = Belief.known([0.9, 0.1], 2), Belief.known([0.5, 0.5], 2)
    >>> [one.state for one in places_given_away([known, known, vague], [vague] * 3)]
    [0]
    """
    likeliest = [int(np.argmax(belief.probabilities)) for belief in posterior]
    sure = [float(belief.probabilities[s]) for belief, s in zip(posterior, likeliest, strict=True)]
    before = [float(belief.probabilities[s]) for belief, s in zip(prior, likeliest, strict=True)]
    found = []
    first = 0
    for number in range(len(likeliest)):
        if sure[number] <= SURE:
            first = number + 1
            continue
        follows = number + 1 < len(likeliest) and sure[number + 1] > SURE
        if not follows or likeliest[number + 1] != likeliest[number]:
            span = slice(first, number + 1)
            mean = float(np.mean(sure[span])), float(np.mean(before[span]))
            found.append(GivenAway(likeliest[number], first, number, *mean))
            first = number + 1
    if not found:
        best = int(np.argmax(sure))
        found = [GivenAway(likeliest[best], best, best, sure[best], before[best])]
    return tuple(sorted(found, key=lambda one: (-one.releases, -one.sure)))

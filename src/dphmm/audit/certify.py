"""Whether an event that was searched for really contradicts a claim.

The draws that chose the event are not used again. Of the others, each is taken from one of the
two states by a fair coin; given that the event holds, the coin has shown the first state with
probability p / (p + q), which is at most e^epsilon / (1 + e^epsilon) if the claim is true. So
one bound by Clopper and Pearson on that share is enough, and is right for any number of hits.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp, inf, log, sqrt

import numpy as np
from scipy import special

from dphmm._types import FloatArray
from dphmm.audit.checks import LEAST_MISS, Finding, Test, tell_bound
from dphmm.audit.events import Event
from dphmm.audit.sampler import Answers

__all__ = ["Coins", "certified", "certify_miss", "check_searched", "smallest_leak"]

SURE = 1e-4
"""A leak counts as seen if the chance to miss it is at most this."""

SPARE = 10.0
"""Coins that are left out, in square roots of a state's draws: seven standard deviations."""

DEVIATIONS = 9.0
"""Numbers of hits further than this from what is expected have a chance below 1e-18."""

MAX_HITS = 100
"""Numbers of hits at which the chance to miss is computed; between them it hardly changes."""

HALVINGS = 14
"""Halvings of the interval in which a leak is searched, by its logarithm: three digits."""


@dataclass(frozen=True)
class Coins:
    """How many draws of either state count, by fair coins."""

    first: int
    second: int

    @classmethod
    def toss(cls, draws: int) -> Coins:
        """Coins for two states of which so many draws are at hand.

        In the one case in 10^11 where a state has too few, none counts and nothing is found.
        """
        total = coins_for(draws)
        first = int(np.random.default_rng().binomial(total, 0.5))
        if max(first, total - first) > draws:
            return cls(0, 0)
        return cls(first, total - first)


def coins_for(draws: int) -> int:
    """How many coins are tossed when so many draws of each state are at hand."""
    return max(0, 2 * draws - ceil(SPARE * sqrt(draws)))


def certified(hits: int, hits_of_other: int, level: float) -> float:
    """An epsilon that the mechanism really spends at least, but for a chance of `level`.

    >>> round(certified(5000, 1000, 1e-6), 2)
    1.45
    """
    if not hits:
        return -inf
    share = float(special.betaincinv(hits, hits_of_other + 1, level))
    return log(share / (1 - share)) if 0 < share < 1 else -inf


def check_searched(
    test: Test,
    event: Event,
    answers: dict[int, Answers],
    level: float,
    limit: float,
    likeliest: float,
) -> Finding:
    """Whether an event chosen on other draws tells two states apart by more than was claimed.

    Args:
        test: The kind of the event.
        event: What was chosen.
        answers: Draws of both states that had no part in the choice.
        level: The chance of a wrong alarm.
        limit: The claimed epsilon between the two states.
        likeliest: The largest probability that events of this kind have for the other state:
            the smallest leak is that into such an event, where it is hardest to see.
    """
    draws = len(answers[event.state])
    coins = Coins.toss(draws)
    hits = int(event.holds(answers[event.state][: coins.first]).sum())
    hits_of_other = int(event.holds(answers[event.other][: coins.second]).sum())
    found = certified(hits, hits_of_other, level)
    detail = f"{hits} and {hits_of_other} times: {tell_bound(found)}, claimed {limit:g}"
    leak = smallest_leak(likeliest, draws, level, limit)
    return Finding(test, event.what, found > limit, level, detail, leak=leak)


def certify_miss(share: float, other: float, draws: int, level: float, limit: float) -> float:
    """The chance that an event with these two probabilities is not certified.

    Summed over the number of hits, which is binomial; given it the first state's part is, too.
    """
    coins, both = coins_for(draws), (share + other) / 2
    mean, spread = coins * both, sqrt(coins * both * (1 - min(1.0, both)))
    low = max(0, int(mean - DEVIATIONS * spread) - 1)
    high = min(coins, int(mean + DEVIATIONS * spread) + 1)
    stride = max(1, (high - low) // MAX_HITS)
    totals = np.arange(low, high + 1, stride, dtype=np.float64)
    weights = _binomial(totals, coins, both)
    weights /= max(weights.sum(), 1e-300)
    needed = _needed(totals, 1 / (1 + exp(-limit)), level)
    part = share / (share + other) if share else 0.0
    fewer = special.betaincc(needed, np.maximum(totals - needed + 1, 1.0), part)
    missed = np.where(needed > totals, 1.0, fewer)
    return max(LEAST_MISS, min(1.0, float((weights * missed).sum())))


def _needed(totals: FloatArray, part: float, level: float) -> FloatArray:
    """Hits of the first state that are certified, of so many in all."""
    # The quantile of floats is near the right integer; the loops make it right.
    needed = np.maximum(1.0, np.ceil(np.nan_to_num(special.bdtrik(1 - level, totals, part))))
    for _ in range(3):
        needed = np.where(_at_least(needed, totals, part) > level, needed + 1, needed)
    for _ in range(3):
        lower = needed - 1
        fewer = (lower > 0) & (_at_least(np.maximum(lower, 1.0), totals, part) <= level)
        needed = np.where(fewer, lower, needed)
    return needed


def _at_least(hits: FloatArray, totals: FloatArray, part: float) -> FloatArray:
    """The chance of at least so many hits, which are at least one."""
    tail = special.betainc(hits, np.maximum(totals - hits + 1, 1.0), part)
    return np.where(hits > totals, 0.0, tail)


def _binomial(hits: FloatArray, draws: int, share: float) -> FloatArray:
    if share <= 0 or share >= 1:
        return np.asarray(hits == (0 if share <= 0 else draws), dtype=np.float64)
    ways = special.gammaln(draws + 1) - special.gammaln(hits + 1)
    ways -= special.gammaln(draws - hits + 1)
    return np.exp(ways + hits * log(share) + (draws - hits) * log(1 - share))


def smallest_leak(other: float, draws: int, level: float, limit: float) -> float | None:
    """The smallest probability above e^epsilon q that would almost surely be certified.

    None where the event is so likely that no probability is above.

    Args:
        other: q, the probability of the event for the other state.
        draws: Draws of each state that certify.
        level: The chance of a wrong alarm.
        limit: The claimed epsilon.
    """
    allowed = exp(min(limit, 700.0)) * other  # floats end at e^709
    if allowed >= 1 or certify_miss(1.0, other, draws, level, limit) > SURE:
        return None
    high = 1 - allowed
    low = high / 2**HALVINGS
    for _ in range(HALVINGS):
        middle = sqrt(low * high)
        if certify_miss(allowed + middle, other, draws, level, limit) <= SURE:
            high = middle
        else:
            low = middle
    return high

"""The tests of an audit: each has a level, the chance that it accuses a mechanism wrongly.

Ratios are bounded by Clopper and Pearson, whose intervals are never too short. Chi-square is
an approximation, good to a fraction of a percent because every cell expects many draws.
Integers off the lattice and two equal histories accuse nobody wrongly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import ceil, exp, floor, inf, log
from typing import Literal, TypeAlias

import numpy as np
from scipy import special

from dphmm._types import FloatArray, IntArray
from dphmm.audit.events import Cells, Event
from dphmm.audit.sampler import Answers, Checked, Sampler, drawn
from dphmm.geometry.exact import round_up

__all__ = [
    "Finding",
    "Kind",
    "Test",
    "bits",
    "bound",
    "check_lattice",
    "check_law",
    "check_neighbours",
    "check_ratio",
    "check_repeats",
    "tell_bound",
    "write_chance",
]

Kind: TypeAlias = Literal["atoms", "residues", "tails", "half-spaces", "cones", "runs"]
"""The events that are searched for."""

Test: TypeAlias = Literal["ratio", "law", "lattice", "fine bits", "repeats", Kind]

PAIRS = 1000
"""Pairs of answers from which the chance of a coincidence is bounded; also the most compared."""

COINCIDENT = 1e-9
"""Float noise of two states is the same up to the rounding of a sum."""

HALVINGS = 20
"""Halvings of the interval in which a chance to miss is searched: more than six digits."""

UNITS = 1e-12
"""More than the part by which floats round a sum of levels."""

LEAST_MISS = 1e-12
"""Chances to miss are not told apart below this."""


@dataclass(frozen=True)
class Finding:
    """What one test saw; nothing here depends on anybody's true state."""

    test: Test
    what: str
    violated: bool
    level: float
    """The chance of a wrong alarm, at most."""
    detail: str
    miss: float | None = None
    """The chance to miss a mechanism that spends a tenth more than it claims, if computed."""
    leak: float | None = None
    """The smallest excess probability that a searched event would almost surely have shown."""


def tell_bound(epsilon: float) -> str:
    """What was certified, in words: never more than it is."""
    if epsilon == -inf:
        return "nothing certified"
    return f"at least epsilon {floor(epsilon * 10_000) / 10_000:.4f}"


def write_chance(chance: float) -> str:
    """A chance in one digit, never less than it is; what floats add to a sum does not count."""
    return f"{float(round_up(chance * (1 - UNITS), 1)):.1g}"


def lower(hits: int, draws: int, level: float) -> float:
    """A probability that is below the true one but for a chance of `level`."""
    return float(special.betaincinv(hits, draws - hits + 1, level)) if hits else 0.0


def upper(hits: int, draws: int, level: float) -> float:
    """A probability that is above the true one but for a chance of `level`."""
    return float(special.betainccinv(hits + 1, draws - hits, level)) if hits < draws else 1.0


def bound(hits: int, hits_of_other: int, draws: int, level: float) -> float:
    """An epsilon that the mechanism really spends at least, but for a chance of `level`.

    >>> round(bound(5000, 1000, 10_000, 1e-6), 2)
    1.42
    """
    low = lower(hits, draws, level / 2)
    return log(low / upper(hits_of_other, draws, level / 2)) if low > 0 else -inf


def ratio_miss(share: float, other: float, draws: int, level: float, limit: float) -> float:
    """A chance that two binomials with these probabilities stay within the limit, at most.

    Both counts lie on the right side of their quantiles but for the chance returned, and
    already those quantiles give the alarm.
    """
    low, high = log(LEAST_MISS), 0.0
    if not _alarms(share, other, draws, level, limit, exp(high) / 2):
        return 1.0
    if _alarms(share, other, draws, level, limit, exp(low) / 2):
        return LEAST_MISS
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if _alarms(share, other, draws, level, limit, exp(middle) / 2):
            high = middle
        else:
            low = middle
    return exp(high)


def _alarms(
    share: float, other: float, draws: int, level: float, limit: float, tail: float
) -> bool:
    hits = binomial_quantile(tail, draws, share)
    hits_of_other = draws - binomial_quantile(tail, draws, 1 - other)
    return bound(hits, hits_of_other, draws, level) > limit


def binomial_quantile(chance: float, draws: int, share: float) -> int:
    """The smallest number of hits up to which there are no more with at least this chance."""
    if share <= 0 or share >= 1:
        return 0 if share <= 0 else draws
    # Newton on floats ends within one of the integer.
    hits = max(0, ceil(float(special.bdtrik(chance, draws, share))) - 1)
    while special.bdtr(hits, draws, share) < chance:
        hits += 1
    return hits


def law_miss(claimed: FloatArray, true: FloatArray, draws: int, level: float) -> float:
    """The chance that chi-square takes one law for another, by the noncentral distribution."""
    freedom = len(claimed) - 1
    distance = draws * float(((true - claimed) ** 2 / claimed).sum())
    missed = special.chndtr(special.chdtri(freedom, level), freedom, distance)
    return max(LEAST_MISS, float(missed))


def check_ratio(
    claim: Checked,
    event: Event,
    answers: Mapping[int, Answers],
    level: float,
    *,
    test: Test = "ratio",
    miss: float | None = None,
) -> Finding:
    """Whether an event tells two states apart by more than was claimed."""
    hits, hits_of_other = (
        int(event.holds(answers[state]).sum()) for state in (event.state, event.other)
    )
    found = bound(hits, hits_of_other, len(answers[event.state]), level)
    epsilon = float(claim.limit(event.state, event.other))
    detail = f"{hits} and {hits_of_other} times: {tell_bound(found)}, claimed {epsilon:g}"
    return Finding(test, event.what, found > epsilon, level, detail, miss)


def check_law(
    claim: Checked, cells: Cells, state: int, answers: Answers, level: float, miss: float | None
) -> Finding:
    """Whether answers have the exact probabilities that were claimed."""
    counts = cells.counts(answers - claim.points[state])
    return _law(counts, cells.probabilities, state, level, miss)


def check_points(
    state: int, answers: Answers, points: Answers, probabilities: FloatArray, level: float
) -> Finding:
    """The same on single points, the last probability being that of all others."""
    both = np.concatenate([points, answers])
    _, names = np.unique(both, axis=0, return_inverse=True)
    names = names.ravel()
    every = np.bincount(names[len(points) :], minlength=int(names.max()) + 1)
    alone = every[names[: len(points)]]
    return _law(np.append(alone, len(answers) - alone.sum()), probabilities, state, level, None)


def _law(
    counts: IntArray, probabilities: FloatArray, state: int, level: float, miss: float | None
) -> Finding:
    expected = counts.sum() * probabilities
    distance = float(((counts - expected) ** 2 / expected).sum())
    chance = float(special.chdtrc(len(counts) - 1, distance))
    detail = f"chi-square {distance:.1f} on {len(counts)} cells, p = {chance:.2g}"
    what = f"probabilities of answers given {state}"
    return Finding("law", what, chance < level, level, detail, miss)


def check_lattice(claim: Checked, answers: Mapping[int, Answers]) -> Finding:
    """Whether every answer is a vector of integers, or at least of finite numbers."""
    wrong = 0
    for some in answers.values():
        if some.dtype.kind == "f":
            good = some == np.floor(some) if claim.lattice else np.isfinite(some)
            wrong += int((~(good & np.isfinite(some))).any(axis=1).sum())
    total = sum(map(len, answers.values()))
    kind = "integers" if claim.lattice else "finite"
    detail = f"{wrong} of {total} answers are not {kind}"
    return Finding("lattice", f"answers are {kind}", wrong > 0, 0.0, detail)


def bits(answers: Answers) -> IntArray:
    """Floats as the bits that leave, which tell -0.0 from 0.0; integers as they are."""
    if answers.dtype.kind != "f":
        return answers
    return np.ascontiguousarray(answers, dtype=np.float64).view(np.int64)


def check_neighbours(
    claim: Checked, pairs: Iterable[tuple[int, int]], answers: Mapping[int, Answers], level: float
) -> list[Finding]:
    """Whether two draws in a row are equal more often in one state than two claims allow.

    Draws are independent, so a pair of them may tell twice what one may. Half of the pairs begin
    at even draws, half at odd ones.
    """
    equal = {}
    for state, some in answers.items():
        half = len(some) // 4 * 2
        named = bits(some)
        first = np.concatenate([named[:half:2], named[half + 1 : -1 : 2]])
        second = np.concatenate([named[1:half:2], named[half + 2 :: 2]])
        equal[state] = (first == second).all(axis=1)
    findings = []
    for state, other in pairs:
        hits, others = int(equal[state].sum()), int(equal[other].sum())
        found = bound(hits, others, len(equal[state]), level)
        epsilon = 2 * float(claim.limit(state, other))
        what = f"two draws in a row are equal, given {state} and {other}"
        detail = f"{hits} and {others} times: {tell_bound(found)}, claimed {epsilon:g}"
        findings.append(Finding("runs", what, found > epsilon, level, detail))
    return findings


def check_repeats(
    claim: Checked, make: Callable[[], Sampler], states: tuple[int, int], level: float
) -> list[Finding]:
    """Whether fresh instances, or two calls of one, say the same things again.

    The chance c that two independent answers coincide is bounded from pairs within an
    instance, a quarter of the level for each state; m coincidences in a row then have chance
    c^m at most, and each of three comparisons may use a sixth of the level.
    """
    state, other = states
    each = level / 3
    first, second = make(), make()
    answers = drawn(claim, first, state, 2 * PAIRS)
    again = drawn(claim, first, state, 2 * PAIRS)
    fresh = drawn(claim, second, state, 2 * PAIRS)
    third = drawn(claim, make(), other, 2 * PAIRS)
    chance = max(_coincidence(some, level / 4) for some in (answers, third))
    needed = ceil(log(level / 6) / log(chance)) if chance < 1 else 2 * PAIRS + 1
    findings = [_repeat("two calls of one instance", answers, again, needed, each)]
    if first is second:
        detail = "not tested: there is only one instance"
        findings.append(Finding("repeats", "two fresh instances", False, 0.0, detail))
    else:
        findings.append(_repeat("two fresh instances", answers, fresh, needed, each))
        noise, shifted = answers - claim.points[state], third - claim.points[other]
        what = f"noise of fresh instances in {state} and {other}"
        findings.append(_repeat(what, noise, shifted, needed, each))
    return findings


def _coincidence(answers: Answers, level: float) -> float:
    """What the chance that two independent answers are equal does not exceed."""
    equal = int((answers[:PAIRS] == answers[PAIRS:]).all(axis=1).sum())
    return upper(equal, PAIRS, level)


def _repeat(what: str, some: Answers, others: Answers, needed: int, level: float) -> Finding:
    if needed > len(some):
        return Finding("repeats", what, False, 0.0, "not tested: answers hardly vary")
    if some.dtype.kind == "f":
        same = (np.abs(some - others) <= COINCIDENT).all(axis=1)
    else:
        same = (some == others).all(axis=1)
    repeated = len(same) if same.all() else int(np.argmin(same))
    detail = f"the first {repeated} answers are the same; {needed} would be no chance"
    return Finding("repeats", what, repeated >= needed, level, detail)

"""What all answers together tell of one moment, over every path before and after it.

Answers before a moment tell of the state then, because states follow each other; so do those
after it (temporal privacy leakage: Cao, Yoshikawa, Xiao and Xiong 2017, 2019). Given the state,
past and future are independent, so the loss between two states at a moment is a sum: what the
past tells, what the moment's own answers tell, what the future tells. The paths on both sides
are mixtures, which the model and what was known at the start decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from dphmm._types import FloatArray
from dphmm.chain.belief import Belief, Start
from dphmm.chain.stochastic import LEVEL
from dphmm.cost.history import History
from dphmm.cost.moments import Moments, follow_work
from dphmm.cost.sequences import worst_losses
from dphmm.cost.small_chains import small_losses
from dphmm.errors import ArgumentError, TooLargeError, expect, expect_each
from dphmm.geometry.exact import whole
from dphmm.policy.graph import PolicyGraph

__all__ = ["Leakage", "bound_leakage", "realised_leakage", "temporal_leakage"]

DEPTH = 6
"""How many steps on each side of one moment are followed pair by pair."""

MOST_WORK = 2**28
"""Entries of rows, once for every other row, that are looked at: about half a minute."""


@dataclass(frozen=True)
class Leakage:
    """The largest loss about the state at one moment, whatever came before and after."""

    loss: float
    """Between any two possible states."""
    linked: float | None
    """Between two possible states that the policy links; None if no policy was given."""
    moment: int
    """The step at which `loss` is reached, from 0."""
    is_exact: bool
    """Whether some answers tell so much; otherwise no answers tell more."""


def temporal_leakage(
    history: History,
    *,
    start: Start,
    policy: PolicyGraph | None = None,
    moment: int | None = None,
    depth: int = DEPTH,
) -> Leakage:
    """The loss about one moment over the mixture of all paths before and after it.

    Exact on small chains: up to six states with answers on a line or in a plane. Otherwise an
    upper bound, pair by pair: rows of the chain are coupled, and no more is passed on than
    between sets of states (the bound of Cao et al.). For one release both are its own loss.

    Args:
        history: What was released, or will be, step by step; prices and bodies must not depend
            on answers.
        start: What was known before the first step: a state, a distribution or a belief.
        policy: Whose edges `linked` is about.
        moment: The step that it is about, from 0; by default the worst of all, which takes long
            for many states.
        depth: How many steps on each side of a given moment are followed, or fewer where that
            would take long; what lies beyond counts with each step's worst pair.

    >>> from dphmm.chain.markov import MarkovModel
    >>> from dphmm.geometry.hull import SensitivityHull
    >>> from dphmm.geometry.query import Query
    >>> body = SensitivityHull.from_vertices([[1]])
    >>> for stay in (0.5, 0.9, 1.0):
    ...     model = MarkovModel([[stay, 1 - stay], [1 - stay, stay]])
    ...     history = History.of(Query([0, 1]), model, [body] * 3, 1)
    ...     print(round(temporal_leakage(history, start=[0.5, 0.5]).loss, 3))
    1.0
    2.552
    3.0
    """
    expect(history, History, "history")
    n_states = history.models[0].n_states
    if policy is not None:
        expect(policy, PolicyGraph, "policy")
        if policy.n_states != n_states:
            raise ArgumentError(f"policy must have {n_states} states, got {policy.n_states}")
    if moment is not None and not 0 <= whole(moment, "moment") < len(history):
        raise ArgumentError(f"moment must be one of 0..{len(history) - 1}, got {moment!r}")
    whole(depth, "depth", 1)
    moments = Moments(history, Belief.known(start, n_states))
    exactly = small_losses(moments)
    if exactly is not None:
        tables = [(step, table) for step, table in enumerate(exactly) if moment in (None, step)]
        return _worst(tables, moments, policy, True)
    if moment is not None:
        return _worst([(moment, _around(moments, moment, depth))], moments, policy, False)
    return _worst(_every(moments), moments, policy, False)


def bound_leakage(history: History, start: Belief, policy: PolicyGraph) -> Leakage:
    """The upper bound alone, at the worst moment."""
    moments = Moments(history, start)
    return _worst(_every(moments), moments, policy, False)


def _worst(
    tables: Iterable[tuple[int, FloatArray]],
    moments: Moments,
    policy: PolicyGraph | None,
    exactly: bool,
) -> Leakage:
    worst, place, linked = -inf, 0, 0.0
    for step, losses in tables:
        if losses.max() > worst:
            worst, place = float(losses.max()), step
        if policy is not None:
            states = moments.states[step]
            mask = np.zeros(policy.n_states, dtype=bool)
            mask[states] = True
            edges = (np.cumsum(mask) - 1)[policy.restricted_to(mask).edges]
            between = losses[edges, edges[:, ::-1]]
            linked = max(linked, float(between.max(initial=0.0)))
    return Leakage(worst, None if policy is None else linked, place, exactly)


def realised_leakage(
    prior: Sequence[Belief], posterior: Sequence[Belief], policy: PolicyGraph
) -> float:
    """The largest loss about one moment between linked states that answers really had.

    The log of the factor by which they moved the odds between two states, at the worst time.
    From public things alone, like `realised_odds`.

    Args:
        prior: The belief about each time before any release, as `model.smooth` gives it.
        posterior: The same, given all releases.
        policy: Which states are linked.

    >>> before, after = Belief.known([0.5, 0.25, 0.25], 3), Belief.known([0.8, 0.1, 0.1], 3)
    >>> path = PolicyGraph(3, [(0, 1), (1, 2)])
    >>> round(realised_leakage([before], [after], path), 3)
    1.386
    """
    expect(policy, PolicyGraph, "policy")
    prior = expect_each(prior, Belief, "prior")
    posterior = expect_each(posterior, Belief, "posterior")
    if len(prior) != len(posterior):
        raise ArgumentError(
            f"posterior must have a belief for each of {len(prior)} times, got {len(posterior)}"
        )
    worst = 0.0
    for before, after in zip(prior, posterior, strict=True):
        for belief in (before, after):
            if belief.n_states != policy.n_states:
                raise ArgumentError(
                    f"beliefs must have {policy.n_states} states, got {belief.n_states}"
                )
        # A state that answers ruled out is told apart for certain from one that they did not.
        held = policy.restricted_to(before.possible)
        moved = np.where(after.possible, _logs(after) - _logs(before), -inf)
        with np.errstate(invalid="ignore"):
            ends = moved[held.links]
            spreads = [np.abs(ends[:, 0] - ends[:, 1])]
            if len(held.members):
                # A clique is told apart most at its two ends, so no pair is formed.
                groups, begins = moved[held.members], held.offsets[:-1]
                highest = np.maximum.reduceat(groups, begins)
                spreads.append(highest - np.minimum.reduceat(groups, begins))
        apart = np.concatenate(spreads)
        worst = max(worst, float(apart[~np.isnan(apart)].max(initial=0.0)))
    return worst


def _logs(belief: Belief) -> FloatArray:
    """The logs of a belief, also of what floats have lost; zero where nothing is possible."""
    scaled, levels = belief.widen()
    safe = np.where(belief.possible, scaled, 1.0)
    return np.log(safe) - np.where(belief.possible, levels, 0.0) * LEVEL


def _every(moments: Moments) -> Iterator[tuple[int, FloatArray]]:
    """What is told of each two states at every step, or more."""
    if 2 * sum(follow_work(moments.history, step) for step in range(len(moments))) > MOST_WORK:
        raise TooLargeError(
            f"moment must be given for {len(moments)} steps of {moments.widest} states, got none"
        )
    last = len(moments) - 1
    future = [np.zeros((len(moments.states[last]),) * 2)]
    for step in range(last - 1, -1, -1):
        future.append(moments.onwards(step).pass_on(future[-1] + moments.told(step + 1)))
    past = np.zeros((len(moments.states[0]),) * 2)
    for step in range(last + 1):
        if step:
            past = moments.back(step).pass_on(past + moments.told(step - 1))
        yield step, past + moments.told(step) + future.pop()


def _around(moments: Moments, moment: int, depth: int) -> FloatArray:
    """What is told of each two states at one step, or more, from the steps around it."""
    worst = [float(loss) * (1 + 1e-14) for loss in worst_losses(moments.history)]
    first = last = moment
    work = follow_work(moments.history, moment)
    for _ in range(depth):
        further = max(0, first - 1), min(len(moments) - 1, last + 1)
        work += sum(follow_work(moments.history, step) for step in further)
        if work > MOST_WORK:
            break
        first, last = further
    past = _apart(len(moments.states[first]), sum(worst[:first]))
    for step in range(first + 1, moment + 1):
        past = moments.back(step).pass_on(past + moments.told(step - 1))
    future = _apart(len(moments.states[last]), sum(worst[last + 1 :]))
    for step in range(last - 1, moment - 1, -1):
        future = moments.onwards(step).pass_on(future + moments.told(step + 1))
    return past + moments.told(moment) + future


def _apart(size: int, loss: float) -> FloatArray:
    """A table in which each two different states lose the same."""
    return loss * (1 - np.eye(size))

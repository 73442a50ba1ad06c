"""What all answers together tell of one moment, over every path before and after it.

Answers before a moment tell of the state then, because states follow each other; so do those
after it (temporal privacy leakage: Cao, Yoshikawa, Xiao and Xiong 2017, 2019). Given the state,
past and future are independent, so the loss between two states at a moment is a sum: what the
past tells, what the moment's own answers tell, what the future tells. The paths on both sides
are mixtures, which the model and what was known at the start decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from dphmm._types import FloatArray, IntArray
from dphmm.chain.belief import Belief, Start
from dphmm.cost.history import History
from dphmm.cost.moments import Moments
from dphmm.cost.sequences import worst_losses
from dphmm.cost.small_chains import small_losses
from dphmm.errors import ArgumentError, TooLargeError, expect
from dphmm.geometry.exact import whole
from dphmm.policy.graph import PolicyGraph

__all__ = ["Leakage", "realised_leakage", "temporal_leakage"]

DEPTH = 12
"""How many steps on each side of one moment are followed pair by pair."""

MOST_PAIRS = 2**26
"""Pairs of states times steps up to which every moment is looked at: about a minute."""


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
        depth: How many steps on each side of a given moment are followed; what lies beyond
            counts with each step's worst pair.

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
    tables: Iterable[tuple[int, FloatArray]]
    if exactly is not None:
        tables = enumerate(exactly)
    elif moment is not None:
        tables = [(moment, _around(moments, moment, depth))]
    else:
        tables = _every(moments)
    worst, place, linked = -inf, 0, 0.0
    for step, losses in tables:
        if moment not in (None, step):
            continue
        if losses.max() > worst:
            worst, place = float(losses.max()), step
        if policy is not None:
            linked = max(linked, _between(losses, policy, moments.states[step]))
    return Leakage(worst, None if policy is None else linked, place, exactly is not None)


def realised_leakage(prior: ArrayLike, posterior: ArrayLike, policy: PolicyGraph) -> float:
    """The largest loss about one moment between linked states that answers really had.

    The log of the factor by which they moved the odds between two states, at the worst time.
    From public things alone, like `realised_odds`.

    Args:
        prior: (T, n) the probabilities of the states before any release.
        posterior: The same, given all releases.
        policy: Which states are linked.

    >>> ring = PolicyGraph(3, [(0, 1), (1, 2)])
    >>> round(realised_leakage([[0.5, 0.25, 0.25]], [[0.8, 0.1, 0.1]], ring), 3)
    1.386
    """
    expect(policy, PolicyGraph, "policy")
    before, after = np.atleast_2d(prior).astype(float), np.atleast_2d(posterior).astype(float)
    if before.shape != after.shape or before.shape[1] != policy.n_states:
        raise ArgumentError(
            f"posterior must have the shape of prior, with {policy.n_states} states, "
            f"got {after.shape} and {before.shape}"
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = np.log(after) - np.log(before)
    losses = (_between(row[:, None] - row[None, :], policy, None) for row in moved)
    return max(losses)


def _between(losses: FloatArray, policy: PolicyGraph, states: IntArray | None) -> float:
    """The largest loss between linked states; `states` are those of the table."""
    if states is not None:
        mask = np.zeros(policy.n_states, dtype=bool)
        mask[states] = True
        place = np.cumsum(mask) - 1
        edges = place[policy.restricted_to(mask).edges]
    else:
        edges = policy.edges
    both = np.abs([losses[edges[:, 0], edges[:, 1]], losses[edges[:, 1], edges[:, 0]]])
    return float(np.nan_to_num(both, nan=0.0, posinf=inf).max(initial=0.0))


def _every(moments: Moments) -> Iterator[tuple[int, FloatArray]]:
    """What is told of each two states at every step, or more."""
    if len(moments) * moments.widest**2 > MOST_PAIRS:
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
    worst = [float(loss) for loss in worst_losses(moments.history)]
    first, last = max(0, moment - depth), min(len(moments) - 1, moment + depth)
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
